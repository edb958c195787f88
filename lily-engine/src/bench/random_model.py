#!/usr/bin/env python3
"""Writes one random model of the qwen3_5_moe architecture in two formats that decode to the same weights.

    random_model.py tiny|mid|full DIRECTORY [--seed 1] [--gguf-f32]

DIRECTORY/mlx         config.json, tokenizer.json, model*.safetensors: 4-bit affine codes in groups of 64
                      (uint32 of eight nibbles, bf16 scales and biases), routers with 8 bits
DIRECTORY/model.gguf  architecture qwen35moe: Q4_K where the other has 4 bits, F32 routers and norms

A 4-bit weight is 2**e * (s * q - 8 * m): e an exponent per kind of tensor, s and m 6-bit integers per group, q the
code. Then MLX's scale 2**e * s and bias -8 * 2**e * m are exact in bf16, and so are the halves d = 2**e and
dmin = 8 * 2**e of a Q4_K block, whose two sub-blocks of 32 share s and m. Both take 4.5 bits a weight.

The value heads of linear attention are grouped by key head in MLX and tiled over key heads in GGUF.
--gguf-f32 writes unpacked weights, so that a peer that quantises activations computes in fp32 (small sizes only).

Rows are drawn from a pool per width, so that 20 GB are written at the disk's speed. Needs numpy.
"""
import argparse
import json
import os
import struct

import numpy as np

MID = dict(hidden=1024, layers=16, experts=64, top_k=8, intermediate=512, key_heads=8, value_heads=16, delta_dim=128,
           heads=8, kv_heads=2, head_dim=256, vocabulary=65536)
SIZES = {
    "tiny": dict(hidden=256, layers=4, experts=16, top_k=4, intermediate=256, key_heads=2, value_heads=4, delta_dim=64,
                 heads=4, kv_heads=2, head_dim=64, vocabulary=1024),
    "mid": MID,
    "full": dict(MID, hidden=2048, layers=40, experts=256, key_heads=16, value_heads=32, heads=16, vocabulary=248320),
}
CONV_TAPS, GROUP, INTERVAL, EPSILON, THETA, ROTARY = 4, 64, 4, 1e-6, 10_000_000.0, 0.25
SHARD_BYTES = 4 << 30
POOL_ROWS, CHUNK_ROWS = 8192, 4096


def bf16_bits(values):
    """The upper halves of fp32 numbers that bf16 holds exactly."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    assert not np.any(bits & 0xFFFF), "not exact in bf16"
    return (bits >> 16).astype(np.uint16)


def cut_to_bf16(values):
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


class Pool:
    """Random 4-bit rows of one width in both formats; a tensor is a run of them."""

    def __init__(self, random, columns, exponent, group_order, as_f32):
        groups = columns // GROUP
        q = random.integers(1, 16, (POOL_ROWS, groups, GROUP), dtype=np.uint8)
        s = random.integers(16, 49, (POOL_ROWS, groups), dtype=np.uint8)
        m = (s.astype(np.int16) + random.integers(-1, 2, s.shape)).clip(0, 63).astype(np.uint8)
        d = np.float32(2.0 ** exponent)
        flat = q.reshape(POOL_ROWS, columns)
        self.codes = flat[:, 0::2] | flat[:, 1::2] << 4
        self.scales = bf16_bits(s.astype(np.float32) * d)
        self.biases = bf16_bits(m.astype(np.float32) * (-8 * d))
        if group_order is not None:
            q, s, m = q[:, group_order], s[:, group_order], m[:, group_order]
        if as_f32:
            w = (q * s[..., None].astype(np.float32) - np.float32(8) * m[..., None].astype(np.float32)) * d
            self.gguf = w.reshape(POOL_ROWS, columns)
        else:
            self.gguf = Pool.q4_k(q, s, m, exponent)

    @staticmethod
    def q4_k(q, s, m, exponent):
        """Rows of blocks: d, dmin, twelve bytes of 6-bit scales and minimums, 128 bytes of nibbles."""
        rows, groups, _ = q.shape
        blocks = groups * GROUP // 256
        out = np.zeros((rows, blocks, 144), np.uint8)
        out[..., 0:2] = np.frombuffer(np.float16(2.0 ** exponent).tobytes(), np.uint8)
        out[..., 2:4] = np.frombuffer(np.float16(8 * 2.0 ** exponent).tobytes(), np.uint8)
        s, m = (np.repeat(x.reshape(rows, blocks, 4), 2, axis=2) for x in (s, m))
        out[..., 4:8] = s[..., :4] | s[..., 4:] >> 4 << 6
        out[..., 8:12] = m[..., :4] | m[..., 4:] >> 4 << 6
        out[..., 12:16] = s[..., 4:] & 15 | (m[..., 4:] & 15) << 4
        out[..., 16:] = (q[..., :32] | q[..., 32:] << 4).reshape(rows, blocks, 128)
        return out.reshape(rows, blocks * 144)


class Safetensors:
    """Shards that are written tensor by tensor, in any order."""

    def __init__(self, directory, plan):
        os.makedirs(directory, exist_ok=True)
        shards, size = [[]], 0
        for entry in plan:
            if shards[-1] and size + entry[3] > SHARD_BYTES:
                shards.append([])
                size = 0
            shards[-1].append(entry)
            size += entry[3]
        self.files, self.places, weight_map = [], {}, {}
        for i, shard in enumerate(shards):
            name = "model.safetensors" if len(shards) == 1 else f"model-{i + 1:05d}-of-{len(shards):05d}.safetensors"
            header, offset = {"__metadata__": {"format": "mlx"}}, 0
            for tensor, dtype, shape, size in shard:
                header[tensor] = {"dtype": dtype, "shape": list(shape), "data_offsets": [offset, offset + size]}
                self.places[tensor] = (i, offset, size)
                weight_map[tensor] = name
                offset += size
            text = json.dumps(header, separators=(",", ":")).encode()
            text += b" " * (-len(text) % 8)
            file = open(os.path.join(directory, name), "wb")
            file.write(struct.pack("<Q", len(text)) + text)
            self.files.append((file, 8 + len(text)))
        if len(shards) > 1:
            with open(os.path.join(directory, "model.safetensors.index.json"), "w") as index:
                json.dump({"metadata": {}, "weight_map": weight_map}, index)

    def write(self, tensor, chunks):
        i, offset, size = self.places[tensor]
        file, base = self.files[i]
        file.seek(base + offset)
        written = sum(file.write(np.ascontiguousarray(chunk).data) for chunk in chunks)
        assert written == size, (tensor, written, size)

    def close(self):
        for file, _ in self.files:
            file.close()


class Gguf:
    """One GGUF file that is written tensor by tensor, in any order."""

    F32, Q4_K = 0, 12
    U32, I32, FLOAT, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
    ALIGNMENT = 32
    PACKED = {U32: "<I", I32: "<i", FLOAT: "<f", BOOL: "<B"}

    def __init__(self, path, metadata, plan):
        header = [b"GGUF", struct.pack("<IQQ", 3, len(plan), len(metadata))]
        for key, (kind, value) in metadata.items():
            header.append(self.string(key))
            if isinstance(value, list):
                header.append(struct.pack("<IIQ", self.ARRAY, kind, len(value)))
                header += [self.scalar(kind, item) for item in value]
            else:
                header += [struct.pack("<I", kind), self.scalar(kind, value)]
        self.places, offset = {}, 0
        for tensor, kind, extents, size in plan:
            header += [self.string(tensor), struct.pack("<I", len(extents)),
                       struct.pack(f"<{len(extents)}Q", *extents), struct.pack("<IQ", kind, offset)]
            self.places[tensor] = (offset, size)
            offset += size + -size % self.ALIGNMENT
        text = b"".join(header)
        text += b"\0" * (-len(text) % self.ALIGNMENT)
        self.base = len(text)
        self.file = open(path, "wb")
        self.file.write(text)
        self.file.truncate(self.base + offset)

    @staticmethod
    def string(text):
        return struct.pack("<Q", len(text.encode())) + text.encode()

    @classmethod
    def scalar(cls, kind, value):
        return cls.string(value) if kind == cls.STRING else struct.pack(cls.PACKED[kind], value)

    def write(self, tensor, chunks):
        offset, size = self.places[tensor]
        self.file.seek(self.base + offset)
        written = sum(self.file.write(np.ascontiguousarray(chunk).data) for chunk in chunks)
        assert written == size, (tensor, written, size)

    def close(self):
        self.file.close()


class Tokens:
    """A vocabulary of bytes, padding, and the control tokens at its end."""

    SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|"
             r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

    def __init__(self, size):
        printable = [b for b in range(256) if 0x21 <= b <= 0x7E or 0xA1 <= b <= 0xAC or b >= 0xAE]
        others = [b for b in range(256) if b not in printable]
        letters = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
        self.texts = [letters[b] for b in range(256)] + [f"[PAD{i}]" for i in range(256, size)]
        self.types = [1] * 256 + [5] * (size - 256)
        self.control = {}
        for i, text in enumerate(("<|endoftext|>", "<|im_start|>", "<|im_end|>")):
            self.control[text] = size - 3 + i
            self.texts[size - 3 + i] = text
            self.types[size - 3 + i] = 3

    @property
    def end(self):
        return self.control["<|im_end|>"]

    def tokenizer(self):
        return {
            "added_tokens": [{"id": i, "content": text, "special": True} for text, i in self.control.items()],
            "normalizer": {"type": "NFC"},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
                {"type": "Split", "pattern": {"Regex": self.SPLIT}, "behavior": "Isolated", "invert": False},
                {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]},
            "decoder": {"type": "ByteLevel"},
            "model": {"type": "BPE", "vocab": {text: i for i, text in enumerate(self.texts[:256])}, "merges": []}}


class Model:
    """The tensors of a size, under their names in both formats."""

    def __init__(self, shape, seed, as_f32):
        self.shape, self.as_f32 = shape, as_f32
        self.random = np.random.default_rng(seed)
        self.pools, self.tensors = {}, []
        key_dim = shape["key_heads"] * shape["delta_dim"]
        value_dim = shape["value_heads"] * shape["delta_dim"]
        self.conv_dim = 2 * key_dim + value_dim
        self.column_groups = self.tiled(shape["delta_dim"] // GROUP)
        hidden, vocabulary = shape["hidden"], shape["vocabulary"]
        self.quantized("language_model.model.embed_tokens", "token_embd", vocabulary, hidden, kind="embedding")
        self.norm("language_model.model.norm", "output_norm", hidden)
        self.quantized("language_model.lm_head", "output", vocabulary, hidden)
        for i in range(shape["layers"]):
            m, g = f"language_model.model.layers.{i}.", f"blk.{i}."
            self.norm(m + "input_layernorm", g + "attn_norm", hidden)
            self.norm(m + "post_attention_layernorm", g + "post_attention_norm", hidden)
            if (i + 1) % INTERVAL == 0:
                self.attention(m + "self_attn.", g)
            else:
                self.delta(m + "linear_attn.", g, key_dim, value_dim)
            self.mlp(m + "mlp.", g)

    def attention(self, m, g):
        hidden, dim = self.shape["hidden"], self.shape["head_dim"]
        queries, keys = self.shape["heads"] * dim, self.shape["kv_heads"] * dim
        self.quantized(m + "q_proj", g + "attn_q", 2 * queries, hidden)
        self.quantized(m + "k_proj", g + "attn_k", keys, hidden)
        self.quantized(m + "v_proj", g + "attn_v", keys, hidden)
        self.quantized(m + "o_proj", g + "attn_output", hidden, queries)
        self.norm(m + "q_norm", g + "attn_q_norm", dim)
        self.norm(m + "k_norm", g + "attn_k_norm", dim)

    def delta(self, m, g, key_dim, value_dim):
        hidden, dim, heads = self.shape["hidden"], self.shape["delta_dim"], self.shape["value_heads"]
        convolved = np.concatenate([np.arange(2 * key_dim), 2 * key_dim + self.tiled(dim)])
        per_head = self.tiled(1)
        self.quantized(m + "in_proj_qkv", g + "attn_qkv", self.conv_dim, hidden, order=convolved)
        self.quantized(m + "in_proj_z", g + "attn_gate", value_dim, hidden, order=self.tiled(dim))
        self.quantized(m + "in_proj_b", g + "ssm_beta", heads, hidden, order=per_head)
        self.quantized(m + "in_proj_a", g + "ssm_alpha", heads, hidden, order=per_head)
        taps = cut_to_bf16(self.random.standard_normal((self.conv_dim, CONV_TAPS)) * 0.5)
        self.plain(m + "conv1d.weight", g + "ssm_conv1d.weight", taps, order=convolved, shape=taps.shape + (1,))
        bias = cut_to_bf16(self.random.uniform(-4, 1, heads))
        self.plain(m + "dt_bias", g + "ssm_dt.bias", bias, order=per_head)
        decay = self.random.uniform(-3, 2, heads).astype(np.float32)
        self.plain(m + "A_log", g + "ssm_a", decay, order=per_head, dtype="F32", gguf=-np.exp(decay))
        self.norm(m + "norm", g + "ssm_norm", dim)
        self.quantized(m + "out_proj", g + "ssm_out", hidden, value_dim, kind="delta output")

    def mlp(self, m, g):
        hidden, width, experts = self.shape["hidden"], self.shape["intermediate"], self.shape["experts"]
        self.router(m + "gate", g + "ffn_gate_inp", experts)
        self.router(m + "shared_expert_gate", g + "ffn_gate_inp_shexp", 1)
        for name, rows, columns in (("gate", width, hidden), ("up", width, hidden), ("down", hidden, width)):
            self.quantized(f"{m}switch_mlp.{name}_proj", f"{g}ffn_{name}_exps", rows, columns, stack=experts)
            self.quantized(f"{m}shared_expert.{name}_proj", f"{g}ffn_{name}_shexp", rows, columns)

    def tiled(self, per_head):
        """Which grouped row stands at each tiled one."""
        keys, values = self.shape["key_heads"], self.shape["value_heads"]
        return np.arange(values * per_head).reshape(keys, values // keys, per_head).transpose(1, 0, 2).reshape(-1)

    def quantized(self, mlx, gguf, rows, columns, kind="plain", stack=0, order=None):
        self.tensors.append(dict(mlx=mlx, gguf=gguf + ".weight", rows=rows, columns=columns, kind=kind, stack=stack,
                                 order=order, form="4 bit"))

    def router(self, mlx, gguf, rows):
        columns = self.shape["hidden"]
        spread = 1 + self.random.integers(0, 4, (rows, columns // GROUP)) / 8
        scales = cut_to_bf16(np.full(spread.shape, 2.0 / np.sqrt(columns) / 74, np.float32) * spread)
        codes = self.random.integers(1, 256, (rows, columns), dtype=np.uint8)
        self.tensors.append(dict(mlx=mlx, gguf=gguf + ".weight", rows=rows, columns=columns, codes=codes, scales=scales,
                                 form="8 bit"))

    def norm(self, mlx, gguf, size):
        self.plain(mlx + ".weight", gguf + ".weight", cut_to_bf16(1 + self.random.standard_normal(size) * 0.1))

    def plain(self, mlx, name, values, order=None, shape=None, dtype="BF16", gguf=None):
        peer = values if gguf is None else gguf
        self.tensors.append(dict(mlx=mlx, gguf=name, values=values, shape=shape or values.shape, dtype=dtype,
                                 peer=peer if order is None else peer[order], form="plain"))

    def active_bytes(self):
        """Bytes of 4-bit weights that one token reads."""
        return sum(t["rows"] * t["columns"] * (self.shape["top_k"] if t["stack"] else 1) * 9 // 16
                   for t in self.tensors if t["form"] == "4 bit" and t["kind"] != "embedding")

    def pool(self, columns, kind):
        if (columns, kind) not in self.pools:
            # s * q - 8 * m deviates by about 138; outputs are to be about as large as inputs.
            deviation = 1.0 if kind == "embedding" else 1.0 / np.sqrt(columns)
            exponent = max(-14, int(np.round(np.log2(deviation / 138))))
            groups = self.column_groups if kind == "delta output" else None
            self.pools[columns, kind] = Pool(self.random, columns, exponent, groups, self.as_f32)
        return self.pools[columns, kind]

    # What the two files contain.

    def mlx_plan(self):
        plan = []
        for t in self.tensors:
            if t["form"] == "plain":
                size = t["values"].size * (4 if t["dtype"] == "F32" else 2)
                plan.append((t["mlx"], t["dtype"], t["shape"], size))
                continue
            bits = 4 if t["form"] == "4 bit" else 8
            stack = (t["stack"],) if t.get("stack") else ()
            rows = t["rows"] * (t.get("stack") or 1)
            groups = t["columns"] // GROUP
            plan.append((t["mlx"] + ".weight", "U32", (*stack, t["rows"], t["columns"] * bits // 32),
                         rows * t["columns"] * bits // 8))
            for part in (".scales", ".biases"):
                plan.append((t["mlx"] + part, "BF16", (*stack, t["rows"], groups), rows * groups * 2))
        return plan

    def gguf_plan(self):
        plan = []
        for t in self.tensors:
            if t["form"] == "plain":
                plan.append((t["gguf"], Gguf.F32, list(t["peer"].shape[::-1]), t["peer"].size * 4))
                continue
            count = t["rows"] * t["columns"] * (t.get("stack") or 1)
            extents = [t["columns"], t["rows"]] + ([t["stack"]] if t.get("stack") else [])
            if t["form"] == "8 bit":
                plan.append((t["gguf"], Gguf.F32, extents[:1] if t["rows"] == 1 else extents, count * 4))
            elif self.as_f32:
                plan.append((t["gguf"], Gguf.F32, extents, count * 4))
            else:
                plan.append((t["gguf"], Gguf.Q4_K, extents, count // 256 * 144))
        return plan

    def write(self, mlx, gguf):
        for t in self.tensors:
            if t["form"] == "plain":
                mlx.write(t["mlx"], [t["values"] if t["dtype"] == "F32" else bf16_bits(t["values"])])
                gguf.write(t["gguf"], [t["peer"].astype(np.float32)])
            elif t["form"] == "8 bit":
                mlx.write(t["mlx"] + ".weight", [t["codes"]])
                mlx.write(t["mlx"] + ".scales", [bf16_bits(t["scales"])])
                mlx.write(t["mlx"] + ".biases", [bf16_bits(t["scales"] * np.float32(-128))])
                codes = t["codes"].reshape(t["rows"], -1, GROUP).astype(np.float32) - 128
                gguf.write(t["gguf"], [codes * t["scales"][..., None]])
            else:
                pool = self.pool(t["columns"], t["kind"])
                starts = self.random.integers(0, POOL_ROWS, max(1, t["stack"]))
                rows = np.arange(t["rows"])
                for part, source in ((".weight", pool.codes), (".scales", pool.scales), (".biases", pool.biases)):
                    mlx.write(t["mlx"] + part, self.runs(source, starts, rows))
                gguf.write(t["gguf"], self.runs(pool.gguf, starts, rows if t["order"] is None else t["order"]))

    @staticmethod
    def runs(source, starts, rows):
        for start in starts:
            for at in range(0, len(rows), CHUNK_ROWS):
                yield source[(start + rows[at:at + CHUNK_ROWS]) % POOL_ROWS]

    def config(self, tokens):
        s = self.shape
        quantization = {"group_size": GROUP, "bits": 4, "mode": "affine"}
        quantization |= {t["mlx"]: {"group_size": GROUP, "bits": 8} for t in self.tensors if t["form"] == "8 bit"}
        text = {"model_type": "qwen3_5_moe_text", "hidden_size": s["hidden"], "num_hidden_layers": s["layers"],
                "num_attention_heads": s["heads"], "num_key_value_heads": s["kv_heads"], "head_dim": s["head_dim"],
                "linear_num_value_heads": s["value_heads"], "linear_num_key_heads": s["key_heads"],
                "linear_key_head_dim": s["delta_dim"], "linear_value_head_dim": s["delta_dim"],
                "linear_conv_kernel_dim": CONV_TAPS, "num_experts": s["experts"], "num_experts_per_tok": s["top_k"],
                "moe_intermediate_size": s["intermediate"], "shared_expert_intermediate_size": s["intermediate"],
                "rms_norm_eps": EPSILON, "vocab_size": s["vocabulary"], "max_position_embeddings": 262144,
                "full_attention_interval": INTERVAL,
                "rope_parameters": {"rope_type": "default", "rope_theta": THETA, "partial_rotary_factor": ROTARY}}
        return {"model_type": "qwen3_5_moe", "text_config": text, "eos_token_id": [tokens.end],
                "quantization": quantization}

    def metadata(self, tokens):
        s, a = self.shape, "qwen35moe."
        rotary = int(s["head_dim"] * ROTARY)
        third = rotary // 6
        u, f, text = Gguf.U32, Gguf.FLOAT, Gguf.STRING
        return {
            "general.architecture": (text, "qwen35moe"), "general.quantization_version": (u, 2),
            "general.file_type": (u, 15), a + "block_count": (u, s["layers"]), a + "context_length": (u, 262144),
            a + "embedding_length": (u, s["hidden"]), a + "attention.head_count": (u, s["heads"]),
            a + "attention.head_count_kv": (u, s["kv_heads"]), a + "attention.key_length": (u, s["head_dim"]),
            a + "attention.value_length": (u, s["head_dim"]), a + "attention.layer_norm_rms_epsilon": (f, EPSILON),
            a + "rope.freq_base": (f, THETA), a + "rope.dimension_count": (u, rotary),
            a + "rope.dimension_sections": (Gguf.I32, [rotary // 2 - 2 * third, third, third, 0]),
            a + "expert_count": (u, s["experts"]), a + "expert_used_count": (u, s["top_k"]),
            a + "expert_feed_forward_length": (u, s["intermediate"]),
            a + "expert_shared_feed_forward_length": (u, s["intermediate"]), a + "ssm.conv_kernel": (u, CONV_TAPS),
            a + "ssm.state_size": (u, s["delta_dim"]), a + "ssm.group_count": (u, s["key_heads"]),
            a + "ssm.time_step_rank": (u, s["value_heads"]),
            a + "ssm.inner_size": (u, s["value_heads"] * s["delta_dim"]), a + "full_attention_interval": (u, INTERVAL),
            "tokenizer.ggml.model": (text, "gpt2"), "tokenizer.ggml.pre": (text, "qwen35"),
            "tokenizer.ggml.tokens": (text, tokens.texts), "tokenizer.ggml.token_type": (Gguf.I32, tokens.types),
            "tokenizer.ggml.merges": (text, []), "tokenizer.ggml.eos_token_id": (u, tokens.end),
            "tokenizer.ggml.add_bos_token": (Gguf.BOOL, 0)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("directory")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gguf-f32", action="store_true")
    options = parser.parse_args()
    shape = SIZES[options.size]
    model = Model(shape, options.seed, options.gguf_f32)
    tokens = Tokens(shape["vocabulary"])
    mlx_directory = os.path.join(options.directory, "mlx")
    mlx = Safetensors(mlx_directory, model.mlx_plan())
    gguf = Gguf(os.path.join(options.directory, "model.gguf"), model.metadata(tokens), model.gguf_plan())
    model.write(mlx, gguf)
    mlx.close()
    gguf.close()
    for name, content in (("config.json", model.config(tokens)), ("tokenizer.json", tokens.tokenizer())):
        with open(os.path.join(mlx_directory, name), "w") as file:
            json.dump(content, file, ensure_ascii=False, indent=1)
    with open(os.path.join(options.directory, "active_bytes"), "w") as file:
        file.write(str(model.active_bytes()))
    print(f"{options.size}: {model.active_bytes() / 1e6:.1f} MB of 4-bit weights a token")


if __name__ == "__main__":
    main()

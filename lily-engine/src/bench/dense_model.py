#!/usr/bin/env python3
"""Writes a random dense Llama in bf16, for peers that do not know qwen3_5_moe.

    dense_model.py DIRECTORY

At 4.5 bits a weight a token reads 241 MB of it, about as much as of the `mid` size of random_model.py.
"""
import json
import os
import sys

import numpy as np

from random_model import Safetensors, Tokens, bf16_bits, cut_to_bf16

HIDDEN, LAYERS, INTERMEDIATE, HEADS, KV_HEADS, VOCABULARY = 2048, 8, 5632, 16, 4, 32768
POOL_ROWS = 4096


def matrices():
    kv = KV_HEADS * HIDDEN // HEADS
    yield "model.embed_tokens", VOCABULARY, HIDDEN
    yield "lm_head", VOCABULARY, HIDDEN
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        for name, rows in (("q", HIDDEN), ("k", kv), ("v", kv), ("o", HIDDEN)):
            yield f"{layer}self_attn.{name}_proj", rows, HIDDEN
        for name, rows, columns in (("gate", INTERMEDIATE, HIDDEN), ("up", INTERMEDIATE, HIDDEN),
                                    ("down", HIDDEN, INTERMEDIATE)):
            yield f"{layer}mlp.{name}_proj", rows, columns


def norms():
    yield "model.norm"
    for i in range(LAYERS):
        yield f"model.layers.{i}.input_layernorm"
        yield f"model.layers.{i}.post_attention_layernorm"


def main(directory):
    random = np.random.default_rng(3)
    plan = [(f"{name}.weight", "BF16", (rows, columns), rows * columns * 2) for name, rows, columns in matrices()]
    plan += [(f"{name}.weight", "BF16", (HIDDEN,), HIDDEN * 2) for name in norms()]
    out = Safetensors(directory, plan)
    pools = {n: bf16_bits(cut_to_bf16(random.standard_normal((POOL_ROWS, n)) / np.sqrt(n))) for n in (HIDDEN, INTERMEDIATE)}
    for name, rows, columns in matrices():
        chunks = (pools[columns][np.arange(at, min(at + POOL_ROWS, rows)) % POOL_ROWS] for at in range(0, rows, POOL_ROWS))
        out.write(f"{name}.weight", chunks)
    for name in norms():
        out.write(f"{name}.weight", [bf16_bits(np.ones(HIDDEN, np.float32))])
    out.close()
    tokens = Tokens(VOCABULARY)
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": HIDDEN,
              "intermediate_size": INTERMEDIATE, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "num_key_value_heads": KV_HEADS, "head_dim": HIDDEN // HEADS, "vocab_size": VOCABULARY,
              "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "max_position_embeddings": 8192, "hidden_act": "silu",
              "bos_token_id": tokens.end, "eos_token_id": tokens.end, "tie_word_embeddings": False,
              "torch_dtype": "bfloat16"}
    tokenizer = {"version": "1.0", "added_tokens": [], "normalizer": None,
                 "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
                                   "use_regex": True},
                 "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
                 "model": {"type": "BPE", "unk_token": None, "byte_fallback": False, "ignore_merges": False,
                           "fuse_unk": False, "vocab": {text: i for i, text in enumerate(tokens.texts)},
                           "merges": []}}
    for name, content in (("config.json", config), ("tokenizer.json", tokenizer),
                          ("tokenizer_config.json", {"eos_token": "<|im_end|>", "bos_token": "<|im_end|>",
                                                     "chat_template": "{{ messages[0]['content'] }}"})):
        with open(os.path.join(directory, name), "w") as file:
            json.dump(content, file, ensure_ascii=False)
    with open(os.path.join(directory, "README.md"), "w") as file:
        file.write("Random weights.\n")
    weights = sum(rows * columns for name, rows, columns in matrices() if name != "model.embed_tokens")
    with open(os.path.join(directory, "active_bytes"), "w") as file:
        file.write(str(weights * 9 // 16))


if __name__ == "__main__":
    main(sys.argv[1])

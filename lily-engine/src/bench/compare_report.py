#!/usr/bin/env python3
"""Prints the table of compare-peers.sh: compare_report.py RESULTS ACTIVE_BYTES DENSE_ACTIVE_BYTES.

A line of RESULTS is an engine, a tab and a JSON object with rates in tokens a second (prefill512, decode1024, …), or
LilyBench's own JSON. Lines of one engine are rounds; the table has their medians.
"""
import json
import statistics
import sys

FIGURES = ["prefill128", "prefill512", "prefill2048", "decode128", "decode1024", "decode4096"]


def rates(result):
    if "rows" not in result:
        return result
    flat = {}
    for row in result["rows"]:
        flat[f"prefill{row['context']}"] = row["prefillTokensPerSecond"]
        flat[f"decode{row['context']}"] = row["decodeTokensPerSecond"]
    return flat


def main(path, active, dense_active):
    rounds = {}
    for line in open(path):
        engine, text = line.rstrip("\n").split("\t")
        for name, value in rates(json.loads(text)).items():
            if isinstance(value, (int, float)):
                rounds.setdefault(engine, {}).setdefault(name, []).append(value)
    median = {engine: {k: statistics.median(v) for k, v in figures.items()} for engine, figures in rounds.items()}
    llama = median["llama.cpp"]
    for name, value in median.pop("llama.cpp-plain").items():
        if name.startswith("decode"):
            llama[name] = max(value, llama[name])
    machine = median.pop("machine", {})
    read = machine.get("readGigabytesPerSecond")
    if machine:
        print(f"Ceilings of this machine in the same run: {read:.1f} GB/s read, "
              f"{machine['fmaGigaflopsPerSecond']:.0f} GFLOP/s fp32 multiply-add. "
              f"A token reads {active / 1e6:.1f} MB of 4-bit weights.\n")
    print("| engine | " + " | ".join(FIGURES) + " | read at decode128 |")
    print("|---|" + "--:|" * (len(FIGURES) + 1))
    for engine, figures in median.items():
        size = dense_active if engine == "jlama" else active
        cells = []
        for name in FIGURES:
            value = figures.get(name)
            base = llama.get(name)
            if value is None:
                cells.append("–")
            elif engine == "jlama" or base is None:
                cells.append(f"{value:.2f}")
            else:
                cells.append(f"{value:.2f} ({value / base:.2f})")
        decode = figures.get("decode128", figures.get("decode512"))
        share = f"{decode * size / 1e7 / read:.0f} %" if read and decode else "–"
        print(f"| {engine} | " + " | ".join(cells) + f" | {share} |")
    ours = {engine: figures for engine, figures in median.items() if engine not in ("llama.cpp", "jlama")}
    if "jlama" in median:
        theirs = median["jlama"]
        scale = active / dense_active
        print("\nBytes of weights a second, against Jlama's: "
              f"decode {ours['fp32']['decode128'] * scale / theirs['decode512']:.2f}, "
              f"prefill {ours['fp32']['prefill512'] * scale / theirs['prefill512']:.2f}")

    def ratio(engine, name):
        value = ours.get(engine, {}).get(name)
        return f"{value / llama[name]:.2f}" if value and llama.get(name) else "-"

    print("RATIOS "
          f"decode128_fp32={ratio('fp32', 'decode128')} decode128_int8={ratio('int8', 'decode128')} "
          + " ".join(f"{name}={ratio('fp32', name)}" for name in ("decode1024", "decode4096", "prefill512", "prefill2048")))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))

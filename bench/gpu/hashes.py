#!/usr/bin/env python3
"""bench/gpu/hashes.py TALLY_TRAIN [--device cpu|cuda] [--against FILE] [--only NAME]

Prints a hash of everything that a few deterministic steps leave (weights, master weights, moments; with one step and no
clipping the first moment is the gradient times 0.1) for each of a list of configurations, and the losses. Two programs
that compute the same, bit for bit, print the same. With --against the output of another program's run is compared, and
the exit code is 1 where a line differs.
"""

import argparse
import hashlib
import json
import pathlib
import subprocess
import sys
import tempfile

SMALL = "--num-layers 3 --hidden-size 120 --num-attention-heads 3 --ffn-hidden-size 200 --seq-length 37 " \
        "--max-position-embeddings 41 --tokenizer-type bytes --micro-batch-size 3"
# Sizes that the GPU's fast kernels serve.
WIDE = "--num-layers 3 --hidden-size 256 --num-attention-heads 4 --seq-length 256 --tokenizer-type bytes --micro-batch-size 4"

CASES = {}
for precision in ("fp64", "fp32", "bf16", "fp16"):
    for size, shape in (("small", SMALL), ("wide", WIDE)):
        CASES[f"{size} {precision}"] = f"{shape} --precision {precision}"
for recompute in ("selective", "full"):
    CASES[f"wide bf16 {recompute}"] = f"{WIDE} --bf16 --recompute-granularity {recompute}"
    CASES[f"small fp64 {recompute}"] = f"{SMALL} --precision fp64 --recompute-granularity {recompute}"
CASES |= {
    "wide bf16 accumulation": f"{WIDE} --bf16 --global-batch-size 12",
    "small fp32 rotary": f"{SMALL} --precision fp32 --position-embedding-type rope",
    "wide bf16 no dropout": f"{WIDE} --bf16 --hidden-dropout 0 --attention-dropout 0",
    "wide bf16 no fusion": f"{WIDE} --bf16 --hidden-dropout 0 --attention-dropout 0 --no-fusion all",
    "wide fp32 no dropout": f"{WIDE} --precision fp32 --hidden-dropout 0 --attention-dropout 0",
    "wide bf16 no bias sums": f"{WIDE} --bf16 --no-fusion bias-sums,qkv-bias",
    "one layer fp32": f"{WIDE} --precision fp32 --num-layers 1",
}
GPU_CASES = {
    "wide tf32": f"{WIDE} --precision tf32",
    "wide tf32x3": f"{WIDE} --precision tf32x3",
    "124M bf16": "--model 124M --bf16 --micro-batch-size 4 --hidden-dropout 0 --attention-dropout 0",
    "124M fp32": "--model 124M --precision fp32 --micro-batch-size 2",
    "1.5B layers bf16": "--model gpt2-xl --num-layers 2 --bf16 --micro-batch-size 4",
    "13B layers bf16": "--num-layers 2 --hidden-size 5120 --num-attention-heads 40 --seq-length 2048 --bf16 "
                       "--micro-batch-size 2 --hidden-dropout 0 --attention-dropout 0",
}


def run(program, name, flags, device):
    """The hash of the checkpoint and the losses of three steps."""
    with tempfile.TemporaryDirectory() as folder:
        record = f"{folder}/record.json"
        command = [program, *flags.split(), "--mock-data", "--deterministic", "--device", device, "--train-iters", "3",
                   "--log-interval", "1", "--lr", "1e-3", "--save", f"{folder}/save", "--record", record]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"hashes.py: {name}: {' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
        digest = hashlib.sha256()
        for file in sorted(pathlib.Path(folder, "save").rglob("*.safetensors")):
            digest.update(file.name.encode())
            digest.update(file.read_bytes())
        losses = json.loads(pathlib.Path(record).read_text())["steps"]["loss"]
    return f"{digest.hexdigest()[:32]} " + " ".join(f"{loss:.17g}" for loss in losses)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--against")
    parser.add_argument("--only")
    arguments = parser.parse_args()
    cases = CASES | (GPU_CASES if arguments.device != "cpu" else {})
    before = {}
    if arguments.against:
        for line in pathlib.Path(arguments.against).read_text().splitlines():
            name, _, rest = line.partition(": ")
            before[name] = rest
    differ = 0
    for name, flags in cases.items():
        if arguments.only and arguments.only not in name:
            continue
        found = run(arguments.program, name, flags, arguments.device)
        note = ""
        if arguments.against and before.get(name) != found:
            differ += 1
            note = f"  <-- was {before.get(name)}"
        print(f"{name}: {found}{note}", flush=True)
    if arguments.against:
        print(f"{differ} differ", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())

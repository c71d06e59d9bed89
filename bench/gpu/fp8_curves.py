#!/usr/bin/env python3
"""The loss of training in FP8 beside bf16's: 1,000 steps on a real text, from the same weights on the same batches.

    fp8_curves.py --train TALLY_TRAIN --vocab DIR --text FILE... --out DIR [--logs DIR]

GPT-2 124M and a Llama of 322 million parameters, 8,192 tokens a step, GPT-2's tokens, no dropout; a third run of each
in bf16 with another seed shows what another order of batches and other weights change. Writes fp8.csv (the mean loss of
each five steps), fp8.png where there is matplotlib, and prints the validation losses. --logs: logs of runs made before
(NAME.txt), which are read and not made again.
"""
import argparse
import csv
import os
import re
import subprocess
import sys

from curves import plot

COMMON = ("--train-iters 1000 --log-interval 5 --eval-interval 250 --eval-iters 20 --split 95,5,0 "
          "--lr-decay-style cosine --lr-warmup-iters 100 --weight-decay 0.1 --clip-grad 1.0 --adam-beta2 0.95 "
          "--hidden-dropout 0 --attention-dropout 0 --seq-length 512 --micro-batch-size 16 --bf16")
GPT = "--model gpt2 --lr 6e-4 --min-lr 6e-5"
LLAMA = ("--lr 3e-4 --min-lr 3e-5 --num-layers 24 --hidden-size 1024 --ffn-hidden-size 2816 --num-attention-heads 16 "
         "--group-query-attention --num-query-groups 4 --swiglu --normalization RMSNorm --disable-bias-linear "
         "--position-embedding-type rope")
FP8 = "--fp8-format hybrid"
RUNS = {"124m-bf16": GPT, "124m-fp8": f"{GPT} {FP8}", "124m-seed": f"{GPT} --seed 4321", "300m-bf16": LLAMA,
        "300m-fp8": f"{LLAMA} {FP8}", "300m-seed": f"{LLAMA} --seed 4321"}


def make_logs(a):
    data = os.path.join(a.out, "text")
    words = ["--vocab-file", os.path.join(a.vocab, "vocab.json"), "--merge-file", os.path.join(a.vocab, "merges.txt")]
    subprocess.run([a.train, "prepare", "--input", *a.text, "--output", data, "--append-eod", *words], check=True)
    for name, flags in RUNS.items():
        with open(os.path.join(a.out, name + ".txt"), "w") as log:
            subprocess.run([a.train, "--data-path", data, *words, *COMMON.split(), *flags.split()], check=True, stdout=log)
    return a.out


def losses(path):
    """Two lists: [(step, training loss)], [(step, validation loss)]."""
    with open(path) as file:
        text = file.read()
    if "completed: 1000 steps" not in text:
        sys.exit(f"fp8_curves.py: {path}: the run did not reach its 1,000 steps")
    training = re.findall(r"^ iteration +(\d+)/.*?lm loss: (\S+)", text, re.M)
    validation = re.findall(r"validation loss at iteration (\d+) \| lm loss value: (\S+)", text)
    return [[(int(step), float(loss)) for step, loss in found] for found in (training, validation)]


def pairs_of(curves):
    for model, other, color in (("124m", "fp8", "tab:blue"), ("124m", "seed", "tab:cyan"), ("300m", "fp8", "tab:red"),
                                ("300m", "seed", "tab:orange")):
        steps, theirs = zip(*curves[model + "-bf16"])
        ours = [loss for _, loss in curves[f"{model}-{other}"]]
        yield f"{model} {other}", color, steps, ours, model + " bf16" if other == "fp8" else None, theirs


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--train", default="build/bin/tally-train")
    p.add_argument("--vocab", default=".deps/vocab")
    p.add_argument("--text", nargs="+", default=[".deps/text/english.txt"])
    p.add_argument("--out", default=".")
    p.add_argument("--logs")
    a = p.parse_args()
    logs = a.logs or make_logs(a)
    found = {name: losses(os.path.join(logs, name + ".txt")) for name in RUNS}
    curves = {name: training for name, (training, _) in found.items()}
    with open(os.path.join(a.out, "fp8.csv"), "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["step", *curves])
        for rows in zip(*curves.values()):
            writer.writerow([rows[0][0], *(f"{loss:.6f}" for _, loss in rows)])
    plot(pairs_of(curves), "less bf16's", os.path.join(a.out, "fp8.png"))
    for name, (training, validation) in found.items():
        last = [loss for step, loss in training if step > 900]
        print(f"{name}: last 100 steps {sum(last) / len(last):.4f}; validation " +
              ", ".join(f"{loss:.4f} at {step}" for step, loss in validation))


if __name__ == "__main__":
    main()

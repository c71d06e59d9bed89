#!/usr/bin/env python3
"""bench/gpu/turns.py OLD NEW [--cases LIST] [--new-flags FLAGS] [--rounds N] [--steps N] [--out DIR]

Two programs tally-train by turns on one GPU: what a change has cost. With --new-flags the second one gets further flags, so
that one program with and without a fusion are compared: turns.py P P --new-flags "--no-fusion head" (docs/fusions.md). Prints, for each case of measure.py, the
milliseconds of a steady step of both in each round, the median of the rounds' ratios (new / old; above 1: slower), and the
seconds from the start to the first step (wall without the steps). The record of each start goes to --out.
Both take the same tuned algorithms: the first start of a case, which tunes, is not counted.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

import measure


def start(program, case, steps, stem):
    command = [*program, *measure.CASES[case].our_flags(), "--train-iters", str(steps), "--record", stem + ".json"]
    begin = time.monotonic()
    with open(stem + ".txt", "w") as log:
        if subprocess.run(command, stdout=log, stderr=subprocess.STDOUT).returncode != 0:
            sys.exit(f"bench/gpu/turns.py: {' '.join(program)} failed on case {case}; its messages: {stem}.txt")
    wall = time.monotonic() - begin
    with open(stem + ".json") as file:
        results = json.load(file)["results"]
    step = results["seconds_per_iteration_steady"]
    return step * 1e3, wall


def main():
    p = argparse.ArgumentParser()
    p.add_argument("old")
    p.add_argument("new")
    p.add_argument("--cases", default="124m")
    p.add_argument("--new-flags", default="", help="flags that the second program gets besides")
    p.add_argument("--rounds", type=measure.whole, default=3)
    p.add_argument("--steps", type=measure.whole)
    p.add_argument("--out", default=".")
    a = p.parse_args()
    programs = {"old": [a.old], "new": [a.new, *a.new_flags.split()]}
    for case in measure.chosen(a.cases):
        steps = a.steps or measure.CASES[case].steps
        for name, program in programs.items():
            start(program, case, 10, os.path.join(a.out, f"{case}.{name}.tuning"))
        rounds = []
        for number in range(1, a.rounds + 1):
            # The one that begins changes from round to round.
            order = list(programs) if number % 2 else list(programs)[::-1]
            rounds.append({name: start(programs[name], case, steps, os.path.join(a.out, f"{case}.{name}.{number}"))
                           for name in order})
        text = ", ".join(f"{r['old'][0]:.2f} / {r['new'][0]:.2f}" for r in rounds)
        ratio = statistics.median(r["new"][0] / r["old"][0] for r in rounds)
        walls = {name: statistics.median(r[name][1] - steps * r[name][0] / 1e3 for r in rounds) for name in programs}
        print(f"{case}: {ratio:.4f} (ms a step, old / new: {text}; rest of the start {walls['old']:.2f} / {walls['new']:.2f} s)",
              flush=True)


if __name__ == "__main__":
    main()

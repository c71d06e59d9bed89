"""The median of the rounds of every case in a directory that bench/gpu/run filled, as a Markdown table,
as summary.json, and as record.json, which bench/report accepts. A round's rate is that of all its steps after the first
ten, which tune and warm up: their mean, like the peer's, since a GPU at its power limit swings by some per cent from
step to step."""
import collections
import glob
import json
import os
import statistics
import sys

import record as results_record

WARM_UP = 10


def main(directory, command):
    rounds = collections.OrderedDict()
    for path in sorted(glob.glob(os.path.join(directory, "*.[0-9]*.json")), key=os.path.getmtime):
        name = os.path.basename(path).rsplit(".", 2)[0]
        with open(path) as file:
            record = json.load(file)
        if record["steps"]["seconds"]:  # a run that was stopped before its first step has none
            rounds.setdefault(name, []).append(record)
    summary = []
    for name, records in rounds.items():
        seconds, rates = [], []
        for record in records:
            steps = record["steps"]["seconds"]
            steps = steps[WARM_UP:] or steps
            seconds.append(statistics.mean(steps))
            rates.append(record["results"]["tokens_per_iteration"] / seconds[-1])
        results = records[0]["results"]
        middle = statistics.median(rates)
        summary.append({
            "case": name,
            "tokens_per_second": middle,
            "spread_percent": 100 * (max(rates) - min(rates)) / middle,
            "milliseconds_per_step": 1000 * statistics.median(seconds),
            "device_gib": results["peak_device_bytes"] / 2**30,
            "model_tflops_per_second": results["model_flops_per_token"] * middle / 1e12,
            "model_flops_utilisation_percent":
                100 * results["model_flops_per_token"] * middle / (results["peak_tflops_per_second"] * 1e12),
            "rounds": len(records),
            "command": " ".join(records[0]["command_line"]),
            "commit": records[0]["environment"]["git_commit"],
            "device": records[0]["environment"]["device_name"],
            "date": records[0]["started"],
        })
    add_peers(directory, summary)
    add_floors(directory, summary)
    with open(os.path.join(directory, "summary.json"), "w") as file:
        json.dump(summary, file, indent=1)
    results_record.write(directory, summary, {name: records[0] for name, records in rounds.items()}, command)
    print("| case | tokens/s | spread | ms/step | memory GiB | TFLOP/s | MFU |")
    print("|---|---|---|---|---|---|---|")
    for s in summary:
        print(f"| {s['case']} | {s['tokens_per_second']:,.0f} | {s['spread_percent']:.1f} % "
              f"| {s['milliseconds_per_step']:.2f} | {s['device_gib']:.1f} "
              f"| {s['model_tflops_per_second']:.0f} | {s['model_flops_utilisation_percent']:.1f} % |")
    if any(s["peers"] for s in summary):
        print("\n| case | peer | peer's tokens/s | spread | peer's GiB | ratio |\n|---|---|---|---|---|---|")
    for s in summary:
        for peer in s["peers"]:
            if "error" in peer:
                print(f"| {s['case']} | {peer['name']} | {peer['error']} | | | |")
                continue
            print(f"| {s['case']} | {peer['name']} | {peer['tokens_per_second']:,.0f} | {peer['spread_percent']:.1f} % "
                  f"| {peer['gib']:.1f} | {s['tokens_per_second'] / peer['tokens_per_second']:.3f} |")
    if any("floor" in s for s in summary):
        print("\n| case | lower bound, tokens/s | GEMMs ms (TFLOP/s) | attention ms | rest ms | ours / lower bound |")
        print("|---|---|---|---|---|---|")
    for s in summary:
        if "floor" in s:
            f = s["floor"]
            print(f"| {s['case']} | {f['tokens_per_second']:,.0f} | {f['products_ms']:.1f} ({f['products_tflops']:.0f}) "
                  f"| {f['attention_ms']:.1f} | {f['rest_ms']:.1f} "
                  f"| {s['tokens_per_second'] / f['tokens_per_second']:.3f} |")


def add_floors(directory, summary):
    for s in summary:
        path = os.path.join(directory, s["case"] + ".floor.json")
        if os.path.exists(path):
            with open(path) as file:
                s["floor"] = json.load(file)


def add_peers(directory, summary):
    path = os.path.join(directory, "peers.json")
    peers = {}
    if os.path.exists(path):
        with open(path) as file:
            peers = json.load(file)
    for s in summary:
        s["peers"] = []
        for program, peer in peers.get(s["case"], {}).items():
            rounds = peer["rounds"]
            if not rounds:
                continue
            if "error" in rounds[0]:
                s["peers"].append({"name": rounds[0]["peer"], "program": program, "command": peer["command"],
                                   "first_round": rounds[0], "error": rounds[0]["error"]})
                continue
            rates = [r["tokens_per_second"] for r in rounds]
            middle = statistics.median(rates)
            s["peers"].append({
                "name": rounds[0]["peer"], "program": program, "command": peer["command"], "first_round": rounds[0],
                "tokens_per_second": middle, "spread_percent": 100 * (max(rates) - min(rates)) / middle,
                "gib": rounds[-1]["peak_gb"] * 1e9 / 2**30})


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "bench/gpu/run")

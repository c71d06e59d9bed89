"""The record that bench/report accepts, from a directory that bench/gpu/run filled: record.json there."""
import json
import os
import re

import measure

# name, what its version is of, key of the version in the peer's output
PEERS = {"compiled_gpt": ("torch.compile", "PyTorch", "torch"),
         "hf_trainer": ("HF Trainer", "transformers", "transformers"),
         "hf_encoder": ("HF Trainer", "transformers", "transformers")}


def machine(directory, environment):
    found = {"gpu": environment["device_name"], "cores": len(os.sched_getaffinity(0))}
    path = os.path.join(directory, "gpu.txt")  # name, driver, power limit, memory
    if os.path.exists(path):
        with open(path) as file:
            words = re.match(r"(.*), ([\d.]+), ([\d.]+) W, (\d+) MiB", file.readline())
        if words:
            found.update(gpu=words[1], driver=words[2], power_limit_w=round(float(words[3])),
                         gpu_memory_mib=int(words[4]))
    with open("/proc/cpuinfo") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    if model:
        found["cpu"] = model[1]
    return found


def software(environment):
    keys = {"CUDA": "cuda_toolkit", "cuDNN": "cudnn", "LibTorch": "libtorch", "compiler": "compiler"}
    return {name: environment[key] for name, key in keys.items() if environment.get(key)}


def checks(directory):
    """What the tests printed that bench/gpu/run ran before."""
    passed = []
    for test in ("cuda_ops_test", "cuda_gpt_test"):
        for path, with_flag in (("own", ""), ("80", " with TALLY_GPU_CAPABILITY=80")):
            log = os.path.join(directory, f"{test}.{path}.txt")
            if not os.path.exists(log):
                continue
            with open(log) as file:
                counts = re.search(r"test cases:\s*(\d+)(?:.|\n)*?assertions:\s*(\d+)", file.read())
            counted = f" ({counts[1]} cases, {int(counts[2]):,} assertions)" if counts else ""
            passed.append(f"{test}{with_flag}{counted}: passed")
    return "; ".join(passed)


def peer_name(peer):
    """`peer`: of summary.json. A peer under torch.compile that is usually without has another name."""
    name = PEERS[peer["program"]][0]
    compiled = "torch.compile" in peer["first_round"].get("peer", "") and "torch.compile" not in name
    return name + (", torch.compile" if compiled else "")


def row_name(name, command):
    """A row that was measured with other flags is another row."""
    case, words = measure.CASES[name], command[1:]
    usual = case.our_flags()
    if words[:len(usual)] == usual:
        more = words[len(usual):]
    else:
        dropout = words[words.index("--hidden-dropout") + 1] if "--hidden-dropout" in words else "unknown"
        more = ["dropout", dropout, *words[len(usual):]]
    for flag in ("--train-iters", "--record"):
        if flag in more:
            del more[more.index(flag):more.index(flag) + 2]
    return ", ".join([case.row] + ([" ".join(more)] if more else []))


def row(summary, command):
    case = measure.CASES[summary["case"]]

    def figure(value, rounds, spread, **more):
        spread = {"spread_percent": round(spread, 1)} if rounds > 1 else {}
        return {"value": round(value), "unit": "tokens/s", **spread, **{k: round(v, 1) for k, v in more.items()}}

    found = {"part": case.part(), "name": row_name(summary["case"], command), "rounds": summary["rounds"],
             "tally": figure(summary["tokens_per_second"], summary["rounds"], summary["spread_percent"],
                             ms_per_step=summary["milliseconds_per_step"], memory_gib=summary["device_gib"],
                             mfu_percent=summary["model_flops_utilisation_percent"])}
    for peer in summary["peers"]:
        name = peer_name(peer)
        if "error" in peer:
            found.update(peer={"name": name}, note=f"{name}: {peer['error']}")
            continue
        found["peer"] = {"name": name, **figure(peer["tokens_per_second"], summary["rounds"], peer["spread_percent"],
                                                memory_gib=peer["gib"])}
        found["ratio"] = round(summary["tokens_per_second"] / peer["tokens_per_second"], 3)
    if "floor" in summary:
        bound = summary["floor"]["tokens_per_second"]
        found["lower_bound"] = {"value": round(bound), "unit": "tokens/s"}
        found["lower_bound_ratio"] = round(summary["tokens_per_second"] / bound, 3)
    return found


def write(directory, summary, first, command):
    """`first`: the record of each case's first round, by the case's name."""
    if not summary:
        return
    one = first[summary[0]["case"]]
    peers = {}
    for peer in (peer for s in summary for peer in s["peers"]):
        _, what, key = PEERS[peer["program"]]
        name, version = peer_name(peer), peer["first_round"].get(key)
        peers[name] = {"command": f"bench/gpu/peers/{peer['program']}.py",
                       **({"version": f"{what} {version}"} if version else {})}
    record = {"date": one["started"][:16], "commit": one["environment"]["git_commit"], "command": command,
              "machine": machine(directory, one["environment"]), "software": software(one["environment"]),
              "peers": peers, "statistic": "median of the rounds; a round is the mean of the steps after the warm-up",
              "checks": checks(directory), "source": "bench/gpu/run",
              "rows": [row(s, first[s["case"]]["command_line"]) for s in summary]}
    with open(os.path.join(directory, "record.json"), "w") as file:
        json.dump({key: value for key, value in record.items() if value}, file, indent=1)
        file.write("\n")

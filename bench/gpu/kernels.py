"""Where a training step's time goes, kernel by kernel, from a trace of tally-trace.so (trace.cc): bench/gpu/run --kernels
calls this. Takes the trace's last steps, as long as they are alike; a step ends with the gradient's norm. Prints Markdown:
parts of the step, then kernels, each a step's calls and microseconds and the share of the step's wall time. Kernels
that overlap both count, so idle time is the wall time less the union of all intervals.
"""
import argparse
import collections
import csv
import functools
import gzip
import json
import pathlib
import re
import statistics
import sys

STEP_ENDS = "squares_kernel"  # of the gradient norm, src/ops/optimizer/cuda.cu
WARM_UP = 10  # steps of a record that do not count, as in table.py

# The first whose pattern is found in the name: (title, pattern).
CLASSES = pathlib.Path(__file__).resolve().parents[2] / "src/measure/kernel_classes.inc"
CATEGORIES = [line.split(maxsplit=1)[1] for line in CLASSES.read_text().splitlines() if re.match(r"\w+ ", line)]
CATEGORIES = [tuple(re.split(r"  +", line, maxsplit=1)) for line in CATEGORIES]
OTHER = "other kernels"


@functools.lru_cache(None)
def category(name):
    return next((title for title, pattern in CATEGORIES if re.search(pattern, name)), OTHER)


def cutlass_name(name):
    """From a mangled name, because the demangler fails on those of CUTLASS for Hopper."""
    schedule = re.search(r"WarpSpecialized(Pingpong|Cooperative)", name)
    tile = re.search(r"WarpSpecialized(?:Pingpong|Cooperative)E+NS\w_IJ((?:NS\w_ILi\d+EEE?|S\w_){3})", name)
    cluster = re.search(r"TmaGmmaWarpSpecializedILi\d+ENS\w_IJ(.{10,60}?)EEENS\w_\d+Kernel", name)
    # A GEMM with the loss's exponentials sums them too, so its pattern comes first; otherwise sums are those of GELU's gradient.
    work = re.search(r"ExponentialNode", name) or re.search(r"TanhGelu(Gradient|Slope)?|ColReduction", name)
    stages = re.search(r"\d+Sm90TmaWarpSpecializedI((?:L[ib]\d+E)+)E", name)
    words = ["cutlass", work.group() if work else "product"]

    def extents(text):
        """Numbers of a tuple; the second and third may name an earlier one again: by its letter, or, the second, the first."""
        found = []
        for number, again in re.findall(r"ILi(\d+)E|S(\w)_", text):
            earlier = ord(again) - ord("G") if again else 0  # C<2>, C<1> and the schedule come before a tile's first number, SG_
            found.append(number or (found[earlier] if 0 <= earlier < len(found) else found[-1] if found else "?"))
        return found

    if tile:
        words.append("x".join(extents(re.sub(r"NS\w_I", "I", tile.group(1)))))
    if cluster:
        words.append("cluster " + "x".join(re.findall(r"ILi(\d+)E", cluster.group(1))[:2]))
    if schedule:
        words.append(schedule.group(1).lower())
    if stages:
        words.append("epilogue " + "/".join(re.findall(r"Li(\d+)E", stages.group(1))))
    return " ".join(words)


def without_brackets(text, opening, closing):
    depth, kept = 0, []
    for c in text:
        depth += c == opening
        if depth == 0:
            kept.append(c)
        depth -= c == closing
    return "".join(kept)


@functools.lru_cache(None)
def short(name):
    """The function's name and what tells its variants apart."""
    if name.startswith("["):
        return name
    if "TmaGmmaWarpSpecialized" in name:
        return cutlass_name(name)
    inner = re.search(r"<((?:cutlass|sm\d+_xmma)_[a-z0-9_]+)", name)  # cutlass::Kernel2<cutlass_80_...>
    if inner:
        return inner.group(1)
    name = re.sub(r"^void ", "", name).replace("(anonymous namespace)::", "").replace("__nv_bfloat16", "bf16")
    name = re.sub(r"\w*_GLOBAL__N_\w*::", "", name)
    name = without_brackets(name, "(", ")")
    head, _, arguments = name.partition("<")
    head = head.split("::")[-1]
    if not arguments or not re.search(r"_kernel$|^cudnn|^compute|^convert", head):
        return head[:110]
    arguments = re.sub(r"\b(?:\w+::)+", "", arguments.rsplit(">", 1)[0])
    return f"{head}<{arguments}>" if len(arguments) < 50 else head


class Event:
    def __init__(self, row):
        self.row = row
        self.start, self.end = int(row["start"]), int(row["end"])
        self.name = row["name"]
        self.kind = (short(self.name), row["grid"] or "")


def read(path):
    """Events in the order of their starts."""
    with (gzip.open(path, "rt") if path.endswith(".gz") else open(path)) as file:
        try:
            events = [Event(row) for row in csv.DictReader(file)]
        except (KeyError, TypeError, ValueError) as e:
            sys.exit(f"kernels.py: {path} is no trace of tally-trace.so, or was cut off: {e!r}")
    return sorted(events, key=lambda e: e.start)


def last_steps(events, wanted):
    """(start, end, events) of each of the last steps, that hold the same kernels as the very last one."""
    ends, before = [0], 0  # places after the last kernel of a step
    for i, event in enumerate(events):
        if STEP_ENDS not in event.name:
            continue
        if before and before == i and len(ends) > 1:  # several in a row end one step
            ends[-1] = i + 1
        else:
            ends.append(i + 1)
        before = i + 1
    # The first step has no step before it whose end would be its start.
    steps = [(events[a - 1].end, events[b - 1].end, events[a:b]) for a, b in zip(ends[1:], ends[2:])]
    if not steps:
        sys.exit(f"kernels.py: fewer than two kernels named {STEP_ENDS} in the trace: it holds no whole step")
    pattern = collections.Counter(e.kind for e in steps[-1][2])
    alike = []
    for step in reversed(steps):
        if len(alike) == wanted or collections.Counter(e.kind for e in step[2]) != pattern:
            break
        alike.insert(0, step)
    return alike


def union(intervals):
    total, reached = 0, 0
    for start, end in sorted(intervals):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total


def summary(steps):
    """Nanoseconds and calls a step; idle is what no kernel covers."""
    start, end = steps[0][0], steps[-1][1]
    events = [e for _, _, of_step in steps for e in of_step]
    n = len(steps)
    kernels = collections.defaultdict(lambda: [0, 0])
    parts = collections.defaultdict(lambda: [0, 0])
    for e in events:
        for counted in (kernels[e.kind + (category(e.name),)], parts[category(e.name)]):
            counted[0] += (e.end - e.start) / n
            counted[1] += 1 / n
    wall = (end - start) / n
    busy = union((max(e.start, start), min(e.end, end)) for e in events) / n
    return {"wall": wall, "idle": wall - busy, "beside": sum(p[0] for p in parts.values()) - busy, "kernels": dict(kernels),
            "parts": dict(parts), "steps": n}


def print_tables(s, untraced):
    print(f"Step: {s['wall'] / 1e6:.3f} ms under the tracer, mean of the last {s['steps']}"
          + (f"; {untraced * 1e3:.3f} ms without it" if untraced else "") + "\n")
    print("| part of the step | calls | us | share |\n|---|---|---|---|")

    def by_time(table):
        return sorted(table.items(), key=lambda item: -item[1][0])

    def row(title, calls, nanoseconds):
        print(f"| {title} | {calls} | {nanoseconds / 1e3:,.1f} | {100 * nanoseconds / s['wall']:.1f} % |")

    for title, (time, calls) in by_time(s["parts"]):
        row(title, f"{calls:.0f}", time)
    row("idle", "", s["idle"])
    if s["beside"] > 0.001 * s["wall"]:
        row("overlapped with others, counted twice", "", s["beside"])
    print("\n| share | us | calls | us each | kernel | grid | part |\n|---|---|---|---|---|---|---|")
    for (name, grid, part), (time, calls) in by_time(s["kernels"]):
        print(f"| {100 * time / s['wall']:.2f} % | {time / 1e3:,.1f} | {calls:.0f} | {time / calls / 1e3:,.1f} "
              f"| `{name}` | {grid} | {part} |")


def keep(steps, path):
    with gzip.open(path, "wt", newline="") as file:
        writer = csv.DictWriter(file, list(steps[0][2][0].row))
        writer.writeheader()
        for _, _, events in steps:
            writer.writerows(e.row for e in events)


def seconds_of(record):
    with open(record) as file:
        seconds = json.load(file)["steps"]["seconds"]
    return statistics.mean(seconds[WARM_UP:] or seconds)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("trace")
    p.add_argument("--steps", type=int, default=3)
    p.add_argument("--keep", help="write the lines of these steps there, as .csv.gz")
    p.add_argument("--record", help="tally-train's record of a run without the tracer, to compare")
    a = p.parse_args()
    steps = last_steps(read(a.trace), a.steps)
    if len(steps) < a.steps:
        print(f"kernels.py: only the last {len(steps)} steps of {a.trace} are alike", file=sys.stderr)
    if a.keep:
        keep(steps, a.keep)
    print_tables(summary(steps), seconds_of(a.record) if a.record else None)


if __name__ == "__main__":
    main()

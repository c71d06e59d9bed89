"""Which kernels a step's time goes to, from Nsight Compute's CSV of durations. Times are those of kernels run
alone, at the clock of short bursts: shares are meaningful, their sum is less than a step."""
import collections
import csv
import sys

MICROSECONDS = {"ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3}


def main(path):
    with open(path) as file:
        lines = file.read().splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        sys.exit("kernels.py: no table of kernels in " + path + " (is ncu installed and allowed?)")
    times, counts = collections.Counter(), collections.Counter()
    for row in csv.DictReader(lines[first:]):
        name = row["Kernel Name"].split("(")[0].replace("void ", "") + " " + row["Grid Size"]
        times[name] += float(row["Metric Value"].replace(",", "")) * MICROSECONDS[row["Metric Unit"]]
        counts[name] += 1
    total = sum(times.values())
    print("| share | launches | us each | kernel and grid |")
    print("|---|---|---|---|")
    for name, time in times.most_common(30):
        print(f"| {100 * time / total:.1f} % | {counts[name]} | {time / counts[name]:.1f} | {name[:110]} |")


if __name__ == "__main__":
    main(sys.argv[1])

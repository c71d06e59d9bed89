"""statistics_parity.py PROGRAM: the engine's statistics beside SciPy's and NumPy's, on random samples.

Descriptions, ranks, order-statistic intervals and tests must be equal to rounding. Bootstrap bounds come from other
random numbers, so they may differ by their Monte Carlo error, which SciPy's own bounds with two seeds show.
"""

import subprocess
import sys

import numpy as np
from scipy import stats

RANDOM = np.random.default_rng(20261125)
DRAWS = {
    "normal": lambda n: RANDOM.normal(100, 1, n),
    "log-normal": lambda n: RANDOM.lognormal(0, 1, n),
    "bimodal": lambda n: RANDOM.normal(0, 1, n) + RANDOM.choice([7, 13], n),
    "ties": lambda n: RANDOM.integers(1, 6, n).astype(float),
    "close": lambda n: 1e9 + RANDOM.normal(0, 1e-3, n),
}


def line(name, a, b=None):
    words = [name] + [repr(float(x)) for x in a]
    return " ".join(words + (["|"] + [repr(float(x)) for x in b] if b is not None else []))


def ask(program, lines):
    out = subprocess.run([program], input="\n".join(lines) + "\n", capture_output=True, text=True, check=True).stdout
    return [[float(word) for word in row.split()] for row in out.splitlines()]


def description(a):
    spread = np.std(a, ddof=1) if len(a) > 1 else 0.0
    cv = spread / abs(np.mean(a)) if len(a) > 1 else np.nan
    harmonic = stats.hmean(a) if np.all(a > 0) else np.nan
    return [np.mean(a), np.median(a), spread, cv, stats.median_abs_deviation(a), np.percentile(a, 5),
            np.percentile(a, 95), harmonic]


def median_interval(a):
    found = stats.quantile_test(a, q=0, p=0.5).confidence_interval(0.95)
    low = np.min(a) if np.isnan(found.low) else found.low
    high = np.max(a) if np.isnan(found.high) else found.high
    return [low, high]


def mann_whitney(a, b):
    method = "exact" if max(len(a), len(b)) <= 20 else "asymptotic"
    found = stats.mannwhitneyu(a, b, method=method)
    return [found.statistic, found.pvalue]


def bootstrap(data, statistic, seed):
    found = stats.bootstrap(data, statistic, n_resamples=10000, method="percentile", vectorized=True,
                            rng=np.random.default_rng(seed)).confidence_interval
    return np.array([found.low, found.high])


def cases():
    """(line, expected values, relative tolerance) of everything that must be equal."""
    for name, draw in DRAWS.items():
        for n in (1, 2, 3, 5, 6, 7, 8, 9, 10, 17, 20, 50, 333):
            a = draw(n)
            yield line("describe", a), description(a), 1e-9 if name != "close" else 1e-6
            yield line("median_interval", a), median_interval(a), 0
        for n, m in ((1, 1), (2, 3), (3, 3), (4, 4), (5, 9), (10, 10), (20, 20), (20, 7), (21, 5), (40, 60), (300, 200)):
            a, b = draw(n), draw(m) * 1.01
            if name == "ties":
                b = np.round(b)
            yield line("mann_whitney", a, b), mann_whitney(a, b), 1e-9
    for size in (1, 2, 5, 40):
        p = RANDOM.uniform(0, 0.2, size)
        order = np.argsort(p)
        adjusted = np.empty(size)
        adjusted[order] = np.minimum(1, np.maximum.accumulate((size - np.arange(size)) * p[order]))
        yield line("holm", p), adjusted, 1e-12


def compare_equal(program):
    everything = list(cases())
    wrong = 0
    for (text, expected, tolerance), found in zip(everything, ask(program, [c[0] for c in everything]), strict=True):
        found = found[:len(expected)]  # the interval's confidence comes last and is not SciPy's
        if np.allclose(found, expected, rtol=tolerance, atol=1e-12, equal_nan=True):
            continue
        wrong += 1
        print(f"{text[:200]}\n  found {found}\n  SciPy {list(expected)}")
    return len(everything), wrong


def compare_bootstraps(program):
    wrong = count = 0
    for name in ("normal", "log-normal", "bimodal"):
        for n in (6, 10, 20, 50):
            a, b = DRAWS[name](n), DRAWS[name](n)
            ratio = lambda x, y, axis=-1: np.median(y, axis=axis) / np.median(x, axis=axis)
            for text, data, statistic in ((line("mean_interval", a), (a,), np.mean),
                                          (line("median_ratio_interval", a, b), (a, b), ratio)):
                found = np.array(ask(program, [text])[0])
                peers = np.array([bootstrap(data, statistic, seed) for seed in range(6)])
                # Medians are discrete: neighbouring order statistics may be as far apart as the seeds' bounds.
                error = 4 * np.std(peers, axis=0) + 0.02 * np.ptp(peers.mean(axis=0))
                count += 1
                if np.any(np.abs(found - peers.mean(axis=0)) > error):
                    wrong += 1
                    print(f"{text[:60]}... ({name}, n = {n})\n  found {found}\n  SciPy {peers.mean(axis=0)} +- {error}")
    return count, wrong


def main():
    program = sys.argv[1]
    equal, wrong = compare_equal(program)
    boots, far = compare_bootstraps(program)
    print(f"{equal} results equal to SciPy's but {wrong}; {boots} bootstraps within Monte Carlo error but {far}")
    sys.exit(1 if wrong or far else 0)


if __name__ == "__main__":
    main()

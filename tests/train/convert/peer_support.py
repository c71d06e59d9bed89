"""What the tests of `tally-train convert` share."""
import os
import re
import subprocess
import sys

PROGRAM = sys.argv[1]


def check(condition, what, quiet=False):
    if not condition:
        sys.exit("FAILED: " + what)
    if not quiet:
        print("ok: " + what)


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120)


def convert(source, target, *more):
    done = run("convert", "--input", source, "--output", target, *more)
    check(done.returncode == 0, f"convert {os.path.basename(source)}: {done.stderr}", quiet=True)
    return done.stdout


def refused(source, target, *more):
    """The error, which is one line; nothing is left behind."""
    done = run("convert", "--input", source, "--output", target, *more)
    check(done.returncode == 2 and done.stderr.count("\n") == 1 and not done.stdout,
          f"{source} ends with one line of error, not {done.returncode} and {done.stderr!r}", quiet=True)
    check(not os.path.exists(target) and not os.path.exists(target + ".tmp"), "nothing is left behind", quiet=True)
    return done.stderr


def losses(folder):
    done = run("--load-hf", folder, "--task", "pretrain", "--mock-data", "--seq-length", "32", "--micro-batch-size", "2",
               "--train-iters", "3", "--lr", "1e-3", "--log-interval", "1")
    check(done.returncode == 0, f"training from {folder}: {done.stderr}", quiet=True)
    return re.findall(r"lm loss: (\S+)", done.stdout)


def same_losses(work, expected, folder):
    first, second = losses(expected), losses(folder)
    check(len(first) == 3 and first == second,
          f"{os.path.basename(folder)} trains as {os.path.basename(expected)}: {first} {second}")

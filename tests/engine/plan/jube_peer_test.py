#!/usr/bin/env python3
"""Compares Tally's expansion with JUBE's (Debian's package `jube`, 2.5.1): the same small inputs, the
same standard output of every workpackage, by id.

Usage: jube_peer_test.py PRINT_POINTS CASES.yaml
Exit code 77 (skipped) when there is no jube."""

import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
import tempfile


def run_jube(text, folder):
    """Standard output by workpackage folder, as JUBE left it."""
    with open(os.path.join(folder, "case.yaml"), "w", encoding="utf-8") as file:
        file.write(text)
    done = subprocess.run(
        ["jube", "run", "--hide-animation", "case.yaml"], cwd=folder, capture_output=True, text=True,
        timeout=120, check=False)
    run = os.path.join(folder, "out", "000000")
    packages = {}
    for name in sorted(os.listdir(run)) if os.path.isdir(run) else []:
        stdout = os.path.join(run, name, "work", "stdout")
        if name[0].isdigit() and os.path.exists(stdout):
            with open(stdout, encoding="utf-8") as file:
                packages[name] = file.read()
    if not packages:
        raise RuntimeError("jube did not run the case:\n" + done.stdout + done.stderr)
    return packages


def run_tally(program, folder):
    """The same from Tally's plan, its commands run by the shell."""
    done = subprocess.run([program, os.path.join(folder, "case.yaml")], capture_output=True, text=True,
                          timeout=120, check=True)
    packages = {}
    for line in done.stdout.splitlines():
        package = json.loads(line)
        packages[package["name"]] = "".join(
            subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60,
                           check=False).stdout for command in package["do"])
    return packages


def compare(program, case):
    title, _, body = case.partition("\n")
    with tempfile.TemporaryDirectory(prefix="tally-peer-") as folder:
        jube = run_jube("name: b\noutpath: out\n" + body + "\n", folder)
        tally = run_tally(program, folder)
    if title.endswith("[any order]"):
        jube = sorted((name[7:], text) for name, text in jube.items())
        tally = sorted((name[7:], text) for name, text in tally.items())
    else:
        jube, tally = sorted(jube.items()), sorted(tally.items())
    lines = []
    if jube != tally:
        lines = [f"  jube   {entry}" for entry in jube if entry not in tally]
        lines += [f"  tally  {entry}" for entry in tally if entry not in jube]
    return title.lstrip("# "), len(jube), lines


def main():
    program, cases_file = sys.argv[1:]
    if shutil.which("jube") is None:
        print("SKIPPED: there is no `jube` here (Debian: apt-get install jube); nothing was compared")
        return 77
    with open(cases_file, encoding="utf-8") as file:
        cases = [case for case in file.read().split("\n---\n")[1:] if case.strip()]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        for title, count, lines in pool.map(lambda case: compare(program, case.strip("\n")), cases):
            print(f"{'FAIL' if lines else 'ok  '} {title} ({count} workpackages)")
            print("\n".join(lines), end="\n" if lines else "")
            failed += bool(lines)
    print(f"{len(cases) - failed} of {len(cases)} cases agree with jube")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())

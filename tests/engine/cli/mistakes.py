#!/usr/bin/env python3
"""What people are told who make a mistake: the whole messages, ten and more of each kind.

Usage: mistakes.py TALLY GOLDEN [--update]

GOLDEN has blocks: a line `=== KIND TITLE`, the workflow b.yaml, a line `--- CODE`, and what is printed
to standard error. [OPTIONS] behind the title are options of each command. `validate`, `run -n` and
`run` must give the same code and the same messages, and write nothing if it is an error.
[runs]: the mistake shows in a run alone. {COMMAND}: the file is run first; the command is what is
shown, with its standard output. --update writes what is printed now.
"""
import os
import re
import shlex
import subprocess
import sys
import tempfile

TALLY, GOLDEN = os.path.abspath(sys.argv[1]), sys.argv[2]
HEAD = re.compile(r"=== (?P<kind>\w) (?P<title>.*?)(?: \[(?P<options>.*)\])?(?: \{(?P<command>.*)\})?")


def blocks():
    """Pairs of the header's line and the lines below it: the workflow, the code and the messages."""
    found = []
    for line in open(GOLDEN, encoding="utf-8"):
        if line.startswith("=== "):
            found.append((line.rstrip("\n"), []))
        else:
            found[-1][1].append(line)
    return found


def parts(lines):
    for number, line in enumerate(lines):
        if line.startswith("--- "):
            return "".join(lines[:number]), line + "".join(lines[number + 1:])
    return "".join(lines), ""


def tally(folder, command, both=False):
    env = {**os.environ, "NO_COLOR": "1", "TALLY_QUIET_CHECK": "off"}
    done = subprocess.run([TALLY, *shlex.split(command)], cwd=folder, env=env, text=True, timeout=120,
                          stdin=subprocess.DEVNULL, capture_output=True, check=False)
    text = (done.stdout if both else "") + done.stderr
    return f"--- {done.returncode}\n{text.replace(folder, 'HERE').replace(TALLY, 'tally')}"


def said(head, workflow, faults):
    """What the commands of a block print; differences between them are faults."""
    match = HEAD.fullmatch(head)
    options = match["options"] or ""
    with tempfile.TemporaryDirectory() as above:
        folder = os.path.realpath(os.path.join(above, "here"))
        os.mkdir(folder)
        for path, text in ((os.path.join(above, "above.txt"), "v = 1\n"), (os.path.join(folder, "b.yaml"), workflow)):
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        if match["command"]:
            tally(folder, "-q run b.yaml")
            return tally(folder, match["command"], both=True)
        if options == "runs":
            return tally(folder, "-q run b.yaml")
        first = tally(folder, f"validate b.yaml {options}")
        refused = not first.startswith("--- 0\n")
        for command in ("run -n", "run") if refused else ("run -n",):
            other = tally(folder, f"{command} b.yaml {options}")
            if other != first:
                faults.append(f"{head}\nvalidate:\n{first}\n{command}:\n{other}")
        if refused and os.path.exists(os.path.join(folder, "b_run")):
            faults.append(f"{head}\nrun has written something")
        return first


def main():
    faults, text, kinds = [], "", {}
    for head, lines in blocks():
        workflow, expected = parts(lines)
        actual = said(head, workflow, faults)
        kinds[head[4]] = kinds.get(head[4], 0) + 1
        text += f"{head}\n{workflow}{actual}"
        if "--update" not in sys.argv and actual != expected:
            faults.append(f"{head}\nexpected:\n{expected}\nprinted:\n{actual}")
    faults += [f"kind {kind} has {count} mistakes, fewer than ten" for kind, count in kinds.items() if count < 10]
    if "--update" in sys.argv:
        with open(GOLDEN, "w", encoding="utf-8") as file:
            file.write(text)
    print("\n\n".join(faults))
    print(f"{sum(kinds.values())} mistakes, {len(faults)} faults")
    return 1 if faults else 0


sys.exit(main())

#!/usr/bin/env python3
"""Runs real JUBE and Tally on the same input files and compares what they leave.

usage: jube_differential.py TALLY INPUT_DIR [NAME...]

For each input of INPUT_DIR, in two fresh copies of it: `jube run -r`, once by JUBE and once by Tally
called by the name jube. Compared are every workpackage's folder name, its marks (done, error), the
bytes of all files in its work directory, every result file (databases by their rows), and what
analyse.xml says. The comment
at the top of an input says which row of the specification it covers and

  compare: VERSION  the version of JUBE it is compared with
  tags: TAG...      tags it is run with
  options: WORD...  further options of `run`
  then: COMMAND     a shell command after the run; `jube` is the program under test
  shows: COMMAND    the same, and what it prints on stdout is compared, too
  analyse: WORD     analyse.xml without first and last values, which JUBE takes from any iteration

$TALLY_PLACE and ~ are folders of the copy, empty at first.

Exits 77 ("skipped" for CTest) when there is no jube, 1 when something differs.
"""
import concurrent.futures
import os
import re
import shutil
import socket
import sqlite3
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

TIME = re.compile(rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")


def header(path):
    """The words of the comment at the top: {'compare': '2.5.1', 'tags': ['a'], ...}."""
    found = {"tags": [], "options": [], "after": []}
    with open(path, encoding="utf-8") as file:
        for line in file.read(2000).splitlines():
            match = re.match(r"[#\s]*(compare|tags|options|then|shows|analyse):\s*(.*?)\s*(?:-->)?$", line)
            if not match:
                continue
            if match[1] in ("then", "shows"):
                found["after"].append((match[1], match[2]))
            else:
                found[match[1]] = match[2] if match[1] in ("compare", "analyse") else match[2].split()
    return found


def dump(path):
    connection = sqlite3.connect(path)
    try:
        tables = connection.execute("select name from sqlite_master where type='table'").fetchall()
        return [(name, sorted(map(repr, connection.execute(f'select * from "{name}"'))))
                for (name,) in tables]
    finally:
        connection.close()


def content(path, root):
    with open(path, "rb") as file:
        data = file.read()
    if data.startswith(b"SQLite format 3"):
        return repr(dump(path)).encode()
    data = data.replace(os.path.realpath(root).encode(), b"ROOT").replace(root.encode(), b"ROOT")
    return TIME.sub(b"TIME", data)


def analysis(path, first):
    """What analyse.xml says, without the ids and the order, which JUBE leaves to chance. `first`: with
    the first and last values, too; with iterations they are those of any of them."""
    found = {}
    for analyser in xml.etree.ElementTree.parse(path).getroot():
        for step in analyser:
            lines = found.setdefault((analyser.get("name"), step.get("name")), [])
            for package in step:
                lines.append(sorted((p.get("name"), p.get("type"), p.text or "") for p in package
                                    if first or re.search("_(cnt|min|max|sum2?|avg|std)$", p.get("name"))))
    return repr(sorted((key, sorted(lines)) for key, lines in found.items())).encode()


def collect(root, first):
    """Everything of a run that people's scripts rely on: {relative path: bytes}."""
    found = {}
    for outpath in ("run",):
        base = os.path.join(root, outpath)
        for folder, folders, files in os.walk(base):
            parts = os.path.relpath(folder, base).split(os.sep)
            for name in folders:
                path = os.path.join(folder, name)
                if os.path.islink(path):
                    found[os.path.relpath(path, root)] = b"link " + os.readlink(path).replace(
                        os.path.realpath(root), "ROOT").encode()
            for name in files:
                path = os.path.join(folder, name)
                key = os.path.relpath(path, root)
                if len(parts) == 1:  # the run's own bookkeeping
                    if name == "analyse.xml":
                        found[key] = TIME.sub(b"TIME", analysis(path, first).replace(
                            os.path.realpath(root).encode(), b"ROOT"))
                    continue
                if len(parts) == 2 and parts[1] != "result":
                    if name in ("done", "error"):
                        found[key] = b"mark"
                    continue
                if name == "jube_environment_information.dat":
                    continue
                found[key] = content(path, root)
    for name in os.listdir(root):
        if name.endswith(".db"):
            found[name] = content(os.path.join(root, name), root)
    return found


class Syslog:
    """Takes what is sent to ROOT/syslog.sock, a local socket as /dev/log is."""

    def __init__(self, root):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(os.path.join(root, "syslog.sock"))
        self.socket.setblocking(False)

    def taken(self):
        found = []
        while True:
            try:
                found.append(self.socket.recv(65536))
            except BlockingIOError:
                self.socket.close()
                return b"\n".join(found)


def run(command, root, path, stderr=subprocess.STDOUT):
    environment = dict(os.environ, TALLY_DIFFERENTIAL="from-env", LC_ALL="C.UTF-8", PATH=path,
                       TALLY_PLACE=os.path.join(root, "place"), HOME=os.path.join(root, "home"))
    environment.pop("NOT_IN_THE_ENVIRONMENT", None)
    for name in [n for n in environment if n.startswith("JUBE_")]:
        del environment[name]
    try:
        done = subprocess.run(command, cwd=root, env=environment, stdout=subprocess.PIPE,
                              stderr=stderr, stdin=subprocess.DEVNULL, timeout=60)
    except subprocess.TimeoutExpired:
        return f"{command} had not ended after a minute"
    return done.stdout.decode(errors="replace")


def compare(tally, inputs, name):
    words = header(os.path.join(inputs, name))
    results, texts = [], []
    for program in ("jube", tally):
        with tempfile.TemporaryDirectory(prefix="tally-peer-") as temporary:
            root = os.path.join(temporary, "here")
            shutil.copytree(inputs, root)
            for folder in ("place", "home"):
                os.mkdir(os.path.join(root, folder))
            path = os.environ["PATH"]
            if program != "jube":  # called by the name jube, it answers as JUBE does
                os.mkdir(os.path.join(temporary, "bin"))
                os.symlink(tally, os.path.join(temporary, "bin", "jube"))
                path = os.path.join(temporary, "bin") + ":" + path
            command = [shutil.which("jube", path=path), "run", name, "-r", "--hide-animation"]
            command += words["options"]
            if words["tags"]:
                command += ["-t"] + words["tags"]
            listener = Syslog(root)
            texts.append(run(command, root, path))
            shown = {}
            for number, (kind, line) in enumerate(words["after"]):
                # What is shown are JUBE's bytes on stdout; Tally's notes go to stderr.
                shows = kind == "shows"
                text = run(["/bin/sh", "-c", line], root, path,
                           subprocess.DEVNULL if shows else subprocess.STDOUT)
                if shows:
                    text = TIME.sub(b"TIME", text.replace(root, "ROOT").encode())
                    shown[f"printed by {number}: {line}"] = text
                else:
                    texts[-1] += text
            results.append(collect(root, words.get("analyse") is None))
            results[-1].update(shown)
            sent = listener.taken()
            if sent:
                results[-1]["sent to syslog"] = re.sub(rb"jube\[\d+\]", b"jube[PID]", sent)
    jube, ours = results
    problems = []
    for path in sorted(set(jube) | set(ours)):
        if path not in ours:
            problems.append(f"  missing: {path}")
        elif path not in jube:
            problems.append(f"  extra: {path}")
        elif jube[path] != ours[path]:
            problems.append(f"  differs: {path}\n    jube:  {jube[path][:600]!r}\n"
                            f"    tally: {ours[path][:600]!r}")
    if not any("/work/" in path for path in jube):
        problems.append("  JUBE itself did not run this file:\n" + texts[0][-600:])
    if problems:
        problems.append("  tally said:\n    " + texts[1][-1500:].replace("\n", "\n    "))
    return name, words.get("compare"), len(jube), problems


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    tally, inputs = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    if not os.access(tally, os.X_OK):  # otherwise JUBE would be compared with itself
        sys.exit(f"no program '{tally}'")
    if shutil.which("jube") is None:
        count = len([n for n in os.listdir(inputs) if n.endswith((".yaml", ".xml"))])
        print(f"SKIPPED: {count} comparisons with JUBE, because there is no `jube` (apt install jube)")
        return 77
    version = subprocess.run(["jube", "--version"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT).stdout.decode().strip()
    names = sys.argv[3:] or sorted(n for n in os.listdir(inputs) if n.endswith((".yaml", ".xml")))
    failed = []
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for name, wanted, files, problems in pool.map(lambda n: compare(tally, inputs, n), names):
            if wanted is None:
                problems.append("  the input does not say which version it is compared with")
            print(f"{'DIFFERS' if problems else 'same'}: {name} ({files} files)")
            if problems:
                failed.append(name)
                print("\n".join(problems))
    print(f"{len(names) - len(failed)} of {len(names)} inputs give the same with {version}")
    if failed:
        print("differ: " + " ".join(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

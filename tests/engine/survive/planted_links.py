#!/usr/bin/env python3
"""Links are planted in a run's folder, one at a time, under every name that the engine writes: no file outside is changed.

The run was killed half way. Then comes a link to a file or to a folder outside, and `tally continue` and `tally result`
must leave that as it was: they replace the link, or say what is wrong.

planted_links.py TALLY [--name PATH] [--jobs N]
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

WORKFLOW = """\
name: small
outpath: run
parameterset:
  name: p
  parameter: {name: i, type: int, _: "1,2"}
fileset:
  name: f
  copy: input.txt
substituteset:
  name: s
  iofile: {in: input.txt, out: made.txt}
  sub: {source: "#I#", dest: $i}
patternset:
  name: pt
  pattern: {name: v, type: int, _: "v=$jube_pat_int"}
step:
  - {name: set, kind: setup, do: "echo compiled > program"}
  - name: a
    depend: set
    use: [p, f, s]
    do_log_file: do_log
    do:
      - cat made.txt; export Q=q$i
      - "if [ ! -e $jube_benchmark_home/killed ]; then touch $jube_benchmark_home/killed; kill -9 $PPID; sleep 100; fi"
      - {done_file: ready, _: "echo again $Q; touch ready"}
  - {name: fails, retry: 1, do: "echo try; test -e $jube_benchmark_home/second || { touch $jube_benchmark_home/second; exit 1; }"}
  - name: b
    depend: a
    shared: all
    do_log_file: do_log
    do:
      - "echo v=1$i"
      - {shared: true, _: "echo together"}
      - cat a/stdout
analyser:
  name: an
  use: pt
  analyse: {step: b, file: stdout}
result:
  use: an
  table: {name: t, style: csv, sort: i, column: [i, v, v_cnt]}
  database: {name: d, key: [i, v]}
  chart: {name: c, x: i, y: v}
"""
# Files that are there only for a moment, or only at some runs.
PASSING = ("journal.snapshot", "journal.snapshot.new", "journal.sqlite-wal", "journal.sqlite-journal", "journal.lease",
           "journal.lease.take", "continue.log", "result.log", "analyse.log", "workpackages.xml", "analyse.xml")
PASSING_OF_WORKPACKAGE = (".environment", "error", "done", "wp_done_00", "wp_done_02", "work.failed.1", "work.unfinished", "stdout",
                          "stderr", "work/input.txt.tally-new")


class Folder:
    """A run that was killed, and what lies outside of it."""

    def __init__(self, tally):
        self.tally = tally
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tally-links-", dir="/tmp"))
        (self.root / "input.txt").write_text("v=#I#\n")
        (self.root / "small.yaml").write_text(WORKFLOW)
        self.outside = self.root / "outside"
        (self.outside / "work").mkdir(parents=True)
        for name in ("file", "done", "error", "stdout", "stderr", "do_log", ".environment", "t.dat", "work/stdout", "work/stderr"):
            (self.outside / name).write_text("precious\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    def call(self, *arguments):
        return subprocess.run([self.tally, *arguments], cwd=self.root, stdin=subprocess.DEVNULL, text=True, errors="replace",
                              capture_output=True, timeout=120, check=False)

    def kill_half_way(self):
        assert self.call("run", "small.yaml").returncode < 0

    def names(self):
        """Every path below the run's folder, as names of one run only are."""
        run = self.root / "run" / "000000"
        return sorted(str(path.relative_to(run)) for path in run.rglob("*"))

    def state_of_outside(self):
        return [(str(path), path.lstat().st_mode, path.lstat().st_mtime_ns, sorted(os.listdir(path)) if path.is_dir() else
                 path.read_bytes() if path.is_file() else os.readlink(path)) for path in sorted([self.outside, *self.outside.rglob("*")])]


def names_to_plant(tally):
    with Folder(tally) as folder:
        folder.kill_half_way()
        done = folder.call("continue", "-r", "run")
        assert done.returncode == 0, done.stdout + done.stderr
        names = set(folder.names())
        names.update(PASSING)
        names.update(f"{name}/{part}" for name in list(names) if re.fullmatch(r"\d{6}_\w+", name)
                     for part in PASSING_OF_WORKPACKAGE)
    # One workpackage of each step.
    first = {}
    for name in sorted(names):
        if match := re.match(r"(\d{6})_(\w+)", name):
            first.setdefault(match[2], match[1])
    # That one the workflow's own command writes.
    return sorted(name for name in names if not name.endswith("/ready")
                  and (not (match := re.match(r"(\d{6})_(\w+)", name)) or first[match[2]] == match[1]))


def check(tally, name, target):
    """What is wrong with this link; empty: nothing."""
    with Folder(tally) as folder:
        folder.kill_half_way()
        link = folder.root / "run" / "000000" / name
        if any(parent.is_symlink() for parent in link.parents):
            return ""
        if link.is_dir() and not link.is_symlink():
            shutil.rmtree(link)
        elif link.is_symlink() or link.exists():
            link.unlink()
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(folder.outside / target)
        before = folder.state_of_outside()
        words = ""
        for command in (("continue", "-r", "run"), ("result", "run"), ("remove", "--force", "run")):
            done = folder.call(*command)
            words += f"tally {command[0]}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            if folder.state_of_outside() != before:
                return "something outside was changed:\n" + words
            if done.returncode < 0 or done.returncode > 127:
                return "it crashed:\n" + words
            if done.returncode != 0 and not done.stderr.strip():
                return "it failed without a word:\n" + words
    return ""


def main():
    os.environ["TALLY_QUIET_CHECK"] = "off"
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("tally", type=os.path.abspath)
    options.add_argument("--name", help="only this path below the run's folder")
    options.add_argument("--jobs", type=int, default=2)
    given = options.parse_args()
    names = [given.name] if given.name else names_to_plant(given.tally)
    links = [(name, target) for name in names for target in ("file", ".", "nowhere")]
    wrong = 0
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for (name, target), found in zip(links, pool.map(lambda link: check(given.tally, *link), links)):
            if found:
                wrong += 1
                print(f"{name} is a link to outside/{target}: {found}", file=sys.stderr)
    print(f"{len(links)} links planted under {len(names)} names: {wrong} of them followed")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Every system call of the engine fails once, with each error that hosts give: ENOSPC, EIO, EMFILE, EINTR, EAGAIN, ESTALE.
Calls about the run's own folder fail with EACCES, and those that make something there with ENOENT and EROFS, too: as when its
file system is away.

Of `tally run`, of `tally continue` of a run that was killed, and of `tally result`. The exit code is never 0 with a wrong or
missing row, and when the fault has passed, `continue` completes the run: nothing fails for good, and nothing is called
damaged. strace injects the errors.

fault_sweep.py TALLY [--every N] [--seconds S] [--jobs N] [--error NAME]... [--command NAME]... [--call NAME]
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ERRORS = ("ENOSPC", "EIO", "EMFILE", "EINTR", "EAGAIN", "ESTALE")
OWN_ERRORS = ("EACCES",)
MAKING_ERRORS = ("ENOENT", "EROFS")
SKIPPED = 77

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
  - name: a
    use: [p, f, s]
    do:
      - cat made.txt; export Q=q$i; echo a$i >> $jube_benchmark_home/log
      - echo again $Q
  - name: b
    depend: a
    shared: all
    do:
      - "echo v=1$i; echo b$i >> $jube_benchmark_home/log"
      - {shared: true, _: "echo together"}
      - cat a/stdout
analyser:
  name: an
  use: pt
  analyse: {step: b, file: stdout}
result:
  use: an
  table: {name: t, style: csv, sort: i, column: [i, v, v_cnt, v_last]}
"""
TABLE = "i,v,v_cnt,v_last\n1,11,2,1\n2,12,2,2\n"
# Calls that do not return to the program, or that cannot fail in these ways.
NEVER = ("execve", "exit_group", "exit", "rt_sigreturn", "rt_sigprocmask", "rt_sigaction", "brk", "arch_prctl",
         "set_tid_address", "set_robust_list", "rseq", "futex")


class Folder:
    def __init__(self, tally):
        self.tally = tally
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tally-faults-", dir="/tmp"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, *arguments, before=()):
        return subprocess.run([*before, self.tally, *arguments], cwd=self.root, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=120, check=False)

    def fresh(self):
        (self.root / "input.txt").write_text("v=#I#\n")
        (self.root / "small.yaml").write_text(WORKFLOW)

    def prepare(self, command):
        """What is there before the command whose calls fail."""
        self.fresh()
        if command == "result":
            assert self.run("run", "small.yaml").returncode == 0
        elif command == "continue":
            # Killed when the first workpackage has ended.
            self.run("run", "small.yaml", before=("strace", "-o", "/dev/null", "-e", "trace=mkdir", "-e",
                                                  "inject=mkdir:signal=KILL:when=6"))


def arguments_of(command):
    return {"run": ("run", "-r", "small.yaml"), "continue": ("continue", "-r", "run"), "result": ("result", "run")}[command]


def calls_of(tally, command):
    """The calls of an undisturbed command, in order: name, its how-manieth of that name, and its errors."""
    with Folder(tally) as folder:
        folder.prepare(command)
        done = folder.run(*arguments_of(command), before=("strace", "-y", "-s", "4096", "-o", "calls"))
        assert done.returncode == 0 and TABLE in done.stdout, done.stdout + done.stderr
        lines = [line for line in (folder.root / "calls").read_text().splitlines() if re.match(r"[a-z_0-9]+\(", line)]
        names = [line.partition("(")[0] for line in lines]
    # Up to its first munmap the system's loader is at work, which crashes by itself, in any program.
    begin = names.index("munmap")
    seen = collections.Counter()
    calls = []
    for position, name in enumerate(names):
        seen[name] += 1
        if position > begin and name not in NEVER:
            calls.append((name, seen[name], errors_of(name, lines[position], command)))
    return calls


def errors_of(name, line, command):
    """The errors of a call. In `result`, a file that may not be read there is an error, and one that is missing is missing."""
    own = "run/000000" in line and name.startswith(("open", "mkdir", "symlink", "link", "rename", "chdir"))
    makes = own and command != "result" and (not name.startswith("open") or "O_CREAT" in line)
    return ERRORS + (OWN_ERRORS if own else ()) + (MAKING_ERRORS if makes else ())


def check(tally, command, call, number, error):
    """What is wrong when this call fails; empty: nothing."""
    with Folder(tally) as folder:
        folder.prepare(command)
        try:
            done = folder.run(*arguments_of(command), before=(
                "strace", "-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}"))
        except subprocess.TimeoutExpired:
            return "it does not end"
        words = f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
        if "damaged" in done.stderr + done.stdout:
            return "a fault that passes is called damage: " + words
        if done.returncode == 0 and TABLE not in done.stdout:
            return "exit code 0 without the right table: " + words
        if done.returncode < 0 or done.returncode > 127:
            return "it crashed: " + words
        if done.returncode != 0 and not (done.stderr + done.stdout).strip():
            return "it failed without a word"
        return after(folder, words)


def after(folder, words):
    """The fault has passed: the run is completed, or, where there is none yet, started."""
    again = folder.run("continue", "-r", "run")
    if again.returncode == 2 or any(words in again.stderr for words in ("is not a complete journal", "no run of tally here")):
        shutil.rmtree(folder.root / "run", ignore_errors=True)
        again = folder.run("run", "-r", "small.yaml")
    if again.returncode != 0 or TABLE not in again.stdout:
        return f"not completed when the fault had passed: {words}\nand then exit code {again.returncode}\n" \
               f"{again.stdout}{again.stderr}"
    log = (folder.root / "log").read_text().splitlines()
    if sorted(set(log)) != ["a1", "a2", "b1", "b2"]:
        return f"operations are missing: {log}"
    return ""


def strace_works():
    done = subprocess.run(["strace", "-o", "/dev/null", "-e", "inject=all:error=EIO:when=60000", "true"], capture_output=True,
                          check=False) if shutil.which("strace") else None
    return done is not None and done.returncode == 0


def main():
    os.environ["TALLY_QUIET_CHECK"] = "off"  # other programs on this machine would change the table
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("tally", type=os.path.abspath)
    options.add_argument("--every", type=int, default=1, help="only every N-th of all faults")
    options.add_argument("--seconds", type=float, default=0, help="no new fault after this time")
    options.add_argument("--jobs", type=int, default=1)
    options.add_argument("--error", action="append", choices=ERRORS + OWN_ERRORS + MAKING_ERRORS)
    options.add_argument("--command", action="append", choices=("run", "continue", "result"))
    options.add_argument("--call", help="only this system call")
    given = options.parse_args()
    if not strace_works():
        print("skipped: strace cannot be used here")
        return SKIPPED
    faults = []
    for command in given.command or ("run", "continue", "result"):
        calls = calls_of(given.tally, command)
        faults += [(command, call, number, error) for error in given.error or ERRORS + OWN_ERRORS + MAKING_ERRORS
                   for call, number, errors in calls if error in errors and given.call in (None, call)]
    faults = faults[::given.every]
    return sweep(given, faults)


def sweep(given, faults):
    end = time.monotonic() + given.seconds
    wrong = done = 0

    def one(fault):
        if given.seconds and time.monotonic() > end:
            return None
        return check(given.tally, *fault)

    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for fault, found in zip(faults, pool.map(one, faults)):
            done += found is not None
            if found:
                wrong += 1
                command, call, number, error = fault
                print(f"tally {command}, {call} number {number} fails with {error}: {found}\n", file=sys.stderr)
    print(f"{done} of {len(faults)} faults, each of one system call that failed once: {wrong} with a wrong end")
    return 1 if wrong else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())

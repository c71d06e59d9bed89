#!/usr/bin/env python3
"""The host cannot say whether a file is there, or which files are: each call about one path fails once.

fault_sweep.py lets every call of one small run fail. This test lets the calls about single files and folders fail in
situations in which "it is not there" would be a believable answer: outputs outside the run that earlier runs wrote, outputs
that are noted at the end, globs, folders of many files, error_file, done_file and break_file, the folder of the runs. strace
injects EIO, ESTALE, EMFILE, EINTR and, where no user has named the path, EACCES.

With exit code 0 the values are the right ones. Otherwise the words of the system are said, and when the fault has passed,
`continue` or the same command gives the right values: nothing fails for good.

path_faults.py TALLY [--only NAME]... [--most N] [--jobs N]
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

ERRORS = {"EIO": "Input/output error", "ESTALE": "Stale file handle", "EMFILE": "Too many open files",
          "EINTR": "Interrupted system call", "EACCES": "Permission denied"}
CALLS = ("openat", "newfstatat", "stat", "lstat", "statx", "access", "faccessat", "faccessat2", "pread64", "getdents64",
         "readlink", "readlinkat")
MANY = 1500  # entries of a folder, which the system lists in several calls
SKIPPED = 77

VALUE = "patternset: {name: q, pattern: {name: v, type: int, _: 'v=(\\d+)'}}\n"
TABLE = "result: {use: a, table: {name: t, style: csv, column: [v, v_cnt]}}\n"


def many(folder):
    folder.mkdir(exist_ok=True)
    for i in range(MANY):
        (folder / f"f{i}").write_text(f"w={i}\n")


class Situation:
    """`path`: what the calls are about. `command`: during which they fail. `shown`: the command that shows the values, which
    are `right`. `ends`: the exit code without a fault."""

    def __init__(self, name, yaml, path, command, **more):
        self.name, self.yaml, self.path, self.command = name, f"name: {name}\noutpath: run\n" + yaml, path, command
        self.before = more.get("before", ())
        self.make = more.get("make", lambda root: None)
        self.shown = more.get("shown", ("result", "run"))
        self.right = more["right"]
        self.ends = more.get("ends", 0)


RUN = ("run", "w.yaml", "-j1")
OUTSIDE = ("step: {name: s, kind: run, quiet_check: false, work_dir: $jube_benchmark_home/wd, "
           "do: 'echo v=$jube_benchmark_id >> out.log'}\n" + VALUE +
           "analyser: {name: a, use: q, analyse: {step: s, file: out.log}}\n" + TABLE)
OWN = ("parameterset: {name: p, parameter: {name: i, type: int, _: '1,2'}}\n"
       "step: {name: s, kind: run, quiet_check: false, use: p, do: 'echo v=$i'}\n" + VALUE +
       "analyser: {name: a, use: q, analyse: {step: s, file: stdout}}\n"
       "result: {use: a, table: {name: t, style: csv, sort: i, column: [i, v]}}\n")
GLOB = ("step: {name: s, kind: run, quiet_check: false, do: 'mkdir a b; echo v=1 > a/x.txt; echo v=2 > b/x.txt; "
        f"for i in $(seq {MANY}); do echo v=0 > out.$i; done'}}\n" + VALUE +
        "analyser: {name: a, use: q, analyse: {step: s, file: '*/x.txt,out.*'}}\n"
        "result: {use: a, table: {name: t, style: csv, column: [v_cnt, v_sum]}}\n")
ALL = f"v_cnt,v_sum\n{MANY + 2},3\n"
COUNTED = VALUE + "analyser: {name: a, use: q, analyse: {step: s, file: stdout}}\n" + TABLE
RUNS = ("step: {name: s, kind: run, quiet_check: false, do: 'echo v=$jube_benchmark_id'}\n" + COUNTED)
FIRST = "run/000000/000000_s"
COPIED = ("shutil", "run/000000", "copy/000000")


def logs(root):
    for i in range(MANY):
        (root / "run" / f"log-of-my-job-{i}.txt").touch()


SITUATIONS = [
    Situation("outside", OUTSIDE, "wd/out.log", RUN, before=[RUN], make=lambda root: (root / "wd").mkdir(),
              shown=("result", "run", "-i", "1"), right="v,v_cnt\n1,1\n"),
    Situation("own_output", OWN, FIRST + "/work/stdout", RUN, right="i,v\n1,1\n2,2\n"),
    Situation("copied_run", OWN, "copy/000000/000000_s/work/stdout", ("result", "copy"), before=[RUN, COPIED],
              shown=("result", "copy"), right="i,v\n1,1\n2,2\n"),
    Situation("glob_name", GLOB, FIRST + "/work/b/x.txt", ("result", "run"), before=[RUN], right=ALL),
    Situation("glob_folder", GLOB, FIRST + "/work", ("result", "run"), before=[RUN], right=ALL),
    Situation("glob_inner_folder", GLOB.replace("*/x.txt", "*/*.txt"), FIRST + "/work/b", ("result", "run"), before=[RUN], right=ALL),
    Situation("glob_at_the_end", GLOB, FIRST + "/work", RUN, right=ALL),
    Situation("links", "fileset: {name: f, link: 'many/f*'}\nstep: {name: s, kind: run, quiet_check: false, use: f, "
              "do: 'echo v=$(ls | grep -c ^f)'}\n" + COUNTED, "many", RUN, make=lambda root: many(root / "many"),
              right=f"v,v_cnt\n{MANY},1\n"),
    Situation("copied_folder", "fileset: {name: f, copy: many}\nstep: {name: s, kind: run, quiet_check: false, use: f, "
              "do: 'echo v=$(ls many | grep -c ^f)'}\n" + COUNTED, "many", RUN, make=lambda root: many(root / "many"),
              right=f"v,v_cnt\n{MANY},1\n"),
    Situation("setup_input", "step:\n - {name: b, kind: setup, input: [many], do: 'ls ../../../../many | grep -c ^f > n'}\n"
              " - {name: s, kind: run, quiet_check: false, depend: b, do: 'echo v=$(cat b/n)'}\n" + COUNTED, "many", RUN,
              make=lambda root: many(root / "many"), right=f"v,v_cnt\n{MANY},1\n"),
    Situation("error_file", "step: {name: s, do: [{error_file: bad, done_file: ok, _: 'echo v=1; touch bad ok'}]}\n" +
              COUNTED, FIRST + "/work/bad", RUN, shown=("log", "run", "-c", "run"),
              right='Error file "bad"', ends=1),
    Situation("done_file", "step: {name: s, do: [{done_file: ok, _: 'echo v=1; touch ok'}]}\n" + COUNTED,
              FIRST + "/work/ok", RUN, right="v,v_cnt\n1,1\n"),
    Situation("break_file", "step: {name: s, cycles: 3, do: [{break_file: stop, _: 'echo v=$jube_wp_cycle; touch stop'}]}\n" +
              COUNTED, FIRST + "/work/stop", RUN, right="v,v_cnt\n0,1\n"),
    Situation("last_run", RUNS, "run", ("result", "run"), before=[RUN, RUN, RUN, logs], right="v,v_cnt\n2,1\n"),
    Situation("next_run", RUNS, "run", RUN, before=[RUN, RUN, logs], right="v,v_cnt\n2,1\n"),
    Situation("all_runs", RUNS, "run", ("info", "run"), before=[RUN, RUN, RUN, logs], shown=("info", "run"), right="2"),
]


class Folder:
    def __init__(self, tally, situation):
        self.tally, self.situation = tally, situation
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tally-paths-", dir="/tmp"))
        (self.root / "w.yaml").write_text(situation.yaml)
        situation.make(self.root)
        for step in situation.before:
            if callable(step):
                step(self.root)
            elif step[0] == "shutil":
                shutil.copytree(self.root / step[1], self.root / step[2], copy_function=shutil.copyfile)
            else:
                done = self.run(*step)
                assert done.returncode == 0, done.stdout + done.stderr

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root, ignore_errors=True)

    def run(self, *arguments, before=()):
        return subprocess.run([*before, self.tally, "-q", *arguments] if arguments[0] == "run" else
                              [*before, self.tally, *arguments], cwd=self.root, stdin=subprocess.DEVNULL, text=True,
                              capture_output=True, timeout=300, check=False)

    def traced(self, *options):
        path = self.root / self.situation.path
        return self.run(*self.situation.command, before=("strace", "-P", str(path), "-P", self.situation.path, *options))

    def values(self):
        shown = self.run(*self.situation.shown)
        return shown.returncode, shown.stdout, shown.stderr

    def is_right(self, text):
        right = self.situation.right
        return text.strip() == right.strip() if "\n" in right else right in text


def faults_of(tally, situation):
    """The calls about the path in an undisturbed command: name, its how-manieth of that name, error."""
    with Folder(tally, situation) as folder:
        done = folder.traced("-o", "calls")
        assert done.returncode == situation.ends, done.stdout + done.stderr
        code, text, words = folder.values()
        assert folder.is_right(text), f"{situation.name}: {code}\n{text}{words}"
        seen = collections.Counter()
        for line in (folder.root / "calls").read_text().splitlines():
            name = re.match(r"[a-z_0-9]+", line)
            if name and name[0] in CALLS:
                seen[name[0]] += 1
    # A file that the user names and that may not be read is a failure.
    named = situation.command[0] == "run" and not situation.path.startswith("run/")
    errors = [error for error in ERRORS if error != "EACCES" or not named]
    return [(call, number, error) for call, count in sorted(seen.items()) for number in range(1, count + 1)
            for error in errors]


def check(tally, situation, fault):
    """What is wrong with this fault; empty: nothing."""
    call, number, error = fault
    with Folder(tally, situation) as folder:
        done = folder.traced("-o", "/dev/null", "-e", f"trace={call}", "-e", f"inject={call}:error={error}:when={number}")
        said = f"exit code {done.returncode}\n{done.stdout}{done.stderr}"
        if done.returncode < 0 or done.returncode > 127:
            return "it crashed: " + said
        code, text, words = folder.values()
        now = f"{said}\nand then exit code {code}\n{text}{words}"
        is_run = situation.command[0] == "run"
        if done.returncode == 0:
            shown = text if is_run else done.stdout
            return "" if situation.ends == 0 and folder.is_right(shown) and folder.is_right(text) else "wrong values: " + now
        if situation.ends != 0 and folder.is_right(text):
            return ""
        if ERRORS[error] not in said:
            return "the system's words are not said: " + now
        return "" if not is_run and folder.is_right(text) else after(folder, now) if is_run else "wrong values: " + now


def after(folder, before):
    """The fault has passed: the run is continued, or begun if there is none yet."""
    again = folder.run("continue", "run")
    if again.returncode == 2:
        again = folder.run(*folder.situation.command)
    code, text, words = folder.values()
    if again.returncode == folder.situation.ends and not folder.is_right(text):
        # There was no new run yet.
        again = folder.run(*folder.situation.command)
        code, text, words = folder.values()
    if again.returncode == folder.situation.ends and folder.is_right(text):
        return ""
    return f"not completed when the fault had passed: {before}\nand then exit code {again.returncode}\n{again.stdout}" \
           f"{again.stderr}\n{code}\n{text}{words}"


def strace_works():
    done = subprocess.run(["strace", "-o", "/dev/null", "-e", "inject=all:error=EIO:when=60000", "true"], capture_output=True,
                          check=False) if shutil.which("strace") else None
    return done is not None and done.returncode == 0


def spread(faults, most):
    """At most that many, as far apart as they can be; None: all."""
    if most is None or len(faults) <= most:
        return faults
    return [faults[i * (len(faults) - 1) // (most - 1)] for i in range(most)]


def main():
    os.environ["TALLY_QUIET_CHECK"] = "off"  # other programs on this machine would change the table
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("tally", type=os.path.abspath)
    options.add_argument("--only", action="append", choices=[situation.name for situation in SITUATIONS])
    options.add_argument("--most", type=int, help="at most N faults of each situation, from its first call to its last")
    options.add_argument("--jobs", type=int, default=1)
    given = options.parse_args()
    if not strace_works():
        print("skipped: strace cannot be used here")
        return SKIPPED
    wrong = done = 0
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for situation in SITUATIONS:
            if given.only and situation.name not in given.only:
                continue
            faults = spread(faults_of(given.tally, situation), given.most)
            found = list(pool.map(lambda fault, which=situation: check(given.tally, which, fault), faults))
            done += len(faults)
            bad = 0
            for fault, what in zip(faults, found):
                if what:
                    bad += 1
                    print(f"{situation.name}, {fault[0]} number {fault[1]} fails with {fault[2]}: {what}\n", file=sys.stderr)
            wrong += bad
            print(f"{situation.name}: {len(faults)} faults, {bad} with a wrong end", flush=True)
    print(f"{done} faults, each of one call about one path: {wrong} with a wrong end")
    return 1 if wrong else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())

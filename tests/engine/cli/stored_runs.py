#!/usr/bin/env python3
"""Runs that tally 0.2.0 left (commit 414eca5, 2026-11-27): shown, analysed, compared and continued by this one.

stored_runs.py TALLY [SHAPE ...]       the test
stored_runs.py --make TALLY FAKE_NVML [SHAPE ...]
                                       makes the runs again, by the program of 414eca5 and no other, which is installed
                                       (PREFIX/bin, PREFIX/share); FAKE_NVML: the folder of its tests' libnvidia-ml.so.1

tests/golden/run_0.2.0 has a folder for each shape of run: its workflow, the runs, and `shown.txt`, which is what 414eca5
printed for the commands below. Each command was given on a fresh copy, in which times and inodes of files are new and
empty folders are gone, as after a checkout. Standard output and the exit code are compared. Notes and warnings may
change: on standard error, and in JSON and Markdown. A later change of what is right changes the line in shown.txt by hand:

- killed, `continue` and `result`: 414eca5 lost the first value of row 2 where the run had been moved. The row is that
  of the same run continued in its place.
- plain: workpackages that have not begun are rows with the mark PENDING.
- plain, `run` and what follows: plain YAML values of a new run are texts as they are written. (The notes of unfinished
  runs have their later words.)
- `compare`, where a row is unclear: the column `needed n`.
- `report`: its verdict comes first.

The words around the table of a run's steps are other ones (no banner, a line for equal failures, what is offered): they
are left out on both sides (WORDS).
"""
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TESTS / "slurm"))
import cluster  # noqa: E402  pylint: disable=wrong-import-position

STORED = TESTS / "golden/run_0.2.0"
HOME = pathlib.Path("/tmp/tally-0.2.0")  # where the runs were made: their journals name it
LOOKS = ["status runs", "info runs", "info runs --id 0", "result runs", "result runs -s json", "analyse runs",
         "report runs --format md"]
# Of each shape, further commands that look, and commands that go on, one after the other. Class Maker makes the runs.
SHAPES = {
    "keys": {"more": ["result runs -i all", "result runs -i 0 -s csv", "result runs --id 2",
                      "compare runs/000000 runs/000001", "compare runs/000000 runs/000002 -s json",
                      "compare runs/000000 --null", "history runs", "history runs -s json"],
             "on": ["continue runs --id 0", "run bench.yaml", "history runs -s csv"]},
    "marks": {"more": ["compare runs/000000 runs/000001", "history runs -s csv", "history runs -s json"],
              "on": ["continue runs", "result runs"]},
    "jube_xml": {"more": ["info runs --id 0 -s measure", "result runs -s csv"],
                 "on": ["continue runs", "run bench.xml -r --tag big", "compare runs/000000 runs/000001 --metric half"]},
    "jube_yaml": {"more": ["info runs --id 0 -s measure", "info runs --id 0 -s prepare"],
                  "on": ["sh: touch go; for d in runs/000000/*_measure/work; do touch $d/ready; done", "continue runs", "result runs", "status runs"]},
    "failed": {"more": ["info runs --id 0 -s again"],
               "on": ["continue runs", "result runs", "status runs", "remove runs -w 2 --force", "continue runs",
                      "run bench.yaml", "compare runs/000000 runs/000001"]},
    "killed": {"more": ["info runs --id 0 -s measure"],
               "on": ["sh: touch go", "continue runs", "result runs", "status runs"]},
    "plain": {"more": ["info runs --id 0 -s prepare"],
              "on": ["sh: touch go", "continue runs", "result runs", "status runs", "run bench.yaml -r",
                     "compare runs/000000 runs/000001", "history runs"]},
    "outside": {"more": ["result runs -s csv"],
                "on": ["continue runs", "result runs", "run bench.yaml", "compare runs/000000 runs/000001"]},
    "reused": {"more": ["result runs -i all", "compare runs/000000 runs/000001", "history runs"],
               "on": ["continue runs", "run bench.yaml"]},
    "waits": {"more": ["info runs --id 0 -s turns"],
              "on": ["sh: touch go; for d in runs/000000/*_wait/work; do touch $d/ready; done", "continue runs", "continue runs", "result runs",
                     "status runs"]},
    "slurm": {"more": ["result runs -s csv"],
              "on": ["sh: touch go", "continue runs", "result runs", "status runs", "run bench.yaml",
                     "compare runs/000000 runs/000001"]},
}
ENVIRONMENT = {"PATH": os.environ["PATH"], "TALLY_QUIET_CHECK": "off", "LC_ALL": "C.UTF-8", "HOME": "/nonexistent",
               "XDG_CACHE_HOME": "/nonexistent"}
# Times, versions and places that differ from call to call, and notes.
VARIES = [(re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"), "TIME"),
          (re.compile(r'(?<="program":"tally )[^"]+|(?<="program": "tally )[^"]+|(?<= by tally )[\d.]+'), "VERSION"),
          (re.compile(r'"notes":\[("(\\.|[^"\\])*",?)*\]'), '"notes":[]'),
          (re.compile(r"^- .*\n+", re.MULTILINE), "")]
WORDS = re.compile(r"^#{70}\n# benchmark: .*?^#{70}\n\n|^>>>> [^\n]*\n|^#{70}\n|^(?:failed|lost):? \d.*?\n\n"
                   r"|^To (?:do what failed again|see more of the run): [^\n]*\n+", re.MULTILINE | re.DOTALL)


@contextlib.contextmanager
def fresh_copy(shape):
    """A copy of a shape's folder as git would make it: without times, inodes and empty folders."""
    with tempfile.TemporaryDirectory(prefix="tally-stored-", dir="/tmp") as place:
        root = pathlib.Path(place) / "home"
        shutil.copytree(STORED / shape, root, symlinks=True, copy_function=shutil.copy,
                        ignore=shutil.ignore_patterns("shown.txt"))
        remove_empty(root)
        for lease in root.rglob("journal.lease"):  # its holder died long ago, perhaps on another host
            os.utime(lease, (time.time() - 600,) * 2)
        yield root


def remove_empty(root):
    for folder, _, _ in os.walk(root, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def shown_by(tally, root, command, env):
    """What a command prints and its exit code, as text."""
    words = ["sh", "-c", command[4:]] if command.startswith("sh: ") else [tally, *command.split()]
    done = subprocess.run(words, cwd=root, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=120, check=False)
    out = plain(done.stdout.decode().replace(str(root), str(HOME)).replace(tally, "tally"))
    return f"$ {command}\n{out}[exit code {done.returncode}]\n", done.stderr.decode()


def plain(text):
    for pattern, word in VARIES:
        text = pattern.sub(word, text)
    return text


def words_left_out(text):
    return WORDS.sub("", text) if text.startswith(("$ run ", "$ continue ")) else text


def on(slurm):
    return {**ENVIRONMENT, "SLURM_CONF": slurm.env["SLURM_CONF"], "PATH": slurm.env["PATH"]}


@contextlib.contextmanager
def scheduler(shape):
    """The environment in which the runs of a shape go on: with a private Slurm for jobs; None: there can be none here."""
    if shape != "slurm":
        yield ENVIRONMENT
    elif cluster.missing():
        yield None
    else:
        with cluster.Cluster(nodes=2) as slurm:
            yield on(slurm)


def all_shown(tally, shape):
    """(text, standard error) of each command of a shape: those that only look on a copy each, the others one by one."""
    shown = []
    for command in LOOKS + SHAPES[shape]["more"]:
        with fresh_copy(shape) as root:
            shown.append(shown_by(tally, root, command, ENVIRONMENT))
    with scheduler(shape) as environment, fresh_copy(shape) as root:
        if environment is None:
            print(f"{shape}: not continued, there is no Slurm here: {cluster.missing()}")
            return shown
        shown += [shown_by(tally, root, command, environment) for command in SHAPES[shape]["on"]]
    return shown


def test(tally, shapes):
    wrong = 0
    for shape in shapes or SHAPES:
        shown = all_shown(tally, shape)
        expected = re.findall(r"^\$ .*?^\[exit code \d+\]\n", (STORED / shape / "shown.txt").read_text(), re.M | re.S)
        commands = LOOKS + SHAPES[shape]["more"] + SHAPES[shape]["on"]
        assert [text.splitlines()[0] for text in expected] == [f"$ {command}" for command in commands], shape
        for was, (now, errors) in zip(expected, shown):
            if words_left_out(plain(was)) != words_left_out(now):
                print(f"--- {shape}, 414eca5:\n{was}--- this program:\n{now}--- standard error:\n{errors}")
                wrong += 1
    print(f"{wrong} commands print something else" if wrong else "all stored runs are shown as before")
    return 1 if wrong else 0


# --- making them ---------------------------------------------------------------------------------------------

class Maker:
    def __init__(self, tally, nvml):
        self.tally, self.nvml = tally, nvml

    def call(self, *words, codes=(0,), env=None):
        done = subprocess.run([self.tally, *words], cwd=HOME, env=env or ENVIRONMENT, capture_output=True, text=True,
                              check=False, timeout=300)
        if done.returncode not in codes:
            raise AssertionError(f"{words}: {done.returncode}\n{done.stdout}{done.stderr}")

    def keys(self):
        for base in ("100", "60", "101"):
            (HOME / "base").write_text(base)
            self.call("run", "bench.yaml")
        for folder in (HOME / "runs/000002").glob("*_s"):
            shutil.rmtree(folder)

    def marks(self):
        other = subprocess.Popen(["sleep", "600"])
        processes = HOME / "processes"
        processes.write_text(f"0 {other.pid}\n")
        self.call("run", "bench.yaml", env={**ENVIRONMENT, "TALLY_QUIET_CHECK": "on", "LD_LIBRARY_PATH": self.nvml,
                                            "FAKE_NVML": "hot", "FAKE_NVML_PROCESSES": str(processes)})
        other.kill()
        other.wait()
        for file in HOME.glob("processes*"):
            file.unlink()
        self.call("run", "bench.yaml")

    def jube_xml(self):
        self.call("run", "bench.xml", "-r", "--tag", "big")

    def jube_yaml(self):
        self.call("run", "bench.yaml", "-r", codes=(0, 1))

    def failed(self):
        self.call("run", "bench.yaml", codes=(1,))

    def killed(self):
        self.call("run", "bench.yaml", codes=(-signal.SIGKILL,))

    def plain(self):
        self.call("run", "bench.yaml", codes=(-signal.SIGKILL,))

    def outside(self):
        (HOME / "out").mkdir()
        (HOME / "out/log1").write_text("seen: 7\n")
        self.call("run", "bench.yaml")

    def reused(self):
        self.call("run", "bench.yaml")
        self.call("run", "bench.yaml", "--set", "base=20")

    def waits(self):
        self.call("run", "bench.yaml", codes=(0, 1))

    def slurm(self):
        with cluster.Cluster(nodes=2) as first:
            engine = subprocess.Popen([self.tally, "run", "bench.yaml"], cwd=HOME, env=on(first))
            done = [HOME / f"runs/000000/00000{i}_train/done" for i in range(3)]
            cluster.wait_for(lambda: (HOME / "begun").exists() and all(path.exists() for path in done), "the jobs")
            engine.kill()
            engine.wait()
        with cluster.Cluster(nodes=2) as second:
            self.call("continue", "runs", codes=(1,), env=on(second))


def make(tally, nvml, shapes):
    for shape in shapes:
        shutil.rmtree(HOME, ignore_errors=True)
        HOME.mkdir()
        for file in (STORED / shape).glob("bench.*"):
            shutil.copy(file, HOME)
        getattr(Maker(tally, nvml), shape)()
        remove_empty(HOME)
        for path in STORED.joinpath(shape).iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif not path.name.startswith("bench."):
                path.unlink()
        shutil.copytree(HOME, STORED / shape, symlinks=True, dirs_exist_ok=True)
    shutil.rmtree(HOME)
    for shape in shapes:
        (STORED / shape / "shown.txt").write_text("".join(text for text, _ in all_shown(tally, shape)))


if __name__ == "__main__":
    if sys.argv[1] == "--make":
        make(sys.argv[2], sys.argv[3], sys.argv[4:] or SHAPES)
    else:
        sys.exit(test(str(pathlib.Path(sys.argv[1]).resolve()), sys.argv[2:]))

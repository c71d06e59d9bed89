#!/usr/bin/env python3
"""The engine killed at random moments, and then continued: nothing is lost, nothing that was recorded runs again, the end
is that of a run that nobody killed.

random_kills.py TALLY [--kills N] [--seconds S] [--shape NAME]... [--slurm] [--seed N]
"""
import argparse
import collections
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "slurm"))
from shapes import SHAPES  # noqa: E402

# The states of the journal that are final: done and expected.
ENDED = (3, 5)


class Shape:
    """One workflow in a folder of its own."""

    def __init__(self, tally, name, text, environment):
        self.tally, self.name, self.text, self.environment = tally, name, text, environment
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tally-kills-", dir="/tmp"))
        started = time.monotonic()
        self.fresh()
        self.expected = self.finish(["run", "-r", "shape.yaml"])
        self.duration = time.monotonic() - started

    def fresh(self):
        for entry in self.root.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        (self.root / "shape.yaml").write_text(self.text)

    def start(self, *arguments):
        return subprocess.Popen([self.tally, *arguments], cwd=self.root, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def finish(self, first=("continue", "run")):
        """Goes on until all is done; what there is then."""
        words = ""
        for attempt in range(200):
            engine = self.start(*(first if attempt == 0 else ("continue", "run")))
            words = engine.communicate(timeout=120)[1]
            if engine.returncode == 0:
                break
            # A waiting workpackage is asked again. Nothing tells when its file is there.
            time.sleep(0.01)
        else:
            raise AssertionError(f"it does not come to an end: {words}\n" + self.log_of_run())
        table = subprocess.run([self.tally, "result", "run"], cwd=self.root, env=self.environment, text=True,
                               capture_output=True, check=True).stdout
        outputs = {str(path.relative_to(self.root)): path.read_text() for path in sorted(self.root.rglob("stdout"))
                   if ".failed." not in str(path) and ".unfinished" not in str(path)}
        return table, outputs, collections.Counter(self.lines())

    def lines(self):
        log = self.root / "log"
        return log.read_text().splitlines() if log.exists() else []

    def log_of_run(self):
        log = self.root / "run/000000/run.log"
        return log.read_text() if log.exists() else "no run.log"

    def recorded(self):
        """The log's lines of operations that the journal has as done, with how often they are there; None: no run yet."""
        folder = self.root / "run/000000"
        if not (folder / "journal.sqlite").exists():
            return None
        with tempfile.TemporaryDirectory() as copy:
            for name in ("journal.sqlite", "journal.sqlite-wal"):
                if (folder / name).exists():
                    shutil.copy(folder / name, copy)
            database = sqlite3.connect(f"{copy}/journal.sqlite")
            try:
                rows = database.execute("SELECT id, state, cycle, operations_done FROM package").fetchall()
            except sqlite3.DatabaseError:
                return None
            finally:
                database.close()
        state = {row[0]: row[1:] for row in rows}
        lines = collections.Counter()
        for line, count in collections.Counter(self.lines()).items():
            words = line.split()
            if len(words) != 3:
                continue
            workpackage, cycle, operation = map(int, words)
            ended, now_cycle, done = state.get(workpackage, (0, 0, 0))
            if ended in ENDED or (cycle, operation) < (now_cycle, done):
                lines[line] = count
        return lines

    def kill(self, rng):
        """A run that is killed once or several times and then goes on. How often it was killed."""
        self.fresh()
        kills = 0
        arguments = ("run", "shape.yaml")
        recorded = collections.Counter()
        for _ in range(rng.choice((1, 1, 2, 3))):
            engine = self.start(*arguments)
            try:
                engine.wait(timeout=rng.uniform(0, self.duration))
            except subprocess.TimeoutExpired:
                engine.kill()
                kills += 1
            engine.communicate()
            known = self.recorded()
            if known is None:  # killed before there was a run
                shutil.rmtree(self.root / "run", ignore_errors=True)
                continue
            self.check_not_repeated(recorded, known)
            recorded = known
            arguments = ("continue", "run")
        table, outputs, lines = self.finish(arguments)
        self.check_not_repeated(recorded, lines)
        assert table == self.expected[0], f"another table:\n{table}instead of\n{self.expected[0]}"
        assert outputs == self.expected[1], f"other outputs: {outputs}\ninstead of {self.expected[1]}"
        assert set(lines) == set(self.expected[2]), f"other operations: {lines}\ninstead of {self.expected[2]}"
        return kills

    @staticmethod
    def check_not_repeated(recorded, later):
        for line, count in recorded.items():
            assert later.get(line, count) == count, f"recorded as done, and done again: {line}"

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)


def slurm_shape():
    import place
    text = place.WORKFLOW.replace("launch: {launch}", "launch: {launch}\n    retry: 0").format(
        values="1,2,3", launch="sh -c 'echo v=$i; echo $jube_wp_id 0 0 >> $jube_benchmark_home/log'", keys="max_async: 0")
    return text.replace("name: small", "name: shape")


def main():
    os.environ["TALLY_QUIET_CHECK"] = "off"  # other programs on this machine would change the table
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("tally", type=os.path.abspath)
    options.add_argument("--kills", type=int, default=60)
    options.add_argument("--seconds", type=float, default=0, help="go on for so long instead")
    options.add_argument("--shape", action="append", default=[])
    options.add_argument("--slurm", action="store_true", help="also jobs of a private Slurm")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    if not given.slurm:
        return kill_all(given, dict(os.environ), {})
    import cluster
    cluster.skip_unless_possible()
    with cluster.Cluster(nodes=2) as running:
        return kill_all(given, running.env, {"slurm": slurm_shape()})


def kill_all(given, environment, more):
    rng = random.Random(given.seed)
    names = given.shape or [*SHAPES, *more]
    shapes = [Shape(given.tally, name, {**SHAPES, **more}[name], environment) for name in names]
    kills = collections.Counter()
    runs = 0
    end = time.monotonic() + given.seconds
    while time.monotonic() < end if given.seconds else sum(kills.values()) < given.kills:
        shape = shapes[runs % len(shapes)]
        runs += 1
        try:
            kills[shape.name] += shape.kill(rng)
        except AssertionError as error:
            print(f"shape {shape.name}, run {runs} of seed {given.seed}, in {shape.root}: {error}", file=sys.stderr)
            return 1
    for shape in shapes:
        shape.close()
    print(f"{sum(kills.values())} kills in {runs} runs: 0 lost, 0 done again after they were recorded, 0 different from a "
          "run that nobody killed")
    print("  " + ", ".join(f"{name} {kills[name]}" for name in names))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    sys.exit(main())

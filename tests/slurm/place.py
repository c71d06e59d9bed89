"""A folder with a workflow in which the real `tally` is called on a private Slurm, as a person would call it."""
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import unittest

import cluster as slurm

TALLY = ""  # set by main()
SOURCE = pathlib.Path(__file__).parent.parent.parent

# A sweep whose output says which point it is: every row of the table can be checked.
WORKFLOW = """\
name: small
outpath: run
parameterset:
  - name: points
    parameter:
      - {{name: i, type: int, _: "{values}"}}
patternset:
  - name: log
    pattern: {{name: v, type: int, _: "v=$jube_pat_int"}}
step:
  - name: train
    kind: run
    use:
      - points
      - {{from: slurm/platform.yaml, _: "systemParameter,executeset,executesub,jobfiles"}}
    resources: {{nodes: 1, tasks_per_node: 1, cpus_per_task: 1, time: "00:05:00"}}
    {keys}
    launch: {launch}
analyser: {{name: an, use: log, analyse: {{step: train, file: stdout}}}}
result:
  use: an
  table: {{name: t, style: csv, column: [i, v]}}
"""

# Words of a Bash program that waits until a signal ends it: it reads a pipe of its own, in which nothing comes. `sleep &
# wait` would end without its trap where the signal reaches the child first: Slurm tells one process after the other.
WAIT_ALONE = 'exec {never}<> <(:); while :; do read -r -u "$never"; done\n'


class Place:
    """The folder; everything in it goes at the end."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tally-place-", dir="/tmp"))
        self.engines = []

    def close(self):
        for engine in self.engines:
            if engine.poll() is None:
                engine.kill()
                engine.wait()
            engine.stdout.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def write(self, values="1,2", launch="echo v=${i}0", keys="", name="small.yaml",
              text=WORKFLOW):
        (self.root / name).write_text(text.format(values=values, launch=launch, keys=keys or "max_async: 0"))

    def program(self, name, text):
        """An executable script in the folder; its path."""
        path = self.root / name
        path.write_text("#!/bin/bash\n" + text)
        path.chmod(0o755)
        return str(path)

    def environment(self, extra):
        return {**self.cluster.env, **(extra or {})}

    def tally(self, *arguments, env=None, seconds=240):
        """(exit code, standard output, standard error) of a call that ends by itself."""
        done = subprocess.run([TALLY, *arguments], cwd=self.root, env=self.environment(env), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=seconds)
        return done.returncode, done.stdout, done.stderr

    def start(self, *arguments, env=None):
        """A call that a test ends, or waits for with finish()."""
        engine = subprocess.Popen([TALLY, *arguments], cwd=self.root, env=self.environment(env),
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.engines.append(engine)
        return engine

    @staticmethod
    def finish(engine, seconds=240):
        out, _ = engine.communicate(timeout=seconds)
        return engine.returncode, out

    def table(self):
        """The table of the newest run, as lines."""
        code, out, err = self.tally("result", "run")
        assert code == 0, err
        return [line for line in out.splitlines() if re.fullmatch(r"[A-Za-z0-9,]+", line)]

    def packages(self, run="000000"):
        """Of the journal, by id: a dictionary a workpackage. Reads a copy: the engine may hold the original."""
        folder = self.root / "run" / run
        files = [folder / name for name in ("journal.sqlite", "journal.sqlite-wal")]
        with tempfile.TemporaryDirectory() as copy:
            def state():
                return [(path.stat().st_mtime_ns, path.stat().st_size) for path in files if path.exists()]

            def copied():
                """Whether the engine wrote nothing meanwhile, so that the two belong together."""
                try:
                    before = state()
                    for path in files:
                        (pathlib.Path(copy) / path.name).unlink(missing_ok=True)
                        if path.exists():
                            shutil.copy(path, copy)
                    return state() == before
                except FileNotFoundError:
                    return False
            slurm.wait_for(copied, "a journal that stands still")
            with sqlite3.connect(f"{copy}/journal.sqlite") as database:
                database.row_factory = sqlite3.Row
                rows = [dict(row) for row in database.execute("SELECT * FROM package ORDER BY id")]
            database.close()
        log = self.log(run) if (folder / "run.log").exists() else ""
        for row in rows:
            row["note"] = self.last_word(log, row["directory"])
        return rows

    @staticmethod
    def last_word(log, directory):
        """Why a workpackage ended as it did, as run.log has it: the lines behind "DIRECTORY: failed: "."""
        said = re.findall(rf"^\[[^]]*\] {re.escape(directory)}: (?:\w+: )?(.*(?:\n    .*)*)", log, re.MULTILINE)
        return said[-1].replace("\n    ", "\n").rstrip() if said else ""

    def work(self, number, step="train", run="000000"):
        return self.root / "run" / run / f"{number:06}_{step}" / "work"

    def log(self, run="000000"):
        return (self.root / "run" / run / "run.log").read_text()


class ClusterTest(unittest.TestCase):
    """Test cases that share a scheduler's cluster; each has a folder of its own and leaves no job behind."""
    cancel = ()  # the command that cancels jobs

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.new_cluster()
        cls.cluster.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.cluster.__exit__(None, None, None)

    def setUp(self):
        self.place = Place(self.cluster)

    def tearDown(self):
        failed = any(error for _, error in getattr(self._outcome, "errors", [])) or any(
            case is self for case, _ in self._outcome.result.failures + self._outcome.result.errors)
        log = self.place.root / "run/000000/run.log"
        words = (log.read_text() if log.exists() else "no run.log\n") if failed else ""
        self.place.close()  # ends engines first: nothing is submitted any more
        left = self.jobs_left() if self.answers() else []
        if left:
            self.cluster.run(*self.cancel, *[job for job, _, _ in left])
        if failed:
            print(words + self.cluster.logs(), file=sys.stderr)
        else:
            self.assertEqual(left, [], "jobs nobody owns")

    def answers(self):
        return True

    def jobs_left(self):
        # A job whose exit status ended its run may for a moment still run, and then be completing.
        try:
            slurm.wait_for(lambda: not self.cluster.jobs(), "the jobs' end", 20)
        except (TimeoutError, subprocess.SubprocessError):
            pass  # the jobs that are left are said
        return self.cluster.jobs()


class SlurmTest(ClusterTest):
    options = {}
    cancel = ("scancel",)

    @classmethod
    def new_cluster(cls):
        return slurm.Cluster(**cls.options)

    def answers(self):
        return self.cluster.running("slurmctld")

    def until_state(self, state, count=1, seconds=30):
        """Waits until `count` jobs are in the state; their ids."""
        def there():
            ids = [job for job, _, now in self.cluster.jobs() if now == state]
            return ids if len(ids) >= count else None
        return slurm.wait_for(there, f"{count} jobs {state}", seconds)


def main(argv):
    """TALLY [unittest's options]"""
    global TALLY
    slurm.skip_unless_possible("--accounting" in argv)
    TALLY = os.path.abspath(argv[1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    rest = [word for word in argv[2:] if word != "--accounting"]
    result = unittest.main(module="__main__", argv=[argv[0], "-v", *rest], exit=False).result
    if result.wasSuccessful() and len(result.skipped) == result.testsRun:
        sys.exit(slurm.SKIPPED)
    sys.exit(0 if result.wasSuccessful() else 1)

"""cmake --install: no runs are shipped, and the installed quickstart works from a folder of its user's."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, SOURCE, CMAKE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]), sys.argv[3]
del sys.argv[1:4]

# Prints what the quickstart reads of tally-train.
TRAINER = """#!/bin/sh
case "$1" in
  prepare) touch corpus.bin corpus.idx ;;
  *) echo " iteration 10 | elapsed time per iteration (s): 0.500 | lm loss: 4.500E+00 |"
     echo " iteration 20 | elapsed time per iteration (s): 0.500 | lm loss: 3.500E+00 |" ;;
esac
"""


def files_of(root):
    return {path.relative_to(root).as_posix() for path in root.rglob("*")}


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)
        cls.prefix = pathlib.Path(cls.folder.name) / "prefix of ours"
        # What somebody left who ran the workflows here.
        left = SOURCE / "workflows" / f"zz{os.getpid()}_run"
        (left / "000000").mkdir(parents=True)
        cls.addClassCleanup(shutil.rmtree, left)
        done = subprocess.run([CMAKE, "--install", BUILD, "--prefix", cls.prefix], capture_output=True, text=True,
                              timeout=100)
        assert done.returncode == 0, done.stdout + done.stderr
        trainer = cls.prefix / "bin/tally-train"
        trainer.unlink(missing_ok=True)
        trainer.write_text(TRAINER)
        trainer.chmod(0o755)
        cls.quickstart = cls.prefix / "share/tally/workflows/quickstart.yaml"

    def setUp(self):
        here = tempfile.TemporaryDirectory()
        self.addCleanup(here.cleanup)
        self.here = pathlib.Path(here.name)

    def tally(self, *arguments):
        environment = dict(os.environ, PATH="/usr/bin:/bin")
        environment.pop("TALLY_TEMPLATES", None)
        ran = subprocess.run([self.prefix / "bin/tally", *arguments], cwd=self.here, env=environment,
                             capture_output=True, text=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stdout + ran.stderr)
        return ran.stdout

    def test_no_runs_are_installed(self):
        installed = files_of(self.prefix / "share/tally")
        self.assertIn("workflows/quickstart.yaml", installed)
        self.assertIn("templates/platform.xml", installed)
        self.assertEqual([name for name in installed if "_run" in name], [])

    def test_a_dry_run_writes_nothing(self):
        before = files_of(self.prefix)
        said = self.tally("run", self.quickstart, "-n")
        self.assertIn("plan  quickstart: 5 points -> 5 workpackages", said)
        self.tally("run", self.quickstart, "-n", "--tag", "slurm")
        self.assertEqual(files_of(self.here), set())
        self.assertEqual(files_of(self.prefix), before)

    def test_a_run_goes_to_the_current_folder(self):
        before = files_of(self.prefix)
        (self.here / "text.txt").write_text("Some English text.\n")
        said = self.tally("run", self.quickstart, "--set", f"text={self.here}/text.txt")
        self.assertIn("|      2 |     64 |     8 |      128 |      4.500 |     3.500 |     2048 |", said)
        self.assertTrue((self.here / "quickstart_run/000000").is_dir())
        self.assertEqual(files_of(self.prefix), before)
        # The workflow stands for its runs.
        self.assertIn("|      2 |     64 |", self.tally("result", self.quickstart))


if __name__ == "__main__":
    unittest.main()

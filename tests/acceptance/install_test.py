"""cmake --install: it is complete, no runs are shipped, it works after a move, from a folder of its user's."""

import json
import os
import pathlib
import re
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
        first = pathlib.Path(cls.folder.name) / "first"
        done = subprocess.run([CMAKE, "--install", BUILD, "--prefix", first], capture_output=True, text=True,
                              timeout=100)
        assert done.returncode == 0, done.stdout + done.stderr
        first.rename(cls.prefix)
        trainer = cls.prefix / "bin/tally-train"
        cls.version_of_trainer = None
        if trainer.exists():
            cls.version_of_trainer = subprocess.run([trainer, "--version"], capture_output=True, text=True, timeout=60)
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

    def test_programs_say_their_version(self):
        version = re.search(r"project\(tally VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text())[1]
        self.assertEqual(self.tally("--version"), f"tally {version}\n")
        if self.version_of_trainer is not None:
            self.assertEqual(self.version_of_trainer.returncode, 0, self.version_of_trainer.stderr)
            self.assertIn(f"tally-train {version}", self.version_of_trainer.stdout)

    def test_everything_is_there(self):
        installed = files_of(self.prefix)
        names = ["tally"] + (["tally-train"] if self.version_of_trainer is not None else [])
        for name in names:
            for file in (f"bin/{name}", f"share/man/man1/{name}.1", f"share/bash-completion/completions/{name}",
                         f"share/zsh/vendor-completions/_{name}", f"share/fish/vendor_completions.d/{name}.fish"):
                self.assertIn(file, installed)
                self.assertGreater((self.prefix / file).stat().st_size, 100, file)
        for folder in ("workflows", "templates"):
            for path in SOURCE.glob(f"{folder}/*"):
                if path.is_file():
                    self.assertIn(f"share/tally/{folder}/{path.name}", installed)
        for name in ("workflow", "result", "comparison", "history"):
            json.loads((self.prefix / f"share/tally/schema/{name}.schema.json").read_text())
        for file in ("LICENSE", "CHANGELOG.md", "docs/reference.md"):
            self.assertIn(f"share/doc/tally/{file}", installed)

    def test_the_templates_are_those_of_the_installation(self):
        # Without the sources beside it: job scripts come from share/tally/templates.
        template = self.prefix / "share/tally/templates/slurm/submit.job.in"
        before = template.read_text()
        template.write_text(before + "# from the moved folder\n")
        self.addCleanup(template.write_text, before)
        self.tally("script", self.quickstart, "--tag", "slurm", "--out", "jobs")
        scripts = list(self.here.glob("jobs/*/work/submit.job"))
        self.assertTrue(scripts)
        self.assertIn("# from the moved folder", scripts[0].read_text())

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

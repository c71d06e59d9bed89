"""The acceptance tests of tally, run with the static program that scripts/package made.

  static_test.py SOURCE BUILD
"""

import os
import pathlib
import platform
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
del sys.argv[1:3]
PROGRAM = next(iter(sorted((BUILD / "dist").glob(f"tally-*-linux-{platform.machine()}"))), None)


class Static(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        # By its own name, beside nothing; what it carries is unpacked to a cache of its own.
        cls.tally = pathlib.Path(folder.name) / "bin/tally"
        cls.tally.parent.mkdir()
        os.symlink(PROGRAM, cls.tally)
        cls.environment = dict(os.environ, TALLY_PROGRAM=str(cls.tally), XDG_CACHE_HOME=f"{folder.name}/cache")

    def passes(self, *words):
        done = subprocess.run([str(word) for word in words], env=self.environment, cwd=BUILD, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=800)
        self.assertEqual(done.returncode, 0, done.stdout[-8000:])

    def test_the_tutorials(self):
        self.passes(sys.executable, SOURCE / "tests/acceptance/tutorial_test.py", self.tally, SOURCE)

    def test_archives_verified_by_the_file_alone(self):
        self.passes(sys.executable, SOURCE / "tests/acceptance/archive_test.py", self.tally, SOURCE, PROGRAM)

    def test_job_scripts_of_platforms(self):
        self.passes(sys.executable, SOURCE / "tests/acceptance/platforms/platforms_test.py", self.tally, SOURCE)

    def test_the_command_line(self):
        self.passes(BUILD / "tests/cli_test")

    def test_runs_as_people_use_them(self):
        # What asks the system: names of users and hosts, programs, templates, fonts, files outside. A static program opens no
        # library: it makes no PNG and does not ask the GPU's driver.
        asked = ("commands", "doctor", "env", "machine", "meter", "new", "outside", "plot", "result_steps", "reuse")
        self.passes(BUILD / "tests/own_keys_test", "--test-suite-exclude=opens a library at run time",
                    "--source-file=" + ",".join(f"*/{file}_test.cc" for file in asked))

    def test_it_says_that_it_cannot_ask_the_driver(self):
        done = subprocess.run([self.tally, "meter", "--", "true"], env=self.environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("GPU: not available: this tally is a static program, which cannot open the driver's library", done.stderr + done.stdout)


if __name__ == "__main__":
    if PROGRAM is None:
        print(f"SKIPPED: there is no static tally in {BUILD}/dist: TALLY_DIST={BUILD}/dist scripts/package makes it")
        sys.exit(77)
    unittest.main()

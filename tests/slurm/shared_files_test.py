#!/usr/bin/env python3
"""One folder of runs and two hosts with late eyes.   shared_files_test.py TALLY --cache LIBRARY [TEST ...]

The hosts are host identities (TALLY_HOST) of processes here; the library answers stat() and access() from what was
seen first, as a network file system's attribute cache does.
"""
import os
import pathlib
import shutil
import subprocess
import unittest
import sys

import cluster as slurm
import place
from place import SlurmTest

CACHE = ""


class SharedFiles(SlurmTest):
    options = {"nodes": 2}

    def host(self, name):
        return {"TALLY_HOST": name, "LD_PRELOAD": CACHE, "TALLY_FAKE_CACHE": str(self.place.root)}

    def test_the_fake_is_one(self):
        """Without looking at the folder, a file that was not there is not there."""
        program = ("import os, sys; p = sys.argv[1]; print(os.access(p, 0)); open(p + '.x', 'w').close();"
                   "os.rename(p + '.x', p); print(os.access(p, 0)); os.listdir(os.path.dirname(p)); print(os.access(p, 0))")
        out = subprocess.run([sys.executable, "-c", program, str(self.place.root / "f")], text=True, check=True,
                             env={**os.environ, **self.host("a")}, stdout=subprocess.PIPE).stdout
        self.assertEqual(out.split(), ["False", "False", "True"])

    def test_a_status_file_that_shows_late_is_found(self):
        self.place.write(values="1,2,3")
        code, out, err = self.place.tally("run", "small.yaml", env=self.host("login1"))
        self.assertEqual(code, 0, out + err)
        self.assertIn("i,v\n1,10\n2,20\n3,30\n", out)

    @unittest.skipUnless(shutil.which("strace"), "no strace here")
    def test_an_output_that_cannot_be_looked_at_is_looked_at_again_without_another_job(self):
        self.place.write(values="1", launch=f"bash -c 'echo start >> {self.place.root}/starts; echo v=10'")
        for call in ("openat", "newfstatat"):
            (self.place.root / "starts").unlink(missing_ok=True)
            shutil.rmtree(self.place.root / "run", ignore_errors=True)
            output = str(self.place.work(0) / "stdout")
            done = subprocess.run(["strace", "-o", "/dev/null", "-P", output, "-e", f"trace={call}", "-e",
                                   f"inject={call}:error=ESTALE:when=1", place.TALLY, "run", "small.yaml"], check=False,
                                  cwd=self.place.root, env=self.place.environment(None), text=True, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=240)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn("Stale file handle", done.stdout)
            code, out, err = self.place.tally("continue", "run")
            self.assertEqual(code, 0, out + err)
            self.assertEqual(self.place.table(), ["i,v", "1,10"])
            self.assertEqual((self.place.root / "starts").read_text(), "start\n")

    def test_a_run_that_one_host_follows_is_refused_to_another_which_takes_it_over(self):
        gate = self.place.root / "gate"
        # The job's own eyes are good.
        program = self.place.program("wait", '[ -z "$LD_PRELOAD" ] || exec env -u LD_PRELOAD "$0"\n'
                                     f"touch started; until [ -e {gate} ]; do sleep 0.1; done; echo v=70\n")
        self.place.write(values="7", launch=program)
        first = self.place.start("run", "small.yaml", env=self.host("login1"))
        slurm.wait_for((self.place.work(0) / "started").exists, "the job's start")
        code, out, err = self.place.tally("continue", "run", env=self.host("login2"))
        self.assertEqual(code, 1, out + err)
        self.assertIn("is in use by tally on host login1, process ", err)
        # login1 is gone without a word. Until its lease is old, nobody can know.
        first.kill()
        first.wait()
        code, out, err = self.place.tally("continue", "run", env=self.host("login2"))
        self.assertIn("host login1", err)
        os.utime(self.place.root / "run/000000/journal.lease", (1000, 1000))
        gate.touch()
        code, out, err = self.place.tally("continue", "run", env=self.host("login2"))
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.place.table(), ["i,v", "7,70"])
        self.assertFalse(list(pathlib.Path(self.place.root / "run/000000").glob("*lease*")))


if __name__ == "__main__":
    arguments = list(sys.argv)
    at = arguments.index("--cache")
    CACHE = os.path.abspath(arguments[at + 1])
    del arguments[at:at + 2]
    place.main(arguments)

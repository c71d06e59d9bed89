#!/usr/bin/env python3
"""With accounting (slurmdbd), and a controller that forgets jobs soon.   accounting_test.py TALLY --accounting [TEST ...]"""
import sys

import cluster as slurm
import place
from failures_test import FailureTest


class Accounting(FailureTest):
    options = {"nodes": 1, "accounting": True, "min_job_age": 2}

    def test_a_table(self):
        self.write(launch="echo v=${i}0")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n2,20\n", out)

    def test_sacct_knows_what_squeue_has_forgotten(self):
        self.write()
        self.place.tally("run", "--no-wait", "small.yaml")
        self.begun(0, 1)
        first, second = self.job_of(0), self.job_of(1)
        # A record reaches the database some seconds after the submission.
        slurm.wait_for(lambda: len(self.accounts(first, second)) == 2, "both jobs are in the database")
        self.cluster.run("scancel", first)
        self.free()
        slurm.wait_for(lambda: not self.cluster.jobs(), "the jobs have ended")
        slurm.wait_for(lambda: not self.known(first, second), "squeue has forgotten them", 120)
        code, out, _ = self.place.tally("continue", "run", "-r")
        self.assertEqual(code, 1)
        self.assertIn("2,20,done\n", out)
        self.assertIn("CANCELLED", self.place.packages()[0]["note"])

    def test_a_job_found_by_its_name_after_squeue_has_forgotten_it(self):
        self.write(values="1")
        folder = self.place.root / "bin"
        folder.mkdir()
        real = slurm.shutil.which("sbatch", path=slurm.search_path())
        self.place.program("bin/sbatch", f'{real} "$@" > "{self.place.root}/id"; kill -9 $PPID\n')
        engine = self.place.start("run", "small.yaml", env={"PATH": f"{folder}:{slurm.search_path()}"})
        self.place.finish(engine)
        job = (self.place.root / "id").read_text().strip()
        self.begun(0)
        slurm.wait_for(lambda: self.accounts(job), "the job is in the database")
        self.cluster.run("scancel", job)
        slurm.wait_for(lambda: not self.known(job), "squeue has forgotten it", 120)
        code, _, _ = self.place.tally("continue", "run")
        self.assertEqual(code, 1)
        package = self.place.packages()[0]
        self.assertEqual(package["job_id"], job)
        self.assertIn("CANCELLED", package["note"])

    def accounts(self, *jobs):
        lines = self.cluster.run("sacct", "-X", "-n", "-P", "-j", ",".join(jobs), "-o", "jobid,jobname").split()
        return [line for line in lines if "small-train-" in line]

    def known(self, *jobs):
        done = slurm.subprocess.run(["squeue", "-h", "--states=all", "-o", "%i", "--jobs=" + ",".join(jobs)],
                                    env=self.cluster.env, stdout=slurm.subprocess.PIPE, stderr=slurm.subprocess.DEVNULL,
                                    text=True, timeout=30)
        return done.stdout.split()


if __name__ == "__main__":
    place.main(sys.argv)

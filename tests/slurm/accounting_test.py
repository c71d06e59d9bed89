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

    def test_columns_of_what_the_jobs_used(self):
        columns = "column: [i, job_id, job_nodes, job_elapsed, job_max_rss, job_energy]"
        # A program that takes 64 MiB, and lives long enough that a sample of Slurm's sees it.
        self.place.write(text=place.WORKFLOW.replace("column: [i, v]", columns),
                   launch="python3 -c 'import time; a = bytearray(64 << 20); time.sleep(3)'")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        rows = [line.split(",") for line in out.splitlines() if line.startswith(("1,", "2,"))]
        self.assertEqual(len(rows), 2, out)
        for row, package in zip(rows, self.place.packages()):
            self.assertEqual(row[1:3], [package["job_id"], "node1"])
            elapsed, = self.cluster.run("sacct", "-X", "-n", "-P", "-S", "now-1hour", "-j", row[1], "-o", "elapsedraw").split()
            self.assertEqual(row[3], elapsed)
            self.assertTrue(60 < float(row[4]) < 1000, row)
            self.assertEqual(row[5], "")
        self.assertIn("'job_energy' is not available in 2 of 2 rows: Slurm measures no energy here (AcctGatherEnergyType)", err)

    def test_energy_of_the_jobs(self):
        # No plugin of Slurm's measures energy without hardware: this sacct stands for one that does.
        real = slurm.shutil.which("sacct", path=slurm.search_path())
        (self.place.root / "bin").mkdir()
        self.place.program("bin/sacct", f"""
case "$*" in
*consumedenergyraw*)
    for word in "$@"; do
        case $word in --jobs=*) ids=${{word#--jobs=}} ;; esac
    done
    for id in ${{ids//,/ }}; do
        name=$({real} -X -n -P -S now-1hour --jobs=$id --format=jobname)
        echo "$id|COMPLETED|7|$((1000 * id))||node1|$name"
        echo "$id.batch|COMPLETED|7|$((1000 * id))|1536K|node1|batch"
        echo "$id.0|COMPLETED|6|900|2M|node1|sh"
    done ;;
*) exec {real} "$@" ;;
esac
""")
        columns = "column: [i, job_elapsed, {{_: job_energy, statistic: median}}, job_energy_n, job_max_rss]"
        self.place.write(text=place.WORKFLOW.replace("column: [i, v]", columns), launch="echo", keys="repeat: 3\n    max_async: 0")
        code, out, err = self.place.tally("run", "small.yaml", env={"PATH": f"{self.place.root}/bin:{slurm.search_path()}"})
        self.assertEqual(code, 0, out + err)
        for i in (1, 2):
            ids = sorted(int(package["job_id"]) for package in self.place.packages() if package["id"] % 2 == i - 1)
            self.assertIn(f"\n{i},7,{1000 * ids[1]},3,2.0,3 of 3\n", out)
        # The numbers are in the journal: they outlive Slurm's records.
        code, out, _ = self.place.tally("result", "run", "-s", "json", env={"PATH": "/usr/bin:/bin"})
        self.assertIn('"job_energy"', out)

    def test_what_another_job_with_the_id_used_is_not_this_ones(self):
        # As after a reset of Slurm's ids, or where the accounting keeps several clusters'.
        (self.place.root / "bin").mkdir()
        real = slurm.shutil.which("squeue", path=slurm.search_path())
        sacct = """
for word in "$@"; do
    case $word in --jobs=*) ids=${word#--jobs=} ;; esac
done
case "$*" in *consumedenergyraw*) ;; *) exit 0 ;; esac
for id in ${ids//,/ }; do
    echo "$id|COMPLETED|99999|123456||foreign7|other"
    echo "$id.batch|COMPLETED|99999|123456|777M|foreign7|batch"
done
"""
        none = "echo 'Slurm accounting storage is disabled' >&2; exit 1\n"
        squeue = f"""
case "$*" in
*'%T|%M'*)
    for word in "$@"; do
        case $word in --jobs=*) ids=${{word#--jobs=}} ;; esac
    done
    for id in ${{ids//,/ }}; do echo "$id|COMPLETED|1-03:46:39|foreign7|other"; done ;;
*) exec {real} "$@" ;;
esac
"""
        columns = "column: [v, job_elapsed, job_energy, job_max_rss, job_nodes]"
        self.place.write(text=place.WORKFLOW.replace("column: [i, v]", columns), launch="echo v=${i}0", values="1")
        for programs in ({"sacct": sacct}, {"sacct": none, "squeue": squeue}):
            for name, text in programs.items():
                self.place.program(f"bin/{name}", text)
            code, out, err = self.place.tally("run", "small.yaml", env={"PATH": f"{self.place.root}/bin:{slurm.search_path()}"})
            self.assertEqual(code, 0, out + err)
            self.assertIn("\n10,,,,node1\n", out)  # the node was told with the id and the name
            self.assertIn("is of another job, 'other'", err)

    def test_sacct_knows_what_squeue_has_forgotten(self):
        self.write()
        self.place.tally("run", "--no-wait", "small.yaml")
        self.begun(0, 1)
        first, second = self.job_of(0), self.job_of(1)
        # A record reaches the database some seconds after the submission.
        slurm.wait_for(lambda: len(self.accounts(first, second)) == 2, "both jobs are in the database")
        self.cluster.run("scancel", first)
        slurm.wait_for(lambda: [job for job, _, _ in self.cluster.jobs()] == [second], "the first job's end")
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

#!/usr/bin/env python3
"""Many workpackages in one job, on a real Slurm.   pack_test.py TALLY [TEST ...]"""
import os
import sys

import cluster as slurm
import place
from place import SlurmTest


class Pack(SlurmTest):
    options = {"nodes": 2}

    def write(self, launch, pack, values, more="", time="00:05:00"):
        self.place.write(values=values, launch=launch, keys=f"pack: {pack}\n    {more or 'max_async: 0'}")
        file = self.place.root / "small.yaml"
        file.write_text(file.read_text().replace("00:05:00", time))

    def ids(self):
        return [package["job_id"] for package in self.place.packages()]

    def own_files(self, count):
        for number in range(count):
            self.assertIn(f"v={number + 1}0\n", (self.place.work(number) / "stdout").read_text())
            self.assertTrue((self.place.work(number) / "job.status").exists())

    def test_an_array_is_one_job_and_one_that_fails_fails_alone(self):
        program = self.place.program("point", 'echo "v=${1}0"; echo "task $SLURM_ARRAY_TASK_ID of $SLURM_ARRAY_JOB_ID"\n'
                                              '[ "$1" != 3 ] || exit 7\n')
        self.write(f"{program} $i", "array", "1,2,3,4,5")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1, out + err)
        states = [package["state"] for package in self.place.packages()]
        self.assertEqual(states.count(states[2]), 1, states)
        self.assertEqual((self.place.work(2) / "job.status").read_text(), "7\n")
        self.own_files(5)
        base = self.ids()[0].split("_")[0]
        self.assertEqual(self.ids(), [f"{base}_{task}" for task in range(5)])
        for number in range(5):
            self.assertIn(f"task {number} of {base}\n", (self.place.work(number) / "stdout").read_text())
        self.assertEqual(self.place.table(), ["i,v,status", "1,10,done", "2,20,done", "3,30,FAILED", "4,40,done", "5,50,done"])

    def test_of_an_array_by_hand_a_task_that_has_ended_may_be_submitted_again(self):
        """The last task of an array has the array's id, by which Slurm lists all tasks."""
        program = self.place.program("point", f'[ "$1" = 3 ] || until [ -e {self.place.root}/go ]; do sleep 0.1; done; echo x\n')
        self.write(f"{program} $i", "array", "1,2,3")
        code, out, err = self.place.tally("script", "small.yaml", "--out", "jobs")
        self.assertEqual(code, 0, out + err)
        folder, last = self.place.root / "jobs/pack_000000_train", self.place.root / "jobs/000002_train/work"
        array = self.cluster.run("sbatch", "--parsable", f"--chdir={folder}", str(folder / "pack.job")).strip()

        def states():
            said = self.cluster.run("squeue", "--noheader", "--array", f"--jobs={array}", "--states=all", "--format=%K %T")
            return dict(line.split() for line in said.splitlines())

        slurm.wait_for(lambda: states() == {"0": "RUNNING", "1": "RUNNING", "2": "COMPLETED"}, "the end of the last task alone")
        self.assertFalse((last / "job.status.begun.lock").exists())
        self.cluster.run("sbatch", "--wait", "--array=2", f"--chdir={folder}", str(folder / "pack.job"), seconds=120)
        self.assertEqual((last / "job.status").read_text(), "0\n")
        (self.place.root / "go").touch()
        slurm.wait_for(lambda: set(states().values()) == {"COMPLETED"}, "the end of all")

    def test_steps_share_an_allocation(self):
        program = self.place.program("point", 'echo "v=${1}0"; [ "$1" != 2 ] || exit 7\n')
        self.write(f"{program} $i", "{_: steps, at_once: 2}", "1,2,3,4,5")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1, out + err)
        self.own_files(5)
        self.assertEqual(len(set(self.ids())), 1, self.ids())
        self.assertEqual(self.place.table(), ["i,v,status", "1,10,done", "2,20,FAILED", "3,30,done", "4,40,done", "5,50,done"])

    def test_env_with_a_parameter_makes_no_job_more(self):
        program = self.place.program("point", 'echo "v=${1}$KK"\n')
        for number, pack in enumerate(("array", "{_: steps, at_once: 2}")):
            with self.subTest(pack):
                self.write(f"{program} $i", pack, "1,2,3", more="env: {KK: '${i}5'}")
                code, out, err = self.place.tally("run", "small.yaml")
                self.assertEqual(code, 0, out + err)
                jobs = {package["job_id"].split("_")[0] for package in self.place.packages(f"{number:06}")}
                self.assertEqual(len(jobs), 1, jobs)
                self.assertEqual(self.place.table(), ["i,v", "1,115", "2,225", "3,335"])

    def test_steps_side_by_side_run_at_the_same_time(self):
        """Two wait for each other: one after the other they would wait for ever."""
        program = self.place.program("point", f'touch {self.place.root}/here.$1\n'
                                              f'until [ -e {self.place.root}/here.1 ] && [ -e {self.place.root}/here.2 ]; '
                                              'do sleep 0.1; done; echo "v=${1}0"\n')
        self.write(f"{program} $i", "{_: steps, at_once: 2}", "1,2")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.place.table(), ["i,v", "1,10", "2,20"])

    def test_two_hundred_points_are_a_few_jobs(self):
        self.write("echo v=${i}0", "{_: steps, size: 50, at_once: 2}", ",".join(str(i) for i in range(1, 201)),
                   time="00:01:00")
        shown = self.place.tally("run", "small.yaml", "-n")[1]
        self.assertIn("200 workpackages, 4 jobs", shown)
        code, out, err = self.place.tally("run", "small.yaml", seconds=150)
        self.assertEqual(code, 0, out + err)
        self.assertEqual(len(set(self.ids())), 4)
        self.assertEqual(len(self.place.table()), 201)

    def test_the_dry_run_shows_what_is_submitted(self):
        for pack in ("{_: array, size: 2, at_once: 1}", "{_: steps, size: 2}"):
            self.write("echo v=${i}0", pack, "1,2,3")
            shown = self.place.tally("run", "small.yaml", "-n", "--script", "1")[1]
            code, out, err = self.place.tally("run", "small.yaml")
            self.assertEqual(code, 0, out + err)
            run = sorted((self.place.root / "run").iterdir())[-1]
            written = (run / "pack_000000_train/pack.job").read_text()
            self.assertIn(written, shown)
            self.assertEqual(len(list(run.glob("pack_*"))), 2)

    def test_an_engine_killed_before_it_heard_the_id_finds_its_pack_again(self):
        for pack in ("array", "steps"):
            with self.subTest(pack=pack):
                self.place.program("sbatch", f'{slurm.shutil.which("sbatch", path=self.cluster.env["PATH"])} "$@" > '
                                             f'{self.place.root}/said; kill -KILL $PPID\n')
                self.write("echo v=${i}0", pack, "1,2,3")
                path = f"{self.place.root}:{self.cluster.env['PATH']}"
                code, out, err = self.place.tally("run", "small.yaml", "-o", pack, env={"PATH": path})
                self.assertLess(code, 0)
                code, out, err = self.place.tally("continue", pack)
                self.assertEqual(code, 0, out + err)
                self.assertIn("1,10\n2,20\n3,30\n", out)
                base = (self.place.root / "said").read_text().strip()
                log = (self.place.root / pack / "000000/run.log").read_text()
                self.assertIn(f"found job {base}", log)
                name = log[log.index(f"found job {base} (") + len(f"found job {base} ("):].split(")")[0]
                entries = self.cluster.run("squeue", "-h", "-t", "all", "-n", name, "-o", "%F").split()
                self.assertEqual(set(entries), {base})

    def test_an_engine_killed_while_a_pack_runs_goes_on(self):
        gate = self.place.root / "gate"
        program = self.place.program("point", f'touch started; until [ -e {gate} ]; do sleep 0.1; done; echo "v=${{1}}0"\n')
        self.write(f"{program} $i", "array", "1,2,3")
        engine = self.place.start("run", "small.yaml")
        for number in range(3):
            slurm.wait_for((self.place.work(number) / "started").exists, "a start")
        slurm.wait_for(lambda: all(self.ids()), "the ids")
        engine.kill()
        engine.wait()
        gate.touch()
        code, out, err = self.place.tally("continue", "run")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.place.table(), ["i,v", "1,10", "2,20", "3,30"])

    def test_one_task_cancelled_from_outside(self):
        gate = self.place.root / "gate"
        program = self.place.program("point", f'touch started; until [ -e {gate} ]; do sleep 0.1; done; echo "v=${{1}}0"\n')
        self.write(f"{program} $i", "array", "1,2,3")
        engine = self.place.start("run", "small.yaml")
        for number in range(3):
            slurm.wait_for((self.place.work(number) / "started").exists, "a start")
        slurm.wait_for(lambda: all(self.ids()), "the ids")
        cancelled = self.ids()[1]
        self.cluster.run("scancel", cancelled)
        # Slurm tells the task later: it would see the gate before.
        slurm.wait_for(lambda: cancelled not in [job for job, _, _ in self.cluster.jobs()], "the task's end")
        gate.touch()
        code, out = self.place.finish(engine, 100)
        self.assertEqual(code, 1, out)
        self.assertIn("CANCELLED", self.place.packages()[1]["note"])
        self.assertEqual(self.place.table(), ["i,v,status", "1,10,done", "2,,FAILED", "3,30,done"])

    def test_when_the_time_is_over_who_never_began_has_no_result(self):
        program = self.place.program("point", 'touch started; echo "v=${1}0"; exec sleep 600\n')
        self.write(f"{program} $i", "steps", "1,2,3", "expect: timeout")
        self.time_is_over()

    def test_a_pack_whose_signal_is_still_on_its_way_runs_out_of_time(self):
        # Slurm shows SIGNALING for a moment only: here squeue says so whenever a job asks.
        program = self.place.program("point", 'touch started; echo "v=${1}0"; exec sleep 600\n')
        self.write(f"{program} $i", "steps", "1,2,3", "expect: timeout")
        folder = self.place.root / "bin"
        folder.mkdir()
        (folder / "squeue").write_text(f"""#!/bin/bash
case "$SLURM_JOB_ID $*" in ?*PreemptTime*Reason*) echo "SIGNALING $(($(date +%s) + 100)) N/A None" ;;
*) PATH={self.cluster.env["PATH"]} exec squeue "$@" ;; esac
""")
        (folder / "squeue").chmod(0o755)
        self.time_is_over(env={"PATH": f"{folder}:{self.cluster.env['PATH']}"})

    def test_of_a_pack_that_ran_out_of_time_nobody_has_that_outcome(self):
        """Slurm says TIMEOUT of the allocation. A member has its own exit status, or did not end in time."""
        program = self.place.program("point", 'echo "v=${1}0"; [ "$1" != 1 ] || exit 7; [ "$1" != 2 ] || exit 0\n'
                                              'touch started; exec sleep 600\n')
        self.write(f"{program} $i", "{_: steps, at_once: 3}", "1,2,3", "expect: [timeout, oom]")
        engine = self.place.start("run", "small.yaml")
        slurm.wait_for((self.place.work(2) / "started").exists, "the start")
        for number in (0, 1):
            slurm.wait_for((self.place.work(number) / "job.status").exists, "the end of the others")
        self.cluster.run("scontrol", "update", f"jobid={self.cluster.jobs()[0][0]}", "EndTime=now+2")
        code, out = self.place.finish(engine)
        self.assertEqual(code, 1, out)
        self.assertEqual(self.place.table(), ["i,v,status", "1,10,FAILED", "2,20,done", "3,30,FAILED"])

    def time_is_over(self, **options):
        engine = self.place.start("run", "small.yaml", **options)
        slurm.wait_for((self.place.work(0) / "started").exists, "the start")
        self.warn(self.cluster.jobs()[0][0])
        code, out = self.place.finish(engine)
        self.assertEqual(code, 1, out)
        notes = [package["note"] for package in self.place.packages()]
        # It is not its own time limit: it may have had a moment of that.
        self.assertIn("exit code 143: the time of its pack was over", notes[0])
        self.assertEqual(self.place.table()[1], "1,10,FAILED")
        for number in (1, 2):
            self.assertIn("exit code 143: not begun: the time of its pack was over", notes[number])
            self.assertFalse((self.place.work(number) / "started").exists())

    def warn(self, job):
        """The signal that Slurm sends before the time limit, which is near by now."""
        self.cluster.run("scontrol", "update", f"jobid={job}", "EndTime=now+90")
        self.cluster.run("scancel", "--batch", "--signal=TERM", job)

    def test_a_signal_long_before_the_time_limit_of_a_pack_is_no_time_limit(self):
        program = self.place.program("point", 'touch started; echo "v=${1}0"; exec sleep 600\n')
        for pack, job in (("steps", "{}"), ("{_: steps, at_once: 2}", "{}"), ("array", "{}_0")):
            with self.subTest(pack=pack):
                self.write(f"{program} $i", pack, "1,2,3" if "steps" in pack else "1", "expect: timeout")
                run = f"{len(list((self.place.root / 'run').glob('0*'))):06}"
                engine = self.place.start("run", "small.yaml")
                slurm.wait_for((self.place.work(0, run=run) / "started").exists, "the start")
                self.cluster.run("scancel", "--batch", "--signal=TERM", job.format(self.cluster.jobs()[0][0].split("_")[0]))
                code, out = self.place.finish(engine)
                self.assertEqual(code, 1, out)
                for package in self.place.packages(run):
                    self.assertRegex(package["note"], "exit code 143: (the job|not begun: its pack) got a? ?signal.* before its time "
                                                      "limit, and not from Slurm")

    def test_the_time_limit_of_one_task_leaves_the_others_alone(self):
        # The last task has the id of the whole array.
        gate = self.place.root / "gate"
        program = self.place.program("point", f'touch started; until [ -e {gate} ]; do sleep 0.1; done; echo "v=${{1}}0"\n')
        self.write(f"{program} $i", "array", "1,2,3", "expect: timeout")
        engine = self.place.start("run", "small.yaml")
        for number in range(3):
            slurm.wait_for((self.place.work(number) / "started").exists, "a start")
        slurm.wait_for(lambda: all(self.ids()), "the ids")
        self.warn(self.ids()[2])
        slurm.wait_for((self.place.work(2) / "job.status").exists, "the end of the task")
        gate.touch()
        code, out = self.place.finish(engine)
        self.assertEqual(code, 0, out)
        self.assertEqual(self.place.table(), ["i,v,status", "1,10,done", "2,20,done", "3,,EXPECTED"])


class Gpus(SlurmTest):
    options = {"nodes": 1, "cpus": 4, "gpus": 2}

    def test_members_side_by_side_have_their_own_gpus(self):
        gate = self.place.root / "here"
        # Each waits for the other: they have the node's GPUs at the same time.
        program = self.place.program("show", f'touch {gate}.$1; until [ -e {gate}.1 ] && [ -e {gate}.2 ]; do sleep 0.1; done\n'
                                             'echo "GPUs $CUDA_VISIBLE_DEVICES"; echo "v=${1}0"\n')
        self.place.write(values="1,2", launch=f"{program} $i", keys="pack: {_: steps, at_once: 2}")
        file = self.place.root / "small.yaml"
        file.write_text(file.read_text().replace("cpus_per_task: 1,", "cpus_per_task: 1, gpus_per_node: 1,"))
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.place.table(), ["i,v", "1,10", "2,20"])
        seen = [(self.place.work(number) / "stdout").read_text().splitlines()[0] for number in range(2)]
        self.assertEqual(sorted(seen), ["GPUs 0", "GPUs 1"])


if __name__ == "__main__":
    place.main(list(sys.argv))

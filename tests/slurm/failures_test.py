#!/usr/bin/env python3
"""What a real Slurm does to jobs, and what becomes of the run.   failures_test.py TALLY [TEST ...]"""
import os
import pathlib
import re
import signal
import subprocess
import time

import cluster as slurm
import place
from place import SlurmTest

# Jobs of the tests wait for a file that the test makes: no test depends on how long something takes.
WAITS = "bash -c 'echo v=${i}0; touch $jube_wp_abspath/begun; until [ -e $jube_benchmark_home/free ]; do sleep 0.05; done'"
LOST = 6  # a workpackage's state in the journal
# Questions once a second at least, and no long wait for a status file that will not come.
QUICK = """parameterset:
  - name: executeset
    init_with: slurm/platform.yaml:executeset
    parameter:
      - {{name: poll_slowest, _: 1s}}
      - {{name: status_grace, _: 1s}}
      - {{name: pending_limit, _: "{pending}"}}
      - {{name: resubmit, _: "{resubmit}"}}
      - {{name: jobs_in_flight, _: "{in_flight}"}}
      - {{name: submit_patience, _: "{patience}"}}
"""


class FailureTest(SlurmTest):
    def write(self, values="1,2", launch=WAITS, keys="", pending="0", resubmit="2", in_flight="0", patience="1h",
              system="", execute="", nodes="1", options=""):
        quick = QUICK.format(pending=pending, resubmit=resubmit, in_flight=in_flight, patience=patience)
        quick += "".join(f"      - {line}\n" for line in execute.splitlines())
        quick += ("  - name: systemParameter\n    init_with: slurm/platform.yaml:systemParameter\n    parameter:\n"
                  "      - {name: signal, _: \"\"}\n" + "".join(f"      - {line}\n" for line in system.splitlines()))
        (self.place.root / "quick.yaml").write_text(quick)
        text = place.WORKFLOW.replace(
            '_: "systemParameter,executeset,executesub,jobfiles"}}',
            '_: "executesub,jobfiles"}}\n      - {{from: quick.yaml, _: "systemParameter,executeset"}}')
        text = text.replace("nodes: 1,", f"nodes: {nodes}, options: {{{{{options}}}}},")
        self.place.write(values=values, launch=launch.replace("{", "{{").replace("}", "}}").format(), keys=keys, text=text)

    def free(self):
        (self.place.root / "free").touch()

    def begun(self, *numbers):
        slurm.wait_for(lambda: all((self.place.work(n) / "begun").exists() for n in numbers), f"jobs of {numbers} begun")

    def job_of(self, number):
        def known():
            packages = self.place.packages()
            return packages[number]["job_id"] if number < len(packages) else None
        return slurm.wait_for(known, "a job id in the journal")

    def ends(self, engine, code):
        got, out = self.place.finish(engine)
        self.assertEqual(got, code, out)
        return out


class Jobs(FailureTest):
    def test_time_limit(self):
        # Slurm looks for them every half minute: both ways of taking one by one wait.
        self.write(values="1,2")
        engine = self.place.start("run", "small.yaml")
        other = place.Place(self.cluster)
        self.addCleanup(other.close)
        for name in ("small.yaml", "quick.yaml"):
            text = (self.place.root / name).read_text()
            (other.root / name).write_text(text.replace("max_async: 0", "expect: [timeout]"))
        expecting = other.start("run", "small.yaml")
        self.begun(0, 1)
        slurm.wait_for(lambda: all((other.work(n) / "begun").exists() for n in (0, 1)), "the other's jobs begun")
        for job in (self.job_of(0), other.packages()[0]["job_id"]):
            self.cluster.run("scontrol", "update", f"jobid={job}", "EndTime=now+1")
        slurm.wait_for(lambda: len(self.cluster.jobs()) == 2, "two jobs have met their limit", 90)
        self.free()
        (other.root / "free").touch()
        self.assertIn("2,20,done\n", self.ends(engine, 1))
        self.assertIn("TIMEOUT", self.place.packages()[0]["note"])
        code, out = other.finish(expecting)
        self.assertEqual(code, 0, out)
        self.assertIn("1,10,EXPECTED\n2,20,done\n", out)

    def test_scancel_from_outside(self):
        self.write()
        engine = self.place.start("run", "small.yaml")
        self.begun(0, 1)
        self.cluster.run("scancel", self.job_of(0))
        slurm.wait_for(lambda: len(self.cluster.jobs()) == 1, "the job is gone")
        self.free()
        self.assertIn("2,20,done\n", self.ends(engine, 1))
        self.assertIn("CANCELLED", self.place.packages()[0]["note"])

    def test_a_failing_program(self):
        self.write(values="0,7", launch="bash -c 'echo v=1; echo last words >&2; exit $i'")
        code, out, _ = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1)
        self.assertIn("0,1,done\n", out)
        self.assertIn("ended with exit code 7", self.place.packages()[1]["note"])
        lines = (self.place.root / "small.yaml").read_text().splitlines()
        line = 1 + next(number for number, text in enumerate(lines) if text.startswith("    launch: "))
        # srun's own line comes before or behind the program's.
        self.assertIn(f"failed: 1 of 2 (train, i=7): exit code 7: last words (small.yaml:{line}:13; "
                      "run/000000/000001_train/work/stderr)\n", out)

    def test_a_work_dir_that_workpackages_share(self):
        # A job's script, status and output are its workpackage's own; the program runs in the work_dir.
        program = self.place.program("prog", 'echo "v=${1}0"; pwd; touch "in.$1"; [ "$1" != 2 ]\n')
        for pack in ("max_async: 0", "pack: array", "pack: {_: steps, at_once: 2}"):
            with self.subTest(pack=pack):
                folder = self.place.root / pack.split()[-1].strip("}")
                self.write(values="1,2,3", launch=f"{program} $i", keys=f"work_dir: {folder}\n    {pack}")
                code, out, err = self.place.tally("run", "small.yaml", "-o", f"{folder}.run")
                self.assertEqual(code, 1, out + err)
                self.assertIn("1,10,done\n2,20,FAILED\n3,30,done\n", out)
                run = pathlib.Path(f"{folder}.run/000000")
                for number, status in enumerate(("0\n", "1\n", "0\n")):
                    work = run / f"00000{number}_train/work"
                    self.assertEqual((work / "job.status").read_text(), status)
                    self.assertIn(f"v={number + 1}0\n{folder}\n", (work / "stdout").read_text())
                self.assertEqual(sorted(os.listdir(folder)), ["in.1", "in.2", "in.3"])
                self.assertTrue((run / "job_functions.sh").exists())

    def test_the_first_task_that_fails_ends_the_other_and_is_what_counts(self):
        # srun's own code would be the highest, of the one that it ended.
        other = f"trap 'exit 99' TERM; touch here.$SLURM_PROCID; {place.WAIT_ALONE}"
        other_runs = "until [ -e here.0 ]; do sleep 0.05; done\n"
        ends = {"exit 7": 7, "kill -SEGV $$": 139, "kill -KILL $$": 137}
        for end, expected in ends.items():
            with self.subTest(end=end):
                program = self.place.program("prog", f'if [ $SLURM_PROCID = 1 ]; then {other_runs}echo "prog: error: no such '
                                                     f'thing" >&2; {end}; fi\n{other}')
                self.write(values="1", launch=program, nodes="2")
                began = time.monotonic()
                code, out, err = self.place.tally("run", "small.yaml")
                self.assertLess(time.monotonic() - began, 30)  # against a hang; it takes two seconds
                self.assertEqual(code, 1, out + err)
                run = sorted((self.place.root / "run").iterdir())[-1].name
                self.assertEqual((self.place.work(0, run=run) / "job.status").read_text(), f"{expected}\n")
                self.assertIn(f"ended with exit code {expected}: prog: error: no such thing (",
                              self.place.packages(run)[0]["note"])

    def test_rejected_in_slurms_own_words(self):
        self.write(values="1", system='{name: queue, _: nowhere}')
        code, out, _ = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1)
        self.assertIn("invalid partition specified: nowhere", self.place.packages()[0]["note"])
        self.assertIn("Batch job submission failed: Invalid partition name specified", self.place.packages()[0]["note"])
        self.assertIn("failed: 1 of 1 (train): sbatch: error: invalid partition specified: nowhere (", out)

    def test_a_job_that_can_never_start_is_cancelled(self):
        self.write(values="1", nodes="99")
        code, _, _ = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1)
        self.assertIn("for the reason Partition", self.place.packages()[0]["note"])

    def test_pending_limit(self):
        self.write(values="1", pending="2s", options="begin: now+1000")
        code, _, _ = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1)
        self.assertIn("longer than its pending_limit of 2 s (BeginTime)", self.place.packages()[0]["note"])

    def test_jobs_in_flight(self):
        self.write(values="1,2,3", in_flight="1")
        engine = self.place.start("run", "small.yaml")
        self.begun(0)
        self.job_of(0)
        self.assertEqual([package["job_id"] is None for package in self.place.packages()], [False, True, True])
        self.free()
        self.assertIn("1,10\n2,20\n3,30\n", self.ends(engine, 0))

    def test_a_job_gets_an_environment_of_its_own(self):
        launch = "bash -c 'echo v=${i}0; env > env; scontrol show job $SLURM_JOB_ID > job'"
        self.write(values="1", launch=launch)
        code, out, _ = self.place.tally("run", "small.yaml", env={
            "SBATCH_TIMELIMIT": "1", "SLURM_NTASKS": "77", "SBATCH_EXPORT": "NONE", "OMP_PLACES": "cores", "LC_TIME": "C",
            "SQUEUE_PARTITION": "none", "SLURM_TIME_FORMAT": "relative"})
        self.assertEqual(code, 0, out)
        lines = (self.place.work(0) / "env").read_text().splitlines()
        self.assertNotIn("SBATCH_TIMELIMIT=1", lines)
        self.assertIn("SLURM_NTASKS=1", lines)
        self.assertNotIn("OMP_PLACES=cores", lines)
        self.assertIn("LC_TIME=C", lines)
        self.assertIn("TimeLimit=00:05:00", (self.place.work(0) / "job").read_text())

    def test_the_programs_last_word_counts_when_slurm_ends_the_job_after_it(self):
        self.write(values="1", launch="bash -c 'echo v=10; exit 0'",
                   system='{name: postprocess, separator: "", _: "echo 0 > job.status; exec sleep 1000"}')
        engine = self.place.start("run", "small.yaml")
        self.assertIn("1,10\n", self.ends(engine, 0))
        self.cluster.run("scancel", self.place.packages()[0]["job_id"])
        slurm.wait_for(lambda: not self.cluster.jobs(), "the job is gone")


    def test_requeued_it_is_measured_anew(self):
        program = self.place.program("prog", 'if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then echo v=10; exit 0; fi\n'
                                             'echo v=99; touch "$1"; sleep 1000\n')
        self.write(values="1", launch=f"{program} $jube_wp_abspath/begun")
        engine = self.place.start("run", "small.yaml")
        self.begun(0)
        job = self.job_of(0)
        self.cluster.run("scontrol", "requeue", job)
        # Held back for two minutes, unless somebody says otherwise; not before its first start is cleared away.
        slurm.wait_for(lambda: "BeginTime" in self.cluster.run("squeue", "-h", "-o", "%r"), "the job waits again")
        # In the same second Slurm would refuse it ("Job credential revoked").
        self.cluster.run("scontrol", "update", f"jobid={job}", "StartTime=now+3")
        self.assertIn("1,10\n", self.ends(engine, 0))
        self.assertEqual(self.place.packages()[0]["job_id"], job)

    def requeue(self, job):
        """Starts an ended job anew, and waits until it has ended again."""
        self.cluster.run("scontrol", "requeue", job)
        slurm.wait_for(lambda: "BeginTime" in self.cluster.run("squeue", "-h", "-o", "%r"), "the job waits again")
        self.cluster.run("scontrol", "update", f"jobid={job}", "StartTime=now+3")
        slurm.wait_for(lambda: not self.cluster.jobs(), "its second end")
        self.assertIn("Restarts=1", self.cluster.run("scontrol", "show", "job", job))

    def files(self, folder):
        """All of a folder: contents by name."""
        return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}

    def test_requeued_after_its_good_end_it_does_nothing(self):
        program = self.place.program("prog", f'echo v=10; echo begun >> {self.place.root}/starts\n')
        self.write(values="1", launch=program)
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        slurm.wait_for(lambda: not self.cluster.jobs(), "the job has ended")
        before = self.files(self.place.work(0))
        self.requeue(self.place.packages()[0]["job_id"])
        self.assertEqual((self.place.root / "starts").read_text(), "begun\n")
        self.assertEqual(self.files(self.place.work(0)), before)

    def test_requeued_after_its_failure_was_taken_it_does_nothing(self):
        program = self.place.program("prog", f'echo v=10; echo begun >> {self.place.root}/starts; exit 7\n')
        self.write(values="1", launch=program)
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1, out + err)
        before = self.files(self.place.work(0))
        self.requeue(self.place.packages()[0]["job_id"])
        self.assertEqual((self.place.root / "starts").read_text(), "begun\n")
        self.assertEqual(self.files(self.place.work(0)), before)

    def test_a_first_try_that_is_requeued_leaves_the_second_alone(self):
        # The first try fails; the second one waits, in a new folder of the same name.
        program = self.place.program("prog", f'echo $SLURM_JOB_ID >> {self.place.root}/starts\n'
                                             f'[ $(wc -l < {self.place.root}/starts) -gt 1 ] || exit 7\n'
                                             f'touch begun; until [ -e {self.place.root}/free ]; do sleep 0.05; done\n'
                                             'echo v=10\n')
        self.write(values="1", launch=program, keys="retry: 1")
        engine = self.place.start("run", "small.yaml")
        slurm.wait_for((self.place.work(0) / "begun").exists, "the second try")
        first, second = (self.place.root / "starts").read_text().split()
        self.cluster.run("scontrol", "requeue", first)
        slurm.wait_for(lambda: "BeginTime" in self.cluster.run("squeue", "-h", "-o", "%r"), "the first waits again")
        self.cluster.run("scontrol", "update", f"jobid={first}", "StartTime=now+3")
        slurm.wait_for(lambda: [job for job, _, _ in self.cluster.jobs()] == [second], "the first has ended again")
        self.free()
        self.assertIn("1,10\n", self.ends(engine, 0))
        self.assertEqual((self.place.root / "starts").read_text().split(), [first, second])
        self.assertEqual((self.place.work(0) / "job.status").read_text(), "0\n")
        self.assertIn("trying again, retry 1 of 1: the job's program ended with exit code 7", self.place.log())

    def test_a_first_try_that_is_requeued_leaves_the_folder_alone_before_the_second_is_submitted(self):
        # That waits for the job of the other workpackage to end.
        program = self.place.program("prog", f'if [ "$1" = 1 ]; then echo $SLURM_JOB_ID >> {self.place.root}/starts\n'
                                             f'[ $(wc -l < {self.place.root}/starts) -gt 1 ] || exit 7; echo v=10; exit; fi\n'
                                             f'touch begun; until [ -e {self.place.root}/free ]; do sleep 0.05; done\n'
                                             'echo v=20\n')
        self.write(values="1,2", launch=f"{program} $i", keys="retry: 1", in_flight="1")
        engine = self.place.start("run", "small.yaml")
        self.begun(1)
        slurm.wait_for(lambda: (self.place.work(0).parent / "work.failed.1").exists()
                       and (self.place.work(0) / "submit.job").exists(), "the second try's folder")
        first = (self.place.root / "starts").read_text().strip()
        other = self.job_of(1)
        self.cluster.run("scontrol", "requeue", first)
        slurm.wait_for(lambda: "BeginTime" in self.cluster.run("squeue", "-h", "-o", "%r"), "the first waits again")
        self.cluster.run("scontrol", "update", f"jobid={first}", "StartTime=now+3")
        slurm.wait_for(lambda: [job for job, _, _ in self.cluster.jobs()] == [other], "the first has ended again")
        self.assertEqual((self.place.root / "starts").read_text().strip(), first)
        self.free()
        self.assertIn("1,10\n2,20\n", self.ends(engine, 0))

    def test_done_file_and_error_file_in_jubes_way(self):
        program = self.place.program("prog", f'until [ -e {self.place.root}/free ]; do sleep 0.05; done\n'
                                             'echo "v=${1}0"; exit $(($1 - 1))\n')
        self.write(system='{name: executable, separator: "", _: "%s"}\n{name: args_executable, _: $i}' % program)
        text = (self.place.root / "small.yaml").read_text()
        start, end = text.index("    kind: run\n"), text.index("    use:\n")
        text = text[:start] + text[end:]
        start, end = text.index("    resources:"), text.index("analyser:")
        text = text[:start] + "    do: {done_file: $done_file, error_file: $error_file, _: $submit $submit_script}\n" + text[end:]
        (self.place.root / "jube.yaml").write_text(text)
        code, out, err = self.place.tally("run", "jube.yaml")
        self.assertEqual(code, 1, out + err)
        self.assertIn("Results are still to come", out)
        self.assertEqual(len(self.cluster.jobs()), 2)
        self.free()
        slurm.wait_for(lambda: not self.cluster.jobs(), "the jobs have ended")
        code, out, _ = self.place.tally("continue", "run", "-r")
        self.assertEqual(code, 1)
        self.assertIn("1,10\n", out)
        self.assertEqual([package["state"] for package in self.place.packages()], [3, 4])  # done, failed
        self.assertIn("Error file", self.place.packages()[1]["note"])


class Nodes(FailureTest):
    def test_a_lost_node_is_tried_again_elsewhere(self):
        self.write(values="1", options='no-requeue: ""')
        engine = self.place.start("run", "small.yaml")
        self.begun(0)
        first = self.job_of(0)
        node = self.cluster.run("squeue", "-h", "-o", "%N").strip()
        self.cluster.crash(node)
        slurm.wait_for(lambda: self.place.packages()[0]["job_id"] not in (None, first), "a second job", 60)
        self.begun(0)
        self.free()
        self.assertIn("1,10\n", self.ends(engine, 0))
        self.assertIn("NODE_FAIL", self.place.log())
        self.cluster.up(node)
        slurm.wait_for(lambda: "down" not in "".join(self.cluster.states()), "the node is back")

    # Its first start says half of its results before the node is lost, its second all of them.
    HALF = 'if [ -e "$2/first" ]; then echo v=10; exit 0; fi\necho v=99; touch "$2/first" "$1"; sleep 1000\n'

    def lose_node(self, lose, options="requeue: \"\""):
        """A job whose node is lost while its script lives on: srun says 0 at once. The job runs again, on another node."""
        self.write(values="1", launch=f"{self.place.program('prog', self.HALF)} $jube_wp_abspath/begun {self.place.root}", options=options)
        engine = self.place.start("run", "small.yaml")
        self.begun(0)
        job = self.job_of(0)
        node = self.cluster.run("squeue", "-h", "-o", "%N").strip()
        lose(node)
        if "no-requeue" not in options:
            slurm.wait_for(lambda: "BeginTime" in self.cluster.run("squeue", "-h", "-o", "%r"), "the job waits again", 60)
            self.assertEqual(self.place.packages()[0]["state"], 1, "the end of a job whose node was lost was believed")
            self.cluster.run("scontrol", "update", f"jobid={job}", "StartTime=now+3")
        self.assertIn("1,10\n", self.ends(engine, 0))
        self.assertNotIn("99", (self.place.work(0) / "stdout").read_text())
        if "no-requeue" not in options:
            self.assertEqual(self.place.packages()[0]["job_id"], job)
        return node

    def set_down(self, node):
        self.cluster.run("scontrol", "update", f"nodename={node}", "state=down", "reason=test")

    def test_a_node_that_is_set_down_under_a_job(self):
        self.lose_node(self.set_down)

    def test_a_node_that_is_set_down_under_a_job_that_slurm_does_not_requeue(self):
        self.lose_node(self.set_down, 'no-requeue: ""')
        self.assertIn("NODE_FAIL", self.place.log())

    def test_a_node_that_hangs(self):
        node = self.lose_node(lambda node: self.cluster.down(node, signal.SIGSTOP))
        self.cluster.crash(node)
        self.cluster.up(node)
        slurm.wait_for(lambda: "down" not in "".join(self.cluster.states()), "the node is back")

    def test_a_node_is_lost_while_no_engine_looks(self):
        self.write(values="1", launch=f"{self.place.program('prog', self.HALF)} $jube_wp_abspath/begun {self.place.root}",
                   options='requeue: ""')
        engine = self.place.start("run", "small.yaml")
        self.begun(0)
        job = self.job_of(0)
        engine.kill()
        engine.wait()
        self.set_down(self.cluster.run("squeue", "-h", "-o", "%N").strip())
        slurm.wait_for(lambda: "BeginTime" in self.cluster.run("squeue", "-h", "-o", "%r"), "the job waits again")
        self.cluster.run("scontrol", "update", f"jobid={job}", "StartTime=now+3")
        slurm.wait_for(lambda: not self.cluster.jobs(), "its second end")
        code, out, err = self.place.tally("continue", "run")
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n", out)

    def test_a_lost_node_more_often_than_allowed(self):
        self.write(values="1", resubmit="0", options='no-requeue: ""')
        engine = self.place.start("run", "small.yaml")
        self.begun(0)
        node = self.cluster.run("squeue", "-h", "-o", "%N").strip()
        self.cluster.crash(node)
        self.ends(engine, 1)
        self.assertIn("NODE_FAIL", self.place.packages()[0]["note"])
        self.cluster.up(node)


PREEMPTION = """\
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
PartitionName=grace Nodes=ALL PriorityTier=1 PreemptMode=CANCEL GraceTime=120 MaxTime=60 State=UP
PartitionName=short Nodes=ALL PriorityTier=1 PreemptMode=CANCEL GraceTime=1 MaxTime=60 State=UP
PartitionName=cancel Nodes=ALL PriorityTier=1 PreemptMode=CANCEL MaxTime=60 State=UP
PartitionName=requeue Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE MaxTime=60 State=UP
PartitionName=requeue_grace Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE GraceTime=120 MaxTime=60 State=UP
PartitionName=high Nodes=ALL PriorityTier=100 PreemptMode=OFF MaxTime=60 State=UP
"""


class Preemption(FailureTest):
    """A job of low priority runs on a cluster of one node, until a job of high priority needs it."""
    options = {"nodes": 1, "cpus": 2, "conf": PREEMPTION}

    def program_of(self, told):
        """Its first start waits, and does `told` when it gets TERM. Its second has the result."""
        return self.place.program("prog", f'root={self.place.root}\nif [ -e $root/first.$1 ]; then echo v=${{1}}0; exit 0; fi\n'
                                          f'echo v=99; {told}\ntouch $root/first.$1\n{place.WAIT_ALONE}')

    def start_at(self, partition, told=":", values="1", **options):
        for name in ("first.1", "first.2", "release"):
            (self.place.root / name).unlink(missing_ok=True)
        self.write(values=values, launch=f"{self.program_of(told)} $i", system="{name: queue, _: %s}" % partition, **options)
        self.run_name = f"{len(list((self.place.root / 'run').glob('0*'))):06}"
        engine = self.place.start("run", "small.yaml")
        slurm.wait_for((self.place.root / "first.1").exists, "the program's start")
        return engine

    def preempt(self):
        """The job of high priority; it ends when release() is called."""
        words = f"until [ -e {self.place.root}/release ]; do sleep 0.05; done"
        self.high = self.cluster.run("sbatch", "--parsable", "--partition=high", "--cpus-per-task=2", "--output=/dev/null",
                                     f"--wrap={words}").strip()

    def release(self):
        """Once the job of high priority has its node."""
        slurm.wait_for(lambda: (self.high, "wrap", "RUNNING") in self.cluster.jobs(), "the job of high priority runs")
        (self.place.root / "release").touch()
        slurm.wait_for(lambda: self.high not in [job for job, _, _ in self.cluster.jobs()], "its end")

    def check_again(self, engine, rows="1,10\n"):
        """The run has the results of the second start. Returns the log."""
        out = self.ends(engine, 0)
        self.assertIn(rows, out)
        log = self.place.log(self.run_name)
        self.assertNotIn("99", (self.place.work(0, run=self.run_name) / "stdout").read_text())
        return log

    def test_preempted_with_a_time_of_grace(self):
        # Slurm's state is that of the job's own end: FAILED or COMPLETED.
        for partition in ("grace", "requeue_grace"):
            for told in (":", "trap 'echo saved; exit 0' TERM", "trap 'exit 7' TERM", "trap 'exit 4' TERM", "trap 'exit 3' TERM"):
                with self.subTest(partition=partition, told=told):
                    engine = self.start_at(partition, told, keys="expect: [timeout, oom]")
                    first = self.job_in_run()
                    self.preempt()
                    self.release()
                    self.assertIn(f"job {first} was preempted", self.check_again(engine))
                    self.assertNotEqual(self.job_in_run(), first)

    def job_in_run(self):
        return slurm.wait_for(lambda: self.place.packages(self.run_name)[0]["job_id"], "a job id in the journal")

    def test_preempted_without_srun(self):
        # Nobody tells the program: Slurm ends it with its job, when the time of grace is over.
        engine = self.start_at("short", execute='{name: starter, _: ""}')
        self.preempt()
        self.release()
        self.assertIn("was preempted", self.check_again(engine))

    def test_preempted_at_once(self):
        engine = self.start_at("cancel")
        self.preempt()
        self.release()
        self.assertIn("was preempted (PREEMPTED)", self.check_again(engine))

    def test_preempted_and_requeued(self):
        for told in (":", "trap 'echo saved; exit 0' TERM"):
            with self.subTest(told=told):
                engine = self.start_at("requeue", told)
                first = self.job_in_run()
                self.preempt()
                self.release()
                slurm.wait_for(lambda: "BeginTime" in self.cluster.run("squeue", "-h", "-o", "%r"), "the job waits again")
                self.cluster.run("scontrol", "update", f"jobid={first}", "StartTime=now+3")
                self.assertNotIn("was preempted", self.check_again(engine))
                self.assertEqual(self.job_in_run(), first)

    def test_preempted_more_often_than_allowed(self):
        engine = self.start_at("grace", resubmit="0")
        self.preempt()
        self.release()
        self.ends(engine, 1)
        self.assertIn("was preempted", self.place.packages()[0]["note"])

    def test_preempted_while_no_engine_looks_and_forgotten_by_slurm(self):
        engine = self.start_at("grace")
        first = self.job_in_run()
        engine.kill()
        engine.wait()
        self.preempt()
        self.release()
        slurm.wait_for(lambda: not self.cluster.jobs(), "the jobs' end")
        real = slurm.shutil.which("squeue", path=self.cluster.env["PATH"])
        self.place.program("squeue", f'case "$*" in *--jobs={first}\\ *) echo "slurm_load_jobs error: Invalid job id specified" >&2\n'
                                     f'exit 1;; esac\nexec {real} "$@"\n')
        engine = self.place.start("continue", "run", "-r", env={"PATH": f"{self.place.root}:{self.cluster.env['PATH']}"})
        self.assertIn(f"job {first} was preempted", self.check_again(engine))

    def test_a_program_that_failed_before_its_job_is_preempted_has_failed(self):
        # The program has failed, and the rest of the job's script still works.
        (self.place.root / "first.1").touch()
        after = f"touch {self.place.root}/after; until [ -e {self.place.root}/gone ]; do sleep 0.05; done"
        self.write(values="1", launch=self.place.program("prog", "echo v=10; exit 7\n"),
                   system='{name: queue, _: grace}\n{name: postprocess, separator: "", _: "%s"}' % after)
        engine = self.place.start("run", "small.yaml")
        slurm.wait_for((self.place.root / "after").exists, "the program's end")
        self.preempt()
        slurm.wait_for(lambda: "PreemptTime=None" not in self.cluster.run("scontrol", "show", "job", self.job_of(0)),
                       "the job is being preempted")
        (self.place.root / "gone").touch()
        self.release()
        self.ends(engine, 1)
        self.assertIn("ended with exit code 7", self.place.packages()[0]["note"])
        self.assertNotIn("was preempted", self.place.log())

    def test_packs_are_preempted(self):
        for pack in ("array", "{_: steps, at_once: 2}"):
            with self.subTest(pack=pack):
                engine = self.start_at("grace", values="1,2", keys=f"pack: {pack}")
                slurm.wait_for((self.place.root / "first.2").exists, "the other program's start")
                self.preempt()
                self.release()
                self.check_again(engine, "1,10\n2,20\n")


class Daemons(FailureTest):
    def test_slurmctld_killed_and_restarted(self):
        self.write()
        engine = self.place.start("run", "small.yaml")
        self.begun(0, 1)
        self.cluster.run("scontrol", "reconfigure")
        saved = f"{self.cluster.directory}/state/job_state"
        slurm.wait_for(lambda: os.path.exists(saved), "the controller has saved its jobs")
        time_of_save = os.stat(saved).st_mtime_ns
        self.cluster.run("scontrol", "update", f"jobid={self.job_of(1)}", "Comment=x")
        slurm.wait_for(lambda: os.stat(saved).st_mtime_ns > time_of_save, "the controller has saved them again")
        self.cluster.down("slurmctld")
        self.free()
        slurm.wait_for(lambda: all((self.place.work(n) / "job.status").exists() for n in (0, 1)), "the jobs have ended")
        self.cluster.up("slurmctld")
        self.assertIn("1,10\n2,20\n", self.ends(engine, 0))
        slurm.wait_for(lambda: not self.cluster.jobs(), "the controller has heard of the ends")

    def test_a_submission_waits_for_the_controller(self):
        self.write(values="1", launch="echo v=10")
        self.cluster.down("slurmctld", signal.SIGTERM)
        engine = self.place.start("run", "small.yaml")
        log = self.place.root / "run/000000/run.log"
        slurm.wait_for(lambda: log.exists() and "Unable to contact" in log.read_text(), "a refusal")
        self.cluster.up("slurmctld")
        self.assertIn("1,10\n", self.ends(engine, 0))

    def test_munge_away_while_jobs_end(self):
        # Every command of Slurm's hangs now; the status files do not.
        self.write(execute='{name: starter, _: ""}')
        engine = self.place.start("run", "small.yaml")
        self.begun(0, 1)
        self.job_of(1)
        self.cluster.down("munged")
        self.free()
        self.assertIn("1,10\n2,20\n", self.ends(engine, 0))
        self.cluster.up("munged")
        # The controller may take the nodes for lost by now: it requeues their jobs, which wait for two minutes and do nothing.
        slurm.wait_for(lambda: not self.cluster.jobs(), "the controller has heard of the ends", 400)

    def test_sigterm_leaves_the_jobs(self):
        self.write()
        engine = self.place.start("run", "small.yaml")
        self.begun(0, 1)
        self.job_of(1)
        engine.send_signal(signal.SIGTERM)
        self.ends(engine, 1)
        self.assertEqual(len(self.cluster.jobs()), 2)
        self.free()
        code, out, err = self.place.tally("continue", "run", "-r")
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n2,20\n", out)

    def test_an_unheard_scheduler_fails_a_submission_in_the_end(self):
        self.write(values="1", launch="echo v=10", patience="1s")
        self.cluster.down("slurmctld", signal.SIGTERM)
        self.ends(self.place.start("run", "small.yaml"), 1)
        self.assertIn("Unable to contact slurm controller", self.place.packages()[0]["note"])
        self.cluster.up("slurmctld")
        slurm.wait_for(lambda: self.cluster.states() == ["idle"] * 2, "nodes idle")

    def test_an_id_that_is_used_again_is_not_taken_for_ours(self):
        self.write(values="1")
        engine = self.place.start("run", "small.yaml")
        self.begun(0)
        ours = self.job_of(0)
        # As after a controller that lost its last minutes: the job is unknown, its id is another's.
        self.cluster.down("slurmctld")
        for file in os.listdir(f"{self.cluster.directory}/state"):
            if file.startswith("job_state"):
                os.unlink(f"{self.cluster.directory}/state/{file}")
        (path := self.place.root / "other.sh").write_text("#!/bin/bash\nexit 0\n")
        conf = pathlib.Path(self.cluster.directory, "slurm.conf")
        conf.write_text(re.sub("(?<=FirstJobId=).*", str(ours), conf.read_text()))
        self.cluster.up("slurmctld")
        def submit_other():
            done = subprocess.run(["sbatch", "--parsable", "--job-name=other", str(path)], env=self.cluster.env,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, cwd=self.place.root)
            return done.stdout.strip()
        other = slurm.wait_for(submit_other, "another's job")
        self.assertEqual(other, ours)
        out = self.ends(engine, 1)
        self.assertEqual(self.place.packages()[0]["state"], LOST, out)
        self.cluster.run("scancel", other)
        slurm.wait_for(lambda: not self.cluster.jobs(), "the other job is gone")
        self.free()


if __name__ == "__main__":
    import sys
    place.main(sys.argv)

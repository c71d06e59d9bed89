#!/usr/bin/env python3
"""What job scripts source, run by bash with programs in the place of a scheduler's; tests/slurm/ has the real one.

  job_functions_test.py SOURCE_DIR
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

FUNCTIONS = pathlib.Path(sys.argv.pop(1)).resolve() / "templates/job_functions.sh"
SCRIPT = """\
{before}
. "{functions}" job.status ready error job.reason || exit
{middle}
launch() {{
{program}
}}
job_run launch
{after}
job_end
"""
SLURM = {"SLURM_JOB_ID": "7", "SLURM_JOB_NAME": "job"}
# Columns: state, end by the time limit, since when it is being preempted, reason.
ANSWER = 'case "$*" in *PreemptTime*) echo "{}" ;; esac'
RUNNING = ANSWER.format("RUNNING $(($(date +%s) + {})) N/A None")


class Functions(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tally-job-"))
        self.addCleanup(shutil.rmtree, self.root)
        self.work = self.root / "work"
        self.work.mkdir()
        (self.root / "bin").mkdir()
        self.program("squeue", RUNNING.format(600))

    def program(self, name, text):
        path = self.root / "bin" / name
        path.write_text("#!/bin/bash\n" + text + "\n")
        path.chmod(0o755)

    def start(self, program, variables, before="", middle="", after=""):
        script = SCRIPT.format(functions=FUNCTIONS, program=program, before=before, middle=middle, after=after)
        if self.text("submit.job") != script:  # bash reads it while it runs
            (self.work / "submit.job").write_text(script)
        kept = {key: value for key, value in os.environ.items()
                if not key.startswith(("SLURM", "TALLY")) and key != "TMPDIR"}
        environment = {**kept, "PATH": f"{self.root}/bin:{os.environ['PATH']}", **variables}
        with open(self.work / "stdout", "a") as out, open(self.work / "stderr", "a") as err:
            job = subprocess.Popen(["bash", "submit.job"], cwd=self.work, env=environment, stdout=out, stderr=err,
                                   start_new_session=True)
        # A scheduler ends what a script leaves running; here the test does.
        self.addCleanup(subprocess.run, ["pkill", "-KILL", "-s", str(job.pid)], check=False)
        return job

    def run_job(self, program, variables=None, **parts):
        return self.start(program, SLURM if variables is None else variables, **parts).wait(60)

    OPTIONS = "#SBATCH --signal=B:TERM@60"

    def text(self, name):
        path = self.work / name
        return path.read_text() if path.exists() else None

    def signalled(self, variables, before="", number=signal.SIGTERM):
        """The exit code of a script that is signalled while its program runs; the program does not stop for TERM."""
        os.mkfifo(self.root / "pipe")
        job = self.start(f"trap 'echo told; exit 0' USR1; trap 'exit 9' TERM; echo x > {self.root}/pipe; "
                         "while :; do sleep 0.05; done", variables, before=before)
        with open(self.root / "pipe") as pipe:
            pipe.readline()
        job.send_signal(number)
        return job.wait(60)

    def test_of_two_jobs_of_one_name_the_first_works(self):
        (self.work / "job.status.job").write_text("job\n")
        self.assertEqual(self.run_job("echo one >> ran"), 0)
        self.assertEqual(self.run_job("echo two >> ran", {**SLURM, "SLURM_JOB_ID": "8"}), 1)
        self.assertIn("job 7 of the same name works in this folder, so job 8 ends", self.text("stderr"))
        # The first one may be started again, and another submission works.
        self.assertEqual(self.run_job("echo again >> ran", {**SLURM, "SLURM_RESTART_COUNT": "1"}), 0)
        (self.work / "job.status.job").write_text("next\n")
        self.assertEqual(self.run_job("echo next >> ran", {"SLURM_JOB_ID": "9", "SLURM_JOB_NAME": "next"}), 0)
        self.assertEqual(self.text("ran"), "one\nagain\nnext\n")
        self.assertEqual(sorted(path.name for path in self.work.glob("*.claim*")),
                         ["job.status.claim-job", "job.status.claim-next"])

    def test_jobs_that_start_at_the_same_moment_claim_once(self):
        (self.work / "job.status.job").write_text("job\n")
        jobs = [self.start("echo x >> ran", {**SLURM, "SLURM_JOB_ID": str(number)}) for number in range(10, 22)]
        self.assertEqual(sorted(job.wait(60) for job in jobs), [0] + [1] * 11)
        self.assertEqual(self.text("ran"), "x\n")

    def test_an_end_is_left_in_the_files(self):
        for code in (0, 3):
            for scheduler in (SLURM, {"job_id": "7.host"}, {"job_id": "7"}):
                with self.subTest(code=code, scheduler=scheduler):
                    self.assertEqual(self.run_job(f"echo $TMPDIR > tmp; exit {code}", scheduler), code)
                    self.assertEqual(self.text("job.status"), f"{code}\n")
                    self.assertEqual((self.text("ready"), self.text("error")), ("", None) if code == 0 else (None, ""))
                    self.assertIn("/tally-7-", self.text("tmp"))
                    self.assertFalse(os.path.exists(self.text("tmp").strip()), "the temporary folder outlives the job")

    def test_the_end_of_srun_on_a_lost_node_is_not_that_of_its_program(self):
        self.assertEqual(self.run_job("echo 'srun: error: Node failure on node1' >&2; exit 0"), 1)
        self.assertEqual(self.text("job.status"), "1\n")
        self.assertEqual(self.text("job.reason"), "Node failure on node1\n")

    def test_the_words_of_an_earlier_program_do_not_count(self):
        self.assertEqual(self.run_job("true", middle="echo 'srun: error: Node failure on node1' >&2"), 0)

    def test_started_again_it_is_measured_anew(self):
        (self.work / "stdout").write_text("of an operation before the job\n")
        self.assertEqual(self.run_job("echo first; echo first >&2; exit 0"), 0)
        for restart in (1, 2):
            self.assertEqual(self.run_job("echo again; exit 3", {**SLURM, "SLURM_RESTART_COUNT": str(restart)}), 3)
            self.assertEqual(self.text("stdout"), "of an operation before the job\nagain\n")
            self.assertEqual(self.text("stderr"), "")
            self.assertEqual(self.text("job.status"), f"3\nrestart {restart}\n")
            self.assertIsNone(self.text("ready"))

    def test_the_folder_of_another_job_is_left_alone(self):
        (self.work / "job.status").write_text("0\n")
        (self.work / "job.status.job").write_text("ended\n")
        self.assertEqual(self.run_job("touch ran", {**SLURM, "SLURM_RESTART_COUNT": "1"}), 1)
        self.assertEqual((self.text("job.status"), self.text("ran"), self.text("stderr")), ("0\n", None, ""))
        self.assertEqual(self.run_job("touch ran"), 1)
        self.assertRegex(self.text("stderr"), "^job.status.job: this folder belongs to another job of its run")
        (self.work / "job.status.job").write_text("job\n")
        self.assertEqual(self.run_job("touch ran"), 0)

    def test_a_start_that_was_taken_for_lost_leaves_nothing(self):
        # A node that hangs and wakes up again: meanwhile the job has been started on another one.
        self.assertEqual(self.run_job("echo '7 1' > job.status.begun; rm -f job.status; true"), 1)
        self.assertEqual((self.text("job.status"), self.text("ready")), (None, None))

    def test_a_module_that_cannot_be_loaded_is_named(self):
        self.assertEqual(self.run_job("touch ran", middle="trap job_module_failed ERR\nfalse GCC/1\ntrap - ERR"), 1)
        self.assertEqual(self.text("job.reason"), "a module cannot be loaded: false GCC/1\n")
        self.assertEqual((self.text("job.status"), self.text("ran")), ("1\n", None))
        self.assertEqual(self.run_job("true", middle="trap job_module_failed ERR\ntrue\ntrap - ERR\nfalse"), 0)

    def test_the_first_task_that_fails_counts(self):
        words = ["prog: error: no such file", "srun: error: node2: task 9: Exited with exit code 3",
                 "srun: error: node1: tasks 0-8: Terminated"]
        self.assertEqual(self.run_job("".join(f"echo '{line}' >&2\n" for line in words) + "exit 143"), 3)
        self.assertEqual(self.text("job.reason"), "prog: error: no such file (node2: task 9: Exited with exit code 3)\n")

    def test_what_stands_behind_the_program_may_change_its_status(self):
        self.assertEqual(self.run_job("exit 3", after='[ $status -eq 3 ] && status=0'), 0)
        self.assertEqual(self.text("job.status"), "0\n")

    def test_time_that_runs_out_is_told_to_the_program(self):
        self.program("squeue", RUNNING.format(119))
        for variables, before in ((SLURM, self.OPTIONS), ({"job_id": "7"}, "job_limit=60 SECONDS=57"),
                                  ({"job_id": "7"}, "job_limit=60 job_early=120"),
                                  ({"job_id": "7"}, "job_limit=6000 SECONDS=5950")):
            with self.subTest(variables=variables):
                self.assertEqual(self.signalled(variables, before), 4)
                self.assertEqual((self.text("job.status"), self.text("job.reason")), ("4\n", "time limit\n"))
                os.unlink(self.root / "pipe")

    def test_a_job_that_is_cancelled_leaves_no_status(self):
        self.program("squeue", "echo CANCELLED 0 N/A None")
        for variables, before in ((SLURM, self.OPTIONS), ({"job_id": "7"}, "job_limit=6000"),
                                  # A short job is not all of it near its end, and what nobody knows is no time limit.
                                  ({"job_id": "7"}, "job_limit=60"), ({"job_id": "7"}, ""),
                                  ({"job_id": "7"}, "job_limit=180"), ({"job_id": "7"}, ""),
                                  ({"job_id": "7"}, "job_limit=6000 job_early=660")):
            with self.subTest(variables=variables):
                self.assertEqual(self.signalled(variables, before), 143)
                self.assertEqual((self.text("job.status"), self.text("job.reason")), (None, None))
                os.unlink(self.root / "pipe")

    def told(self, answer, before="", variables=SLURM, number=signal.SIGTERM):
        """Status and reason of a script that gets a signal while Slurm gives this answer."""
        self.program("squeue", answer)
        for name in ("job.status", "job.reason"):
            (self.work / name).unlink(missing_ok=True)
        code = self.signalled(variables, before, number)
        os.unlink(self.root / "pipe")
        self.assertEqual((self.text("job.status") or f"{code}\n").splitlines()[0], f"{code}")
        return self.text("job.status"), self.text("job.reason")

    def test_what_slurm_says_decides_what_a_signal_means(self):
        limit = ("4\n", "time limit\n")
        near, far = RUNNING.format(100), RUNNING.format(200)
        for answer, before in ((near, self.OPTIONS), (far, "#SBATCH --signal=B:USR2@200"), (near, "#SBATCH --signal=B:TERM"),
                               (far, f"{self.OPTIONS}\n#SBATCH --signal B:10@300"), (near, '#SBATCH --signal="B:TERM@60"'),
                               (ANSWER.format("COMPLETING 0 N/A TimeLimit"), ""), (ANSWER.format("TIMEOUT 0 N/A TimeLimit"), ""),
                               (near.replace("RUNNING", "SIGNALING"), self.OPTIONS), (RUNNING.format(-5), "")):
            with self.subTest(answer=answer, before=before):
                self.assertEqual(self.told(answer, before), limit)
        for answer, before in ((far, self.OPTIONS), (near, "#SBATCH --signal=B:USR2@10"), (near, ""), (far, ""),
                               (ANSWER.format("RUNNING N/A N/A None"), self.OPTIONS)):
            with self.subTest(answer=answer, before=before):
                status, reason = self.told(answer, before)
                self.assertEqual(status, "143\n")
                self.assertRegex(reason, "^the job got signal TERM( [0-9]+ s before its time limit)?, and not from Slurm\n$")
        for answer in (ANSWER.format(""), "exit 1", "kill -TERM $$"):
            with self.subTest(answer=answer):
                self.assertEqual(self.told(answer, self.OPTIONS),
                                 ("143\nunasked\n", "the job got signal TERM, and Slurm does not say why\n"))
        # Newer ones say to the script itself when its time is over.
        for left, expected in ((100, ("4\nunasked\n", limit[1])), (1000, ("143\nunasked\n", "the job got signal TERM, and Slurm does not say why\n"))):
            end = {**SLURM, "SLURM_JOB_END_TIME": str(int(time.time()) + left)}
            self.assertEqual(self.told("exit 1", self.OPTIONS, end), expected)
        self.assertIn("signal USR2 ", self.told(far, self.OPTIONS, number=signal.SIGUSR2)[1])
        # The signal that the options name, in any of sbatch's spellings.
        for words, number in (("B:HUP@60", signal.SIGHUP), ("BR:INT@60", signal.SIGINT), ("b:sigusr1@60", signal.SIGUSR1),
                              ('"B:XCPU@60"', signal.SIGXCPU), ("B:1@60", signal.SIGHUP)):
            with self.subTest(words=words):
                self.assertEqual(self.told(near, f"#SBATCH --signal={words}", number=number), limit)

    def test_a_preempted_job_says_so(self):
        preempted = ANSWER.format("RUNNING $(($(date +%s) + 20)) 1700000000 None")
        self.assertEqual(self.told(preempted, self.OPTIONS), ("143\npreempted\n", None))
        for code in (0, 4, 143):
            self.assertEqual(self.run_job(f"exit {code}"), 143)
            self.assertEqual(self.text("job.status"), "143\npreempted\n")
            self.assertIsNone(self.text("ready"))
        self.assertEqual(self.run_job("exit 0", {**SLURM, "SLURM_RESTART_COUNT": "2"}), 143)
        self.assertEqual(self.text("job.status"), "143\nrestart 2\npreempted\n")
        # What has ended before is not preempted.
        self.program("squeue", RUNNING.format(600))
        self.assertEqual(self.run_job("exit 7", after=f"echo 'echo RUNNING 0 1700000000 None' > {self.root}/bin/squeue"), 7)
        self.assertEqual(self.text("job.status"), "7\n")

    def test_a_scheduler_that_does_not_answer_is_not_waited_for(self):
        self.program("squeue", "exec sleep 1000")
        for code in (0, 7):
            self.assertEqual(self.run_job(f"exit {code}"), code)
            self.assertEqual(self.text("job.status"), f"{code}\nunasked\n")

    def test_a_task_of_an_array_asks_for_itself(self):
        # The id of one of them is that of the whole array.
        self.program("squeue", 'case "$*" in *--jobs=7_3*) echo "RUNNING 1 N/A None" ;; *) echo "PENDING 0 N/A None" ;; esac')
        self.program("scancel", f'echo "$@" > {self.root}/cancelled')
        array = {**SLURM, "SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}
        self.assertEqual(self.run_job("exit 5", array), 5)

    def test_the_environment_is_the_scripts(self):
        (self.work / "job.status.env").write_text("export FROM_DO='two  words'\nunset GONE\n")
        for value in ("NONE", "NIL", "HOME,A", "ALL,A=b"):
            self.assertEqual(self.run_job('echo "${SLURM_EXPORT_ENV-none} $FROM_DO ${GONE-gone}" > seen',
                                          {**SLURM, "SLURM_EXPORT_ENV": value, "GONE": "here"}), 0)
            self.assertEqual(self.text("seen"), "none two  words gone\n")

    def test_the_temporary_folder_of_several_nodes_is_where_all_see_it(self):
        self.assertEqual(self.run_job('echo "$TMPDIR" > tmp', {**SLURM, "SLURM_JOB_NUM_NODES": "2"}), 0)
        self.assertTrue(self.text("tmp").startswith(f"{self.work}/tally-7-"))
        self.assertEqual(self.run_job("true", before="job_tmp=/none/there"), 1)
        self.assertEqual(self.text("job.reason"), "no temporary folder can be made in '/none/there'\n")

    @unittest.skipUnless(shutil.which("shellcheck"), "shellcheck is not installed")
    def test_shellcheck(self):
        done = subprocess.run(["shellcheck", "--severity=warning", str(FUNCTIONS)], stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.stdout, "")

    def test_names_are_its_own(self):
        # Beside those that a script may use: it shares the shell with the lines of the site and of the step.
        names = set(re.findall(r"^([a-z_]+)\(\)", FUNCTIONS.read_text(), re.MULTILINE))
        self.assertEqual([name for name in names if not name.startswith("job_")], [])


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""The engine killed at each stage of a job's way, then continued: one job a workpackage, the right table.

killed_test.py TALLY [TEST ...]
"""
import signal
import sys

import cluster as slurm
import place
from failures_test import FailureTest


class Killed(FailureTest):
    def sbatch(self, text):
        """A command `sbatch` before the real one in PATH; $REAL is that. Once only: `once` tells whether it is now."""
        folder = self.place.root / "bin"
        folder.mkdir(exist_ok=True)
        real = slurm.shutil.which("sbatch", path=slurm.search_path())
        once = f'once() {{ mkdir "{self.place.root}/once" 2>/dev/null; }}\nREAL={real}\n'
        self.place.program("bin/sbatch", once + text)
        return {"PATH": f"{folder}:{slurm.search_path()}"}

    def names(self):
        """Names of all jobs that there have been."""
        return self.cluster.run("squeue", "-h", "--states=all", "-o", "%j").split()

    def check_continued(self, env=None):
        self.free()
        code, out, err = self.place.tally("continue", "run", env=env)
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n2,20\n", out)
        packages = self.place.packages()
        for package in packages:
            self.assertEqual(self.names().count(package["job_name"]), 1)
        run = [name for name in self.names() if name[-8:] in {package["job_name"][-8:] for package in packages}]
        self.assertEqual(len(run), 2)
        jobs = [line for line in self.place.log().splitlines() if ": job " in line or "found job" in line]
        self.assertEqual(len({line.split("job ")[1].split()[0] for line in jobs}), 2, self.place.log())

    def killed(self, env):
        engine = self.place.start("run", "small.yaml", env=env)
        code, _ = self.place.finish(engine)
        self.assertEqual(code, -signal.SIGKILL)

    def test_before_the_submission(self):
        self.write()
        self.killed(self.sbatch('if once; then kill -9 $PPID; exit 1; fi; exec $REAL "$@"'))
        self.assertEqual(self.cluster.jobs(), [])
        self.assertTrue(all(package["job_name"] and not package["job_id"] for package in self.place.packages()))
        self.check_continued()

    def test_between_submission_and_journal(self):
        self.write()
        self.killed(self.sbatch('if once; then $REAL "$@"; kill -9 $PPID; exit 1; fi; exec $REAL "$@"'))
        self.assertEqual(len(self.cluster.jobs()), 1)
        self.assertFalse(self.place.packages()[0]["job_id"])
        self.check_continued()

    def test_an_answer_that_is_lost(self):
        self.write()
        env = self.sbatch('if once; then $REAL "$@" >/dev/null; echo "sbatch: error: Socket timed out" >&2; exit 1; fi;'
                          'exec $REAL "$@"')
        engine = self.place.start("run", "small.yaml", env=env)
        self.begun(0, 1)
        slurm.wait_for(lambda: "found job" in self.place.log(), "the job is found")
        self.free()
        self.ends(engine, 0)
        self.check_continued()

    def test_a_number_of_another_job_behind_the_id(self):
        other = self.cluster.run("sbatch", "--parsable", "-J", "other", "-o", "/dev/null", "--wrap", "sleep 300").strip()
        self.write(values="1", launch="bash -c 'echo v=${i}0'")
        code, out, err = self.place.tally("run", "small.yaml", env=self.sbatch(f'$REAL "$@"; echo {other}'))
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n", out)
        self.assertIn(other, [job for job, _, _ in self.cluster.jobs()])
        self.assertNotIn(f"job {other} is cancelled", self.place.log())
        self.assertEqual(self.place.tally("continue", "run")[0], 0)
        self.assertIn(other, [job for job, _, _ in self.cluster.jobs()])
        self.cluster.run("scancel", other)

    def submissions(self):
        """An array is one."""
        return len(set(self.cluster.run("squeue", "-h", "--states=all", "-o", "%F").split()))

    ENDS = {"killed": "kill -KILL $$", "told to end": "kill -TERM $$", "a wrapper's exit code": "exit 137",
            "no words": "exit 1", "timeout": "exit 124"}
    WORDS = {"a hook fails": "echo 'hook: no space left' >&2; exit 1", "usage": "echo 'sbatch: usage' >&2; exit 255",
             "rejected, it says": "echo 'sbatch: error: Batch job submission failed: Invalid account' >&2; exit 1"}

    def check_submitted_once(self, sbatch, jobs=2):
        """A run whose sbatch is another one has both results, and each job has been submitted once."""
        before = self.submissions()
        name = f"run{before}"
        code, out, err = self.place.tally("run", "small.yaml", "-o", name, env=self.sbatch(sbatch))
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n2,20\n", out)
        self.assertEqual(self.submissions() - before, jobs)
        return (self.place.root / name / "000000/run.log").read_text()

    def test_sbatch_ends_badly_when_slurm_has_the_job(self):
        self.write(launch="bash -c 'echo v=${i}0'")
        for printed in ('$REAL "$@"', '$REAL "$@" > /dev/null'):
            for end, words in {**self.ENDS, **self.WORDS}.items():
                with self.subTest(printed=printed, end=end):
                    self.assertIn("found job", self.check_submitted_once(f"{printed}; {words}"))

    def test_sbatch_ends_badly_when_slurm_has_a_pack(self):
        for pack in ("array", "steps"):
            self.write(launch="bash -c 'echo v=${i}0'", keys=f"pack: {pack}")
            for end in ("killed", "no words"):
                with self.subTest(pack=pack, end=end):
                    log = self.check_submitted_once(f'$REAL "$@"; {self.ENDS[end]}', jobs=1)
                    self.assertIn("found job", log)

    def test_sbatch_ends_before_slurm_has_the_job(self):
        self.write(launch="bash -c 'echo v=${i}0'")
        for end, words in self.ENDS.items():
            with self.subTest(end=end):
                self.check_submitted_once(f'if once; then {words}; fi; exec $REAL "$@"')
                (self.place.root / "once").rmdir()

    def test_an_engine_without_an_answer_leaves_the_question_to_the_next(self):
        """sbatch is killed, and Slurm cannot be asked for the job's name until the run has given up."""
        self.write(launch="bash -c 'echo v=${i}0'", patience="1s")
        env = self.sbatch('$REAL "$@"; kill -KILL $$')
        self.place.program("bin/squeue", "echo 'Unable to contact slurm controller' >&2; exit 1\n")
        code, out, err = self.place.tally("run", "small.yaml", env=env)
        self.assertEqual(code, 1, out + err)
        self.assertIn("cannot be told", self.place.packages()[0]["note"])
        slurm.wait_for(lambda: not self.cluster.jobs(), "the jobs have ended")
        self.check_continued()

    def test_a_submission_that_fails_in_words_has_failed(self):
        self.write(values="1", launch="bash -c 'echo v=10'")
        for end, words in self.WORDS.items():
            with self.subTest(end=end):
                name = f"run-{len(words)}"
                code, out, err = self.place.tally("run", "small.yaml", "-o", name, env=self.sbatch(words))
                self.assertEqual(code, 1, out + err)
                self.assertIn(words.split("'")[1], out)

    def test_two_jobs_of_one_submission(self):
        """Each submission becomes two jobs, of which the engine knows one: the first to start works, the other one ends."""
        self.write(launch="bash -c 'echo ran >> ran; echo v=${i}0'")
        for known, sbatch in (("last", '$REAL "$@" > /dev/null; exec $REAL "$@"'),
                              ("first", '$REAL "$@" || exit; exec $REAL "$@" > /dev/null')):
            with self.subTest(known=known):
                before = len(self.names())
                code, out, err = self.place.tally("run", "small.yaml", env=self.sbatch(sbatch))
                self.assertEqual(code, 0, out + err)
                self.assertIn("1,10\n2,20\n", out)
                slurm.wait_for(lambda: not self.cluster.jobs(), "all jobs have ended")
                self.assertEqual(len(self.names()) - before, 4)
                for number in (0, 1):
                    work = self.place.work(number, run={"last": "000000", "first": "000001"}[known])
                    self.assertEqual((work / "ran").read_text(), "ran\n")

    def test_other_words_on_sbatchs_standard_output(self):
        self.write(launch="bash -c 'echo v=${i}0'")
        code, out, err = self.place.tally("run", "small.yaml", env=self.sbatch(
            'echo "Welcome, 7 jobs"; id=$($REAL "$@") || exit; echo "${id/;/ }"; echo "see https://example.org/12"'))
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n2,20\n", out)

    def test_transient_errors_are_retried(self):
        self.write()
        env = self.sbatch(f'if mkdir {self.place.root}/1 2>/dev/null || mkdir {self.place.root}/2 2>/dev/null; then '
                          'echo "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation" >&2;'
                          ' exit 1; fi; exec $REAL "$@"')
        self.free()
        code, out, err = self.place.tally("run", "small.yaml", env=env)
        self.assertEqual(code, 0, out + err)
        self.assertIn("trying again", self.place.log())
        self.check_continued()

    def test_while_jobs_run(self):
        self.write()
        engine = self.place.start("run", "small.yaml")
        self.begun(0, 1)
        self.job_of(1)
        engine.kill()
        engine.wait()
        # What the jobs have written so far is theirs: nothing is cut off.
        self.check_continued()

    def test_when_jobs_have_ended_meanwhile(self):
        self.write()
        engine = self.place.start("run", "small.yaml")
        self.begun(0, 1)
        self.job_of(1)
        engine.kill()
        engine.wait()
        self.free()
        slurm.wait_for(lambda: not self.cluster.jobs(), "the jobs have ended")
        self.check_continued()

    def test_local_work_beside_jobs_does_not_end_them(self):
        self.write()
        text = (self.place.root / "small.yaml").read_text()
        local = ("step:\n  - {name: local, do: \"touch $jube_benchmark_home/local; "
                 "until [ -e $jube_benchmark_home/free ]; do sleep 0.05; done\"}\n")
        (self.place.root / "small.yaml").write_text(text.replace("step:\n", local, 1))
        engine = self.place.start("run", "small.yaml", "-j", "4")
        slurm.wait_for(lambda: len(list(self.place.root.glob("run/000000/*/work/begun"))) == 2, "the jobs have begun")
        slurm.wait_for((self.place.root / "local").exists, "the local command has begun")
        engine.kill()
        engine.wait()
        running = self.cluster.jobs()
        self.free()
        code, out, err = self.place.tally("continue", "run")
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n2,20\n", out)
        self.assertEqual(len(running), 2)


if __name__ == "__main__":
    place.main(sys.argv)

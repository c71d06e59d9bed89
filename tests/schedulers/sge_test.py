#!/usr/bin/env python3
"""Workflows on a private Grid Engine, by its table.   sge_test.py TALLY [--train TALLY_TRAIN] [TEST ...]"""
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import sys
import unittest

import grid_engine
from cluster import SKIPPED, wait_for
import place
from place import SOURCE, ClusterTest
from workflow import workflow

TRAIN = ""
WAITS = "bash -c 'echo v=${i}0; touch $jube_wp_abspath/begun; until [ -e $jube_benchmark_home/free ]; do sleep 0.05; done'"
DONE = "bash -c 'echo v=${i}0'"


class SgeTest(ClusterTest):
    cancel = ("qdel", "-f")

    @classmethod
    def new_cluster(cls):
        return grid_engine.GridEngine()

    def write(self, values="1,2", launch=DONE, site="", keys="", resources="", step=None):
        (self.place.root / "site.yaml").write_text(
            f"platform:\n  name: site\n  scheduler: sge\n  poll_slowest: 1s\n  status_grace: 3s\n{site}")
        self.place.write(values=values, launch=launch,
                         keys=f"platform: site\n    {keys}", text=workflow(resources or "nodes: 1, time: 5m"))

    def site(self, **keys):
        return "".join(f"  {name}: {value}\n" for name, value in keys.items())

    def qsub(self, text):
        """A command `qsub` before the real one in PATH; $REAL is that. `once` tells whether it is called first."""
        (self.place.root / "bin").mkdir(exist_ok=True)
        once = f'once() {{ mkdir "{self.place.root}/once" 2>/dev/null; }}\nREAL={grid_engine.PROGRAMS}/qsub\n'
        self.place.program("bin/qsub", once + text)
        return {"PATH": f"{self.place.root}/bin:{self.cluster.env['PATH']}"}

    def free(self):
        (self.place.root / "free").touch()

    def begun(self, *numbers):
        wait_for(lambda: all((self.place.work(n) / "begun").exists() for n in numbers), f"jobs of {numbers} begun")

    def job_of(self, number):
        def known():
            try:
                packages = self.place.packages()
            except (OSError, sqlite3.Error):  # the run has just begun
                return None
            return packages[number]["job_id"] if number < len(packages) else None
        return wait_for(known, "a job id in the journal")

    def ends(self, engine, code):
        got, out = self.place.finish(engine)
        self.assertEqual(got, code, out)
        return out

    def note(self, number=0, run="000000"):
        return self.place.packages(run)[number]["note"]


class Jobs(SgeTest):
    def test_a_sweep_ends_in_its_table(self):
        self.write(values="1,2,3", keys="env: {WORD: 'two words'}",
                   launch="bash -c 'echo v=${i}0; echo \"$WORD\" $JOB_NAME > word'")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertIn("i,v\n1,10\n2,20\n3,30\n", out)
        for package in self.place.packages():
            self.assertRegex(package["job_id"], r"^\d+$")
            self.assertEqual((self.place.work(package["id"]) / "word").read_text(), f"two words {package['job_name']}\n")

    def test_columns_of_what_the_jobs_used(self):
        self.write(launch="bash -c 'echo v=1; sleep 1'")
        path = self.place.root / "small.yaml"
        path.write_text(path.read_text().replace("column: [i, v]", "column: [i, job_id, job_nodes, job_elapsed]"))
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, rf"\n1,\d+,(all.q@)?{self.cluster.host},\d+\n2,\d+,(all.q@)?{self.cluster.host},\d+\n")

    def test_of_the_account_only_what_ended_since_the_run_began_is_read(self):
        old = "all.q:old:g:root:old:1:sge:0:1500000000:1500000000:1500000000:0:0:" + ":".join(["0"] * 32) + "\n"
        account = pathlib.Path(self.cluster.directory) / "cell/common/accounting"
        account.write_text(old * 1000 + (account.read_text() if account.exists() else ""))
        (self.place.root / "bin").mkdir()
        self.place.program("bin/qacct", f'cat > "{self.place.root}/read"\n'
                           f'exec {grid_engine.PROGRAMS}/qacct "$@" < "{self.place.root}/read"\n')
        self.write(values="1", launch="bash -c 'echo v=1; sleep 1'")
        path = self.place.root / "small.yaml"
        path.write_text(path.read_text().replace("column: [i, v]", "column: [i, job_id, job_elapsed]"))
        code, out, err = self.place.tally("run", "small.yaml", env={"PATH": f"{self.place.root}/bin:{self.cluster.env['PATH']}"})
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"\n1,\d+,\d+\n")
        read = (self.place.root / "read").read_text()
        self.assertRegex(read, rf"(?m)^all\.q:{self.cluster.host}:")
        self.assertNotIn(":old:", read)

    def test_a_failing_program(self):
        self.write(values="0,7", launch="bash -c 'echo v=1; echo last words >&2; exit $i'")
        code, out, _ = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1)
        self.assertIn("0,1,done\n", out)
        self.assertIn("exit code 7: last words", out)

    def test_a_program_that_is_not_there(self):
        self.write(values="1", launch="no-such-program")
        self.assertEqual(self.place.tally("run", "small.yaml")[0], 1)
        self.assertIn("127", self.note())

    def test_a_module_that_cannot_be_loaded_ends_the_job_before_its_program(self):
        self.write(values="1", site=self.site(modules="[NoSuchModule]"))
        self.assertEqual(self.place.tally("run", "small.yaml")[0], 1)
        self.assertIn("a module cannot be loaded: module load NoSuchModule", self.note())

    def test_an_unknown_queue(self):
        self.write(values="1", resources="nodes: 1, partition: nowhere.q")
        code, out, _ = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1)
        self.assertIn('Job was rejected because job requests unknown queue "nowhere.q"', out)

    def test_an_unknown_project(self):
        self.write(values="1", resources="nodes: 1, account: nobody")
        self.assertEqual(self.place.tally("run", "small.yaml")[0], 1)
        self.assertIn('the requested project "nobody" does not exist', self.note())

    def test_a_resource_that_does_not_exist(self):
        self.write(values="1", resources="nodes: 1, options: {l: no_such=2}")
        self.assertEqual(self.place.tally("run", "small.yaml")[0], 1)
        self.assertIn('unknown resource "no_such"', self.note())

    def test_options_that_qsub_does_not_take(self):
        for options, words in (("{N: name}", "option 'N' is one that Tally sets itself"),
                               ("{q: all.q}", "option 'q' has the meaning of the key 'partition'"),
                               ("{l: h_rt=10}", "option 'l: h_rt' has the meaning of the key 'time'"),
                               ("{notifi: true}", "did you mean 'notify'?"),
                               ("{R: true}", "option 'R' takes a value"), ("{now: 'y'}", "takes no value")):
            with self.subTest(options=options):
                self.write(resources=f"nodes: 1, options: {options}")
                code, _, err = self.place.tally("validate", "small.yaml")
                self.assertEqual(code, 2)
                self.assertIn(words, err)

    def test_options_that_it_takes(self):
        self.write(values="1", resources="nodes: 1, tasks_per_node: 2, memory: 10M, gpus_per_node: 2, options: {pe: mpi 3, R: 'y', ac: 'A=a b', notify: false}",
                   launch="bash -c 'echo v=${i}0; qstat -j $JOB_ID > job; echo $NSLOTS > slots'", site=self.site(launcher="none"))
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertEqual((self.place.work(0) / "slots").read_text(), "3\n")
        job = (self.place.work(0) / "job").read_text()
        self.assertRegex(job, r"hard resource_list: +h_rt=1800,s_rt=1740,mem_free=10M,gpu=2")
        self.assertRegex(job, r"context: +A=a b")
        self.assertNotRegex(job, r"notify: +TRUE")

    def test_a_job_that_can_never_start_and_pending_limit(self):
        self.write(values="1", site=self.site(pending_limit="2s", launcher="none"), resources="nodes: 1, tasks_per_node: 500")
        self.assertEqual(self.place.tally("run", "small.yaml")[0], 1)
        self.assertIn("longer than its pending_limit of 2 s (qw)", self.note())

    def test_a_job_in_error_state_is_cancelled(self):
        # Its folder is gone when it starts: Grid Engine holds such a job in state Eqw for ever.
        self.write(values="1", resources="nodes: 1, options: {v: X=1}")
        env = self.qsub('$REAL -h "$@"')
        engine = self.place.start("run", "small.yaml", env=env)
        job = self.job_of(0)
        script = self.place.work(0)
        os.rename(script, f"{script}.away")
        self.cluster.run("qrls", job)
        wait_for(lambda: any("E" in state for _, _, state in self.cluster.jobs()), "the error state")
        os.rename(f"{script}.away", script)
        self.ends(engine, 1)
        self.assertIn("it would wait in the queue for ever, for the reason Eqw", self.note())

    def test_jobs_in_flight(self):
        self.write(values="1,2,3", launch=WAITS, site=self.site(jobs_in_flight=1))
        engine = self.place.start("run", "small.yaml")
        self.begun(0)
        self.job_of(0)
        self.assertEqual([package["job_id"] is None for package in self.place.packages()], [False, True, True])
        self.free()
        self.assertIn("1,10\n2,20\n3,30\n", self.ends(engine, 0))

    def test_a_full_queue(self):
        self.cluster.configure(max_u_jobs=2)
        self.addCleanup(lambda: self.cluster.configure(max_u_jobs=0))
        self.write(values="1,2,3,4,5")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertIn("i,v\n1,10\n2,20\n3,30\n4,40\n5,50\n", out)
        self.assertIn("only 2 jobs are allowed per user", self.place.log())

    def test_time_limit(self):
        self.write(launch="bash -c 'echo v=${i}0; exec sleep 600'", values="1", resources="nodes: 1, time: 8s")
        code, out, _ = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1)
        self.assertIn("time limit", self.note())
        self.write(launch="bash -c 'echo v=${i}0; exec sleep 600'", values="1", resources="nodes: 1, time: 8s", keys="expect: [timeout]")
        code, out, _ = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out)
        self.assertIn("1,10,EXPECTED\n", out)

    def test_killed_at_the_time_limit(self):
        # Without a warning. With one, KILL would come a minute (the queue's `notify`) after the limit.
        self.write(launch="bash -c 'echo v=${i}0; exec sleep 600'", values="1", site=self.site(signal="none"),
                   resources="nodes: 1, time: 5s, options: {notify: false}")
        self.assertEqual(self.place.tally("run", "small.yaml")[0], 1)
        self.assertIn("TIMEOUT (37", self.note())

    def test_a_job_gets_an_environment_of_its_own(self):
        self.write(values="1", launch="bash -c 'echo v=${i}0; env > env'")
        code, out, err = self.place.tally("run", "small.yaml", env={"OMP_PLACES": "cores", "LC_TIME": "C"})
        self.assertEqual(code, 0, out + err)
        lines = (self.place.work(0) / "env").read_text().splitlines()
        self.assertNotIn("OMP_PLACES=cores", lines)
        self.assertIn("LC_TIME=C", lines)

    def test_qdel_from_outside(self):
        self.write(launch=WAITS)
        engine = self.place.start("run", "small.yaml")
        self.begun(0, 1)
        self.cluster.run("qdel", self.job_of(0))
        wait_for(lambda: len(self.cluster.jobs()) == 1, "the job is gone")
        self.free()
        self.assertIn("2,20,done\n", self.ends(engine, 1))
        self.assertRegex(self.note(), "job .*FAILED|CANCELLED")
        self.assertNotIn("1,10", self.place.table())

    def test_qdel_of_a_job_that_waits(self):
        self.write(values="1", site=self.site(launcher="none"), resources="nodes: 1, tasks_per_node: 500")
        engine = self.place.start("run", "small.yaml")
        self.cluster.run("qdel", self.job_of(0))
        self.ends(engine, 1)
        self.assertEqual(self.place.packages()[0]["state"], 6)  # LOST: its account has no record


class Daemons(SgeTest):
    def test_qmaster_killed_and_restarted(self):
        self.write(launch=WAITS)
        engine = self.place.start("run", "small.yaml")
        self.begun(0, 1)
        wait_for(lambda: [state for _, _, state in self.cluster.jobs()] == ["r", "r"], "qmaster knows that they run")
        self.cluster.down("qmaster")
        self.free()
        wait_for(lambda: all((self.place.work(n) / "job.status").exists() for n in (0, 1)), "the jobs have ended")
        self.cluster.up("qmaster")
        self.assertIn("1,10\n2,20\n", self.ends(engine, 0))
        # execd tells it of their end once more, after a while.
        wait_for(lambda: not self.cluster.jobs(), "qmaster knows that they have ended", 180)

    def test_a_submission_waits_for_qmaster(self):
        self.write()
        self.cluster.down("qmaster")
        engine = self.place.start("run", "small.yaml")
        wait_for(lambda: (self.place.root / "run/000000/run.log").exists() and "trying again" in self.place.log(), "a try", 120)
        self.cluster.up("qmaster")
        self.assertIn("1,10\n2,20\n", self.ends(engine, 0))

    def test_an_unheard_scheduler_fails_a_submission_in_the_end(self):
        self.write(values="1", site=self.site(submit_patience="1s"))
        self.cluster.down("qmaster")
        self.addCleanup(lambda: wait_for(lambda: self.cluster.quietly("qstat", "-f"), "qmaster answers"))
        self.addCleanup(self.cluster.up, "qmaster")
        code, out, _ = self.place.tally("run", "small.yaml")
        self.cluster.up("qmaster")
        self.assertEqual(code, 1)
        self.assertIn("cannot be told", self.note())

    def test_a_host_is_lost(self):
        self.write(launch=WAITS, values="1", site=self.site(resubmit=1))
        engine = self.place.start("run", "small.yaml")
        self.begun(0)
        first = self.job_of(0)
        self.cluster.crash()
        wait_for(lambda: "u" in self.cluster.queue_state(), "the host is unknown")
        self.free()
        self.cluster.up("execd")
        self.assertIn("1,10\n", self.ends(engine, 0))
        self.assertNotEqual(self.job_of(0), first)

    def test_a_host_is_lost_while_no_engine_looks(self):
        self.write(launch=WAITS, values="1", site=self.site(resubmit=0))
        engine = self.place.start("run", "small.yaml")
        self.begun(0)
        self.job_of(0)
        engine.kill()
        self.place.finish(engine)
        self.cluster.crash()
        self.cluster.up("execd")
        wait_for(lambda: not self.cluster.jobs(), "Grid Engine has noticed")
        code, out, _ = self.place.tally("continue", "run")
        self.assertEqual(code, 1, out)
        self.assertNotIn("1,10,done", out)


class Engine(SgeTest):
    def names(self):
        """Names of all jobs that there have been."""
        account = self.cluster.quietly("qacct", "-j") or ""
        return re.findall(r"^jobname +(\S+)", account, re.M) + [name for _, name, _ in self.cluster.jobs()]

    def check_continued(self):
        self.free()
        code, out, err = self.place.tally("continue", "run")
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n2,20\n", out)
        wait_for(lambda: not self.cluster.jobs(), "the jobs have ended")
        for package in self.place.packages():
            wait_for(lambda: self.names().count(package["job_name"]) == 1, "one job of the name in the account", 20)

    def killed(self, env):
        code, _ = self.place.finish(self.place.start("run", "small.yaml", env=env))
        self.assertEqual(code, -signal.SIGKILL)

    def test_before_the_submission(self):
        self.write()
        self.killed(self.qsub('if once; then kill -9 $PPID; exit 1; fi; exec $REAL "$@"'))
        self.assertEqual(self.cluster.jobs(), [])
        self.check_continued()

    def test_between_submission_and_journal(self):
        self.write()
        self.killed(self.qsub('if once; then $REAL "$@"; kill -9 $PPID; exit 1; fi; exec $REAL "$@"'))
        self.assertFalse(self.place.packages()[0]["job_id"])
        self.check_continued()

    def test_an_answer_that_is_lost(self):
        self.write(launch=WAITS)
        env = self.qsub('if once; then $REAL "$@" > /dev/null; echo "error: commlib error: got read error" >&2; exit 1; fi;'
                        'exec $REAL "$@"')
        engine = self.place.start("run", "small.yaml", env=env)
        self.begun(0, 1)
        wait_for(lambda: "found job" in self.place.log(), "the job is found")
        self.free()
        self.ends(engine, 0)
        self.check_continued()

    def test_qsub_ends_badly_when_grid_engine_has_the_job(self):
        self.write()
        for end in ("kill -KILL $$", "exit 137", "exit 1", "echo 'hook: no space left' >&2; exit 1"):
            with self.subTest(end=end):
                folder = f"run{len(end)}"
                code, out, err = self.place.tally("run", "small.yaml", "-o", folder, env=self.qsub(f'$REAL "$@"; {end}'))
                self.assertEqual(code, 0, out + err)
                names = re.findall(r"found job \d+ \((\S+)\)", (self.place.root / folder / "000000/run.log").read_text())
                self.assertEqual(len(set(names)), 2)
                for name in names:
                    wait_for(lambda: self.names().count(name) == 1, "one job of the name in the account", 20)

    def test_qsub_fails_twice_and_prints_other_words(self):
        self.write(values="1")
        env = self.qsub(f'n=$(cat {self.place.root}/n 2> /dev/null); echo x$n > {self.place.root}/n\n'
                        'if [ "$n" != xx ]; then echo "error: unable to send message to qmaster" >&2; exit 1; fi\n'
                        'echo "welcome to the cluster 42"; $REAL "$@"; echo "see you"')
        code, out, err = self.place.tally("run", "small.yaml", env=env)
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n", out)

    def test_one_submission_becomes_two_jobs(self):
        self.write(values="1", launch="bash -c 'echo v=${i}0; echo x >> ran; sleep 2'")
        code, out, err = self.place.tally("run", "small.yaml", env=self.qsub('$REAL "$@" > /dev/null; exec $REAL "$@"'))
        self.assertEqual(code, 0, out + err)
        self.assertEqual((self.place.work(0) / "ran").read_text(), "x\n")

    def test_while_jobs_run(self):
        self.write(launch=WAITS)
        engine = self.place.start("run", "small.yaml")
        self.begun(0, 1)
        self.job_of(1)
        engine.kill()
        self.place.finish(engine)
        out = self.place.tally("status", "run")[1]
        self.assertIn("jobs: 0 queued, 2 running, 0 ended", out)
        self.check_continued()

    def test_when_jobs_have_ended_meanwhile(self):
        self.write(launch=WAITS)
        engine = self.place.start("run", "small.yaml")
        self.begun(0, 1)
        self.job_of(1)
        engine.kill()
        self.place.finish(engine)
        self.free()
        wait_for(lambda: not self.cluster.jobs(), "the jobs have ended")
        self.check_continued()

    def test_sigterm_leaves_the_jobs(self):
        self.write(launch=WAITS)
        engine = self.place.start("run", "small.yaml")
        self.begun(0, 1)
        engine.send_signal(signal.SIGTERM)
        self.place.finish(engine)
        self.assertEqual(len(self.cluster.jobs()), 2)
        self.check_continued()

    def test_without_waiting_continue_picks_up(self):
        self.write(launch=WAITS)
        code, _, _ = self.place.tally("run", "small.yaml", "--no-wait")
        self.assertEqual(code, 1)
        self.check_continued()


class Detect(SgeTest):
    def test_what_grid_engine_says_is_a_platform(self):
        code, out, err = self.place.tally("platform", "detect", "--scheduler", "sge", "-o", "slurm.yaml")
        self.assertEqual(code, 0, out + err)
        text = (self.place.root / "slurm.yaml").read_text()
        self.assertRegex(text, r"\n  scheduler: sge\n  partition: all\.q +# all\.q: 1 node of \d+ CPUs and [\d.]+G\n")
        self.assertEqual(self.place.tally("validate", "slurm.yaml")[0], 0)
        code, out, err = self.place.tally("validate", str(SOURCE / "workflows/quickstart.yaml"), "--tag", "slurm",
                                          "--include-path", str(self.place.root))
        self.assertEqual(code, 0, out + err)
        (self.place.root / "site.yaml").write_text(text)
        self.place.write(values="1,2", launch=DONE, keys="platform: site", text=workflow("nodes: 1, time: 5m"))
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n2,20\n", out)

    def test_doctor_lists_its_queues(self):
        code, out, err = self.place.tally("doctor")
        self.assertIn("Scheduler           Grid Engine\n", out)
        self.assertRegex(out, r"\n  Queue               all\.q: 1 node of ")

    def test_packs_and_components_are_refused_at_their_place(self):
        self.write(keys="pack: steps")
        code, out, err = self.place.tally("validate", "small.yaml")
        self.assertEqual(code, 2, out + err)
        self.assertRegex(err, r"small\.yaml:\d+:\d+: error: step 'train': 'pack' needs Slurm, and its platform's scheduler is Grid Engine")


class Quickstart(SgeTest):
    def test_quickstart(self):
        text = SOURCE / ".deps/text/english.txt"
        if not TRAIN or not text.exists():
            self.skipTest("tally-train or the text that scripts/setup fetches is missing")
        path = os.path.dirname(TRAIN) + ":" + self.cluster.env["PATH"]
        code, out, err = self.place.tally(
            "run", str(SOURCE / "workflows/quickstart.yaml"), "--tag", "sge", "-o", "run", "--set", "iterations=20",
            "--set", "hidden=64", env={"PATH": path, "OMP_NUM_THREADS": "1"}, seconds=400)
        self.assertEqual(code, 0, out + err)
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines() if re.match(r"\|\s+\d", line)]
        self.assertEqual([row[:4] for row in rows], [[layers, "64", "8", "128"] for layers in ("2", "4")])


def main(argv):
    global TRAIN
    grid_engine.skip_unless_possible()
    if "--train" in argv:
        at = argv.index("--train")
        TRAIN = shutil.which(argv[at + 1]) or ""
        del argv[at:at + 2]
    place.TALLY = os.path.abspath(argv[1])
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    result = unittest.main(module="__main__", argv=[argv[0], "-v", *argv[2:]], exit=False).result
    if result.wasSuccessful() and len(result.skipped) == result.testsRun:
        sys.exit(SKIPPED)
    sys.exit(0 if result.wasSuccessful() else 1)


if __name__ == "__main__":
    main(list(sys.argv))

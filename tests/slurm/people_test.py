#!/usr/bin/env python3
"""What people see and do while jobs are in the queue, on a terminal of their own.   people_test.py TALLY [TEST ...]"""
import os
import pty
import select
import signal
import sys

import cluster as slurm
import place
from failures_test import FailureTest


class Terminal:
    """`tally` on a terminal: what it shows, what a person types."""

    def __init__(self, where, *arguments, env=None):
        self.text = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(where.root)
            environment = {**where.environment(env), "TERM": "xterm"}
            os.execve(place.TALLY, [place.TALLY, *arguments], environment)

    def read(self):
        while select.select([self.fd], [], [], 0)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                return
            if not data:
                return
            self.text += data.decode(errors="replace")

    def until(self, words, seconds=30):
        def shown():
            self.read()
            return words in self.text
        try:
            slurm.wait_for(shown, f"'{words}' on the terminal", seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it shows {self.text!r}") from None

    def type(self, text):
        os.write(self.fd, text.encode())

    def end(self, seconds=30):
        def ended():
            self.read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.read()  # what it printed last
            self.code = os.waitstatus_to_exitcode(status) if pid else None
            return pid
        slurm.wait_for(ended, "the end of tally", seconds)
        os.close(self.fd)
        return self.code


class People(FailureTest):
    def test_a_live_table_then_the_result(self):
        self.write(values="1,2", keys="", options="")
        terminal = Terminal(self.place, "run", "small.yaml")
        self.begun(0, 1)
        terminal.until("RUNNING")
        terminal.until("000001_train")
        self.free()
        self.assertEqual(terminal.end(), 0, terminal.text)
        self.assertIn("1,10\r\n2,20", terminal.text)

    def test_why_a_job_waits(self):
        self.write(values="1", options="begin: now+1000")
        terminal = Terminal(self.place, "run", "small.yaml")
        terminal.until("BeginTime")
        def status():  # readers see what was committed a second ago
            out = self.place.tally("status", "run")[1]
            return out if out.startswith("RUNNING\njobs: 1 queued, 0 running, 0 ended\n") else None
        out = slurm.wait_for(status, "the job in `tally status`")
        self.assertRegex(out, r"000000_train +PENDING .*BeginTime")
        terminal.type("\x03")
        terminal.until("[c]ancel")
        terminal.type("c\n")
        self.assertEqual(terminal.end(), 1, terminal.text)
        self.assertEqual(self.cluster.jobs(), [])

    def test_ctrl_c_cancels_all_and_continue_submits_again(self):
        self.write()
        terminal = Terminal(self.place, "run", "small.yaml")
        self.begun(0, 1)
        first = {self.job_of(0), self.job_of(1)}
        terminal.type("\x03")
        terminal.until("2 jobs are in the queue. [l]eave")
        terminal.type("c\n")
        self.assertEqual(terminal.end(), 1, terminal.text)
        slurm.wait_for(lambda: not self.cluster.jobs(), "no job is left")
        self.free()
        code, out, err = self.place.tally("continue", "run")
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n2,20\n", out)
        self.assertFalse(first & {package["job_id"] for package in self.place.packages()})

    def test_ctrl_c_cancels_no_job_of_another_name(self):
        """A site's wrapper of sbatch prints a number behind the id, which is another job's."""
        other = self.cluster.run("sbatch", "--parsable", "-H", "-J", "other", "-o", "/dev/null", "--wrap", "true").strip()
        real = slurm.shutil.which("sbatch", path=slurm.search_path())
        (self.place.root / "bin").mkdir()
        self.place.program("bin/sbatch", f'{real} "$@"; echo {other}\n')
        self.write()
        terminal = Terminal(self.place, "run", "small.yaml", env={"PATH": f"{self.place.root}/bin:{slurm.search_path()}"})
        self.begun(0, 1)
        terminal.type("\x03")
        terminal.until("[c]ancel")
        terminal.type("c\n")
        self.assertEqual(terminal.end(), 1, terminal.text)
        slurm.wait_for(lambda: len(self.cluster.jobs()) == 1, "no job of the run is left")
        self.assertEqual([job for job, _, _ in self.cluster.jobs()], [other])
        self.cluster.run("scancel", other)

    def test_ctrl_c_leaves_them_and_watch_follows(self):
        self.write()
        terminal = Terminal(self.place, "run", "small.yaml")
        self.begun(0, 1)
        terminal.type("\x03")
        terminal.until("[l]eave")
        before = terminal.text.count("RUNNING")
        terminal.type("w\n")  # not meant
        slurm.wait_for(lambda: terminal.read() or terminal.text.count("RUNNING") > before, "the table again")
        terminal.type("\x03")
        slurm.wait_for(lambda: terminal.read() or terminal.text.count("[l]eave") == 2, "asked again")
        terminal.type("\x03")  # a second time: left
        self.assertEqual(terminal.end(), 1, terminal.text)
        self.assertEqual(len(self.cluster.jobs()), 2)
        watching = Terminal(self.place, "watch", "run", "-r")
        watching.until("RUNNING")
        self.free()
        self.assertEqual(watching.end(), 0, watching.text)
        self.assertIn("1,10\r\n2,20", watching.text)

    def test_watch_beside_a_running_engine(self):
        self.write()
        engine = self.place.start("run", "small.yaml")
        self.begun(0, 1)
        self.job_of(1)
        watching = Terminal(self.place, "watch", "run", "-r")
        watching.until("000001_train")
        watching.until("RUNNING")
        self.free()
        self.assertIn("1,10\n2,20\n", self.ends(engine, 0))
        self.assertEqual(watching.end(), 0, watching.text)
        self.assertIn("1,10\r\n2,20", watching.text)

    def test_without_waiting_continue_picks_up(self):
        self.write()
        code, out, err = self.place.tally("run", "--no-wait", "small.yaml")
        self.assertEqual(code, 1, out + err)
        self.assertRegex(out, r"2 jobs are in the scheduler's queue or running: `\S*tally watch run --id 0` follows them to the table")
        self.assertEqual(len(self.cluster.jobs()), 2)
        self.free()
        code, out, err = self.place.tally("continue", "run", "-r")
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n2,20\n", out)
        self.assertIn("FINISHED\njobs: 0 queued, 0 running, 2 ended\n", self.place.tally("status", "run")[1])

    def test_a_killed_terminal_leaves_the_jobs(self):
        self.write()
        terminal = Terminal(self.place, "run", "small.yaml")
        self.begun(0, 1)
        os.kill(terminal.pid, signal.SIGHUP)
        terminal.end()
        self.assertEqual(len(self.cluster.jobs()), 2)
        self.free()
        self.assertEqual(self.place.tally("continue", "run")[0], 0)


if __name__ == "__main__":
    place.main(sys.argv)

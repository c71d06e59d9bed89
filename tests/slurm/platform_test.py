#!/usr/bin/env python3
"""What the job script of a platform does on a real Slurm.   platform_test.py TALLY [TEST ...]"""
import os
import pathlib
import sys

import cluster as slurm
import place
from place import SlurmTest

SITE = """\
platform:
  name: site
  partition: {partition}
  signal: "B:TERM@60"
  env: {{SITE_SAYS: hello, FROM_JOB: "job $SLURM_JOB_ID"}}
  interconnect: {{NCCL_SOCKET_IFNAME: lo}}
  options: {{comment: of-the-site}}
  cache: $PWD/../../../../cache
"""
WORKFLOW = """\
name: small
outpath: run
step:
  name: train
  kind: run
  platform: site
  resources: {{nodes: {nodes}, tasks_per_node: 1, cpus_per_task: 1, time: "00:05:00"}}
  {keys}
  launch: {launch}
"""
PATTERNS = """\
parameterset:
  - {name: systemParameter, init_with: "slurm/platform.yaml:systemParameter"}
  - name: executeset
    init_with: slurm/platform.yaml:executeset
    parameter:
      - {name: stdoutlogfile, _: job-%j.out}
      - {name: stderrlogfile, _: job-%j.err}
fileset: {name: jobfiles, init_with: "slurm/platform.yaml:jobfiles"}
substituteset: {name: executesub, init_with: "slurm/platform.yaml:executesub"}
"""
PREPROCESS = """\
parameterset:
  - name: systemParameter
    init_with: slurm/platform.yaml:systemParameter
    parameter: {{name: preprocess, separator: "", _: "{words}"}}
  - {{name: executeset, init_with: "slurm/platform.yaml:executeset"}}
fileset: {{name: jobfiles, init_with: "slurm/platform.yaml:jobfiles"}}
substituteset: {{name: executesub, init_with: "slurm/platform.yaml:executesub"}}
"""


class Platform(SlurmTest):
    options = {"nodes": 2}

    def write(self, launch, keys="max_async: 0", nodes="1"):
        partition = self.cluster.run("sinfo", "--noheader", "--format=%P").split()[0].rstrip("*")
        (self.place.root / "site.yaml").write_text(SITE.format(partition=partition))
        (self.place.root / "small.yaml").write_text(WORKFLOW.format(launch=launch, keys=keys, nodes=nodes))

    def test_what_the_site_says_reaches_the_program(self):
        program = self.place.program("show", 'echo "$SITE_SAYS $FROM_JOB $NCCL_SOCKET_IFNAME"\n'
                                             'echo "tmp $TMPDIR"; echo "cache $(realpath "$TALLY_CACHE_DIR")"\n'
                                             'touch "$TMPDIR/mine.$SLURM_PROCID"; ls "$TMPDIR" | wc -l\n')
        self.write(program)
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        job = self.place.packages()[0]["job_id"]
        lines = (self.place.work(0) / "stdout").read_text().splitlines()
        self.assertEqual(lines[0], f"hello job {job} lo")
        folder = lines[1].split()[1]
        self.assertIn(f"tally-{job}-", folder)
        # The job removes its folder last, after the status that the engine waits for.
        slurm.wait_for(lambda: not os.path.exists(folder), "the removal of the job's folder")
        self.assertEqual(lines[2], f"cache {self.place.root.resolve()}/cache")
        self.assertEqual(self.cluster.run("squeue", "--states=all", "--noheader", f"--jobs={job}",
                                          "--Format=Comment").strip(), "of-the-site")

    def test_what_a_run_may_take_is_said_first_and_refused(self):
        self.write("/bin/true", nodes="2")
        code, out, err = self.place.tally("run", "small.yaml", "--max-node-hours", "0.1")
        self.assertEqual(code, 2, out + err)
        self.assertIn("the run may take 0.2 node-hours in 1 job, more than the 0.1 that --max-node-hours allows", err)
        self.assertEqual(self.cluster.run("squeue", "--noheader", "--states=all", "--name=tally").strip(), "")
        self.assertFalse((self.place.root / "run").exists(), "a run that was refused left a folder")
        code, out, err = self.place.tally("run", "small.yaml", "--max-node-hours", "0.2")
        self.assertEqual(code, 0, out + err)
        self.assertTrue(out.startswith("small: 1 job for 0.2 node-hours at most\n"
                                       "  train: 1 job x 2 nodes x 00:05:00 = 0.2 node-hours at most\n"), out)

    def test_of_several_nodes_all_see_the_temporary_folder(self):
        program = self.place.program("show", 'echo "$TMPDIR" > "tmp.$SLURM_PROCID"\n')
        self.write(program, nodes="2")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        folders = {(self.place.work(0) / f"tmp.{rank}").read_text().strip() for rank in (0, 1)}
        self.assertEqual(len(folders), 1)
        self.assertEqual(pathlib.Path(folders.pop()).parent, self.place.work(0))

    def fails(self, words, site=""):
        """Runs small.yaml, with further lines of the site's file: it fails for that reason. Returns the job's script."""
        if site:
            with (self.place.root / "site.yaml").open("a") as file:
                file.write(site)
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1, out + err)
        self.assertIn(words, self.place.packages()[0]["note"])
        return (self.place.work(0) / "submit.job").read_text()

    def test_a_module_that_cannot_be_loaded_ends_the_job_before_its_program(self):
        self.write(self.place.program("show", "touch started\n"))
        self.fails("a module cannot be loaded: module load None/1.0", "  modules: None/1.0\n")
        self.assertFalse((self.place.work(0) / "started").exists(), "the program ran without its modules")

    def test_without_a_temporary_folder_the_job_ends_before_its_program(self):
        self.write(self.place.program("show", "touch started\n"))
        self.fails("no temporary folder can be made in '/none/there'", "  tmp: /none/there\n")
        self.assertFalse((self.place.work(0) / "started").exists())

    def test_a_program_that_is_not_there_is_named(self):
        self.write("/none/program --flag")
        self.fails("execve(): /none/program: No such file or directory (")

    def test_without_srun_a_program_that_is_not_there_is_named(self):
        self.write("/none/program --flag")
        self.fails("exit code 127: ", "  launcher: none\n")
        self.assertIn("/none/program: No such file or directory", self.place.packages()[0]["note"])

    def test_what_srun_does_not_start_is_said_in_its_words(self):
        self.write("/bin/true")
        self.fails("/nonesuch", "  mpi: nonesuch\n")

    def test_time_limits_mean_to_slurm_what_the_plan_says(self):
        for time, expected in (("90s", "00:01:30"), ("120", "00:02:00"), ("1:00:00", "01:00:00")):
            self.write("/bin/true")
            text = (self.place.root / "small.yaml").read_text()
            (self.place.root / "small.yaml").write_text(text.replace('"00:05:00"', time))
            code, out, err = self.place.tally("run", "small.yaml", "-o", f"run-{expected}")
            self.assertEqual(code, 0, out + err)
            self.assertIn(f"1 job x 1 node x {expected} =", out)
            limit = self.cluster.run(
                "squeue", "--states=all", "--noheader", "--sort=-i", "--format=%l").split()[0]
            self.assertEqual(limit, {"00:01:30": "2:00", "00:02:00": "2:00", "01:00:00": "1:00:00"}[expected])

    def test_a_failing_task_ends_the_others_where_slurm_names_the_output(self):
        program = self.place.program("show", '[ $SLURM_PROCID = 0 ] || { echo "an error" >&2; exit 7; }\nsleep 600\n')
        self.write(program, nodes="2")
        (self.place.root / "patterns.yaml").write_text(PATTERNS)
        self.fails("exit code 7: an error (", "  template: patterns.yaml\n")
        job = self.place.packages()[0]["job_id"]
        self.assertIn("an error\n", (self.place.work(0) / f"job-{job}.err").read_text())

    def start_and_signal(self, program, keys):
        """A run whose program waits; its job script gets the signal that Slurm sends before the time limit."""
        self.write(self.place.program("wait", program), keys)
        engine = self.place.start("run", "small.yaml")
        started = self.place.work(0) / "started"
        slurm.wait_for(started.exists, "the program's start")
        job = self.cluster.jobs()[0][0]
        self.cluster.run("scancel", "--batch", "--signal=TERM", job)
        return self.place.finish(engine)

    def test_before_the_time_limit_the_program_is_told_and_the_reason_kept(self):
        code, out = self.start_and_signal("touch started; exec sleep 600\n", "max_async: 0")
        self.assertEqual(code, 1, out)
        work = self.place.work(0)
        self.assertEqual((work / "job.status").read_text(), "4\n")
        self.assertEqual((work / "job.reason").read_text(), "time limit\n")

    def test_a_time_limit_that_is_expected_is_a_result(self):
        code, out = self.start_and_signal("touch started; exec sleep 600\n", "expect: timeout")
        self.assertEqual(code, 0, out)
        self.assertEqual(self.place.packages()[0]["note"], "time limit")

    def before_the_program(self, words):
        (self.place.root / "words.yaml").write_text(PREPROCESS.format(words=words))
        with (self.place.root / "site.yaml").open("a") as file:
            file.write("  template: words.yaml\n")

    def test_a_job_whose_signal_is_still_on_its_way_runs_out_of_time(self):
        # Slurm shows SIGNALING for a moment only: here squeue says so for as long as the script may ask.
        program = self.place.program("wait", "touch started; exec sleep 600\n")
        self.write(program, "expect: timeout")
        self.before_the_program("squeue() { echo SIGNALING; }")
        engine = self.place.start("run", "small.yaml")
        slurm.wait_for((self.place.work(0) / "started").exists, "the program's start")
        self.cluster.run("scancel", "--batch", "--signal=TERM", self.cluster.jobs()[0][0])
        code, out = self.place.finish(engine)
        self.assertEqual(code, 0, out)
        self.assertEqual(self.place.packages()[0]["note"], "time limit")

    def test_time_up_before_the_program_begins_leaves_a_status(self):
        self.write("touch began", "expect: timeout")
        self.before_the_program("kill -s TERM $BASHPID")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.place.packages()[0]["note"], "time limit")
        work = self.place.work(0)
        self.assertEqual((work / "job.status").read_text(), "4\n")
        self.assertFalse((work / "began").exists())
        # The job removes its folder last, after the status that the engine waits for.
        left = f"tally-{self.place.packages()[0]['job_id']}-*"
        slurm.wait_for(lambda: not list(pathlib.Path("/tmp").glob(left)), "the removal of the job's folder")

    def test_a_job_shorter_than_its_warning_gets_none(self):
        self.write("/bin/true")
        text = (self.place.root / "small.yaml").read_text()
        for time, lines in (("00:02:00", 0), ("00:03:00", 1)):
            (self.place.root / "small.yaml").write_text(text.replace("00:05:00", time))
            code, out, err = self.place.tally("run", "small.yaml", "-n", "--script", "0")
            self.assertEqual(code, 0, out + err)
            self.assertEqual(out.count("#SBATCH --signal="), lines, out)

    def test_a_program_that_ends_in_order_when_told_is_done(self):
        code, out = self.start_and_signal(
            f"trap 'echo saved > saved; exit 0' TERM; touch started; {place.WAIT_ALONE}", "max_async: 0")
        self.assertEqual(code, 0, out)
        self.assertEqual((self.place.work(0) / "saved").read_text(), "saved\n")
        self.assertEqual((self.place.work(0) / "job.status").read_text(), "0\n")

    def test_a_cancelled_job_is_not_taken_for_one_that_ran_out_of_time(self):
        self.check_cancelled()

    def test_a_cancelled_job_whose_tasks_end_before_its_script_is_not_taken_for_one_that_failed(self):
        self.check_cancelled("trap '' TERM")

    def check_cancelled(self, words=""):
        self.write(self.place.program("wait", "touch started; exec sleep 600\n"), "expect: timeout")
        if words:
            self.before_the_program(words)
        engine = self.place.start("run", "small.yaml")
        slurm.wait_for((self.place.work(0) / "started").exists, "the program's start")
        job = self.cluster.jobs()[0][0]
        self.cluster.run("scancel", job)
        slurm.wait_for(lambda: not self.cluster.jobs(), "the job's end")
        engine.terminate()
        self.place.finish(engine)
        self.assertFalse((self.place.work(0) / "job.reason").exists())
        self.assertFalse((self.place.work(0) / "job.status").exists())


if __name__ == "__main__":
    place.main(list(sys.argv))

#!/usr/bin/env python3
"""What the job script of a platform does on a real Slurm.   platform_test.py TALLY [TEST ...]"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

import cluster as slurm
import place
from place import SlurmTest
from processes import environment_of, processes

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


SHOW = """\
import json
import os
for name in ("FROM_STEP", "point", "FROM_DO", "SITE_SAYS", "OMP_NUM_THREADS", "NCCL_SOCKET_IFNAME"):
    print(f"{name}={os.environ.get(name)}")
for name in ("TALLY_CACHE_DIR", "PATH"):
    print(f"{name}={name in os.environ}")
"""
EXPORTS = """\
name: small
outpath: run
parameterset: {{name: ps, parameter: {{name: point, export: true, _: "1,2"}}}}
step:
  name: train
  kind: run
  use: ps
  platform: site
  resources: {{nodes: 1, tasks_per_node: 1, cpus_per_task: 1, time: "00:05:00"{resources}}}
  env: {{FROM_STEP: of the step}}
  {pack}
  do: |
    export FROM_DO="it's\ttwo words"
  launch: {program}
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

    def test_a_job_script_is_its_runs_own(self):
        """Whatever earlier runs left in a work_dir that they share."""
        self.write("echo", nodes="1")
        text = (self.place.root / "small.yaml").read_text().replace("max_async: 0", "work_dir: $jube_benchmark_home/shared")
        (self.place.root / "shared").mkdir()
        for name in ("submit.job.in", "submit.job", "job_functions.sh"):
            (self.place.root / "shared" / name).write_text("#!/bin/sh\necho old >> old\n")
        (self.place.root / "shared.yaml").write_text(text)
        code, out, err = self.place.tally("run", "shared.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertIn("#SBATCH --nodes=1\n", (self.place.root / "run/000000/000000_train/work/submit.job").read_text())
        self.assertEqual(sorted(os.listdir(self.place.root / "shared")), ["job_functions.sh", "submit.job", "submit.job.in"])

    def test_folders_of_a_site_may_have_blanks_and_variables(self):
        for folder in ("a b", 'a"b', "$SLURM_NNODES/c d", "e'f", "g`h", "i\\\\j", "k  l;m", "${NO_SUCH:-n o}"):
            with self.subTest(folder=folder):
                real = folder.replace("$SLURM_NNODES", "1").replace("${NO_SUCH:-n o}", "n o")
                for each in ("tmp", "cache"):
                    (self.place.root / real / each).mkdir(parents=True)
                text = json.dumps({"name": "site", "scheduler": "slurm", "tmp": f"{self.place.root}/{folder}/tmp",
                                   "cache": f"{self.place.root}/{folder}/cache"})
                self.write(self.place.program("show", 'echo "$TMPDIR"; echo "$TALLY_CACHE_DIR"\n'))
                (self.place.root / "site.yaml").write_text(f"platform: {text}\n")
                code, out, err = self.place.tally("run", "small.yaml")
                self.assertEqual(code, 0, out + err)
                run = sorted((self.place.root / "run").iterdir())[-1].name
                tmp, cache = (self.place.work(0, run=run) / "stdout").read_text().splitlines()
                self.assertTrue(tmp.startswith(f"{self.place.root}/{real}/tmp/tally-"), tmp)
                self.assertEqual(cache, f"{self.place.root}/{real}/cache")

    def test_of_two_jobs_of_one_script_at_a_time_one_works(self):
        self.write(self.place.program("wait", f'echo x >> {self.place.root}/calls; until [ -e {self.place.root}/go ]; do sleep 0.1; '
                                              f'done; wc -l < {self.place.root}/calls\n'))
        code, out, err = self.place.tally("script", "small.yaml", "--out", "jobs")
        self.assertEqual(code, 0, out + err)
        work = self.place.root / "jobs/000000_train/work"
        first = self.cluster.run("sbatch", "--parsable", f"--chdir={work}", str(work / "submit.job")).strip()
        slurm.wait_for((self.place.root / "calls").exists, "the first job's program")
        with self.assertRaises(subprocess.CalledProcessError):
            self.cluster.run("sbatch", "--wait", f"--chdir={work}", str(work / "submit.job"), seconds=120)
        (self.place.root / "go").touch()
        slurm.wait_for((work / "job.status").exists, "the first job's end")
        self.assertEqual((work / "stdout").read_text(), "1\n")
        self.assertIn(f"job {first} works in this folder, so job ", (work / "stderr").read_text())

    def test_of_two_that_are_submitted_at_the_same_moment_one_works(self):
        program = self.place.program("wait", f'echo x >> {self.place.root}/calls; until [ -e {self.place.root}/go ]; do sleep 0.1; '
                                              'done\n')
        self.write(program)
        for number in range(4):
            code, out, err = self.place.tally("script", "small.yaml", "--out", f"jobs{number}")
            self.assertEqual(code, 0, out + err)
            work = self.place.root / f"jobs{number}/000000_train/work"
            ids = [self.cluster.run("sbatch", "--hold", "--parsable", f"--chdir={work}", str(work / "submit.job")).strip()
                   for _ in range(2)]
            self.cluster.run("scontrol", "release", *ids)
            slurm.wait_for(lambda: [job for job in ids if not self.cluster.run(
                "squeue", "--noheader", f"--jobs={job}", "--states=PENDING,RUNNING,COMPLETING").strip()], "the end of one")
            slurm.wait_for((self.place.root / "calls").exists, "the start of the other")
            (self.place.root / "go").touch()
            slurm.wait_for((work / "job.status").exists, "the end of the other")
            self.assertEqual((self.place.root / "calls").read_text(), "x\n")
            self.assertEqual((work / "job.status").read_text(), "0\n")
            self.assertFalse((work / "job.status.begun.lock").exists(), "its lock is left")
            for name in ("go", "calls"):
                (self.place.root / name).unlink()

    def test_a_script_that_is_submitted_twice_by_hand_has_the_output_of_the_last(self):
        self.write(self.place.program("count", f'echo x >> {self.place.root}/calls; wc -l < {self.place.root}/calls\n'))
        code, out, err = self.place.tally("script", "small.yaml", "--out", "jobs")
        self.assertEqual(code, 0, out + err)
        work = self.place.root / "jobs/000000_train/work"
        for count in ("1\n", "2\n"):
            self.cluster.run("sbatch", "--wait", f"--chdir={work}", str(work / "submit.job"))
            self.assertEqual((work / "stdout").read_text(), count)

    def test_names_and_options_reach_slurm_as_they_are_written(self):
        """Blanks, quotes and # in names and options; true and false; a folder whose name Slurm takes for a pattern."""
        self.write("echo", nodes="1")
        comment = "it's # \"two\" words, \\ %j \u00fc"
        text = (self.place.root / "small.yaml").read_text()
        text = text.replace("name: small", "name: \"it's my \\\"bench\\\" #1\"").replace("launch: echo", "launch: echo v=5")
        text = text.replace("cpus_per_task: 1,", "cpus_per_task: 1, options: {comment: '%s', exclusive: true, "
                            "contiguous: false, requeue: $yes}," % comment.replace("'", "''"))
        text += "  use: p\nparameterset: {name: p, parameter: {name: yes, _: \"true\"}}\n"
        for number, (outpath, keys) in enumerate([("run", ""), ("50%j", ""), ("a\\b", ""), ("50%j b", "work_dir: shared"),
                                                  ("50%j c", "pack: array"), ("50%j d", "pack: steps")]):
            with self.subTest(outpath=outpath, keys=keys):
                (self.place.root / "names.yaml").write_text(
                    text.replace("outpath: run", f"outpath: '{outpath}'").replace("max_async: 0", keys or "max_async: 0"))
                code, out, err = self.place.tally("run", "names.yaml")
                self.assertEqual(code, 0, out + err)
                work = self.place.root / outpath / "000000/000000_train/work"
                self.assertEqual((work / "stdout").read_text(), "v=5\n")
                said = self.cluster.run("squeue", "--states=all", "--noheader", "--Format=JobID:20,Comment:80").splitlines()
                # Beside those of the other tests on this cluster.
                self.assertEqual([line[20:].strip() for line in said].count(comment), number + 1, said)
                if keys.startswith("pack"):
                    continue
                # The script by itself, as somebody may submit it by hand.
                script = (work / "submit.job").read_text()
                self.assertIn("#SBATCH --exclusive\n#SBATCH --requeue\n", script)
                self.assertNotIn("contiguous", script)
                self.cluster.run("sbatch", "--test-only", f"--chdir={work}", str(work / "submit.job"))

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

    def test_a_folder_with_a_variable_that_the_job_lacks_ends_it_before_its_program(self):
        for line in ("tmp: $NO_SUCH/tmp", "tmp: ${NO_SUCH}/tmp"):
            with self.subTest(line=line):
                shutil.rmtree(self.place.root / "run", ignore_errors=True)
                self.write(self.place.program("show", "touch started\n"))
                self.fails("NO_SUCH: ", f"  {line}\n")
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

    def started(self, program, keys):
        """The engine and the job of a run whose program waits."""
        self.write(self.place.program("wait", program), keys)
        return self.start_written()

    def start_written(self):
        run = f"{len(list((self.place.root / 'run').glob('0*'))):06}"
        engine = self.place.start("run", "small.yaml")
        slurm.wait_for((self.place.work(0, run=run) / "started").exists, "the program's start")
        return engine, self.cluster.jobs()[0][0], run

    def warn(self, job):
        """The signal that Slurm sends before the time limit, which is near by now."""
        self.cluster.run("scontrol", "update", f"jobid={job}", "EndTime=now+90")
        self.cluster.run("scancel", "--batch", "--signal=TERM", job)

    def start_and_signal(self, program, keys):
        engine, job, _ = self.started(program, keys)
        self.warn(job)
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

    def batch_shell(self, job):
        """The process of a job's script."""
        mark = f"SLURM_JOB_ID={job}".encode()
        return next(pid for pid in processes() if mark in environment_of(pid) and self.command_line(pid)[1:2] == ["SCRIPT"])

    @staticmethod
    def command_line(pid):
        try:
            words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
        except OSError:
            return []
        return [words[0], *("SCRIPT" if word.endswith("/slurm_script") else word for word in words[1:])]

    def test_a_signal_long_before_the_time_limit_is_no_time_limit(self):
        dies = "touch started; exec sleep 600\n"
        # tally-train ends with 4, too, when it is told to stop.
        stops = f"trap 'exit 4' TERM; touch started; {place.WAIT_ALONE}"
        ways = {"batch": ("scancel", "--batch", "--signal=TERM"), "usr1": ("scancel", "--batch", "--signal=USR1"),
                "usr2": ("scancel", "--batch", "--signal=USR2"), "full": ("scancel", "--full", "--signal=TERM"),
                "steps": ("scancel", "--signal=TERM"), "kill": ()}
        for way, words in ways.items():
            for program in (dies, stops) if way in ("batch", "kill") else (dies,):
                with self.subTest(way=way, program=program):
                    engine, job, run = self.started(program, "expect: timeout")
                    if words:
                        self.cluster.run(*words, job)
                    else:
                        os.kill(self.batch_shell(job), signal.SIGTERM)
                    code, out = self.place.finish(engine)
                    self.assertEqual(code, 1, out)
                    note = self.place.packages(run)[0]["note"]
                    self.assertIn("exit code 143", note)
                    if way != "steps":
                        name = {"usr1": "USR1", "usr2": "USR2"}.get(way, "TERM")
                        self.assertRegex(note, f"the job got signal {name} [0-9]+ s before its time limit, and not from Slurm")
                    self.assertEqual((self.place.work(0, run=run) / "job.status").read_text(), "143\n")

    def test_the_sites_own_warning_says_how_long_before_the_time_limit_it_comes(self):
        for options, near in (("B:USR1@200", True), ("B:USR1@30", False), ("B:USR1", False), ("", False)):
            with self.subTest(options=options):
                self.write(self.place.program("wait", "touch started; exec sleep 600\n"), "expect: timeout")
                site = self.place.root / "site.yaml"
                site.write_text(site.read_text().replace("B:TERM@60", options))
                engine, job, run = self.start_written()
                self.cluster.run("scontrol", "update", f"jobid={job}", "EndTime=now+240")
                self.cluster.run("scancel", "--batch", "--signal=USR1", job)
                code, out = self.place.finish(engine)
                self.assertEqual(code, 0 if near else 1, out)
                self.assertIn("time limit" if near else "and not from Slurm", self.place.packages(run)[0]["note"])

    def test_slurms_own_warning_is_the_time_limit(self):
        # It tells the job's script, also where the site names a signal alone, and any that ends a script.
        started = []
        for signal_of_site in ("B:TERM@60", "USR1@60", "HUP@60"):
            self.write(self.place.program("wait", "touch started; exec sleep 600\n"), "expect: timeout")
            site = self.place.root / "site.yaml"
            site.write_text(site.read_text().replace("B:TERM@60", signal_of_site))
            started.append((signal_of_site, *self.start_written()))
            self.cluster.run("scontrol", "update", f"jobid={started[-1][2]}", "EndTime=now+100")  # it looks every half minute
        for signal_of_site, engine, _, run in started:
            with self.subTest(signal_of_site):
                code, out = self.place.finish(engine)
                self.assertEqual(code, 0, out)
                self.assertEqual(self.place.packages(run)[0]["note"], "time limit")
                self.assertEqual((self.place.work(0, run=run) / "job.reason").read_text(), "time limit\n")

    def test_a_signal_that_nobody_explains_is_no_time_limit(self):
        # The controller is away, or squeue says nothing: the end of the job is not known.
        for answer in ("exit 1", "exit 0", "echo PENDING"):
            with self.subTest(answer=answer):
                self.write(self.place.program("wait", "touch started; exec sleep 600\n"), "expect: timeout")
                engine, job, run = self.start_written_with_squeue(answer)
                self.cluster.run("scancel", "--batch", "--signal=TERM", job)
                code, out = self.place.finish(engine)
                self.assertEqual(code, 1, out)
                self.assertNotEqual(self.place.packages(run)[0]["note"], "time limit")

    def start_written_with_squeue(self, answer):
        """As start_written(), with another squeue for the job's script; the one of the engine is Slurm's."""
        folder = self.place.root / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "squeue").write_text(f"#!/bin/bash\n{answer}\n")
        (folder / "squeue").chmod(0o755)
        self.before_the_program(f"PATH={folder}:$$PATH")
        return self.start_written()

    def before_the_program(self, words):
        (self.place.root / "words.yaml").write_text(PREPROCESS.format(words=words))
        with (self.place.root / "site.yaml").open("a") as file:
            file.write("  template: words.yaml\n")

    def test_a_job_whose_signal_is_still_on_its_way_runs_out_of_time(self):
        # Slurm shows SIGNALING for a moment only: here squeue says so for as long as the script may ask.
        self.write(self.place.program("wait", "touch started; exec sleep 600\n"), "expect: timeout")
        engine, job, run = self.start_written_with_squeue("echo SIGNALING $(($(date +%s) + 100)) N/A None")
        self.cluster.run("scancel", "--batch", "--signal=TERM", job)
        code, out = self.place.finish(engine)
        self.assertEqual(code, 0, out)
        self.assertEqual(self.place.packages(run)[0]["note"], "time limit")

    def test_time_up_before_the_program_begins_leaves_a_status(self):
        self.write("touch began", "expect: timeout")
        self.before_the_program("scontrol update jobid=$SLURM_JOB_ID EndTime=now+90; kill -s TERM $BASHPID")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(self.place.packages()[0]["note"], "time limit")
        work = self.place.work(0)
        self.assertEqual((work / "job.status").read_text(), "4\n")
        self.assertFalse((work / "began").exists())
        # The job removes its folder last, after the status that the engine waits for.
        left = f"tally-{self.place.packages()[0]['job_id']}-*"
        slurm.wait_for(lambda: not list(pathlib.Path("/tmp").glob(left)), "the removal of the job's folder")

    def test_a_signal_before_the_program_begins_that_is_no_time_limit(self):
        self.write("touch began", "expect: timeout")
        self.before_the_program("kill -s TERM $BASHPID")
        self.fails("exit code 143: the job got signal TERM ")
        self.assertFalse((self.place.work(0) / "began").exists())

    def test_the_program_gets_the_environment_of_its_script_whatever_export_says(self):
        (self.place.root / "show.py").write_text(SHOW)
        for where in ("resources", "site"):
            for pack in ("", "pack: array", "pack: {_: steps, at_once: 2}"):
                for value in ("NONE", "NIL", '"HOME,USER"', '"ALL,FROM_STEP=wrong,OMP_NUM_THREADS=9"'):
                    with self.subTest(where=where, pack=pack, value=value):
                        self.check_export(where, pack, value)

    def check_export(self, where, pack, value):
        options = f"export: {value}"
        run = f"{len(list((self.place.root / 'run').glob('0*'))):06}"
        self.write(f"/usr/bin/env python3 {self.place.root}/show.py")
        text = EXPORTS.format(resources=f", options: {{{options}}}" if where == "resources" else "", pack=pack or "max_async: 0",
                              program=f"/usr/bin/env python3 {self.place.root}/show.py")
        (self.place.root / "small.yaml").write_text(text)
        if where == "site":
            site = self.place.root / "site.yaml"
            site.write_text(site.read_text().replace("comment: of-the-site", options))
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        for number in range(2):
            shown = (self.place.work(number, run=run) / "stdout").read_text().splitlines()
            self.assertEqual(shown, ["FROM_STEP=of the step", f"point={number + 1}", "FROM_DO=it's\ttwo words", "SITE_SAYS=hello",
                                     "OMP_NUM_THREADS=1", "NCCL_SOCKET_IFNAME=lo", "TALLY_CACHE_DIR=True", "PATH=True"])

    def test_variables_are_put_in_once(self):
        """`env` is expanded over the environment without it: by the engine here, and by the script there."""
        show = self.place.program("show", 'printf "%s|" "$N" "$FLAGS" "$A" "$B" "$IN_P" "$IN_Q" "$EX" "$LATE"')
        for pack in ("max_async: 0", "pack: array", "pack: {_: steps, at_once: 2}"):
            for export in ("ALL", "NONE"):
                with self.subTest(pack=pack, export=export):
                    self.write(show)
                    site = self.place.root / "site.yaml"
                    lines = [line for line in site.read_text().splitlines() if "env: {SITE_SAYS" not in line]
                    site.write_text("\n".join(lines) + "\n  job_environment: \"PATH, HOME, N, IN_P\"\n"
                                    "  env: {IN_P: \"site:$IN_P\", IN_Q: \"q$IN_P\"}\n")
                    (self.place.root / "small.yaml").write_text(
                        "name: small\noutpath: run\n"
                        "parameterset:\n  name: ps\n  parameter:\n"
                        "    - {name: EX, export: true, separator: '', _: '$HOME $(id)'}\n"
                        "    - {name: LATE, export: true, separator: '', _: '$jube_wp_padid $$HOME $(id)'}\n"
                        "step:\n  name: train\n  kind: run\n  use: ps\n  platform: site\n"
                        f"  resources: {{nodes: 1, tasks_per_node: 1, cpus_per_task: 1, time: 5m, options: {{export: {export}}}}}\n"
                        "  env: {N: \"1$N\", FLAGS: \"-O2 $FLAGS\", A: \"$B\", B: b, IN_P: \"step:$IN_P\"}\n"
                        f"  {pack}\n  launch: {show}\n")
                    run = f"{len(list((self.place.root / 'run').glob('0*'))):06}"
                    code, out, err = self.place.tally("run", "small.yaml", env={"N": "", "IN_P": "0", "B": "no"})
                    self.assertEqual(code, 0, out + err)
                    shown = (self.place.work(0, run=run) / "stdout").read_text()
                    # The site's lines see what job_environment passes on, the step's see the site's.
                    passed = "0" if export == "ALL" else ""
                    self.assertEqual(shown, f"1|-O2 ||b|step:site:{passed}|q{passed}|$HOME $(id)|000000 $HOME $(id)|")

    def test_sbatchs_variables_of_commands_are_refused(self):
        for line in ("SBATCH_TIMELIMIT=50", "SBATCH_ARRAY_INX=0-2", "SBATCH_MEM_PER_CPU=3G", "SBATCH_GRES=gpu:3",
                     "SBATCH_GPUS=2", "SRUN_EXPORT_ENV=NONE", "SLURM_GPUS_PER_NODE=2", "SLURM_GRES=gpu:2", "SLURM_GPUS_PER_TASK=2",
                     "SLURM_GPUS=2", "SLURM_STEP_GRES=gpu:2", "SLURM_MEM_PER_CPU=3G", "SLURM_NTASKS=3"):
            with self.subTest(line=line):
                self.write("/bin/true", keys=f"do: export {line}")
                text = self.place.root / "small.yaml"
                text.write_text(text.read_text().replace("cpus_per_task: 1,", "cpus_per_task: 1, gpus_per_node: 1, memory: 1G,"))
                code, out, err = self.place.tally("run", "small.yaml")
                self.assertNotEqual(code, 0)
                self.assertIn(f"reads '{line.partition('=')[0]}'", out + err)

    def test_variables_of_the_caller_that_would_change_the_plan_are_refused(self):
        """A site's job_environment names them in full, and nothing else would pass them on."""
        for line in ("SLURM_GPUS_PER_NODE=1", "SLURM_GRES=gpu:1", "SLURM_GPUS=1", "SLURM_GPUS_PER_TASK=1", "SLURM_STEP_GRES=gpu:1",
                     "SLURM_NTASKS=3", "SLURM_HINT=multithread", "SRUN_EXPORT_ENV=NONE", "SBATCH_TIMELIMIT=50"):
            with self.subTest(line=line):
                self.write("/bin/true")
                text = self.place.root / "small.yaml"
                text.write_text(text.read_text().replace("cpus_per_task: 1,", "cpus_per_task: 1, gpus_per_node: 1, memory: 1G,"))
                name, _, value = line.partition("=")
                site = self.place.root / "site.yaml"
                site.write_text(f"{site.read_text()}  job_environment: HOME, PATH, {name}\n")
                code, out, err = self.place.tally("run", "small.yaml", env={name: value})
                self.assertNotEqual(code, 0)
                self.assertIn(f"reads '{name}'", out + err)
        # Where the caller has none, the site's file does no harm.
        self.write("/bin/true")
        site.write_text(f"{site.read_text()}  job_environment: HOME, PATH, SLURM_GRES\n")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)

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

#!/usr/bin/env python3
"""workflows/megatron-nlp.yaml from outside: every value of its job scripts, what the scripts do, its table.

  megatron_nlp_test.py TALLY SOURCE_DIR [TALLY_TRAIN]

The values asserted are those of the benchmark's own description and parameter files, written down here by hand.
"""
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import unittest

TALLY = os.path.abspath(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2]).resolve()
TRAIN = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None
WORKFLOW = str(SOURCE / "workflows/megatron-nlp.yaml")
LOG = str(SOURCE / "tests/golden/megatron_175b_job.out")

# Flags of both models; None: a flag without a value.
COMMON = {
    "--seq-length": "2048", "--max-position-embeddings": "2048", "--micro-batch-size": "1",
    "--train-samples": "300_000_000", "--tokenizer-type": "GPT2BPETokenizer",
    "--vocab-file": "VOCABULARY/vocab.json", "--merge-file": "VOCABULARY/merges.txt",
    "--loss-scale-window": "500", "--hysteresis": "2", "--min-loss-scale": "1.0", "--initial-loss-scale": "4096",
    "--seed": "42", "--position-embedding-type": "rope", "--use-flash-attn": None, "--sequence-parallel": None,
    "--recompute-activations": None, "--recompute-granularity": "selective",
    "--optimizer": "adam", "--adam-beta1": "0.9", "--adam-beta2": "0.999", "--adam-eps": "1e-8",
    "--lr": "1e-4", "--min-lr": "1e-5", "--lr-decay-style": "cosine", "--lr-decay-samples": "128_953_125",
    "--lr-warmup-samples": "216_320", "--clip-grad": "1.0", "--weight-decay": "1e-1",
    "--exit-duration-in-mins": "1190",
    "--log-interval": "10", "--save-interval": "1500", "--eval-interval": "1000", "--eval-iters": "5",
    "--tensorboard-dir": "tensorboard", "--tensorboard-queue-size": "5", "--log-timers-to-tensorboard": None,
    "--use-distributed-optimizer": None, "--log-batch-size-to-tensorboard": None, "--log-validation-ppl-to-tensorboard": None,
    "--save": "checkpoints", "--data-path": "data/text", "--split": "7,3,1", "--distributed-backend": "nccl",
}
MODELS = {
    "13": {"--num-layers": "40", "--hidden-size": "5120", "--num-attention-heads": "32",
           "--ffn-hidden-size": "20480", "--fp16": None, "--global-batch-size": "1024",
           "--tensor-model-parallel-size": "2", "--pipeline-model-parallel-size": "4"},
    "175": {"--num-layers": "96", "--hidden-size": "12288", "--num-attention-heads": "96",
            "--init-method-std": "0.0048", "--bf16": None, "--global-batch-size": "96",
            "--tensor-model-parallel-size": "8", "--pipeline-model-parallel-size": "8"},
}
NODES = {"13": 8, "175": 96}
ENVIRONMENT = {
    "CUDA_DEVICE_MAX_CONNECTIONS": "1", "NCCL_ASYNC_ERROR_HANDLING": "1", "NCCL_IB_TIMEOUT": "50",
    "NCCL_IB_RETRY_CNT": "10", "UCX_RC_TIMEOUT": "4s", "NCCL_SOCKET_IFNAME": "ib0", "NCCL_DEBUG": "INFO",
    "SRUN_CPUS_PER_TASK": "48", "MASTER_PORT": "6000", "MASTER_ADDR": "jwb0001i.juwels",
}


def clean_environment(**more):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "SRUN_", "JUBE_", "TALLY_"))}
    return dict(kept, **more)


def tally(*arguments, cwd):
    done = subprocess.run([TALLY, *arguments], cwd=cwd, env=clean_environment(), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout, done.stderr


def rows(output, name):
    """The cells of a pretty table, heading first."""
    lines = output.split(name + ":\n", 1)[1].split("\n\n", 1)[0].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    return table


def flags_of(words):
    flags, at = {}, 0
    while at < len(words):
        assert words[at].startswith("--"), words[at]
        assert words[at] not in flags, words[at] + " twice"
        takes = at + 1 < len(words) and not words[at + 1].startswith("--")
        flags[words[at]] = words[at + 1] if takes else None
        at += 2 if takes else 1
    return flags


class Case(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="tally-megatron-")
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)

    def good(self, *arguments, expected=0):
        code, out, err = tally(*arguments, cwd=self.root)
        self.assertEqual(code, expected, out + err)
        return out, err

    def missed(self, *arguments):
        """The table is there and a row of it misses its reference."""
        return self.good(*arguments, expected=5)

    def script(self, *tags, settings=("tally_train=tally-train",)):
        """The job script that `tally script` writes, and its folder."""
        arguments = ["script", WORKFLOW, "--out", "jobs"]
        if tags:
            arguments += ["--tag", *tags]
        for setting in settings:
            arguments += ["--set", setting]
        self.good(*arguments)
        path = self.root / "jobs/000005_benchmark/work/submit.job"
        return path.read_text(), path.parent

    def starter(self, script):
        lines = re.findall(r"^launch\(\) \{\n  (srun .*)\n\}\njob_run launch$", script, re.MULTILINE)
        self.assertEqual(len(lines), 1)
        words = shlex.split(lines[0])
        program = next(i for i, word in enumerate(words) if word in ("tally-train", "-u"))
        return words, program


class Scripts(Case):
    def check_flags(self, model, words, own):
        expected = dict(COMMON, **MODELS[model], **own)
        for name in ("--vocab-file", "--merge-file"):
            expected[name] = expected[name].replace("VOCABULARY", str(SOURCE / "workflows/../.deps/vocab"))
        found = flags_of(words)
        for flag, value in expected.items():
            with self.subTest(model=model, flag=flag):
                self.assertIn(flag, found)
                self.assertEqual(found[flag], value)
        self.assertEqual(sorted(found), sorted(expected))

    def test_every_value_of_both_models(self):
        for model in ("13", "175"):
            script, folder = self.script(model)
            words, program = self.starter(script)
            tasks = NODES[model] * 4
            self.assertEqual(words[:program], ["srun", f"--ntasks={tasks}", "--ntasks-per-node=4",
                                               "--cpus-per-task=12", "--kill-on-bad-exit=1"])
            self.check_flags(model, words[program + 1:], {"--record": "record.json", "--load": "checkpoints"})
            job = dict(re.findall(r"^#SBATCH --([a-z-]+)=(.*)$", script, re.M))
            self.assertEqual(job, {
                "job-name": "megatron-nlp.benchmark", "nodes": str(NODES[model]), "ntasks-per-node": "1",
                "cpus-per-task": "48", "gres": "gpu:4", "time": "00:30:00", "hint": "nomultithread",
                "signal": "B:12@120", "output": "job.out", "error": "job.err", "open-mode": "append"})
            # What the shell makes of its lines, up to the start of the program.
            body = script.split("#SBATCH --open-mode=append\n", 1)[1].split("\nlaunch() {", 1)[0]
            shell = 'scontrol() { echo jwb0001.juwels; echo jwb0002.juwels; }\n' + body + "\nenv -0\n"
            seen = subprocess.run(["bash", "-c", shell], cwd=folder, stdout=subprocess.PIPE, check=True,
                                  env={"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(self.root)}).stdout.decode()
            variables = dict(entry.split("=", 1) for entry in seen.split("\0") if "=" in entry)
            for name, value in ENVIRONMENT.items():
                with self.subTest(model=model, variable=name):
                    self.assertEqual(variables.get(name), value)
            self.assertEqual(variables.get("NLP_BENCH_ROOT"), str(SOURCE / "workflows/.."))

    def test_without_a_tag_it_is_the_175b_model(self):
        self.assertEqual(self.script()[0], self.script("175")[0])

    def test_the_dry_run_shows_the_same_bytes(self):
        for tags in (["--tag", "13"], []):
            script, _ = self.script(*tags[1:])
            shown, _ = self.good("run", WORKFLOW, "-n", "--script", "5", *tags, "--set", "tally_train=tally-train")
            self.assertEqual(shown, script)
        self.assertEqual(os.listdir(self.root), ["jobs"])

    def test_tags(self):
        plain, _ = self.script("175")
        half, _ = self.script("175", "fp16")
        self.assertEqual(plain.replace(" --bf16 ", " --fp16 "), half)
        script, _ = self.script("13", "python")
        words, _ = self.starter(script)
        at = words.index("get_source/Megatron-LM/pretrain_gpt.py")
        self.assertEqual(words[:at], [
            "srun", "setup_venv/venv/bin/python", "-u", "-m", "torch.distributed.run", "--nproc_per_node", "4",
            "--nnodes", "8", "--rdzv_endpoint", "$MASTER_ADDR:$MASTER_PORT", "--rdzv_backend", "c10d",
            "--max_restarts", "0", "--tee", "3"])
        self.check_flags("13", words[at + 1:], {})
        code, _, err = tally("run", WORKFLOW, "-n", "--tag", "13", "175", cwd=self.root)
        self.assertEqual(code, 2)
        self.assertIn("check_tags", err)

    def test_what_is_free_may_change(self):
        settings = ("NNODES=16", "TP_SIZE=4", "PP_SIZE=2", "MICRO_BATCH_SIZE=2", "GAS=8", "master_suffix=",
                    "data_path=/data/set", "queue=booster", "account=me", "tally_train=tally-train")
        script, _ = self.script("13", settings=settings)
        words, program = self.starter(script)
        flags = flags_of(words[program + 1:])
        self.assertEqual(flags["--global-batch-size"], str(16 * 4 // 8 * 2 * 8))
        self.assertEqual(flags["--data-path"], "/data/set")
        self.assertIn("#SBATCH --partition=booster\n#SBATCH --account=me\n", script)
        self.assertIn('MASTER_ADDR=${name}${first#"$name"}', script)
        # A rule leaves out what cannot be run.
        out, _ = self.good("run", WORKFLOW, "-n", "--tag", "13", "--set", "TP_SIZE=2,3")
        self.assertIn("where: ", out)

    @unittest.skipUnless(TRAIN, "built without tally-train")
    def test_tally_train_takes_the_command_line(self):
        sentence = ("tally-train: error: --tensor-model-parallel-size: world size (1) is not divisible by tensor "
                    "parallel size ({}) times pipeline parallel size ({})\n")
        for model, sizes in (("13", (2, 4)), ("175", (8, 8))):
            script, _ = self.script(model)
            words, program = self.starter(script)
            done = subprocess.run([TRAIN, *words[program + 1:]], cwd=self.root, env=clean_environment(), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((done.returncode, done.stderr), (2, sentence.format(*sizes)))


class Jobs(Case):
    """The job script run by bash, with programs in the place of Slurm's."""

    def start(self, srun):
        script, folder = self.script("175")
        programs = self.root / "bin"
        programs.mkdir()
        # Slurm says that the job runs and has half a minute left.
        for name, text in {"srun": srun, "scontrol": "echo node1",
                           "squeue": 'echo "RUNNING $(($(date +%s) + 30)) N/A None"',
                           "scancel": 'echo "$@" > scancel.arguments'}.items():
            (programs / name).write_text("#!/bin/bash\n" + text + "\n")
            (programs / name).chmod(0o755)
        environment = clean_environment(PATH=f"{programs}:{os.environ['PATH']}", SLURM_JOB_ID="7")
        with open(folder / "job.out", "w") as out, open(folder / "job.err", "w") as err:
            return folder, subprocess.Popen(["bash", "submit.job"], cwd=folder, env=environment, stdout=out, stderr=err)

    def state(self, folder):
        return ((folder / "job.status").read_text().strip(), (folder / "ready").exists(), (folder / "error").exists())

    def test_a_program_that_ends(self):
        folder, job = self.start(f"cat {LOG}")
        self.assertEqual(job.wait(60), 0)
        self.assertEqual(self.state(folder), ("0", True, False))
        # By hand from the script to the table: the folder stands for its job.out.
        out, err = self.missed("result", WORKFLOW, "--logs", str(folder))
        self.assertEqual(rows(out, "megatron_nlp")[1][5:], ["34063.43", "587.14"])

    def test_a_program_that_fails(self):
        folder, job = self.start("echo broken >&2; exit 3")
        self.assertEqual(job.wait(60), 3)
        self.assertEqual(self.state(folder), ("3", False, True))

    def test_the_first_task_that_fails_counts(self):
        folder, job = self.start("echo 'RuntimeError: no such file' >&2\n"
                                 "echo 'srun: error: node2: task 9: Exited with exit code 3' >&2\n"
                                 "echo 'srun: error: node1: tasks 0-8: Terminated' >&2; exit 143")
        self.assertEqual(job.wait(60), 3)
        self.assertEqual(self.state(folder), ("3", False, True))
        self.assertEqual((folder / "job.reason").read_text(),
                         "RuntimeError: no such file (node2: task 9: Exited with exit code 3)\n")

    def start_again(self, folder):
        again = clean_environment(PATH=f"{self.root}/bin:{os.environ['PATH']}", SLURM_JOB_ID="7", SLURM_JOB_NAME="job",
                                  SLURM_RESTART_COUNT="1")
        with open(folder / "job.out", "a") as out, open(folder / "job.err", "a") as err:
            return subprocess.run(["bash", "submit.job"], cwd=folder, env=again, stdout=out, stderr=err).returncode

    def test_started_anew_after_its_end_was_taken_it_does_nothing(self):
        folder, job = self.start(f"cat {LOG}")
        self.assertEqual(job.wait(60), 0)
        (folder / "job.status.job").write_text("ended\n")
        files = {path.name: path.read_bytes() for path in folder.iterdir()}
        self.assertEqual(self.start_again(folder), 1)
        self.assertEqual({path.name: path.read_bytes() for path in folder.iterdir()}, files)

    def test_started_anew_it_is_measured_anew(self):
        folder, job = self.start(f"cat {LOG}")
        self.assertEqual(job.wait(60), 0)
        output = (folder / "job.out").read_text()
        self.assertEqual(self.start_again(folder), 0)
        self.assertEqual((folder / "job.out").read_text(), output)
        self.assertEqual((folder / "job.status").read_text(), "0\nrestart 1\n")

    def time_out(self, first):
        # The program says by a pipe that it has written its log and waits to be ended.
        os.mkfifo(self.root / "started")
        folder, job = self.start(f"{first}; echo x > {self.root}/started; exec sleep 600")
        with open(self.root / "started") as started:
            started.readline()
        job.send_signal(signal.SIGUSR2)
        job.wait(60)
        # The first step, which srun made; a KILL for the whole job would take the job script with it.
        self.assertEqual((folder / "scancel.arguments").read_text(), "--signal=KILL 7.0\n")
        return folder, job.returncode

    def test_time_runs_out_and_the_run_is_ready(self):
        folder, code = self.time_out(f"cat {LOG}")
        self.assertEqual(code, 0)
        self.assertEqual(self.state(folder), ("0", True, False))

    def test_time_runs_out_before_anything_was_measured(self):
        folder, code = self.time_out("true")
        self.assertEqual(code, 1)
        self.assertEqual(self.state(folder), ("1", False, True))
        self.assertIn("time ran out before the first line of the log", (folder / "job.err").read_text())


class Tables(Case):
    HEADING = ["Model Size [Billion Param]", "Nodes", "Batch Size", "Pipeline Parallel", "Tensor Parallel",
               "Tokens/sec", "Report Time"]

    def test_the_published_log(self):
        # Five intervals of 7.2310, 5.3551, 5.6192, 5.3291 and 5.3247 s: 28.8591 / 5 = 5.77182 s. A step is
        # 96 x 2048 = 196608 tokens: 196608 / 5.77182 = 34063.43 tokens/s; 20000000 / 34063.43 = 587.14 s.
        out, err = self.missed("result", WORKFLOW, "--logs", LOG)
        self.assertEqual(rows(out, "megatron_nlp"),
                         [self.HEADING, ["175", "96", "96", "8", "8", "34063.43", "587.14"]])
        self.assertRegex(err, r"megatron-nlp\.yaml:\d+:\d+: reference missed: megatron_nlp: row 1: "
                              r"report_time is 587\.14; expected <= 560 .*\n")
        self.assertEqual(rows(out, "details")[1][-3:], ["50", "5.7718", "128.99"])
        # Nothing is known of the program that wrote it.
        self.assertEqual(rows(out, "versions")[1], ["175"] + ["unknown"] * 8)
        self.assertEqual(os.listdir(self.root), [])

    def test_a_log_that_meets_the_baseline(self):
        # 196608 / 5 = 39321.60 tokens/s; 20000000 / 39321.6 = 508.63 s.
        text = re.sub(r"\(s\): [0-9.]+", "(s): 5.0000", pathlib.Path(LOG).read_text())
        (self.root / "a.out").write_text(text)
        out, err = self.good("result", WORKFLOW, "--logs", "a.out")
        self.assertEqual(rows(out, "megatron_nlp")[1][5:], ["39321.60", "508.63"])
        self.assertIn("pass, row 1 has 508.63\n", err)
        # The rule is for the 175B model alone. 1024 x 2048 / 5 = 419430.40; 20000000 / 419430.4 = 47.68.
        out, err = self.good("result", WORKFLOW, "--tag", "13", "--logs", "a.out")
        self.assertEqual(rows(out, "megatron_nlp")[1], ["13", "8", "1024", "4", "2", "419430.40", "47.68"])
        self.assertEqual(err, "")

    def test_versions_stand_in_the_record_beside_the_log(self):
        (self.root / "job.out").write_text("NCCL version 2.28.9+cuda13.0\n" + pathlib.Path(LOG).read_text())
        (self.root / "record.json").write_text(
            '{\n "environment": {\n  "driver": "580.95.05",\n  "cuda_toolkit": "13.0.88",\n  "cudnn": "9.19.0",\n'
            '  "libtorch": "2.11.0+cu130",\n  "compiler": "GNU 12.2.0",\n  "tally_train": "0.1.0",\n'
            '  "git_commit": "0123456789ab"\n }\n}\n')
        out, _ = self.missed("result", WORKFLOW, "--logs", "job.out")
        self.assertEqual(rows(out, "versions"), [
            ["Model Size", "Compiler", "CUDA", "cuDNN", "NCCL", "LibTorch", "Driver", "Tally", "Commit"],
            ["175", "GNU 12.2.0", "13.0.88", "9.19.0", "2.28.9+cuda13.0", "2.11.0+cu130", "580.95.05", "0.1.0",
             "0123456789ab"]])
        # A log under another name may lie beside any record.
        (self.root / "job.out").rename(self.root / "other.out")
        out, _ = self.good("result", WORKFLOW, "--logs", "other.out", "-o", "versions")
        self.assertEqual(rows(out, "versions")[1][5:], ["unknown"] * 4)

    def test_several_logs_in_the_order_of_the_workpackages(self):
        text = pathlib.Path(LOG).read_text()
        for name, seconds in (("one", "5.0000"), ("two", "10.0000")):
            (self.root / name).write_text(re.sub(r"\(s\): [0-9.]+", "(s): " + seconds, text))
        out, _ = self.missed("result", WORKFLOW, "--set", "TP_SIZE=4,8", "--logs", "one", "two")
        table = rows(out, "megatron_nlp")
        # Batch: 384 / (8 x 4) x 16 = 192: 192 x 2048 / 5 = 78643.20. 96 x 2048 / 10 = 19660.80.
        self.assertEqual([row[2:6] for row in table[1:]],
                         [["192", "8", "4", "78643.20"], ["96", "8", "8", "19660.80"]])

    def test_what_does_not_fit_is_said(self):
        two = ["result", WORKFLOW, "--set", "TP_SIZE=4,8"]
        for arguments, words in (
                (two + ["--logs", LOG], ["1 log given, but", "step 'benchmark' has 2 workpackages", "log 2: benchmark TP_SIZE=8"]),
                (["result", WORKFLOW, "--logs", LOG, LOG], ["2 logs given, but", "has 1 workpackage"]),
                (two + ["--logs", LOG, os.path.relpath(LOG, self.root)],
                 [f"the log '{os.path.relpath(LOG, self.root)}' is given twice"]),
                (["result", WORKFLOW, "--logs", "nowhere"], ["there is no log 'nowhere'"]),
                (["result", WORKFLOW, "--logs", str(self.root)], [f"there is no log '{self.root}/job.out'"]),
                (["result", "--logs", LOG], ["--logs belong to one input file"]),
                (["result", ".", "--logs", LOG], ["--logs belong to an input file, and '.' is none"]),
                (["result", WORKFLOW, "--logs", LOG, "-o", "none"], ["no result of that name"])):
            with self.subTest(arguments=arguments[2:]):
                code, out, err = tally(*arguments, cwd=self.root)
                self.assertEqual((code, out), (2, ""))
                for part in words:
                    self.assertIn(part, err)
        # The file may stand behind the logs.
        out, _ = self.missed("result", "--logs", LOG, WORKFLOW)
        self.assertIn("34063.43", out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

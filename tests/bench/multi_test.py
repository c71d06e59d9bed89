"""bench/gpu/run-multi with programs that only pretend: which runs it makes, and that bench/report takes its record."""
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SCRIPT, REPORT = os.path.join(TOP, "bench", "gpu", "run-multi"), os.path.join(TOP, "bench", "report")
# 1,000 tokens a rank and half a second a step, on GPU 0 less; two ranks need a tenth more. A case of layers has one global
# batch. A pipeline's last stage takes twice as long.
TRAINER = """#!/usr/bin/env python3
import json, os, signal, sys
a = sys.argv
if "--plan" in a:
    if "B200" in a:
        print("{}")
        sys.exit()
    zero = a[a.index("--plan-zero") + 1] if "--plan-zero" in a else "0"
    where = [a[a.index(flag) + 1] for flag in ("--plan-device", "--plan-gpus", "--plan-gpus-per-node")]
    if where != ["H100", "2", "2"] or "--nproc-per-node" in a:
        sys.exit("tally-train: error: planned something else")
    print(json.dumps({"time": {"tokens_per_second": 4000 + 100 * int(zero)}}))
    sys.exit()
if os.environ.get("FAIL_ON", "none") in a:
    sys.exit("tally-train: error: no memory")
if os.environ.get("TOO_LARGE", "none") in a:
    sys.exit(3)
if "--rehearse" in a:
    if any(flag in a for flag in ("--nproc-per-node", "--tensor-model-parallel-size", "--pipeline-model-parallel-size", "2")):
        sys.exit("tally-train: error: rehearsed with a flag of its layout")
    if "--use-distributed-optimizer" in a and "--global-batch-size" in a:
        sys.exit(3)
    print("predicted  16.384 to 32.768 s" if "1x2x1:1" in a else "predicted  8.192 to 16.384 s")
    sys.exit()
if "WAITS" in os.environ:
    with open(os.environ["WAITS"], "w") as fifo:  # held open as long as this lives
        fifo.write("started\\n")
        fifo.flush()
        signal.pause()
ranks = int(a[a.index("--nproc-per-node") + 1]) if "--nproc-per-node" in a else 1
tokens = 1000 if "--global-batch-size" in a else 1000 * ranks
seconds = 0.55 if ranks > 1 else 0.4 if os.environ["CUDA_VISIBLE_DEVICES"] == "0" else 0.5
steps = int(a[a.index("--train-iters") + 1])
json.dump({"started": "2026-11-25T10:00:00Z", "command_line": a, "environment": {"git_commit": "c0ffee1", "device_name": "d"},
           "steps": {"seconds": [9.0] * 10 + [seconds] * (steps - 10)},
           "results": {"tokens_per_iteration": tokens, "peak_device_bytes": 2**30,
                       "tokens_per_second_median": tokens / 0.5, "model_flops_utilisation": 0.5 if ranks > 1 else None}}, open(a[a.index("--record") + 1], "w"))
"""


class Multi(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.out = os.path.join(self.folder.name, "records")
        for path, text in (("bin/tally-train", TRAINER),
                           ("path/nvidia-smi", "#!/bin/sh\nyes 'NVIDIA H100, 580.1, 700.00 W, 81559 MiB' | head -2\n")):
            file = os.path.join(self.folder.name, path)
            os.makedirs(os.path.dirname(file))
            with open(file, "w") as f:
                f.write(text)
            os.chmod(file, stat.S_IRWXU)

    def tearDown(self):
        self.folder.cleanup()

    def run_multi(self, *words, **more):
        path = os.path.join(self.folder.name, "path") + ":" + os.environ["PATH"]
        return subprocess.run([sys.executable, SCRIPT, "--build", self.folder.name, "--out", self.out, "--steps", "14",
                               "--no-peers", *words], capture_output=True, text=True, env={**os.environ, "PATH": path, **more})

    def rows(self):
        with open(os.path.join(self.out, "record.json")) as file:
            return {row["name"]: row for row in json.load(file)["rows"]}

    def test_the_ratio_is_that_to_as_many_single_gpus(self):
        done = self.run_multi("--cases", "124m,13b", "--rounds", "2")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        rows = self.rows()
        self.assertEqual(list(rows)[0:3], [f"2 GPUs, GPT-2 124M B64, {v}" for v in ("data", "data, ZeRO 1", "data, ZeRO 2")])
        self.assertEqual(rows["2 GPUs, GPT-2 124M B64, data"]["ratio"], round(0.5 / 0.55, 3))  # 4,000 and 2,000 tokens/s
        self.assertEqual(rows["2 GPUs, GPT-2 124M B64, data"]["tally"]["mfu_percent"], 45.5)
        self.assertNotIn("mfu_percent", rows["2 GPUs, GPT-2 124M B64, data"]["peer"])
        layers = rows["2 GPUs, 8 layers of 13B, global batch 8, tensor, sequence parallel"]
        self.assertEqual(layers["ratio"], round(0.5 / 0.55 / 2, 3))
        self.assertEqual(layers["predicted"], {"plan": 4000, "over_plan": 0.455, "exposed": 1000, "over_exposed": 1.818,
                                               "hidden": 2000, "over_hidden": 0.909})
        pipeline = rows["2 GPUs, 8 layers of 13B, global batch 8, pipeline"]["predicted"]
        self.assertEqual((pipeline["exposed"], pipeline["hidden"]), (529, 1059))
        self.assertEqual(rows["2 GPUs, GPT-2 124M B64, data, ZeRO 2"]["predicted"],
                         {"plan": 4200, "over_plan": 0.866, "exposed": 8000, "over_exposed": 0.455, "hidden": 16000, "over_hidden": 0.227})
        self.assertEqual(rows["2 GPUs, 8 layers of 13B, global batch 8, data, ZeRO 1"]["predicted"], {"plan": 4000, "over_plan": 0.455})
        shutil.move(os.path.join(self.out, "record.json"), os.path.join(self.folder.name, "record.json"))
        only = os.path.join(self.folder.name, "only")
        os.makedirs(only)
        shutil.move(os.path.join(self.folder.name, "record.json"), only)
        reported = subprocess.run([sys.executable, REPORT, "--records", only], capture_output=True, text=True)
        self.assertEqual((reported.returncode, reported.stderr), (0, ""))
        with open(os.path.join(self.folder.name, "RESULTS.md")) as file:
            text = file.read()
        self.assertIn("| 2 GPUs, GPT-2 124M B64, data | 2 x H100 | 3,636 (0.0 %) | 2,000 (0.0 %) | 0.909 | 2 |", text)
        self.assertIn("| 550.0 | 1.0 | 45.5 % | 4,000 | 0.455 | 1,000 | 1.818 | 2,000 | 0.909 |", text)

    def test_a_gpu_whose_rate_the_plan_does_not_know_has_none(self):
        for gpu in ("NVIDIA L4", "NVIDIA B200"):
            with open(os.path.join(self.folder.name, "path/nvidia-smi"), "w") as file:
                file.write(f"#!/bin/sh\nyes '{gpu}, 580.1, 700.00 W, 81559 MiB' | head -2\n")
            done = self.run_multi("--cases", "124m", "--rounds", "1")
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertTrue(all("plan" not in row["predicted"] for row in self.rows().values()))

    def test_chosen_variants(self):
        self.assertEqual(self.run_multi("--cases", "124m,13b", "--rounds", "1", "--variants", "data; pipeline").returncode, 0)
        self.assertEqual(list(self.rows()), ["2 GPUs, GPT-2 124M B64, data", "2 GPUs, 8 layers of 13B, global batch 8, pipeline"])

    def test_a_run_that_fails_is_named_and_earlier_cases_stay(self):
        done = self.run_multi("--cases", "124m,13b", "--rounds", "1", FAIL_ON="--sequence-parallel")
        self.assertEqual(done.returncode, 1)
        self.assertIn("tally-train failed on 13b, tensor, sequence parallel; its messages: ", done.stderr)
        self.assertIn("2 GPUs, GPT-2 124M B64, data", self.rows())

    def test_what_does_not_fit_is_left_out_and_the_rest_goes_on(self):
        done = self.run_multi("--cases", "13b-whole", "--rounds", "2", TOO_LARGE="--pipeline-model-parallel-size")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("13b-whole, pipeline: does not fit the GPUs' memory", done.stdout)
        self.assertEqual([name.split(", ", 3)[3] for name in self.rows()],
                         ["tensor", "tensor, sequence parallel", "data, ZeRO 1", "data, ZeRO 2"])

    def test_told_to_end_it_leaves_no_training(self):
        fifo = os.path.join(self.folder.name, "fifo")
        os.mkfifo(fifo)
        path = os.path.join(self.folder.name, "path") + ":" + os.environ["PATH"]
        running = subprocess.Popen([sys.executable, SCRIPT, "--build", self.folder.name, "--out", self.out, "--no-peers", "--cases", "13b"],
                                   stderr=subprocess.PIPE, text=True, env={**os.environ, "PATH": path, "WAITS": fifo})
        with open(fifo) as trainings:
            self.assertEqual(trainings.readline(), "started\n")
            running.terminate()
            self.assertEqual(running.communicate()[1], "bench/gpu/run-multi: told to end\n")
            trainings.read()  # ends when no training holds the fifo
        self.assertEqual(running.returncode, 1)

    def test_what_it_cannot_do(self):
        for words, told in ((["--cases", "12"], "unknown case '12'; known: 124m, 355m, 1558m, 13b"),
                            (["--variants", "date"], "unknown variant 'date'; known: data; data, ZeRO 1; data, ZeRO 2; tensor;"),
                            (["--gpus", "4"], "as many as --gpus says; nvidia-smi lists 2"),
                            (["--gpus", "1"], "needs at least two GPUs")):
            done = self.run_multi(*words)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn(told, done.stderr)


if __name__ == "__main__":
    unittest.main()

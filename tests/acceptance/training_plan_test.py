#!/usr/bin/env python3
"""The planner's lines in a dry run.

  training_plan_test.py TALLY SOURCE_DIR [TALLY_TRAIN]

A copy of tally has what the test puts beside it: a planner that writes down how it was called, one that hangs, the
real one, or none.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

TALLY = os.path.abspath(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2]).resolve()
TRAIN = os.path.abspath(sys.argv[3]) if len(sys.argv) > 3 else None

WORKFLOW = """
name: w
parameterset:
  - {name: p, parameter: [{name: tp, _: "1,2"}, {name: lr, _: "0.1"}, {name: plan_device, _: H100}]}
step:
  - name: train
    kind: run
    use: p
    repeat: 3
    resources: {nodes: 2, gpus_per_node: 4}
    launch: >-
      ./tally-train --tensor-model-parallel-size $tp --num-layers 4 --hidden-size 64 --num-attention-heads 4
      --seq-length 32 --vocab-size 96 --micro-batch-size 1 --global-batch-size 8 --lr $lr --train-iters 3
"""
ANSWER = """{"parameters": 2e9, "bubble": 0, "worst_stage": 0, "stages": [{"bytes": {"total": 3e9}}],
"layout": {"gpus": 8, "tensor": 1, "pipeline": 1, "data": 8}}"""


class TrainingPlan(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.bin = self.root / "bin"
        self.bin.mkdir()
        shutil.copy(TALLY, self.bin / "tally")
        (self.root / "w.yaml").write_text(WORKFLOW)
        # What the workflow names must not be run by a dry run.
        self.program(self.root / "tally-train", "touch ran")

    def program(self, path, body):
        path.write_text("#!/bin/sh\n" + body + "\n")
        path.chmod(0o755)

    def dry_run(self, *arguments, code=0, workflow="w.yaml", **environment):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "JUBE_", "TALLY_"))}
        kept.update(PATH="/usr/bin:/bin", **environment)
        done = subprocess.run([str(self.bin / "tally"), "run", workflow, "-n", *arguments], cwd=self.root, env=kept,
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertFalse((self.root / "ran").exists())
        return done.stdout

    def test_each_layout_is_planned_once(self):
        self.program(self.bin / "tally-train", f"echo \"$@\" >> {self.root}/calls\ncat <<'END'\n{ANSWER}\nEND")
        out = self.dry_run()
        self.assertIn("plan of the training:\n"
                      "  #000000 train and 2 more: 2.0 billion parameters on 8 GPUs (tensor 1 x pipeline 1 x data 8), "
                      "3.0 GB a GPU, bubble 0.0 %\n", out)
        calls = (self.root / "calls").read_text().splitlines()
        self.assertEqual(len(calls), 2)
        for size, call in enumerate(calls, 1):
            self.assertTrue(call.startswith(f"--tensor-model-parallel-size {size} --num-layers 4 "), call)
            self.assertTrue(call.endswith(" --plan --plan-json --plan-nodes=2 --plan-gpus-per-node=4 "
                                          "--plan-device=H100"), call)
        self.assertEqual(self.dry_run(), out)

    def test_one_line_says_that_there_is_no_planner(self):
        line = "no plan of the training: tally-train is neither beside this program nor in PATH\n"
        self.assertEqual(self.dry_run().count(line), 1)
        (self.root / "s.yaml").write_text("name: s\nstep: {name: s, kind: run, launch: ./solver}\n")
        self.assertNotIn("plan of the training", self.dry_run(workflow="s.yaml"))

    def test_encoders_are_not_planned(self):
        self.program(self.bin / "tally-train", f"echo x >> {self.root}/calls")
        for flags in ("--model bert-large --mock-data", "--model=distilbert", "--load-hf m --task classify"):
            (self.root / "e.yaml").write_text(
                f"name: e\nstep: {{name: e, kind: run, launch: ./tally-train {flags} --lr 1}}\n")
            self.assertNotIn("plan of the training", self.dry_run(workflow="e.yaml"))
        self.assertFalse((self.root / "calls").exists())

    def test_a_planner_that_hangs_is_asked_once(self):
        self.program(self.bin / "tally-train", f"echo x >> {self.root}/calls\nexec sleep 1000")
        begun = time.monotonic()
        out = self.dry_run()
        self.assertLess(time.monotonic() - begun, 60)
        self.assertIn("train and 2 more: no plan: ", out)
        self.assertIn("no answer within 5 s\n  ... and 1 layout more\n", out)
        self.assertEqual((self.root / "calls").read_text(), "x\n")

    def test_what_the_planner_says_of_wrong_flags(self):
        self.program(self.bin / "tally-train", "echo 'tally-train: error: --lr: no' >&2; exit 2")
        self.assertIn("no plan: tally-train: error: --lr: no\n", self.dry_run())

    @unittest.skipUnless(TRAIN, "built without tally-train")
    def test_the_real_planner(self):
        os.symlink(TRAIN + "-help", self.bin / "tally-train-help")
        out = self.dry_run(RANK="1")
        self.assertRegex(out, r"#000000 train and 2 more: \d+\.\d M parameters on 8 GPUs \(tensor 1 x pipeline 1 x "
                              r"data 8\), \d\.\d GB a GPU of the 85\.\d GB of H100: fits, bubble 0\.0 %, the model fits "
                              r"from 1 node on\n")
        self.assertIn("(tensor 2 x pipeline 1 x data 4)", out)
        out = self.dry_run("--tag", "175", workflow=str(SOURCE / "workflows/megatron-nlp.yaml"))
        self.assertRegex(out, r"benchmark: 174\.6 billion parameters on 384 GPUs \(tensor 8 x pipeline 8 x data 6\), "
                              r"[\d.]+ GB a GPU of the 42\.9 GB of A100-40GB: fits, bubble 43\.8 %")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

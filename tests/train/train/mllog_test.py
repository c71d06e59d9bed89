"""MLPerf's log of a small training, read by MLCommons' own checker.

  mllog_test.py TALLY_TRAIN SOURCE

Needs mlperf-logging (PyPI), also in a folder that TALLY_MLPERF_LOGGING names.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TRAIN = sys.argv[1]
del sys.argv[1:3]
FOLDER = os.environ.get("TALLY_MLPERF_LOGGING")
if FOLDER:
    sys.path.insert(0, FOLDER)
try:
    from mlperf_logging.compliance_checker import mlp_compliance
except ImportError:
    print("skipped: there is no mlperf-logging here")
    sys.exit(77)

MODEL = ["--num-layers", "1", "--hidden-size", "32", "--num-attention-heads", "2", "--seq-length", "32", "--max-position-embeddings", "32",
         "--vocab-size", "100", "--micro-batch-size", "2", "--global-batch-size", "4", "--mock-data", "--device", "cpu", "--lr", "1e-3",
         "--lr-decay-style", "cosine", "--lr-warmup-iters", "2"]
LLAMA = [*MODEL, "--swiglu", "--normalization", "RMSNorm", "--disable-bias-linear", "--position-embedding-type", "rope"]


class MlLog(unittest.TestCase):
    def train(self, *flags, code=0):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name) / "run.log"
        done = subprocess.run([TRAIN, *flags, "--mllog", str(path)], capture_output=True, text=True, timeout=300)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return path

    def lines(self, path):
        token = ":::MLLOG "
        text = path.read_text().splitlines()
        self.assertTrue(all(line.startswith(token) for line in text))
        return [json.loads(line[len(token):]) for line in text]

    def complaints(self, path, ruleset):
        checker = mlp_compliance.make_checker("training", ruleset, quiet=False, werror=True)
        mlp_compliance.enqueued_configs.clear()
        checker.check_file(str(path), f"training_{ruleset}/common.yaml")
        return [*checker.overwritable.values(), *checker.not_overwritable, *checker.warnings.values()]

    def test_the_checker_misses_the_quality_alone(self):
        path = self.train(*LLAMA, "--train-iters", "10", "--eval-interval-samples", "12", "--eval-iters", "2")
        found = self.complaints(path, "6.1.0")
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], r"^Failed checks for eval_accuracy")
        # The same log of a run that has the quality: an open division wants a value below 1.
        path.write_text(path.read_text().replace('"key":"eval_accuracy","value":4', '"key":"eval_accuracy","value":0'))
        self.assertEqual(self.complaints(path, "6.1.0"), [])

    def test_gpt_and_bert(self):
        # GPT-3's rules fix the length, the rates and Adam's numbers; a run of theirs goes on from a checkpoint.
        gpt = [*MODEL, "--seq-length", "2048", "--max-position-embeddings", "2048", "--lr", "2e-5", "--adam-beta2", "0.95", "--adam-eps", "1e-8"]
        path = self.train(*gpt, "--train-iters", "4", "--eval-interval", "2", "--eval-iters", "1", "--mllog-set", "init_checkpoint_step=4000")
        found = self.complaints(path, "4.1.0")
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], r"^Failed checks for eval_accuracy")
        bert = ["--model", "bert-base", "--num-layers", "1", "--hidden-size", "32", "--num-attention-heads", "2", "--seq-length", "32",
                "--micro-batch-size", "2", "--mock-data", "--device", "cpu", "--optimizer", "lamb", "--train-iters", "4",
                "--eval-interval", "2", "--eval-iters", "1"]
        found = self.complaints(self.train(*bert), "4.1.0")
        self.assertEqual(len(found), 1, found)
        self.assertRegex(found[0], r"^Failed checks for eval_accuracy")

    def test_events_and_times(self):
        path = self.train(*LLAMA, "--train-iters", "10", "--eval-interval-samples", "12", "--eval-iters", "2",
                          "--mllog-set", "submission_org=ACME", "seed=99", "own_key=[1,2]")
        lines = self.lines(path)
        keys = [line["key"] for line in lines]
        values = {line["key"]: line["value"] for line in lines}
        self.assertEqual((values["submission_org"], values["seed"], values["own_key"]), ("ACME", 99, [1, 2]))
        self.assertEqual((values["global_batch_size"], values["gradient_accumulation_steps"], values["eval_samples"]), (4, 2, 8))
        times = [line["time_ms"] for line in lines]
        self.assertEqual(times, sorted(times))
        self.assertLess(keys.index("init_start"), keys.index("init_stop"))
        self.assertEqual(keys[keys.index("init_stop") + 1:][:2], ["run_start", "block_start"])
        events = [(line["key"], line["metadata"].get("samples_count")) for line in lines[keys.index("run_start"):]]
        one = ["block_stop", "eval_start", "eval_accuracy", "eval_stop"]
        expected = [("run_start", None), ("block_start", 0)]
        for samples in (12, 24, 36):
            expected += [(key, samples) for key in one] + [("block_start", samples)]
        expected += [(key, 40) for key in [*one, "run_stop"]]
        self.assertEqual(events, expected)
        self.assertEqual(lines[-1]["metadata"]["status"], "success")

    def test_target(self):
        flags = [*LLAMA, "--train-iters", "10", "--eval-interval-samples", "8", "--eval-iters", "1"]
        lines = self.lines(self.train(*flags, "--target-loss", "100"))
        self.assertEqual((lines[-1]["metadata"]["status"], lines[-1]["metadata"]["samples_count"]), ("success", 8))
        lines = self.lines(self.train(*flags, "--target-loss", "0.001"))
        self.assertEqual((lines[-1]["metadata"]["status"], lines[-1]["metadata"]["samples_count"]), ("aborted", 40))

    def test_a_log_that_cannot_be_written(self):
        done = subprocess.run([TRAIN, *LLAMA, "--train-iters", "4", "--mllog", "/nowhere/x.log"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--mllog: /nowhere/x.log: cannot be written", done.stderr)


if __name__ == "__main__":
    unittest.main()

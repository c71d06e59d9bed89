"""bench/gpu/measure.py and table.py with programs that only pretend to train: who is asked for what, and how often."""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCH = os.path.join(TOP, "bench", "gpu")
sys.path.insert(0, BENCH)
import measure  # noqa: E402

SIZES = {"gpt2": "124M", "gpt2-medium": "355M"}
# Of the encoders' peer: its task, whose model it chooses itself, and the flags of ours that it stands for.
ENCODERS = {"mlm": ("bert-large", "--bert-no-binary-head"), "classify": ("distilbert", "--task classify --num-classes 6"),
            "squad": ("bert-large", "--task squad")}
TRAINER = """#!/usr/bin/env python3
import json, sys
a = sys.argv
json.dump({"started": "2026-11-24T10:00:00Z", "command_line": a, "environment": {"git_commit": "c0ffee1", "device_name": "d"},
           "steps": {"seconds": [9.0] * 10 + [0.5] * (int(a[a.index("--train-iters") + 1]) - 10)},
           "results": {"tokens_per_iteration": 1000, "peak_device_bytes": 2**30, "model_flops_per_token": 1e9,
                       "peak_tflops_per_second": 1.0}}, open(a[a.index("--record") + 1], "w"))
print("completed")
"""
STUBBORN_PEER = """import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), file=sys.stderr, flush=True)
print("{}", flush=True)
time.sleep(600)
"""


def parsed(words, **defaults):
    p = argparse.ArgumentParser()
    for name in defaults:
        p.add_argument("--" + name.replace("_", "-"), type=type(defaults[name]), default=defaults[name])
    return p.parse_known_args(words)[0]


class FakePeer:
    asked = []
    answer = {}

    def __init__(self, program, flags, steps, log):
        FakePeer.asked.append((program, flags))
        self.command = ["python3", program, flags]

    def measure(self):
        FakePeer.asked.append("round")
        return FakePeer.answer

    def close(self):
        pass

    def kill(self):
        pass


class Measure(unittest.TestCase):
    def test_lists(self):
        self.assertEqual(measure.chosen("355m,124m,355m"), ["355m", "124m"])
        hf = measure.chosen("hf")
        self.assertIn("355m-b7x4-t512-bf16", hf)
        self.assertNotIn("124m", hf)
        self.assertEqual(measure.chosen("124m,hf"), ["124m", *hf])
        with self.assertRaises(SystemExit) as ended:
            measure.chosen("124")
        self.assertIn("unknown case '124'; known: hf", str(ended.exception))

    def test_numbers_that_cannot_be_meant(self):
        script = os.path.join(BENCH, "measure.py")
        for words, told in ((["--rounds=0"], "--rounds: '0' is not a whole number from 1 on"),
                            (["--steps=-3"], "--steps: '-3' is not a whole number from 1 on"),
                            (["--rounds=many"], "--rounds: 'many' is not a whole number from 1 on"),
                            (["--dropout=1"], "--dropout: '1' is not a number from 0 to below 1"),
                            (["--dropout=nan"], "--dropout: 'nan' is not a number from 0 to below 1")):
            done = subprocess.run([sys.executable, script, "--print-flags", *words], capture_output=True, text=True)
            with self.subTest(words=words):
                self.assertNotEqual(done.returncode, 0)
                self.assertEqual(done.stdout, "")
                self.assertEqual(done.stderr, f"bench/gpu/measure.py: argument {told}\n")

    def test_both_sides_of_a_row_do_the_same(self):
        for name in measure.chosen("hf"):
            case = measure.CASES[name]
            words = case.our_flags()
            ours = parsed(words, model="", seq_length=0, micro_batch_size=0, global_batch_size=0)
            (program, flags), = case.peers
            peer = parsed(flags.split(), task="", model="124M", batch=8, tokens=1024, accumulation=1, precision="bf16")
            with self.subTest(name):
                if program == "hf_encoder":
                    model, task = ENCODERS[peer.task]
                    self.assertEqual(ours.model, model)
                    self.assertIn(f" {task} ", " ".join(words))
                else:
                    self.assertEqual(SIZES[ours.model], peer.model)
                self.assertEqual((ours.seq_length, ours.micro_batch_size), (peer.tokens, peer.batch))
                self.assertEqual(ours.global_batch_size or ours.micro_batch_size, peer.batch * peer.accumulation)
                ours_precision = next((p for p in ("tf32x3", "bf16", "fp16", "tf32") if "--" + p in words or p in words), "fp32")
                self.assertEqual({"tf32x3": "fp32"}.get(ours_precision, ours_precision), peer.precision)

    def test_told_to_end_it_ends_its_peers(self):
        with tempfile.TemporaryDirectory() as folder:
            here = os.path.join(folder, "gpu")
            shutil.copytree(BENCH, here, ignore=shutil.ignore_patterns("__pycache__"))
            with open(os.path.join(here, "peers", "compiled_gpt.py"), "w") as file:
                file.write(STUBBORN_PEER)
            pipe, train = os.path.join(folder, "pipe"), os.path.join(folder, "train")
            os.mkfifo(pipe)
            with open(train, "w") as file:
                file.write(f"#!/bin/sh\necho begun > {pipe}\nexec sleep 600\n")
            os.chmod(train, 0o755)
            bench = subprocess.Popen([sys.executable, os.path.join(here, "measure.py"), "--train", train, "--out", folder,
                                      "--cases", "124m", "--rounds", "1"], stderr=subprocess.PIPE, text=True,
                                     start_new_session=True)
            with open(pipe) as begun:
                self.assertEqual(begun.read(), "begun\n")
            os.killpg(bench.pid, signal.SIGTERM)  # as timeout does
            self.assertIn("told to end", bench.communicate()[1])
            with open(os.path.join(folder, "124m.compiled_gpt.txt")) as file:
                peer = int(file.read())
            self.assertFalse(os.path.exists(f"/proc/{peer}"))

    def run_cases(self, *flags):
        FakePeer.asked = []
        with tempfile.TemporaryDirectory() as out:
            train = os.path.join(out, "train.py")
            with open(train, "w") as file:
                file.write(TRAINER)
            os.chmod(train, 0o755)
            with mock.patch.object(measure, "Peer", FakePeer), mock.patch.object(
                    sys, "argv", ["measure.py", "--train", train, "--out", out, "--steps", "12", *flags]), open(
                        os.devnull, "w") as quiet, mock.patch.object(sys, "stdout", quiet):
                measure.main()
            table = subprocess.run([sys.executable, os.path.join(BENCH, "table.py"), out], capture_output=True, text=True,
                                   check=True).stdout
            name = [f for f in os.listdir(out) if f.endswith(".1.json")][0]
            os.mkdir(os.path.join(out, "records"))
            shutil.copy(os.path.join(out, "record.json"), os.path.join(out, "records"))
            subprocess.run([os.path.join(TOP, "bench", "report"), "--records", os.path.join(out, "records")], check=True)
            with open(os.path.join(out, "RESULTS.md")) as file:
                self.results = file.read()
            with open(os.path.join(out, name)) as file:
                return " ".join(json.load(file)["command_line"]), table

    def test_dropout_is_the_same_on_both_sides(self):
        FakePeer.answer = {"peer": "HF Trainer", "tokens_per_second": 500.0, "peak_gb": 1.0}
        for flags, dropout in (((), "0.1"), (("--dropout", "0"), "0.0")):
            ours, table = self.run_cases("--cases", "124m-b8-bf16", "--rounds", "1", *flags)
            self.assertIn(f"--hidden-dropout {dropout} --attention-dropout {dropout}", ours)
            self.assertEqual(FakePeer.asked, [("hf_trainer", f"--batch 8 --dropout {dropout}"), "round"])
            self.assertIn("| 124m-b8-bf16 | HF Trainer | 500 | 0.0 % | 0.9 | 4.000 |", table)
            row = "124M B8 T1024 bf16" + ("" if dropout == "0.1" else ", dropout 0.0")
            self.assertIn(f"\n| {row} | d | 2,000 | 500 | 4.0 | 1 | [c0ffee1][1] |\n", self.results)
        ours, _ = self.run_cases("--cases", "124m", "--rounds", "1")
        self.assertIn("--hidden-dropout 0 --attention-dropout 0", ours)
        self.assertEqual(FakePeer.asked[0], ("compiled_gpt", "--model 124M --batch 64"))

    def test_a_peer_that_does_not_fit_is_asked_once(self):
        FakePeer.answer = {"peer": "HF Trainer", "error": "out of memory"}
        _, table = self.run_cases("--cases", "124m-b64-bf16", "--rounds", "3")
        self.assertEqual(FakePeer.asked.count("round"), 1)
        self.assertIn("| 124m-b64-bf16 | HF Trainer | out of memory |", table)
        self.assertIn("124M B64 T1024 bf16: HF Trainer: out of memory.", " ".join(self.results.split()))


if __name__ == "__main__":
    unittest.main()

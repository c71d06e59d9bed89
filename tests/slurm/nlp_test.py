#!/usr/bin/env python3
"""The NLP workflow, scaled down, on two and four nodes of a real Slurm, to its tables and charts: tensor, sequence and
pipeline parallelism; on four nodes two replicas that share the optimizer.   nlp_test.py TALLY --train TALLY_TRAIN [TEST ...]"""
import pathlib
import re
import shutil
import sys

import place
from place import SlurmTest

TRAIN = ""
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
SIZES = {"NNODES": "2,4", "GPUS_PER_NODE": 2, "CPUS_PER_NODE": 2, "TP_SIZE": 2, "PP_SIZE": 2, "GAS": 4, "NLAYERS": 4,
         "NHIDDEN": 64, "NHEADS": 4, "sequence": 32, "train_samples": 160, "initialisation": "--ffn-hidden-size 128",
         "master_suffix": "", "socket_interface": "lo"}
# The nodes have no GPUs, all are this host, and a last flag holds.
WRAPPER = ('[ "$1" = --version ] && exec {train} "$@"\n[ "$1" = prepare ] && exec {train} "$@"\n'
           '[ "$1" = --plan ] && exec {train} "$@"\n'
           'export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE\n'
           'exec {train} "$@" --device cpu --distributed-backend sockets --master-addr 127.0.0.1\n')


class Nlp(SlurmTest):
    options = {"nodes": 4, "cpus": 2, "gpus": 2}

    def test_the_workflow_to_its_table(self):
        text = SOURCE / ".deps/text/english.txt"
        if not TRAIN or not text.exists() or not (SOURCE / ".deps/vocab/vocab.json").exists():
            self.skipTest("tally-train, or the text and the vocabulary that scripts/setup fetches, are missing")
        program = self.place.program("train", WRAPPER.format(train=TRAIN))
        (self.place.root / "text.txt").write_bytes(text.read_bytes()[:200_000])
        settings = [f"--set={name}={value}" for name, value in SIZES.items()]
        code, out, err = self.place.tally(
            "run", str(SOURCE / "workflows/megatron-nlp.yaml"), "--tag", "scaling", "-o", "run", *settings,
            f"--set=tally_train={program}", f"--set=text={self.place.root / 'text.txt'}", seconds=300)
        # Its references are those of real machines, which this one misses.
        self.assertIn(code, (0, 5), out + err)
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines()
                if re.match(r"\|\s+0 \|", line)]
        self.assertEqual([row[:5] for row in rows[:2]], [["0", "2", "4", "2", "2"], ["0", "4", "8", "2", "2"]], out)
        for row in rows[:2]:
            rate, report = (float(cell) for cell in row[5:7])
            self.assertGreater(rate, 0)
            self.assertLess(abs(report * rate / 20e6 - 1), 0.01)
        # Nothing was published of two and four nodes; the planner has an answer.
        self.assertEqual([row[4] for row in rows[2:4]], ["-", "-"], out)
        for row in rows[2:4]:
            self.assertGreater(float(row[5]), 0)
        for chart in ("strong_scaling", "report_time"):
            drawn = (self.place.root / f"run/000000/result/{chart}.svg").read_text()
            self.assertEqual(len(re.findall(r"<title>[^<]*: Nodes [24], [^<]*</title>", drawn)), 4, chart)


if __name__ == "__main__":
    arguments = list(sys.argv)
    if "--train" in arguments:
        at = arguments.index("--train")
        TRAIN = shutil.which(arguments[at + 1]) or ""
        del arguments[at:at + 2]
    place.main(arguments)

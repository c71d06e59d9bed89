#!/usr/bin/env python3
"""DistilBERT's workflow on a real Slurm, one and four ranks on two nodes, to its tables and charts.

scaling_test.py TALLY --train TALLY_TRAIN [TEST ...]"""
import json
import shutil
import sys

import place
from place import SOURCE, SlurmTest

TRAIN = ""
# All nodes are this host, and a last flag holds.
WRAPPER = ('export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE\n'
           'exec {train} "$@" --device cpu --distributed-backend sockets --master-addr 127.0.0.1\n')
SIZES = {"devices": "1,4", "train_batch": 8, "precision": "fp32", "eval_batch": 32, "most_devices": 1,
         "eval_precision": "fp32", "phases_precision": "fp32"}


class Scaling(SlurmTest):
    options = {"nodes": 2, "cpus": 2}

    def test_the_workflow_to_its_tables(self):
        if not TRAIN:
            self.skipTest("tally-train is missing")
        program = self.place.program("train", WRAPPER.format(train=TRAIN))
        settings = [f"--set={name}={value}" for name, value in SIZES.items()]
        code, out, err = self.place.tally(
            "run", str(SOURCE / "workflows/distilbert-scaling.yaml"), "--tag", "slurm", "small", "-o", "run", *settings,
            f"--set=trainer={program}", seconds=220)
        self.assertEqual(code, 0, out + err)
        code, out, err = self.place.tally("result", "run", "-s", "json")
        self.assertEqual(code, 0, err)
        tables = {table["name"]: [row["values"] for row in table["rows"]] for table in json.loads(out)["tables"]}
        self.assertEqual([row["devices"] for row in tables["training"]], [1, 4])
        one, four = tables["training"]
        self.assertAlmostEqual(four["Speedup"], 4 * four["throughput"] / one["throughput"], 9)
        self.assertGreater(tables["phases"][1]["aggregation"], 0)
        self.assertEqual([(row["devices"], row["eval_mode"]) for row in tables["evaluation"]],
                         [(1, "gather"), (4, "gather"), (1, "reduce"), (4, "reduce")])
        for row in tables["evaluation"]:
            self.assertGreater(row["prediction_seconds"], 0)
        self.assertEqual(len(tables["accuracy"]), 1)
        run = self.place.root / "run/000000"
        for name in ("training_speedup", "evaluation_speedup", "metric_time", "broadcast_time"):
            self.assertTrue((run / f"result/{name}.svg").exists(), name)
        records = [json.loads(file.read_text()) for file in run.glob("0*_train/work/record.json")]
        self.assertEqual(sorted(r["configuration"]["parallel"]["world_size"] for r in records), [1, 4])
        script = max(run.glob("0*_train")) / "work/submit.job"
        self.assertIn("#SBATCH --nodes=2\n#SBATCH --ntasks-per-node=2\n", script.read_text())


if __name__ == "__main__":
    arguments = list(sys.argv)
    if "--train" in arguments:
        at = arguments.index("--train")
        TRAIN = shutil.which(arguments[at + 1]) or ""
        del arguments[at:at + 2]
    place.main(arguments)

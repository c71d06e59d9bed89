#!/usr/bin/env python3
"""Workflows on a private Slurm from YAML to table.   run_test.py TALLY [--train TALLY_TRAIN] [TEST ...]"""
import os
import re
import shutil
import sys

import cluster as slurm
import place
from place import SOURCE, SlurmTest

TRAIN = ""


class Run(SlurmTest):
    def test_a_sweep_ends_in_its_table(self):
        self.place.write(values="1,2,3")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertIn("i,v\n1,10\n2,20\n3,30\n", out)
        for package in self.place.packages():
            self.assertRegex(package["job_id"], r"^\d+$")
            self.assertRegex(package["job_name"], rf"^small-train-00000{package['id']}-[0-9a-f]+$")


    def test_columns_of_jobs_without_accounting(self):
        self.place.write(text=place.WORKFLOW.replace(
            "column: [i, v]", "column: [i, job_nodes, job_elapsed, job_energy, job_max_rss]"))
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"\n1,node[12],\d+,,\n2,node[12],\d+,,\n")
        for name in ("job_energy", "job_max_rss"):
            self.assertIn(f"note: t: '{name}' is not available in 2 of 2 rows: Slurm has no accounting here (slurmdbd)\n", err)

        self.place.tally("report", "run", "-o", "report.md")
        self.assertRegex((self.place.root / "report.md").read_text(), r"\n\| Job nodes \| node[12](, node2)? \|\n")

    def test_repeats_until_a_point_is_precise(self):
        # Point 1 is precise at once; the values of point 2 never are.
        self.place.write(keys="repeat: {min: 6, max: 8, warmup: 1, until: {metric: v, half_width: 1%}}\n    max_async: 0",
                         launch="\"bash -c 'echo v=$(( ${i} == 1 ? 100 : ${jube_wp_iteration} * ${jube_wp_iteration} ))'\"",
                         text=place.WORKFLOW.replace("column: [i, v]", "column: [i, {{_: v, statistic: median}}]"))
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertIn("\n1,100,6 of 6\n", out)
        self.assertRegex(out, r"\n2,[\d.]+,8 of 8\n")
        self.assertIn("row 2: 'v': after 8 repeats the interval of the median is ", err)
        points = [package["directory"] for package in self.place.packages()]
        self.assertEqual(len(points), 7 + 9)
        # What is not needed was never submitted.
        self.assertEqual(len({package["job_id"] for package in self.place.packages()}), 7 + 9)


class Queue(SlurmTest):
    options = {"nodes": 4, "cpus": 64}

    def test_a_full_queue_of_short_jobs_ends_in_its_table(self):
        # One minute each: Slurm's half-minutely look at time limits falls among them.
        values = ",".join(map(str, range(200)))
        text = place.WORKFLOW.replace('time: "00:05:00"', 'time: "00:01:00"')
        self.place.write(values=values, text=text)
        code, out, err = self.place.tally("run", "small.yaml", seconds=200)
        self.assertEqual(code, 0, out + err)
        self.assertIn("i,v\n" + "".join(f"{i},{10 * i}\n" for i in range(200)), out)
        slurm.wait_for(lambda: not self.cluster.jobs(), "the jobs' end")


class Quickstart(SlurmTest):
    options = {"nodes": 2, "gpus": 1}

    def test_quickstart(self):
        text = SOURCE / ".deps/text/english.txt"
        if not TRAIN or not text.exists():
            self.skipTest("tally-train or the text that scripts/setup fetches is missing")
        path = os.path.dirname(TRAIN) + ":" + self.cluster.env["PATH"]
        # Few iterations, and two cores for four jobs at once.
        code, out, err = self.place.tally(
            "run", str(SOURCE / "workflows/quickstart.yaml"), "--tag", "slurm", "-o", "run", "--set", "iterations=20",
            "--set", "hidden=64", env={"PATH": path, "OMP_NUM_THREADS": "1"}, seconds=200)
        self.assertEqual(code, 0, out + err)
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines()
                if re.match(r"\|\s+\d", line)]
        self.assertEqual([row[:4] for row in rows], [[layers, "64", "8", "128"] for layers in ("2", "4")])
        for row in rows:
            self.assertGreater(float(row[6]), 0)  # tokens/s
            self.assertLess(float(row[5]), float(row[4]))  # the loss has come down


if __name__ == "__main__":
    arguments = list(sys.argv)
    if "--train" in arguments:
        at = arguments.index("--train")
        TRAIN = shutil.which(arguments[at + 1]) or ""
        del arguments[at:at + 2]
    place.main(arguments)

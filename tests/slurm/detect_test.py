#!/usr/bin/env python3
"""`tally platform detect` on a private Slurm: its file is a platform.   detect_test.py TALLY [TEST ...]"""
import sys

import place
from place import SOURCE, SlurmTest


class Detect(SlurmTest):
    options = {"nodes": 2, "gpus": 2, "conf": "PartitionName=long Nodes=node1 MaxTime=2-00:00:00 State=UP\n"}

    def test_what_slurm_says_is_a_platform_of_the_shipped_workflows(self):
        code, out, err = self.place.tally("platform", "detect", "-o", "slurm.yaml")
        self.assertEqual(code, 0, out + err)
        text = (self.place.root / "slurm.yaml").read_text()
        for line in (r"  name: tally\n  scheduler: slurm\n", r"\n  partition: debug +# debug\*: 2 nodes of 8 CPUs and 16000 MB, gpu:2, limit 1:00:00\n",
                     r"\n  # partition: long +# long: 1 node of 8 CPUs and 16000 MB, gpu:2, limit 2-00:00:00\n",
                     r"\n  # account: +# fill in", r"\n  gpus_per_node: 2 ", r"\n  # cpus_per_task: 4 +# 8 CPUs for 2 tasks a node",
                     r"\n  # max_time: 3600 ", r"\n  # mpi: \w+ +# fill in one of .*pmi2"):
            self.assertRegex(text, line)
        self.assertEqual(self.place.tally("validate", "slurm.yaml")[0], 0)
        for workflow in ("quickstart", "gpt2-wikitext2"):
            code, out, err = self.place.tally("validate", str(SOURCE / f"workflows/{workflow}.yaml"), "--tag", "slurm",
                                              "--include-path", str(self.place.root))
            self.assertEqual(code, 0, out + err)
        # Each line that is for a person to fill in is one that the file may have.
        lines = [line for line in text.splitlines() if not line.startswith("  # partition:")]
        whole = "\n".join(line.replace("  # ", "  ", 1) if line.startswith("  # ") else line for line in lines)
        (self.place.root / "whole.yaml").write_text(whole.replace("account:  ", "account: me ") + "\n")
        code, out, err = self.place.tally("validate", "whole.yaml")
        self.assertEqual(code, 0, out + err + whole)

    def test_jobs_go_there(self):
        self.place.tally("platform", "detect", "-o", "site.yaml")
        self.place.write(text=place.WORKFLOW.replace(
            '- {{from: slurm/platform.yaml, _: "systemParameter,executeset,executesub,jobfiles"}}',
            '- {{from: site.yaml, _: "systemParameter,executeset,executesub,jobfiles"}}'))
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertIn("\n1,10\n2,20\n", out)

    def test_a_file_that_is_there_stays(self):
        (self.place.root / "site.yaml").write_text("mine")
        code, out, err = self.place.tally("platform", "detect", "-o", "site.yaml")
        self.assertEqual((code, out), (2, ""))
        self.assertIn("'site.yaml' is there already", err)
        self.assertEqual((self.place.root / "site.yaml").read_text(), "mine")

    def test_slurm_that_does_not_answer(self):
        code, out, err = self.place.tally("platform", "detect", "--scheduler", "lsf")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("no commands of scheduler 'lsf' are in PATH", err)
        (self.place.root / "bin").mkdir()
        self.place.program("bin/sinfo", "echo 'slurm_load_partitions: Unable to contact slurm controller' >&2; exit 1\n")
        code, out, err = self.place.tally("platform", "detect", env={"PATH": f"{self.place.root}/bin:{self.cluster.env['PATH']}"})
        self.assertEqual((code, out), (1, ""))
        self.assertIn("Unable to contact slurm controller", err)
        code, out, err = self.place.tally("platform", "detect", env={"PATH": "/nowhere"})
        self.assertEqual((code, out), (1, ""))
        self.assertIn("no scheduler's commands are in PATH", err)


if __name__ == "__main__":
    place.main(sys.argv)

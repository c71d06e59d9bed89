"""The templates in docs/ci.md: both are YAML, and their commands do what the page says, with a small benchmark."""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import yaml

SOURCE, TALLY = pathlib.Path(sys.argv[1]), sys.argv[2]
del sys.argv[1:]

BENCH = """name: bench
parameters: {n: [1, 2]}
run: sh -c 'echo "rate $RATE.$n"'
repeat: 6
metrics: {rate: {_: 'rate $jube_pat_fp', better: higher, reference: '> 1'}}
quiet_check: false
"""


def templates():
    blocks = re.findall(r"^```yaml\n(.*?)^```$", (SOURCE / "docs/ci.md").read_text(), re.M | re.S)
    return [yaml.safe_load(block) for block in blocks]


def commands():
    """The commands of each template."""
    gitlab, github = templates()
    job = gitlab["benchmark"]
    steps = github["jobs"]["benchmark"]["steps"]
    return {"gitlab": job["script"] + job["after_script"], "github": [step["run"] for step in steps if "run" in step]}


class Templates(unittest.TestCase):
    def setUp(self):
        self.root = pathlib.Path(tempfile.mkdtemp(prefix="tally-ci-"))
        self.addCleanup(shutil.rmtree, self.root)
        (self.root / "bin").mkdir()
        os.symlink(TALLY, self.root / "bin/tally")
        (self.root / "bench.yaml").write_text(BENCH)

    def call(self, command, rate):
        environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}", "RATE": str(rate), "TALLY_QUIET_CHECK": "off",
                       "GITHUB_STEP_SUMMARY": str(self.root / "summary.md")}
        return subprocess.run(command, shell=True, cwd=self.root, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, timeout=120)

    def codes(self, name, rate):
        return [(command, self.call(command, rate)) for command in commands()[name]]

    def test_a_baseline_passes_and_a_slower_program_does_not(self):
        for name in ("gitlab", "github"):
            with self.subTest(template=name):
                shutil.rmtree(self.root / "bench_run", ignore_errors=True)
                page = (SOURCE / "docs/ci.md").read_text()
                for line in re.search(r"^```\n(tally run.*?)^```$", page, re.M | re.S).group(1).splitlines():
                    if not line.startswith("git "):
                        self.assertEqual(self.call(line, 100).returncode, 0, line)
                for command, done in self.codes(name, 100):
                    self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}")
                for command, done in self.codes(name, 50):
                    self.assertEqual(done.returncode, 5 if " compare " in command else 0, f"{command}\n{done.stdout}")
                cases = [case.get("name") for case in xml.etree.ElementTree.parse(self.root / "report.xml").iter("testcase")]
                self.assertIn("n=1, repeat 1", cases)
        self.assertIn("rate", (self.root / "summary.md").read_text())


if __name__ == "__main__":
    unittest.main(verbosity=2)

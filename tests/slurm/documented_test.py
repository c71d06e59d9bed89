#!/usr/bin/env python3
"""The table of scenarios in docs/slurm.md names tests that exist."""
import pathlib
import re
import unittest

HERE = pathlib.Path(__file__).parent


class Documented(unittest.TestCase):
    def test_each_scenario_has_its_test(self):
        page = (HERE.parents[1] / "docs/slurm.md").read_text()
        rows = re.findall(r"^\| .* \| `(\w+)` \| `(\w+)` \|$", page, re.MULTILINE)
        self.assertGreaterEqual(len(rows), 40)
        self.assertEqual(len(set(rows)), len(rows))
        for program, name in rows:
            with self.subTest(name):
                self.assertIn(f"    def test_{name}(self):\n", (HERE / f"{program}_test.py").read_text())

    def test_each_failure_and_each_kill_is_in_the_table(self):
        page = (HERE.parents[1] / "docs/slurm.md").read_text()
        for program in ("failures", "killed", "accounting"):
            for name in re.findall(r"def test_(\w+)", (HERE / f"{program}_test.py").read_text()):
                with self.subTest(name):
                    self.assertTrue(name == "a_table" or f"| `{program}` | `{name}` |" in page)


if __name__ == "__main__":
    unittest.main()

"""The version stands in CMakeLists.txt; every other file that names it agrees."""

import pathlib
import re
import sys
import unittest

SOURCE = pathlib.Path(sys.argv[1])
del sys.argv[1:]

VERSION = re.search(r"^project\(tally VERSION (\S+)", (SOURCE / "CMakeLists.txt").read_text(), re.M)[1]


class Release(unittest.TestCase):
    def test_citation(self):
        self.assertIn(f"\nversion: {VERSION}\n", (SOURCE / "CITATION.cff").read_text())

    def test_changelog(self):
        headings = re.findall(r"^## (.*)$", (SOURCE / "CHANGELOG.md").read_text(), re.M)
        released = [heading for heading in headings if heading != "[Unreleased]"]
        self.assertRegex(released[0], rf"^\[{re.escape(VERSION)}\] - \d{{4}}-\d\d-\d\d$")
        day = released[0].split(" - ")[1]
        self.assertIn(f"date-released: {day}", (SOURCE / "CITATION.cff").read_text())

    def test_recipes(self):
        for recipe in sorted((SOURCE / "packaging").rglob("*")):
            if not recipe.is_file():
                continue
            for named in re.findall(r"(?i)(?:version[(=: ]+[\"']?|tally[-/])(\d+\.\d+\.\d+)", recipe.read_text()):
                self.assertEqual(named, VERSION, recipe)

    def test_license(self):
        text = (SOURCE / "LICENSE").read_text()
        self.assertIn("Apache License", text)
        self.assertIn("END OF TERMS AND CONDITIONS", text)


if __name__ == "__main__":
    unittest.main()

#!/usr/bin/env python3
"""report_formats.py TALLY SOURCE: `tally report` read by programs of others.

HTML: html5lib's parser in strict mode, which raises on every error of the HTML standard. JSON: jsonschema with the shipped
schema. JUnit: junitparser. Markdown: markdown-it-py. CSV: Python's csv.
"""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import html5lib
    import jsonschema
    import junitparser
    from markdown_it import MarkdownIt
except ImportError as missing:
    print(f"skipped: {missing}; 1 peer test not run")
    sys.exit(77)

TALLY = os.path.abspath(sys.argv[1])
SCHEMA = json.loads((pathlib.Path(sys.argv[2]) / "docs/result.schema.json").read_text())

WORKFLOW = r"""
name: "b <script>&\"'"
outpath: run
parameterset:
  name: ps
  parameter:
    - {name: n, type: int, _: "1,2,4"}
    - {name: label, _: "a|b <script>alert(1)</script>\"&*_`"}
patternset: {name: pt, pattern: {name: rate, type: float, unit: "x/<s>", _: "rate=(\\S+)"}}
step:
  name: s
  kind: run
  use: ps
  repeat: 6
  do: 'echo rate=$(($n * 100 + $jube_wp_iteration)); printf "\377\033[1m</pre>\140\140\140 <b>\n"; test $n -ne 4'
analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}
result:
  use: a
  table:
    name: t
    column: [n, label, {_: rate, statistic: median, uncertainty: ci, better: higher, reference: ">= 200"}]
  chart: {name: c, x: n, y: rate, error: ci, title: "<&>"}
"""


def tally(folder, *words, code=0):
    ran = subprocess.run([TALLY, *words], capture_output=True, cwd=folder, check=False)
    assert ran.returncode == code, (words, ran)
    return ran


def strict_html(path):
    """Parses, and fails on the first error of the HTML standard."""
    parser = html5lib.HTMLParser(strict=True)
    return parser.parse(path.read_bytes(), transport_encoding="utf-8")


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "b.yaml").write_text(WORKFLOW)
        tally(folder, "run", "b.yaml", "-q", code=5)
        tally(folder, "run", "b.yaml", "-q", code=5)
        for words in (["-i", "0"], ["-i", "all"]):
            tally(folder, "report", "run", *words, "-o", "r.html")
            page = strict_html(folder / "r.html")
            scripts = page.findall(".//{http://www.w3.org/1999/xhtml}script")
            assert all("alert" not in (script.text or "") for script in scripts)
        # A validator that accepts everything proves nothing.
        (folder / "bad.html").write_text((folder / "r.html").read_text().replace("</table>", "</tabel>", 1))
        try:
            strict_html(folder / "bad.html")
            raise AssertionError("html5lib accepts a broken page")
        except html5lib.html5parser.ParseError:
            pass
        print("ok: HTML without an error")
        tally(folder, "report", "run", "-i", "all", "-o", "r.json")
        document = json.loads((folder / "r.json").read_text())
        jsonschema.validate(document, SCHEMA)
        assert len(document["runs"]) == 2 and "Kernel" in document["runs"][0]["machine"], document["runs"]
        assert len(document["tables"][0]["rows"]) == 6
        tally(folder, "report", "run", "-o", "r.xml")
        suite, = junitparser.JUnitXml.fromfile(str(folder / "r.xml"))
        assert suite.tests == 19 and suite.failures == 7, (suite.tests, suite.failures)  # 18 workpackages, a reference
        tally(folder, "report", "run", "-i", "all", "-o", "r.xml", code=2)
        tally(folder, "report", "run", "-o", "r.csv")
        with open(folder / "r.csv", newline="") as file:
            rows = list(csv.reader(file))
        assert rows[0][:2] == ["n", "label"] and rows[1][1] == 'a|b <script>alert(1)</script>"&*_`', rows
        tally(folder, "report", "run", "--format", "md", "-o", "r.txt")
        html = MarkdownIt("commonmark").enable("table").render((folder / "r.txt").read_text())
        assert "<script>" not in html and html.count("<table>") == 2, html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html and "<strong>missed</strong>" in html, html
        assert html.count("<pre>") == 1, html  # six equal failures are one block, and what it printed stays in it
        print("ok: JSON, JUnit, CSV and Markdown")
        for form, file in (("json", "r.json"), ("csv", "r.csv"), ("junit", "r.xml")):
            printed = tally(folder, "report", "run", "--format", form).stdout
            tally(folder, "report", "run", "-o", file)
            assert printed == (folder / file).read_bytes(), (form, printed)
        printed = tally(folder, "report", "run", "--format", "md").stdout.decode()
        assert printed.startswith("# Report of ") and "**missed**" in printed, printed
        for words in ([], ["--format", "html"]):
            refused = tally(folder, "report", "run", *words, code=2)
            assert refused.stdout == b"" and b"an HTML report needs a file" in refused.stderr, refused
            assert b"-o report.html" in refused.stderr, refused
        print("ok: printed without -o")


main()

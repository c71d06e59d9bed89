"""result_formats.py TALLY SOURCE: `result -s json|jsonl|markdown`, `compare -s json`, `history -s json` and `run --junit`
read by programs of others.

JSON is validated against the schemas in docs/ by the package jsonschema, JUnit's XML is read by junitparser, and the
Markdown by markdown-it-py, with tables and no raw HTML.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import jsonschema
import junitparser
from markdown_it import MarkdownIt

TALLY = os.path.abspath(sys.argv[1])
DOCS = pathlib.Path(sys.argv[2]).absolute() / "docs"
SCHEMA = json.loads((DOCS / "result.schema.json").read_text())

WORKFLOW = r"""
name: b
outpath: run
parameterset:
  name: ps
  parameter:
    - {name: n, type: int, _: "1,2,4"}
    - {name: label, _: "a|b <script>\"&*"}
patternset:
  name: pt
  pattern:
    - {name: rate, type: float, unit: x/s, _: "rate=(\\S+)"}
    - {name: word, _: "word=(.*)"}
    - {name: big, type: int, _: "big=(\\d+)"}
step:
  name: s
  kind: run
  use: ps
  repeat: 7
  do: 'echo rate=$(($n * 100 + $jube_wp_iteration)); echo rate=nan; echo big=123456789012345678901234567890;
    printf "word=\377\033[1mx\n"; test $n -ne 4 -o $jube_wp_iteration -ne 2'
analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}
result:
  use: a
  table:
    - {name: t, column: [n, label, {_: rate, statistic: median, uncertainty: ci, better: higher, reference: ">= 200"},
       rate_last, word, big]}
    - {name: "second", column: [n, {_: rate, title: plain}], reference: {column: rate, _: "> 0", where: "n == 2"}}
"""

failures = []


def check(holds, what):
    if not holds:
        failures.append(what)


def tally(*words, code=0, errors="strict"):
    done = subprocess.run([TALLY, *words], capture_output=True)
    check(done.returncode == code, f"{words}: exit code {done.returncode}, not {code}: {done.stderr.decode()[-500:]}")
    return done.stdout.decode(errors=errors)  # strict: JSON and XML must be UTF-8


def validator(definition=None):
    schema = SCHEMA if definition is None else {**{k: SCHEMA[k] for k in ("$schema", "$defs")}, "$ref": definition}
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def not_json(constant):
    raise ValueError(f"{constant} is not JSON")


def check_json():
    document = json.loads(tally("result", "run", "-s", "json", code=5), parse_constant=not_json)
    for error in validator().iter_errors(document):
        failures.append(f"schema: {list(error.path)}: {error.message}")
    table = document["tables"][0]
    check([run["id"] for run in document["runs"]] == [1], "the newest run")
    row = table["rows"][2]
    check(row["repeats"] == 7 and row["statistics"]["rate median"]["n"] == 6, f"n of N: {row}")
    check(row["values"]["rate median"] == 403.5, f"median: {row}")
    check(row["values"]["rate_last"] is None, "NaN is null")
    check(row["values"]["big"] == "123456789012345678901234567890", "a big integer is a string")
    check(row["values"]["label"] == 'a|b <script>"&*', "text as it is")
    check(table["references"]["passed"] == 2 and len(table["references"]["missed"]) == 1, "references")
    check(table["columns"][2]["unit"] == "x/s" and table["columns"][2]["better"] == "higher", "columns")
    lines = [json.loads(line, parse_constant=not_json)
             for line in tally("result", "run", "-s", "jsonl", code=5).splitlines()]
    check(len(lines) == 6, f"{len(lines)} lines")
    for line in lines:
        for error in validator("#/$defs/line").iter_errors(line):
            failures.append(f"jsonl: {list(error.path)}: {error.message}")
    # The schema is strict enough to find a mistake.
    del row["status"]
    check(not validator().is_valid(document), "the schema accepts a row without status")
    tally("result", "run", "-o", "second", "-s", "json")
    runs = json.loads(tally("result", "run", "-i", "0", "1", "-s", "json", code=5))
    check(validator().is_valid(runs) and len(runs["runs"]) == 2 and len(runs["tables"][0]["rows"]) == 6, "two runs")
    check("rate" in pathlib.Path("run/000000/result/t.dat").read_text(errors="surrogateescape").splitlines()[0], "NAME.dat stays a table")


def strict(name, document):
    """Checks a document against docs/NAME.schema.json, and that the schema is strict: each object needs its keys."""
    schema = json.loads((DOCS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    own = jsonschema.Draft202012Validator(schema)
    for error in own.iter_errors(document):
        failures.append(f"{name}: {list(error.path)}: {error.message}")
    check(not own.is_valid({**document, "version": 2}), f"{name}: the schema accepts another version")
    check(not own.is_valid({**document, "more": 1}), f"{name}: the schema accepts an unknown key")
    for key in document:
        check(not own.is_valid({k: v for k, v in document.items() if k != key}), f"{name}: {key} may be missing")


def check_comparison():
    def compare(*words, code=0):
        return json.loads(tally("compare", *words, "-s", "json", code=code), parse_constant=not_json)

    # The step fails in one of seven repeats, so that a run has a row of six.
    two = compare("run/000000", "run/000001")
    strict("comparison", two)
    check([run["id"] for run in two["runs"]] == [0, 1] and "Kernel" in two["runs"][0]["machine"], "both runs")
    check([row["verdict"] for row in two["rows"]] == ["unclear", "same", "same"], f"verdicts: {two['rows']}")
    check([(row["base"]["n"], row["new"]["n"]) for row in two["rows"]] == [(7, 7), (7, 7), (6, 6)], "n of both sides")
    by = compare("run/000000", "--by", "n")
    strict("comparison", by)
    check([row["new"]["by"] for row in by["rows"]] == ["2", "4"] and by["by"] == "n", f"by: {by['rows']}")
    check(by["rows"][0]["change"] > 0.9 and by["rows"][0]["verdict"] == "improved", f"twice as fast: {by['rows'][0]}")
    strict("comparison", compare("run/000000", "--null"))
    few = compare("few/000000", "few/000001")  # two repeats a side: no interval, and one side without a value
    strict("comparison", few)
    check(few["rows"][0]["low"] is None and few["rows"][0]["repeats_needed"] > 2, f"two repeats: {few['rows']}")
    check([row["base"]["failed"] for row in few["rows"]] == [False, True], f"failed: {few['rows']}")


def check_history():
    def history(*words):
        return json.loads(tally("history", *words, "-s", "json"), parse_constant=not_json)

    document = history("run", "--metric", "rate")
    strict("history", document)
    check([one["parameters"].split()[0] for one in document["series"]] == ["n=1", "n=2", "n=4"], "series")
    one = document["series"][2]
    check(one["unit"] == "x/s" and one["better"] == "higher", f"{one['unit']}, {one['better']}")
    check([(point["run"], point["of"], len(point["sample"])) for point in one["points"]] == [(0, 7, 6), (1, 7, 6)],
          f"points: {one['points']}")
    check(one["points"][0]["median"] == 403.5 and one["points"][0]["low"] == 400, f"median: {one['points'][0]}")
    few = history("few")
    strict("history", few)
    failed = few["series"][1]["points"][0]
    check(failed["failed"] and failed["median"] is None and failed["low"] is None, f"failed: {failed}")
    # Runs with a slowdown after the fourth, written as earlier runs have left them.
    folder = pathlib.Path("past/history.d")
    folder.mkdir(parents=True)
    text = pathlib.Path("few/history.d/000000.json").read_text()
    for number in range(8):
        file = json.loads(text)
        file["run"]["id"] = number
        file["rows"] = [{**file["rows"][0], "sample": [100 + number % 2 if number < 4 else 80 - number % 2]}]
        (folder / f"{number:06}.json").write_text(json.dumps(file))
    past = history("past")
    strict("history", past)
    changes = [point["change"] for point in past["series"][0]["points"]]
    check([at for at, change in enumerate(changes) if change] == [4], f"changes: {changes}")
    check(changes[4] and changes[4]["word"] == "regresses" and abs(changes[4]["change"] + 0.209) < 0.001,
          f"change: {changes[4]}")


FEW = r"""
name: few
outpath: few
parameterset: {name: ps, parameter: {name: n, type: int, _: "1,2"}}
patternset: {name: pt, pattern: {name: rate, type: float, _: "rate=(\\S+)"}}
step: {name: s, kind: run, use: ps, repeat: 2, do: 'test $n = 1 && echo rate=$(($n * 100 + $jube_wp_iteration))'}
analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}
result: {use: a, table: {name: t, column: [n, {_: rate, statistic: median, better: higher}]}}
"""


def check_markdown():
    text = tally("result", "run", "-s", "markdown", "-o", "t", code=5, errors="surrogateescape")
    html = MarkdownIt("commonmark").enable("table").render(text)
    check(html.count("<table>") == 1 and html.count("<tr>") == 4, f"table: {html}")
    check("a|b &lt;script&gt;&quot;&amp;*" in html, f"escapes: {html}")


def check_junit():
    report = junitparser.JUnitXml.fromfile("report.xml")
    suite = next(iter(report))
    cases = {case.name: case for case in suite}
    check(report.tests == suite.tests == 23 and report.failures == 2, f"{report.tests} tests, {report.failures} failures")
    failed = [case for case in suite if case.result]
    check(len(failed) == 2, f"failed: {[case.name for case in failed]}")
    first = 'n=1, label=a|b <script>"&*, repeat 1'
    check(first in cases and cases[first].classname == "b.s", f"names: {list(cases)[:3]}")
    reference = cases["t: rate >= 200"]
    check("row 1" in reference.result[0].message, "the missed reference says which row")
    check(not cases["second: rate > 0 where n == 2"].result, "a reference that holds passes")


def main():
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        pathlib.Path("b.yaml").write_text(WORKFLOW)
        tally("run", "b.yaml", "--junit", "nowhere/report.xml", code=2)
        check(not os.path.exists("run"), "nothing is started when the report cannot be written")
        # A table has the bytes of its values.
        tally("run", "b.yaml", "-q", "--junit", "report.xml", code=5, errors="surrogateescape")
        tally("run", "b.yaml", "-q", code=5, errors="surrogateescape")
        pathlib.Path("few.yaml").write_text(FEW)
        tally("run", "few.yaml", "-q", code=1, errors="surrogateescape")
        tally("run", "few.yaml", "-q", code=1, errors="surrogateescape")
        check_json()
        check_comparison()
        check_history()
        check_markdown()
        check_junit()
    for failure in failures:
        print(failure)
    print(f"{len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()

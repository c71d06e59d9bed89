#!/usr/bin/env python3
"""The JSON schema of workflows, and the formats of `validate`, as other programs read them.

workflow_schema.py TALLY SOURCE: jsonschema checks the schema itself, the shipped workflows, the tutorial's and the docs'
examples, and files with mistakes; what the schema refuses, `tally validate` must refuse, too.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import jsonschema
    import yaml
except ImportError as missing:
    print(f"skipped: {missing}; 1 peer test not run")
    sys.exit(77)

TALLY, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])


class Loader(yaml.SafeLoader):
    """YAML with !include, whose content is not known here."""


class Unknown(Exception):
    pass


def included(loader, node):
    raise Unknown


Loader.add_constructor("!include", included)

GOOD = """
name: b
outpath: run
parameterset: {name: ps, parameter: [{name: n, type: int, _: "1,2"}, {name: m, _: [1, 2]}], zip: [[n, m]]}
patternset: {name: pt, pattern: {name: t, type: float, _: "t=$jube_pat_fp"}}
step: {name: s, kind: run, repeat: {min: 6, max: 9, until: {metric: t, half_width: 1%}}, use: [ps, {from: x.yaml, _: other}], do: ["true", {_: "echo t=1", active: "true"}]}
analyzer: {name: a, use: pt, analyse: {step: s, file: stdout}}
result:
  use: a
  table:
    - {name: t, style: pretty, column: [n, {_: t, relative_to: {n: 1}, title: x, reference: "> 0"}]}
  chart: {name: c, x: n, y: t}
"""
# A mistake, and what stands there in GOOD.
BAD = [("kind: run", "kind: runs"), ("style: pretty", "style: nice"), ("chart: {name: c, x", "chart: {x"),
       ("outpath: run", "outpaths: run"), ("x: n, y: t", "x: n, y: t, colour: red"), ("zip: [[n, m]]", "zips: [n, m]"), ("until: {metric", "till: {metric"),
       ("{name: pt, pattern", "{pattern"), ("title: x", "titles: x")]


def tally(*arguments, code=0, folder=None):
    ran = subprocess.run([TALLY, *arguments], capture_output=True, text=True, cwd=folder)
    assert ran.returncode == code, (arguments, ran)
    return ran


def workflow_files():
    """Workflows and parts of them; tables of schedulers (docs/schedulers.md) are neither."""
    files = sorted([*SOURCE.glob("workflows/**/*.yaml"), *SOURCE.glob("templates/**/*.yaml")])
    tables = [path for path in files if re.search(r"^scheduler: ", path.read_text(), re.M)]
    assert len(tables) == 4 and all(path.parent.name == "schedulers" for path in tables), tables
    return [path for path in files if path not in tables]


def examples():
    """(name, text) of everything that is a whole workflow."""
    for path in workflow_files():
        yield path.relative_to(SOURCE), path.read_text()
    for path in sorted(SOURCE.glob("docs/*.md")):
        if path.name == "ci.md":  # its YAML is GitLab's and GitHub's
            continue
        for block in re.findall(r"```yaml\n(.*?)```", path.read_text(), re.S):
            if re.search(r"^(name|step|benchmark|platform):", block, re.M):
                yield path.relative_to(SOURCE), block


def check_schema(schema):
    validator = jsonschema.Draft7Validator(schema)
    validator.check_schema(schema)
    assert validator.is_valid(yaml.load(GOOD, Loader))
    for good, bad in BAD:
        assert good in GOOD
        assert not validator.is_valid(yaml.load(GOOD.replace(good, bad), Loader)), bad
    seen = 0
    for name, text in examples():
        try:
            document = yaml.load(text, Loader)
        except Unknown:
            continue
        if isinstance(document, dict) and True in document:
            document["on"] = document.pop(True)  # a word in YAML 1.2, which editors read
        errors = sorted(validator.iter_errors(document), key=lambda error: list(error.path))
        assert not errors, f"{name}: {errors[0].message}\n{jsonschema.exceptions.best_match(errors).message}"
        seen += 1
    assert seen >= 10, seen
    print(f"ok: the schema takes {seen} workflows, and refuses {len(BAD)} mistakes")


def check_formats(folder):
    name = "a b%.yaml"
    text = GOOD.replace(", {from: x.yaml, _: other}", "")
    (folder / name).write_text(text)
    for form in ("gcc", "github"):
        assert tally("validate", name, "--format", form, folder=folder).stdout == ""
    for good, bad in BAD:
        (folder / name).write_text(text.replace(good, bad))
        found = json.loads(tally("validate", name, "--format", "json", folder=folder, code=2).stdout)
        assert found["errors"] >= 1 and found["problems"][0]["file"] == name, (bad, found)
    (folder / name).write_text(text.replace("style: pretty", "style: prety"))
    line = next(i for i, line in enumerate(text.splitlines(), 1) if "style:" in line)
    ran = tally("validate", name, "--format", "gcc", folder=folder, code=2)
    assert re.fullmatch(rf"a b%\.yaml:{line}:24: error: 'prety' is not a valid value .*; did you mean 'pretty'\?\n",
                        ran.stdout), ran.stdout
    assert ran.stderr == "", ran.stderr
    ran = tally("validate", name, "--format", "github", folder=folder, code=2)
    assert ran.stdout.startswith(f"::error file=a b%25.yaml,line={line},col=24::'prety' is not a valid"), ran.stdout
    found = json.loads(tally("validate", name, "--format", "json", folder=folder, code=2).stdout)
    assert found["errors"] == 1 and found["problems"][0]["hint"] == "did you mean 'pretty'?", found
    sarif = json.loads(tally("validate", name, "--format", "sarif", folder=folder, code=2).stdout)
    assert sarif["version"] == "2.1.0"
    result, = sarif["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    assert result["level"] == "error" and place["artifactLocation"]["uri"] == "a%20b%25.yaml", result
    assert place["region"] == {"startLine": line, "startColumn": 24}, place
    assert result["ruleId"] in [rule["id"] for rule in sarif["runs"][0]["tool"]["driver"]["rules"]]
    missing = json.loads(tally("validate", "none.yaml", "--format", "json", folder=folder, code=2).stdout)
    assert "not found" in missing["problems"][0]["message"] and "file" not in missing["problems"][0], missing
    print("ok: validate for gcc's readers, GitHub, SARIF and JSON")


def main():
    printed = tally("reference", "--json-schema").stdout
    shipped = SOURCE / "workflows/workflow.schema.json"
    assert shipped.read_text() == printed, f"{shipped} is old: tally reference --json-schema > {shipped}"
    check_schema(json.loads(printed))
    for path in workflow_files():
        line = re.match(r"# yaml-language-server: \$schema=(\S+)\n", path.read_text())
        assert line and (path.parent / line[1]).resolve() == shipped.resolve(), path
    print("ok: editors find the schema from every shipped workflow")
    with tempfile.TemporaryDirectory() as folder:
        check_formats(pathlib.Path(folder))


main()

#!/usr/bin/env python3
"""Random workflows through the real program, with real shells: run -n, run, script, info, result.

  program_test.py TALLY [--seeds FROM TO] PROPERTY_TEST...

The workflows are those of property_test (--print SEED), which compares far more of them without a
shell; the words of an emulator may come before it. Each value is to be the same in the dry run, in
what a command was given, in its environment, in the files of `script`, in `info` and in the result's
table.
"""
import csv
import io
import os
import re
import subprocess
import sys
import tempfile

COMMON = """parameterset:
  - name: common
    parameter:
      - {name: c0, type: int, _: "4,5"}
      - {name: c1, export: true, _: "from_${c0}_in_${jube_step_name}"}
"""
MOST_PACKAGES = 40


class Difference(Exception):
    pass


def drawn(property_test, seed):
    text = subprocess.run([*property_test, "--print", str(seed)], check=True, capture_output=True,
                          text=True).stdout
    tags = text.split("\n", 1)[0].removeprefix("# tags:").split()
    return text, tags


class Case:
    def __init__(self, tally, folder, text, tags):
        self.tally, self.folder, self.text = tally, folder, text
        self.tags = ["--tag", *tags] if tags else []
        self.environment = dict(os.environ, TALLY_PROPERTY="of the engine",
                                TALLY_PROPERTY_FOLDER=folder + "/own")
        names = "\n".join(f"{s}{i} = #{s}{i}#" for i in range(3) for s in "abcd")
        for name, content in (("drawn.yaml", text), ("common.yaml", COMMON),
                              ("template.in", f"id #jube_wp_id# in #jube_wp_abspath#\n{names}\n")):
            with open(f"{folder}/{name}", "w", encoding="utf-8") as file:
                file.write(content)

    def call(self, *words):
        done = subprocess.run([self.tally, *words], cwd=self.folder, env=self.environment,
                              capture_output=True, text=True, timeout=120, check=False)
        return done.returncode, done.stdout

    def info(self):
        """Each workpackage's values, by id."""
        packages = {}
        # Those of the long form, or the two of the short form.
        steps = re.findall(r"^  - name: (s\d)$|^(build|run):", self.text, re.MULTILINE)
        steps = [long or short for long, short in steps]
        for step in steps:
            code, out = self.call("info", "runs", "--id", "0", "-s", step, "-p", "-c")
            if code != 0:
                raise Difference(f"info -s {step} ends with {code}")
            for row in csv.DictReader(io.StringIO(out)):
                packages[int(row["id"])] = row
        return packages

    def changes(self, name):
        """Whether a later cycle gives the parameter another value than the dry run shows."""
        return re.search(rf"name: {name},[^}}]*update_mode: (cycle|always)", self.text)


def check_dry_run(case, out, packages):
    lines = dict(re.findall(r"^  #(\d+) (.*)$", out, re.MULTILINE))
    everywhere = "".join(re.findall(r"^  the same everywhere:(.*)$", out, re.MULTILINE))
    if len(lines) != len(packages):
        raise Difference(f"the dry run lists {len(lines)} workpackages, info {len(packages)}")
    for number, row in packages.items():
        line = lines[f"{number:06}"] + everywhere + " "
        if line.split()[0] != row["jube_step_name"]:
            raise Difference(f"workpackage {number} is of another step in the dry run")
        for name, value in row.items():
            # A value with a blank is quoted there.
            if f" {name}=" not in line or case.changes(name) or re.search(r"[\s'\"]", value):
                continue
            if f" {name}={value} " not in line:
                raise Difference(f"{number}: {name} is {value!r}, in the dry run {line!r}")


def check_commands(number, row):
    """What the commands printed, and the environment that they left on the disk."""
    work = row["jube_wp_abspath"]
    for name in sorted(os.listdir(work)):
        path = f"{work}/{name}"
        if name.startswith("stdout") or name.startswith("out_"):
            with open(path, encoding="utf-8") as file:
                blocks = file.read().split("<op>")[1:]
            if not blocks:
                continue
            for tag, value in re.findall(r"<(\w+)>(.*?)</\1>", blocks[-1], re.DOTALL):
                if tag in row and tag != "jube_wp_status" and \
                        " ".join(value.split()) != " ".join(row[tag].split()):
                    raise Difference(f"{number}: a command saw {tag} {value!r}, info {row[tag]!r}")
        if name.startswith("seen_"):
            check_environment(number, row, path)


def check_environment(number, row, path):
    with open(path, "rb") as file:
        entries = file.read().decode().split("\0")
    seen = dict(entry.split("=", 1) for entry in entries if "=" in entry)
    for name in filter(None, row["jube_wp_envlist"].split(",")):
        # An environment is made once, when the workpackage begins.
        if seen.get(name) != row[name] and row["jube_step_cycles"] == "1":
            raise Difference(f"{number}: {name} is {seen.get(name)!r} in the environment, "
                             f"{row[name]!r} of info")


def check_scripts(case, packages):
    code, _ = case.call("script", "drawn.yaml", *case.tags, "--out", "scripts")
    if code != 0:
        return  # no step makes a file
    run = os.path.realpath(f"{case.folder}/runs/000000")
    out = os.path.realpath(f"{case.folder}/scripts")
    works = {os.path.basename(os.path.dirname(row["jube_wp_relpath"])): row["jube_wp_abspath"]
             for row in packages.values()}
    for folder, _, names in os.walk(out):
        for name in names:
            work = works.get(os.path.basename(folder))
            if work is None or not os.path.exists(f"{work}/{name}"):
                continue
            with open(f"{folder}/{name}", encoding="utf-8") as file:
                ours = file.read().replace(out, run)
            with open(f"{work}/{name}", encoding="utf-8") as file:
                theirs = file.read().replace(out, run)
            if ours != theirs:
                raise Difference(f"{folder}/{name} is {ours!r}, in the run {theirs!r}")


def check_table(case, packages):
    code, out = case.call("result", "runs", "--id", "0", "-s", "csv")
    if code != 0:
        return
    for row in csv.DictReader(io.StringIO(out.split("\n\n")[0])):
        info = packages.get(int(row.get("jube_wp_id") or -1))
        if info is not None and any("," in value for value in info.values()):
            continue  # a file in JUBE's language has raw CSV: its cells cannot be told apart
        for name, value in row.items():
            plain = re.sub(r"\[.*\]$", "", name or "")
            if info is None or info.get(plain) is None or info[plain] == "":
                continue
            if value != info[plain] and not is_number(value):
                raise Difference(f"the table has {name} {value!r}, info {info[plain]!r}")


def is_number(text):
    try:
        float(text)
        return True
    except (TypeError, ValueError):
        return False


def play(tally, property_test, seed):
    text, tags = drawn(property_test, seed)
    with tempfile.TemporaryDirectory(prefix="tally-program-") as folder:
        case = Case(tally, folder, text, tags)
        code, out = case.call("-v", "run", "-n", "--all", "drawn.yaml", *case.tags)
        listed = len(re.findall(r"^  #\d+ ", out, re.MULTILINE))
        if code != 0 or listed == 0 or listed > MOST_PACKAGES:
            return False
        code, _ = case.call("run", "drawn.yaml", *case.tags)
        if not os.path.isdir(f"{folder}/runs/000000"):
            raise Difference(f"the dry run is fine, the run ends with {code}")
        packages = case.info()
        # These let a workpackage end before an earlier one: children get other ids.
        if code == 0 and not re.search(r"^ *(repeat|procs|shared):", text, re.MULTILINE):
            check_dry_run(case, out, packages)
            check_scripts(case, packages)
        for number, row in packages.items():
            if row["jube_wp_status"] == "DONE":
                check_commands(number, row)
        check_table(case, packages)
        code, again = case.call("continue", "runs", "--id", "0")
        if case.info() != packages:
            raise Difference(f"continue changes a run that has ended: {again}")
    return True


def main():
    tally, property_test = os.path.abspath(sys.argv[1]), sys.argv[2:]
    first, last = 0, 40
    if property_test[0] == "--seeds":
        first, last = (int(word) for word in property_test[1:3])
        property_test = property_test[3:]
    played, failed = 0, 0
    for seed in range(first, last):
        try:
            played += play(tally, property_test, seed)
        except Difference as difference:
            failed += 1
            print(f"seed {seed}: {difference}")
    print(f"{played} of {last - first} workflows run, {failed} differ")
    return 1 if failed or played * 2 < last - first else 0


if __name__ == "__main__":
    sys.exit(main())

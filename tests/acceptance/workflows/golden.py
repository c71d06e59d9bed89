"""What the tests of the workflows have in common: a run's tables and charts as text whose measured numbers are masked, and
the job script of a dry run, against golden files.

A test is called as   NAME_test.py TALLY SOURCE_DIR [--update]   and ends with 77 (skipped) where a text that scripts/setup
fetches is missing. --update writes the golden files anew; read them before they are committed.
"""
import difflib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

TALLY = os.path.abspath(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2]).resolve()
UPDATE = "--update" in sys.argv
GOLDEN = SOURCE / "tests/acceptance/workflows/golden"
SKIPPED = 77
# Columns that differ from machine to machine, or are not known on one.
VERSIONS = ("libtorch", "cuda", "driver")
OF_THE_MACHINE = ("machine", *VERSIONS)


def need(*files):
    """Skips the test where one of the files is missing."""
    missing = [file for file in files if not (SOURCE / file).exists()]
    if missing:
        print(f"skipped: {', '.join(missing)} is missing; scripts/setup fetches it")
        sys.exit(SKIPPED)


def tally(*arguments, cwd, expected=0, **environment):
    """Standard output and standard error of a command that must end with the code `expected`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "SRUN_", "JUBE_", "TALLY_"))}
    # The workflows find tally-train in PATH, or beside this program.
    kept.update({"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE", "TALLY_QUIET_CHECK": "off", **environment})
    done = subprocess.run([TALLY, *arguments], cwd=cwd, env=kept, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != expected:
        sys.exit(f"tally {' '.join(arguments)}\nended with {done.returncode}, not {expected}\n{done.stdout}\n{done.stderr}")
    return done.stdout, done.stderr


def tables(run, cwd, kept=()):
    """Tables by name: a list of rows, each a list of texts, the titles first. A number that is not in a column of `kept`
    is N, or 0 where it is not positive; what is missing or not a number is "-"."""
    out, _ = tally("result", run, "-s", "json", cwd=cwd)
    found = {}
    for table in json.loads(out)["tables"]:
        rows = [[column["title"] for column in table["columns"]]]
        for row in table["rows"]:
            cells = []
            for column in table["columns"]:
                value = row["values"].get(column["key"])
                measured = isinstance(value, (int, float)) and column["key"] not in kept
                if value is None:
                    cells.append("-" if column["key"] not in VERSIONS else column["key"].upper())
                elif measured:
                    cells.append("N" if value > 0 else "0")
                else:
                    own = column["key"] in OF_THE_MACHINE and column["key"] not in kept
                    cells.append(column["key"].upper() if own else str(value))
            rows.append(cells + ([row["status"]] if row["status"] != "done" else []))
        found[table["name"]] = rows
    return found


def charts(folder):
    """Each chart of a run: its title, and its values' names with the numbers masked."""
    lines = []
    for path in sorted(pathlib.Path(folder, "result").glob("*.svg")):
        titles = re.findall(r"<title[^>]*>([^<]*)</title>", path.read_text())
        lines.append(f"chart {path.stem}: {titles[0] if titles else ''}")
        for title in titles[1:]:
            lines.append("  " + re.sub(r" ([0-9.,]+(e[+-]?\d+|×10\S+)?|10[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+)( \S+)?$", " N", title))
    return lines


def round_trip(run, cwd):
    """The run as an archive, verified in an empty folder without an environment."""
    tally("archive", run, "-o", "archive.zip", cwd=cwd)
    with tempfile.TemporaryDirectory() as empty:
        shutil.copy(pathlib.Path(cwd) / "archive.zip", empty)
        done = subprocess.run([TALLY, "verify", "archive.zip"], cwd=empty, env={}, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"tally verify: ended with {done.returncode}\n{done.stdout}{done.stderr}")


def shown(run, folder, cwd, kept, machine=""):
    """The tables and charts of a run as one text. The run is also archived and verified."""
    round_trip(run, cwd)
    lines = []
    for name, rows in tables(run, cwd, kept).items():
        lines.append(f"table {name}")
        lines += ["  " + " | ".join(row) for row in rows]
    lines += charts(folder)
    text = "\n".join(lines) + "\n"
    return text.replace(machine, "MACHINE") if machine else text


def machine_of(run, cwd):
    """The device's name in the first row that has one."""
    out, _ = tally("result", run, "-s", "json", cwd=cwd)
    names = [row["values"].get("machine") for table in json.loads(out)["tables"] for row in table["rows"]]
    return next((name for name in names if name), "")


def script(workflow, number, cwd, *arguments):
    """The job script of a workpackage, with the places of this machine masked."""
    out, _ = tally("run", str(SOURCE / "workflows" / workflow), "-n", "--script", str(number), "-o", "RUN", *arguments,
                   cwd=cwd)
    return out.replace(str(pathlib.Path(TALLY).parent), "BIN").replace(str(cwd), "DIR").replace(str(SOURCE), "SOURCE")


def compare(name, got):
    path = GOLDEN / name
    if UPDATE:
        path.parent.mkdir(exist_ok=True)
        path.write_text(got)
    expected = path.read_text() if path.exists() else ""
    if got == expected:
        print(f"{name}: as expected")
        return
    sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), got.splitlines(True), f"golden/{name}", "now"))
    sys.exit(1)


def in_a_folder(test):
    with tempfile.TemporaryDirectory(prefix="tally-workflow-") as folder:
        test(pathlib.Path(folder))


def check(condition, words):
    if not condition:
        sys.exit(words)

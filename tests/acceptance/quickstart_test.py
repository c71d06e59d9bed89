#!/usr/bin/env python3
"""The quickstart as a newcomer runs it, against golden output with the volatile parts masked.

  quickstart_test.py TALLY SOURCE_DIR table      runs workflows/quickstart.yaml, compares the table it prints
  quickstart_test.py TALLY SOURCE_DIR slurm      compares the dry run of the Slurm job script
Exit code 77 (skipped) when the text or vocabulary that scripts/setup fetches is missing.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile


def run(command, cwd, environment):
    done = subprocess.run(command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def table_of(output):
    """The printed table with every measured number as N and its column widths squeezed."""
    rows = [line for line in output.splitlines() if line.startswith("|")]
    masked = []
    for row in rows:
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        if set("".join(cells)) <= {"-", ":"}:
            masked.append("|---|")
        elif not masked:
            masked.append("| " + " | ".join(cells) + " |")
        else:  # parameters stay, measurements (from the fifth column on) are masked once they are numbers
            for i in range(4, len(cells)):
                if re.fullmatch(r"\d+(\.\d+)?", cells[i]):
                    cells[i] = "N." + "N" * len(cells[i].split(".")[1]) if "." in cells[i] else "N"
            masked.append("| " + " | ".join(cells) + " |")
    return "\n".join(masked) + "\n"


def compare(name, got):
    golden = pathlib.Path(__file__).parent.parent / "golden" / name
    if got == golden.read_text():
        print(f"{name}: as expected")
        return
    sys.stdout.write(got)
    sys.exit(f"error: the output above differs from {golden}")


def main():
    tally, source, what = sys.argv[1:]
    source = pathlib.Path(source)
    if not (source / ".deps/text/english.txt").exists() or not (source / ".deps/vocab/vocab.json").exists():
        print("skipped: .deps/text or .deps/vocab is missing; scripts/setup fetches them")
        sys.exit(77)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "JUBE_"))}
    with tempfile.TemporaryDirectory() as directory:
        workflow = str(source / "workflows/quickstart.yaml")
        if what == "table":
            output = run([tally, "run", workflow, "-o", directory, "--tag", "small"], directory, environment)
            compare("quickstart_table.txt", table_of(output))
            run([tally, "archive", directory, "-o", f"{directory}/archive.zip"], directory, environment)
            run([tally, "verify", f"{directory}/archive.zip"], "/", {})
        else:
            command = [tally, "run", workflow, "--tag", "slurm", "-o", "RUN", "-n", "--script", "1"]
            output = run(command, directory, environment)
            output = output.replace(str(pathlib.Path(tally).parent), "BIN").replace(directory, "DIR").replace(
                str(source), "SOURCE")
            if os.listdir(directory):
                sys.exit(f"error: the dry run wrote {os.listdir(directory)}")
            compare("quickstart_slurm.txt", output)


if __name__ == "__main__":
    main()

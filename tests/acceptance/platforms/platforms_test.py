#!/usr/bin/env python3
"""The job scripts of the shipped platforms, as dry run and `tally script` give them, against golden files.

  platforms_test.py TALLY SOURCE_DIR [--update]

The golden files were read line by line when they were written; --update writes them anew.
"""
import difflib
import os
import pathlib
import subprocess
import sys
import tempfile

TALLY = os.path.abspath(sys.argv[1])
SOURCE = pathlib.Path(sys.argv[2]).resolve()
HERE = SOURCE / "tests/acceptance/platforms"
CASES = {"slurm": ["slurm"], "site": ["site"], "apptainer": ["container"], "docker": ["docker"],
         "podman": ["podman"], "local": ["local"], "pbs": ["pbs"], "pbs_site": ["pbs_full"],
         "lsf": ["lsf"], "lsf_site": ["lsf_full"]}


def tally(*arguments, cwd):
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "SBATCH_", "SRUN_", "JUBE_", "TALLY_"))}
    done = subprocess.run([TALLY, *arguments], cwd=cwd, env=kept, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"tally {' '.join(arguments)} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def main():
    update = "--update" in sys.argv
    wrong = 0
    for name, tags in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            workflow = str(HERE / "workflow.yaml")
            shown = tally("run", workflow, "-n", "--script", "0", "-o", f"{folder}/run", "--tag", *tags, cwd=folder)
            tally("script", workflow, "--out", f"{folder}/run/000000", "--tag", *tags, cwd=folder)
            script = (pathlib.Path(folder) / "run/000000/000000_train/work/submit.job").read_text()
            # The folder of the runs is in the scripts, that of each command its own.
            script = script.replace(f"{folder}/run/000000", f"{folder}/run")
            if script.replace(f"{folder}/run", "RUNS") != shown.replace(f"{folder}/run", "RUNS"):
                print(f"{name}: `tally script` writes other bytes than the dry run shows")
                wrong += 1
            shown = shown.replace(f"{folder}/run", "RUNS")
        syntax = subprocess.run(["bash", "-n"], input=shown, text=True, stderr=subprocess.PIPE)
        if syntax.returncode != 0:
            print(f"{name}: no script for bash: {syntax.stderr}")
            wrong += 1
        golden = HERE / "golden" / f"{name}.job"
        if update:
            golden.write_text(shown)
        expected = golden.read_text()
        if shown != expected:
            wrong += 1
            sys.stdout.writelines(difflib.unified_diff(expected.splitlines(True), shown.splitlines(True),
                                                       f"golden/{name}.job", "dry run"))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()

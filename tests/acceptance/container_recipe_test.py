#!/usr/bin/env python3
"""containers/tally-train.def as far as it can be tried without Apptainer: what it copies is there, its scripts are
scripts, and its %test passes with the programs built here in the place of the image's.

  container_recipe_test.py TALLY TALLY_TRAIN SOURCE_DIR
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

TALLY, TRAIN, SOURCE = sys.argv[1], sys.argv[2], pathlib.Path(sys.argv[3]).resolve()


def sections(text):
    """The text of each %section."""
    parts = re.split(r"^%(\w+)[^\n]*\n", text, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def main():
    found = sections((SOURCE / "containers/tally-train.def").read_text())
    copied = [line.split() for line in found["files"].splitlines() if line.strip()]
    for source, target in copied:
        if not (SOURCE / source).exists() or target != f"/opt/tally/{source}":
            sys.exit(f"%files: '{source} {target}'")
    # What CMake reads without tests must be in the image.
    cmake = (SOURCE / "CMakeLists.txt").read_text()
    for folder in re.findall(r"^(?:  )?add_subdirectory\((\w+)\)", cmake, re.M) + ["templates", "workflows", "scripts"]:
        if folder != "tests" and folder not in [source for source, _ in copied]:
            sys.exit(f"%files lacks {folder}")
    for name in ("post", "test", "runscript", "environment"):
        subprocess.run(["sh", "-n"], input=found[name], text=True, check=True)
    if " --cuda" not in subprocess.run([SOURCE / "scripts/setup", "--help"], stdout=subprocess.PIPE, text=True,
                                       check=True).stdout:
        sys.exit("%post calls scripts/setup --cuda, which it does not know")
    with tempfile.TemporaryDirectory() as folder:
        programs = pathlib.Path(folder) / "bin"
        programs.mkdir()
        (programs / "tally").symlink_to(os.path.abspath(TALLY))
        (programs / "tally-train").symlink_to(os.path.abspath(TRAIN))
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM_", "TALLY_"))}
        environment = {**kept, "PATH": f"{programs}:{os.environ['PATH']}", "TMPDIR": folder,
                       "TALLY_TEMPLATES": str(SOURCE / "templates")}
        script = found["test"].replace("/opt/tally", str(SOURCE))
        done = subprocess.run(["sh", "-c", script], env=environment, cwd=folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        if done.returncode != 0 or "the image works" not in done.stdout:
            sys.exit(f"%test ended with {done.returncode}\n{done.stdout}")
        if os.listdir(folder) != ["bin"]:
            sys.exit(f"%test left {os.listdir(folder)}")
    print("the recipe holds together")


if __name__ == "__main__":
    main()

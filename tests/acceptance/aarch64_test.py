"""tally for aarch64, run by qemu: the same bytes as the program of this machine.

  aarch64_test.py SOURCE BUILD TALLY

TALLY is this machine's program. The other one is BUILD/dist's, which `scripts/package --aarch64 static` made. What it
starts are programs of this machine, so that a run under qemu is a whole one. The engine's tests under qemu are CMake's
preset aarch64-tests, in `scripts/test --long`.
"""

import difflib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD, NATIVE = (pathlib.Path(word).resolve() for word in sys.argv[1:4])
del sys.argv[1:4]
PROGRAM = next(iter(sorted((BUILD / "dist").glob("tally-*-linux-aarch64"))), None)
# Names and numbers of this call, not of the machine.
VARIES = (re.compile(r"\b\d+(\.\d+)? ?(ms|s)\b"), re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"))
PI = r"""name: pi
parameters: {terms: [1000, 20000], scale: ['0.1', '1e-3', '12.10', "-7"]}
run: >-
  awk -v n=$terms -v s=$scale -v r=$jube_wp_iteration 'BEGIN {for (i = 0; i < n; i++) t += (1 - 2 * (i % 2)) / (2 * i + 1);
  printf "pi = %.17g\nscaled = %.9g\n", 4 * t, 4 * t * s + r / 7}'
repeat: 6
metrics: {pi: {_: 'pi = $jube_pat_fp'}, scaled: {_: 'scaled = $jube_pat_fp', better: lower}}
"""


class Aarch64(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.tally = cls.folder / "bin/tally"
        cls.tally.parent.mkdir()
        # A shell calls what it finds in PATH by its name, and this script by its whole path.
        cls.tally.write_text('#!/bin/sh\nname=${0##*/}\n[ "$(command -v "$name")" = "$0" ] || name=$0\n'
                             f'exec {shutil.which("qemu-aarch64")} -0 "$name" {PROGRAM} "$@"\n')
        cls.tally.chmod(0o755)
        # Both are found as `tally` in PATH, and tally-train is beside neither.
        cls.native = cls.folder / "native/tally"
        cls.native.parent.mkdir()
        shutil.copy(NATIVE, cls.native)
        cls.environment = dict(os.environ, TALLY_QUIET_CHECK="off", XDG_CACHE_HOME=str(cls.folder / "cache"), COLUMNS="100")

    def call(self, program, words, cwd):
        path = f"{program.parent}:{os.environ['PATH']}"
        done = subprocess.run(["tally", *map(str, words)], cwd=cwd, env=dict(self.environment, PATH=path), timeout=600,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        text = done.stdout.decode().replace(str(cwd), "HERE").replace(str(program), "tally")
        for pattern in VARIES:
            text = pattern.sub("VARIES", text)
        return f"{text}[exit code {done.returncode}]\n"

    def same(self, *words, files=(), results=()):
        """Both print the same, and leave the same files under the names `results`."""
        seen = []
        for program in (self.native, self.tally):
            with tempfile.TemporaryDirectory(dir=self.folder) as cwd:
                cwd = pathlib.Path(cwd)
                for name, text in files:
                    (cwd / name).write_text(text)
                shown = "".join(self.call(program, line.split() if isinstance(line, str) else line, cwd) for line in words)
                seen.append(shown + "".join(f"{name}:\n{(cwd / name).read_text()}" for name in results))
        if seen[0] != seen[1]:
            self.fail("\n".join(difflib.unified_diff(*(text.splitlines() for text in seen), "x86-64", "aarch64", lineterm="")))

    def test_help_and_versions(self):
        self.same("--version", "--help", "run --help", "help workpackage", "keys", "complete bash", "manual")

    def test_dry_runs_of_all_workflows(self):
        for workflow in sorted((SOURCE / "workflows").glob("*.yaml")):
            with self.subTest(workflow.name):
                self.same(["validate", workflow], ["run", workflow, "-n"], ["run", workflow, "-n", "--tag", "small"])

    def test_a_run_with_statistics(self):
        self.same("show pi.yaml", "run pi.yaml -r", "result pi_run -s csv", "run pi.yaml -r -q",
                  "compare pi_run/000000 pi_run/000001", "plot pi_run --x terms --y scaled --series scale -o chart.svg", files=[("pi.yaml", PI)], results=["chart.svg"])


if __name__ == "__main__":
    if PROGRAM is None:
        print(f"SKIPPED: there is no tally for aarch64 in {BUILD}/dist: scripts/setup --aarch64, then "
              f"TALLY_DIST={BUILD}/dist scripts/package --aarch64 static make it")
        sys.exit(77)
    unittest.main()

#!/usr/bin/env python3
"""What other programs and files say never commands a terminal, in any command; standard streams that are closed or full.

terminal_test.py TALLY

Every command of the parser is called on a pseudo-terminal, on a workflow and a run whose names, values, outputs, notes,
comments and scheduler's words have control characters. A command that this test does not call is an error of the test.
"""
import itertools
import os
import pathlib
import pty
import re
import shutil
import subprocess
import sys
import tempfile

# Texts that must not arrive: a colour, the title, the clipboard, the whole screen, a bell, C1 as UTF-8 and as a byte, DEL,
# an override of the direction of writing, and a character that cannot be seen.
EVIL = "\x1b[31mred\x1b]0;title\x07\x1b]52;c;ZXZpbA==\x07\x1b[2J\rover\x7f\u009b31mC1\u202eoverride\u2066i\u200bzero\u00adsoft\u3164filler\ufff9note\u180esep"
RAW = EVIL.replace("\r", "").encode() + b"\x9b31mbyte\xff\rover"
BAD = re.compile(rb"\x1b\[31m(?:red|[^\n]*EVIL)|\x1b\]|\x1b\[2J|\x07|\x7f|\xc2[\x80-\x9f\xad]|\xe3\x85\xa4|\xef\xbf\xb9|\xe1\xa0\x8e|\xe2\x80[\x8b\xaa-\xae]|\xe2\x81[\xa6-\xa9]"
                 rb"|\xff|(?<![\xc2-\xf4])(?<![\xe0-\xf4][\x80-\xbf])(?<![\xf0-\xf4][\x80-\xbf]{2})[\x80-\x9f]|\r(?![\n\x1b\r])")

YAML_EVIL = EVIL.replace("\\", "\\\\").replace('"', '\\"')
for old, new in (("\x1b", "\\e"), ("\x07", "\\a"), ("\r", "\\r"), ("\x7f", "\\x7f"), ("\u009b", "\\x9b"), ("\u202e", "\\u202e"),
                 ("\u2066", "\\u2066"), ("\u200b", "\\u200b")):
    YAML_EVIL = YAML_EVIL.replace(old, new)

WORKFLOW = f"""\
name: "n{YAML_EVIL}"
outpath: run
comment: "c{YAML_EVIL}"
parameterset:
  - name: p
    parameter:
      - {{name: i, separator: "|", _: "a{YAML_EVIL}|b"}}
      - {{name: two, _: "1,2"}}
patternset: {{name: pt, pattern: [{{name: v, _: "v=(.*)"}}, {{name: rate, type: float, unit: "u{YAML_EVIL}", _: "rate=([0-9]+)"}}]}}
step:
  - {{name: s, use: p, do: ["cat $jube_benchmark_home/raw; echo rate=3; cat $jube_benchmark_home/raw >&2; test $two = 1"]}}
analyser: {{name: an, use: pt, analyse: {{step: s, file: stdout}}}}
result:
  use: an
  table:
    name: t
    style: pretty
    column:
      - i
      - {{_: v, title: "title{YAML_EVIL}"}}
      - {{_: rate, reference: "> 5"}}
"""
JOBS = f"""\
name: jobs
outpath: jobs
step: {{name: j, kind: run, platform: site.yaml, resources: {{nodes: 1}}, launch: "echo {YAML_EVIL}"}}
"""
# None of this scheduler's commands answers.
SITE = "platform: {name: site, scheduler: slurm, submit_patience: 1s, status_grace: 1s}\n"
# Columns are checked on a table whose cells are short.
NARROW = """\
name: narrow
outpath: narrow
parameterset: {name: p, parameter: {name: i, separator: "|", _: "a\\e[31mb|\\u202ec|\\x7f|plain"}}
step: {name: s, use: p, do: "true"}
analyser: {name: an, analyse: {step: s}}
result: {use: an, table: {name: t, style: pretty, column: [i, jube_wp_id]}}
"""
EVIL_SBATCH = '#!/bin/sh\ncat "$RAW"\ncat "$RAW" >&2\nexit 1\n'

# The arguments of every command; each is one call.
CALLS = {
    "run": [["run", "w.yaml", "-r", "-o", "again"], ["run", "-vv", "w.yaml", "-o", "again"], ["run", "-n", "w.yaml"],
            ["run", "-n", "-v", "jobs.yaml"], ["run", "-n", "jobs.yaml", "--script", "0"], ["run", "jobs.yaml"],
            ["run", "w.yaml", "-q", "-o", "again"], ["--color", "never", "run", "w.yaml", "-o", "again"],
            ["run", EVIL], ["run", "w.yaml", "--set", EVIL], ["run", "bad.yaml"], ["run", "w.yaml", "--tag", EVIL, "-n"]],
    "continue": [["continue", "run"], ["continue", "-r", "run"], ["continue", EVIL]],
    "watch": [["watch", "run"], ["watch", EVIL]],
    "analyse": [["analyse", "run"]],
    "result": [["result", "run"], ["result", "run", "-s", "csv"], ["result", "run", "-s", "aligned"], ["result", "run", "-s", "json"],
               ["result", "run", "-s", "markdown"], ["result", "run", "-i", "all"], ["result", "run", "--select", EVIL],
               ["result", "--logs", "run/000000/000000_s/work/stdout", "-u", "w.yaml"]],
    "plot": [["plot", "run", "-o", "p.svg"], ["plot", EVIL]],
    "report": [["report", "run"], ["report", "run", "--format", "md"], ["report", "run", "--format", "csv"], ["report", EVIL]],
    "compare": [["compare", "run/000000", "run/000001"], ["compare", "run", "--by", EVIL], ["compare", "run/000000", EVIL]],
    "archive": [["archive", "run", "-o", "run.zip"], ["archive", "run", "-o", "o" + EVIL], ["archive", EVIL]],
    "verify": [["verify", "run.zip"], ["verify", "w.yaml"], ["verify", EVIL], ["verify", "run.zip", "--signature", EVIL]],
    "fleet": [["fleet", "w.yaml"], ["fleet", EVIL], ["fleet", "w.yaml", "--nodes", EVIL], ["fleet", "w.yaml", "--local", "--nodes", EVIL]],
    "history": [["history", "run", "--metric", "rate"], ["history", "run"], ["history", EVIL]],
    "meter": [["meter", "--", EVIL], ["meter", "--", "true"]],
    "doctor": [["doctor"]],
    "platform": [["platform", "detect"], ["platform", EVIL], ["platform", "detect", "--scheduler", EVIL]],
    "new": [["new", EVIL], ["new", "evil", "--", "cat", "raw"], ["new", "made"]],
    "reference": [["reference"], ["reference", "--update", "run"]],
    "info": [["info", "run"], ["info", "run", "-i", "0"], ["info", "run", "-i", "0", "-s", "s"], ["info", "run", "-i", "0", "-p"],
             ["info", "run", "-i", "0", "-s", "s", "-p"], ["info", "jobs"], ["info", EVIL]],
    "status": [["status", "run"], ["status", "jobs"], ["status", EVIL]],
    "log": [["log", "run"], ["log", "jobs"], ["log", "run", "-c", EVIL]],
    "output": [["output", "run"], ["output", "run", "-d"]],
    "comment": [["comment", "run", "new" + EVIL], ["comment", "run"]],
    "remove": [["remove", "run", "-i", "7"], ["remove", "--force", EVIL]],
    "validate": [["validate", "w.yaml"], ["validate", "bad.yaml"], ["validate", EVIL], ["validate", "broken.yaml"]],
    "show": [["show", "w.yaml"], ["show", "bad.yaml"], ["show", EVIL]],
    "tag": [["tag", "w.yaml"], ["tag", EVIL]],
    "script": [["script", "jobs.yaml", "--out", "o" + EVIL], ["script", "jobs.yaml"]],
    "help": [["help", EVIL], ["help", "run"]],
    "complete": [["complete", EVIL], ["complete", "bash"]],
    "manual": [["manual"]],
    "update": [["update"]],
}


def on_terminal(tally, words, folder, environment):
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        os.execve(tally, [tally, *words], environment)
    printed = b""
    while True:
        try:
            part = os.read(terminal, 65536)
        except OSError:
            break
        if not part:
            break
        printed += part
    os.close(terminal)
    os.waitpid(pid, 0)
    return printed


class Test:
    def __init__(self, tally, folder):
        self.tally, self.folder, self.failures = tally, folder, []
        self.environment = {**os.environ, "TALLY_QUIET_CHECK": "off", "TERM": "xterm", "RAW": str(folder / "raw"),
                            "PATH": f"{folder}/bin:{os.environ['PATH']}"}
        self.environment.pop("NO_COLOR", None)

    def expect(self, good, what):
        if not good:
            self.failures.append(what)
            print("FAILED:", what)

    def ran(self, *words, shell=""):
        if shell:
            return subprocess.run(["sh", "-c", '"$0" "$@" ' + shell, self.tally, *words], cwd=self.folder, env=self.environment,
                                  capture_output=True, check=False)
        return subprocess.run([self.tally, *words], cwd=self.folder, env=self.environment, capture_output=True, check=False)

    def write(self):
        self.folder.joinpath("raw").write_bytes(b"v=" + RAW + b"\n")
        for name, text in (("w.yaml", WORKFLOW), ("jobs.yaml", JOBS), ("site.yaml", SITE), ("narrow.yaml", NARROW), ("bin/sbatch", EVIL_SBATCH),
                           ("bad.yaml", WORKFLOW + f'"k{YAML_EVIL}": 1\n'), ("broken.yaml", f"name: [{EVIL}\n")):
            path = self.folder / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        for program in ("sbatch", "squeue", "sacct", "scontrol", "scancel", "sinfo"):
            if program != "sbatch":
                shutil.copy(self.folder / "bin/sbatch", self.folder / "bin" / program)
            (self.folder / "bin" / program).chmod(0o755)
        for _ in range(2):
            done = self.ran("run", "w.yaml")
            self.expect(done.returncode == 5, f"the run has its workpackages: {done.stderr[-500:]}")
            (self.folder / "w.yaml").touch()

    def commands(self):
        hint = self.ran("no-such-command").stderr.decode()
        return re.search(r"the commands are (.*)", hint)[1].split(", ")

    def all_commands(self):
        commands = self.commands()
        self.expect(len(commands) > 20, f"the commands are listed: {commands}")
        for command in commands:
            self.expect(command in CALLS, f"this test does not call the command '{command}'")
        shown = set()
        for command, calls in CALLS.items():
            for words in calls:
                printed = on_terminal(self.tally, words, self.folder, self.environment)
                # On a terminal, our own sequences remain: colours and the status line.
                found = BAD.findall(printed)
                at = printed.find(found[0]) if found else 0
                self.expect(not found, f"{words}: {sorted(set(found))}: {printed[max(0, at - 80):at + 80]!r}")
                self.expect(printed.strip() != b"" or command in ("remove", "comment", "plot", "script"), f"{words} prints something")
                if b"\\x1b[31mred\\x1b]0;title\\x07" in printed:
                    shown.add(command)
        # The filter is not what hides them: these commands show names or outputs.
        for command in ("run", "continue", "result", "info", "validate", "compare", "log", "report", "script", "help"):
            self.expect(command in shown, f"`{command}` shows the characters as numbers")

    def own_sequences(self):
        printed = on_terminal(self.tally, ["validate", "bad.yaml"], self.folder, self.environment)
        self.expect(b"\x1b[1;31merror:\x1b[0m" in printed, f"errors are coloured: {printed!r}")
        printed = on_terminal(self.tally, ["run", "w.yaml"], self.folder, self.environment)
        self.expect(b"\r\x1b[K" in printed, "the status line is drawn")
        self.expect(b"\x1b[1;31mfailed\x1b[0m" in printed.lower(), f"failures are coloured: {printed[-800:]!r}")

    def pipes_have_the_bytes(self):
        for words in (["result", "run", "-s", "csv"], ["result", "run"], ["run", "-n", "w.yaml"]):
            printed = self.ran(*words).stdout
            self.expect(EVIL.encode() in printed or b"\x1b[31mred" in printed, f"{words}: a pipe has the bytes: {printed[:300]!r}")
        self.expect(RAW in self.ran("output", "run", "-d").stdout, "a pipe has bytes that are not UTF-8")

    def columns(self):
        self.expect(self.ran("run", "narrow.yaml").returncode == 0, "narrow.yaml runs")
        for words in (["result", "narrow"], ["info", "narrow", "-i", "0", "-s", "s", "-p"], ["info", "narrow", "-i", "0", "-p"]):
            lines = [line.strip() for line in on_terminal(self.tally, words, self.folder, self.environment).decode().splitlines()]
            table = [line for line in lines if line.startswith("|")]
            ends = {tuple(at for at, c in enumerate(line) if c == "|") for line in table}
            self.expect(not table or len(ends) == 1, f"{words}: columns are aligned: {table}")
            self.expect(table or words[0] != "result", f"{words}: {lines}")
        kept = (self.folder / "narrow/000000/result/t.dat").read_bytes()
        self.expect(b"\x1b[31mb" in kept, "the table's file has the bytes")

    def closed_streams(self):
        """All combinations of closed standard streams: no file of the run takes their numbers, and no abort."""
        for closed in itertools.product((False, True), repeat=3):
            shell = " ".join(f"{fd}{'<' if fd == 0 else '>'}&-" for fd in range(3) if closed[fd])
            shutil.rmtree(self.folder / "narrow", ignore_errors=True)
            done = self.ran("run", "narrow.yaml", "-r", shell=shell or ":" and "")
            self.expect(done.returncode == (1 if closed[1] else 0), f"run {shell}: exit code {done.returncode}: {done.stderr!r}")
            again = self.ran("result", "narrow", "-s", "csv")
            self.expect(again.returncode == 0 and again.stdout.count(b"\n") >= 5, f"run {shell}: the run is whole: {again.stderr!r}")
            for words, code in ((["result", "narrow"], 0), (["result", "nowhere"], 2), (["continue", "narrow"], 0), (["status", "narrow"], 0)):
                done = self.ran(*words, shell=shell)
                lost = code == 0 and closed[1]
                self.expect(done.returncode == (1 if lost else code), f"{words} {shell}: exit code {done.returncode}: {done.stderr!r}")
                if lost and not closed[2]:
                    self.expect(b"cannot write to standard output" in done.stderr, f"{words} {shell}: {done.stderr!r}")

    def full_streams(self):
        for words, code in ((["result", "narrow"], 0), (["result", "nowhere"], 2), (["validate", "bad.yaml"], 2), (["run", "w.yaml"], 5)):
            for shell in (">/dev/full", "2>/dev/full", ">/dev/full 2>/dev/full"):
                done = self.ran(*words, shell=shell)
                expected = 1 if code == 0 and not shell.startswith("2>") else code
                self.expect(done.returncode == expected, f"{words} {shell}: exit code {done.returncode}: {done.stderr!r}")

    def advised(self, what, done, folder, file):
        """What the message says is done, to continue the run or to start it again, and that goes well."""
        if b"continue the run" in done.stderr or b"`continue`" in done.stderr + done.stdout:
            again = self.ran("continue", folder)
        else:
            self.expect(b"start the run again" in done.stderr, f"{what}: the message says what to do: {done.stderr!r}")
            self.expect(b"nothing that finished is lost" not in done.stderr, f"{what}: nothing had begun: {done.stderr!r}")
            self.expect(not (self.folder / folder / "000000").exists(), f"{what}: a run that never began is removed")
            again = self.ran("run", file)
        self.expect(again.returncode == 0, f"{what}: the advice is right: {done.stderr!r}, then {again.stderr!r}")

    def signals(self):
        """A limit of file sizes is an error that is said; programs that are started have the signals' default actions."""
        workflow = """\
name: big
outpath: big
parameterset: {name: p, parameter: {name: i, mode: python, _: "','.join(map(str, range(1500)))"}}
step: {name: s, use: p, do: "true"}
"""
        (self.folder / "big.yaml").write_text(workflow)
        for blocks in (0, 1, 8, 40, 64, 256):
            shutil.rmtree(self.folder / "big", ignore_errors=True)
            done = subprocess.run(["bash", "-c", f"ulimit -f {blocks}; exec \"$0\" run big.yaml -j 4", self.tally], cwd=self.folder,
                                  env=self.environment, capture_output=True, check=False)
            self.expect(done.returncode == 1 and b"File too large" in done.stderr and b"ulimit -f" in done.stderr,
                        f"ulimit -f {blocks}: exit code {done.returncode}: {done.stderr!r}")
            self.advised(f"ulimit -f {blocks}", done, "big", "big.yaml")
        (self.folder / "ignored.yaml").write_text(f"""\
name: ignored
outpath: ignored
parameterset: {{name: p, parameter: {{name: shell, mode: shell, _: "grep SigIgn /proc/self/status"}}}}
step: {{name: s, use: p, do: ["grep SigIgn /proc/self/status", "echo $shell", "yes | head -n 1 > /dev/null"]}}
""")
        self.expect(self.ran("run", "ignored.yaml").returncode == 0, "ignored.yaml runs")
        lines = (self.folder / "ignored/000000/000000_s/work/stdout").read_text().split()
        metered = self.ran("meter", "--", "grep", "SigIgn", "/proc/self/status").stdout.decode().split()
        masks = [int(word, 16) for word in lines + metered if re.fullmatch("[0-9a-f]{16}", word)]
        self.expect(len(masks) == 3, f"three programs say what they ignore: {lines} {metered}")
        for mask in masks:
            self.expect(mask & (1 << 12 | 1 << 24) == 0, f"SIGPIPE or SIGXFSZ is ignored: {mask:x}")


def main():
    with tempfile.TemporaryDirectory(prefix="tally-terminal-") as name:
        test = Test(os.path.abspath(sys.argv[1]), pathlib.Path(name))
        test.write()
        test.columns()
        test.own_sequences()
        test.pipes_have_the_bytes()
        test.closed_streams()
        test.full_streams()
        test.signals()
        test.all_commands()
        print(f"{len(test.failures)} failures; {sum(map(len, CALLS.values()))} calls of {len(CALLS)} commands on a terminal")
        return 1 if test.failures else 0


if __name__ == "__main__":
    sys.exit(main())

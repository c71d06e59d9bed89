"""Completions in the shells themselves, and the manual pages as `man` reads them."""

import os
import pathlib
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAMS = [pathlib.Path(path) for path in sys.argv[1:]]
del sys.argv[1:]

# (command line, a completion that must be offered, one that must not)
CASES = {
    "tally": [
        ("tally co", "continue", "run"),
        ("tally run --ta", "--tag", "--style"),
        ("tally result --style j", "jsonl", "csv"),
        ("tally --color a", "always", "never"),
        ("tally run --color a", "auto", "never"),
        ("tally --quiet result -s c", "csv", "json"),
        ("tally help exi", "exit-codes", "run"),
        ("tally complete f", "fish", "bash"),
        ("tally validate da", "data.yaml", "run"),
        ("tally output -o std", "stderr", "data.yaml"),
    ],
    "tally-train": [
        ("tally-train pre", "prepare", "tokenize"),
        ("tally-train --precision b", "bf16", "fp32"),
        ("tally-train evaluate --dev", "--device", "--load"),
        ("tally-train --optimizer l", "lamb", "sgd"),
        ("tally-train tokenize --tokenizer-type by", "bytes", "GPT2BPETokenizer"),
        ("tally-train prepare --input da", "data.yaml", "bf16"),
    ],
}


def printed(program, *words):
    return subprocess.run([program, *words], capture_output=True, text=True, check=True, timeout=60).stdout


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.here = pathlib.Path(folder.name)
        (self.here / "data.yaml").touch()

    def each_case(self, offered):
        for program in PROGRAMS:
            for line, wanted, unwanted in CASES[program.name]:
                with self.subTest(line=line):
                    words = offered(program, line)
                    self.assertIn(wanted, words)
                    self.assertNotIn(unwanted, words)


class Bash(InFolder):
    def offered(self, program, line):
        words = line.split()
        name = program.name
        # What `complete` calls, with readline's own completion of files where the function asks for it.
        script = f"""source <({program} complete bash)
            compopt() {{ [[ $2 == default || $2 == dirnames ]] && COMPREPLY=($(compgen -f -- "$word")); }}
            COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}
            _{name.replace('-', '_')}; printf '%s\\n' "${{COMPREPLY[@]}}" """
        done = subprocess.run(["bash", "-c", script], cwd=self.here, capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.split()

    def test_words(self):
        self.each_case(self.offered)

    def test_a_value_behind_an_equals_sign(self):
        for program in PROGRAMS:
            if program.name == "tally":
                # bash takes --style=j for three words.
                self.assertIn("json", self.offered(program, "tally result --style = j"))
                self.assertIn("pretty", self.offered(program, "tally result --style ="))


@unittest.skipUnless(shutil.which("fish"), "there is no fish")
class Fish(InFolder):
    def offered(self, program, line):
        (self.here / "completion.fish").write_text(printed(program, "complete", "fish"))
        script = f"source completion.fish; complete -C '{line}'"
        environment = dict(os.environ, HOME=str(self.here))
        done = subprocess.run(["fish", "--no-config", "-c", script], cwd=self.here, env=environment,
                              capture_output=True, text=True, timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return [row.split("\t")[0] for row in done.stdout.splitlines()]

    def test_words(self):
        self.each_case(self.offered)


@unittest.skipUnless(shutil.which("zsh"), "there is no zsh")
class Zsh(InFolder):
    """zsh completes at a terminal only: keys are typed there, and what is offered goes to a file."""

    SETUP = """
        PS1='> '; fpath=($HOME/functions $fpath); autoload -Uz compinit; compinit -u -D
        compadd() {
          local -a matches
          # -O and -A only ask; the functions of zsh pass them on.
          if [[ " $* " == *' '-(O|A|D)' '* ]]; then builtin compadd "$@"; return; fi
          builtin compadd -A matches "$@"; print -rl -- $matches >> $HOME/offered
          builtin compadd "$@"
        }
        list() { zle list-choices; print "LISTED-$((1 + 1))" > /dev/tty }
        zle -N list; bindkey '^T' list; print "READY-$((1 + 1))"
        """

    def offered(self, program, line):
        functions = self.here / "functions"
        functions.mkdir(exist_ok=True)
        (functions / f"_{program.name}").write_text(printed(program, "complete", "zsh"))
        (self.here / "setup.zsh").write_text(self.SETUP)
        (self.here / "offered").write_text("")
        child, terminal = pty.fork()
        if child == 0:
            os.chdir(self.here)
            os.environ.update(TERM="dumb", HOME=str(self.here))
            os.execvp("zsh", ["zsh", "-f", "-i"])
        try:
            os.write(terminal, b"source ./setup.zsh\n")
            self.read_until(terminal, "READY-2")
            os.write(terminal, f"{line}\x14".encode())
            self.read_until(terminal, "LISTED-2")
        finally:
            os.close(terminal)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return [word.removesuffix("=") for word in (self.here / "offered").read_text().split()]

    def read_until(self, terminal, end):
        text, deadline = "", time.monotonic() + 60
        while end not in text:
            if not select.select([terminal], [], [], max(0, deadline - time.monotonic()))[0]:
                self.fail(f"zsh did not answer: {text!r}")
            text += os.read(terminal, 65536).decode(errors="replace")

    def test_words(self):
        self.each_case(self.offered)


@unittest.skipUnless(shutil.which("man") and shutil.which("lexgrog"), "there is no man")
class ManualPage(InFolder):
    def test_pages(self):
        for program in PROGRAMS:
            page = self.here / f"{program.name}.1"
            page.write_text(printed(program, "manual"))
            read = subprocess.run(["man", "--warnings", "-Tutf8", "-l", page], capture_output=True, text=True,
                                  env=dict(os.environ, LC_ALL="C.UTF-8", MANWIDTH="80"), timeout=60)
            self.assertEqual((read.returncode, read.stderr), (0, ""))
            name = subprocess.run(["lexgrog", page], capture_output=True, text=True, timeout=60)
            self.assertEqual(name.returncode, 0, name.stdout)
            self.assertIn(f'"{program.name} - ', name.stdout)
            # Every word of the completion is explained.
            text = re.sub(r".\x08", "", read.stdout)
            lists = " ".join(re.findall(r"options\+?='([^']*)'", printed(program, "complete", "bash"))).split()
            self.assertIn("--help", lists)
            missing = {option for option in lists if option not in text.replace("\u2010", "-")}
            self.assertEqual(missing, set())


if __name__ == "__main__":
    unittest.main()

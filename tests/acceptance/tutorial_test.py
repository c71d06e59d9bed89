"""Runs every command of docs/tutorial.md, docs/tutorial-jube.md and of the reference's examples, and compares what they print.

A page is read as a person reads it: a fenced block after "Save ... as `FILE`" is that file; in a block `console` a
line that begins with "$ " is a command, and what follows is what it prints. A line of three dots stands for any
lines. Numbers with a fraction are times: any other will do, as will any white space between words. "[exit code N]"
says that a command fails.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

TALLY, SOURCE = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
del sys.argv[1:3]


def blocks(text):
    """(language, lines, the text before) of each fenced block."""
    before, language, lines = "", None, []
    for line in text.splitlines():
        if language is None and line.startswith("```"):
            language, lines = line[3:].strip(), []
        elif language is not None and line == "```":
            yield language, lines, before
            before, language = "", None
        elif language is not None:
            lines.append(line)
        else:
            before += line + "\n"


def commands(lines):
    """(command, printed lines, exit code) of a block of a terminal."""
    found = []
    for line in lines:
        if line.startswith("$ "):
            found.append([line[2:], [], 0])
        elif code := re.fullmatch(r"\[exit code (\d+)\]", line):
            found[-1][2] = int(code[1])
        else:
            found[-1][1].append(line)
    return found


def loose(line):
    """A line without what differs from run to run and from machine to machine."""
    line = re.sub(r"\d+\.\d+(e-\d+)?", "#", line)
    return re.sub(r"\|-+(?=\|)", "|-", re.sub(r"\s+", " ", line)).strip()


def fits(wanted, printed):
    """Whether the printed lines are those of the page."""
    if not wanted:
        return not printed
    if wanted[0].strip() == "...":
        return any(fits(wanted[1:], printed[at:]) for at in range(len(printed) + 1))
    head = wanted[0]
    if not printed:
        return False
    if head.rstrip().endswith("..."):
        same = loose(printed[0]).startswith(loose(head.rstrip()[:-3]))
    else:
        same = loose(head) == loose(printed[0])
    return same and fits(wanted[1:], printed[1:])


class Page(unittest.TestCase):
    def follow(self, page):
        with tempfile.TemporaryDirectory() as folder:
            os.symlink(TALLY, os.path.join(folder, "tally"))
            here = pathlib.Path(folder) / "here"
            here.mkdir()
            # Other programs of this machine mark no rows.
            environment = dict(os.environ, PATH=f"{TALLY.parent}:{os.environ['PATH']}", TERM="dumb",
                               TALLY_QUIET_CHECK="off")
            ran = 0
            for language, lines, before in blocks((SOURCE / page).read_text()):
                names = re.findall(r"[Ss]ave [^`]*as `([^`]+)`", before)
                if names and language != "console":
                    (here / names[-1]).write_text("\n".join(lines) + "\n")
                if language != "console":
                    continue
                for command, wanted, code in commands(lines):
                    done = subprocess.run(["sh", "-c", command], cwd=here, env=environment, stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT, text=True, timeout=120)
                    ran += 1
                    with self.subTest(command=command):
                        self.assertEqual(done.returncode, code, done.stdout)
                        self.assertTrue(fits(wanted, done.stdout.rstrip("\n").splitlines()),
                                        f"$ {command}\n{done.stdout}\ninstead of\n" + "\n".join(wanted))
            return ran

    def test_the_tutorial(self):
        self.assertGreater(self.follow("docs/tutorial.md"), 14)

    def test_the_tutorial_for_users_of_jube(self):
        self.assertGreater(self.follow("docs/tutorial-jube.md"), 12)

    def test_the_examples_of_the_reference(self):
        self.assertGreater(self.follow("docs/reference.md"), 1)

    def test_a_line_that_is_not_printed_is_seen(self):
        self.assertTrue(fits(["a", "...", "b 1.5"], ["a", "x", "y", "b  2.25"]))
        self.assertFalse(fits(["a", "...", "b"], ["a", "x", "c"]))
        self.assertFalse(fits(["| 1 | 2.0 |"], ["| 2 | 2.0 |"]))


if __name__ == "__main__":
    unittest.main()

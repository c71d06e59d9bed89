#!/usr/bin/env python3
"""jube_help.py TALLY: every word that JUBE's help knows, Tally's knows when it is called as jube.

The texts are Tally's own. Both end with 0 on a word that they do not know.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77


def words_of(listing):
    """The table of words: lines such as " | comment                 comment_tag            |"."""
    rows = [line.strip().strip("|").split() for line in listing.splitlines() if line.startswith(" | ")]
    return [word for row in rows for word in row]


def main():
    jube = shutil.which("jube")
    if jube is None:
        print("skipped: there is no jube; its words of help are not compared")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        as_jube = pathlib.Path(folder, "jube")
        os.symlink(os.path.abspath(sys.argv[1]), as_jube)

        def ask(program, word):
            return subprocess.run([program, "help", word], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)

        words = words_of(subprocess.run([jube, "help"], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60).stdout)
        assert len(words) > 40 and "parameterset_tag" in words, words
        for word in words:
            ours = ask(as_jube, word)
            assert ours.returncode == 0 and "no help found" not in ours.stdout, (word, ours)
            assert len(ours.stdout.splitlines()) > 2, (word, ours)
        theirs, ours = ask(jube, "nonsense"), ask(as_jube, "nonsense")
        assert theirs.returncode == ours.returncode == 0, (theirs, ours)
        assert theirs.stdout.splitlines()[0] == ours.stdout.splitlines()[0] == "no help found for nonsense", (theirs, ours)
        print(f"{len(words)} words of JUBE's help are answered")
    return 0


if __name__ == "__main__":
    sys.exit(main())

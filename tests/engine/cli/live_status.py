#!/usr/bin/env python3
"""live_status.py TALLY: on a terminal, a bar and an estimate for each step; in a small window one line.

The steps wait for this test: each workpackage reads a FIFO until the test has seen the drawing that it waits for.
"""
import fcntl
import os
import pathlib
import pty
import re
import select
import struct
import sys
import tempfile
import termios
import time

WORKFLOW = """\
name: live
outpath: run
parameterset: {name: p, parameter: {name: n, type: int, _: "1,2,3"}}
step:
  - {name: first, do: "true"}
  - {name: wait, depend: first, use: p, do: 'read word < $jube_benchmark_home/fifo_$n'}
  - {name: last, depend: wait, do: "true"}
"""


class Run:
    def __init__(self, tally, folder, rows, columns, *options):
        self.shown = ""
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            size = struct.pack("HHHH", rows, columns, 0, 0)
            fcntl.ioctl(2, termios.TIOCSWINSZ, size)
            os.execve(tally, [tally, "run", "live.yaml", *options], dict(os.environ, TERM="xterm", TALLY_QUIET_CHECK="off"))

    def until(self, pattern, limit=120):
        """What was shown up to the first match, which is taken away."""
        end = time.monotonic() + limit
        while not (found := re.search(pattern, self.shown)):
            assert time.monotonic() < end, f"no {pattern!r} in {self.shown!r}"
            if select.select([self.terminal], [], [], 1)[0]:
                try:
                    self.shown += os.read(self.terminal, 65536).decode(errors="replace")
                except OSError:
                    raise AssertionError(f"ended without {pattern!r}: {self.shown!r}") from None
        before, self.shown = self.shown[:found.end()], self.shown[found.end():]
        return before

    def end(self):
        rest = self.shown
        while True:
            try:
                part = os.read(self.terminal, 65536)
            except OSError:
                break
            if not part:
                break
            rest += part.decode(errors="replace")
        assert os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1]) == 0, rest
        return rest


def main(tally):
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        (place / "live.yaml").write_text(WORKFLOW)
        fifos = [place / f"fifo_{n}" for n in (1, 2, 3)]
        for fifo in fifos:
            os.mkfifo(fifo)
        run = Run(tally, folder, 30, 100)
        run.until(r"  first  \[#{20}\]   1/1\r\n  wait   \[\.{20}\]   0/3  1 running\r\n  last   \[\.{20}\]  0/0\+\r\n\[1/4\]")
        fifos[0].write_text("go\n")
        run.until(r"  wait   \[######\.{14}\]   1/3  1 running  ETA \d\d:\d\d\r\n")
        for fifo in fifos[1:]:
            fifo.write_text("go\n")
        run.end()
        print("ok: a bar and an estimate for each step")
        run = Run(tally, folder, 8, 100)
        before = run.until(r"\[1/4\] 1 running")
        for fifo in fifos:
            fifo.write_text("go\n")
        assert "[#" not in before + run.end(), before
        print("ok: one line in a small window")
        run = Run(tally, folder, 30, 100, "-j", "3")
        run.until(r"  wait   \[\.{20}\]   0/3  3 running\r\n(?:.*\r\n)+  job   workpackage  +parameters  +state")
        for fifo in fifos:
            fifo.write_text("go\n")
        run.end()
        print("ok: with several processes, what runs is below")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))

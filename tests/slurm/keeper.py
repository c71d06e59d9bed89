#!/usr/bin/env python3
"""Keeps the daemons of a test's cluster (cluster.py):   keeper.py FOLDER

All daemons are its children. It has left the process tree of the test and holds the other end of a pipe: when the test
ends, in whatever way, it kills every process of the cluster and removes the folder.
"""
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time

from processes import descendants, kill_quietly, processes


class Keeper:
    """Starts and ends daemons as a client says, one JSON line each; ends them all when the client is gone."""

    def __init__(self, directory):
        self.directory = directory
        self.daemons = {}

    def serve(self):
        self.libc = ctypes.CDLL(None)
        self.libc.prctl(36, 1)  # PR_SET_CHILD_SUBREAPER: slurmstepd leaves its slurmd, but not us
        pending = b""
        while True:
            self.reap()
            if not select.select([0], [], [], 0.2)[0]:
                continue
            data = os.read(0, 65536)
            if not data:
                return
            pending += data
            while b"\n" in pending:
                line, _, pending = pending.partition(b"\n")
                request = json.loads(line)
                answer = self.start(request) if request["do"] == "start" else self.end(request)
                try:
                    os.write(1, json.dumps(answer).encode() + b"\n")
                except BrokenPipeError:
                    return

    def reap(self):
        try:
            while os.waitpid(-1, os.WNOHANG)[0] != 0:
                pass
        except ChildProcessError:
            pass

    def start(self, request):
        with open(f"{self.directory}/log/{request['name']}.out", "ab") as log:
            process = subprocess.Popen(
                request["argv"], env=request["env"], cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, start_new_session=True,
                preexec_fn=lambda: self.libc.prctl(1, signal.SIGKILL))  # PR_SET_PDEATHSIG
        self.daemons[request["name"]] = process.pid
        return {"pid": process.pid}

    def end(self, request):
        pid = self.daemons.pop(request["name"], 0)
        if pid:
            kill_quietly(pid, request["signal"])
            self.wait_gone(pid, 5) or kill_quietly(pid, signal.SIGKILL)
            self.wait_gone(pid, 5)
        return {"pid": pid}

    def wait_gone(self, pid, seconds):
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            self.reap()
            if processes().get(pid, (0, "Z"))[1] == "Z":
                return True
            time.sleep(0.01)
        return False

    def finish(self):
        limit = time.monotonic() + 20
        while time.monotonic() < limit:
            left = descendants(os.getpid())
            for pid in left:
                kill_quietly(pid, signal.SIGKILL)
            self.reap()
            if not left:
                break
            time.sleep(0.01)
        shutil.rmtree(self.directory, ignore_errors=True)


def keep(directory):
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    if os.fork():  # out of the process tree of whoever ends the test
        os._exit(0)
    keeper = Keeper(directory)
    try:
        keeper.serve()
    finally:
        keeper.finish()


if __name__ == "__main__":
    keep(sys.argv[1])

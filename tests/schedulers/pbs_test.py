#!/usr/bin/env python3
"""Runs by the table of PBS, with stand-ins for its commands that answer in the forms of answers/pbs.txt: not a real one.

  pbs_test.py TALLY [TEST ...]
"""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "slurm"))
import cluster as slurm  # noqa: E402
import place  # noqa: E402
from toy_test import Alone  # noqa: E402
from workflow import workflow  # noqa: E402

# A job is a folder of the queue: its name, the process of its script and, at its end, its exit status.
QSUB = """set -e
[ "$1" = -N ] && name=$2 script=$3
cd "$QUEUE" && n=$(ls | wc -l) && mkdir $n && cd "$OLDPWD" && q=$QUEUE/$n
echo "$name" > $q/name
( export PBS_JOBID=$n.pbs01 PBS_O_WORKDIR=$PWD
  setsid bash -c 'echo $$ > '"$q"'/pid; bash "$0" > o.pbs 2> e.pbs; echo $? > '"$q"'/status' "$script" < /dev/null > /dev/null 2>&1 & )
echo "$n.pbs01"
"""
# Without the file `history` an option -x is refused, and a job that has ended is not known.
COMMON = """x=''
if [ "$1" = -x ]; then
  x=1; shift
  [ -e "$QUEUE/../history" ] || { echo "$(basename "$0"): PBS is not configured to maintain job history" >&2; exit 1; }
fi
"""
QSTAT = COMMON + """shift
code=0
for id; do
  q=$QUEUE/${id%.pbs01}
  if [ ! -e $q/name ] || { [ -z "$x" ] && [ -e $q/status ]; }; then
    echo "qstat: Unknown Job Id $id" >&2; code=153; continue
  fi
  echo "Job Id: $id"; echo "    Job_Name = $(cat $q/name)"
  if [ -e $q/status ]; then
    echo "    job_state = F"; echo "    Exit_status = $(cat $q/status)"
  else
    echo "    job_state = R"
  fi
  printf '    Variable_List = PBS_O_HOME=/home/user,PBS_O_LANG=C,\\n\\tPBS_O_QUEUE=workq\\n\\n'
done
exit $code
"""
QSELECT = COMMON + """cd "$QUEUE" && for n in *; do
  [ -e "$n/name" ] && { [ -n "$x" ] || [ ! -e "$n/status" ]; } && echo "$n.pbs01"
done; exit 0
"""
QDEL = """for id; do
  q=$QUEUE/${id%.pbs01}
  [ ! -e $q/status ] || { echo "qdel: Job has finished $id" >&2; exit 35; }
  kill -- -"$(cat $q/pid)"; echo 271 > $q/status
done
"""


class Pbs(unittest.TestCase):
    def setUp(self):
        self.place = place.Place(Alone())
        self.addCleanup(self.place.close)
        self.root = self.place.root
        for name in ("queue", "bin"):
            (self.root / name).mkdir()
        self.program("qsub", QSUB)
        self.program("qstat", QSTAT)
        self.program("qselect", QSELECT)
        self.program("qdel", QDEL)
        self.env = {"PATH": f"{self.root}/bin:{Alone.env['PATH']}"}
        (self.root / "site.yaml").write_text(
            "platform: {name: site, scheduler: pbs, status_grace: 1s, poll_slowest: 1s}\n")

    def program(self, name, text):
        self.place.program(f"bin/{name}", f"QUEUE='{self.root}/queue'\n{text}")

    def write(self, launch="echo v=${i}0", values="1,2,3"):
        self.place.write(values=values, launch=launch, keys="platform: site\n    ", text=workflow("nodes: 1, time: 5m"))

    def history(self, kept):
        (self.root / "history").touch()
        if not kept:
            (self.root / "history").unlink()

    def test_a_sweep_ends_in_its_table(self):
        for kept in (True, False):
            with self.subTest(history=kept):
                self.history(kept)
                self.write()
                code, out, err = self.place.tally("run", "small.yaml", "-o", f"run.{kept}", env=self.env)
                self.assertEqual(code, 0, out + err)
                self.assertIn("i,v\n1,10\n2,20\n3,30\n", out)

    def test_an_engine_that_is_killed_finds_its_jobs_again(self):
        for kept in (True, False):
            with self.subTest(history=kept):
                self.history(kept)
                before = len(list((self.root / "queue").iterdir()))
                free = self.root / f"free.{kept}"
                self.write(launch=f"\"bash -c 'echo v=${{i}}0; until [ -e {free} ]; do sleep 0.05; done'\"", values="1,2")
                engine = self.place.start("run", "small.yaml", "-o", f"run.{kept}", env=self.env)
                slurm.wait_for(lambda: len(list((self.root / "queue").glob("*/pid"))) == before + 2, "jobs in the queue")
                engine.kill()
                self.place.finish(engine)
                free.touch()
                slurm.wait_for(lambda: len(list((self.root / "queue").glob("*/status"))) == before + 2, "their end")
                code, out, err = self.place.tally("continue", f"run.{kept}", env=self.env)
                self.assertEqual(code, 0, out + err)
                self.assertIn("1,10\n2,20\n", out)
                self.assertEqual(len(list((self.root / "queue").iterdir())), before + 2)

    def test_a_job_without_a_status_is_lost_and_never_a_success(self):
        for kept, words in ((True, "FAILED"), (False, "the scheduler does not know job")):
            with self.subTest(history=kept):
                self.history(kept)
                number = len(list((self.root / "queue").iterdir()))
                queue = f"{self.root}/queue/{number}"
                self.write(values="1", launch=f"\"bash -c 'echo 1 > {queue}/status; kill -9 -- -$(cat {queue}/pid)'\"")
                code, out, _ = self.place.tally("run", "small.yaml", "-o", f"run.{kept}", env=self.env)
                self.assertEqual(code, 1, out)
                self.assertIn(words, (self.root / f"run.{kept}/000000/run.log").read_text())

    def test_a_server_that_is_away_for_a_moment(self):
        self.history(True)
        self.program("qsub", 'mkdir "$QUEUE/../once" 2> /dev/null && { echo "qsub: Premature end of message" >&2; exit 183; }\n' + QSUB)
        self.write()
        code, out, err = self.place.tally("run", "small.yaml", env=self.env)
        self.assertEqual(code, 0, out + err)
        self.assertIn("i,v\n1,10\n2,20\n3,30\n", out)

    def test_a_queue_that_is_none(self):
        # The exit code is the last byte of PBS' number of the error, 15018: no signal of a shell.
        self.program("qsub", 'echo "qsub: Unknown queue" >&2; exit 170\n')
        self.write(values="1")
        self.assertEqual(self.place.tally("run", "small.yaml", env=self.env)[0], 1)
        self.assertIn("qsub: Unknown queue", self.place.packages()[0]["note"])


if __name__ == "__main__":
    place.TALLY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)

#!/usr/bin/env python3
"""A scheduler that a YAML file alone adds: a queue made of shell scripts.   toy_test.py TALLY [TEST ...]"""
import os
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "slurm"))
import cluster as slurm  # noqa: E402
import place  # noqa: E402
from workflow import workflow  # noqa: E402

TABLE = """\
scheduler: toy
title: Toy
submit: {{command: [{folder}/toy-submit, $name, $script], id: "job <$id> is in"}}
query: {{command: [{folder}/toy-list], form: columns, separator: ":", fields: id state name}}
cancel: [{folder}/toy-cancel, $ids]
pause: 0.1
states:
  - {{is: running, state: R}}
  - {{is: ended, state: "E0"}}
  - {{is: timeout, state: "E124"}}
  - {{is: node, state: LOST}}
  - {{is: failed, state: "E*"}}
directives:
  prefix: "#TOY "
  option: --NAME=VALUE
  lines: [--tasks=$tasks, --time=$time_seconds, --gpus=$gpus, --queue=$partition]
  plain: _-
  quotes: "'"
job: {{id: TOY_ID, name: TOY_NAME, launcher: toy-run -n $tasks}}
"""
SUBMIT = """set -e
cd "$(dirname "$0")/queue" && n=$(ls | wc -l) && mkdir $n && cd "$OLDPWD" && q=$(dirname "$0")/queue/$n
echo "$1" > $q/name
( export TOY_ID=$n TOY_NAME=$1
  setsid bash -c 'echo $$ > '"$q"'/pid; bash "$0" > stdout 2> stderr; echo E$? > '"$q"'/state' "$2" < /dev/null > /dev/null 2>&1 & )
echo "welcome to toy"; echo "job <$n> is in the queue"
"""
LIST = """cd "$(dirname "$0")/queue" && for n in *; do
  [ -e "$n/name" ] || continue
  echo "$n:$(cat "$n/state" 2> /dev/null || echo R):$(cat "$n/name")"
done; exit 0
"""
CANCEL = """cd "$(dirname "$0")/queue" && for n; do kill -- -"$(cat "$n/pid")"; echo E143 > "$n/state"; done
"""


class Alone:
    """What a place asks of a cluster, for one that has no daemons."""
    env = {**{name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "JUBE_"))},
           "PATH": slurm.search_path()}


class Toy(unittest.TestCase):
    def setUp(self):
        self.place = place.Place(Alone())
        self.addCleanup(self.place.close)
        self.root = self.place.root
        (self.root / "queue").mkdir()
        for name, text in (("submit", SUBMIT), ("list", LIST), ("cancel", CANCEL)):
            self.place.program(f"toy-{name}", text)
        self.write_table()

    def write_table(self, table=TABLE):
        (self.root / "schedulers").mkdir(exist_ok=True)
        (self.root / "schedulers/toy.yaml").write_text(table.format(folder=self.root))

    def write(self, platform="toy", launch="echo v=${i}0", keys="", resources="nodes: 1, time: 5m", values="1,2,3"):
        self.place.write(values=values, launch=launch, keys=f"platform: {platform}\n    {keys}", text=workflow(resources))

    def test_a_sweep_ends_in_its_table(self):
        self.write()
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertIn("i,v\n1,10\n2,20\n3,30\n", out)
        self.assertEqual([package["job_id"] for package in self.place.packages()], ["0", "1", "2"])
        script = (self.place.work(0) / "submit.job").read_text()
        self.assertIn("#!/bin/bash\n#TOY --tasks=1\n#TOY --time=300\n\n", script)
        self.assertIn("job_id=${TOY_ID-} job_name=${TOY_NAME-}\n", script)
        self.assertNotIn("toy-run", script)  # of one task

    def test_a_site_has_the_scheduler_and_its_own_values(self):
        (self.root / "site.yaml").write_text(
            "platform: {name: site, scheduler: toy, partition: 'two words', options: {colour: red, gpus: 7}}\n")
        self.write(platform="site", resources="nodes: 1, tasks_per_node: 4, gpus_per_node: 2, options: {loud: true}")
        code, out, err = self.place.tally("run", "small.yaml", "-n", "--script", "0")
        self.assertEqual(code, 0, out + err)
        self.assertIn("#TOY --tasks=4\n#TOY --time=1800\n#TOY --queue='two words'\n"
                      "#TOY --colour=red\n#TOY --gpus=7\n#TOY --loud\n", out)
        self.assertIn("  toy-run -n 4 echo v=10\n", out)
        self.write(resources="nodes: 1, options: {'q x': 1}")
        self.assertIn("is not the name of an option", self.place.tally("validate", "small.yaml")[2])

    def test_how_jobs_end(self):
        self.write(launch="\"bash -c 'echo v=1; exit $i'\"", values="0,7")
        code, out, _ = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1)
        self.assertIn("0,1,done\n", out)
        self.assertIn("ended with exit code 7", self.place.packages()[1]["note"])

    def started(self, count=1, *arguments):
        """An engine whose jobs run and wait."""
        self.write(launch="\"bash -c 'echo v=${i}0; until [ -e $jube_benchmark_home/free ]; do sleep 0.05; done'\"",
                   values=",".join(map(str, range(1, count + 1))))
        engine = self.place.start("run", "small.yaml", *arguments)
        slurm.wait_for(lambda: len(list((self.root / "queue").glob("*/pid"))) == count, "jobs in the queue")
        slurm.wait_for(lambda: [package["job_id"] for package in self.place.packages()].count(None) == 0, "their ids")
        return engine

    def test_an_engine_that_is_killed_finds_its_jobs_again(self):
        engine = self.started(2)
        engine.kill()
        self.place.finish(engine)
        code, out, _ = self.place.tally("status", "run")
        self.assertIn("jobs: 0 queued, 2 running, 0 ended", out)
        (self.root / "free").touch()
        # The run has its table: the file may be another one by now.
        (self.root / "schedulers/toy.yaml").write_text("nothing\n")
        code, out, err = self.place.tally("continue", "run")
        self.assertEqual(code, 0, out + err)
        self.assertIn("1,10\n2,20\n", out)
        self.assertEqual(len(list((self.root / "queue").iterdir())), 2)

    def test_what_the_scheduler_says_of_a_job_without_a_status(self):
        for state, words in (("E124", "TIMEOUT"), ("E9", "FAILED"), ("LOST", "NODE_FAIL")):
            with self.subTest(state=state):
                (self.root / "site.yaml").write_text(
                    "platform: {name: site, scheduler: toy, status_grace: 0.2s, resubmit: 0}\n")
                self.write(platform="site", values="1", launch=f"\"bash -c 'kill -9 -- -$(cat {self.root}/queue/*/pid)'\"")
                self.place.program("toy-list", f"echo '0:{state}:'$(cat {self.root}/queue/0/name)\n")
                code, out, _ = self.place.tally("run", "small.yaml", "-o", f"run.{state}")
                self.assertEqual(code, 1, out)
                self.assertIn(words, (self.root / f"run.{state}/000000/run.log").read_text())
                for path in (self.root / "queue/0").iterdir():
                    path.unlink()
                (self.root / "queue/0").rmdir()

    def test_garbage_and_a_queue_without_the_job_are_never_success(self):
        (self.root / "site.yaml").write_text("platform: {name: site, scheduler: toy, status_grace: 0.5s}\n")
        for name, answer, words in (("lost", "exit 0", "the scheduler does not know job 0"),
                                    ("unknown", f"echo '0:?:'$(cat {self.root}/queue/0/name)", None),
                                    ("garbage", "echo 'Internal Server Error'", None),
                                    ("away", "echo 'cannot connect' >&2; exit 1", None)):
            with self.subTest(answer=name):
                self.write(platform="site", values="1", launch=f"\"bash -c 'kill -9 -- -$(cat {self.root}/queue/*/pid)'\"")
                self.place.program("toy-list", answer + "\n")
                engine = self.place.start("run", "small.yaml", "-o", name)
                if words:
                    self.assertEqual(self.place.finish(engine)[0], 1)
                    self.assertIn(words, (self.root / name / "000000/run.log").read_text())
                else:
                    # Nothing is concluded, however often it is asked.
                    with self.assertRaises(place.subprocess.TimeoutExpired):
                        engine.wait(3)
                    engine.kill()
                    self.place.finish(engine)
                for path in (self.root / "queue/0").iterdir():
                    path.unlink()
                (self.root / "queue/0").rmdir()

    def test_mistakes_in_a_table_are_told_with_their_places(self):
        for old, new, words in (
                ("title: Toy", "titel: Toy", "schedulers/toy.yaml:2:1: error: unknown key 'titel' in the table"),
                ("is: node", "is: dead", "schedulers/toy.yaml:11:10: error: 'dead' is nothing that a state may be"),
                ("$gpus", "$gpu", "schedulers/toy.yaml:16:10: error: '$gpu' is no value that may stand here"),
                ("<$id>", "<ID>", "schedulers/toy.yaml:3:"),
                ("pause: 0.1", "pause: often", "'often' is not a number"),
                ("form: columns", "form: tables", "'tables' is no form of an answer"),
                ("cancel:", "cancle:", "the table has no 'cancel'"),
                ("scheduler: toy", "scheduler: boy", "the table of 'boy' is in a file of another name"),
                ("- {{is: running, state: R}}", "- {{is: running}}", "the rule holds for every job"),
                (", $ids]", "]", "does not name $ids")):
            with self.subTest(new=new):
                self.assertIn(old, TABLE)
                self.write_table(TABLE.replace(old, new, 1))
                self.write()
                code, out, err = self.place.tally("validate", "small.yaml")
                self.assertEqual(code, 2, out + err)
                self.assertIn(words, err)
        (self.root / "site.yaml").write_text("platform: {name: site, scheduler: tory}\n")
        self.write_table()
        self.write(platform="site")
        err = self.place.tally("validate", "small.yaml")[2]
        self.assertIn("site.yaml:1:35: error: no table of a scheduler 'tory'", err)
        self.assertIn("did you mean 'toy'?", err)


if __name__ == "__main__":
    place.TALLY = os.path.abspath(sys.argv.pop(1))
    unittest.main(verbosity=2)

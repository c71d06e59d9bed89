#!/usr/bin/env python3
"""Heterogeneous jobs: run steps with `components`.   components_test.py TALLY --accounting [TEST ...]"""
import place
import cluster as slurm
from place import SlurmTest

TWO = """\
name: small
outpath: run
parameterset: {{name: points, parameter: {{name: i, type: int, _: "{values}"}}}}
patternset:
  - name: log
    pattern:
      - {{name: first, type: int, _: "first=$jube_pat_int"}}
      - {{name: second, type: int, _: "second=$jube_pat_int"}}
step:
  - name: train
    kind: run
    use: points
    platform: slurm
    {keys}
    components:
      - resources: {{nodes: 1, cpus_per_task: 4, time: "00:05:00"}}
        launch: "FIRST"
      - resources: {{nodes: 2, tasks_per_node: 1, cpus_per_task: 2, memory: 300M}}
        launch: "SECOND"
analyser: {{name: an, use: log, analyse: {{step: train, file: stdout}}}}
result: {{use: an, table: {{name: t, style: csv, column: [i, first, second, job_nodes, job_elapsed, job_max_rss, status]}}}}
"""
# Words of each component's first task.
FIRST = "bash -c '[ $$SLURM_LOCALID = 1 ] || echo first=${{i}}$$OMP_NUM_THREADS$$SLURM_NTASKS'"
SECOND = "bash -c '[ $$SLURM_PROCID -gt 1 ] || echo second=${{i}}$$OMP_NUM_THREADS'"


class Components(SlurmTest):
    options = {"nodes": 4, "accounting": True}

    def write(self, first=FIRST, second=SECOND, **options):
        text = TWO.replace("FIRST", first).replace("SECOND", second)
        self.place.write(text=text.replace("column: [", options.pop("columns", "column: [")), **options)

    def waits(self, name, end="exit 0"):
        """Words of a program that leaves `$jube_wp_abspath/NAME` and waits for `free`."""
        program = self.place.program(name, f'touch "$1/{name}"\nuntil [ -e {self.place.root}/free ]; do sleep 0.2; done\n{end}\n')
        return f"{program} $jube_wp_abspath"

    def begun(self, *names):
        slurm.wait_for(lambda: all((self.place.work(0) / name).exists() for name in names), "the programs begin")

    def nodes(self, job):
        """The nodes of each component."""
        lines = self.cluster.run("squeue", "-h", "-o", "%i|%N", "-j", job).split()
        return dict(line.split("|") for line in lines)

    def test_the_programs_of_both_are_one_job(self):
        self.write(values="1,2")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertIn("2 jobs x 3 nodes x 00:05:00 = 0.5 node-hours at most", out + err)
        self.assertRegex(out, r'\n1,143,12,"?node\d,node.*,\d+,')
        self.assertRegex(out, r'\n2,243,22,"?node\d,node.*,\d+,')
        for package in self.place.packages():
            self.assertRegex(package["job_id"], r"^\d+$")
            records = self.cluster.run("sacct", "-X", "-n", "-P", "-S", "now-1hour", "-j", package["job_id"], "-o",
                                       "jobid,state,nnodes").split()
            self.assertEqual([line.split("+")[1] for line in sorted(records)], ["0|COMPLETED|1", "1|COMPLETED|2"])

    def test_a_failure_of_the_second_is_the_jobs(self):
        self.write(values="1", second="bash -c 'echo went wrong: error 17 >&2; exit 17'", first="sleep 100")
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1, out + err)
        note = self.place.packages()[0]["note"]
        self.assertIn("ended with exit code 17: went wrong: error 17 (node", note)

    def test_one_component_cancelled_from_outside(self):
        self.write(values="1", first=self.waits("a"), second=self.waits("b"))
        engine = self.place.start("run", "small.yaml")
        self.begun("a", "b")
        job = self.place.packages()[0]["job_id"]
        self.cluster.run("scancel", job + "+1")
        code, out = self.place.finish(engine)
        self.assertEqual(code, 1, out)
        self.assertRegex(self.place.packages()[0]["note"], r"exit status \d+; job \d+: CANCELLED")

    def test_the_time_limit_is_that_of_all(self):
        # `expect` takes it for a result.
        self.write(values="1", first=self.waits("a"), second=self.waits("b"), keys="expect: timeout")
        path = self.place.root / "small.yaml"
        path.write_text(path.read_text().replace("00:05:00", "00:01:00"))
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"timeout|expected")
        ends = self.cluster.run("sacct", "-X", "-n", "-P", "-S", "now-1hour", "-j", self.place.packages()[0]["job_id"], "-o",
                                "state").split()
        self.assertEqual(ends, ["TIMEOUT", "TIMEOUT"])

    def test_a_lost_node_of_the_second_is_tried_again(self):
        self.write(values="1", first=self.waits("a", "echo first=1"), second=self.waits("b", "[ $SLURM_PROCID -gt 1 ] || echo second=1"))
        path = self.place.root / "small.yaml"
        path.write_text(path.read_text().replace('time: "00:05:00"', 'time: "00:05:00", options: {no-requeue: ""}'))
        engine = self.place.start("run", "small.yaml")
        self.begun("a", "b")
        first = self.place.packages()[0]["job_id"]
        node = self.cluster.run("scontrol", "show", "hostnames", self.nodes(first)[first + "+1"]).split()[0]
        self.cluster.crash(node)
        slurm.wait_for(lambda: self.place.packages()[0]["job_id"] not in (None, "", first), "a second job", 120)
        (self.place.root / "free").touch()
        code, out = self.place.finish(engine)
        self.assertEqual(code, 0, out)
        self.assertIn("NODE_FAIL", self.place.log())
        self.cluster.up(node)
        slurm.wait_for(lambda: "down" not in "".join(self.cluster.states()), "the node is back")

    def test_killed_before_the_id_was_read_it_is_found_by_its_name(self):
        real = slurm.shutil.which("sbatch", path=slurm.search_path())
        (self.place.root / "bin").mkdir()
        self.place.program("bin/sbatch", f'{real} "$@"; kill -9 $PPID; exit 1')
        self.write(values="1")
        engine = self.place.start("run", "small.yaml", env={"PATH": f"{self.place.root}/bin:{slurm.search_path()}"})
        engine.wait(60)
        self.assertFalse(self.place.packages()[0]["job_id"])
        code, out, err = self.place.tally("continue", "run")
        self.assertEqual(code, 0, out + err)
        self.assertRegex(out, r"\n1,143,12,")
        self.assertRegex(self.place.log(), r": found job \d+ \(")
        self.assertRegex(self.place.packages()[0]["job_id"], r"^\d+$")
        names = self.cluster.run("squeue", "-h", "--states=all", "-o", "%j").split()
        self.assertEqual(names.count(self.place.packages()[0]["job_name"]), 2, "its two components and no other job")

    def test_a_job_that_waits_too_long_is_cancelled_as_a_whole(self):
        (self.place.root / "site.yaml").write_text("platform: {name: site, pending_limit: 2s, options: {hold: true}}\n")
        self.write(values="1")
        path = self.place.root / "small.yaml"
        path.write_text(path.read_text().replace("platform: slurm", "platform: site.yaml"))
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1, out + err)
        self.assertIn("longer than its pending_limit", self.place.packages()[0]["note"])
        self.assertEqual(self.cluster.jobs(), [])

    def test_a_component_that_can_never_start(self):
        self.write(values="1")
        (self.place.root / "site.yaml").write_text("platform: {name: site, status_grace: 2s}\n")
        path = self.place.root / "small.yaml"
        path.write_text(path.read_text().replace("platform: slurm", "platform: site.yaml").replace("nodes: 2", "nodes: 9"))
        code, out, err = self.place.tally("run", "small.yaml")
        self.assertEqual(code, 1, out + err)
        self.assertIn("PartitionNodeLimit", self.place.packages()[0]["note"])


if __name__ == "__main__":
    place.main(place.sys.argv)

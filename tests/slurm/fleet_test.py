#!/usr/bin/env python3
"""Accepting a machine: `tally fleet` on a real Slurm whose nodes print rates with seeded noise.   fleet_test.py TALLY [TEST ...]"""
import json
import signal
import xml.etree.ElementTree as xml

import cluster as slurm
import place
from place import SlurmTest

WORKFLOW = """\
name: accept
outpath: run
fleet: {{same: loss, show: clock}}
parameterset:
  - {{name: nodes, parameter: {{name: node, _: localhost}}}}
  - {{name: pairs, parameter: {{name: pair, separator: ";", _: "a,b"}}}}
patternset:
  - name: log
    pattern:
      - {{name: rate, type: float, unit: TFLOPS, _: 'rate: $jube_pat_fp'}}
      - {{name: loss, _: 'loss: (\\S+)'}}
      - {{name: clock, type: int, unit: MHz, _: 'clock: $jube_pat_int'}}
  - name: links
    pattern: {{name: bandwidth, type: float, unit: GB/s, _: 'bandwidth: $jube_pat_fp'}}
step:
  - name: gemm
    kind: run
    use: nodes
    platform: site.yaml
    resources: {{nodes: 1, tasks_per_node: 1, cpus_per_task: 1, time: "00:01:00", options: {{nodelist: $node}}}}
    pack: steps
    repeat: {most}
    launch: {root}/gemm $node $jube_wp_iteration
  - name: link
    active: {links}
    kind: run
    use: pairs
    platform: site.yaml
    resources: {{nodes: 2, tasks_per_node: 1, cpus_per_task: 1, time: "00:01:00", options: {{nodelist: $pair}}}}
    pack: steps
    repeat: {most}
    launch: {root}/link $pair $jube_wp_iteration
analyser:
  - {{name: a, use: log, analyse: {{step: gemm, file: stdout}}}}
  - {{name: b, use: links, analyse: {{step: link, file: stdout}}}}
result:
  - {{use: a, table: {{name: rates, column: [node, {{_: rate, statistic: median, better: higher}}]}}}}
  - {{use: b, table: {{name: links, column: [pair, {{_: bandwidth, statistic: median, better: higher}}]}}}}
"""

SITE = "platform: {name: site, template: slurm/platform.yaml, status_grace: 2s, poll_slowest: 2s}\n"

# A rate of 800 with noise of 0.3 %, the same for the same node and repeat. factors: "NODE FACTOR" a line.
GEMM = """
echo "$1 $2" >> {root}/done
awk -v node="$1" -v repeat="$2" 'BEGIN {{
  factor = 1
  while ((getline line < "{root}/factors") > 0) {{ split(line, word, " "); if (word[1] == node) factor = word[2] }}
  number = node; sub(/[a-z]*/, "", number)
  srand(number * 1000 + repeat); rand()
  noise = sqrt(-2 * log(1 - rand())) * cos(6.2831853 * rand())
  printf "rate: %.4f\\nclock: %d\\n", 800 * factor * exp(0.003 * noise), 1980
}}'
loss=2.302585
[ "$1" != "$(cat {root}/wrong 2> /dev/null)" ] || loss=2.302586
echo "loss: $loss"
if [ "$1" = "$(cat {root}/loses 2> /dev/null)" ]; then
  # The job ends well and leaves no status: nobody can say how it ended.
  (setsid bash -c 'for i in $(seq 300); do rm -f job.status job.status.new; sleep 0.02; done' > /dev/null 2>&1 &)
fi
"""

# slow_links: "a,b" a line; slow_adapters: a node a line; spine: the factor of links between node1 to node4 and others.
LINK = """
[ "${{SLURM_PROCID:-0}}" = 0 ] || exit 0
echo "$1 $2" >> {root}/done
factor=1
one=${{1%,*}} other=${{1#*,}}
[ "${{one#node}}" -gt 4 ] || [ "${{other#node}}" -le 4 ] || factor=$(cat {root}/spine 2> /dev/null || echo $factor)
! grep -qx "$1" {root}/slow_links 2> /dev/null || factor=0.7
for node in ${{1/,/ }}; do ! grep -qx "$node" {root}/slow_adapters 2> /dev/null || factor=0.8; done
awk -v factor=$factor -v repeat="$2" 'BEGIN {{ srand(repeat); rand(); printf "bandwidth: %.4f\\n", 380 * factor * exp(0.004 * (rand() - 0.5)) }}'
"""


class Fleet(SlurmTest):
    options = {"nodes": 16, "cpus": 2}

    def write(self, most=24, links="true", factors=()):
        self.root = self.place.root
        (self.root / "site.yaml").write_text(SITE)
        (self.root / "fleet.yaml").write_text(WORKFLOW.format(most=most, links=links, root=self.root))
        self.place.program("gemm", GEMM.format(root=self.root))
        self.place.program("link", LINK.format(root=self.root))
        (self.root / "factors").write_text("".join(f"{node} {factor}\n" for node, factor in dict(factors).items()))

    def report(self, run="000000"):
        return json.loads((self.root / "run" / run / "result/fleet.json").read_text())

    def verdicts(self, run="000000"):
        report = self.report(run)
        return {one["name"]: one["verdict"] for one in report["machines"] + report["links"]}

    def done(self):
        """What has run, as "node1 0": a line a start."""
        file = self.root / "done"
        return file.read_text().splitlines() if file.exists() else []

    def drain(self, node, reason):
        self.cluster.run("scontrol", "update", f"nodename={node}", "state=drain", f"reason={reason}")
        self.addCleanup(self.cluster.run, "scontrol", "update", f"nodename={node}", "state=resume")

    def test_each_fault_is_found_and_named_as_what_it_is(self):
        """One node 5 % slower, one 2 %, one that loses its jobs, one with a wrong bit, one drained; a slow link, and a slow adapter."""
        self.write(factors={"node7": 0.95, "node5": 0.98})
        (self.root / "wrong").write_text("node9")
        (self.root / "loses").write_text("node12")
        (self.root / "slow_links").write_text("node3,node14\n")
        (self.root / "slow_adapters").write_text("node13\n")
        self.drain("node16", "bad DIMM")
        code, out, err = self.place.tally("fleet", "fleet.yaml", "--nodes", "node[1-16]", seconds=800)
        print(out + err)
        self.assertEqual(code, 5, out + err)
        report = self.report()
        machines = {one["name"]: one for one in report["machines"]}
        expected = {f"node{i}": "passes" for i in range(1, 16)}
        expected.update(node7="slow", node9="wrong", node12="undecided", node13="slow")
        self.assertEqual({name: one["verdict"] for name, one in machines.items()}, expected)
        self.assertEqual([one["name"] for one in report["not_tested"]], ["node16"])
        self.assertIn("bad DIMM", report["not_tested"][0]["why"])
        self.assertIn("bad DIMM", out)
        rate = machines["node7"]["rates"][0]["of_median"]
        self.assertTrue(rate["low"] < -0.05 < rate["high"] < -0.03, rate)
        rate = machines["node5"]["rates"][0]["of_median"]
        self.assertTrue(rate["low"] < -0.02 < rate["high"] < 0, rate)
        self.assertIn("LOST", machines["node12"]["why"])
        self.assertIn("2.302586, on the others 2.302585", machines["node9"]["why"])
        self.assertIn("pairs", machines["node13"]["why"])
        links = {one["name"]: one for one in report["links"]}
        self.assertIn("it is the link", links["node3,node14"]["why"])
        self.assertIn("it is node13", links["node4,node13"]["why"])
        self.assertEqual(report["exclude"], "--exclude=node7,node9,node13")
        self.assertIn(report["exclude"], out)
        cases = xml.parse(self.root / "run/000000/result/fleet.xml").getroot()
        failed = [case.get("name") for case in cases.iter("testcase") if case.find("failure") is not None]
        self.assertEqual([name for name in failed if "," not in name], ["node7", "node9", "node13"])
        self.assertIn("<svg", (self.root / "run/000000/result/fleet.svg").read_text())
        healthy = [line for line in self.done() if line.split()[0] in ("node1", "node2", "node6")]
        self.assertLessEqual(len(healthy), 3 * 9, "healthy nodes were measured longer than it takes")

    def test_a_killed_fleet_goes_on_with_what_is_undecided(self):
        self.write(links="false", factors={"node3": 0.9})
        engine = self.place.start("fleet", "fleet.yaml", "--nodes", "node[1-6]")
        slurm.wait_for(lambda: len(self.done()) >= 20, "the second round", 120)
        engine.send_signal(signal.SIGKILL)
        engine.wait()
        code, out, err = self.place.tally("continue", "run", seconds=400)
        self.assertEqual(code, 5, out + err)
        expected = {f"node{i}": "passes" for i in range(1, 7)}
        expected["node3"] = "slow"
        self.assertEqual(self.verdicts(), expected)
        done = self.done()
        self.assertEqual(len(done), len(set(done)), "a repeat ran twice")
        # Nothing is left to test.
        code, out, err = self.place.tally("continue", "run")
        self.assertEqual(code, 5, out + err)
        self.assertEqual(self.done(), done)

    def test_against_accepted_values_a_fleet_that_is_slow_as_a_whole_is_slow(self):
        self.write(links="false")
        nodes = ("--nodes", "node[1-4]")
        code, out, err = self.place.tally("fleet", "fleet.yaml", *nodes, "--accept", seconds=300)
        self.assertEqual(code, 0, out + err)
        accepted = json.loads((self.root / "fleet.baseline.json").read_text())
        self.assertEqual([(one["metric"], one["machines"]) for one in accepted["rates"]], [("rate", 4)])
        self.assertTrue(795 < accepted["rates"][0]["low"] <= accepted["rates"][0]["high"] < 805)
        (self.root / "factors").write_text("".join(f"node{i} 0.9\n" for i in range(1, 5)))
        code, out, err = self.place.tally("fleet", "fleet.yaml", *nodes, "--baseline", "fleet.baseline.json", seconds=300)
        self.assertEqual(code, 5, out + err)
        self.assertEqual(set(self.verdicts("000001").values()), {"slow"})
        self.assertIn("below the baseline by 10.", self.report("000001")["machines"][0]["why"])

    def test_the_budget_ends_it(self):
        self.write(links="false", factors={"node2": 0.98})
        code, out, err = self.place.tally("fleet", "fleet.yaml", "--nodes", "node[1-4]", "--budget", "0.0001", seconds=300)
        self.assertEqual(code, 1, out + err)
        self.assertEqual(self.verdicts()["node2"], "undecided")
        self.assertEqual(len(self.done()), 4 * 3, "more than the first round")
        self.assertIn("of 0.0001", out)
        # The same budget begins nothing.
        code, out, err = self.place.tally("continue", "run", seconds=100)
        self.assertEqual((code, len(self.done())), (1, 4 * 3), out + err)
        # A larger one tests what is undecided, and nothing twice.
        decided = [name for name, verdict in self.verdicts().items() if verdict != "undecided"]
        code, out, err = self.place.tally("continue", "run", "--budget", "5", seconds=300)
        self.assertEqual(code, 0, out + err)
        self.assertEqual(set(self.verdicts().values()), {"passes"})
        done = self.done()
        self.assertEqual(len(done), len(set(done)), "a repeat ran twice")
        self.assertGreater(len(done), 4 * 3)
        for name in decided:
            self.assertEqual(sum(line.split()[0] == name for line in done), 3, f"{name} was decided")
        self.assertIn("of 5", out)

    def test_a_killed_fleet_goes_on_with_a_larger_budget(self):
        self.write(links="false", factors={"node2": 0.9})
        engine = self.place.start("fleet", "fleet.yaml", "--nodes", "node[1-4]", "--budget", "0.0001")
        slurm.wait_for(lambda: len(self.done()) >= 5, "the first round", 120)
        engine.send_signal(signal.SIGKILL)
        engine.wait()
        code, out, err = self.place.tally("continue", "run", "--budget", "5", seconds=300)
        self.assertEqual(code, 5, out + err)
        self.assertEqual(self.verdicts(), {"node1": "passes", "node2": "slow", "node3": "passes", "node4": "passes"})
        self.assertEqual(len(self.done()), len(set(self.done())), "a repeat ran twice")

    def test_links_within_and_across_groups(self):
        """Links between two racks are slower than those within one, and are compared with each other alone."""
        self.write()
        (self.root / "spine").write_text("0.85")
        (self.root / "slow_links").write_text("node3,node7\n")
        (self.root / "racks").write_text("rack1 node[1-4]\nrack2 node[5-8]\n")
        code, out, err = self.place.tally("fleet", "fleet.yaml", "--nodes", "node[1-8]", "--groups", "racks", seconds=600)
        print(out + err)
        self.assertEqual(code, 5, out + err)
        report = self.report()
        groups = {one["name"]: one["group"] for one in report["machines"]}
        self.assertEqual((groups["node1"], groups["node8"]), ("rack1", "rack2"))
        links = {one["name"]: one for one in report["links"] if one["measured"] > 0}
        of = {name: [groups[node] for node in name.split(",")] for name in links}
        for node in groups:  # each has been in a pair within, and in one across
            mine = [of[name] for name in links if node in name.split(",")]
            self.assertTrue(any(one == other for one, other in mine) and any(one != other for one, other in mine), node)
        self.assertEqual({name for name, one in links.items() if one["verdict"] != "passes"}, {"node3,node7"})
        self.assertIn("it is the link", links["node3,node7"]["why"])
        self.assertEqual({one["verdict"] for one in report["machines"]}, {"passes"})


if __name__ == "__main__":
    import sys
    place.main(sys.argv)

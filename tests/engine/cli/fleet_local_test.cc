// tally fleet without a scheduler: devices of this machine, as names.
#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "tests/support/shell.h"

using namespace tally::testing;

namespace {

// The number of a device and of a repeat give the same noise each time. A node has two GPUs.
constexpr const char* kProgram = R"sh(#!/bin/sh
echo "$1 $2" >> done
for gpu in 0 1; do
  awk -v node="$1" -v gpu=$gpu -v repeat="$2" -v slow="$(cat slow 2> /dev/null)" 'BEGIN {
    srand(node * 1000 + repeat * 10 + gpu); rand()
    noise = 0.004 * (rand() + rand() - 1)
    factor = slow == node "." gpu ? 0.9 : slow == "all" ? 0.93 : 1
    printf "gpu %d rate %.5f time %.5f clock %d\n", gpu, 500 * factor * exp(noise), 2 / factor * exp(-noise), 1900 + gpu
  }'
done
loss=1.25
[ "$1.$2" = "$(cat wrong 2> /dev/null)" ] && loss=1.26
echo "loss $loss"
[ "$1" != "$(cat fails 2> /dev/null)" ]
)sh";

constexpr const char* kWorkflow = R"yaml(
name: local
outpath: runs
fleet: {same: loss, show: clock, part: gpu}
parameterset: {name: devices, parameter: {name: node, _: "0"}}
patternset:
- name: log
  pattern:
  - {name: gpu, type: int, _: '^gpu (\d+)'}
  - {name: rate, type: float, unit: TFLOPS, _: 'rate $jube_pat_fp'}
  - {name: time, type: float, unit: s, _: 'time $jube_pat_fp'}
  - {name: clock, type: int, _: 'clock $jube_pat_int'}
- {name: end, pattern: {name: loss, _: 'loss (\S+)'}}
step: {name: work, kind: run, use: devices, repeat: 24, launch: "cd $jube_benchmark_home && ./program $node $jube_wp_iteration"}
analyser: {name: a, use: [log, end], rows: gpu, analyse: {step: work, file: stdout}}
result:
  use: a
  table:
    name: t
    column: [node, gpu, {_: rate, statistic: median, better: higher}, {_: time, statistic: median, better: lower}]
)yaml";

class LocalFleet : public Shell {
 public:
  LocalFleet() {
    file("program", kProgram);
    file("fleet.yaml", kWorkflow);
    sh("chmod +x program");
  }
  Ran fleet(const std::string& more) const { return tally("fleet fleet.yaml --local " + more); }
  // "0 passes" and the like of the newest run, a line a machine, and why.
  std::string verdicts(const std::string& run = "000000") const {
    return sh("python3 -c \"import json\nfor one in json.load(open('runs/" + run +
              "/result/fleet.json'))['machines']: print(one['name'], one['verdict'], "
              "one['why'])\"")
        .out;
  }
  size_t starts() const {
    const std::string done = content("done");
    return static_cast<size_t>(std::count(done.begin(), done.end(), '\n'));
  }
};

}  // namespace

TEST_CASE("fleet: a slow GPU of a machine is named, and so are wrong bits in one of its repeats") {
  LocalFleet here;
  here.file("slow", "3.1\n");
  here.file("wrong", "4.1\n");
  const Ran ran = here.fleet("--nodes 0,1,2,3,4,5");
  INFO(ran.out, ran.err);
  CHECK(ran.code == 5);
  const std::string verdicts = here.verdicts();
  INFO(verdicts);
  for (const char* node : {"0", "1", "2", "5"})
    CHECK(has(verdicts, std::string(node) + " passes \n"));
  CHECK(has(verdicts, "3 slow gpu 1: "));
  CHECK(has(verdicts, "is below the median by "));
  CHECK(has(verdicts, "4 wrong loss is 1.26, on the others 1.25\n"));
  CHECK(has(ran.out, "6 machines: 4 pass, 1 slow (3), 1 wrong (4)"));
  CHECK(!has(ran.out, "for Slurm"));
  CHECK(has(ran.out, "...SW."));
  CHECK(has(here.content("runs/000000/result/fleet.xml"), "name=\"3\""));
  CHECK(has(here.content("runs/000000/result/fleet.svg"), "3: slow: gpu 1: "));
  CHECK(here.starts() < 6 * 9);
  // As one file, verified in an empty folder.
  const Ran archive = here.tally("archive runs/000000 -o fleet.zip");
  CHECK_MESSAGE(archive.code == 0, archive.err);
  const Ran verified =
      here.sh("mkdir empty && cd empty && mv ../fleet.zip . && env -i \"$TALLY\" verify fleet.zip");
  CHECK_MESSAGE(verified.code == 0, verified.err);
  CHECK(has(verified.out, "local, run 0: 1 table made again"));
}

TEST_CASE("fleet: a baseline finds what all machines have in common, and tells bits of two apart") {
  LocalFleet here;
  Ran ran = here.fleet("--nodes 0,1,2,3 --accept");
  INFO(ran.out, ran.err);
  CHECK(ran.code == 0);
  CHECK(has(ran.out, "fleet.baseline.json"));
  // Two GPUs have no median of their own.
  ran = here.fleet("--nodes 0");
  CHECK(ran.code == 1);
  CHECK(has(here.verdicts("000001"),
            "0 undecided after 6 measurements; fewer than 4 have no median: --accept makes"));
  here.file("slow", "all\n");
  here.file("wrong", "1.2\n");
  ran = here.fleet("--nodes 0,1 --baseline fleet.baseline.json");
  CHECK(ran.code == 5);
  CHECK(has(here.verdicts("000002"), "0 slow "));
  CHECK(has(here.verdicts("000002"), "is below the baseline by "));
  CHECK(has(here.verdicts("000002"), "1 wrong loss is 1.26"));
  ran = here.fleet("--nodes 0,1 --baseline nothing.json");
  CHECK(ran.code == 2);
  here.file("broken.json", "{}");
  ran = here.fleet("--nodes 0,1 --baseline broken.json");
  CHECK(ran.code != 0);
  CHECK(has(ran.err, "is not a fleet's baseline"));
}

TEST_CASE("fleet: one machine is accepted as it is, and judged by that later") {
  LocalFleet here;
  std::string text = kWorkflow;
  text.replace(text.find(", part: gpu"), 11, "");
  here.file("fleet.yaml", text);
  here.sh("sed -i 's/for gpu in 0 1/for gpu in 0/' program");
  Ran ran = here.fleet("--nodes 0 --accept");
  INFO(ran.out, ran.err);
  CHECK(ran.code == 1);  // nothing has judged it
  CHECK(has(ran.out, "fleet.baseline.json"));
  CHECK(here.starts() == 6);
  ran = here.fleet("--nodes 0 --baseline fleet.baseline.json");
  CHECK(ran.code == 0);
  CHECK(has(here.verdicts("000001"), "0 passes"));
  here.file("slow", "all\n");
  ran = here.fleet("--nodes 0 --baseline fleet.baseline.json");
  CHECK(ran.code == 5);
  CHECK(has(here.verdicts("000002"), "0 slow "));
}

TEST_CASE("fleet: a machine whose program fails has no verdict, and is not tried for ever") {
  LocalFleet here;
  here.file("fails", "2\n");
  const Ran ran = here.fleet("--nodes 0,1,2,3,4");
  INFO(ran.out, ran.err);
  CHECK(ran.code == 1);
  CHECK(has(here.verdicts(), "2 undecided no measurement: 3 FAILED\n"));
  CHECK(count_of(here.content("done"), "2 3") == 0);
}

TEST_CASE("fleet: a machine that lacks what the others have does not pass") {
  LocalFleet here;
  const std::string program = kProgram;
  const auto run = [&](const std::string& from, const std::string& to) {
    std::string text = program;
    text.replace(text.find(from), from.size(), to);
    here.file("program", text);
    here.sh("chmod +x program; rm -rf runs done");
    const Ran ran = here.fleet("--nodes 0,1,2,3");
    INFO(ran.out, ran.err);
    CHECK(ran.code == 1);
    return here.verdicts();
  };
  // A GPU that is gone.
  std::string verdicts = run("for gpu in 0 1", "for gpu in 0 $([ $1 = 2 ] || echo 1)");
  CHECK_MESSAGE(has(verdicts, "1 passes \n2 undecided rate of 1 gpu, others have 2 "), verdicts);
  // One that prints no rate.
  verdicts =
      run("rate %.5f time %.5f clock %d\\n\", gpu,",
          "%s %.5f time %.5f clock %d\\n\", gpu, node == 2 && gpu == 1 ? \"none\" : \"rate\",");
  CHECK_MESSAGE(has(verdicts, "1 passes \n2 undecided rate of 1 gpu, others have 2 "), verdicts);
  // Bits that nobody compared: on one machine, on all.
  verdicts = run("echo \"loss $loss\"", "[ $1 = 2 ] || echo \"loss $loss\"");
  CHECK_MESSAGE(has(verdicts, "1 passes \n2 undecided no loss "), verdicts);
  verdicts = run("echo \"loss $loss\"", "");
  CHECK_MESSAGE(has(verdicts, "0 undecided no loss "), verdicts);
  CHECK_MESSAGE(!has(verdicts, "passes"), verdicts);
}

TEST_CASE("fleet: rates that the baseline alone has, or has not, are said") {
  LocalFleet here;
  Ran ran = here.fleet("--nodes 0,1,2,3 --accept");
  CHECK(ran.code == 0);
  here.sh("sed -i 's/\"metric\": *\"rate\"/\"metric\": \"speed\"/' fleet.baseline.json");
  ran = here.fleet("--nodes 0,1,2,3 --baseline fleet.baseline.json");
  INFO(ran.out, ran.err, here.content("fleet.baseline.json"));
  CHECK(ran.code == 1);
  CHECK(has(here.verdicts("000001"), "0 undecided no speed of the baseline "));
  CHECK(has(ran.out + ran.err, "rate: the baseline does not have it"));
}

TEST_CASE("fleet: a machine that fails at one of the points does not pass, nor is tried for ever") {
  LocalFleet here;
  std::string text = kWorkflow;
  const std::string node = "{name: node, _: \"0\"}";
  text.replace(text.find(node), node.size(), "[{name: node, _: \"0\"}, {name: size, _: \"8,9\"}]");
  text.replace(text.find("$jube_wp_iteration"), 18, "$jube_wp_iteration && test $node$size != 29");
  here.file("fleet.yaml", text);
  const Ran ran = here.fleet("--nodes 0,1,2,3");
  INFO(ran.out, ran.err);
  CHECK(ran.code == 1);
  CHECK(has(here.verdicts(), "1 passes \n2 undecided nothing of size=9 after "));
  CHECK(count_of(here.content("done"), "2 4") == 0);
}

TEST_CASE("fleet: machines that are not decided take turns") {
  LocalFleet here;
  std::string text = kWorkflow;
  text.replace(text.find("fleet: {"), 8, "fleet: {of_median: 99.99%, ");
  text.replace(text.find("repeat: 24"), 10, "repeat: 9");
  here.file("fleet.yaml", text);
  const Ran ran = here.fleet("--nodes 0,1,2,3");
  INFO(ran.out, ran.err);
  CHECK(ran.code == 1);
  int counts[4] = {};
  std::istringstream lines(here.content("done"));
  int node = 0, repeat = 0, uneven = 0;
  while (lines >> node >> repeat) {
    ++counts[node];
    const auto [least, most] = std::ranges::minmax(counts);
    uneven = std::max(uneven, most - least);
  }
  CHECK(uneven == 1);
  CHECK(std::ranges::count(counts, 9) == 4);
}

TEST_CASE("fleet: continue begins nothing that is decided") {
  LocalFleet here;
  CHECK(here.fleet("--nodes 0,1,2,3").code == 0);
  const size_t before = here.starts();
  const Ran ran = here.tally("continue runs");
  INFO(ran.out, ran.err);
  CHECK(ran.code == 0);
  CHECK(here.starts() == before);
  CHECK(has(ran.out, "4 machines: 4 pass"));
}

TEST_CASE("fleet: the budget, a dry run, and what is wrong with a command line or a workflow") {
  LocalFleet here;
  Ran ran = here.fleet("--nodes 0,1,2,3 --budget 0");
  CHECK(ran.code == 0);  // 0: no limit
  ran = here.fleet("--nodes 0,1,2,3 -n");
  CHECK(ran.code == 0);
  CHECK(!here.exists("runs/000001"));
  ran = here.tally("fleet fleet.yaml");
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "which machines?"));
  here.file("plain.yaml", "run: echo 1\nparameters: {node: 1}\nmetrics: {one: '(1)'}\n");
  ran = here.tally("fleet plain.yaml --local --nodes 0,1");
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "has no section `fleet`"));
  const auto with = [&](const std::string& section) {
    std::string text = kWorkflow;
    const size_t at = text.find("fleet: {");
    text.replace(at, text.find('\n', at) - at, "fleet: " + section);
    here.file("other.yaml", text);
    return here.tally("validate other.yaml");
  };
  CHECK(has(with("{at_least: 5}").err, "'5' is not a percentage"));
  CHECK(has(with("{first: 0}").err, "not a whole number of at least 1"));
  CHECK(has(with("{same: lost}").err, "no pattern is called 'lost'"));
  CHECK(has(with("{part: loss}").err, "no analyser has 'loss' in its `rows`"));
  CHECK(with("{wrong: 2%}").code == 0);
}

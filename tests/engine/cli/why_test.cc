// `tally compare --why` and the report's waterfall, on records as tally-train --explain writes them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

using Bars = std::vector<std::pair<std::string, double>>;  // milliseconds

std::string record(const Bars& bars, const std::string& throttling = "none") {
  double sum = 0;
  std::string text;
  for (const auto& [name, ms] : bars) {
    sum += ms;
    text += fmt::format(R"({}{{"name": "{}", "title": "of {}", "seconds": {}}})",
                        text.empty() ? "" : ", ", name, name, ms / 1e3);
  }
  return fmt::format(
             R"({{"results": {{"explain": {{"seconds": {}, "throttling": "{}", "bars": [{}]}}}}}})",
             sum / 1e3, throttling, text) +
         "\n";
}

const Bars kBase{{"peak", 50},    {"clocks", 4}, {"gemm", 20},    {"other_kernels", 15},
                 {"messages", 6}, {"gaps", 4},   {"remainder", 1}};

Bars changed(const Bars& more) {
  Bars bars = kBase;
  for (const auto& [name, ms] : more)
    for (auto& [known, value] : bars)
      if (known == name) value += ms;
  return bars;
}

// One point for each value of n; each writes the record that lies beside the input.
std::string workflow(const std::string& values, int repeats = 1) {
  return "name: b\noutpath: run\n"
         "parameterset: {name: ps, parameter: [{name: n, type: int, _: \"" +
         values +
         "\"}]}\n"
         "fileset: {name: records, copy: [1.json, 2.json]}\n"
         "step: {name: train, kind: run, use: [ps, records], repeat: " +
         std::to_string(repeats) +
         ", do: \"mkdir away; mv 1.json 2.json away; cp away/$n.json r.json; echo done\"}\n";
}

}  // namespace

TEST_CASE("compare --why: the difference over the bars, the largest first") {
  const Shell shell;
  shell.file("a.json", record(kBase));
  struct Case {
    const char* what;
    Bars more;
    const char* throttling;
    const char* sentence;
  };
  const Case cases[] = {
      {"a power cap",
       {{"clocks", 5}, {"messages", 3}, {"gaps", 1}},
       "power cap",
       "b.json is 9.0 % slower than a.json: 5.0 % clocks (power cap), 3.0 % messages, 1.0 % "
       "gaps\n"},
      {"slower links",
       {{"messages", 12}, {"gemm", -1}},
       "none",
       "b.json is 11.0 % slower than a.json: 12.0 % messages, -1.0 % gemm\n"},
      {"a slower kernel",
       {{"other_kernels", 7.5}, {"remainder", 0.3}},
       "none",
       "b.json is 7.8 % slower than a.json: 7.5 % other kernels\n"},
      {"faster",
       {{"other_kernels", -7.5}, {"gaps", 1}},
       "none",
       "b.json is 6.5 % faster than a.json: 7.5 % other kernels, -1.0 % gaps\n"},
      {"nothing", {{"gaps", 0.04}}, "none", "b.json is as fast as a.json\n"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.what);
    shell.file("b.json", record(changed(one.more), one.throttling));
    const Ran ran = shell.tally("compare --why a.json b.json");
    CHECK(ran.code == 0);
    CHECK_MESSAGE(has(ran.out, one.sentence), ran.out);
    CHECK(ran.err.empty());
  }
  shell.file("b.json", record(changed({{"clocks", 5}, {"messages", 3}})));
  const std::string csv = shell.tally("compare --why a.json b.json -s csv").out;
  CHECK(csv ==
        "where,base ms,new ms,change ms,% of base\n"
        "clocks,4.000,9.000,+5.000,+5.00\n"
        "messages,6.000,9.000,+3.000,+3.00\n"
        "peak,50.000,50.000,+0.000,+0.00\n"
        "gemm,20.000,20.000,+0.000,+0.00\n"
        "other kernels,15.000,15.000,+0.000,+0.00\n"
        "gaps,4.000,4.000,+0.000,+0.00\n"
        "remainder,1.000,1.000,+0.000,+0.00\n"
        "the step,100.000,108.000,+8.000,+8.00\n");
  // A bar that one of them lacks.
  shell.file("b.json", record({{"peak", 50}, {"bubble", 60}}));
  CHECK(has(shell.tally("compare --why a.json b.json").out,
            "is 10.0 % slower than a.json: 60.0 % bubble, -20.0 % gemm, -15.0 % other kernels"));
  // The remainder is a bar, and one that is large is said.
  shell.file("b.json", record(changed({{"remainder", 4}})));
  const Ran unexplained = shell.tally("compare --why a.json b.json");
  CHECK(has(unexplained.out, "4.0 % slower than a.json: 4.0 % remainder"));
  CHECK(has(unexplained.err, "note: the bars of b.json leave 4.8 % of its step unexplained"));
  CHECK(!has(unexplained.err, "a.json leave"));
}

TEST_CASE("compare --why on records of an H200, with planted causes") {
  // GPT-2 124M, 64 samples, bf16: as it is, with --no-fusion gelu,head, and beside a process that
  // multiplies matrices. The GPU was at its power limit in all of them.
  const Shell shell;
  const std::string folder = std::string(TALLY_SOURCE_DIR) + "/tests/golden/explain/";
  CHECK(shell.sh("cp " + folder + "*.json .").code == 0);
  const Ran kernels = shell.tally("compare --why 124m.json 124m-nofusion.json");
  CHECK_MESSAGE(has(kernels.out,
                    "124m-nofusion.json is 6.3 % slower than 124m.json: 5.9 % gemm limit, 2.8 % "
                    "other kernels, -1.3 % clocks (power cap), -0.9 % gemm\n"),
                kernels.out);
  const Ran neighbour = shell.tally("compare --why 124m.json 124m-busy.json");
  CHECK_MESSAGE(has(neighbour.out,
                    "124m-busy.json is 47.4 % slower than 124m.json: 40.0 % interrupted, 3.3 % "
                    "gemm limit, 2.2 % other kernels"),
                neighbour.out);
  CHECK(kernels.err.empty());
  CHECK(neighbour.err.empty());
  CHECK(has(shell.tally("compare --why 124m-busy.json 124m.json").out,
            "124m.json is 32.2 % faster than 124m-busy.json: 27.1 % interrupted"));
}

TEST_CASE("compare --why of runs, of workpackages, and of repeats") {
  const Shell shell;
  shell.file("1.json", record(kBase));
  shell.file("2.json", record(changed({{"gemm", 10}})));
  shell.file("w.yaml", workflow("1,2"));
  CHECK(shell.tally("run w.yaml -q").code == 0);
  shell.file("1.json", record(changed({{"gaps", 5}})));
  CHECK(shell.tally("run w.yaml -q").code == 0);
  const Ran runs = shell.tally("compare --why run/000000 run/000001");
  CHECK(runs.code == 0);
  CHECK_MESSAGE(
      has(runs.out, "train (n=1): run/000001 is 5.0 % slower than run/000000: 5.0 % gaps\n"),
      runs.out);
  CHECK(has(runs.out, "train (n=2): run/000001 is as fast as run/000000\n"));
  CHECK(shell.tally("compare --why run -i 0 -i 1").out.find("% slower than") != std::string::npos);
  // Rows of one run.
  const Ran rows = shell.tally("compare --why run/000000/000000_train run/000000/000001_train");
  CHECK_MESSAGE(has(rows.out, "is 10.0 % slower than run/000000/000000_train: 10.0 % gemm\n"),
                rows.err);
  // A record against a run of one point, and repeats, whose mean counts.
  shell.file("w.yaml", workflow("2", 2));
  CHECK(shell.tally("run w.yaml -q").code == 0);
  shell.file("run/000002/000001_train/work/r.json", record(changed({{"gemm", 20}})));
  CHECK(has(shell.tally("compare --why 2.json run/000002").out,
            "is 4.5 % slower than 2.json: 4.5 % gemm\n"));
  // Points that only one has.
  CHECK(has(shell.tally("compare --why run/000000 run/000002").err,
            "note: 1 point is in one of the runs alone"));
  CHECK(has(shell.tally("compare --why run/000000 2.json").err,
            "no point of the first run is in the second one"));
}

TEST_CASE("compare --why: what cannot be compared is said") {
  const Shell shell;
  shell.file("a.json", record(kBase));
  shell.file("none.json", R"({"results": {"tokens_per_second": 1}})");
  shell.file("text.json", "no");
  shell.file("wrong.json",
             R"({"explain": {"seconds": 1, "bars": [{"name": "gemm", "seconds": 0.5}]}})");
  shell.file("1.json", "{}");
  shell.file("2.json", "{}");
  shell.file("w.yaml", workflow("1"));
  CHECK(shell.tally("run w.yaml -q").code == 0);
  const std::pair<const char*, const char*> cases[] = {
      {"a.json", "--why compares two steps, not 1"},
      {"a.json a.json a.json", "--why compares two steps, not 3"},
      {"a.json none.json", "none.json: nothing in it explains where its time went"},
      {"a.json run/000000", "run/000000: nothing in it explains where its time went"},
      {"a.json text.json", "text.json: is no JSON"},
      {"wrong.json a.json", "wrong.json: the bars of `explain` are not whole"},
      {"a.json a.json --metric n", "--why compares the bars of two steps, and no columns"},
      {"a.json a.json -s json", "--why has no JSON"},
  };
  for (const auto& [words, message] : cases) {
    const Ran ran = shell.tally(std::string("compare --why ") + words);
    CHECK_MESSAGE(ran.code == 2, words);
    CHECK_MESSAGE(has(ran.err, message), ran.err);
    CHECK(ran.out.empty());
  }
}

TEST_CASE("the report draws the waterfall of each point that has one") {
  const Shell shell;
  shell.file("1.json", record(changed({{"clocks", -6}})));
  shell.file("2.json", "{}");
  shell.file("w.yaml", workflow("1,2"));
  CHECK(shell.tally("run w.yaml -q").code == 0);
  CHECK(shell.tally("report run/000000 -o r.html -q").code == 0);
  const std::string page = shell.content("r.html");
  CHECK(has(page, "Where the time goes: train (n=1)"));
  CHECK(!has(page, "train (n=2)</title>"));
  CHECK(has(page, "<title>of gemm: 20.000 ms, 21.3 %</title>"));
  CHECK(has(page, "<title>of clocks: -2.000 ms, -2.1 %</title>"));
  CHECK(has(page, "<title>the step: 94.000 ms</title>"));
}

// `tally history` through the program.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// Repeat i prints BASE + i, where the file `base` holds BASE.
constexpr const char* kBench =
    "name: b\noutpath: run\n"
    "parameterset: {name: ps, parameter: {name: n, type: int, _: \"1,2\"}}\n"
    "patternset: {name: pt, pattern: {name: rate, type: float, unit: x/s, _: "
    "\"rate=$jube_pat_fp\"}}\n"
    "step: {name: s, kind: run, use: ps, repeat: 6, do: \"echo rate=$(($n * $$(cat "
    "$jube_benchmark_home/base) + $jube_wp_iteration))\"}\n"
    "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
    "result: {use: a, table: {name: t, column: [n, {_: rate, statistic: median, better: "
    "higher}]}}\n";

}  // namespace

TEST_CASE("history: one file a run; a change of level is said") {
  const Shell shell;
  shell.file("b.yaml", kBench);
  for (const char* base : {"100", "101", "100", "80", "81", "80"}) {
    shell.file("base", base);
    const Ran ran = shell.tally("run b.yaml -q");
    CHECK_MESSAGE(ran.code == 0, ran.err);
  }
  CHECK(shell.exists("run/history.d/000005.json"));
  CHECK(shell.sh("ls run/history.d | wc -l").out == "6\n");  // and nothing half-written
  Ran ran = shell.tally("history run");
  CHECK(ran.code == 0);
  // The medians of base .. base + 5; the levels by hand: 102.5 and 82.5.
  CHECK_MESSAGE(has(ran.out, "| parameters | run |"), (ran.out + ran.err));
  ran = shell.tally("history b.yaml --metric rate -s csv");
  CHECK_MESSAGE(
      has(ran.out, "parameters,run,start,rate[x/s],ci_low,ci_high,repeats,status,change\n"),
      (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, ",102.5,100,105,6 of 6,,\n"), ran.out);
  CHECK_MESSAGE(has(ran.out, ",82.5,80,85,6 of 6,,regresses by 19.5 %\n"), ran.out);
  // It outlives the runs' folders, and may be written again.
  shell.sh("rm -r run/00000[0-4]");
  CHECK(shell.tally("history run -s csv").out == ran.out);
  shell.sh("rm run/history.d/000005.json");
  CHECK(shell.tally("result run -q").code == 0);
  CHECK(shell.tally("history run -s csv").out == ran.out);
}

TEST_CASE("history: mistakes") {
  const Shell shell;
  shell.sh("mkdir -p run/000000");
  Ran ran = shell.tally("history none");
  CHECK(ran.code == 2);
  shell.clear();
  std::string text = kBench;
  text.replace(text.find(", statistic: median, better: higher"), 35, "");
  shell.file("b.yaml", text);
  shell.file("base", "1");
  CHECK(shell.tally("run b.yaml -q").code == 0);
  ran = shell.tally("history run");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "'run' has no history"), ran.err);
  shell.file("run/history.d/000000.json", "{\"format\":\"tally-history\",\"version\":1}");
  ran = shell.tally("history run");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "'run/history.d/000000.json': a part of it is missing"), ran.err);
  shell.file("run/history.d/000000.json", "nonsense");
  CHECK(has(shell.tally("history run").err, "it is not a history of tally's"));
}

TEST_CASE("history: parameters that the table does not show tell rows apart") {
  const Shell shell;
  std::string text = kBench;
  text.replace(text.find("column: [n, "), 12, "column: [rate, ");
  shell.file("b.yaml", text);  // and the plain column before the statistic does not hide it
  shell.file("base", "100");
  for (int i = 0; i < 2; ++i) CHECK(shell.tally("run b.yaml -q").code == 0);
  const Ran ran = shell.tally("history run -s csv");
  CHECK_MESSAGE(has(ran.out, "\nn=1,0,"), (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "\nn=2,1,"), ran.out);
  // A later run does not take the id, and with it the history, of a removed one.
  CHECK(shell.tally("remove run -f -i 1").code == 0);
  CHECK(shell.tally("run b.yaml -q").code == 0);
  CHECK(shell.exists("run/000002"));
  CHECK(has(shell.tally("history run -s csv").out, "\nn=2,1,"));
}

TEST_CASE("history: two steps in one table are two points") {
  const Shell shell;
  std::string text = kBench;
  text.replace(text.find("step: {name: s,"), 15,
               "step: [{name: w, kind: run, use: ps, repeat: 6, do: "
               "'echo rate=5'}, {name: s,");
  text.replace(text.find("jube_wp_iteration))\"}"), 21, "jube_wp_iteration))\"}]");
  text.replace(text.find("analyse: {step: s, file: stdout}"), 32,
               "analyse: [{step: s, file: stdout}, {step: w, file: stdout}]");
  shell.file("b.yaml", text);
  shell.file("base", "100");
  CHECK(shell.tally("run b.yaml -q").code == 0);
  const Ran ran = shell.tally("history run -s csv");
  CHECK_MESSAGE(has(ran.out, "\nn=1 step=s,0,"), (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "\nn=1 step=w,0,"), ran.out);
}

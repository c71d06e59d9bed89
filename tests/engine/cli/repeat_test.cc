// `repeat: {max, warmup, until}` through the program.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// Two points. Repeat i of n=1 prints 100 + (7 i) % 10 / 100, which is precise; that of n=2 prints
// 200 + 10 ((7 i) % 10), which is not.
std::string bench(const std::string& repeat, const std::string& command = "true") {
  return "name: b\noutpath: run\n"
         "parameterset: {name: ps, parameter: {name: n, type: int, _: \"1,2\"}}\n"
         "patternset: {name: pt, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
         "step:\n"
         "  name: s\n"
         "  kind: run\n"
         "  use: ps\n"
         "  repeat: " +
         repeat +
         "\n  do: \"i=$(((7 * $jube_wp_iteration) % 10)); test $n = 1 && echo v=100.0$$i || echo "
         "v=$((200 + 10 * $$i)); echo $n >>$jube_benchmark_home/order; " +
         command +
         "\"\n"
         "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: csv, column: [n, {_: v, title: first}, {_: v, "
         "statistic: median}]}}\n";
}

}  // namespace

TEST_CASE("repeat: what a key of the step says may differ between repeats") {
  const Shell shell;
  // `launch` is also a parameter, as on a platform, which the key hides.
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\n"
      "parameterset: {name: ps, parameter: [{name: n, type: int, _: \"1,2\"}, {name: launch, "
      "_: x}]}\n"
      "patternset: {name: pt, pattern: {name: v, type: int, _: \"v=$jube_pat_int\"}}\n"
      "step: {name: s, kind: run, use: ps, repeat: 3, launch: \"echo "
      "v=$n$jube_wp_iteration\"}\n"
      "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [n, {_: v, statistic: median}]}}\n");
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "1,11,3 of 3\n2,21,3 of 3\n"), (ran.out + ran.err));
}

TEST_CASE("repeat until: a precise point stops, the other one goes on to max and is noted") {
  const Shell shell;
  shell.file("b.yaml", bench("{min: 6, max: 9, until: {metric: v, half_width: 1%}}"));
  CHECK_MESSAGE(has(shell.tally("run -n b.yaml").out,
                    "plan  b: 2 points, at most 9 repeats -> 18 workpackages\n"),
                shell.tally("run -n b.yaml").out);
  for (const char* jobs : {"1", "4"}) {
    shell.sh("rm -rf run order");
    const Ran ran = shell.tally(std::string("run b.yaml -j ") + jobs);
    CHECK(ran.code == 0);
    // The first six of n=1: 100.00 .07 .04 .01 .08 .05; all nine of n=2: 200 270 240 210 280 250
    // 220 290 260. Medians by hand.
    CHECK_MESSAGE(has(ran.out, "1,100.0,100.045,6 of 6\n2,200.0,250.0,9 of 9\n"),
                  (ran.out + ran.err));
    CHECK(has(ran.err, "note: t: row 2: 'v': after 9 repeats the interval of the median is +-"));
    CHECK(!has(ran.err, "note: t: row 1: 'v': after"));
    CHECK(shell.sh("grep -c 1 order").out == "6\n");
    CHECK(shell.sh("grep -c 2 order").out == "9\n");
    CHECK(has(shell.content("run/000000/run.log"), "not needed: 'v' is precise enough"));
    // Nothing is left to do, and looking again shows the same.
    CHECK(shell.tally("continue run").code == 0);
    CHECK(shell.sh("wc -l <order").out == "15\n");
    CHECK(has(shell.tally("result run").out, "1,100.0,100.045,6 of 6\n"));
    CHECK(has(shell.tally("status run").out, "FINISHED"));
  }
}

TEST_CASE("repeat until: an interrupted run decides again when it is continued") {
  const Shell shell;
  // The engine is killed in the fifth round, and once.
  shell.file("b.yaml", bench("{max: 9, until: {metric: v, half_width: 1%}}",
                             "test $$(wc -l <$jube_benchmark_home/order) -ne 9 || kill -9 $PPID"));
  shell.tally("run b.yaml");
  const Ran ran = shell.tally("continue run");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "1,100.0,100.045,6 of 6\n2,200.0,250.0,9 of 9\n"),
                (ran.out + ran.err));
}

TEST_CASE("repeat: warm-ups run and do not count, failed repeats are counted") {
  const Shell shell;
  shell.file("b.yaml", bench("{max: 4, warmup: 1}"));
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  // Iterations 1 to 4: .07 .04 .01 .08, and 270 240 210 280.
  CHECK_MESSAGE(has(ran.out, "1,100.07,100.055,4 of 4\n2,270.0,255.0,4 of 4\n"),
                (ran.out + ran.err));
  CHECK(shell.sh("wc -l <order").out == "10\n");
  shell.clear();
  shell.file("b.yaml", bench("{max: 4, warmup: 1}", "test $n$jube_wp_iteration != 22"));
  ran = shell.tally("run b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "2,270.0,270.0,3 of 4\n"), (ran.out + ran.err));
}

TEST_CASE("repeat: mistakes") {
  struct Row {
    const char* repeat;
    const char* message;
  };
  const Row rows[] = {
      {"{warmup: 1}", "b.yaml:9:3: error: repeat of step 's': it needs `max`"},
      {"{max: 4, min: 2}", "error: repeat: `min` needs `until`"},
      {"{max: 4, until: {metric: v, half_width: 1%}}",
       "error: repeat: min (6) is greater than max (4)"},
      {"{max: x}", "'x' is not a valid value for 'max' in repeat"},
      {"{max: 0}", "error: repeat: max: '0' is not a whole number of at least 1"},
      {"{max: 9, until: {metric: w, half_width: 1%}}", "error: until: there is no pattern 'w'"},
      {"{max: 9, until: {metric: v, half_width: 1}}",
       "error: until: half_width: '1' is not a percentage between 0% and 100%"},
      {"{max: 9, until: {metric: v}}", "this until has no 'half_width'"},
      {"{max: 9, untl: {metric: v}}", "did you mean 'until'?"},
  };
  for (const Row& row : rows) {
    const Shell shell;
    shell.file("b.yaml", bench(row.repeat));
    const Ran ran = shell.tally("validate b.yaml");
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, row.message), ran.err);
  }
}

TEST_CASE("repeats that are missing count in `of`, and their failures are noted") {
  const Shell shell;
  // The engine is killed in the fifth of ten workpackages: repeats are in turns, so that each point
  // has two that ended.
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\n"
      "parameterset: {name: p, parameter: {name: n, type: int, _: \"1,2\"}}\n"
      "step: {name: s, kind: run, use: p, repeat: 5, do: \"echo v=$n$jube_wp_iteration; test "
      "$jube_wp_iteration$n != 21 || ! mkdir $jube_benchmark_home/once || kill -9 $PPID\"}\n"
      "patternset: {name: o, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
      "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [n, {_: v, statistic: median, "
      "better: higher}]}}\n");
  shell.tally("run b.yaml -q");
  Ran ran = shell.tally("result run");
  CHECK_MESSAGE(has(ran.out, "1,10.5,2 of 5,RUNNING\n2,20.5,2 of 5,PENDING\n"), ran.out);
  ran = shell.tally("continue run -q");
  CHECK_MESSAGE(has(ran.out, "1,12.0,5 of 5\n2,22.0,5 of 5\n"), (ran.out + ran.err));

  // A repeat that failed in the step before has no workpackage in the measured step.
  shell.clear();
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\n"
      "parameterset: {name: p, parameter: {name: n, type: int, _: \"1,2\"}}\n"
      "step:\n"
      " - {name: a, kind: run, use: p, repeat: 3, do: \"echo u=$n; test $n$jube_wp_iteration "
      "!= 21\"}\n"
      " - {name: s, kind: run, depend: a, do: \"echo v=$n\"}\n"
      "patternset:\n"
      " - {name: ou, pattern: {name: u, type: float, _: \"u=$jube_pat_fp\"}}\n"
      " - {name: o, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
      "analyser: {name: a, analyse: [{step: a, file: {_: stdout, use: ou}}, {step: s, file: "
      "{_: stdout, use: o}}]}\n"
      "result: {use: a, table: {name: t, style: csv, column: [n, {_: v, statistic: median}]}}\n");
  ran = shell.tally("run b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "1,1.0,3 of 3\n2,2.0,2 of 3\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "; repeats or rows of step 's' are missing\n"), ran.err);
}

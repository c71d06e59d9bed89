// Names of values that nothing has, in patterns and columns: errors before anything runs, the same
// ones in `validate`, `run -n` and `run`.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/cli/refused.h"

using tally::testing::has;
using tally::testing::is_refused;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

std::string metrics(const std::string& text) {
  return "name: b\nparameters: {nodes: [1, 2, 4]}\nrun: 'echo \"time = $(( 8 / $nodes ))\"'\n"
         "metrics:\n" +
         text;
}

std::string speedup(const std::string& definition) {
  return metrics("  time: 'time = $jube_pat_fp'\n  speedup: " + definition + "\n");
}

void is_fine(const std::string& file) {
  CAPTURE(file);
  const Shell shell;
  shell.file("b.yaml", file);
  Ran ran = shell.tally("--strict validate b.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
}

}  // namespace

TEST_CASE("a $name in a pattern that nothing defines") {
  is_refused(metrics("  time: 'time = $jube_pat_fpp'\n"),
             "b.yaml:5:17: error: pattern 'time': '$jube_pat_fpp' is neither a parameter nor a "
             "pattern\n"
             "      time: 'time = $jube_pat_fpp'\n"
             "                    ^~~~~~~~~~~~~\n"
             "hint: did you mean 'jube_pat_fp'?\n");
  is_refused(metrics("  time: 'time = $jube_pat_float'\n"),
             "b.yaml:5:17: error: pattern 'time': '$jube_pat_float' is neither a parameter nor a "
             "pattern\n"
             "      time: 'time = $jube_pat_float'\n"
             "                    ^~~~~~~~~~~~~~~\n"
             "hint: did you mean 'jube_pat_fp'?\n");
  is_refused(metrics("  time: 'time = $jube_pat_seconds'\n"),
             "b.yaml:5:17: error: pattern 'time': '$jube_pat_seconds' is neither a parameter nor a "
             "pattern\n"
             "      time: 'time = $jube_pat_seconds'\n"
             "                    ^~~~~~~~~~~~~~~~~\n"
             "hint: there are: $jube_pat_bl, $jube_pat_fp, $jube_pat_int, $jube_pat_nfp, "
             "$jube_pat_nint, $jube_pat_nwrd, $jube_pat_wrd\n");
  is_refused(metrics("  time: {_: 'of ${node}: $jube_pat_fp', unit: s}\n"),
             "b.yaml:5:17: error: pattern 'time': '$node' is neither a parameter nor a pattern\n"
             "      time: {_: 'of ${node}: $jube_pat_fp', unit: s}\n"
             "                    ^\n"
             "hint: did you mean 'nodes'?\n");
  is_refused(metrics("  time: 'time = $jube_pat_fp'\n  twice: {mode: python, _: '2 * $tiem'}\n"),
             "b.yaml:6:33: error: pattern 'twice': '$tiem' is neither a parameter nor a pattern\n"
             "      twice: {mode: python, _: '2 * $tiem'}\n"
             "                                    ^~~~~\n"
             "hint: did you mean 'time'?\n");
  is_refused(metrics("  time: 'cost $USD $jube_pat_fp'\n"),
             "b.yaml:5:15: error: pattern 'time': '$USD' is neither a parameter nor a pattern\n"
             "      time: 'cost $USD $jube_pat_fp'\n"
             "                  ^~~~\n"
             "hint: write $$USD to mean the dollar itself\n");
}

TEST_CASE("what a pattern may name is fine") {
  is_fine(metrics("  time: 'time = $jube_pat_fp$'\n"));
  is_fine(metrics(
      "  time: {type: string, default: none, _: 'cost $$USD (.*)'}\n  t: 'time = (\\d+)'\n"));
  is_fine(metrics(
      "  time: {type: string, default: none, _: 'cost \\$USD (.*)'}\n  t: 'time = (\\d+)'\n"));
  is_fine(
      metrics("  time: 'time = $jube_pat_fp'\n  twice: {mode: python, _: '2 * $time + $time_min'}\n"
              "  t: {default: 1, _: '$nodes $jube_wp_id $jube_benchmark_name (.)'}\n"));
  // In JUBE's language the name stays as it is.
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\nstep: {name: s, do: echo 'a $$x 5'}\n"
      "patternset: {name: p, pattern: {name: t, type: int, _: 'a .x $jube_pat_int$nothing'}}\n"
      "analyser: {name: a, use: p, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, column: [t]}}\n");
  const Ran ran = shell.tally("validate b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(ran.err.empty(), ran.err);
}

TEST_CASE("unknown names of relative_to and of expressions") {
  is_refused(speedup("{expression: baseline.time / time, relative_to: {node: 1}}"),
             "b.yaml:6:61: error: relative_to of column 'speedup': 'node' is neither a parameter "
             "nor a pattern\n"
             "      speedup: {expression: baseline.time / time, relative_to: {node: 1}}\n"
             "                                                                ^~~~\n"
             "hint: did you mean 'nodes'?\n");
  is_refused(speedup("{expression: baseline.tmie / time, relative_to: {nodes: 1}}"),
             "b.yaml:6:25: error: column 'speedup': 'baseline.tmie' is not the name of a value\n"
             "      speedup: {expression: baseline.tmie / time, relative_to: {nodes: 1}}\n"
             "                            ^~~~~~~~~~~~~\n"
             "hint: did you mean 'baseline.time'?\n");
  is_refused(speedup("{expression: base.time / time, relative_to: {nodes: 1}}"),
             "b.yaml:6:25: error: column 'speedup': 'base' is not the name of a value\n"
             "      speedup: {expression: base.time / time, relative_to: {nodes: 1}}\n"
             "                            ^~~~~~~~~\n"
             "hint: did you mean 'baseline.time'?\n");
  is_refused(speedup("{expression: time / node}"),
             "b.yaml:6:32: error: column 'speedup': 'node' is not the name of a value\n"
             "      speedup: {expression: time / node}\n"
             "                                   ^~~~\n"
             "hint: did you mean 'nodes'?\n");
  is_refused(
      speedup("{expression: baseline.time / time}"),
      "b.yaml:6:25: error: column 'speedup': 'baseline.time' needs a baseline row, and there "
      "is no 'relative_to'\n"
      "      speedup: {expression: baseline.time / time}\n"
      "                            ^~~~~~~~~~~~~\n"
      "hint: say which row it is, for example `relative_to: {nodes: 1}`\n");
}

TEST_CASE("unknown names of a filter") {
  const auto filtered = [](const std::string& filter) {
    return "name: b\noutpath: b_run\n"
           "parameterset: {name: p, parameter: {name: n, type: int, _: [1, 2]}}\n"
           "step: {name: s, kind: run, use: p, do: 'echo t = $n'}\n"
           "patternset: {name: o, pattern: {name: t, type: float, _: 't = $jube_pat_fp'}}\n"
           "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
           "result: {use: a, table: {name: t, filter: " +
           filter + ", column: [n, t, {_: twice, expression: 2 * t}]}}\n";
  };
  is_refused(
      filtered("n > 1 and tt > 1"),
      "b.yaml:7:53: error: the filter of table 't': 'tt' is not the name of a value\n"
      "    result: {use: a, table: {name: t, filter: n > 1 and tt > 1, column: [n, t, {_: twice, "
      "expression: 2 * t}]}}\n"
      "                                                        ^~\n"
      "hint: did you mean 't'?\n");
  for (const char* fine : {"true", "twice > 2", "'$n > 1 and \"x\" != \"y\"'", "status == 'done'"})
    is_fine(filtered(fine));
}

TEST_CASE("what an expression may name is fine") {
  is_fine(speedup("{expression: baseline.time / time, relative_to: {nodes: 1}}"));
  is_fine(speedup("{expression: 'math.sqrt(time) + int(round(time, ndigits=2)) + $nodes'}"));
  is_fine(speedup("{expression: sum(x for x in range(nodes)) + time_max}"));
  is_fine(speedup("{expression: 'float(\"1.5\" if nodes == 1 else str(jube_wp_id))'}"));
  is_fine(speedup("{expression: time * 2}\n  more: {expression: speedup + time_cnt}"));
  is_fine(speedup("{expression: 'nodes.real + (status == \"done\")'}"));
}

TEST_CASE("a column whose expression fails in each row is no success") {
  const Shell shell;
  shell.file("b.yaml", speedup("{expression: time / (nodes - nodes), relative_to: {nodes: 1}}"));
  Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 1, ran.out);
  CHECK_MESSAGE(has(ran.err,
                    "b.yaml:6:25: error: column 'speedup' could not be computed in 3 of 3 rows: "
                    "float division by zero\n"),
                ran.err);
  CHECK_MESSAGE(!has(ran.err, "baseline row"), ran.err);
  CHECK_MESSAGE(has(ran.out, "|     1 |    8 |         |\n"), ran.out);
  CHECK(shell.tally("result b_run").code == 1);
  // One value is enough.
  shell.file("c.yaml", "name: c\n" + speedup("{expression: time / (nodes - 1)}").substr(8));
  ran = shell.tally("run c.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(
      has(ran.err,
          "warning: column 'speedup' could not be computed in 1 of 3 rows: float division "
          "by zero\n"),
      ran.err);
}

TEST_CASE("a computed column has six digits in a table for people, and all in csv") {
  const Shell shell;
  shell.file("b.yaml", speedup("{expression: time / 3}\n  big: {expression: time * 1234567.89}\n"
                               "  whole: {expression: time * 2}"));
  Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "|     1 |    8 |  2.66667 | 9876543 |    16 |\n"), ran.out);
  ran = shell.tally("result b_run -s csv");
  CHECK_MESSAGE(has(ran.out, "1,8.0,2.6666666666666665,9876543.12,16.0\n"), ran.out);
  // Its interval, too; that of a measured value has the digits that were measured.
  shell.file("r.yaml",
             "name: r\nrun: \"echo 'time = 1.23456789'\"\nrepeat: 2\nmetrics:\n  time: 'time = "
             "$jube_pat_fp'\n  third: {expression: time / 3}\n");
  ran = shell.tally("run r.yaml");
  CHECK_MESSAGE(has(ran.out,
                    "| 1.23456789 |  1.23456789 |   1.23456789 | 0.411523 |     0.411523 |      "
                    "0.411523 |  2 of 2 |\n"),
                ran.out);
}

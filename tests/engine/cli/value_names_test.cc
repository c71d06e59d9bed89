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

namespace {

// `columns`: over v, which is the parameter a, in three repeats.
std::string columns(const std::string& list, const std::string& keys = "") {
  return "name: b\noutpath: run\n"
         "parameterset: {name: p, parameter: {name: a, type: int, _: '4,8'}}\n"
         "patternset: {name: q, pattern: [{name: v, type: float, _: 'v=(\\S+)'}, {name: x, type: "
         "float, _: 'x=(\\S+)'}]}\n"
         "step: {name: s, kind: run, quiet_check: false, repeat: 3, use: p, do: 'echo v=$a x=2'}\n"
         "analyser: {name: an, use: q, analyse: {step: s, file: stdout}}\n"
         "result: {use: an, table: {name: t, style: csv, " +
         keys + "column: [a, " + list + "]}}\n";
}

}  // namespace

TEST_CASE("a column may read one to its right") {
  struct Case {
    const char* columns;
    const char* rows;
    const char* keys = "";
  };
  const Case cases[] = {
      {"{_: e, expression: 'f * 2'}, {_: f, expression: 'v + 1'}", "4,10.0,5.0\n8,18.0,9.0\n"},
      {"{_: e, expression: '$f * 2'}, {_: f, expression: 'v + 1'}", "4,10.0,5.0\n8,18.0,9.0\n"},
      {"{_: g, expression: 'e * 2'}, {_: e, expression: 'f * 2'}, {_: f, expression: 'v + 1'}",
       "4,20.0,10.0,5.0\n8,36.0,18.0,9.0\n"},
      {"{_: e, expression: 'r * 2'}, {_: v, title: r, relative_to: {a: 4}}",
       "4,2.0,1.0\n8,4.0,2.0\n"},
      {"{_: e, expression: 'v_relative * 2'}, {_: v, relative_to: {a: 4}}",
       "4,2.0,1.0\n8,4.0,2.0\n"},
      {"{_: e, expression: 'v_relative * 2'}, {_: v, title: v, relative_to: {a: 4}}",
       "4,2.0,1.0\n8,4.0,2.0\n"},
      {"{_: e, expression: 'f / baseline.f', relative_to: {a: 4}}, {_: f, expression: 'v + 1'}",
       "4,1.0,5.0\n8,1.8,9.0\n"},
      {"{_: v, title: r, relative_to: {f: 5}, null_value: '-'}, {_: f, expression: 'v + 1'}",
       "4,1.0,5.0\n8,-,9.0\n"},
      {"{_: e, expression: 'f * 2', statistic: median}, {_: f, expression: 'v + 1'}",
       "4,10.0,5.0,3 of 3\n8,18.0,9.0,3 of 3\n"},
      {"{_: e, expression: 'f * 2', statistic: mean}, {_: f, expression: 'v + 1', statistic: max}",
       "4,10.0,5.0,3 of 3\n8,18.0,9.0,3 of 3\n"},
      {"{_: e, expression: 'f * 2'}, {_: f, expression: 'v + 1'}", "8,18.0,9.0\n",
       "filter: 'e > 10', "},
      {"{_: e, expression: 'f * 2', reference: '>= 10'}, {_: f, expression: 'v + 1'}",
       "4,10.0,5.0\n8,18.0,9.0\n"},
      // The name of a value means the value in the columns to the left.
      {"{_: e, expression: 'x * 2'}, {_: x, expression: 'v + 1'}", "4,4.0,5.0\n8,4.0,9.0\n"},
      {"{_: x, expression: 'v + 1'}, {_: e, expression: 'x * 2'}", "4,5.0,10.0\n8,9.0,18.0\n"},
      {"{_: e, expression: 'g'}, {_: x, expression: 'v + 1'}, {_: g, expression: 'x * 2'}",
       "4,10.0,5.0,10.0\n8,18.0,9.0,18.0\n"},
      // Also where they read a column that reads the new one, and so are computed after it.
      {"{_: g, expression: 'h + v'}, {_: v, expression: 'v * 2'}, {_: h, expression: 'v + 1'}",
       "4,13.0,8.0,9.0\n8,25.0,16.0,17.0\n"},
      {"{_: g, expression: 'x + baseline.h', relative_to: {a: 4}}, {_: x, expression: 'v * 2'}, "
       "{_: h, expression: 'x + 1'}",
       "4,11.0,8.0,9.0\n8,11.0,16.0,17.0\n"},
      {"{_: g, expression: 'x * baseline.x + h', relative_to: {a: 4}}, {_: x, expression: 'v * "
       "2'}, {_: h, expression: 'x + 1'}",
       "4,13.0,8.0,9.0\n8,21.0,16.0,17.0\n"},
      {"{_: g, expression: 'h + v', statistic: median}, {_: v, expression: 'v * 2'}, {_: h, "
       "expression: 'v + 1'}",
       "4,13.0,8.0,9.0,3 of 3\n8,25.0,16.0,17.0,3 of 3\n"},
      {"{_: g, expression: 'v + 1'}, {_: v, expression: 'v * 2', statistic: median}",
       "4,5.0,8.0,3 of 3\n8,9.0,16.0,3 of 3\n"},
      {"{_: e, expression: 'x * 2', statistic: median}, {_: v, title: x, relative_to: {a: 4}}",
       "4,4.0,1.0,3 of 3\n8,4.0,2.0,3 of 3\n"},
      // An expression that stands twice is computed once, with what its name was before.
      {"{_: v, expression: 'v * 2', statistic: median}, {_: g, expression: 'v + 1'}, {_: v, "
       "expression: 'v * 2', statistic: max}",
       "4,8.0,9.0,8.0,3 of 3\n8,16.0,17.0,16.0,3 of 3\n"},
      {"{_: g, expression: 'v + 1'}, {_: v, expression: 'v * 2', statistic: median}, {_: v, "
       "expression: 'v * 2', title: w}, {_: h, expression: 'v + 1'}",
       "4,5.0,8.0,8.0,9.0,3 of 3\n8,9.0,16.0,16.0,17.0,3 of 3\n"},
      {"{_: v, expression: 'v * 2'}, {_: v, expression: 'v * 2', format: .2f}, {_: h, expression: "
       "'v + 1'}",
       "4,8.0,8.00,9.0\n8,16.0,16.00,17.0\n"},
      {"{_: v, expression: 'v * 2'}, {_: v, expression: 'v * 2', statistic: max}",
       "4,8.0,8.0,3 of 3\n8,16.0,16.0,3 of 3\n"},
      {"{_: v, expression: 'v * 2'}, {_: v, title: w, expression: 'v * 2', better: higher}",
       "4,8.0,8.0\n8,16.0,16.0\n"},
      {"{_: v, expression: 'v * v', relative_to: {a: 4}}, {_: v, expression: 'v * v', format: .1f, "
       "relative_to: {a: 4}}",
       "4,1.0,1.0\n8,4.0,4.0\n"},
      {"{_: v, expression: 'v / baseline.v + 1', relative_to: {a: 4}}, {_: v, expression: 'v / "
       "baseline.v + 1', format: .1f, relative_to: {a: 4}}",
       "4,2.0,2.0\n8,3.0,3.0\n"},
      // Python's functions, and an expression's own names, are no columns.
      {"{_: f, expression: 'max(v, 1)'}, {_: max, expression: 'f * 2'}", "4,4.0,8.0\n8,8.0,16.0\n"},
      {"{_: f, expression: 'abs(v)', statistic: median}, {_: v, title: abs, relative_to: {a: 4}}",
       "4,4.0,1.0,3 of 3\n8,8.0,2.0,3 of 3\n"},
      {"{_: f, expression: 'sum(e for e in [v])'}, {_: e, expression: 'f * 2'}",
       "4,4.0,8.0\n8,8.0,16.0\n"},
      {"{_: f, expression: 'max([v, 1], key=lambda e: e)'}, {_: e, expression: 'f * 2'}",
       "4,4.0,8.0\n8,8.0,16.0\n"},
      {"{_: f, expression: '(e := v) + 1'}, {_: e, expression: 'f * 2'}",
       "4,5.0,10.0\n8,9.0,18.0\n"},
      {"{_: f, expression: 'sum(e for e in [v]) + e'}, {_: e, expression: 'v * 2'}",
       "4,12.0,8.0\n8,24.0,16.0\n"},
  };
  const Shell shell;
  for (const Case& one : cases) {
    CAPTURE(one.columns);
    shell.clear();
    shell.file("b.yaml", columns(one.columns, one.keys));
    const Ran ran = shell.tally("-q run b.yaml");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.out, std::string("\n") + one.rows), (ran.out + ran.err));
  }
  // compare takes the samples of such a column, too.
  shell.clear();
  shell.file("b.yaml",
             columns("{_: e, expression: 'f * 2', better: higher}, {_: f, expression: 'v + 1'}"));
  REQUIRE(shell.tally("-q run b.yaml").code == 0);
  REQUIRE(shell.tally("-q run b.yaml").code == 0);
  const Ran ran = shell.tally("compare run/000000 run/000001 -s csv");
  CHECK_MESSAGE(has(ran.out, "4,e,10,3,10,3,"), (ran.out + ran.err));
}

TEST_CASE("columns that cannot be computed are errors before anything runs") {
  struct Case {
    const char* columns;
    const char* says;
  };
  const char* no_repeats =
      "column 'e': a statistic is computed in each repeat, and 'r' is relative to a baseline row";
  const Case cases[] = {
      {"{_: e, expression: 'f * 2'}, {_: f, expression: 'e + 1'}",
       "columns read each other: 'e' reads 'f' reads 'e'"},
      {"{_: e, expression: 'f * 2'}, {_: f, expression: 'g + 1'}, {_: g, expression: 'e + v'}",
       "columns read each other: 'e' reads 'f' reads 'g' reads 'e'"},
      {"{_: h, expression: e}, {_: e, expression: 'f * 2'}, {_: f, expression: 'e + 1'}",
       "columns read each other: 'e' reads 'f' reads 'e'"},
      {"{_: e, expression: 'baseline.f', relative_to: {a: 4}}, {_: f, expression: 'e + 1'}",
       "columns read each other: 'e' reads 'f' reads 'e'"},
      {"{_: v, title: r, relative_to: {a: 4}}, {_: e, expression: 'r * 2', statistic: median}",
       no_repeats},
      {"{_: e, expression: 'r * 2', uncertainty: range}, {_: r, expression: v, relative_to: {a: "
       "4}}",
       no_repeats},
      {"{_: e, expression: 'f', statistic: min}, {_: f, expression: r}, {_: v, title: r, "
       "relative_to: {a: 4}}",
       "and 'f' is relative to a baseline row"},
      {"{_: v, title: r, relative_to: {a: 4}}, {_: e, expression: 'r * 2', better: higher}",
       "column 'e': `better` takes the value in each repeat, and 'r' is relative to a baseline "
       "row"},
      {"{_: e, expression: 'f', better: lower}, {_: f, expression: r}, {_: v, title: r, "
       "relative_to: {a: 4}}",
       "and 'f' is relative to a baseline row"},
      // Also where the ratio's title is a pattern's name, and in its place to the right of it.
      {"{_: v, title: x, relative_to: {a: 4}}, {_: e, expression: 'x * 2', statistic: median}",
       "and 'x' is relative to a baseline row"},
      {"{_: x, expression: v, relative_to: {a: 4}}, {_: e, expression: 'x * 2', better: higher}",
       "and 'x' is relative to a baseline row"},
      {"{_: v, title: x, relative_to: {a: 4}}, {_: f, expression: 'x + 1'}, {_: e, expression: "
       "'f * 2', better: higher}",
       "and 'f' is relative to a baseline row"},
      // The title of an expression is no name.
      {"{_: z, title: r, expression: 'v + 1', relative_to: {a: 4}}, {_: e, expression: 'r * 2'}",
       "column 'e': 'r' is not the name of a value"},
  };
  const Shell shell;
  for (const Case& one : cases) {
    CAPTURE(one.columns);
    shell.file("b.yaml", columns(one.columns));
    for (const char* command : {"validate b.yaml", "run b.yaml"}) {
      const Ran ran = shell.tally(command);
      CHECK_MESSAGE(ran.code == 2, (ran.out + ran.err));
      CHECK_MESSAGE(has(ran.err, one.says), ran.err);
    }
  }
}

TEST_CASE("two columns whose values have one name") {
  struct Case {
    const char* columns;
    const char* says;  // empty: it is fine
  };
  const Case cases[] = {
      {"{_: e, expression: 'v * 2'}, {_: e, title: f, expression: 'v * 3'}",
       "columns 'e' and 'f' have values of one name, 'e'"},
      {"{_: e, expression: 'v * 2', statistic: median}, {_: e, expression: 'v * 3', statistic: "
       "max}",
       "have values of one name, 'e'"},
      {"{_: e, expression: v, relative_to: {a: 4}}, {_: e, title: f, expression: v, relative_to: "
       "{a: 8}}",
       "columns 'e' and 'f' have values of one name, 'e'"},
      {"{_: v, relative_to: {a: 4}}, {_: v, relative_to: {a: 8}}",
       "have values of one name, 'v_relative'"},
      {"{_: v, title: e, relative_to: {a: 4}}, {_: e, title: f, expression: 'v * 3'}",
       "columns 'e' and 'f' have values of one name, 'e'"},
      {"x, {_: v, title: x, relative_to: {a: 4}}", "have values of one name, 'x'"},
      {"{_: v, relative_to: {a: 4}}, {_: v, title: r, relative_to: {a: 8}}", ""},
      {"{_: v, relative_to: {a: 4}}, {_: v, format: .2f, relative_to: {a: 4}}", ""},
      {"{_: e, expression: v, statistic: median}, {_: e, expression: v, statistic: max}", ""},
      {"{_: v, statistic: median}, {_: v, statistic: max}, v", ""}};
  const Shell shell;
  for (const Case& one : cases) {
    CAPTURE(one.columns);
    shell.file("b.yaml", columns(one.columns));
    const Ran ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE(ran.code == (*one.says == 0 ? 0 : 2), (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, one.says), ran.err);
  }
}

TEST_CASE("a column that reads a ratio is no metric") {
  const Shell shell;
  shell.file("b.yaml",
             columns("{_: v, title: r, relative_to: {a: 4}}, {_: f, expression: 'r * 100'}"));
  for (int i = 0; i < 2; ++i) REQUIRE(shell.tally("-q run b.yaml").code == 0);
  const Ran ran = shell.tally("compare run -i 0 -i 1 --metric f --better higher");
  CHECK_MESSAGE(ran.code != 0, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.err, "--metric: 'f' is relative to another row of its own run"), ran.err);
}

TEST_CASE("a text in a row that the filter leaves out is none of the table") {
  struct Case {
    const char* keys;
    const char* filter;
    int code;
  };
  const Case cases[] = {{"better: higher", "y != \"none\"", 0},
                        {"better: higher", "a == 8", 0},
                        {"better: higher", "a < 9", 1},
                        {"statistic: median", "a == 8", 0},
                        {"statistic: median", "a == 4", 1},
                        {"relative_to: {a: 8}", "a == 8", 0},
                        {"relative_to: {a: 8}", "a < 9", 1},
                        // The rows shown are divided by it.
                        {"relative_to: {a: 4}", "a == 8", 1}};
  const Shell shell;
  for (const Case& one : cases) {
    CAPTURE(one.keys);
    CAPTURE(one.filter);
    std::string text = columns(std::string("{_: e, expression: y, ") + one.keys + "}",
                               std::string("filter: '") + one.filter + "', ");
    text.replace(text.find("{name: v,"), 0, "{name: y, _: 'y=(\\S+)'}, ");
    text.replace(text.find("'echo v=$a x=2'"), 15,
                 "'echo v=$a y=$(test $a = 4 && echo none || echo 7)'");
    shell.clear();
    shell.file("b.yaml", text);
    const Ran ran = shell.tally("-q run b.yaml");
    CHECK_MESSAGE(ran.code == one.code, (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, "needs numbers") == (one.code != 0), ran.err);
  }
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

TEST_CASE("a statistic of the baseline row needs numbers, too") {
  for (const char* expression : {"v / baseline.w_avg", "baseline.w_median", "v + baseline.w_max"}) {
    CAPTURE(expression);
    const Shell shell;
    shell.file("b.yaml",
               "name: b\noutpath: run\n"
               "parameterset: {name: ps, parameter: {name: n, type: int, _: \"1,2\"}}\n"
               "patternset: {name: pt, pattern: [{name: v, type: float, _: v=(.)}, "
               "{name: w, _: w=(.)}]}\n"
               "step: {name: s, kind: run, use: ps, do: echo v=$n w=$n}\n"
               "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
               "result: {use: a, table: {name: t, column: [n, {_: e, null_value: '-', "
               "relative_to: {n: 1}, expression: '" +
                   std::string(expression) + "'}]}}\n");
    const Ran ran = shell.tally("validate b.yaml");
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, "error: column 'e': the type of pattern 'w' is string, and 'w_"),
                  ran.err);
  }
}

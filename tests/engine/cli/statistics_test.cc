// Statistics over repeats, through the program.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"
#include "tests/support/workflows.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;
using tally::testing::with_replaced;

TEST_CASE("samples are in the journal: results and comparisons outlive the outputs") {
  const Shell shell;
  // Two matches in each repeat, an integer whose square needs more than 64 bits, and a text.
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\n"
      "parameterset: {name: ps, parameter: {name: n, type: int, _: \"1,2\"}}\n"
      "patternset: {name: pt, pattern: [{name: v, type: float, _: \"v=$jube_pat_fp\"}, {name: big, "
      "type: int, _: \"big=$jube_pat_int\"}, {name: word, _: \"word=$jube_pat_wrd\"}]}\n"
      "step: {name: s, kind: run, use: ps, repeat: 6, do: \"echo v=$n.$jube_wp_iteration v=7.1 "
      "big=9000000000$n word=a,$n:x\"}\n"
      "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [n, {_: v, statistic: median, "
      "uncertainty: ci, better: higher}, v_avg, v_max, v_std, v_cnt, v_mad, big_sum2, big_avg, "
      "word]}}\n");
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  const std::string table = ran.out.substr(ran.out.find("n,v,"));
  CHECK_MESSAGE(has(table, "\n1,1.25,1.0,1.5,"), table);
  CHECK(shell.tally("run b.yaml -q").code == 0);
  // One folder, then all of them.
  for (const char* folders : {"000003_s", "0000*_s"}) {
    shell.sh(std::string("rm -r run/000000/") + folders);
    const Ran later = shell.tally("result run -i 0");
    CHECK(later.code == 0);
    CHECK_MESSAGE(has(later.out, table), (later.out + table));
    CHECK_MESSAGE(has(later.err, " is gone; its values are those that the journal kept"),
                  later.err);
  }
  Ran later = shell.tally("compare run/000000 run/000001");
  CHECK_MESSAGE(has(later.out, "|      6 |"), (later.out + later.err));
  CHECK(later.code == 0);
  // Other patterns than those that were kept have no values.
  shell.sh("sed 's/name: word,/name: other,/; s/, word\\]/, other]/' b.yaml > c.yaml");
  later = shell.tally("result run -i 0 -u c.yaml");
  CHECK_MESSAGE(has(later.err, "pattern 'other' matched nothing in 12 of 12 workpackages"),
                later.err);
  // The same name with another text is another pattern.
  shell.sh("sed 's/v=$jube_pat_fp/w=$jube_pat_fp/' b.yaml > d.yaml");
  later = shell.tally("result run -i 0 -u d.yaml");
  CHECK_MESSAGE(has(later.err, "pattern 'v' matched nothing in 12 of 12 workpackages"), later.err);
  CHECK_MESSAGE(!has(later.out, "1,1.25,"), later.out);
  // What is done again replaces what was kept.
  shell.sh("sed -i s/7.1/9.5/ b.yaml");
  CHECK(shell.tally("remove run -i 1 -w 0 -f").code == 0);
  CHECK(shell.tally("continue run -i 1 -q").code == 0);
}

TEST_CASE("a value of a step that ran once is one repeat, however often the step after it ran") {
  const Shell shell;
  const auto bench = [](const std::string& repeat) {
    return "name: b\noutpath: run\n"
           "step:\n"
           " - {name: a, kind: run" +
           repeat +
           ", do: 'echo ra=1.$jube_wp_iteration'}\n"
           " - {name: b, kind: run, depend: a, repeat: 3, do: 'echo rb=5.$jube_wp_iteration'}\n"
           "patternset:\n"
           " - {name: oa, pattern: [{name: ra, type: float, _: 'ra=$jube_pat_fp'}, {name: half, "
           "type: "
           "float, mode: python, _: '$ra / 2'}]}\n"
           " - {name: ob, pattern: [{name: rb, type: float, _: 'rb=$jube_pat_fp'}, {name: both, "
           "type: "
           "float, mode: python, _: '$ra + $rb'}]}\n"
           "analyser: {name: r, analyse: [{step: a, file: {_: stdout, use: oa}}, {step: b, file: "
           "{_: "
           "stdout, use: ob}}]}\n"
           "result: {use: r, table: {name: t, style: csv, column: [{_: ra, statistic: median}, "
           "ra_n, "
           "half_n, both_n, {_: twice, expression: 'ra * 2', statistic: max}, {_: rb, statistic: "
           "max}]}}\n";
  };
  shell.file("b.yaml", bench(""));
  Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "\n1.0,1,1,3,2.0,5.2,\"1 of 1, 3 of 3\"\n"), ran.out);
  CHECK(has(shell.tally("result run -s json").out, "\"n\":1,\"of\":1"));
  shell.file("b.yaml", bench(", repeat: 2"));
  ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "\n1.05,2,2,6,2.2,5.5,\"2 of 2, 6 of 6\"\n"), ran.out);
}

// The repeats that have no such file are no measurement of its patterns: neither a default nor what
// is computed from it counts.
TEST_CASE("a repeat without a file has no values of the patterns that the file uses") {
  const auto bench = [](const std::string& steps) {
    return "name: f\noutpath: run\n"
           "patternset:\n"
           " - {name: q, pattern: [{name: t, type: float, default: 0, _: 't=(.*)'}, {name: two, "
           "type: "
           "float, mode: python, _: '$t * 2'}]}\n"
           " - {name: k, pattern: {name: k, type: int, default: 7, _: 'k=(\\d+)'}}\n" +
           steps +
           "result: {use: a, table: {name: t, style: csv, column: [{_: t, statistic: mean}, t_avg, "
           "t_cnt, {_: two, title: w, statistic: min}, {_: k, statistic: mean}]}}\n";
  };
  // Two of three repeats write the file; one has it without a match; all print to stdout or not.
  const std::string command = "echo k=1; test $jube_wp_iteration = 1 || echo t=4 > app.log";
  const std::string none = "echo k=1; test $jube_wp_iteration = 1 || echo > app.log";
  const std::string files = "file: [{use: q, _: app.log}, {use: k, _: stdout}]";
  const std::string own = "step: {name: s, kind: run, quiet_check: false, repeat: 3, do: '" +
                          command + "'}\nanalyser: {name: a, analyse: {step: s, " + files + "}}\n";
  const std::string above =
      "step: [{name: s, kind: run, quiet_check: false, repeat: 3, do: '" + command +
      "'}, {name: p, kind: run, quiet_check: false, depend: s, do: 'echo'}]\nanalyser: {name: a, "
      "analyse: [{step: s, " +
      files + "}, {step: p, file: {use: k, _: stdout}}]}\n";
  const struct {
    std::string steps, row;
  } cases[] = {
      {own, "4.0,4.0,2,8.0,1.0,2 of 3"},
      // A file without a match has the default: that is what it is for.
      {with_replaced(own, command, none), "0.0,0.0,0,0.0,1.0,2 of 3"},
      {above, "4.0,4.0,2,8.0,"},
      // A glob, and a name with a parameter.
      {with_replaced(own, "_: app.log", "_: '*.log'"), "4.0,4.0,2,8.0,1.0,2 of 3"},
      {with_replaced(own, "_: app.log", "_: '${jube_step_name}.log'"), ",,,,1.0,"},
  };
  for (const auto& one : cases) {
    const Shell shell;
    shell.file("b.yaml", bench(one.steps));
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(has(ran.out, one.row), (one.steps + ran.out + ran.err));
    const std::string table = ran.out.substr(ran.out.find("t,t_avg"));
    shell.sh(
        "rm -r run/000000/00000*_s");  // the journal has the values, and which files were there
    const Ran later = shell.tally("result run");
    CHECK_MESSAGE(has(later.out, table), (one.steps + later.out + later.err));
  }
}

// Statistics over repeats, through the program.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// Two points of which each has `repeats` repeats. Repeat i of point n prints two lines: `first` of
// the repeat, and 1000 more. A training prints one line a step, and only one number of it counts.
std::string own(int repeats, const std::string& columns, const std::string& command = {},
                const std::string& more = {}) {
  const std::string first = R"(v=$(($n * 100 + (7 * $jube_wp_iteration) % 10)); echo rate=$v; )"
                            R"(echo rate=$(($v + 1000)))";
  return "name: b\noutpath: run\n"
         "parameterset: {name: ps, parameter: {name: n, type: int, _: \"1,2\"}}\n"
         "patternset: {name: pt, pattern: [{name: rate, type: float, unit: x/s, _: "
         "\"rate=$jube_pat_fp\"}, {name: half, type: float, mode: python, _: \"$rate / 2\"}]}\n"
         "step: {name: s, kind: run, use: ps, repeat: " +
         std::to_string(repeats) + ", do: '" + (command.empty() ? first : command) +
         "'}\n"
         "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, column: [n, " +
         columns + "]" + more + "}}\n";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  REQUIRE(at != std::string::npos);
  return text.replace(at, what.size(), by);
}

}  // namespace

// The repeats of n = 1 print 100, 107, 104, 101, 108, 105, 102, 109 in this order; those of n = 2
// print 100 more. Expected values: scipy.stats and numpy on these numbers.
TEST_CASE("a sample is one repeat of one point") {
  const Shell shell;
  shell.file("b.yaml",
             own(8,
                 "rate, {_: rate, title: m, statistic: median}, {_: rate_max, statistic: mean}, "
                 "rate_cnt, {_: half, title: h, statistic: max}"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out,
                    "n,rate[x/s],m,rate_max[x/s],rate_cnt,h,repeats\n"
                    "1,100.0,104.5,1104.5,16,54.5,8 of 8\n"
                    "2,200.0,204.5,1204.5,16,104.5,8 of 8\n"),
                (ran.out + ran.err));
}

TEST_CASE("suffixes are statistics of repeats, and may be used like any name") {
  const Shell shell;
  shell.file("b.yaml", own(8,
                           "rate_n, rate_median, rate_mad, {_: rate_cv, format: .6f}, rate_p05, "
                           "rate_p95, rate_ci_low, rate_ci_high, rate_outliers, {_: twice, "
                           "expression: \"2 * rate_ci_low\"}",
                           {},
                           ", filter: \"rate_median > 150\", reference: {column: rate_median, "
                           "_: \"== 204.5\"}"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.out, "2,8,204.5,3.0,0.016323,200.35,208.65,200.0,209.0,0,400.0\n"),
                ran.out);
  CHECK(!has(ran.out, "1,8"));
}

TEST_CASE(
    "a mean has no digits that only computing it made; a printed value keeps all of its own") {
  const Shell shell;
  // Python: (0.1 + 0.2) / 2 is 0.15000000000000002.
  shell.file("b.yaml", own(2, "rate_median, rate_p05, {_: rate, title: m, statistic: mean}",
                           "case $n$jube_wp_iteration in 10) v=0.1;; 11) v=0.2;; "
                           "*) v=0.30000000000000004;; esac; echo rate=$v"));
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(has(ran.out,
                    "1,0.15,0.105,0.15,2 of 2\n"
                    "2,0.30000000000000004,0.30000000000000004,0.30000000000000004,2 of 2\n"),
                (ran.out + ran.err));
}

TEST_CASE("uncertainty adds columns, and says what is no interval") {
  const Shell shell;
  shell.file("b.yaml", own(8,
                           "{_: rate, uncertainty: ci}, {_: rate, title: mean, statistic: mean, "
                           "uncertainty: mad}, {_: half, uncertainty: range}"));
  Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out,
                    "n,rate[x/s],rate_ci_low,rate_ci_high,mean,mean mad,half,half_min,half_max,"
                    "repeats\n1,104.5,100.0,109.0,104.5,3.0,52.25,50.0,54.5,8 of 8\n"),
                (ran.out + ran.err));
  CHECK(!has(ran.err, "fewer than"));
  shell.file("b.yaml", own(3, "{_: rate, uncertainty: ci}"));
  ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "1,104.0,100.0,107.0,3 of 3\n"), ran.out);
  CHECK_MESSAGE(has(ran.err,
                    "note: t: 'rate': fewer than 6 repeats in rows 1, 2: ci_low and ci_high are "
                    "the smallest and the largest value, not a 95 % interval\n"),
                ran.err);
}

TEST_CASE("the bootstrap of a mean is the same each time") {
  const Shell shell;
  shell.file("b.yaml", own(8, "{_: rate, statistic: mean, uncertainty: ci}"));
  const Ran ran = shell.tally("run b.yaml");
  const std::string again = shell.tally("result run").out;
  CHECK_MESSAGE(has(ran.out, again), again);
  // scipy.stats.bootstrap, percentile, three seeds: 102.375 to 106.625.
  CHECK_MESSAGE(has(again, "1,104.5,102.375,106.625,8 of 8\n"), again);
}

TEST_CASE("failed repeats are counted, and are not in the sample") {
  const Shell shell;
  shell.file("b.yaml", own(4, "{_: rate, statistic: max}, rate_n",
                           "echo rate=$jube_wp_iteration; "
                           "test $jube_wp_iteration -ne 3"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "1,2.0,3,3 of 4"), ran.out);
}

TEST_CASE("outliers are reported and not dropped; a slow first repeat is told apart") {
  const Shell shell;
  const std::string odd =
      "echo rate=$(($jube_wp_iteration == ODD ? 900 : 100 + "
      "$jube_wp_iteration))";
  for (const bool first : {true, false}) {
    std::string command = odd;
    command.replace(command.find("ODD"), 3, first ? "0" : "4");
    shell.file("b.yaml", own(6, "{_: rate, statistic: max}, rate_outliers", command));
    const Ran ran = shell.tally("run b.yaml");
    CHECK(ran.code == 0);
    CHECK_MESSAGE(has(ran.out, "1,900.0,1,6 of 6\n"), ran.out);
    CHECK_MESSAGE(has(ran.err, first ? "note: t: row 1: 'rate': the first repeat (900) is far "
                                       "from the median (103.5): the machine may need a warm-up\n"
                                     : "note: t: row 1: 'rate' has 1 outlier in 6 repeats (900; "
                                       "the median is 102.5); they count in the row\n"),
                  ran.err);
  }
}

TEST_CASE("a note about a number rounds it as its column does") {
  const Shell shell;
  shell.file("b.yaml",
             own(6, "{_: rate, statistic: max, format: .1f}",
                 "echo rate=$(($jube_wp_iteration == 0 ? 900 : 100 + $jube_wp_iteration)).123456"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.err, "'rate': the first repeat (900.1) is far from the median (103.6): "),
                ran.err);
}

TEST_CASE("references, filters and sorting use the statistic that is shown") {
  const Shell shell;
  shell.file("b.yaml", own(8,
                           "{_: rate, title: Rate, statistic: median, reference: \"<= 150\"}, {_: "
                           "per, expression: \"rate / n\"}, {_: rate, title: speedup, relative_to: "
                           "{n: 1}, statistic: median, format: .4f}",
                           {}, ", filter: \"rate != 100\", sort: rate"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 5);
  CHECK_MESSAGE(has(ran.out,
                    "n,Rate,per,speedup,repeats\n1,104.5,104.5,1.0000,8 of 8\n"
                    "2,204.5,102.25,1.9569,8 of 8\n"),
                (ran.out + ran.err));
  CHECK_MESSAGE(
      has(ran.err, "row 2 (n=2): rate median is 204.5; expected <= 150, missed by 36.3 %\n"),
      ran.err);
}

TEST_CASE("an expression's statistic is computed from each repeat") {
  const Shell shell;
  shell.file("b.yaml", own(3, "{_: r, expression: \"(rate - 100 * n) ** 2\", statistic: median}"));
  const Ran ran = shell.tally("run b.yaml");  // of 0, 49, 16
  CHECK_MESSAGE(has(ran.out, "1,16.0,3 of 3\n2,16.0,3 of 3\n"), (ran.out + ran.err));
}

TEST_CASE("a statistic of something else is refused before anything runs") {
  const Shell shell;
  const auto refused = [&](const std::string& column, const std::string& why) {
    shell.file("b.yaml", own(2, column));
    const Ran ran = shell.tally("run b.yaml");
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, why), ran.err);
    CHECK(shell.sh("test -e run").code != 0);
  };
  refused("{_: n, title: m, statistic: median}", "column 'n' is not a pattern");
  refused("{_: rate, statistic: max, uncertainty: ci}", "only the median and the mean have");
  refused("{_: rate, statistic: middle}", "middle");
  refused("{_: rate, uncertainty: ci, relative_to: {n: 1}}", "has no uncertainty");
}

TEST_CASE("in JUBE's files the new suffixes are no names") {  // JUBE 2.7.1: an empty column
  const Shell shell;
  std::string text = own(1, "rate, rate_median");
  text.replace(text.find(", repeat: 1"), 11, "");
  text.replace(text.find("kind: run, "), 11, "");
  shell.file("b.yaml", text);
  const Ran ran = shell.tally("run -r b.yaml");
  CHECK_MESSAGE(has(ran.out, "n,rate[x/s],rate_median\n1,100.0,\n"), (ran.out + ran.err));
}

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
      {replaced(own, command, none), "0.0,0.0,0,0.0,1.0,2 of 3"},
      {above, "4.0,4.0,2,8.0,"},
      // A glob, and a name with a parameter.
      {replaced(own, "_: app.log", "_: '*.log'"), "4.0,4.0,2,8.0,1.0,2 of 3"},
      {replaced(own, "_: app.log", "_: '${jube_step_name}.log'"), ",,,,1.0,"},
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

// Tables of repeats: statistics, their uncertainty, outliers and what is refused.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/report/printed_tables.h"

using tally::testing::has;
using tally::testing::printed_tables;
using tally::testing::Ran;

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

}  // namespace

// The repeats of n = 1 print 100, 107, 104, 101, 108, 105, 102, 109 in this order; those of n = 2
// print 100 more. Expected values: scipy.stats and numpy on these numbers.
TEST_CASE("a sample is one repeat of one point") {
  std::string workflow;
  workflow = own(8,
                 "rate, {_: rate, title: m, statistic: median}, {_: rate_max, statistic: mean}, "
                 "rate_cnt, {_: half, title: h, statistic: max}");
  const Ran ran = printed_tables(workflow);
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out,
                    "n,rate[x/s],m,rate_max[x/s],rate_cnt,h,repeats\n"
                    "1,100.0,104.5,1104.5,16,54.5,8 of 8\n"
                    "2,200.0,204.5,1204.5,16,104.5,8 of 8\n"),
                (ran.out + ran.err));
}

TEST_CASE("suffixes are statistics of repeats, and may be used like any name") {
  std::string workflow;
  workflow = own(8,
                 "rate_n, rate_median, rate_mad, {_: rate_cv, format: .6f}, rate_p05, "
                 "rate_p95, rate_ci_low, rate_ci_high, rate_outliers, {_: twice, "
                 "expression: \"2 * rate_ci_low\"}",
                 {},
                 ", filter: \"rate_median > 150\", reference: {column: rate_median, "
                 "_: \"== 204.5\"}");
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.out, "2,8,204.5,3.0,0.016323,200.35,208.65,200.0,209.0,0,400.0\n"),
                ran.out);
  CHECK(!has(ran.out, "1,8"));
}

TEST_CASE(
    "a mean has no digits that only computing it made; a printed value keeps all of its own") {
  std::string workflow;
  // Python: (0.1 + 0.2) / 2 is 0.15000000000000002.
  workflow = own(2, "rate_median, rate_p05, {_: rate, title: m, statistic: mean}",
                 "case $n$jube_wp_iteration in 10) v=0.1;; 11) v=0.2;; "
                 "*) v=0.30000000000000004;; esac; echo rate=$v");
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out,
                    "1,0.15,0.105,0.15,2 of 2\n"
                    "2,0.30000000000000004,0.30000000000000004,0.30000000000000004,2 of 2\n"),
                (ran.out + ran.err));
}

TEST_CASE("uncertainty adds columns, and says what is no interval") {
  std::string workflow;
  workflow = own(8,
                 "{_: rate, uncertainty: ci}, {_: rate, title: mean, statistic: mean, "
                 "uncertainty: mad}, {_: half, uncertainty: range}");
  Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out,
                    "n,rate[x/s],rate_ci_low,rate_ci_high,mean,mean mad,half,half_min,half_max,"
                    "repeats\n1,104.5,100.0,109.0,104.5,3.0,52.25,50.0,54.5,8 of 8\n"),
                (ran.out + ran.err));
  CHECK(!has(ran.err, "fewer than"));
  workflow = own(3, "{_: rate, uncertainty: ci}");
  ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "1,104.0,100.0,107.0,3 of 3\n"), ran.out);
  CHECK_MESSAGE(has(ran.err,
                    "note: t: 'rate': fewer than 6 repeats in rows 1, 2: ci_low and ci_high are "
                    "the smallest and the largest value, not a 95 % interval\n"),
                ran.err);
}

TEST_CASE("the bootstrap of a mean is the same each time") {
  std::string workflow;
  workflow = own(8, "{_: rate, statistic: mean, uncertainty: ci}");
  const Ran ran = printed_tables(workflow);
  const std::string again = printed_tables(workflow).out;
  CHECK_MESSAGE(has(ran.out, again), again);
  // scipy.stats.bootstrap, percentile, three seeds: 102.375 to 106.625.
  CHECK_MESSAGE(has(again, "1,104.5,102.375,106.625,8 of 8\n"), again);
}

TEST_CASE("failed repeats are counted, and are not in the sample") {
  std::string workflow;
  workflow = own(4, "{_: rate, statistic: max}, rate_n",
                 "echo rate=$jube_wp_iteration; "
                 "test $jube_wp_iteration -ne 3");
  const Ran ran = printed_tables(workflow);
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "1,2.0,3,3 of 4"), ran.out);
}

TEST_CASE("the repeats of ratios are those of what they are made of") {
  for (const char* columns :
       {"{_: rate, title: r, statistic: median, relative_to: {n: 1}}",
        "{_: rate, title: r, statistic: max, relative_to: {n: 1}}, {_: half, title: h, statistic: "
        "mean, relative_to: {n: 2}}"}) {
    CAPTURE(columns);
    const Ran ran = printed_tables(own(3, columns,
                                       "echo rate=$n$jube_wp_iteration; test "
                                       "$n$jube_wp_iteration -ne 21"));
    CHECK_MESSAGE(has(ran.out, ",repeats"), ran.out);
    CHECK_MESSAGE(has(ran.out, ",3 of 3\n2,"), ran.out);
    CHECK_MESSAGE(has(ran.out, ",2 of 3\n"), ran.out);
  }
}

TEST_CASE("outliers are reported and not dropped; a slow first repeat is told apart") {
  std::string workflow;
  const std::string odd =
      "echo rate=$(($jube_wp_iteration == ODD ? 900 : 100 + "
      "$jube_wp_iteration))";
  for (const bool first : {true, false}) {
    std::string command = odd;
    command.replace(command.find("ODD"), 3, first ? "0" : "4");
    workflow = own(6, "{_: rate, statistic: max}, rate_outliers", command);
    const Ran ran = printed_tables(workflow);
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
  std::string workflow;
  workflow = own(6, "{_: rate, statistic: max, format: .1f}",
                 "echo rate=$(($jube_wp_iteration == 0 ? 900 : 100 + $jube_wp_iteration)).123456");
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.err, "'rate': the first repeat (900.1) is far from the median (103.6): "),
                ran.err);
}

TEST_CASE("references, filters and sorting use the statistic that is shown") {
  std::string workflow;
  workflow = own(8,
                 "{_: rate, title: Rate, statistic: median, reference: \"<= 150\"}, {_: "
                 "per, expression: \"rate / n\"}, {_: rate, title: speedup, relative_to: "
                 "{n: 1}, statistic: median, format: .4f}",
                 {}, ", filter: \"rate != 100\", sort: rate");
  const Ran ran = printed_tables(workflow);
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
  std::string workflow;
  workflow = own(3, "{_: r, expression: \"(rate - 100 * n) ** 2\", statistic: median}");
  const Ran ran = printed_tables(workflow);  // of 0, 49, 16
  CHECK_MESSAGE(has(ran.out, "1,16.0,3 of 3\n2,16.0,3 of 3\n"), (ran.out + ran.err));
}

TEST_CASE("a statistic of something else is refused before anything runs") {
  std::string workflow;
  const auto refused = [&](const std::string& column, const std::string& why) {
    workflow = own(2, column);
    const Ran ran = printed_tables(workflow);
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, why), ran.err);
  };
  refused("{_: n, title: m, statistic: median}", "column 'n' is not a pattern");
  refused("{_: rate, statistic: max, uncertainty: ci}", "only the median and the mean have");
  refused("{_: rate, statistic: middle}", "middle");
  refused("{_: rate, uncertainty: ci, relative_to: {n: 1}}", "has no uncertainty");
}

TEST_CASE("in JUBE's files the new suffixes are no names") {  // JUBE 2.7.1: an empty column
  std::string workflow;
  std::string text = own(1, "rate, rate_median");
  text.replace(text.find(", repeat: 1"), 11, "");
  text.replace(text.find("kind: run, "), 11, "");
  workflow = text;
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "n,rate[x/s],rate_median\n1,100.0,\n"), (ran.out + ran.err));
}

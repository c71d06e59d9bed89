// Tables of values: which are missing, what expressions, filters, references and baselines make of them.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/report/printed_tables.h"
#include "tests/support/workflows.h"

using tally::testing::has;
using tally::testing::middle_fails;
using tally::testing::printed_tables;
using tally::testing::Ran;
using tally::testing::with_replaced;

namespace {

// A run of two points whose `amp` is a text; `table` is the inside of the table.
std::string flags(const std::string& values, const std::string& table) {
  return "name: b\noutpath: run\n"
         "parameterset: {name: ps, parameter: {name: amp, _: " +
         values +
         "}}\n"
         "step: {name: s, kind: run, quiet_check: false, use: ps, do: echo v=7}\n"
         "patternset: {name: pt, pattern: {name: v, type: int, _: 'v=$jube_pat_int'}}\n"
         "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: csv, " +
         table + "}}\n";
}

std::string metrics(const std::string& text) {
  return "name: b\nparameters: {nodes: [1, 2, 4]}\nrun: 'echo \"time = $(( 8 / $nodes ))\"'\n"
         "metrics:\n" +
         text;
}

std::string speedup(const std::string& definition) {
  return metrics("  time: 'time = $jube_pat_fp'\n  speedup: " + definition + "\n");
}

}  // namespace

TEST_CASE("a column `status`, and iterations of which some failed") {
  std::string workflow;
  workflow = with_replaced(
      with_replaced(middle_fails(), "column: [n, rate]", "column: [rate_avg, rate_cnt, status]"),
      "_: \"1,2,4\"", "_: \"$jube_wp_iteration\"");
  workflow = with_replaced(workflow, "use: ps", "use: ps, iterations: 4");
  Ran ran = printed_tables(workflow);
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "rate_avg,rate_cnt,status\n1.8333333333333333,3,done\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "; it is left out of the row\n"), ran.err);
}

TEST_CASE("a text of an expression ends where Python ends it") {
  std::string workflow;
  const struct {
    const char *expression, *value;
  } cases[] = {
      {R"("it\\'s" if n > 1 else 'no')", "it\\'s"},
      {R"('it\'s' if n > 1 else 'no')", "it's"},
      {R"("n 'n" + str(n))", "n 'n2"},
      {R"('''n'n''' + str(n))", "n'n2"},
      {R"(r'\n' + '$n')", "\\n2"},
      {R"('a $n')", "a 2"},
  };
  for (const auto& [expression, value] : cases) {
    CAPTURE(std::string(expression));
    workflow = std::string(
                   "name: b\noutpath: run\nparameterset: {name: p, parameter: {name: n, type: "
                   "int, _: '2'}}\nstep: {name: s, use: p, do: echo v=$n}\n"
                   "patternset: {name: o, pattern: {name: v, _: 'v=(\\d)'}}\n"
                   "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
                   "result:\n  use: a\n  table:\n    name: t\n    style: csv\n    column:\n"
                   "      - v\n      - _: x\n        expression: |-\n          ") +
               expression + "\n";
    const Ran ran = printed_tables(workflow);
    CHECK_MESSAGE(has(ran.out, std::string("\n2,") + value + "\n"), (ran.out + ran.err));
  }
}

TEST_CASE("a pattern that matches nothing is said once, with its place") {
  std::string workflow;
  const std::string text = with_replaced(middle_fails(), "rate=$jube_pat_fp", "speed=$jube_pat_fp");
  workflow = with_replaced(text, "; test $n -ne 2", "");
  Ran ran = printed_tables(workflow);
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err,
                    "b.yaml:4:62: error: pattern 'rate' matched nothing in 3 of 3 workpackages "
                    "(0, 1, 2); searched: stdout\n"),
                ran.err);
  CHECK(ran.err.find("matched nothing") == ran.err.rfind("matched nothing"));
  CHECK_MESSAGE(has(ran.err, "note: t: 'rate' has no value in 3 of 3 rows: rows 1, 2, 3\n"),
                ran.err);
  // With a reference it is a gate.
  workflow =
      with_replaced(workflow, "column: [n, rate]", "column: [n, {_: rate, reference: \"> 1\"}]");
  ran = printed_tables(workflow);
  CHECK(ran.code == 5);
  CHECK_MESSAGE(has(ran.err, "row 1 (n=1): there is no value of 'rate' to compare; expected > 1\n"),
                ran.err);
}

TEST_CASE("a row whose only value is missing stays in the table, and in its reference") {
  std::string workflow;
  workflow = with_replaced(with_replaced(middle_fails(", reference: {column: rate, _: \"> 1\"}"),
                                         "column: [n, rate]", "column: rate"),
                           "echo rate=$n.5; test $n -ne 2", "test $n -eq 2 || echo rate=$n.5");
  const Ran ran = printed_tables(workflow);
  CHECK(ran.code == 5);
  CHECK_MESSAGE(has(ran.out, "rate\n1.5\n\n4.5\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "reference missed: t: row 2: there is no value of 'rate' to compare"),
                ran.err);
}

TEST_CASE("null_value stands for a value that could not be computed") {
  std::string workflow;
  workflow =
      "name: b\noutpath: run\nparameterset: {name: ps, parameter: {name: n, _: \"1,2\"}}\n"
      "patternset: {name: pt, pattern: [{name: t, type: float, _: \"t=$jube_pat_fp\"}, "
      "{name: rate, type: float, mode: python, _: 8 / $t}]}\n"
      "step: {name: s, kind: run, use: ps, do: \"test $n = 1 || echo t=4.0\"}\n"
      "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [n, {_: rate, format: .1f, "
      "null_value: '-'}, {_: rate, title: plain}]}}\n";
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "n,rate,plain\n1,-,nan\n2,2.0,2.0\n"), (ran.out + ran.err));
}

TEST_CASE("a filter hides neither failed rows nor missing values of a reference") {
  std::string workflow;
  // n=1 prints its rate, n=2 fails without one, n=4 ends well without one.
  const auto bench = [](const std::string& table) {
    return with_replaced(middle_fails(table), "echo rate=$n.5; test $n -ne 2",
                         "test $n != 1 || echo rate=$n.5; test $n != 2");
  };
  workflow = bench(", style: csv, filter: \"rate > 0\"");
  Ran ran = printed_tables(workflow);
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "n,rate,status\n1,1.5,done\n2,,FAILED\n"), ran.out);
  CHECK(!has(ran.out, "\n4,"));
  CHECK_MESSAGE(has(ran.err,
                    "note: t: 1 of 3 rows is left out because it has no value for the filter "
                    "\"rate > 0\"\n"),
                ran.err);
  workflow = bench(
      ", style: csv, filter: \"rate > 0\", reference: {column: rate, _: \"> "
      "0\", where: \"n != 2\"}");
  ran = printed_tables(workflow);
  CHECK(ran.code == 5);
  CHECK_MESSAGE(has(ran.err, "(n=4): there is no value of 'rate' to compare"), ran.err);
  // A filter over parameters chooses as ever.
  workflow = bench(", style: csv, filter: \"n < 2\"");
  ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "n,rate\n1,1.5\n"), ran.out);
}

TEST_CASE("relative_to: the baseline row is of the same parameters, analyser and iteration") {
  std::string workflow;
  const std::string tail =
      "result: {use: a, table: {name: t, style: csv, column: [size, prec, {_: rate, title: "
      "speedup, "
      "relative_to: {prec: a}}]}}\n";
  workflow =
      "name: b\noutpath: run\n"
      "parameterset: {name: p, parameter: [{name: base, _: \"4\"}, {name: size, _: "
      "\"$base,100\"}, {name: twice, type: int, mode: python, _: \"2 * $base\"}, {name: prec, "
      "_: \"a,b\"}]}\n"
      "step: {name: s, kind: run, use: p, do: 'echo rate=$size.5'}\n"
      "patternset: {name: o, pattern: {name: rate, type: float, _: 'rate=$jube_pat_fp'}}\n"
      "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n" +
      tail;
  Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "4,a,1.0\n4,b,1.0\n100,a,1.0\n100,b,1.0\n"), ran.out);

  const auto bench = [](const std::string& reduce) {
    return "name: b\noutpath: run\n"
           "parameterset: {name: p, parameter: {name: n, type: int, _: \"1,2\"}}\n"
           "step:\n - {name: s, kind: run, use: p, repeat: 2, do: 'echo v=$n$jube_wp_iteration'}\n"
           " - {name: r, kind: run, use: p, repeat: 2, do: 'echo v=$((100 * $n))'}\n"
           "patternset: {name: o, pattern: {name: v, type: float, _: 'v=$jube_pat_fp'}}\n"
           "analyser:\n - {name: a, reduce: " +
           reduce +
           ", use: o, analyse: {step: s, file: stdout}}\n"
           " - {name: b, use: o, analyse: {step: r, file: stdout}}\n"
           "result: {use: [a, b], table: {name: t, style: csv, sort: n, column: [n, {_: v, title: "
           "rel, relative_to: {n: 1}}]}}\n";
  };
  // 20 / 10, 21 / 11, 200 / 100
  workflow = bench("false");
  ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "n,rel\n1,1.0\n1,1.0\n1,1.0\n2,2.0\n2,1.9090909090909092\n2,2.0\n"),
                ran.out);
}

TEST_CASE("a missing value of a step is not that of the step before") {
  std::string workflow;
  workflow =
      "name: b\noutpath: run\n"
      "parameterset: {name: p, parameter: {name: n, type: int, _: \"1,2\"}}\n"
      "step:\n - {name: a, kind: run, use: p, do: 'echo rate=$n.1; echo u=$n'}\n"
      " - {name: b, kind: run, depend: a, do: 'test $n = 1 || echo rate=$n.2'}\n"
      "patternset: {name: o, pattern: [{name: rate, type: float, _: 'rate=$jube_pat_fp'}, "
      "{name: u, type: int, _: 'u=$jube_pat_int'}]}\n"
      "analyser: {name: a, use: o, analyse: [{step: a, file: stdout}, {step: b, file: "
      "stdout}]}\n"
      "result: {use: a, table: {name: t, style: csv, column: [n, u, rate, {_: rate, title: m, "
      "statistic: median}]}}\n";
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "1,1,,,0 of 1\n2,2,2.2,2.2,1 of 1\n"), ran.out);
}

TEST_CASE("a text that an expression gives stays a text") {
  std::string workflow;
  workflow =
      "name: b\noutpath: run\n"
      "parameterset: {name: ps, parameter: [{name: version, _: '1.10'}, {name: n, type: "
      "int, _: '7'}]}\n"
      "step: {name: s, kind: run, use: ps, do: 'echo commit=12345e6789ab label=007'}\n"
      "patternset: {name: pt, pattern: [{name: commit, _: 'commit=(\\S+)'}, {name: label, "
      "_: 'label=(\\S+)'}]}\n"
      "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, column: [{_: short, expression: 'commit[:7]'}, "
      "{_: v, expression: version}, {_: l, expression: '\"$label\"'}, {_: half, expression: "
      "n / 2}, {_: many, expression: n * 1234567890123456789}, {_: more, expression: n > "
      "3}], reference: {column: short, _: \"x == '12345e6'\"}}}\n";
  const Ran ran = printed_tables(workflow);
  CHECK(ran.code == 0);
  CHECK_MESSAGE(
      has(ran.out, "short,v,l,half,many,more\n12345e6,1.10,007,3.5,8641975230864197523,True\n"),
      ran.out);
}

TEST_CASE("a text that says true or false is neither in an expression, which is said") {
  std::string workflow;
  const std::string words =
      "'amp' is the text 'false', which is neither True nor False: write amp == 'false'";
  for (const char* table :
       {"column: [amp, {_: x, expression: '1 if amp else 0'}]",
        "column: [amp, {_: x, expression: 'not amp'}]",
        "column: [amp, {_: x, expression: 'bool(amp)'}]",
        "column: [amp, {_: x, expression: 'amp == True'}]",
        "column: [amp, {_: x, expression: 'True != amp'}]",
        "column: [amp, {_: x, expression: 'amp in (True, False)'}]",
        "column: [amp, v], filter: amp", "column: [amp, v], filter: not amp",
        "column: [amp, v], filter: amp == True", "column: [amp, v], filter: amp and v > 6",
        "column: v, reference: {column: v, _: '> 6', where: amp}",
        "column: v, reference: {column: v, _: 'x > 6 and not amp'}"}) {
    CAPTURE(table);
    workflow = flags("[false, true]", table);
    const Ran ran = printed_tables(workflow);
    CHECK(ran.code != 0);
    CHECK_MESSAGE(has(ran.err, words), ran.err);
  }
  for (const char* value : {"'no'", "'Off'", "'YES'", "'False'"}) {
    workflow = flags(value, "column: [amp, v], filter: amp");
    CHECK(has(printed_tables(workflow).err, "which is neither True nor False"));
  }
  // As texts they are like any other, and have their type.
  workflow = flags("[false, true]",
                   "filter: \"amp != 'true' and amp < 'g' and amp in ('false', 'true')\", column: "
                   "[amp, {_: x, expression: \"type(amp).__name__ + amp + ' ' + amp.upper() + "
                   "f'{amp}' + str(len(amp)) + {'false': 'no'}[amp] + '%s' % amp\"}]");
  Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "\nfalse,strfalse FALSEfalse5nofalse\n"), (ran.out + ran.err));
  CHECK(ran.code == 0);
  workflow = flags("[false, true]", "column: [amp, v], filter: $amp");
  ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "amp,v\ntrue,7\n"), (ran.out + ran.err));
  workflow = flags("[a, '']", "column: [amp, v], filter: amp");
  CHECK(has(printed_tables(workflow).out, "amp,v\na,7\n"));
}

TEST_CASE("names within f'...' are the row's values") {
  std::string workflow;
  workflow = flags("[a, b]",
                   "filter: \"f'{amp}{v}' == 'a7'\", reference: {column: v, _: \"f'{x:03}' == "
                   "'007'\", where: \"f'{amp!r}' != 'c'\"}, column: [amp, v, {_: str, title: s, "
                   "expression: \"f'<{amp:>{v}}> {v + 1} {{v}}'\"}]");
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.out, "\na,7,<      a> 8 {v}\n"), (ran.out + ran.err));
}

TEST_CASE("references: the column may have a name that conditions use") {
  std::string workflow;
  for (const std::string name : {"x", "id", "status", "v"}) {
    CAPTURE(name);
    for (const auto& [condition, code] : {std::pair{"> 5", 0}, {"> 9", 5}, {"x > 5", 0}}) {
      workflow =
          "name: b\noutpath: run\n"
          "patternset: {name: o, pattern: {name: " +
          name +
          ", type: int, _: 'v=(\\d+)'}}\n"
          "step: {name: s, do: echo v=7}\n"
          "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
          "result: {use: a, table: {name: t, style: csv, column: [{_: " +
          name + ", reference: '" + condition + "'}]}}\n";
      const Ran ran = printed_tables(workflow);
      CHECK_MESSAGE(ran.code == code, (ran.out + ran.err));
    }
  }
}

TEST_CASE("references: nan is no value, and a condition must be one") {
  std::string workflow;
  const auto bench = [](const std::string& rate, const std::string& condition) {
    return "name: b\noutpath: run\n"
           "step: {name: s, kind: run, do: echo rate=" +
           rate +
           "}\n"
           "patternset: {name: pt, pattern: {name: rate, type: float, _: 'rate=(\\S+)'}}\n"
           "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
           "result: {use: a, table: {name: t, column: [{_: rate, reference: \"" +
           condition + "\"}]}}\n";
  };
  for (const char* condition : {"!= 0", "not x > 5", "rate != 3"}) {
    workflow = bench("nan", condition);
    const Ran ran = printed_tables(workflow);
    CHECK(ran.code == 5);
    CHECK_MESSAGE(has(ran.err, "row 1: rate is nan, which is no value; expected "), ran.err);
  }
  for (const char* condition : {"(10, 20)", "10 < 20", "rate"}) {
    workflow = bench("7", condition);
    const Ran ran = printed_tables(workflow);
    // Found before the run.
    const bool uses_value = std::string(condition) == "rate";
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, "b.yaml:6:"), ran.err);
    CHECK_MESSAGE(
        has(ran.err, uses_value ? "it is neither true nor false" : "it uses no value of the row"),
        ran.err);
  }
  for (const char* condition : {"7", "5 .. 8", "7 +- 5%", "x > 5", "'$rate' == '7.0'"}) {
    workflow = bench("7", condition);
    CHECK_MESSAGE(printed_tables(workflow).code == 0, condition);
  }
}

TEST_CASE("a baseline row without a value is called so") {
  std::string workflow;
  workflow = speedup("{expression: time / (nodes - 1), relative_to: {nodes: 1}}");
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.err, "'speedup' is empty: its baseline row, with nodes=1, has no value\n"),
                ran.err);
}

TEST_CASE("a baseline of nan is no value, and inf divides no inf") {
  const auto table = [](const std::string& first, const std::string& second,
                        const std::string& column) {
    return printed_tables(
        "name: b\noutpath: run\n"
        "parameterset: {name: p, parameter: {name: a, type: int, _: \"0,1\"}}\n"
        "patternset: {name: q, pattern: {name: v, type: float, _: 'v=(\\S+)'}}\n"
        "step: {name: s, kind: run, quiet_check: false, use: p, do: 'test $a = 0 && echo v=" +
        first + " || echo v=" + second +
        "'}\nanalyser: {name: an, use: q, analyse: {step: s, file: stdout}}\n"
        "result: {use: an, table: {name: t, style: csv, column: [a, " +
        column + "]}}\n");
  };
  const std::string none = "its baseline row, with a=0, has no value\n";
  for (const char* column :
       {"{_: v, title: r, relative_to: {a: 0}}", "{_: r, expression: v * 2, relative_to: {a: 0}}",
        "{_: r, expression: v / baseline.v, relative_to: {a: 0}}"}) {
    CAPTURE(column);
    Ran ran = table("nan", "2", column);
    CHECK_MESSAGE(has(ran.out, "\n1,\n"), (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, "'r' is empty: " + none), ran.err);
    ran = table("4", "2", column);
    CHECK_MESSAGE(has(ran.out, "\n1,0.5\n"), (ran.out + ran.err));
    CHECK_MESSAGE(!has(ran.err, "is empty"), ran.err);
  }
  const char* const plain = "{_: v, title: r, relative_to: {a: 0}}";
  Ran ran = table("inf", "inf", plain);
  CHECK_MESSAGE(has(ran.out, "0,\n1,\n"), (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.err, "has the value inf, by which inf cannot be divided"), ran.err);
  ran = table("0", "2", plain);
  CHECK_MESSAGE(has(ran.err, "has the value 0, by which nothing can be divided"), ran.err);
  CHECK_MESSAGE(has(table("inf", "2", plain).out, "\n1,0.0\n"), ran.out);
}

TEST_CASE("a ratio to a row of a disturbed machine is marked as that row is") {
  const auto shown = [](const std::string& columns, const std::string& keys = "") {
    return printed_tables(
        "name: b\nparameterset: {name: p, parameter: {name: n, type: int, _: '1,2,3'}}\n"
        "patternset: {name: q, pattern: {name: v, type: float, _: 'v=(\\S+)'}}\n"
        "step: {name: s, kind: run, use: p, " +
        keys +
        "do: 'case $n in 1) touch busy;; 3) touch throttled;; esac; echo v=$n'}\n"
        "analyser: {name: a, use: q, analyse: {step: s, file: stdout}}\n"
        "result: {use: a, table: {name: t, style: csv, filter: n > 1, column: [n, " +
        columns + "]}}\n");
  };
  const char* const busy[] = {"{_: v, title: r, relative_to: {n: 1}}",
                              "{_: r, expression: v * 2, relative_to: {n: 1}}",
                              "{_: r, expression: v / baseline.v, relative_to: {n: 1}}"};
  for (const char* column : busy) {
    CAPTURE(column);
    const Ran ran = shown(column);
    CHECK_MESSAGE(has(ran.out, "n,r,machine\n2,2.0,BUSY\n3,3.0,BUSY THROTTLED\n"), ran.out);
    CHECK_MESSAGE(
        has(ran.err,
            "rows 1, 2 BUSY: other programs used up to 1.5 cores of this machine during the "
            "measurement of its baseline row; measure again on a quiet machine\n"),
        ran.err);
    CHECK_MESSAGE(has(ran.err, "row 2 THROTTLED: the machine was slower"), ran.err);
  }
  Ran ran = shown("{_: v, title: r, relative_to: {n: 3}}");
  CHECK_MESSAGE(has(ran.out, "n,r,machine\n2,0.6666666666666666,THROTTLED\n3,1.0,THROTTLED\n"),
                ran.out);
  CHECK_MESSAGE(has(ran.err,
                    "row 1 THROTTLED: the machine was slower than it should be during the "
                    "measurement of its baseline row: GPU 0: thermal slowdown\n"),
                ran.err);
  CHECK_MESSAGE(has(ran.err,
                    "row 2 THROTTLED: the machine was slower than it should be during the "
                    "measurement: GPU 0: thermal slowdown\n"),
                ran.err);
  // A quiet baseline row, and a column that is relative to none.
  ran = shown("{_: v, title: r, relative_to: {n: 2}}");
  CHECK_MESSAGE(has(ran.out, "n,r,machine\n2,1.0,\n3,1.5,THROTTLED\n"), ran.out);
  ran = shown("v, {_: v, title: r, statistic: median, relative_to: {n: 1}}", "repeat: 2, ");
  CHECK_MESSAGE(has(ran.out, "2,2.0,2.0,2 of 2,BUSY\n"), (ran.out + ran.err));
  ran = shown("v");
  CHECK_MESSAGE(has(ran.out, "n,v,machine\n2,2.0,\n3,3.0,THROTTLED\n"), ran.out);
}

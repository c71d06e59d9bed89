// Values keep their type and their digits from the output of a program to the results.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

TEST_CASE("whole numbers keep their digits, but in JUBE's files") {
  const std::string text =
      "name: b\noutpath: run\n"
      "parameterset: {name: ps, parameter: {name: n, type: int, _: \"9007199254740993\"}}\n"
      "step: {name: s, kind: run, use: ps, do: 'echo \"a=1234567890123456789 "
      "b=99999999999999999999 c=9223372036854775807 d=-9223372036854775808\"'}\n"
      "patternset: {name: pt, pattern: [{name: a, type: int, _: 'a=(\\S+)'}, "
      "{name: b, type: int, _: 'b=(\\S+)'}, {name: c, type: int, _: 'c=(\\S+)'}, "
      "{name: d, type: int, _: 'd=(\\S+)'}]}\n"
      "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, column: [n, a, b, c, d]}}\n";
  const Shell shell;
  shell.file("b.yaml", text);
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out,
                    "\n9007199254740993,1234567890123456789,99999999999999999999,"
                    "9223372036854775807,-9223372036854775808\n"),
                ran.out);
  ran = shell.tally("result run -s json");
  CHECK_MESSAGE(has(ran.out,
                    "{\"n\":9007199254740993,\"a\":1234567890123456789,"
                    "\"b\":\"99999999999999999999\",\"c\":9223372036854775807,"
                    "\"d\":-9223372036854775808}"),
                ran.out);
  // Debian's JUBE 2.5.1 prints these.
  std::string jube = text;
  jube.replace(jube.find("kind: run, "), 11, "");
  jube.replace(jube.find("outpath: run"), 12, "outpath: two");
  shell.file("b.yaml", jube);
  ran = shell.tally("run -r b.yaml");
  CHECK_MESSAGE(
      has(ran.out,
          "\n9007199254740992,1234567890123456768,100000000000000000000,9223372036854775808,"),
      ran.out);
}

TEST_CASE("a text that an expression gives stays a text") {
  const Shell shell;
  shell.file("b.yaml",
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
             "3}], reference: {column: short, _: \"x == '12345e6'\"}}}\n");
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(
      has(ran.out, "short,v,l,half,many,more\n12345e6,1.10,007,3.5,8641975230864197523,True\n"),
      ran.out);
}

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

}  // namespace

TEST_CASE("a text that says true or false is neither in an expression, which is said") {
  const Shell shell;
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
    shell.file("b.yaml", flags("[false, true]", table));
    const Ran ran = shell.tally("run b.yaml");
    CHECK(ran.code != 0);
    CHECK_MESSAGE(has(ran.err, words), ran.err);
  }
  for (const char* value : {"'no'", "'Off'", "'YES'", "'False'"}) {
    shell.file("b.yaml", flags(value, "column: [amp, v], filter: amp"));
    CHECK(has(shell.tally("run b.yaml").err, "which is neither True nor False"));
  }
  // As texts they are like any other, and have their type.
  shell.file("b.yaml",
             flags("[false, true]",
                   "filter: \"amp != 'true' and amp < 'g' and amp in ('false', 'true')\", column: "
                   "[amp, {_: x, expression: \"type(amp).__name__ + amp + ' ' + amp.upper() + "
                   "f'{amp}' + str(len(amp)) + {'false': 'no'}[amp] + '%s' % amp\"}]"));
  Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "\nfalse,strfalse FALSEfalse5nofalse\n"), (ran.out + ran.err));
  CHECK(ran.code == 0);
  shell.file("b.yaml", flags("[false, true]", "column: [amp, v], filter: $amp"));
  ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "\namp,v\ntrue,7\n"), (ran.out + ran.err));
  shell.file("b.yaml", flags("[a, '']", "column: [amp, v], filter: amp"));
  CHECK(has(shell.tally("run b.yaml").out, "\namp,v\na,7\n"));
}

TEST_CASE("names within f'...' are the row's values") {
  const Shell shell;
  shell.file("b.yaml",
             flags("[a, b]",
                   "filter: \"f'{amp}{v}' == 'a7'\", reference: {column: v, _: \"f'{x:03}' == "
                   "'007'\", where: \"f'{amp!r}' != 'c'\"}, column: [amp, v, {_: str, title: s, "
                   "expression: \"f'<{amp:>{v}}> {v + 1} {{v}}'\"}]"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.out, "\na,7,<      a> 8 {v}\n"), (ran.out + ran.err));
}

TEST_CASE("references: the column may have a name that conditions use") {
  for (const std::string name : {"x", "id", "status", "v"}) {
    CAPTURE(name);
    for (const auto& [condition, code] : {std::pair{"> 5", 0}, {"> 9", 5}, {"x > 5", 0}}) {
      const Shell shell;
      shell.file("b.yaml",
                 "name: b\noutpath: run\n"
                 "patternset: {name: o, pattern: {name: " +
                     name +
                     ", type: int, _: 'v=(\\d+)'}}\n"
                     "step: {name: s, do: echo v=7}\n"
                     "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
                     "result: {use: a, table: {name: t, style: csv, column: [{_: " +
                     name + ", reference: '" + condition + "'}]}}\n");
      const Ran ran = shell.tally("run b.yaml -r");
      CHECK_MESSAGE(ran.code == code, (ran.out + ran.err));
    }
  }
}

TEST_CASE("references: nan is no value, and a condition must be one") {
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
    const Shell shell;
    shell.file("b.yaml", bench("nan", condition));
    const Ran ran = shell.tally("run b.yaml");
    CHECK(ran.code == 5);
    CHECK_MESSAGE(has(ran.err, "row 1: rate is nan, which is no value; expected "), ran.err);
  }
  for (const char* condition : {"(10, 20)", "10 < 20", "rate"}) {
    const Shell shell;
    shell.file("b.yaml", bench("7", condition));
    const Ran ran = shell.tally("run b.yaml");
    // Found before the run.
    const bool uses_value = std::string(condition) == "rate";
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, "b.yaml:6:"), ran.err);
    CHECK_MESSAGE(
        has(ran.err, uses_value ? "it is neither true nor false" : "it uses no value of the row"),
        ran.err);
  }
  for (const char* condition : {"7", "5 .. 8", "7 +- 5%", "x > 5", "'$rate' == '7.0'"}) {
    const Shell shell;
    shell.file("b.yaml", bench("7", condition));
    CHECK_MESSAGE(shell.tally("run b.yaml").code == 0, condition);
  }
}

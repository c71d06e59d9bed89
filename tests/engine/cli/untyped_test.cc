// Values without a type in conditions: a text beside texts and a number beside numbers, in results as
// in `where` of a parameter set; and what validate knows of that before anything runs.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// `values`: of the parameter `a`, which has no type. `table`: the rest of the table.
std::string bench(const std::string& values, const std::string& table,
                  const std::string& type = "") {
  return "name: b\noutpath: run\n"
         "parameterset: {name: p, parameter: {name: a, " +
         type + "_: " + values +
         "}}\n"
         "patternset: {name: q, pattern: [{name: v, type: float, _: 'v=(\\S+)'}, {name: w, _: "
         "'v=(\\S+)'}]}\n"
         "step: {name: s, kind: run, quiet_check: false, use: p, do: 'echo v=$a'}\n"
         "analyser: {name: an, use: q, analyse: {step: s, file: stdout}}\n"
         "result: {use: an, table: {name: t, style: csv, " +
         table + "}}\n";
}

struct Row {
  const char* values;
  const char* condition;
  const char* chosen;  // the rows' values of a, divided by commas; or an error
};

// What `where` of a parameter set does with each of them.
const Row kConditions[] = {
    {"[4, 5]", "a == 4", "4"},
    {"[4, 5]", "a != 4", "5"},
    {"[4, 5]", "4 == a", "4"},
    {"[4, 5]", "a in (4, 7)", "4"},
    {"[4, 5]", "a not in [4, 7]", "5"},
    {"[4, 5]", "not a == 4", "5"},
    {"[4, 10]", "a < 9", "4"},
    {"[4, 10]", "3 < a <= 4", "4"},
    {"[4, 10]", "a < '9'", "4,10"},
    {"[4, 5]", "a * 2 == 8", "4"},
    {"[4, 5]", "a % 2", "5"},
    {"[4, 5]", "a == '4'", "4"},
    {"[4, 5]", "str(a) == '4'", "4"},
    {"[4, 5]", "a == 4.0", "4"},
    {"[12.1, 12.10]", "a == '12.10'", "12.10"},
    {"[gpu, 4]", "a == 4", "4"},
    {"[12.10, 5]", "a == 12.1", "the type of 'a' is string"},
    {"['010', 5]", "a == 10", "the type of 'a' is string"},
    {"[0x10, 5]", "a == 16", "the type of 'a' is string"},
    {"[0x10, 5]", "a != 16", "the type of 'a' is string"},
    {"[0X1f, 5]", "a in (31, 4)", "the type of 'a' is string"},
    {"[0o17, 5]", "a == 15", "the type of 'a' is string"},
    {"[0b11, 5]", "a == 3", "the type of 'a' is string"},
    {"['-0x1_0', 5]", "a == -16", "the type of 'a' is string"},
    {"[0x10, 5]", "a > 15", "0x10"},
    {"[0x10, 5]", "a == '0x10'", "0x10"},
    {"[0x10, 5]", "a == 17 or a == 5", "5"},
    {"[0b12, 5]", "a == 5", "5"},
    {"[1e3, 5]", "a == 1000", "the type of 'a' is string"},
    {"[true, 5]", "a == 5", "which is neither True nor False"},
};

// The values of a in the rows of the CSV table that is the last thing printed.
std::string chosen(const std::string& out) {
  std::string rows;
  const size_t head = out.rfind("a,x\n");
  for (size_t at = head == std::string::npos ? head : head + 4; at < out.size();) {
    const size_t end = out.find(',', at);
    if (end == std::string::npos) break;
    rows += (rows.empty() ? "" : ",") + out.substr(at, end - at);
    at = out.find('\n', end) + 1;
  }
  return rows;
}

}  // namespace

TEST_CASE("a parameter without a type is in results what it is in `where` of its set") {
  for (const Row& row : kConditions) {
    CAPTURE(row.values);
    CAPTURE(row.condition);
    const bool error = has(row.chosen, " ");
    const std::string condition = std::string("\"") + row.condition + "\"";
    const Shell shell;
    const std::string columns = "column: [a, {_: v, title: x, null_value: '-'}]";
    std::string text = bench(row.values, columns);
    text.insert(text.find("parameter: {"), "where: " + condition + ", ");
    shell.file("w.yaml", text);
    shell.file("f.yaml", bench(row.values, "filter: " + condition + ", " + columns));
    for (const char* file : {"w.yaml", "f.yaml"}) {
      CAPTURE(file);
      const Ran ran = shell.tally(std::string("-q run ") + file);
      const std::string said = ran.out + ran.err;
      if (error) {
        CHECK_MESSAGE(ran.code != 0, said);
        CHECK_MESSAGE(has(said, row.chosen), said);
      } else {
        CHECK_MESSAGE(chosen(ran.out) == row.chosen, said);
      }
    }
  }
}

TEST_CASE("a value without a type is a number in expressions and references, or an error") {
  const Shell shell;
  shell.file("b.yaml", bench("[4, '010', gpu]",
                             "column: [a, {_: twice, expression: 'a * 2'}, {_: four, expression: "
                             "'a == 4'}, {_: text, expression: a}]"));
  Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(
      has(ran.out, "a,twice,four,text\n4,8,True,4\n010,20,False,010\ngpu,gpugpu,False,gpu\n"),
      (ran.out + ran.err));
  // A pattern without a type is no other.
  shell.file("b.yaml",
             bench("[4, 5]", "filter: 'w == 4', column: [a, {_: more, expression: 'w + 1'}]"));
  ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(has(ran.out, "a,more\n4,5\n"), (ran.out + ran.err));
  // A reference of the rows that `where` means, and of a condition that names the parameter.
  shell.file("b.yaml", bench("[4, 5]",
                             "column: [a, {_: v, reference: {_: '> 4.5', where: 'not a == 4'}}], "
                             "reference: {column: v, _: 'v >= 5 or a == 4'}"));
  ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  shell.file("b.yaml",
             bench("['04', 5]", "column: [a, {_: v, reference: {_: '> 1', where: 'a == 4'}}]"));
  ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(ran.code == 2, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.err, "the type of 'a' is string"), ran.err);
  // JUBE's language has texts there.
  std::string jube = bench("[4, 5]", "filter: \"'$a' == '4' or '$a' == 5\", column: [a, v]");
  jube.replace(jube.find("kind: run, quiet_check: false, "), 31, "");
  jube.replace(jube.find("[4, 5]"), 6, "'4,5'");
  shell.file("j.yaml", jube);
  ran = shell.tally("-q run -r j.yaml");
  CHECK_MESSAGE(has(ran.out, "a,v\n4,4.0\n"), (ran.out + ran.err));
}

TEST_CASE("validate knows which values a condition of numbers and texts can have") {
  struct Reference {
    const char* values;
    const char* reference;
    const char* fault;  // empty: some value may meet it
  };
  const Reference rows[] = {
      {"[4, 5]", "column: w, _: '1 +- 10%'", "the type of 'w' is string"},
      {"[4, 5]", "column: w, _: '1 +- 0.5'", "the type of 'w' is string"},
      {"[4, 5]", "column: w, _: '1 .. 2'", "the type of 'w' is string"},
      {"[4, 5]", "column: v, _: 'x >> 1'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'x + (x > 1)'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: '(v > 0,)'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: '[v > 0]'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'abs(v)'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'round( v, 1 )'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'len(str(v))'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'v if v else 0'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'v - 1 if v > 1 else -v'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: '-v'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: '(v)'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'v or 1'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'v and w'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'v & 1 if v else 1'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'f\"{v}\"'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'f\"{v > 1}: {w}!\"'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'abs(v) > 1'", ""},
      {"[4, 5]", "column: v, _: 'bool(v)'", ""},
      {"[4, 5]", "column: v, _: 'str(v).startswith(\"4\") or v > 4'", ""},
      {"[4, 5]", "column: v, _: 'any(x > n for n in [1, 2])'", ""},
      {"[4, 5]", "column: v, _: '(v > 1) & (v < 9)'", ""},
      {"[4, 5]", "column: v, _: 'v > 1 if v else False'", ""},
      {"[4, 5]", "column: v, _: 'True if v else False'", ""},
      {"[4, 5]", "column: v, _: 'f\"{v}\" != \"0\"'", ""},
      {"[4, 5]", "column: v, _: 'x is not None'", ""},
      {"[4, 5]", "column: v, _: '(lambda y: y > 1)(v)'", ""},
      {"[4, 5]", "column: v, _: 'not v - 9 == 1'", ""},
      // Parameters without a type.
      {"[4, 5]", "column: v, _: '> 1', where: 'a == 4'", ""},
      {"[4, 5]", "column: v, _: '> 1', where: 'a in (4, 7)'", ""},
      {"[4, 5]", "column: v, _: '> 1', where: 'a < 5'", ""},
      {"[4, 5]", "column: v, _: '> 1', where: 'a == \"4\"'", ""},
      {"[4, 5]", "column: v, _: 'v > 1 or a == 9'", ""},
      {"[4, 5]", "column: v, _: '> 1', where: 'a == 6'", "'a' is 4, 5"},
      {"[4, 5]", "column: v, _: '> 1', where: 'a in (6, 7)'", "'a' is 4, 5"},
      {"[4, 5]", "column: v, _: '> 1', where: 'a > 5'", "'a' is 4, 5"},
      {"[4, 5]", "column: v, _: '> 1', where: 'a == \"04\"'", "'a' is 4, 5"},
      {"[4, 0x10]", "column: v, _: '> 1', where: 'a == 16'", "the type of 'a' is string"},
      {"[12.10, 5]", "column: v, _: '> 1', where: 'a == 12.1'", "the type of 'a' is string"},
      {"[cpu, gpu]", "column: v, _: '> 1', where: 'a == 4'", "the type of 'a' is string"},
      {"[cpu, gpu]", "column: v, _: '> 1', where: 'a == \"gpu\"'", ""},
      {"[gpu, 4]", "column: v, _: '> 1', where: 'a == 4'", ""},
  };
  const Shell shell;
  for (const Reference& row : rows) {
    CAPTURE(row.values);
    CAPTURE(row.reference);
    shell.file("b.yaml", bench(row.values, std::string("column: [a, v, w], reference: {") +
                                               row.reference + "}"));
    const Ran ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE(ran.code == (*row.fault == '\0' ? 0 : 2), ran.err);
    CHECK_MESSAGE(has(ran.err, row.fault), ran.err);
  }
}

TEST_CASE("validate finds rules that leave no point, also of values without a type") {
  struct Rule {
    const char* rule;
    const char* fault;  // empty: points are left
  };
  const Rule rules[] = {
      {"a == 6", "leaves"},     {"a > 16", "leaves"}, {"a == 16", "cannot be evaluated"},
      {"a == 5 or a > 99", ""}, {"a == '0x10'", ""},  {"a + 1 == 17", ""},
  };
  const Shell shell;
  for (const Rule& row : rules) {
    CAPTURE(row.rule);
    std::string text = bench("[0x10, 5]", "column: [a, v]");
    text.insert(text.find("parameter: {"), std::string("where: \"") + row.rule + "\", ");
    shell.file("b.yaml", text);
    const Ran ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE((ran.code == 0) == (*row.fault == '\0'), (ran.out + ran.err));
  }
}

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
    {"[1e-4, 5]", "a == 0.0001", "the type of 'a' is string"},
    {"[0X10, 5]", "a == 0x10", "the type of 'a' is string"},
    // The condition has the number in the value's own form.
    {"[1e-4, 3e-4]", "a == 1e-4", "1e-4"},
    {"[0.00001, 0.1]", "a in (0.00001,)", "0.00001"},
    {"[1e6, 5]", "1e6 == a", "1e6"},
    {"[1e6, 5]", "a != 1e6", "5"},
    {"[0x10, 5]", "a == 0x10", "0x10"},
    {"[12.10, 5]", "a == 12.10", "12.10"},
    {"['-1e-4', 6]", "a == -1e-4", "-1e-4"},
    {"['+1e-4', 6]", "not a == +1e-4", "6"},
    {"['+4', 5]", "a == +4", "+4"},
    {"['+4', 5]", "a == + 4 and 1 + 4 == 5", "+4"},
    {"['-0', 5]", "a == -0", "-0"},
    {"[4, 5]", "a == +4", "4"},
    {"[0, 5]", "a == -0", "0"},
    {"['+4', 5]", "a == 4", "the type of 'a' is string"},
    {"[4, 5]", "a in {4}", "or write str(a), or a list"},
    {"[4, 5]", "a in {'4'}", "or write str(a), or a list"},
    {"[4, 5]", "str(a) in {'4'}", "4"},
    {"[1_000, 5]", "a == 1_000 and f'{1}' == '1'", "the type of 'a' is string"},
    {"[1_000, 5]", "a == 1_000", "1_000"},
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
      // A pattern without a type may be a number, too.
      {"[4, 5]", "column: w, _: '1 +- 10%'", ""},
      {"[4, 5]", "column: w, _: '1 .. 2'", ""},
      {"[4, 5]", "column: v, _: 'v > 0 and w >= 4'", ""},
      {"[4, 5]", "column: v, _: '> 1', where: 'w == 5'", ""},
      {"[cpu, gpu]", "column: v, _: 'v > 1 and a >= 4'", "the type of 'a' is string"},
      {"[4, 5]", "column: v, _: 'v > 0,'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'v > 0, a > 1'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: '{v > 0}'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: '{v: True}'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: '{1: v > 0}[1]'", ""},
      {"[4, 5]", "column: v, _: 'lambda: v > 0'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: '(lambda: v > 0)()'", ""},
      {"[4, 5]", "column: v, _: '(y for y in (v, 1))'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: '[y > 1 for y in (v, 1)]'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'max(v, 1)'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'min(abs(v), 1, w)'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'max(v > 1, v > 2)'", ""},
      {"[4, 5]", "column: v, _: 'max(y > 1 for y in (v, 1))'", ""},
      {"[4, 5]", "column: v, _: 'max(v, 1) > 2'", ""},
      {"[4, 5]", "column: v, _: '-(v > 1)'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: '-(v > 1) == -1'", ""},
      {"[4, 5]", "column: v, _: 'not v > \"a\"'", "'v' is a number, and is compared with a text"},
      {"[4, 5]", "column: v, _: 'not not not v <= \"a\"'", "and is compared with a text"},
      {"[4, 5]", "column: v, _: 'not v == \"a\"'", ""},
      // The modules and functions that filters have.
      {"[4, 5]", "column: v, _: 'math.isclose(v, 4) or v > 4'", ""},
      {"[4, 5]", "column: v, _: '> 0', where: 're.match(\"4\", str(a)) is not None'", ""},
      {"[4, 5]", "column: v, _: '> 0', where: 'isinstance(v, float)'", ""},
      {"[4, 5]", "column: v, _: 'math.sqrt(v)'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 're.match(\"4\", str(v))'", "it is neither true nor false"},
      {"[4, 5]", "column: v, _: 'math.sqrt(v) > 1'", ""},
      {"[4, 5]", "column: v, _: 'x < time'", "'time' is not the name of a value"},
      {"[4, 5]", "column: v, _: '> 0', where: 'a < 4 * time'", "'time' is not the name of a value"},
      {"[4, 5]", "column: v, _: '> 1', where: 'a == 0x2'", "'a' is 4, 5"},
      {"[4, 5]", "column: v, _: '> 1', where: 'a > 0o77'", "'a' is 4, 5"},
      {"[4, 0x10]", "column: v, _: '> 1', where: 'a == 0x10'", ""},
      {"[1e-4, 5]", "column: v, _: '> 1', where: 'a == 1e-4'", ""},
      {"[-1e-4, 5]", "column: v, _: '> 1', where: 'a == -1e-4'", ""},
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

TEST_CASE("what computes with a column needs a type, and validate says so in one sentence") {
  struct Use {
    const char* column;   // of the table
    const char* step;     // more keys of the step
    const char* pattern;  // more keys of the pattern v
    const char* fault;    // empty: there is none
  };
  const char* w = "the type of pattern 'w' is string, and ";
  const Use uses[] = {
      {"{_: w, statistic: median}", "", "", "a statistic needs numbers"},
      {"{_: w, uncertainty: range}", "", "", "a statistic needs numbers"},
      {"{_: w_last, statistic: max}", "", "", "a statistic needs numbers"},
      {"{_: w, better: higher}", "", "", "`better` needs numbers"},
      {"{_: w_first, better: lower}", "", "", "`better` needs numbers"},
      {"{_: w, title: r, relative_to: {a: 4}}", "", "", "`relative_to` needs numbers"},
      {"{_: w, reference: {_: '> 1', of: median}}", "", "", "`of` needs numbers"},
      {"w", "repeat: {min: 6, max: 9, until: {metric: w, half_width: 1%}}, ", "",
       "`until` needs numbers"},
      {"v", "", "measured_over: w, ", "`measured_over` needs numbers"},
      {"w_avg", "", "", "'w_avg' needs numbers"},
      {"w_median", "", "", "'w_median' needs numbers"},
      {"{_: e, expression: 'w_median * 2'}", "", "", "'w_median' needs numbers"},
      {"{_: e, expression: '$w_max * 2'}", "", "", "'w_max' needs numbers"},
      {"{_: v, reference: {_: '> 0', where: 'w_cv < 1'}}", "", "", "'w_cv' needs numbers"},
      {"{_: w_cnt, better: higher}", "", "", ""},
      {"{_: w_cnt, statistic: median}", "", "", ""},
      {"w_last", "", "", ""},
      {"{_: w_avg, null_value: '-'}", "", "", "'w_avg' needs numbers"},
      {"{_: w_median, null_value: '0'}", "", "", "'w_median' needs numbers"},
      {"{_: w_last, null_value: '-'}", "", "", ""},
      {"{_: w, reference: '> 1'}", "", "", ""},
      {"{_: e, expression: 'w / 2', better: higher}", "", "", ""},
  };
  const Shell shell;
  for (const Use& use : uses) {
    CAPTURE(use.column);
    CAPTURE(use.step);
    CAPTURE(use.pattern);
    std::string text = bench("[4, 5]", std::string("column: [a, ") + use.column + "]");
    text.insert(text.find("use: p, do"), use.step);
    text.insert(text.find("type: float, _"), use.pattern);
    shell.file("b.yaml", text);
    Ran ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE(ran.code == (*use.fault == '\0' ? 0 : 2), ran.err);
    if (*use.fault != '\0') CHECK_MESSAGE(has(ran.err, std::string(w) + use.fault), ran.err);
    text.insert(text.find("name: w, ") + 9, "type: float, ");
    shell.file("b.yaml", text);
    ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE(ran.code == 0, ran.err);
  }
  // A parameter is no other.
  const std::string relative = "column: [a, {_: a, title: r, relative_to: {a: 4}}]";
  shell.file("b.yaml", bench("[4, 5]", relative));
  Ran ran = shell.tally("validate b.yaml");
  CHECK_MESSAGE(ran.code == 2, ran.err);
  CHECK_MESSAGE(
      has(ran.err, "the type of parameter 'a' is string, and `relative_to` needs numbers"),
      ran.err);
  shell.file("b.yaml", bench("[4, 5]", relative, "type: int, "));
  ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(has(ran.out, "a,r\n4,1.0\n5,1.25\n"), (ran.out + ran.err));
}

TEST_CASE("a key of a database is no other, whatever stands for a missing value") {
  const Shell shell;
  for (const char* type : {"", "type: float, "}) {
    for (const char* key : {"w_std", "{_: w_std, null_value: '0'}", "{_: w_p95, null_value: ''}"}) {
      CAPTURE(type);
      CAPTURE(key);
      std::string text = bench("[4, 5]", "column: [a, v]");
      text.insert(text.find("name: w, ") + 9, type);
      text.insert(text.find("table: {"),
                  std::string("database: {name: d, file: d.sqlite, key: [a, ") + key + "]}, ");
      shell.file("b.yaml", text);
      const Ran ran = shell.tally("validate b.yaml");
      CHECK_MESSAGE(ran.code == (*type == '\0' ? 2 : 0), ran.err);
    }
  }
}

namespace {

// Pattern w has no type in set q of analyser an, and one in set q2 of analyser an2.
std::string two_analysers(const std::string& table, const std::string& use = "[an, an2]",
                          const std::string& step_keys = "") {
  return "name: b\noutpath: run\n"
         "parameterset: {name: p, parameter: {name: a, _: '4,8'}}\n"
         "patternset:\n- {name: q, pattern: {name: w, _: 'w=(\\S+)'}}\n"
         "- {name: q2, pattern: {name: w, type: float, _: 'w=(\\S+)'}}\n"
         "step:\n- {name: s, kind: run, quiet_check: false, " +
         step_keys + "use: p, do: 'echo w=$a'}\n" +
         "- {name: s2, kind: run, quiet_check: false, use: p, do: 'echo w=1$a'}\n"
         "analyser:\n- {name: an, use: q, analyse: {step: s, file: stdout}}\n"
         "- {name: an2, use: q2, analyse: {step: s2, file: stdout}}\n"
         "result: {use: " +
         use + ", table: {name: t, style: csv, " + table + "}}\n";
}

}  // namespace

TEST_CASE("a name needs a type in each analyser whose rows are shown") {
  const Shell shell;
  const auto validated = [&](const std::string& text) {
    shell.file("b.yaml", text);
    const Ran ran = shell.tally("validate b.yaml");
    const bool untyped = has(ran.err, "the type of pattern 'w' is string");
    CHECK(has(ran.err, " is string in rows of step 's") == untyped);
    CHECK_MESSAGE(ran.code == (untyped ? 2 : 0), ran.err);
    return ran.code;
  };
  for (const char* column :
       {"{_: w, statistic: median, better: higher}", "{_: w, better: lower}", "w_avg",
        "{_: w, title: r, relative_to: {a: 4}}", "{_: w, reference: {_: '> 1', of: median}}",
        "{_: e, expression: 'w_max * 2'}", "{_: w_std, null_value: '-'}"}) {
    CAPTURE(column);
    const std::string columns = std::string("column: [a, ") + column + "]";
    CHECK(validated(two_analysers(columns)) == 2);
    CHECK(validated(two_analysers(columns, "an")) == 2);
    CHECK(validated(two_analysers(columns, "an2")) == 0);
    // A filter would leave rows out, or cells empty, without a word, and so would rows that are there.
    CHECK(validated(two_analysers("filter: \"jube_step_name == 's2'\", " + columns)) == 2);
    CHECK(validated(two_analysers(columns, "[an, an2]", "active: '$a == 4', ")) == 2);
    CHECK(validated(two_analysers(columns, "[an, an2]", "active: 'false', ")) == 0);
    std::string text = two_analysers(columns);
    text.insert(text.find("name: w, _:") + 9, "type: int, ");
    CHECK(validated(text) == 0);
    // A step whose rows nobody sees, because another one that prints the name depends on it.
    text = two_analysers(columns, "an");
    text.insert(text.find("name: s2, ") + 10, "depend: s, ");
    text.replace(
        text.find("{name: an, use: q, analyse: {step: s, file: stdout}}"), 52,
        "{name: an, analyse: [{step: s, file: {use: q, _: stdout}}, {step: s2, file: {use: "
        "q2, _: stdout}}]}");
    CHECK(validated(text) == 0);
    text.replace(text.find("use: q2, _: stdout"), 18, "use: q, _: stdout");
    CHECK(validated(text) == 2);
  }
  for (const char* table :
       {"filter: 'a == 8', column: [a, {_: w_avg, null_value: '-'}]",
        "filter: 'w > 0', column: [a, {_: w, statistic: median, better: higher}]",
        "filter: 'w_avg > 0', column: [a, w]", "filter: '$w_max > 0', column: [a, w]",
        "column: [a, {_: w, reference: {_: '> 9', where: 'w_max > 1'}}]",
        "column: [a, {_: w, reference: {_: '> 9', of: median, where: 'a == 8'}}]",
        "column: [a, {_: w, reference: {_: 'x > w_min', where: 'a == 8'}}]"}) {
    CAPTURE(table);
    CHECK(validated(two_analysers(table, "[an, an2]", "repeat: 2, ")) == 2);
    CHECK(validated(two_analysers(table, "an2")) == 0);
  }
  for (const char* column : {"w_cnt", "w_last", "w", "{_: e, expression: 'w * 2'}"}) {
    CAPTURE(column);
    CHECK(validated(two_analysers(std::string("column: [a, ") + column + "]")) == 0);
  }
  // `until` is judged by the first analyser that has the metric.
  const std::string until = "repeat: {min: 6, max: 9, until: {metric: w, half_width: 1%}}, ";
  CHECK(validated(two_analysers("column: [a]", "an", until)) == 2);
  std::string text = two_analysers("column: [a]", "an", until);
  text.insert(text.find("name: w, _:") + 9, "type: int, ");
  CHECK(validated(text) == 0);
  // A parameter is no other: it has a type in the set of one step.
  for (const char* type : {"", "type: int, "}) {
    CAPTURE(type);
    text = two_analysers("column: [{_: a, title: r, relative_to: {w: 4}}]");
    text.insert(text.find("patternset:"), std::string("parameterset: {name: p2, parameter: {name: "
                                                      "a, type: int, _: '4,8'}}\n"));
    text.replace(text.find("parameterset: {name: p,"), 13, "parameterset:\n-");
    text.replace(text.find("\nparameterset: {name: p2"), 14, "\n-");
    text.insert(text.find("name: a, _:") + 9, type);
    text.replace(text.find("use: p, do: 'echo w=1"), 6, "use: p2");
    shell.file("b.yaml", text);
    const Ran ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE(ran.code == (*type == '\0' ? 2 : 0), ran.err);
    CHECK(has(ran.err, "the type of parameter 'a' is string") == (*type == '\0'));
  }
}

TEST_CASE("a value without a type that an expression gives is a number where one is needed") {
  const Shell shell;
  const auto judged = [&](const std::string& expression, const std::string& keys) {
    shell.sh("rm -rf run");
    for (const char* values : {"[100]", "[10]"}) {
      std::string text =
          bench(values, "column: [v, {_: m, expression: '" + expression + "', " + keys + "}]");
      text.insert(text.find("use: p, do"), "repeat: 6, ");
      shell.file("b.yaml", text);
      const Ran ran = shell.tally("-q run b.yaml");
      if (ran.code != 0) return ran;
    }
    return shell.tally("compare run/000000 run/000001 --by a");
  };
  for (const char* expression : {"max(w, 5)", "w", "w if v > 0 else 0", "w or 5"}) {
    CAPTURE(expression);
    for (const char* keys : {"better: higher", "statistic: median, better: higher"}) {
      const Ran ran = judged(expression, keys);
      CHECK_MESSAGE(ran.code == 5, (ran.out + ran.err));
      const std::string json = shell.tally("result run -s json").out;
      const char* value = has(keys, "statistic") ? "\"m median\":10" : "\"m\":10";
      CHECK_MESSAGE(has(json, value), json);
    }
  }
  for (const char* keys :
       {"better: higher", "statistic: median", "title: r, relative_to: {a: 100}"}) {
    CAPTURE(keys);
    const Ran ran = judged("str(w) + \"s\"", keys);
    CHECK_MESSAGE(ran.code == 1, (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, " needs numbers, and the value is the text '100s' in "), ran.err);
  }
  // A column that a command names is no other.
  shell.sh("rm -rf run");
  shell.file("b.yaml", bench("[10]", "column: [a, w]"));
  for (int i = 0; i < 2; ++i) shell.tally("-q run b.yaml");
  const Ran ran = shell.tally("compare run/000000 run/000001 --metric w --better higher");
  CHECK_MESSAGE(ran.code == 1, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.err, "`better` needs numbers"), ran.err);
}

TEST_CASE("a text that an expression gives is an error where a number is needed, in one row, too") {
  struct Case {
    const char* keys;     // of the column
    const char* printed;  // v, of repeat $r of a point $a
    const char* said;     // empty: there is no fault
  };
  const Case cases[] = {
      {"better: higher", "test $a = 4 && echo none || echo 7",
       "`better` needs numbers, and the value is the text 'none' in 3 of 6 repeats"},
      {"better: higher", "test $a$r = 42 && echo none || echo 7", "in 1 of 6 repeats"},
      {"statistic: median", "test $a$r = 42 && echo none || echo 7",
       "a statistic needs numbers, and the value is the text 'none' in 1 of 6 repeats"},
      {"statistic: median, better: higher", "test $a = 4 && echo none || echo 7",
       "a statistic needs numbers"},
      {"title: q, relative_to: {a: 4}", "test $a = 4 && echo 7 || echo none",
       "`relative_to` needs numbers, and the value is the text 'none' in 1 of 2 rows"},
      // A failed row's text is no value.
      {"better: higher", "test $a = 4 && echo none && exit 1 || echo 7", ""},
      {"statistic: median", "test $a$r = 42 && echo none && exit 1 || echo 7", ""},
      {"null_value: '-'", "test $a = 4 && echo none || echo 7", ""},
      {"better: higher", "echo 7", ""}};
  const Shell shell;
  for (const Case& one : cases) {
    CAPTURE(one.keys);
    CAPTURE(one.printed);
    std::string text =
        bench("[4, 10]", std::string("column: [a, {_: e, expression: w, ") + one.keys + "}]");
    text.replace(text.find("echo v=$a"), 9,
                 std::string("r=$jube_wp_iteration; o=$(") + one.printed +
                     "); c=$?; echo v=$o; test $c = 0");
    text.replace(text.find("{name: v, type: float, _: 'v=(\\S+)'}, "), 38, "");
    text.insert(text.find("use: p, do"), "repeat: 3, ");
    shell.file("b.yaml", text);
    shell.sh("rm -rf run");
    shell.tally("-q run b.yaml");
    const Ran ran = shell.tally("-q result run");
    CHECK_MESSAGE(ran.code == (*one.said == 0 ? 0 : 1), (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, one.said), (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, "needs numbers") == (*one.said != 0), ran.err);
    if (!has(one.keys, "better")) continue;
    const Ran compared = shell.tally("compare run --by a");
    CHECK_MESSAGE(compared.code == (*one.said == 0 ? 0 : 1), (compared.out + compared.err));
  }
  // Without repeats they are rows, and each row is said once.
  shell.sh("rm -rf run");
  shell.file(
      "b.yaml",
      bench("[4, 10]", "column: [a, {_: e, expression: \"'x' if v < 5 else v\", better: higher}]"));
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(ran.code == 1, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.err, "the value is the text 'x' in 1 of 2 rows"), ran.err);
  CHECK(ran.err.find("needs numbers") == ran.err.rfind("needs numbers"));
}

TEST_CASE("what an expression makes of a baseline row's values itself may be a text or a truth") {
  struct Case {
    const char* expression;
    const char* keys;
    const char* rows;  // empty: an error
  };
  const Case cases[] = {{"'faster' if v > baseline.v else 'same'", "", "a,e\n4,same\n5,faster\n"},
                        {"v >= baseline.v", "", "a,e\n4,True\n5,True\n"},
                        {"w if v > baseline.v else 'none'", "", "a,e\n4,none\n5,5\n"},
                        {"v / $baseline.v", "", "a,e\n4,1.0\n5,1.25\n"},
                        {"v > baseline.v", "better: higher, ", ""},
                        {"'x' if v > 4 else v", "", ""},
                        {"v > 4", "", ""},
                        {"'baseline.v'", "", ""}};
  const Shell shell;
  for (const Case& one : cases) {
    CAPTURE(one.expression);
    shell.sh("rm -rf run");
    shell.file("b.yaml",
               bench("[4, 5]", "column: [a, {_: e, expression: \"" + std::string(one.expression) +
                                   "\", " + one.keys + "relative_to: {a: 4}}]"));
    CHECK(shell.tally("validate b.yaml").code == 0);
    const Ran ran = shell.tally("-q run b.yaml");
    CHECK_MESSAGE(ran.code == (*one.rows == 0 ? 1 : 0), (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.out, one.rows), (ran.out + ran.err));
    if (*one.keys != 0) CHECK_MESSAGE(has(ran.err, "`better` needs numbers"), ran.err);
  }
}

TEST_CASE("references compare the number of a value without a type") {
  const Shell shell;
  shell.file("b.yaml", bench("[4, 5]",
                             "column: [a, {_: w, reference: '<= 4'}, {_: v, reference: "
                             "{_: '>= 5', where: 'w == 5'}}]"));
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(ran.code == 5, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.err, "row 2 (a=5): w is 5; expected <= 4, missed by 25 %"), ran.err);
  CHECK_MESSAGE(!has(ran.err, "v is"), ran.err);
}

TEST_CASE("an empty cell of an expression is said, and an expression of nothing is an error") {
  const Shell shell;
  const auto ran_with = [&](const std::string& column, const std::string& output) {
    std::string text = bench("[4, 5]", "column: [a, " + column + "]");
    text.replace(text.find("echo v=$a"), 9, output);
    shell.file("b.yaml", text);
    return shell.tally("-q run b.yaml");
  };
  for (const char* column : {"{_: e, expression: 'v * 2'}", "{_: e, expression: '$v_max * 2'}",
                             "{_: e, expression: 'v * 2', relative_to: {a: 5}}",
                             "{_: e, expression: 'v / baseline.v', relative_to: {a: 5}}"}) {
    CAPTURE(column);
    Ran ran = ran_with(column, "test $a = 4 || echo v=1");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, "'e' has no value in 1 of 2 rows: row 1"), ran.err);
    ran = ran_with(column, "true");
    CHECK_MESSAGE(ran.code == 1, (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, "pattern 'v' matched nothing in 2 of 2 workpackages"), ran.err);
    std::string may_be_empty = column;
    may_be_empty.insert(may_be_empty.size() - 1, ", null_value: '-'");
    ran = ran_with(may_be_empty, "true");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    CHECK_MESSAGE(!has(ran.err, "'e' has no value"), ran.err);
  }
  const Ran ran = ran_with("{_: e, expression: '\"v\" + a'}", "true");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));  // the text names no pattern
}

TEST_CASE("conditions that are nested too deeply are an error in words") {
  const Shell shell;
  const auto nested = [](const std::string& before, const std::string& value, int times) {
    std::string text;
    for (int i = 0; i < times; ++i) text += before;
    text += value;
    for (int i = 0; i < times && before == "("; ++i) text += ")";
    return text;
  };
  const std::string deep[] = {nested("(", "v", 20000), nested("not ", "v", 100000),
                              nested("1 if v else ", "v", 50000)};
  const auto refused = [&](const std::string& reference, const char* command) {
    shell.file("b.yaml", bench("[4]", "column: [a, v], reference: {column: v, " + reference + "}"));
    const Ran ran = shell.tally(command);
    CHECK_MESSAGE(ran.code == 2, ran.code << ran.err.substr(0, 300));
    CHECK_MESSAGE(has(ran.err, "Python cannot read"), ran.err.substr(0, 300));
  };
  for (const std::string& part : deep) {
    CAPTURE(part.substr(0, 20));
    refused("_: \"" + part + "\"", "validate b.yaml");
    refused("_: '> 0', where: \"v in " + part + "\"", "validate b.yaml");
  }
  refused("_: \"1 +- " + deep[0] + "\"", "validate b.yaml");
  refused("_: \"" + deep[0] + " .. 3\"", "-q run b.yaml");
  shell.file("b.yaml", bench("[4]", "column: [a, v], reference: {column: v, _: \"" +
                                        nested("(", "v > 1", 90) + "\"}"));
  CHECK(shell.tally("-q run b.yaml").code == 0);
}

TEST_CASE("`is` with a number or a text has a note of its own") {
  const Shell shell;
  struct Case {
    const char* filter;
    const char* says;
  };
  const Case cases[] = {{"a is 4", "the filter: `is` does not compare values"},
                        {"'4' is a", "the filter: `is` does not compare values"},
                        {"a is not 4", "the filter: `is not` does not compare values"},
                        {"a is None", nullptr},
                        {"a == 'this is 4'", nullptr}};
  for (const Case& one : cases) {
    CAPTURE(one.filter);
    shell.file("b.yaml", bench("[4, 5]", std::string("filter: \"") + one.filter + "\", column: [a]",
                               "type: int, "));
    for (const char* command : {"validate b.yaml", "-q run b.yaml"}) {
      const Ran ran = shell.tally(command);
      CHECK_MESSAGE(ran.code == 0, ran.err);
      CHECK_MESSAGE(!has(ran.err, "SyntaxWarning"), ran.err);
      CHECK_MESSAGE(has(ran.err, "does not compare values") == (one.says != nullptr), ran.err);
      if (one.says != nullptr) CHECK_MESSAGE(has(ran.err, one.says), ran.err);
    }
  }
}

TEST_CASE("a part of a text equals no number, and validate says so") {
  const Shell shell;
  const char* const wrong[] = {"a[0] == 4",
                               "4 == a[0]",
                               "a[0] != 4",
                               "a[:1] == 4",
                               "a.split('x')[0] == 4",
                               "w[0] == 4",
                               "a.strip() == 4.0",
                               "a == '4' or a[0] == 4"};
  const char* const right[] = {"a[0] == '4'",      "int(a[0]) == 4",    "a == 4",
                               "len(a[0]) == 1",   "a.count('4') == 1", "a[0] in ('4', '5')",
                               "a.find('4') == 0", "[4, 5][0] == 4",    "v == 4 or a[0] > '3'"};
  const auto ran = [&](const std::string& condition, const char* where) {
    std::string table = "column: [a]";
    if (std::string(where) == "filter") table = "filter: \"" + condition + "\", column: [a]";
    if (std::string(where) == "reference")
      table = "column: [a, {_: v, reference: {_: '> 0', where: \"" + condition + "\"}}]";
    if (std::string(where) == "expression")
      table = "column: [a, {_: e, expression: \"" + condition + "\"}]";
    shell.file("b.yaml", bench("['4', 5, '45']", table));
    return shell.tally("validate b.yaml");
  };
  for (const char* where : {"filter", "reference", "expression"}) {
    CAPTURE(where);
    for (const char* condition : wrong) {
      CAPTURE(condition);
      const Ran said = ran(condition, where);
      CHECK(said.code == 2);
      CHECK_MESSAGE(has(said.err, " is a text, which equals no number\n"), said.err);
    }
    for (const char* condition : right) {
      CAPTURE(condition);
      const Ran said = ran(condition, where);
      CHECK_MESSAGE(said.code == 0, said.err);
    }
  }
}

TEST_CASE("divmod, pow and `allowed` take a value without a type for its number") {
  const Shell shell;
  std::string text = bench("[0x10]",
                           "column: [a, {_: e, expression: 'divmod(a, 5)[1] + divmod(33, a)[0]'}, "
                           "{_: f, expression: 'pow(a, 2, 100) + pow(a, 1)'}]");
  text.replace(text.find("name: a, "), 9, "name: a, allowed: '8 .. 16', ");
  shell.file("b.yaml", text);
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(has(ran.out, "a,e,f\n0x10,3,72\n"), (ran.out + ran.err));
  text.replace(text.find("[0x10]"), 6, "[0x11]");
  shell.file("b.yaml", text);
  CHECK(shell.tally("validate b.yaml").code == 2);
}

// References through the program: their messages, on_fail, and `tally reference --update`.
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

constexpr const char* kHead =
    "name: b\noutpath: run\n"
    "parameterset: {name: ps, parameter: {name: n, type: int, _: \"1,2\"}}\n"
    "patternset: {name: pt, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
    "step: {name: s, kind: run, repeat: 3, use: ps, do: \"echo v=$n$jube_wp_iteration.5\"}\n"
    "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n";

// n=1 prints 10.5, 11.5, 12.5, and n=2 prints 20.5, 21.5, 22.5.
std::string bench(const std::string& references) {
  return std::string(kHead) +
         "result: {use: a, table: {name: t, style: csv, column: [n, v], reference: [" + references +
         "]}}\n";
}

}  // namespace

TEST_CASE("references: the message says by how much") {
  struct Row {
    const char* condition;
    const char* message;
  };
  const Row rows[] = {
      {"_: \"<= 20\"", "v is 20.5; expected <= 20, missed by 2.5 %\n"},
      {"_: \"> 41\"", "v is 20.5; expected > 41, missed by 50 %\n"},
      {"_: \"21 .. 30\"", "v is 20.5; expected 21 .. 30, missed by 2.38 %\n"},
      {"_: \"10 +- 5%\"", "v is 20.5; expected 10 +- 5%, missed by 95.2 %\n"},
      {"_: \"<= 0\"", "v is 20.5; expected <= 0, missed by 20.5\n"},
      {"_: \"x < n\"", "v is 20.5; expected x < n\n"},
      {"_: \"<= 21\", of: median, note: lab",
       "v_median is 21.5; expected <= 21 (lab), missed by 2.38 %"},
  };
  for (const Row& row : rows) {
    const Shell shell;
    shell.file("b.yaml",
               bench(std::string("{column: v, where: \"n == 2\", ") + row.condition + "}"));
    const Ran ran = shell.tally("run b.yaml");
    CHECK(ran.code == 5);
    CHECK_MESSAGE(has(ran.err, std::string("row 2 (n=2): ") + row.message), ran.err);
  }
}

TEST_CASE("references that nobody can meet are errors before anything runs") {
  struct Row {
    const char* reference;
    const char* message;
  };
  const Row rows[] = {
      {"_: \"100 +- -5%\"", "its tolerance is below 0"},
      {"_: \"100 +- -5\"", "its tolerance is below 0"},
      {"_: \"-100 \u00b1 -5%\"", "its tolerance is below 0"},
      {"_: \"110 .. 90\"", "its range ends before it begins"},
      {"_: \"-1..-2\"", "its range ends before it begins"},
      {"_: \"nan\"", "no value is compared with nan"},
      {"_: \"> inf\"", "no value is compared with inf"},
      {"_: \"<= -Infinity\"", "no value is compared with -Infinity"},
      {"_: \"== nan\"", "no value is compared with nan"},
      {"_: \"> 1e400\"", "no value is compared with 1e400"},
      {"_: \"1 .. inf\"", "no value is compared with inf"},
      {"_: \"5 +- nan\"", "no value is compared with nan"},
      {"_: \"100 +-\"", "a number is missing"},
      {"_: \"+- 5%\"", "a number is missing"},
      {"_: \"100 +- %\"", "a number is missing"},
      {"_: \".. 5\"", "a number is missing"},
      {"_: \"5 ..\"", "a number is missing"},
      {"_: \"<\"", "a number is missing"},
      {"_: \"< fast\"", "'fast' is neither a number nor the name of a value"},
      {"_: \"10 +- wide\"", "'wide' is neither a number nor the name of a value"},
      {"_: fast", "'fast' is not the name of a value"},
      {"_: \"True\"", "it uses no value of the row"},
      {"_: \"zz > 3\"", "'zz' is not the name of a value"},
      {"_: \"== 'fast'\"", "'v' is a number, and is compared with a text"},
      {"_: \"= 100\"", "it uses no value of the row"},
      {"_: \"<= 5%\"", "Python cannot read"},
      {"_: \"> 1\", where: \"n == 3\"", "'n' is 1, 2"},
      {"_: \"> 1\", where: \"$n == 3.5\"", "'n' is 1, 2"},
      {"_: \"> 1\", where: \"n > 7\"", "'n' is 1, 2"},
      {"_: \"> 1\", where: \"n == '1'\"", "'n' is a number, and is compared with a text"},
      {"_: \"> 1\", where: \"zz == 1\"", "'zz' is not the name of a value"},
      {"_: \"> 1\", where: \"False\"", "it is false for each row"},
      {"_: \"> 1\", where: \"n ==\"", "Python cannot read"},
      {"_: \"> 1\", where: \"n in (3, 4)\"", "'n' is 1, 2"},
      {"_: \"> 1\", where: \"n in [3]\"", "'n' is 1, 2"},
      {"_: \"> 1\", where: \"n == 1 and n == 2\"", "'n' is 1, 2"},
      {"_: \"> 1\", where: \"v > 1 and n == 3\"", "'n' is 1, 2"},
      {"_: \"> 1\", where: \"n == 3 or n > 7\"", "'n' is 1, 2"},
      {"_: \"> 1\", where: \"'$n' == '3'\"", "'n' is 1, 2"},
      {"_: \"> 1\", where: \"not n\"", "'n' is 1, 2"},
      {"_: \"> 1\", where: \"n == gpu\"", "'gpu' is not the name of a value"},
      {"_: \"> 1\", where: \"n == 1 and '$gpu' == 'a'\"", "'gpu' is not the name of a value"},
      {"_: \"> 1\", where: \"n in (1, two)\"", "'two' is not the name of a value"},
      {"_: \"1 < x < inf\"", "'inf' is not the name of a value"},
      {"_: \"x > 2 * fast\"", "'fast' is not the name of a value"},
      {"_: \"<= 1,000\"", "'1,000' is not a number: it has a comma"},
      {"_: \"x - 100\"", "it is neither true nor false"},
      {"_: x", "it is neither true nor false"},
      {"_: \"nan\", action: warn", "nan"},
  };
  const Shell shell;
  for (const Row& row : rows) {
    CAPTURE(row.reference);
    shell.file("b.yaml", bench(std::string("{column: v, ") + row.reference + "}"));
    for (const char* command : {"validate b.yaml", "run b.yaml"}) {
      const Ran ran = shell.tally(command);
      CHECK(ran.code == 2);
      CHECK_MESSAGE(has(ran.err, row.message), ran.err);
      CHECK_MESSAGE(has(ran.err, "b.yaml:7:"), ran.err);
    }
  }
  // Others may be met.
  for (const char* reference : {"_: \"0 +- 5%\"",
                                "_: \"100 +- 0\"",
                                "_: \"5 .. 5\"",
                                "_: \"<= n\"",
                                "_: \"x < 2 * v_avg\"",
                                "_: \"n .. 100\"",
                                "_: \"!= 7\"",
                                "_: \"== '5' or x > 3\"",
                                "_: 5, where: \"n == 2\"",
                                "_: 5, where: \"n == 2.0\"",
                                "_: 5, where: \"n in (2, 3)\"",
                                "_: 5, where: \"n == 3 or v > 1\"",
                                "_: 5, where: \"not (v > 1 and n == 3 and x > 1)\"",
                                "_: 5, where: \"'$n' == '2'\"",
                                "_: 5, where: \"n != 1 and str(n).strip() == '2'\"",
                                "_: 5, where: \"any(i == n for i in (1, 2))\"",
                                "_: 5, where: \"n == 2 if v else n == 3\"",
                                "_: 5, where: \"'a and n == 3 and b' != 'c'\"",
                                "_: 5, where: \"n not in (3, 4)\"",
                                "_: 5, where: n",
                                "_: 5, where: \"n < 1 << 4\"",
                                "_: 5, where: \"1 << n > 2\"",
                                "_: 5, where: \"n < 3 and 8 >> n < 1 << 3\"",
                                "_: 5, where: \"f'{n}' == '2'\"",
                                "_: 5, where: \"f'{1 and 0}' == '0'\"",
                                "_: 5, where: \"n == 2 # x\"",
                                "_: \"x in (1, 2)\"",
                                "_: \"bool(x)\"",
                                "_: \"== v_avg\"",
                                "_: \"<= max(1, 2)\"",
                                "_: 5, where: \"n > 1\"",
                                "_: 5, where: \"v > 7\"",
                                "_: \"< 9\", of: p95",
                                "_: \"v_median > 1\"",
                                "_: \"abs(x - 3) < 2\"",
                                "_: \"1e2\""}) {
    shell.file("b.yaml", bench(std::string("{column: v, ") + reference + "}"));
    const Ran ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE(ran.code == 0, reference << ": " << ran.err);
  }
}

TEST_CASE("references: the names of arguments and of the condition's own values are no values") {
  const Shell shell;
  for (const char* condition :
       {"math.isclose(v, n, rel_tol=20)", "round(v, ndigits=0) > 1", "max([v], default=1) > 0",
        "sorted([v, 1], reverse = True)[0] == v", "max([n], key=abs) > 0", "sum([v], start=1) > 1",
        "re.search('A', 'a', flags=re.I) is not None and n > 0", "dict(n=3)['n'] == 3 and n > 0",
        "(y := v) > 0 and y > 1", "any(i == n\nfor i in (1, 2))", "'lambda' != 'a' and v > 0"}) {
    CAPTURE(condition);
    const std::string quoted = "\"" + std::string(condition) + "\"";
    for (const std::string& reference : {"_: " + quoted, "_: \"> 0\", where: " + quoted,
                                         "_: \"v < 0\", action: warn, where: " + quoted}) {
      shell.file("b.yaml", bench("{column: v, " + reference + "}"));
      const Ran ran = shell.tally("-q run b.yaml");
      CHECK_MESSAGE(ran.code == 0, reference << ": " << ran.err);
    }
    std::string filtered = bench("");
    filtered.replace(filtered.find("reference: []"), 13, "filter: " + quoted);
    shell.file("b.yaml", filtered);
    const Ran ran = shell.tally("-q run b.yaml");
    CHECK_MESSAGE(has(ran.out, "n,v\n1,10.5\n2,20.5\n"), (ran.out + ran.err));
  }
  // The values of arguments are read.
  for (const char* condition : {"max([v], default=zz) > 0", "math.isclose(v, 1, rel_tol=zz)",
                                "'lambda' != 'a' and zz > 0", "'a for b' != 'a' and zz > 0"}) {
    shell.file("b.yaml", bench("{column: v, _: \"" + std::string(condition) + "\"}"));
    const Ran ran = shell.tally("validate b.yaml");
    CHECK_MESSAGE(has(ran.err, "'zz' is not the name of a value"), (condition + ran.err));
  }
  // A value of the argument's name, which some rows lack, and a function's.
  std::string text = bench("");
  text.insert(text.find("}}\nstep") + 1,
              ", {name: default, type: int, _: 'v=(1)\\d'}, {name: len, type: int, _: 'v=(\\d)'}]");
  text.insert(text.find("{name: v"), "[");
  text.replace(text.find("reference: []"), 13,
               "filter: \"max([v], default=1) > 0 and dict(len=4)['len'] == 4\"");
  shell.file("b.yaml", text);
  Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(has(ran.out, "n,v\n1,10.5\n2,20.5\n"), (ran.out + ran.err));
}

TEST_CASE(
    "references of a file of `result -u`, and of one that reads logs, are checked as of one that "
    "is run") {
  const Shell shell;
  shell.file("b.yaml", bench("{column: v, _: '> 1'}"));
  CHECK(shell.tally("-q run b.yaml").code == 0);
  shell.sh("cp run/000000/000000_s/work/stdout log");
  const std::string shown = shell.tally("-q result run").out;
  for (const char* reference :
       {"_: 'x +'", "_: '100 .. 1'", "_: 'v > \"a\"'", "_: '> 0', where: 'dev == gpu'",
        "_: '> 0', of: medan", "_: '> nan'", "_: '= 1'", "_: '> 0', where: 'n =='",
        "_: '> 0', where: 'n == 99'", "_: 'v > 0 or'"}) {
    for (const char* action : {"", ", action: expect_fail", ", action: warn"}) {
      CAPTURE(reference);
      CAPTURE(action);
      shell.file("u.yaml", bench("{column: v, " + std::string(reference) + action + "}"));
      CHECK(shell.tally("validate u.yaml").code == 2);
      for (const char* command :
           {"result run -u u.yaml", "analyse run -u u.yaml", "result u.yaml --logs log log"}) {
        const Ran ran = shell.tally(command);
        CHECK_MESSAGE(ran.code == 2, (command + ran.err));
        CHECK_MESSAGE(has(ran.err, "u.yaml:7:"), ran.err);
        CHECK(ran.out.empty());
      }
      // It is not kept.
      CHECK(shell.tally("-q result run").out == shown);
    }
  }
  // So are its filters, expressions and patterns.
  for (const char* wrong :
       {"filter: 'n ==', column", "column: [{_: e, expression: 'n +'}], sort"}) {
    std::string text = bench("");
    text.replace(text.find(", column"), 8, std::string(", ") + wrong);
    shell.file("u.yaml", text);
    CHECK(shell.tally("validate u.yaml").code == 2);
    const Ran ran = shell.tally("result run -u u.yaml");
    CHECK_MESSAGE(ran.code == 2, (ran.out + ran.err));
  }
}

TEST_CASE("references of a file of `result -u` to points that the run does not have are missed") {
  const Shell shell;
  shell.file("b.yaml", bench("{column: v, _: '> 1'}"));
  CHECK(shell.tally("-q run b.yaml").code == 0);
  std::string today = bench("{column: v, _: '> 1', where: 'n == 3'}");
  today.replace(today.find("\"1,2\""), 5, "\"1,2,3\"");
  shell.file("b.yaml", today);
  CHECK(shell.tally("validate b.yaml").code == 0);
  Ran ran = shell.tally("result run -u b.yaml");
  CHECK_MESSAGE(ran.code == 5, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "n,v\n1,10.5\n2,20.5\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "no row with n == 3 has a value of 'v' to compare"), ran.err);
  // A file of patterns and results alone.
  today = bench("{column: v, _: '> 1', where: 'n == 3'}");
  const size_t work = today.find("parameterset"), patterns = today.find("patternset");
  today.erase(work, patterns - work);
  const size_t step = today.find("step: "), analyser = today.find("analyser: ");
  today.erase(step, analyser - step);
  shell.file("u.yaml", today);
  ran = shell.tally("result run -u u.yaml");
  CHECK_MESSAGE(ran.code == 2, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.err, "chooses no row by 'n == 3': 'n' is 1, 2"), ran.err);
  shell.file("u.yaml", today.replace(today.find("n == 3"), 6, "n == 2"));
  ran = shell.tally("result run -u u.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
}

TEST_CASE("references of a file of `result -u` are for points of the run or of the file") {
  struct Case {
    const char* today;  // the values of n; the run has 1 and 2
    const char* where;
    int code;
    const char* says;
  };
  const Case cases[] = {
      {"3", "n == 99", 2, "chooses no row by 'n == 99': 'n' is 1, 2 in the run, and 'n' is 3 in"},
      {"1,2,3", "n > 20", 2, "'n' is 1, 2 in the run, and 'n' is 1, 2, 3 in the file"},
      {"1", "n == 99", 2, "'n' is 1 in the file"},
      {"1,2", "n == 99", 2, "chooses no row by 'n == 99': 'n' is 1, 2\n"},
      {"1,2,3", "n == 3", 5, "no row with n == 3 has a value of 'v' to compare"},
      {"3", "n == 2", 0, ""},
      {"3", "n == 3", 5, "no row with n == 3"},
      {"3", "n in (7, 2)", 0, ""},
      {"${jube_benchmark_id}", "n == 99", 5, "no row with n == 99"}};
  const Shell shell;
  shell.file("b.yaml", bench("{column: v, _: '> 1'}"));
  CHECK(shell.tally("-q run b.yaml").code == 0);
  for (const Case& one : cases) {
    for (const char* action : {"", ", action: expect_fail"}) {
      CAPTURE(one.today);
      CAPTURE(one.where);
      CAPTURE(action);
      std::string text =
          bench("{column: v, _: '> 1', where: '" + std::string(one.where) + "'" + action + "}");
      text.replace(text.find("\"1,2\""), 5, "\"" + std::string(one.today) + "\"");
      shell.file("u.yaml", text);
      const Ran ran = shell.tally("result run -u u.yaml");
      const bool met = one.code == 0, error = one.code == 2;
      const int code = *action == 0 || error ? one.code : met ? 5 : 0;
      CHECK_MESSAGE(ran.code == code, (ran.out + ran.err));
      CHECK_MESSAGE(has(ran.err, one.says), ran.err);
    }
  }
}

TEST_CASE("references: `where` of parameters with plain values that is false for each row") {
  const std::string head =
      "name: b\noutpath: run\nparameterset: {name: p, parameter: [{name: u, _: \"1,2\"}, {name: n, "
      "type: int, _: \"1,2\"}, {name: fl, type: float, _: \"0.5,2\"}, {name: dev, _: \"cpu,tpu\"}, "
      "{name: b, _: \"True,False\"}, {name: z, mode: python, type: int, _: \"$n*2\"}]}\n"
      "patternset: {name: o, pattern: [{name: v, type: float, _: v=$jube_pat_fp}, {name: w, _: "
      "'w=(.)'}]}\n"
      "step: {name: s, use: p, do: echo v=$n}\n"
      "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, column: [u, n, v, w], reference: {column: v, ";
  const Shell shell;
  const auto checked = [&](const std::string& reference) {
    shell.file("b.yaml", head + reference + "}}}\n");
    return shell.tally("validate b.yaml");
  };
  const std::vector<std::pair<std::string, std::string>> never = {
      {"u == 3", "'u' is 1, 2"},
      {"u in (3, 5)", "'u' is 1, 2"},
      {"u > 2", "'u' is 1, 2"},
      {"u == '3'", "'u' is 1, 2"},
      {"fl == 1.5", "'fl' is 0.5, 2"},
      {"1 < n < 2", "'n' is 1, 2"},
      {"3 == n", "'n' is 1, 2"},
      {"-1 == n", "'n' is 1, 2"},
      {"'gpu' == dev", "'dev' is cpu, tpu"},
      {"dev != 'cpu' and dev != 'tpu'", "'dev' is cpu, tpu"},
      {"n not in (1, 2)", "'n' is 1, 2"},
      {"not (n == 1 or n == 2)", "'n' is 1, 2"},
      {"n == 1 and not n == 1", "'n' is 1, 2"},
      {"(n == 1 and (n == 2))", "'n' is 1, 2"},
      {"n in ('1', '2')", "'n' is a number, and is compared with a text"},
      {"b == True", "the type of 'b' is string"},
      {"n == fl + 0 and n > 2", "'n' is 1, 2"},
      {"n > fl and fl >= n", "'fl' is 0.5, 2"},
      {"n == 1 and '${dev}' == 'gpu'", "'dev' is cpu, tpu"},
      {"v > 'a'", "'v' is a number, and is compared with a text"},
  };
  for (const auto& [where, why] : never) {
    CAPTURE(where);
    const Ran ran = checked("_: '> 1', where: \"" + where + "\"");
    CHECK_MESSAGE((ran.code == 2 && has(ran.err, why)), (ran.out + ran.err));
  }
  const std::vector<std::pair<std::string, std::string>> conditions = {
      {"x > 1 and dev > 5", "the type of 'dev' is string, and a text is compared with a number"},
      {"x > 'a'", "'v' is a number, and is compared with a text"},
      {"== 'xyz'", "'v' is a number, and is compared with a text"},
      {"x > 1 and dev == 2", "the type of 'dev' is string"},
      {"x in ('a', 'b')", "'v' is a number, and is compared with a text"},
  };
  for (const auto& [condition, why] : conditions) {
    CAPTURE(condition);
    const Ran ran = checked("_: \"" + condition + "\"");
    CHECK_MESSAGE((ran.code == 2 && has(ran.err, why)), (ran.out + ran.err));
  }
  for (const std::string where : {"u == '1'",
                                  "u == 1",
                                  "u in (1, 5)",
                                  "u > 1",
                                  "$u == 1",
                                  "'$u' == '1'",
                                  "int(u) == 1",
                                  "u in ('1', 3)",
                                  "n == 1.0",
                                  "n == True",
                                  "b == 'True'",
                                  "1 <= n < 2",
                                  "2 == n",
                                  "dev[0] == 'c'",
                                  "dev.startswith('t')",
                                  "dev in 'cpus'",
                                  "n not in (1, 3)",
                                  "not (n == 1 or v > 3)",
                                  "n + 1 == 3",
                                  "n % 2",
                                  "n == 1 if v else n == 9",
                                  "n is not None",
                                  "any(i == n for i in (7, 2))",
                                  "n in [i for i in (7, 2)]",
                                  "z == 99",
                                  "v == 9",
                                  "w == 'q'",
                                  "n == 2 and z in (3, 5)",
                                  "(n, dev) == (1, 'cpu')",
                                  "n in {1, 2}",
                                  "n in range(2)",
                                  "n == 1 and 'n == 3' != dev",
                                  "str(n) == '1'",
                                  "r'x' == dev",
                                  "status == 'ok'",
                                  "not 1 == 2"}) {
    CAPTURE(where);
    const Ran ran = checked("_: '> 1', where: \"" + where + "\"");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  }
  for (const std::string condition : {"w == '5' or x > 3", "x != 'a'", "str(x) > 'a'", "w > '5'"}) {
    CAPTURE(condition);
    const Ran ran = checked("_: \"" + condition + "\"");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  }
}

TEST_CASE("references: --set may choose other points than a reference is for") {
  for (const char* where : {"n == 1", "n == 1 and m == 3", "n in (1, 5)", "n < 2"}) {
    CAPTURE(where);
    const Shell shell;
    shell.file(
        "b.yaml",
        "name: b\noutpath: run\n"
        "parameterset: {name: p, parameter: [{name: n, type: int, _: \"1,2\"}, {name: m, type: "
        "int, _: \"3\"}]}\n"
        "patternset: {name: o, pattern: {name: v, type: int, _: v=$jube_pat_int}}\n"
        "step: {name: s, use: p, do: echo v=$n}\n"
        "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
        "result: {use: a, table: {name: t, column: [n, v], reference: {column: v, where: \"" +
            std::string(where) + "\", _: \"> 0\"}}}\n");
    CHECK(shell.tally("run b.yaml -r").code == 0);
    const Ran ran = shell.tally("run b.yaml -r --set n=2");
    CHECK_MESSAGE(ran.code == 5, (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, "no row with "), ran.err);
  }
}

TEST_CASE("references: actions and platforms are said") {
  const Shell shell;
  shell.file("b.yaml", bench("{column: v, _: \"<= 11\", action: warn}, "
                             "{column: v, _: \"<= 11\", where: \"n == 2\", action: expect_fail}, "
                             "{column: v, _: \"<= 1\", platform: booster}"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(
      has(ran.err, "warning: reference missed: t: row 2 (n=2): v is 20.5; expected <= 11"),
      ran.err);
  CHECK(has(ran.err, "note: t: reference missed as expected: row 2 (n=2): v is 20.5"));
  CHECK(has(ran.err,
            "note: t: reference v <= 1: not checked: it is for platform 'booster', and "
            "this is a workflow without platform"));
  const Ran json = shell.tally("result run -s json");
  CHECK(has(json.out, "\"missed\":[],\"warned\":[{\"place\":\"b.yaml:7:"));
  shell.file("c.yaml", bench("{column: n, _: \"<= 11\", of: median}"));
  CHECK(has(shell.tally("validate c.yaml").err,
            "error: reference: `of: median` needs a pattern, and 'n' is not one"));
  shell.file("c.yaml", bench("{column: v, _: \"<= 11\", of: mean}"));
  const Ran mean = shell.tally("validate c.yaml");
  CHECK_MESSAGE(has(mean.err, "error: reference: `of: mean` is no statistic\n"), mean.err);
  CHECK_MESSAGE(
      has(mean.err, "hint: write one of median, mad, cv, p05, p95, ci_low, ci_high, n, outliers\n"),
      mean.err);
}

TEST_CASE("references: whole numbers are compared as Python does, however large they are") {
  const char* const meets[] = {"n > 9007199254740992",   "n == 9007199254740993",
                               "n != 9007199254740992",  "n >= 9007199254740993",
                               "9007199254740992 < n",   "n in (9007199254740993, 4)",
                               "$n == 9007199254740993", "n > 9007199254740992.0"};
  const char* const never[] = {"n == 9007199254740992", "n > 9007199254740993",
                               "n == 9007199254740994", "not n != 9007199254740992"};
  for (const char* type : {"type: int, ", ""}) {
    const auto validated = [&](const char* condition) {
      const Shell shell;
      std::string text = bench("{column: v, _: '> 0', where: '" + std::string(condition) + "'}");
      text.replace(text.find("type: int, _: \"1,2\""), 19,
                   std::string(type) + "_: '9007199254740993,5'");
      shell.file("b.yaml", text);
      return shell.tally("validate b.yaml");
    };
    for (const char* condition : meets) {
      CAPTURE(condition);
      const Ran ran = validated(condition);
      CHECK_MESSAGE(ran.code == 0, ran.err);
    }
    for (const char* condition : never) {
      CAPTURE(condition);
      const Ran ran = validated(condition);
      CHECK_MESSAGE(ran.code == 2, ran.err);
    }
  }
}

TEST_CASE("references: a sign of a range or a tolerance in a comparison is none") {
  struct Case {
    const char* condition;
    int code;  // of v, which is 10.5 and 20.5
  };
  const Case cases[] = {
      {"x > 100 +-99", 0},
      {"x > 10 +-1", 0},
      {"x > 21 +-1", 5},
      {"n == +-1", 5},
      {"n != +-1", 0},
      {"x < 21 and n > 3 +-3", 0},
      {"str(x) != \"1..5\"", 0},
      {"x in [10.5, 20 +-2, 20.5]", 0},
      {"not x == 3 +-2", 0},
      {"15 +-6", 0},
      {"15 +-5", 5},
      {"max(n, 15) +- 40%", 0},
      {"(10 if n == 1 else 20) +- 1", 0},
      {"10 if n == 1 else 20 +- 1", 0},
      {"10 if n == 1 else 20 \xC2\xB1 5%", 0},
      {"10 if n == 1 else 22 +- 1", 5},
      {"5 + 5 .. 7 * 3", 0},
      {"10 .. 20", 5},
  };
  const Shell shell;
  for (const Case& one : cases) {
    CAPTURE(one.condition);
    shell.clear();
    shell.file("b.yaml", bench("{column: v, _: '" + std::string(one.condition) + "'}"));
    const Ran ran = shell.tally("-q run b.yaml");
    CHECK_MESSAGE(ran.code == one.code, (ran.out + ran.err));
  }
}

TEST_CASE("references: `where` that cannot be evaluated is named") {
  const Shell shell;
  std::string text = bench("{column: v, _: '> 0', where: 'str(v)[9] == \"1\"'}");
  shell.file("b.yaml", text);
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK(ran.code != 0);
  CHECK_MESSAGE(has(ran.err, "'where' of a reference of 'v' \"str(v)[9] == "), ran.err);
  CHECK_MESSAGE(!has(ran.err, "filter"), ran.err);
}

TEST_CASE("references: `where` ends with a comment, or shifts bits") {
  const Shell shell;
  for (const char* where : {"n == 2 # the second", "1 << n > 2", "n > 1 # (not closed"}) {
    CAPTURE(where);
    shell.file("b.yaml", bench(std::string("{column: v, _: '> 20', where: \"") + where + "\"}"));
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == 0, ran.err);
  }
}

TEST_CASE("references: platform is that of the step") {
  const Shell shell;
  std::string text = bench("{column: v, _: \"<= 1\", platform: local}");
  text.replace(text.find("kind: run,"), 10, "kind: run, platform: local,");
  shell.file("b.yaml", text);
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 5, ran.err);
}

TEST_CASE("on_fail: a command for each row that misses, with its words, in the row's folder") {
  const Shell shell;
  shell.file("b.yaml", bench("{column: v, _: \"<= 11\", where: \"n == 2\", on_fail: "
                             "\"pwd; echo cause: $TALLY_TABLE $TALLY_REFERENCE; exit 3\"}"));
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 5);
  CHECK_MESSAGE(has(ran.err, "note: on_fail: the output of 1 command is in "), ran.err);
  CHECK(has(ran.err, "ended with exit code 3\n"));
  const std::string log = shell.content("run/000000/result/on_fail.log");
  CHECK_MESSAGE(
      has(log, "/000001_s/work\ncause: t row 2 (n=2): v is 20.5; expected <= 11, missed "), log);
  // Looking at a result starts nothing.
  ran = shell.tally("result run");
  CHECK(ran.code == 5);
  CHECK(shell.content("run/000000/result/on_fail.log") == log);
}

TEST_CASE("reference --update: writes what was measured, in the form that is there") {
  const Shell shell;
  const std::string table =
      "result:\n  use: a\n  table:\n    name: t\n    column:\n      - n\n      - _: v\n"
      "        reference: \"<= 1\"  # the old machine\n"
      "    reference:\n"
      "      - column: v\n        _: 5 +- 5%\n        where: n == 1\n"
      "      - {column: v, _: '10 .. 11', note: \"acceptance\", of: median}\n"
      "      - {column: v, _: \">= 100\", note: \"lab; measured 2020-01-01 in run 1 by tally 0\"}\n"
      "      - {column: v, _: x > n}\n"
      "      - {column: v, _: 7 +- 1}\n";
  shell.file("b.yaml", kHead + table);
  CHECK(shell.tally("run b.yaml -q").code == 5);
  const Ran ran = shell.tally("reference --update run --tolerance 10%");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "b.yaml:14:20: t: v <= 1 becomes <= 22.55 (measured: 10.5 to 20.5)\n"),
                ran.out);
  CHECK_MESSAGE(has(ran.err,
                    "b.yaml:21:24: not updated: v x > n: only conditions with plain numbers can be "
                    "updated\n"),
                ran.err);
  CHECK(has(ran.err,
            "not updated: v 7 +- 1: its 2 rows have values from 10.5 to 20.5; choose one "
            "by `where`\n"));
  const std::string text = shell.content("b.yaml");
  const std::string today = shell.sh("date +%F").out.substr(0, 10);
  const std::string note = "measured " + today + " in run 0 by tally ";
  CHECK_MESSAGE(has(text, "        reference: {_: \"<= 22.55\", note: \"" + note), text);
  CHECK(has(text, "\"}  # the old machine\n"));
  CHECK(has(text, "        _: \"10.5 +- 5%\"\n        note: \"" + note));
  CHECK(has(text, "_: \"10.35 .. 23.65\", note: \"acceptance; " + note));
  CHECK(has(text, "_: \">= 9.45\", note: \"lab; " + note));
  CHECK(!has(text, "2020"));
  // The updated file holds the run's values, apart from those that were left.
  const Ran again = shell.tally("result run -u b.yaml");
  CHECK(!has(again.err, "expected <= 22.55"));
  CHECK(!has(again.err, "expected 10.5 +-"));
  CHECK(has(again.err, "expected 7 +- 1"));
}

TEST_CASE("reference --update: what cannot be edited is left and said") {
  const Shell shell;
  shell.file("b.yaml", bench("{column: v, _: \"\\x3c= 1\"}"));
  CHECK(shell.tally("run b.yaml -q").code == 5);
  const std::string before = shell.content("b.yaml");
  const Ran ran = shell.tally("reference --update run");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "it is not written in one line without escapes; change it by hand"),
                ran.err);
  CHECK(shell.content("b.yaml") == before);
}

TEST_CASE("a row that has not ended is judged by nothing: compare, references, charts, history") {
  const Shell shell;
  const std::string text =
      "name: b\noutpath: run\n"
      "patternset: {name: pt, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
      "step: {name: s, kind: run, repeat: 8, do: [\"echo v=20$jube_wp_iteration\", {_: \"test ! -e "
      "DIR/go || touch done\", done_file: done}]}\n"
      "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
      "result:\n  use: a\n  chart: {name: c, x: jube_benchmark_id, y: v}\n"
      "  table: {name: t, style: csv, column: [jube_benchmark_id, {_: v, statistic: median, "
      "better: "
      "higher, reference: \">= 100\"}]}\n";
  std::string with_root = text;
  with_root.replace(with_root.find("DIR"), 3, shell.root());
  shell.file("go", "");
  shell.file("b.yaml", with_root);
  CHECK(shell.tally("run b.yaml -q").code == 0);
  CHECK(shell.sh("rm go").code == 0);
  shell.tally("run b.yaml -q");

  Ran ran = shell.tally("result run");
  CHECK(ran.code == 5);
  CHECK_MESSAGE(has(ran.out, "0 of 8,WAITING\n"), ran.out);
  CHECK_MESSAGE(
      has(ran.err,
          "no value of 'v median' counts: its repeats have not all ended; expected >= 100"),
      ran.err);
  CHECK_MESSAGE(
      has(shell.content("run/000001/result/c.svg"), "1 row has not ended and is not drawn"),
      shell.content("run/000001/result/c.svg"));
  ran = shell.tally("compare run/000000 run/000001");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "unclear: it has not ended in the second run"), ran.err);
  CHECK_MESSAGE(
      has(shell.tally("compare run/000000 run/000001 -s json").out, "\"status\": \"waiting\""),
      ran.out);
  ran = shell.tally("history run");
  CHECK_MESSAGE(has(ran.out, "| WAITING |"), ran.out);
  ran = shell.tally("reference --update run/000001");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "not updated: v >= 100: the run has no value for it"), ran.err);
}

TEST_CASE("an outcome that the step expects is marked, and is no measurement") {
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\n"
      "parameterset: {name: p, parameter: {name: n, type: int, _: \"1,2\"}}\n"
      "patternset: {name: pt, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
      "step: {name: s, kind: run, use: p, repeat: 3, expect: oom, do: \"echo v=$n; test $n = 1 "
      "-a $jube_wp_iteration != 1 || exit 3\"}\n"
      "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
      "result:\n  use: a\n  chart: {name: c, x: n, y: v}\n"
      "  database: {name: d, file: d.db, key: [n, v]}\n"
      "  table: {name: t, style: csv, column: [n, {_: v, statistic: median, reference: \"< 2\"}, "
      "{_: v, title: rel, relative_to: {n: 2}}]}\n");
  Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.out, "n,v,rel,repeats,status\n1,1.0,,2 of 3,done\n2,,,0 of 3,EXPECTED\n"),
                ran.out);
  CHECK_MESSAGE(has(ran.err, "'rel' is empty: its baseline row, with n=2, EXPECTED"), ran.err);
  CHECK(has(ran.err, "(s) expected: out of memory; it is left out of the row"));
  CHECK(has(shell.content("run/000000/result/c.svg"),
            "1 row ended in an outcome that the step expects and is not drawn"));
  CHECK(!has(shell.sh("strings d.db; od -c d.db").out, "no such"));
  CHECK_MESSAGE(has(ran.err, "1 of 2 rows"), ran.err);
}

TEST_CASE("references: what is no condition is an error, and what has no answer is no met one") {
  const auto file = [](const std::string& condition, const std::string& action) {
    return "name: b\noutpath: run\n"
           "parameterset: {name: ps, parameter: {name: n, type: int, _: \"1,2\"}}\n"
           "patternset: {name: pt, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
           "step: {name: s, kind: run, use: ps, do: echo v=$n}\n"
           "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
           "result: {use: a, table: {name: t, column: [n, v], reference: {column: v, _: '" +
           condition + "', action: " + action + "}}}\n";
  };
  for (const char* action : {"fail", "warn", "expect_fail"}) {
    for (const char* condition : {">> 1", "<< 1", "> 0, True", "x >> 1"}) {
      CAPTURE(condition);
      const Shell shell;
      shell.file("b.yaml", file(condition, action));
      const Ran ran = shell.tally("validate b.yaml");
      CHECK(ran.code == 2);
      CHECK_MESSAGE(has(ran.err, "it is neither true nor false\n"), ran.err);
    }
  }
  for (const char* condition : {"x > v[0]", "x < v.nope", "> (0, True)"}) {
    CAPTURE(condition);
    const Shell shell;
    shell.file("b.yaml", file(condition, "expect_fail"));
    const Ran ran = shell.tally("run b.yaml");
    CHECK(ran.code == 5);
    CHECK_MESSAGE(has(ran.err, " cannot be evaluated: "), ran.err);
    CHECK_MESSAGE(!has(ran.out, "missed as expected"), ran.out);
  }
  // It can in one row.
  const Shell shell;
  shell.file("b.yaml", file("1 / (n - 1) > 5", "expect_fail"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
}

// The exit codes of docs/results.md through the program, in one table.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// Points n=1 and n=2 print v=n.5. `table` goes on after the columns, `command` after the print.
std::string bench(const std::string& table, const std::string& command = "true") {
  return "name: b\noutpath: run\n"
         "parameterset: {name: ps, parameter: {name: n, type: int, _: \"1,2\"}}\n"
         "patternset: {name: pt, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
         "step: {name: s, kind: run, use: ps, do: \"echo v=$n.5; " +
         command +
         "\"}\n"
         "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: csv, column: [n, {_: v, better: higher}]" +
         table + "}}\n";
}

std::string reference(const std::string& keys) {
  return ", reference: {column: v, " + keys + "}";
}

}  // namespace

TEST_CASE("exit codes of run, continue, result and validate") {
  struct Row {
    std::string text;
    int run, result, validate;
    int report = 0;
  };
  const Row rows[] = {
      {bench(""), 0, 0, 0},
      {bench(reference("_: \"<= 3\"")), 0, 0, 0},
      {bench(reference("_: \"<= 2\"")), 5, 5, 0},
      {bench(reference("_: \"<= 2\", where: \"n == 1\"")), 0, 0, 0},
      {bench(reference("_: \"<= 2\", where: \"n == 3\"")), 2, 2, 2},  // no row to compare
      {bench(reference("_: \"<= 2\", action: warn")), 0, 0, 0},
      {bench(reference("_: \"<= 1\", action: expect_fail")), 0, 0, 0},
      {bench(reference("_: \"<= 2\", action: expect_fail")), 5, 5, 0},  // row 1 meets it
      {bench(reference("_: \"<= 2\", of: median")), 5, 5, 0},
      {bench(reference("_: \"<= 3\", of: median")), 0, 0, 0},
      {bench(reference("_: \"<= 2\", platform: booster")), 0, 0, 0},
      {bench(reference("_: \"<= 2\", on_fail: \"exit 3\"")), 5, 5, 0},
      // A failed workpackage: `run` says it; `result` shows the row, marked.
      {bench("", "test $n = 1"), 1, 0, 0},
      {bench(reference("_: \"<= 3\""), "test $n = 1"), 5, 5, 0},  // a failed row passes nothing
      // A table that cannot be made.
      {bench(", filter: \"1 / (n - n) > 1\""), 1, 1, 0, 1},
      {bench(", filter: \"nowhere > 1\""), 2, 2, 2},
      {bench(reference("_: \"<= 2\", action: fails")), 2, 2, 2},
      {bench(reference("_: \"<= 2\", of: mediam")), 2, 2, 2},
      {bench(", colour: red"), 2, 2, 2},
  };
  for (const Row& row : rows) {
    const Shell shell;
    INFO(row.text);
    shell.file("b.yaml", row.text);
    CHECK(shell.tally("validate b.yaml").code == row.validate);
    Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == row.run, ran.err);
    ran = shell.tally("result run");
    CHECK_MESSAGE(ran.code == row.result, ran.err);
    if (row.run == 2) continue;
    ran = shell.tally("continue run");
    CHECK_MESSAGE(ran.code == row.run, ran.err);
    for (const char* style : {"json", "jsonl", "markdown", "csv"}) {
      INFO(style);
      CHECK(shell.tally(std::string("result run -s ") + style).code == row.result);
    }
    CHECK(shell.tally("report run -o report.html").code == row.report);
  }
}

TEST_CASE("exit codes of a wrong command line and of what cannot be written") {
  const Shell shell;
  shell.file("b.yaml", bench(""));
  CHECK(shell.tally("run b.yaml -q").code == 0);
  struct Row {
    const char* arguments;
    int code;
  };
  const Row rows[] = {
      {"run none.yaml", 2},
      {"run b.yaml --no-such-option", 2},
      {"result none", 2},
      {"result run --select w", 2},
      {"result run -s yaml", 2},
      {"run b.yaml --junit none/report.xml", 2},
      {"report run -o none/report.html", 1},
      {"compare run/000000", 2},
      {"reference --update run", 2},  // the file has no references
      {"reference --update run --tolerance 5", 2},
      {"status run", 0},
      {"help exit-codes", 0},
  };
  for (const Row& row : rows) {
    INFO(row.arguments);
    const Ran ran = shell.tally(row.arguments);
    CHECK_MESSAGE(ran.code == row.code, (ran.out + ran.err));
  }
}

TEST_CASE("exit codes as jube: a missed reference changes nothing") {
  const Shell shell;
  shell.sh("ln -s \"$TALLY\" jube");
  shell.file("b.yaml", bench(reference("_: \"<= 2\", on_fail: \"touch seen\"")));
  CHECK(shell.sh("./jube run -r b.yaml").code == 0);
  CHECK(shell.sh("./jube result run").code == 0);
  CHECK(!shell.exists("run/000000/result/on_fail.log"));
}

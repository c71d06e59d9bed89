// Rows without a value, and rows that are not there yet: tables, references and comparisons say so.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// The engine dies at the second point, once, when the first one's value is known to others.
constexpr const char* kKill =
    "if test $i = 2 && mkdir $jube_benchmark_home/once; then until $$TALLY result "
    "$jube_benchmark_rundir | grep -qx -e 1,11.5 -e 1,11.5,done; do sleep 0.1; done; kill -9 "
    "$PPID; fi";
constexpr const char* kPrint = "echo v=1$i.5";

std::string bench(const std::string& steps, const std::string& analysed,
                  const std::string& reference, const std::string& table = "") {
  return "name: b\noutpath: run\n"
         "parameterset: {name: p, parameter: {name: i, type: int, _: \"1,2,3\"}}\n"
         "patternset: {name: o, pattern: {name: v, type: float, _: v=$jube_pat_fp}}\n"
         "step:\n" +
         steps + "analyser: {name: a, use: o, analyse: {step: " + analysed +
         ", file: stdout}}\n"
         "result: {use: a, table: {name: t, style: csv, sort: i, " +
         table + "column: [i, {_: v, better: higher, reference: {" + reference + "}}]}}\n";
}

std::string step(const std::string& name, const std::string& command, const std::string& keys) {
  return "- {name: " + name + ", kind: run, quiet_check: false, " + keys + "do: [\"" + command +
         "\"]}\n";
}

}  // namespace

TEST_CASE(
    "a row that has not ended is missed by a reference that chooses it, and by a comparison") {
  struct Shape {
    std::string steps, analysed;
  };
  const std::string print = kPrint;
  const Shape shapes[] = {
      {step("s", std::string(kKill) + "; " + print, "use: p, "), "s"},
      {step("s", kKill, "use: p, ") + step("r", print, "depend: s, "), "r"},
      // The points are those of the later step.
      {step("s", "if mkdir $jube_benchmark_home/once; then kill -9 $PPID; fi", "") +
           step("r", print, "use: p, depend: s, "),
       "r"},
  };
  struct Reference {
    const char* text;
    bool first_only;  // the row that has ended is the only one that it means
  };
  const Reference references[] = {{"_: '> 0'", false},
                                  {"_: '> 0', where: 'i == 1'", true},
                                  {"_: '> 0', where: 'i > 1 or v > 1'", false},
                                  {"_: '> 0', where: 'v > 1'", false}};
  for (const Shape& shape : shapes) {
    CAPTURE(shape.steps);
    const bool has_a_row = !has(shape.steps, "if mkdir");
    const Shell shell;
    shell.file("b.yaml", bench(shape.steps, shape.analysed, "_: '> 0'"));
    // The first run is whole, the second is killed.
    shell.sh("mkdir once; \"$TALLY\" -q run b.yaml; rm -r once; \"$TALLY\" -q run b.yaml -j2");
    for (const Reference& reference : references) {
      CAPTURE(std::string(reference.text));
      shell.file("b.yaml", bench(shape.steps, shape.analysed, reference.text));
      CHECK(shell.tally("result run -i 0 -u b.yaml").code == 0);
      const Ran ran = shell.tally("result run -i 1 -u b.yaml");
      CHECK_MESSAGE(ran.code == (reference.first_only && has_a_row ? 0 : 5), (ran.out + ran.err));
    }
    if (!has_a_row) continue;
    const Ran ran = shell.tally("compare run/000000 run/000001");
    CHECK_MESSAGE(ran.code == 1, (ran.out + ran.err));
    CHECK(shell.tally("continue run -i 1").code == 0);
    CHECK(shell.tally("result run -i 1").code == 0);
  }
}

TEST_CASE("a filter that leaves the missing row out takes it from the references, too") {
  const Shell shell;
  shell.file("b.yaml",
             bench(step("s", kKill, "use: p, ") + step("r", "echo v=1$i.5", "depend: s, "), "r",
                   "_: '> 0'", "filter: i < 2, "));
  shell.sh("\"$TALLY\" -q run b.yaml -j2");
  const Ran ran = shell.tally("result run");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
}

TEST_CASE("a step before the measured one that failed leaves no reference passed") {
  const Shell shell;
  shell.file("b.yaml",
             bench(step("s", "test $i != 2", "use: p, ") + step("r", "echo v=1$i.5", "depend: s, "),
                   "r", "_: '> 0'"));
  shell.sh("\"$TALLY\" -q run b.yaml");
  Ran ran = shell.tally("result run");
  CHECK_MESSAGE(ran.code == 5, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.err, "a row is missing: workpackage 1 (s) failed; expected > 0"), ran.err);
}

TEST_CASE("a row that shows statistics alone stays with its mark") {
  struct Outcome {
    const char* keys;
    const char* command;  // of the second point
    const char* mark;
  };
  const Outcome outcomes[] = {
      {"timeout: 1, expect: timeout, ", "sleep 5", "EXPECTED"},
      {"", "exit 1", "FAILED"},
      {"", "kill -9 $PPID", "RUNNING"},
  };
  for (const Outcome& outcome : outcomes) {
    for (const char* column : {"v", "{_: v, statistic: median}", "{_: v, statistic: mean}, v_n"}) {
      CAPTURE(outcome.mark);
      CAPTURE(column);
      const Shell shell;
      std::string text =
          bench(step("s", "echo v=1; test $i = 1 || { " + std::string(outcome.command) + "; }",
                     std::string("use: p, ") + outcome.keys),
                "s", "_: '> 0'");
      text.replace(text.find("1,2,3"), 5, "1,2");
      text.replace(text.find("sort: i, column: [i, {_: v"), std::string::npos,
                   std::string("column: [") + column + "]}}\n");
      shell.file("b.yaml", text);
      shell.sh("\"$TALLY\" -q run b.yaml -j1");
      const Ran ran = shell.tally("result run");
      CHECK_MESSAGE(has(ran.out, outcome.mark), (ran.out + ran.err));
      const Ran json = shell.tally("result run -s json");
      const std::string word = std::string(outcome.mark) == "EXPECTED" ? "expected"
                               : std::string(outcome.mark) == "FAILED" ? "failed"
                                                                       : "running";
      CHECK_MESSAGE(has(json.out, "\"status\":\"" + word + "\""), json.out);
    }
  }
}

TEST_CASE("nothing is divided by a baseline of 0, which is said") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset: {name: p, parameter: {name: i, type: int, _: \"0,1,2\"}}\n"
             "patternset: {name: o, pattern: {name: v, type: float, _: v=$jube_pat_fp}}\n"
             "step: {name: s, kind: run, quiet_check: false, use: p, do: echo v=$i}\n"
             "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, style: csv, column: [i, {_: v, title: r, "
             "relative_to: {i: 0}}, {_: v, title: q, statistic: median, relative_to: {i: 0}}, {_: "
             "w, title: x, expression: v - v, relative_to: {i: 1}}]}}\n");
  const Ran ran = shell.tally("-q run b.yaml");
  for (const char* note : {"'r' is empty: its baseline row, with i=0, has the value 0",
                           "'q' is empty: its baseline row, with i=0, has the value 0",
                           "'x' is empty: its baseline row, with i=1, has the value 0"})
    CHECK_MESSAGE(has(ran.err, note), (ran.out + ran.err));
}

TEST_CASE("a reference is not missed by rows that its `where` leaves out, whatever they lack") {
  struct Where {
    const char* text;
    bool leaves_out;  // the rows of i = 2
  };
  const Where wheres[] = {{"i == 1", true},
                          {"j == 1 and i == 1", true},
                          {"i == 1 and v > 0", true},
                          {"v > 0 and i < 2", true},
                          {"not (i > 1 or v < 0)", true},
                          {"i in (1, 3) and j > 0", true},
                          {"v > 0 and '$i' == '1'", true},
                          {"v > 0 if i == 1 else False", true},
                          {"i == 1 or v > 0", false},
                          {"i > 0 and v > 0", false},
                          {"i * j == 1 and v > 0", false},
                          {"v > 0", false}};
  // Rows of i = 2 are missing, as a step before failed, or are there without a value.
  for (const bool before : {true, false}) {
    const Shell shell;
    std::string text = bench(before ? step("s", "test $i = 1", "use: p, ") +
                                          step("r", "echo v=1$i.5", "depend: s, use: q, ")
                                    : step("r", "test $i = 1 && echo v=1$i.5", "use: [p, q], "),
                             "r", "_: '> 0'");
    const std::string set =
        "parameterset: {name: p, parameter: {name: i, type: int, _: \"1,2,3\"}}";
    REQUIRE(has(text, set));
    text.replace(text.find(set), set.size(),
                 "parameterset: [{name: p, parameter: {name: i, type: int, _: \"1,2\"}}, "
                 "{name: q, parameter: {name: j, type: int, _: \"1,2\"}}]");
    shell.file("b.yaml", text);
    shell.sh("\"$TALLY\" -q run b.yaml");
    for (const Where& where : wheres) {
      CAPTURE(before);
      CAPTURE(where.text);
      std::string asked = text;
      asked.replace(asked.find("_: '> 0'"), 8,
                    std::string("_: '> 0', where: \"") + where.text + "\"");
      shell.file("u.yaml", asked);
      const Ran ran = shell.tally("result run -u u.yaml");
      CHECK_MESSAGE(ran.code == (where.leaves_out ? 0 : 5), (ran.out + ran.err));
    }
  }
}

TEST_CASE("a table without columns of a step has none of its rows, however they ended") {
  struct Outcome {
    const char* keys;
    const char* command;  // of x for i = 2
  };
  const Outcome outcomes[] = {
      {"expect: timeout, ", "exit 4"}, {"", "exit 9"}, {"", "kill -9 $PPID"}};
  // Two analysers; one of both steps, whose files have sets of their own.
  const char* const analysers[] = {
      "analyser: [{name: a, use: pt, analyse: {step: s, file: stdout}}, {name: aw, use: pw, "
      "analyse: "
      "{step: x, file: stdout}}]\nresult: {use: [a, aw], ",
      "analyser: {name: a, analyse: [{step: s, file: {_: stdout, use: pt}}, {step: x, file: {_: "
      "stdout, use: pw}}]}\nresult: {use: a, "};
  for (const Outcome& outcome : outcomes) {
    for (const char* analyser : analysers) {
      // x itself, or a step before x, so that rows of x are missing.
      for (const bool before : {false, true}) {
        CAPTURE(outcome.command);
        CAPTURE(analyser);
        CAPTURE(before);
        const std::string ends = "test $i = 1 || " + std::string(outcome.command);
        const Shell shell;
        shell.file(
            "b.yaml",
            "name: b\noutpath: run\n"
            "parameterset: {name: p, parameter: {name: i, type: int, _: \"1,2\"}}\n"
            "patternset: [{name: pt, pattern: {name: v, type: float, _: 'v=$jube_pat_fp'}}, "
            "{name: pw, pattern: {name: w, type: float, _: 'w=$jube_pat_fp'}}]\n"
            "step:\n" +
                step("s", "echo v=$i", "use: p, ") +
                (before ? step("b", ends, "use: p, ") + step("x", "echo w=$i", "depend: b, ")
                        : step("x", "echo w=$i; " + ends, "use: p, " + std::string(outcome.keys))) +
                analyser +
                "table: [{name: t, style: csv, column: [{_: v, reference: '> 0'}]}, "
                "{name: u, style: csv, column: [{_: y, expression: w * 2}]}]}\n");
        shell.sh("\"$TALLY\" -q run b.yaml -j1");
        const Ran ran = shell.tally("result run");
        CHECK_MESSAGE(has(ran.out, "v\n1.0\n2.0\n\n"), (ran.out + ran.err));
        CHECK_MESSAGE(!has(ran.err, "reference missed"), ran.err);
        if (!before) CHECK_MESSAGE(has(ran.out, "y,status\n2.0,done\n"), ran.out);
      }
    }
  }
}

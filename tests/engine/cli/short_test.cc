// Values that were measured for too short a time, through the program.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// Point 1 measures for 0.035 s, point 2 for a second, point 3 for longer, and point 4 does not say how
// long. `other` is never short.
std::string bench(const std::string& columns, const std::string& keys = "",
                  const std::string& more = "") {
  return "name: b\noutpath: run\n"
         "parameterset: {name: ps, parameter: {name: n, type: int, _: \"1,2,3,4\"}}\n"
         "patternset:\n  name: pt\n  pattern:\n"
         "    - {name: secs, type: float, unit: s, _: \"secs=$jube_pat_fp\"}\n"
         "    - {name: rate, type: float, unit: x/s, measured_over: secs, _: "
         "\"rate=$jube_pat_fp\"}\n"
         "    - {name: twice, type: float, mode: python, _: \"2 * $rate\"}\n"
         "    - {name: thrice, type: float, mode: python, _: \"$twice + $rate_avg\"}\n"
         "    - {name: other, type: float, _: \"other=$jube_pat_fp\"}\n"
         "step: {name: s, kind: run, use: ps, " +
         keys +
         "do: \"case $n in 1) echo secs=0.035;; 2) echo secs=1.0;; 3) echo secs=7e2;; esac; echo "
         "rate=1$n.5 other=2\"}\n"
         "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: csv, column: " +
         columns + "}" + more + "}\n";
}

}  // namespace

TEST_CASE("a value of less than a second marks its row, in every form") {
  const Shell shell;
  shell.file("b.yaml", bench("[n, {_: rate, better: higher}, {_: other, better: higher}]", "",
                             ", chart: {name: c, kind: scatter, x: n, y: rate}, database: {name: "
                             "d, file: d.sqlite, key: [n, rate]}"));
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  const std::string table =
      "n,rate[x/s],other,machine\n1,11.5,2.0,SHORT\n2,12.5,2.0,\n3,13.5,2.0,\n4,14.5,2.0,\n";
  CHECK_MESSAGE(has(ran.out, table), (ran.out + ran.err));
  CHECK_MESSAGE(
      has(ran.err, "note: t: row 1 SHORT: 'rate' was measured for less than 1 s; measure longer\n"),
      ran.err);
  CHECK_MESSAGE(
      has(ran.err, "1 of 4 rows in the database have values that were measured for less than 1 s"),
      ran.err);
  CHECK(has(shell.content("run/000000/result/t.dat"), "1,11.5,2.0,SHORT\n"));
  CHECK(has(shell.content("run/000000/result/c.svg"),
            "1 row has values that were measured for less than a second."));
  CHECK(has(shell.tally("result run -s json").out, "\"short\":{\"rate\":0.035}"));
  CHECK(has(shell.tally("result run -s markdown").out, "| 1 | 11.5 | 2 | SHORT |"));
  CHECK(has(shell.tally("report run --format md").out, "| 1 | 11.5 | 2.0 | SHORT |"));
  // compare and history mark the metric, and not the other one.
  REQUIRE(shell.tally("run b.yaml -q").code == 0);
  CHECK(has(shell.tally("result run -i all -s csv").out, "0,1,11.5,2.0,SHORT\n"));
  ran = shell.tally("compare run/000000 run/000001 -s csv");
  CHECK_MESSAGE(has(ran.out, "1,rate,11.5,1,11.5,1,+0.00,,,,6,unclear SHORT\n"), ran.out);
  CHECK_MESSAGE(has(ran.out, "1,other,2,1,2,1,+0.00,,,,6,unclear\n"), ran.out);
  CHECK_MESSAGE(has(ran.out, "2,rate,12.5,1,12.5,1,+0.00,,,,6,unclear\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "SHORT: it was measured for less than a second in both runs"),
                ran.err);
  CHECK(has(shell.tally("compare run/000000 run/000001 -s json").out, "\"short\": true"));
  CHECK(has(shell.tally("history run --metric rate -s csv").out, "1 of 1,SHORT,\n"));
  CHECK(has(shell.tally("history run --metric rate -s json").out, "\"short\": true"));
  CHECK(!has(shell.tally("history run --metric other -s csv").out, "SHORT"));
}

TEST_CASE("what is computed from a short value is short, and nothing else") {
  const Shell shell;
  for (const char* columns :
       {"[n, rate]", "[n, rate_avg]", "[n, rate_max]", "[n, twice]", "[n, thrice]",
        "[n, {title: x, _: y, expression: rate * 2}]",
        "[n, {title: x, _: y, expression: twice + other}]", "[n, {_: rate, statistic: median}]",
        "[n, {_: twice, statistic: mean}]", "[n, {_: rate, relative_to: {n: 2}}]"}) {
    CAPTURE(std::string(columns));
    shell.clear();
    shell.file("b.yaml", bench(columns));
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK_MESSAGE(has(ran.err, "row 1 SHORT: "), (ran.out + ran.err));
  }
  for (const char* columns :
       {"[n, {title: x, _: y, expression: \"'rate' if other else 'twice'\"}]",
        "[n, {_: x, expression: other / baseline.rate, relative_to: {n: 2}}]", "[n, other]",
        "[n, rate_cnt]", "[n, rate_n]", "[n, twice_n]", "[n, rate_avg_n]",
        "[n, {title: x, _: y, expression: rate_cnt + rate_n}]", "[n, secs]",
        "[n, {title: x, _: y, expression: other / secs}]"}) {
    CAPTURE(std::string(columns));
    shell.clear();
    shell.file("b.yaml", bench(columns));
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK_MESSAGE(!has(ran.out + ran.err, "SHORT"), (ran.out + ran.err));
  }
}

TEST_CASE("a metric that is computed from another column is short as that is") {
  const Shell shell;
  shell.file("b.yaml", bench("[n, {_: e, expression: rate * 2}, {_: f, expression: e * 2, better: "
                             "higher}, {_: g, expression: other * 2, better: higher}]"));
  for (int i = 0; i < 2; ++i) REQUIRE(shell.tally("-q run b.yaml").code == 0);
  const Ran ran = shell.tally("compare run/000000 run/000001 -s csv");
  CHECK_MESSAGE(has(ran.out, "1,f,46,1,46,1,+0.00,,,,6,unclear SHORT\n"), (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "1,g,4,1,4,1,+0.00,,,,6,unclear\n"), ran.out);
  CHECK(has(shell.tally("history run --metric f -s csv").out, "1 of 1,SHORT,\n"));
}

TEST_CASE("of repeats, the shortest counts; a failed one does not") {
  const Shell shell;
  std::string text = bench("[n, {_: rate, statistic: median}]", "repeat: 3, ");
  const std::string says = "case $n in";
  text.replace(
      text.find(says), says.size(),
      "case $n$jube_wp_iteration in 11) echo secs=0.1 rate=1 other=2; exit 3;; 1*) echo secs=1.5;; "
      "21) echo secs=0.9;; 2*) echo secs=4;; 30) echo secs=0;; 3*) exit 3;; esac; case x in");
  shell.file("b.yaml", text);
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.err, "rows 2, 3 SHORT: 'rate' was measured for less than 1 s"),
                (ran.out + ran.err));
}

TEST_CASE("a mistake in measured_over is an error") {
  const Shell shell;
  std::string text = bench("[n, rate]");
  text.replace(text.find("measured_over: secs"), 19, "measured_over: sec");
  shell.file("b.yaml", text);
  const Ran ran = shell.tally("validate b.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.out + ran.err, "measured_over: there is no pattern 'sec'"),
                (ran.out + ran.err));
  CHECK(has(ran.out + ran.err, "secs"));
  // Any other unit would be taken for seconds, so that 35 msec were long enough.
  for (const char* unit : {"msec", "MS", "sec", "S", "usec", "minutes", "cycles", "x/s", "$u"}) {
    CAPTURE(unit);
    text = bench("[n, rate]");
    text.replace(text.find("unit: s,"), 8, "unit: " + std::string(unit) + ",");
    shell.file("b.yaml", text);
    for (const char* command : {"validate b.yaml", "run b.yaml"}) {
      const Ran said = shell.tally(command);
      CHECK(said.code == 2);
      CHECK_MESSAGE(has(said.err, "measured_over: the unit '" + std::string(unit) +
                                      "' of 'secs' is none of "
                                      "time"),
                    said.err);
    }
  }
  text = bench("[n, rate]");
  text.replace(text.find("measured_over: secs"), 19, "measured_over: rate");
  shell.file("b.yaml", text);
  CHECK(has(shell.tally("validate b.yaml").err, "measured_over: 'rate' is measured over itself"));
}

TEST_CASE("the seconds may have another unit of time") {
  const std::pair<const char*, const char*> units[] = {
      {"ms", "1,11.5,2.0,SHORT\n2,12.5,2.0,SHORT\n3,13.5,2.0,SHORT\n4,14.5,2.0,\n"},
      {"us", "1,11.5,2.0,SHORT\n2,12.5,2.0,SHORT\n3,13.5,2.0,SHORT\n4,14.5,2.0,\n"},
      {"min", "1,11.5,2.0\n2,12.5,2.0\n3,13.5,2.0\n4,14.5,2.0\n"},
      {"h", "1,11.5,2.0\n2,12.5,2.0\n3,13.5,2.0\n4,14.5,2.0\n"},
      {"''", "1,11.5,2.0,SHORT\n2,12.5,2.0,\n3,13.5,2.0,\n4,14.5,2.0,\n"},
  };
  for (const auto& [unit, rows] : units) {
    CAPTURE(unit);
    const Shell shell;
    std::string text = bench("[n, rate, other]", "quiet_check: false, ");
    text.replace(text.find("unit: s,"), 8, "unit: " + std::string(unit) + ",");
    shell.file("b.yaml", text);
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(has(ran.out, rows), (ran.out + ran.err));
  }
}

namespace {

// Files a.log and b.log, each read with a set of its own, whose times have the same name.
std::string two_files(const std::string& a, const std::string& b, const std::string& columns,
                      const std::string& keys = "", bool b_first = false) {
  const std::string files[] = {"{use: pa, _: a.log}", "{use: pb, _: b.log}"};
  return "name: b\noutpath: run\npatternset:\n"
         "- {name: pa, pattern: [{name: secs, type: float, unit: s, _: 'secs=(\\S+)'}, {name: "
         "rate, "
         "type: float, measured_over: secs, _: 'rate=(\\S+)'}]}\n"
         "- {name: pb, pattern: [{name: secs, type: float, unit: ms, _: 'secs=(\\S+)'}, {name: "
         "rate2, "
         "type: float, measured_over: secs, _: 'rate=(\\S+)'}]}\n"
         "step: {name: s, kind: run, quiet_check: false, do: 'printf \"" +
         a + "\" > a.log; printf \"" + b + "\" > b.log'}\nanalyser: {name: a, " + keys +
         "analyse: {step: s, file: [" + files[b_first ? 1 : 0] + ", " + files[b_first ? 0 : 1] +
         "]}}\nresult: {use: a, table: {name: t, style: csv, column: [" + columns + "]}}\n";
}

}  // namespace

TEST_CASE("the time of a rate is that of its own file, in the unit of its own set") {
  struct Case {
    const char* a;  // seconds
    const char* b;  // milliseconds
    const char* column;
    bool is_short;
  };
  const Case cases[] = {{"2", "35", "rate", false},      {"2", "35", "rate2", true},
                        {"35", "3500", "rate", false},   {"35", "3500", "rate2", false},
                        {"0.5", "35000", "rate", true},  {"0.5", "35000", "rate2", false},
                        {"2", "35", "rate, rate2", true}};
  const Shell shell;
  for (const Case& one : cases) {
    for (const bool b_first : {false, true}) {
      for (const char* rows : {"", "rows: secs, "}) {
        CAPTURE(one.a);
        CAPTURE(one.b);
        CAPTURE(one.column);
        CAPTURE(b_first);
        CAPTURE(rows);
        shell.clear();
        shell.file("b.yaml", two_files("secs=" + std::string(one.a) + " rate=5\\n",
                                       "secs=" + std::string(one.b) + " rate=6\\n", one.column,
                                       rows, b_first));
        const Ran ran = shell.tally("-q run b.yaml");
        CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
        CHECK_MESSAGE(has(ran.out, "SHORT") == one.is_short, (ran.out + ran.err));
      }
    }
  }
  // The median is of what each repeat says of itself.
  shell.clear();
  std::string text =
      two_files("secs=2 rate=5\\n", "secs=35 rate=6\\n",
                "{_: rate, statistic: median}, {_: rate, title: n, statistic: mean}");
  text.insert(text.find("kind: run"), "repeat: 2, ");
  shell.file("b.yaml", text);
  CHECK(!has(shell.tally("-q run b.yaml").out, "SHORT"));
}

namespace {

const char* kBothSteps = "[{step: s, file: stdout}, {step: c, file: stdout}]";
const char* kRate = "{name: r, type: float, measured_over: t, _: 'r=(\\S+)'}";
const char* kTime = "{name: t, type: float, unit: s, _: 't=(\\S+)'}";

// A step that depends on another, or not.
std::string step(const char* name, const std::string& command, const std::string& keys = "") {
  return "- {name: " + std::string(name) + ", kind: run, quiet_check: false, " + keys + "do: '" +
         command + "'}\n";
}

const std::string kThen =
    step("s", "echo t=OWN r=8") + step("c", "echo t=OTHER k=1", "depend: s, ");

}  // namespace

TEST_CASE("the time of a rate is that of the step and of the file that print it") {
  struct Case {
    const char* what;
    std::string patterns, steps, analysed, columns = "r, k", rows = "";
  };
  const std::string usual = std::string(kTime) + ", " + kRate;
  const Case cases[] = {
      {"of an earlier step", usual, kThen, kBothSteps},
      {"of the middle of three", usual,
       step("s", "echo t=OTHER") + step("m", "echo t=OWN r=8", "depend: s, ") +
           step("c", "echo t=OTHER k=1", "depend: m, "),
       "[{step: s, file: stdout}, {step: m, file: stdout}, {step: c, file: stdout}]"},
      {"of one of two", usual,
       step("s", "echo t=OWN r=8") + step("m", "echo t=OTHER") +
           step("c", "echo k=1", "depend: [m, s], "),
       "[{step: m, file: stdout}, {step: s, file: stdout}, {step: c, file: stdout}]"},
      {"the later rate hides the earlier", usual,
       step("s", "echo t=OTHER r=1") + step("c", "echo t=OWN r=8 k=1", "depend: s, "), kBothSteps},
      {"in repeats", usual,
       step("s", "echo t=OWN r=8") + step("c", "echo t=OTHER k=1", "repeat: 2, depend: s, "),
       kBothSteps, "{_: r, statistic: median}, k"},
      {"of repeats", usual,
       step("s", "echo t=OWN r=8", "repeat: 2, ") + step("c", "echo t=OTHER k=1", "depend: s, "),
       kBothSteps, "{_: r, statistic: median}, k"},
      {"of what is computed from the rate",
       usual + ", {name: d, type: float, mode: python, _: '2 * $r'}", kThen, kBothSteps, "d, k"},
      {"of a computed rate",
       std::string(kTime) + ", {name: x, type: float, _: 'r=(\\S+)'}, {name: r, type: float, mode: "
                            "python, measured_over: t, _: '2 * $x'}",
       kThen, kBothSteps},
      {"of a rate that is computed with the later time",
       std::string(kTime) + ", {name: x, type: float, _: 'x=(\\S+)'}, {name: r, type: float, mode: "
                            "python, measured_over: t, _: '$x / $t'}",
       step("s", "echo t=OTHER x=8") + step("c", "echo t=OWN k=1", "depend: s, "), kBothSteps},
      {"a computed time",
       "{name: u, type: float, _: 't=(\\S+)'}, {name: t, type: float, unit: s, mode: python, _: '1 "
       "* $u'}, " +
           std::string(kRate),
       kThen, kBothSteps},
      {"a computed time of repeats",
       "{name: u, type: float, _: 't=(\\S+)'}, {name: t, type: float, unit: s, mode: python, _: '1 "
       "* $u'}, " +
           std::string(kRate),
       step("s", "echo t=OWN r=8", "repeat: 2, ") + step("c", "echo t=OTHER k=1", "depend: s, "),
       kBothSteps, "{_: r, statistic: median}, k"},
      {"rows of the earlier step", usual,
       step("s", "echo k=1 t=OWN r=8; echo k=2 t=OWN r=9") +
           step("c", "echo t=OTHER", "depend: s, "),
       kBothSteps, "r, k", "rows: k, "},
      {"of one of two files", usual, step("s", "echo t=OTHER k=1 >a; echo t=OWN r=8 >b"),
       "{step: s, file: [a, b]}"},
      {"of one of two files of one entry", usual,
       step("s", "echo t=OTHER k=1 >a; echo t=OWN r=8 >b"), "{step: s, file: 'a,b'}"},
      {"of one file of a glob", usual, step("s", "echo t=OTHER k=1 >o.a; echo t=OWN r=8 >o.b"),
       "{step: s, file: 'o.*'}"},
      {"through a link", usual, kThen, "{step: c, file: [stdout, s/stdout]}"},
      {"rows of one file, and another", usual, step("s", "echo k=1 t=OWN r=8; echo t=OTHER >f"),
       "{step: s, file: [stdout, f]}", "r, k", "rows: k, "},
      // Where the rate's own say nothing, the others are asked.
      {"of another file", usual, step("s", "echo t=OWN k=1 >a; echo r=8 >b"),
       "{step: s, file: [a, b]}"},
      {"of the step before", usual,
       step("s", "echo t=OWN") + step("c", "echo r=8 k=1", "depend: s, "), kBothSteps},
      {"of the step behind", usual,
       step("s", "echo r=8") + step("c", "echo t=OWN k=1", "depend: s, "), kBothSteps},
  };
  const Shell shell;
  for (const Case& one : cases) {
    for (const bool is_short : {true, false}) {
      CAPTURE(one.what);
      CAPTURE(is_short);
      std::string steps = one.steps;
      const auto put = [&](const std::string& word, const char* seconds) {
        for (size_t at = steps.find(word); at != std::string::npos; at = steps.find(word))
          steps.replace(at, word.size(), seconds);
      };
      put("OWN", is_short ? "0.1" : "5");
      put("OTHER", is_short ? "5" : "0.1");
      shell.clear();
      shell.file("b.yaml",
                 "name: b\noutpath: run\npatternset: {name: q, pattern: [{name: k, type: int, _: "
                 "'k=(\\S+)'}, " +
                     one.patterns + "]}\nstep:\n" + steps + "analyser: {name: a, use: q, " +
                     one.rows + "analyse: " + one.analysed +
                     "}\nresult: {use: a, table: [{name: t, style: csv, column: [" + one.columns +
                     "]}, {name: u, style: csv, column: [{_: k, statistic: max}]}]}\n");
      const Ran ran = shell.tally("-q run b.yaml");
      CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
      CHECK_MESSAGE(has(ran.out, "SHORT") == is_short, (ran.out + ran.err));
      // The journal says the same where the files are gone.
      shell.sh("rm -r run/000000/00000*");
      const Ran kept = shell.tally("-q result run");
      CHECK_MESSAGE(kept.out == ran.out, (kept.out + kept.err));
    }
  }
}

TEST_CASE("a time of another set is asked where the rate's own files have none") {
  const Shell shell;
  // One set of all files has the time; the rate is in one of them.
  for (const char* secs : {"35", "3500"}) {
    CAPTURE(secs);
    shell.clear();
    shell.file(
        "b.yaml",
        "name: b\noutpath: run\npatternset:\n"
        "- {name: pt, pattern: {name: secs, type: float, unit: ms, _: 'secs=(\\S+)'}}\n"
        "- {name: pa, pattern: {name: rate, type: float, measured_over: secs, _: 'rate=(\\S+)'}}\n"
        "step:\n- {name: s, kind: run, quiet_check: false, do: 'echo secs=" +
            std::string(secs) +
            "'}\n- {name: r, kind: run, quiet_check: false, depend: s, do: 'echo rate=5'}\n"
            "analyser: {name: a, analyse: [{step: s, file: {use: pt, _: stdout}}, {step: r, "
            "file: {use: pa, _: stdout}}]}\n"
            "result: {use: a, table: {name: t, style: csv, column: [rate]}}\n");
    const Ran ran = shell.tally("-q run b.yaml");
    CHECK_MESSAGE(has(ran.out, "SHORT") == (std::string(secs) == "35"), (ran.out + ran.err));
  }
}

TEST_CASE("a set that has nothing to do with the rate may have a time's name in another unit") {
  const Shell shell;
  const std::string good =
      "name: b\noutpath: run\npatternset:\n"
      "- {name: pt, pattern: [{name: secs, type: float, unit: s, _: 'secs=(\\S+)'}, {name: rate, "
      "type: float, measured_over: secs, _: 'rate=(\\S+)'}]}\n"
      "- {name: counters, pattern: {name: secs, type: int, unit: cycles, _: 'cycles=(\\d+)'}}\n"
      "step: {name: s, kind: run, quiet_check: false, do: 'echo secs=0.5 rate=5; echo cycles=7 > "
      "c.log'}\n"
      "analyser: [{name: a, use: pt, analyse: {step: s, file: stdout}}, {name: ac, use: counters, "
      "analyse: {step: s, file: c.log}}]\n"
      "result: [{use: a, table: {name: t, style: csv, column: [rate]}}, {use: ac, table: {name: c, "
      "style: csv, column: [secs]}}]\n";
  shell.file("b.yaml", good);
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "rate,machine\n5.0,SHORT\n"), ran.out);
  // Of a set that no analyser uses, the time in the set itself counts.
  std::string unused = good;
  unused.replace(unused.find("unit: s,"), 8, "unit: msec,");
  unused.replace(unused.find("use: pt"), 7, "use: counters");
  unused.replace(unused.find("column: [rate]"), 14, "column: [secs]");
  shell.file("b.yaml", unused);
  CHECK(has(shell.tally("validate b.yaml").err, "the unit 'msec' of 'secs' is none of time"));
}

TEST_CASE("a file given by -u is checked as one that is run") {
  const Shell shell;
  const std::string good = bench("[n, rate]");
  shell.file("b.yaml", good);
  REQUIRE(shell.tally("-q run b.yaml").code == 0);
  struct Mistake {
    const char *what, *by, *message;
  };
  const Mistake mistakes[] = {
      {"unit: s,", "unit: msec,", "the unit 'msec' of 'secs' is none of time"},
      {"unit: s,", "unit: cycles,", "the unit 'cycles' of 'secs' is none of time"},
      {"measured_over: secs", "measured_over: rate", "'rate' is measured over itself"},
      {"2 * $rate", "2 * $ratte", "pattern 'twice': '$ratte' is neither a parameter nor a pattern"},
      {"[n, rate]", "[n, rate], filter: m > 1", "'m' is not the name of a value"},
      {"[n, rate]", "[n, {_: y, expression: ratte * 2}]", "'ratte' is not the name of a value"},
  };
  for (const Mistake& mistake : mistakes) {
    std::string text = good;
    CAPTURE(mistake.by);
    text.replace(text.find(mistake.what), std::string(mistake.what).size(), mistake.by);
    shell.file("u.yaml", text);
    for (const char* options : {"", " --strict", " -t x"}) {
      const Ran ran = shell.tally("result run -u u.yaml" + std::string(options));
      CHECK_MESSAGE(ran.code != 0, (ran.out + ran.err));
      CHECK_MESSAGE(has(ran.err, mistake.message), ran.err);
    }
  }
  // The run itself stays as it was.
  CHECK(has(shell.tally("result run").out, "1,11.5,SHORT\n"));
}

TEST_CASE("a ratio to a short value is short, also where no table shows that") {
  const char* const columns[] = {
      "{_: rate, title: speedup, relative_to: {n: 1}}",
      "{_: x, expression: rate / baseline.rate, relative_to: {n: 1}}",
      "{_: x, expression: other / baseline.twice, relative_to: {n: 1}}",
      "{_: eff, expression: rate / n}, {_: x, expression: other / baseline.eff, relative_to: {n: "
      "1}}",
      "{_: x, expression: rate * 2, relative_to: {n: 1}}",
      "{_: rate, title: speedup, statistic: median, relative_to: {n: 1}}"};
  const Shell shell;
  for (const char* column : columns) {
    CAPTURE(column);
    shell.clear();
    std::string text = bench("[n, " + std::string(column) + "], filter: n > 1");
    shell.file("b.yaml", text);
    const Ran ran = shell.tally("-q run b.yaml");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, "rows 1 to 3 SHORT: "), (ran.out + ran.err));
  }
  // Nothing of the baseline is short, or what is relative is a count; the metric beside it is not.
  for (const char* column : {"{_: rate, title: speedup, relative_to: {n: 2}}",
                             "{_: x, expression: rate / baseline.other, relative_to: {n: 1}}",
                             "{_: x, expression: rate / baseline.rate_cnt, relative_to: {n: 1}}",
                             "{_: other, title: o, relative_to: {n: 1}}"}) {
    CAPTURE(column);
    shell.clear();
    shell.file("b.yaml", bench("[n, " + std::string(column) + "], filter: n > 1"));
    const Ran ran = shell.tally("-q run b.yaml");
    CHECK_MESSAGE((ran.code == 0 && !has(ran.out + ran.err, "SHORT")), (ran.out + ran.err));
  }
  shell.clear();
  shell.file(
      "b.yaml",
      bench("[n, {_: rate, better: higher}, {_: rate, title: speedup, relative_to: {n: 1}}]"));
  for (int i = 0; i < 2; ++i) REQUIRE(shell.tally("-q run b.yaml").code == 0);
  const Ran ran = shell.tally("compare run/000000 run/000001 -s csv");
  CHECK_MESSAGE(has(ran.out, "3,rate,13.5,1,13.5,1,+0.00,,,,5,unclear\n"), ran.out);
}

TEST_CASE("the journal keeps of which file a time is, and what several sets find once") {
  struct Case {
    const char* what;
    const char* patterns;  // sets
    const char* analysed;
    const char* rows = "";
  };
  const char* one_set =
      "{name: q, pattern: [{name: r, type: float, measured_over: t, _: 'r=(\\S+)'}, {name: t, "
      "type: "
      "float, unit: s, _: 't=(\\S+)'}, {name: k, type: int, _: 'k=(\\S+)'}]}";
  const char* two_sets =
      "[{name: q, pattern: [{name: r, type: float, measured_over: t, _: 'r=(\\S+)'}, {name: t, "
      "type: float, unit: s, _: 't=(\\S+)'}, {name: k, type: int, _: 'k=(\\S+)'}]}, {name: q2, "
      "pattern: [{name: r, type: float, _: 'r=(\\S+)'}, {name: t, type: float, unit: ms, _: "
      "'t=(\\S+)'}, {name: k, type: int, _: 'k=(\\S+)'}]}]";
  const Case cases[] = {
      {"two files", one_set, "use: q, analyse: {step: s, file: [a.txt, b.txt]}"},
      {"one entry", one_set, "use: q, analyse: {step: s, file: 'a.txt,b.txt'}"},
      {"a glob", one_set, "use: q, analyse: {step: s, file: '*.txt'}"},
      {"two sets", two_sets, "analyse: {step: s, file: [{use: q, _: a.txt}, {use: q2, _: b.txt}]}"},
      {"the other first", two_sets,
       "analyse: {step: s, file: [{use: q2, _: b.txt}, {use: q, _: a.txt}]}"},
      {"rows", one_set, "use: q, analyse: {step: s, file: [a.txt, b.txt]}", "rows: k, "},
      {"rows of two sets", two_sets,
       "analyse: {step: s, file: [{use: q, _: a.txt}, {use: q2, _: b.txt}]}", "rows: k, "},
  };
  const Shell shell;
  for (const Case& one : cases) {
    for (const char* seconds : {"5", "0.5"}) {
      CAPTURE(one.what);
      CAPTURE(seconds);
      shell.clear();
      shell.file(
          "b.yaml",
          "name: b\noutpath: run\npatternset: " + std::string(one.patterns) +
              "\nstep: {name: s, kind: run, quiet_check: false, repeat: 2, do: 'echo k=1 r=8 "
              "t=" +
              seconds + " > a.txt; echo k=2 t=0.1 > b.txt'}\nanalyser: {name: a, " + one.rows +
              one.analysed +
              "}\nresult: {use: a, table: {name: t, style: csv, column: [k_cnt, k_sum, "
              "t_cnt, t_max, {_: r, statistic: median, null_value: '-'}]}}\n");
      const Ran ran = shell.tally("-q run b.yaml");
      CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
      CHECK_MESSAGE(has(ran.out, "SHORT") == (std::string(seconds) == "0.5"), ran.out);
      shell.sh("rm -r run/000000/00000*");
      const Ran kept = shell.tally("-q result run");
      CHECK_MESSAGE(kept.out == ran.out, (ran.out + kept.out + kept.err));
      CHECK_MESSAGE(has(kept.err, "its values are those that the journal kept"), kept.err);
    }
  }
}

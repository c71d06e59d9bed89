// Mistakes that make a run measure nothing are errors before it, in `validate` (where nothing has to be
// computed), `run -n` and `run` alike.
#include <doctest/doctest.h>

#include <iterator>
#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

struct Mistake {
  const char* what;
  std::string text;
  const char* message;
  bool in_validate = true;
};

std::string bench(const std::string& set, const std::string& pattern, const std::string& columns) {
  return "name: b\noutpath: run\n"
         "parameterset: {name: p, " +
         set +
         "}\n"
         "step: {name: s, kind: run, use: p, do: 'echo \"t = $n\"'}\n"
         "patternset: {name: o, pattern: {name: t, " +
         pattern +
         "}}\n"
         "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, column: " +
         columns + "}}\n";
}

const char* kSet = "parameter: {name: n, type: int, _: [1, 2]}";
const char* kPattern = "type: float, _: 't = $jube_pat_fp'";

}  // namespace

TEST_CASE("what measures nothing is an error, the same one in validate, run -n and run") {
  const Mistake mistakes[] = {
      {"a number without a group", bench(kSet, "type: float, _: 't = [0-9.]+'", "[n, t]"),
       "b.yaml:5:58: error: pattern 't' is a number, and has no group that says which part of the "
       "match it is\n"},
      {"a rule that Python cannot read",
       bench("where: '$n >> ', " + std::string(kSet), kPattern, "[n]"),
       "error: a rule of parameter set 'p': Python cannot read \"$n >>\": invalid syntax\n"},
      {"a rule that leaves nothing",
       bench("where: $n > 5, " + std::string(kSet), kPattern, "[n, t]"),
       "b.yaml:3:32: error: step 's' has no point: this rule leaves out all 2\n"},
      {"a rule with a bare name that leaves nothing",
       bench("where: 'n in (3, 4) or not n < 9', " + std::string(kSet), kPattern, "[n, t]"),
       "b.yaml:3:32: error: step 's' has no point: this rule leaves out all 2\n"},
      {"a rule that has to be computed and leaves nothing",
       bench("where: $n % 2 == 3, " + std::string(kSet), kPattern, "[n, t]"),
       "b.yaml:3:32: error: step 's' has no point: this rule leaves out all 2\n", false},
      {"a computed pattern that Python cannot read",
       bench(kSet, "mode: python, _: '$n *'", "[n, t]"),
       "b.yaml:5:59: error: pattern 't': Python cannot read \"$n *\": invalid syntax\n"},
      {"a filter that Python cannot read", bench(kSet, kPattern, "[n, t], filter: '$n ='"),
       "b.yaml:7:59: error: the filter: Python cannot read \"$n =\": "},
      {"a format that fits no value", bench(kSet, kPattern, "[n, {_: t, format: q3}]"),
       "b.yaml:7:51: error: column 't': no value can be formatted as \"q3\": Invalid format "
       "specifier\n"},
      {"text in a list of numbers",
       bench("parameter: {name: n, type: int, _: [1, abc]}", kPattern, "[n, t]"),
       "error: 'abc' is not a valid int, which parameter 'n' has to be\n"},
      {"text in a list of numbers, as one text",
       bench("parameter: {name: n, type: float, _: '1, 2.5, 3 4'}", kPattern, "[n, t]"),
       "error: '3 4' is not a valid float, which parameter 'n' has to be\n"},
      {"an unknown column", bench(kSet, kPattern, "[n, tt]"),
       "b.yaml:7:47: error: column 'tt' of table 't' is neither a parameter nor a pattern\n"
       "    result: {use: a, table: {name: t, column: [n, tt]}}\n"
       "                                                  ^~\n"
       "hint: did you mean 't'?\n"},
      {"an expression as a column", bench(kSet, kPattern, "[n, 1/t]"),
       "hint: a computed column has a name of its own: {_: NAME, expression: 1/t}\n"},
      {"an expression as a column beside a baseline",
       bench(kSet, kPattern, "[n, {_: 1/t, title: speedup, relative_to: {n: 1}}]"),
       "hint: a computed column has a name of its own: {_: NAME, expression: 1/t}\n"},
  };
  for (const Mistake& mistake : mistakes) {
    for (const char* command :
         {"validate b.yaml", "run -n b.yaml", "run b.yaml", "-q run b.yaml"}) {
      CAPTURE(mistake.what);
      CAPTURE(command);
      const Shell shell;
      shell.file("b.yaml", mistake.text);
      const Ran ran = shell.tally(command);
      const bool known = mistake.in_validate || command[0] != 'v';
      CHECK_MESSAGE(ran.code == (known ? 2 : 0), (ran.out + ran.err));
      CHECK_MESSAGE(has(ran.err, mistake.message) == known, (ran.out + ran.err));
      CHECK(!shell.exists("run"));
    }
  }
}

TEST_CASE("--strict refuses what is a warning, in validate, run -n and run alike") {
  const std::string warned[] = {
      // It may be made by what runs before.
      "fileset: {name: fs, copy: made.txt}\n"
      "step: [{name: m, do: echo}, {name: s, kind: run, use: fs, do: cat made.txt}]\n",
      // Found in the plan.
      "step: {name: s, kind: run, container: {image: x.sif}, do: echo}\n",
  };
  const char* const messages[] = {
      ": step 's': no files found using \"made.txt\"\n",
      ": step 's' has no `launch`: its commands run on this machine, and its container is not "
      "used\n"};
  for (size_t i = 0; i < std::size(warned); ++i) {
    for (const char* command : {"validate b.yaml", "run -n b.yaml", "run b.yaml"}) {
      CAPTURE(command);
      CAPTURE(messages[i]);
      const Shell shell;
      shell.file("b.yaml", "name: b\noutpath: run\n" + warned[i]);
      Ran ran = shell.tally("--strict " + std::string(command));
      CHECK_MESSAGE(ran.code == 2, (ran.out + ran.err));
      CHECK(has(ran.err, "error" + std::string(messages[i])));
      CHECK(!shell.exists("run"));
      ran = shell.tally(command);
      CHECK(has(ran.err, "warning" + std::string(messages[i])));
      CHECK(ran.code != 2);
    }
  }
}

TEST_CASE("too many repeats are an error with the number of workpackages") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\nparameterset: {name: p, parameter: {name: n, _: [1, 2]}}\n"
             "step: {name: s, kind: run, use: p, repeat: 100000000, do: echo $n}\n");
  for (const char* command : {"validate b.yaml", "run -n b.yaml", "run b.yaml"}) {
    const Ran ran = shell.tally(command);
    CHECK(ran.code == 2);
    CHECK(ran.err ==
          "b.yaml:4:44: error: step 's' would have 200000000 workpackages; 1000000 are the most\n"
          "    step: {name: s, kind: run, use: p, repeat: 100000000, do: echo $n}\n"
          "                                               ^~~~~~~~~\n"
          "hint: its points, iterations and repeats, and the workpackages of the steps that it "
          "depends on, are multiplied; --max-workpackages allows more\n");
    CHECK(!shell.exists("run"));
  }
  // The limit may be another one.
  shell.sh("sed -i s/100000000/2/ b.yaml");
  for (const std::string command : {"validate", "run -n", "run", "script --out jobs"}) {
    CAPTURE(command);
    const Ran ran = shell.tally(command + " b.yaml --max-workpackages 3");
    CHECK(ran.code == 2);
    CHECK(has(ran.err, "step 's' would have 4 workpackages; 3 are the most\n"));
  }
  CHECK(shell.tally("run b.yaml --max-workpackages 4").code == 0);
  CHECK(shell.tally("continue run").code == 0);
}

TEST_CASE("what may have a value, or has one without a group, is fine") {
  const char* const patterns[] = {
      "type: string, _: 't = [0-9.]+'",     // a text: its presence counts
      "type: float, _: '[0-9.]+'",          // the whole match is the number
      "type: float, _: '(?<=t = )[0-9]+'",  // what looks around is no part of the match
      "type: float, _: '-?[0-9]+(?:e[0-9]+)?'",
      "type: int, default: 0, _: 'absent $jube_pat_int'",
  };
  for (const char* pattern : patterns) {
    CAPTURE(pattern);
    const Shell shell;
    shell.file("b.yaml", bench(kSet, pattern, "[n, t, t_cnt, status]"));
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  }
  // A column of what tags leave out is empty in this run.
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset: {name: p, parameter: {name: n, type: int, _: [1, 2]}}\n"
             "step: {name: s, kind: run, use: p, do: 'echo t = $n'}\n"
             "patternset:\n"
             "  - {name: o, pattern: {name: t, type: float, _: 't = $jube_pat_fp'}}\n"
             "  - {name: more, tag: big, pattern: {name: big, _: 'b(.)'}}\n"
             "analyser: {name: a, use: [o], analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, column: [n, t, big]}}\n");
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK(has(ran.err, "warning: column 'big' of table 't' is neither a parameter nor a pattern"));
}

TEST_CASE("a file that no workpackage has is an error where a value is read from it alone") {
  const auto run = [](const char* metrics, const char* command = "echo v = $n | tee v.txt") {
    const Shell shell;
    shell.file("b.yaml", std::string("parameters: {n: [1, 2]}\nrun: ") + command + "\nmetrics: {" +
                             metrics + "}\n");
    return shell.tally("-q run b.yaml");
  };
  Ran ran = run("v: {_: 'v = $jube_pat_fp', file: w.txt}");
  CHECK_MESSAGE(ran.code == 1, ran.err);
  CHECK_MESSAGE(has(ran.err,
                    "b.yaml:3:44: error: no file 'w.txt' in the work directory of workpackage 0 "
                    "(run): "),
                ran.err);
  CHECK(has(ran.err, " (and 1 more of this kind)\n    metrics: {v: "));
  // Some have it; it may be without a value.
  CHECK(run("v: {_: 'v = $jube_pat_fp', file: v.txt}", "test $n = 1 || echo v = $n >v.txt").code ==
        0);
  CHECK(run("v: {_: 'v = $jube_pat_fp', file: w.txt, default: 0}").code == 0);
  CHECK(run("v: {_: 'v = $jube_pat_fp', file: w.txt, null_value: '-'}").code == 0);
}

TEST_CASE("what is computed from a pattern that matched nothing was not measured either") {
  struct Case {
    const char* patterns;  // beside v, which matches, and z and u, which match nothing
    const char* column;
    bool error;
    const char* keys = "";  // of the step
  };
  const char* plus = "{name: c, type: float, mode: python, _: '$z + 1'}";
  const Case cases[] = {
      {plus, "c", true},
      {"{name: c, mode: python, _: '$z + 1'}", "c", true},
      {"{name: c, type: int, mode: python, _: '$z_max + 1'}", "c", true},
      {"{name: c, mode: text, _: 'x$u'}", "c", true},
      {"{name: c, mode: shell, _: 'echo x$u'}", "c", true},
      {"{name: c, type: int, mode: perl, _: '$z + 1'}", "c", true},
      {"{name: c, mode: python, _: \"'$u' + 'x'\"}", "c", true},
      {"{name: b, type: float, mode: python, _: '$z + 1'}, {name: c, type: float, mode: python, _: "
       "'$b + 1'}",
       "c", true},
      {plus, "{_: e, expression: 'c * 2'}", true},
      {plus, "c_max", true},
      {plus, "{_: c, statistic: median}", true, "repeat: 2, "},
      {plus, "{_: c, title: r, relative_to: {n: 1}}", true},
      // It fails in each row, though it has all that it needs.
      {"{name: c, type: float, mode: python, _: '$v / 0'}", "c", true},
      {"{name: c, type: float, mode: python, _: '\"abc\"'}", "c", true},
      {"{name: c, type: float, mode: python, _: '1 / ($v - 1)'}", "c", false},
      // The file says what a missing value means, or no table shows it.
      {plus, "{_: c, null_value: '-'}", false},
      {plus, "{_: e, expression: 'c * 2', null_value: '-'}", false},
      {"{name: c, type: float, mode: python, default: 3, _: '$z + 1'}", "c", false},
      {"{name: c, type: float, mode: python, default: 3, _: '$v / 0'}", "c", false},
      {"{name: d, type: float, default: 2, _: 'z=(.)'}, {name: c, type: float, mode: python, _: "
       "'$d + 1'}",
       "c", false},
      {plus, "v", false},
      {"{name: m, type: float, _: 'v=(2)'}, {name: c, type: float, mode: python, _: '$m + 1'}", "c",
       false},
  };
  for (const Case& one : cases) {
    CAPTURE(one.patterns);
    CAPTURE(one.column);
    const Shell shell;
    shell.file("b.yaml",
               "name: b\noutpath: run\n"
               "parameterset: {name: p, parameter: {name: n, type: int, _: [1, 2]}}\n"
               "step: {name: s, kind: run, " +
                   std::string(one.keys) + "use: p, do: 'echo v=$n'}\n" +
                   "patternset: {name: o, pattern: [{name: v, type: float, _: 'v=(.)'}, {name: z, "
                   "type: float, _: 'z=(.)'}, {name: u, _: 'z=(.)'}, " +
                   one.patterns + "]}\n" +
                   "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
                   "result: {use: a, table: {name: t, column: [n, " +
                   one.column + "]}}\n");
    Ran ran = shell.tally("-q run b.yaml");
    CHECK_MESSAGE(ran.code == (one.error ? 1 : 0), ran.err);
    CHECK_MESSAGE(has(ran.err, "error: pattern '") == one.error, ran.err);
    ran = shell.tally("result run");
    CHECK_MESSAGE(ran.code == (one.error ? 1 : 0), ran.err);
  }
}

TEST_CASE("what is computed from a value that a row or a repeat lacks has no value") {
  // n=1 has no y.
  const auto file = [](const std::string& pattern, const std::string& column) {
    return "name: b\noutpath: run\n"
           "parameterset: {name: p, parameter: {name: n, type: int, _: [1, 2]}}\n"
           "step: {name: s, kind: run, use: p, do: 'test $n = 1 || echo y=3; echo v=1'}\n"
           "patternset: {name: o, pattern: [{name: y, type: float, _: 'y=(.)'}, "
           "{name: v, type: int, _: 'v=(.)'}, " +
           pattern +
           "]}\nanalyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
           "result: {use: a, table: {name: t, column: [n, " +
           column + "]}}\n";
  };
  struct Case {
    const char *pattern, *column, *rows;
    int code = 0;
  };
  const Case cases[] = {
      {"{name: d, type: float, mode: perl, _: '$y + 1'}", "d", "1,nan\n2,4.0\n"},
      {"{name: d, type: float, mode: perl, _: '$y + 1'}", "{_: d, null_value: '-'}",
       "1,-\n2,4.0\n"},
      {"{name: d, type: float, mode: perl, default: 7, _: '$y + 1'}", "d", "1,7.0\n2,4.0\n"},
      {"{name: d, mode: text, _: x$y}", "{_: d, null_value: '-'}", "1,-\n2,x3.0\n"},
      {"{name: d, mode: python, _: '$v + $y'}", "{_: d, null_value: '-'}", "1,-\n2,4.0\n"},
      {"{name: d, mode: shell, _: 'echo $HOME$y | wc -w'}", "{_: d, null_value: '-'}", "1,-\n2,1"},
      {"{name: d, type: int, mode: python, _: 'len(\"$y\")'}", "{_: d, reference: < 50}",
       "1,nan\n2,3\n", 5},
      {"{name: c, type: int, mode: perl, _: '$y + 1'}, "
       "{name: d, type: int, mode: perl, _: '$c > 0 ? 1 : 2'}",
       "{_: d, null_value: '-'}", "1,-\n2,1\n"},
  };
  for (const Case& one : cases) {
    CAPTURE(one.pattern);
    CAPTURE(one.column);
    const Shell shell;
    shell.file("b.yaml", file(one.pattern, one.column));
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(has(ran.out, std::string("n,d\n") + one.rows), (ran.out + ran.err));
    CHECK_MESSAGE(ran.code == one.code, ran.err);
  }
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\nparameterset: {name: p, parameter: {name: n, _: 1}}\n"
             "step: {name: s, kind: run, repeat: 3, use: p, "
             "do: 'test $jube_wp_iteration = 1 || echo y=9'}\n"
             "patternset: {name: o, pattern: [{name: y, type: int, _: 'y=(.)'}, "
             "{name: d, type: int, mode: perl, _: '$y + 1'}]}\n"
             "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, column: [n, {_: d, statistic: min}]}}\n");
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "\n1,10,2 of 3\n"), (ran.out + ran.err));
}

// Mistakes that make a run measure nothing are errors before it, in `validate` (where nothing has to be
// computed), `run -n` and `run` alike.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/survive/shell.h"

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
       "b.yaml:3:32: error: step 's' has no point: this rule leaves out all 2\n", false},
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

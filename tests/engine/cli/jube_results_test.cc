// Results of JUBE's files, where they were once other than JUBE's. The expected tables are those of
// JUBE 2.5.1.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/survive/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

TEST_CASE("two analyse of one step are both read, and a file that is named twice counts once") {
  const Shell shell;
  std::string text =
      "name: b\noutpath: run\n"
      "patternset:\n- {name: pt, pattern: {name: v, _: 'v=(.)'}}\n"
      "- {name: pu, pattern: {name: w, _: 'w=(.)'}}\n"
      "step: {name: s, do: echo v=1 w=2}\n"
      "analyser: {name: a, use: pt, analyse: [{step: s, file: [stdout, \"stdout,stdout\"]},\n"
      "  {step: s, file: [{use: pu, _: stdout}, stdout]}]}\n"
      "result: {use: a, table: {name: t, column: [v, v_cnt, w, w_cnt]}}\n";
  shell.file("b.yaml", text);
  CHECK(has(shell.tally("run b.yaml").out, "v,v_cnt,w,w_cnt\n1,2,2,1\n"));
  text.insert(text.find("do: echo"), "kind: run, ");
  shell.file("own.yaml", text);
  CHECK(has(shell.tally("run own.yaml").out, "v,v_cnt,w,w_cnt\n1,2,2,1\n"));
}

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

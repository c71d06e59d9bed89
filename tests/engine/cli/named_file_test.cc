// Files that a user names for what a command writes: a link stays, a FIFO gets the bytes.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

TEST_CASE("a file that a command is to write may be a link or a FIFO") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset: {name: p, parameter: {name: n, type: int, _: \"1,2\"}}\n"
             "step: {name: s, kind: run, quiet_check: false, use: p, do: echo v=$n}\n"
             "patternset: {name: o, pattern: {name: v, type: int, _: v=$jube_pat_int}}\n"
             "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, column: [n, v]}}\n");
  CHECK(shell.tally("run b.yaml --junit first.xml").code == 0);
  const struct {
    const char *command, *text;
  } cases[] = {
      {"report run --format md -o out.svg", "| n"},   {"report run -o out.svg", "<html"},
      {"plot run -x n -y v -o out.svg", "<svg"},      {"run b.yaml --junit out.svg", "<testsuite"},
      {"meter --json out.svg -- true", "\"format\""},
  };
  for (const auto& [command, text] : cases) {
    CAPTURE(std::string(command));
    shell.sh("rm -f out.svg real; echo old > real; chmod 600 real; ln -s real out.svg");
    Ran ran = shell.tally(command);
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK(shell.sh("readlink out.svg; stat -c %a real").out == "real\n600\n");
    CHECK(has(shell.content("real"), text));
    ran = shell.sh("rm -f out.svg; mkfifo out.svg; timeout 60 cat out.svg > got & \"$TALLY\" " +
                   std::string(command) + " && wait && test -p out.svg && cat got");
    CHECK_MESSAGE((ran.code == 0 && has(ran.out, text)), (ran.out + ran.err));
  }
}

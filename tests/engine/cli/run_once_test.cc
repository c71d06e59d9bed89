// How often one `tally run` opens what it needs, seen by the system's calls.
#include <doctest/doctest.h>

#include <sstream>
#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Shell;

namespace {

// How many files of this name were opened, by strace's lines: openat(AT_FDCWD, "run/name", ...) = 3
int opened(const std::string& trace, const std::string& name) {
  std::istringstream lines(trace);
  int count = 0;
  for (std::string line; std::getline(lines, line);) {
    const bool named = has(line, "\"" + name + "\"") || has(line, "/" + name + "\"");
    if (named && !has(line, " = -1 ")) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("run reads each file once, opens its journal once and evaluates each value once") {
  const Shell shell;
  if (shell.sh("strace -o /dev/null true").code != 0) {
    MESSAGE("skipped: strace cannot be used here");
    return;
  }
  shell.file("sets.yaml",
             "parameterset: {name: p, parameter: [{name: i, type: int, _: \"1,2,3\"}, {name: z, "
             "mode: shell, _: \"echo $i >> $jube_benchmark_home/evaluated; printf z$i\"}]}\n");
  shell.file("bench.yaml",
             "name: b\noutpath: run\n"
             "step: {name: s, use: {from: sets.yaml, _: p}, timeout: 60, do: 'echo v=$i z=$z'}\n"
             "patternset: {name: q, pattern: {name: v, type: int, _: \"v=$jube_pat_int\"}}\n"
             "analyser: {name: a, use: q, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, style: csv, column: [z, v]}}\n");
  const auto ran = shell.sh("strace -f -o trace -e trace=open,openat \"$TALLY\" run bench.yaml");
  REQUIRE_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.out, "z,v\nz1,1\nz2,2\nz3,3\n"), ran.out);
  const std::string trace = shell.content("trace");
  CHECK(opened(trace, "bench.yaml") == 1);
  CHECK(opened(trace, "sets.yaml") == 1);
  CHECK(opened(trace, "journal.sqlite") == 1);
  CHECK(shell.content("evaluated") == "1\n2\n3\n");
}

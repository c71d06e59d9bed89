// Work of set-ups that is reused, and when it must not be.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/survive/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

std::string workflow(const std::string& command) {
  return "name: b\noutpath: run\n"
         "step: [{name: b, kind: build, do: '" +
         command +
         "'},\n"
         " {name: s, kind: run, depend: b, do: 'cat b/stdout'}]\n"
         "patternset: {name: o, pattern: {name: v, type: int, _: 'v=$jube_pat_int'}}\n"
         "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: csv, column: [v]}}\n";
}

}  // namespace

TEST_CASE("reused work: what a command names is compared") {
  // Each reads src/v, a file of the named folder.
  for (const char* command :
       {"cd $jube_benchmark_home/src && cat v", "make -s -C $jube_benchmark_home/src",
        "cat $jube_benchmark_home/src/*", "S=$jube_benchmark_home/src; cat $$S/v",
        "find $jube_benchmark_home/src -name v -exec cat {} +",
        "cd $jube_benchmark_home && cat src/v"}) {
    CAPTURE(command);
    const Shell shell;
    shell.file("b.yaml", workflow(command));
    CHECK(
        shell.sh("mkdir src; echo v=1 > src/v; printf 'all:\\n\\tcat v\\n' > src/Makefile").code ==
        0);
    CHECK(has(shell.tally("run b.yaml").out, "v\n1\n"));
    Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(has(shell.content("run/000001/run.log"), "reused"),
                  (shell.content("run/000001/run.log") + ran.err));
    CHECK(has(ran.out, "v\n1\n"));
    shell.file("src/v", "v=2\n");
    ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(has(ran.out, "v\n2\n"), (ran.out + ran.err));
  }
}

TEST_CASE("reused work: programs that PATH finds, and search paths") {
  const Shell shell;
  shell.file("b.yaml", workflow("measure"));
  shell.file("bin/measure", "#!/bin/sh\necho v=1\n");
  const std::string run = "chmod +x bin/measure; PATH=\"$PWD/bin:$PATH\" \"$TALLY\" run b.yaml";
  CHECK(has(shell.sh(run).out, "v\n1\n"));
  shell.file("bin/measure", "#!/bin/sh\n: anew\necho v=2\n");
  CHECK(has(shell.sh(run).out, "v\n2\n"));
  CHECK(has(shell.sh(run + "; cat run/000002/run.log").out, "reused"));
  CHECK(
      !has(shell.sh("export CPATH=/elsewhere; " + run + "; cat run/000003/run.log").out, "reused"));
}

TEST_CASE("remove: the work of set-ups that another run uses stays") {
  const Shell shell;
  shell.file("b.yaml", workflow("echo v=1"));
  CHECK(shell.tally("run b.yaml").code == 0);
  CHECK(shell.tally("run b.yaml").code == 0);
  for (const char* words : {"remove run -i 0 -f", "remove run -i 0 -w 0 -f"}) {
    const Ran ran = shell.tally(words);
    CHECK_MESSAGE(ran.code == 1, ran.err);
    CHECK_MESSAGE(has(ran.err,
                      "run/000001/000000_b/work' is a link to the work of its set-up; "
                      "remove that run as well (--id takes several)"),
                  ran.err);
  }
  CHECK(has(shell.tally("result run -i 1").out, "v\n1\n"));
  CHECK(shell.tally("remove run -i 0 1 -f").code == 0);
  CHECK((!shell.exists("run/000000") && !shell.exists("run/000001")));
}

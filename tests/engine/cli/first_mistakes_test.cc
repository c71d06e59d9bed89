// What people who do not know Tally yet get wrong, and what they are told.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/cli/refused.h"

using tally::testing::has;
using tally::testing::is_refused;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// Four rows, of the given command.
std::string four_rows(const std::string& before) {
  return "name: b\noutpath: b_run\nparameters: {n: [1, 2], m: [1, 2]}\nrun: '" + before +
         "echo \"rate = $(( 10 * $n + $m ))\"'\n"
         "metrics: {rate: {_: 'rate = $jube_pat_fp', better: higher}}\n";
}

}  // namespace

TEST_CASE("mistakes in the keys of a short file") {
  is_refused(
      "platform: slurm\nname: b\nrun: echo\n",
      "b.yaml:1:1: error: `platform` at the top of a file describes a platform, and names none\n"
      "    platform: slurm\n"
      "    ^~~~~~~~\n"
      "hint: write `on: slurm` beside `run`, or `platform: slurm` in a step\n");
  is_refused(
      "name: b\nparameters: {flags: [-O0, -O2]}\nbuild: cc $flag -o x x.c\nrun: build/x\n",
      "b.yaml:3:11: error: 'flag' is not a parameter of step 'build', and the environment has no "
      "variable of that name\n"
      "    build: cc $flag -o x x.c\n"
      "              ^~~~~\n"
      "hint: did you mean 'flags'?\n");
  is_refused(
      "name: b\nrun: echo\nmetrics: {t: 'time = ($jube_pat_fp'}\n",
      "b.yaml:3:14: error: pattern 't' is not a regular expression: missing closing parenthesis "
      "in \"time = ($jube_pat_fp\"\n"
      "    metrics: {t: 'time = ($jube_pat_fp'}\n"
      "                 ^~~~~~~~~~~~~~~~~~~~~~\n");
  is_refused(
      "name: b\nrun: echo\nmetrics: {rows: size, t: 'a (.)'}\n",
      "b.yaml:3:17: error: pattern 'rows' is a number, and has no group that says which part of "
      "the match it is\n"
      "    metrics: {rows: size, t: 'a (.)'}\n"
      "                    ^~~~\n"
      "hint: `rows` stands beside `run`; or put parentheses around the value\n");
}

TEST_CASE("--set of a parameter that is not there") {
  const Shell shell;
  shell.file("b.yaml", four_rows(""));
  CHECK(shell.tally("run -n b.yaml --set size=3").err ==
        "tally: error: --set size=3: no parameter is called 'size'\nhint: there are: n, m\n");
}

TEST_CASE("compare: the runs of one folder, and a run that measured nothing") {
  const Shell shell;
  shell.file("b.yaml", four_rows(""));
  CHECK(shell.tally("run -q b.yaml").code == 0);
  CHECK(shell.tally("run -q b.yaml").code == 0);
  const Ran named = shell.tally("compare b_run/000000 b_run/000001");
  CHECK_MESSAGE(named.code == 0, named.err);
  Ran ran = shell.tally("compare b_run -i 0 -i 1");
  CHECK_MESSAGE(ran.out == named.out, ran.err);
  CHECK(shell.tally("compare b_run -i -2 -i last").out == named.out);
  CHECK(shell.sh("cd b_run && \"$TALLY\" compare -i 0 -i 1").out == named.out);
  CHECK(shell.tally("compare b_run b_run -i 0").err ==
        "tally: error: -i chooses runs of one folder, and several are named\nhint: leave out -i\n");
  shell.sh("ln -s \"$TALLY\" tally");
  ran = shell.sh("./tally compare b_run");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(ran.err ==
                    "tally: error: one run alone needs --by PARAMETER or --null\n"
                    "hint: ./tally compare b_run/000000 b_run/000001\n",
                ran.err);
  // Equal notes are one.
  shell.file("b.yaml", four_rows("exit 3; "));
  CHECK(shell.tally("run -q b.yaml").code == 1);
  ran = shell.tally("compare b_run -i 1 -i 2");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "\nnote: rows 1 to 4: unclear: it failed in the second run\n"),
                ran.err);
  // Rows that matches make are not there in a run that failed.
  const std::string rows =
      "name: c\noutpath: c_run\nrows: size\nrun: 'BEFORE printf \"1 5\\n2 6\\n\"'\n"
      "metrics: {size: '^(\\d+) ', bw: {_: '^\\d+ (\\d+)', better: higher}}\n";
  const auto run_with = [&](const std::string& before) {
    std::string text = rows;
    text.replace(text.find("BEFORE"), 6, before);
    shell.file("c.yaml", text);
    return shell.tally("run -q c.yaml");
  };
  CHECK(run_with("true;").code == 0);
  CHECK(run_with("exit 3;").code == 1);
  ran = shell.tally("compare c_run -i 0 -i 1");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(
      has(ran.err, "tally: error: the second run has nothing to compare: its row failed\n"),
      ran.err);
}

TEST_CASE(
    "plot: one run with several rows at one place of the axis has a line for each parameter") {
  const Shell shell;
  shell.file("b.yaml", four_rows(""));
  CHECK(shell.tally("run -q b.yaml").code == 0);
  const Ran ran = shell.tally("plot b_run -i all --metric rate -o history.svg");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(shell.content("history.svg"), "<title>2: n 1, rate 12</title>"));
  CHECK(shell.tally("plot b_run -x m --metric rate -o m.svg").code == 2);
}

TEST_CASE("the folder beside the runs names them") {
  const Shell shell;
  shell.file("b.yaml", four_rows(""));
  CHECK(shell.tally("run -q b.yaml").code == 0);
  CHECK(shell.tally("result").err ==
        "tally: error: there are no runs in '.'\nhint: there are some in 'b_run'\n");
  CHECK(shell.sh("mkdir empty && \"$TALLY\" result empty").err ==
        "tally: error: there are no runs in 'empty'\n"
        "hint: name the directory that `run` printed, or the input file\n");
}

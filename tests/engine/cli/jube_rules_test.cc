// What JUBE's users rely on beyond a plain run: results defined anew, a run that the file's own
// selection leaves out, words that JUBE ignores, and its exit codes.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/survive/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

constexpr const char* kBench =
    "name: b\noutpath: runs\n"
    "parameterset: {name: p, parameter: {name: a, _: \"1,2\"}}\n"
    "step: {name: s, use: p, do: 'echo \"t=$a u=2\"'}\n";

constexpr const char* kResults =
    "patternset: {name: pt, pattern: [{name: t, _: \"t=(.)\"}, {name: u, tag: more, _: "
    "\"u=(.)\"}]}\n"
    "analyser: {name: an, use: pt, analyse: {step: s, file: stdout}}\n"
    "result: {use: an, table: {name: x, style: csv, column: [a, t, {_: u, tag: more}]}}\n";

}  // namespace

TEST_CASE("result -u: a file with nothing but results takes the run's steps and parameters") {
  const Shell shell;
  shell.file("bench.yaml", kBench);
  shell.file("results.yaml", std::string("name: b\n") + kResults);
  shell.tally("run bench.yaml");
  Ran ran = shell.tally("analyse runs -u results.yaml");
  CHECK(ran.code == 0);
  CHECK(ran.err == "");
  CHECK(has(shell.tally("result runs").out, "a,t\n1,1\n2,2\n"));
  // What the run has done is known: a step that it does not have is an error.
  std::string other = shell.content("results.yaml");
  other.replace(other.find("step: s"), 7, "step: w");
  shell.file("other.yaml", other);
  ran = shell.tally("result runs -u other.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "other.yaml:3:47: error: unknown step 'w' in analyser 'an'"), ran.err);
  CHECK(has(ran.err, "hint: there are: s\n"));
  // A pattern may not have the name of a parameter of the run.
  other = shell.content("results.yaml");
  other.replace(other.find("name: t,"), 8, "name: a,");
  shell.file("other.yaml", other);
  ran = shell.tally("result runs -u other.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "error: pattern 'a' has the name of a parameter of step 's'"),
                ran.err);
  CHECK_MESSAGE(has(ran.err, "bench.yaml:3:43: note: the parameter is here"), ran.err);
  CHECK(has(shell.tally("result runs").out, "a,t\n1,1\n2,2\n"));
}

TEST_CASE("result -u: steps and sets of the file are not used, and their faults do not matter") {
  const Shell shell;
  shell.file("bench.yaml", kBench);
  shell.tally("run bench.yaml");
  shell.file("new.yaml",
             "name: b\noutpath: elsewhere\n"
             "parameterset: {name: p, init_with: gone.xml, parameter: {name: t, _: clash}}\n"
             "step: {name: s, use: [p, nosuch], depend: s, iterations: x, do: echo}\n" +
                 std::string(kResults));
  Ran ran = shell.tally("result runs -u new.yaml");
  CHECK(ran.code == 0);
  CHECK(ran.err == "");
  CHECK(has(ran.out, "a,t\n1,1\n2,2\n"));
}

TEST_CASE("result -u -t: the tags are kept with the file") {
  const Shell shell;
  shell.file("bench.yaml", kBench);
  shell.file("results.yaml", std::string("name: b\n") + kResults);
  shell.tally("run bench.yaml");
  shell.tally("analyse runs -u results.yaml -t more");
  CHECK(has(shell.tally("result runs").out, "a,t,u\n1,1,2\n2,2,2\n"));
}

TEST_CASE("a run that the file's selection leaves out can be used") {
  const Shell shell;
  shell.file("bench.xml",
             "<jube><selection><not>b3</not></selection>\n"
             "<benchmark name=\"b1\" outpath=\"r\"><step name=\"s\"><do>echo 1</do></step>"
             "</benchmark>\n"
             "<benchmark name=\"b3\" outpath=\"r\"><step name=\"s\"><do done_file=\"ok\">echo 3"
             "</do><do>echo done</do></step></benchmark></jube>\n");
  shell.tally("run bench.xml --not-bench b1");
  shell.sh("touch r/000000/000000_s/work/ok");
  const Ran ran = shell.tally("continue r");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(shell.content("r/000000/000000_s/work/stdout") == "3\ndone\n");
  CHECK(shell.tally("info r -i 0").code == 0);
  CHECK(shell.tally("analyse r").code == 0);
}

TEST_CASE("by the name jube: one of Tally's keys makes no other key an error") {
  const Shell shell;
  shell.sh("ln -s \"$TALLY\" jube");
  shell.file("bench.xml",
             "<jube><benchmark name=\"b\" outpath=\"r\"><parameterset name=\"p\">"
             "<parameter name=\"n\" description=\"number\" note=\"x\">1,2</parameter>"
             "</parameterset><step name=\"s\" timeout=\"3600\" info=\"x\"><use>p</use>"
             "<use from=\"sets.xml\">q</use><do>echo $n $m</do></step></benchmark></jube>\n");
  shell.file("sets.xml",
             "<jube><parameterset name=\"q\"><parameter name=\"m\" description=\"words\" "
             "info=\"x\">7</parameter></parameterset></jube>\n");
  const Ran ran = shell.sh("./jube run bench.xml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.err, "warning: unknown key 'info' in step 's'"), ran.err);
  CHECK(shell.content("r/000000/000001_s/work/stdout") == "2 7\n");
  CHECK(shell.tally("validate bench.xml").code == 2);
}

TEST_CASE("an outpath with a name that is not in the environment") {  // JUBE: an error, too
  const Shell shell;
  shell.sh("ln -s \"$TALLY\" jube");
  shell.file("bench.xml",
             "<jube>\n<benchmark name=\"b\" outpath=\"r/$jube_benchmark_name\"><step name=\"s\">"
             "<do>echo</do></step></benchmark></jube>\n");
  for (const char* program : {"\"$TALLY\"", "./jube"}) {
    const Ran ran = shell.sh(std::string(program) + " run bench.xml");
    CHECK(ran.code != 0);
    CHECK_MESSAGE(has(ran.err,
                      "bench.xml:2:30: error: outpath: the environment has no variable "
                      "'$jube_benchmark_name'"),
                  ran.err);
  }
  CHECK(!shell.exists("r"));
  CHECK(shell.tally("run bench.xml -o there").code == 0);
  CHECK(shell.sh("jube_benchmark_name=x \"$TALLY\" run bench.xml").code == 0);
  CHECK(shell.exists("r/x/000000"));
}

TEST_CASE("by the name jube: what info and log do not find is no error") {  // JUBE 2.5.1
  const Shell shell;
  shell.sh("ln -s \"$TALLY\" jube; mkdir empty");
  shell.file("bench.yaml", kBench);
  shell.tally("run bench.yaml");
  for (const char* command : {"info empty", "info runs -s nope", "log runs -c nope"}) {
    const Ran ran = shell.sh(std::string("./jube ") + command);
    CHECK(ran.code == 0);
    CHECK(ran.err != "");
    CHECK(shell.tally(command).code == 2);
  }
  CHECK(shell.sh("./jube info runs -i 9").code == 1);
  CHECK(shell.sh("./jube log empty").code == 1);
}

TEST_CASE("the folder's name and values that name the folder: each command runs once") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset:\n"
             "  name: p\n"
             "  parameter:\n"
             "    - {name: stamp, mode: shell, _: 'echo x >> $jube_benchmark_home/count; printf "
             "s$jube_wp_id'}\n"
             "    - {name: place, mode: shell, _: 'echo y >> $jube_benchmark_home/count; printf %s "
             "$jube_wp_abspath'}\n"
             "    - {name: out, _: '$place/$stamp'}\n"
             "step: {name: s, use: p, suffix: $stamp, do: 'echo $out $jube_wp_abspath'}\n");
  CHECK(shell.tally("run b.yaml -q").code == 0);
  CHECK(shell.content("count") == "x\ny\n");
  const std::string work = shell.sh("cd run/000000/000000_s_s0/work && printf %s \"$PWD\"").out;
  CHECK(shell.content("run/000000/000000_s_s0/work/stdout") == work + "/s0 " + work + "\n");
}

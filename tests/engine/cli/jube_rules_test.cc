// What JUBE's users rely on beyond a plain run: results defined anew, a run that the file's own
// selection leaves out, words that JUBE ignores, and its exit codes.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

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

TEST_CASE("result -t chooses runs by their tags; with -u it adds tags to those of the run") {
  const Shell shell;
  shell.file("bench.yaml", kBench);
  shell.file("results.yaml", std::string("name: b\n") + kResults);
  shell.tally("run bench.yaml -t kept");
  CHECK(has(shell.tally("result runs -u results.yaml -t more").out, "a,t,u\n1,1,2\n2,2,2\n"));
  CHECK(has(shell.tally("result runs -u results.yaml").out, "a,t,u\n"));  // as in JUBE
  CHECK(has(shell.tally("result runs -t kept").out, "a,t,u\n"));
  CHECK(has(shell.tally("result runs -t other kept").out, "a,t,u\n"));
  Ran ran = shell.tally("result runs -t other");
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "none of the runs has the tag other"));
  ran = shell.sh("ln -s \"$TALLY\" jube; ./jube result runs -t other");
  CHECK(ran.code == 0);
  CHECK(ran.out == "");
}

TEST_CASE("configuration.xml has one comment in one line, the first, and no empty one") {
  // Debian's JUBE 2.5.1 writes these.
  const std::pair<const char*, const char*> comments[] = {
      {"<comment>\n  a\n  b &amp; c   d </comment>", "<comment>a b &amp; c d</comment>"},
      {"<comment>one</comment><comment>two</comment>", "<comment>one</comment>"},
      {"<comment> </comment>", ""},
  };
  const Shell shell;
  for (const auto& [written, kept] : comments) {
    shell.file("b.xml", "<jube><benchmark name=\"m\" outpath=\"run\">" + std::string(written) +
                            "<step name=\"s\"><do>echo</do></step></benchmark></jube>");
    CHECK(shell.tally("run b.xml").code == 0);
    const std::string text = shell.content("run/000000/configuration.xml");
    const size_t begin = text.find("<comment"), end = text.rfind("comment>");
    CHECK((begin == std::string::npos ? "" : text.substr(begin, end + 8 - begin)) == kept);
    shell.sh("rm -r run");
  }
}

TEST_CASE("a comment of the command line reaches configuration.xml") {
  const Shell shell;
  for (const char* own : {"", "comment: of the file\n"}) {
    shell.file("bench.yaml", std::string(kBench) + own);
    shell.tally("run bench.yaml -m 'a < b' -o one");
    CHECK(has(shell.content("one/000000/configuration.xml"), "<comment>a &lt; b</comment>"));
    shell.tally("comment new one");
    CHECK(has(shell.content("one/000000/configuration.xml"), "<comment>new</comment>"));
    shell.tally("comment -a er one");
    const std::string text = shell.content("one/000000/configuration.xml");
    CHECK(has(text, "<comment>newer</comment>"));
    CHECK(text.find("<comment>") == text.rfind("<comment>"));
    CHECK(has(text, "<do>echo \"t=$a u=2\"</do>"));
    shell.sh("rm -r one");
  }
}

TEST_CASE("a file for a newer JUBE is warned of") {
  const Shell shell;
  const auto with = [&](const std::string& version, const std::string& options = "") {
    shell.file("v.xml",
               "<jube version=\"" + version +
                   "\"><benchmark name=\"b\" outpath=\"runs\"><step name=\"s\"><do>true</do>"
                   "</step></benchmark></jube>");
    return shell.tally("run v.xml -n " + options);
  };
  for (const char* known : {"1.0", "2.0", "2.7", "2.7.1", "2.6.10"}) {
    CAPTURE(std::string(known));
    CHECK(with(known).err == "");
  }
  for (const char* newer : {"2.7.2", "2.8", "3.0", "2.10.0"}) {
    CHECK_MESSAGE(
        has(with(newer).err, std::string("v.xml:1:16: warning: the file was written for JUBE ") +
                                 newer + ", which is newer than 2.7.1"),
        with(newer).err);
  }
  for (const char* wrong : {"abc", "99.1.1.1", "2..1"}) {
    CHECK(has(with(wrong).err, "warning: invalid version number"));
  }
  const Ran strict = shell.tally("--strict run v.xml -n");
  CHECK(strict.code == 2);
  CHECK(has(strict.err, "error: invalid version number"));
}

TEST_CASE("'..' in outpath removes the name before it; in -o it follows links") {
  const Shell shell;
  shell.sh("mkdir -p in/sub other/deep; ln -s ../../other/deep in/sub/link");
  const auto runs_in = [&](const std::string& outpath, const std::string& options = "") {
    shell.file("in/sub/b.xml", "<jube><benchmark name=\"b\" outpath=\"" + outpath +
                                   "\"><step name=\"s\"><do>true</do></step></benchmark></jube>");
    const Ran ran = shell.sh("cd in/sub && $TALLY run b.xml " + options + " >/dev/null");
    CHECK_MESSAGE(ran.code == 0, ran.err);
    const std::string found = shell.sh("find . -name 000000 -type d").out;
    shell.sh("rm -r " + found);
    return found;
  };
  for (const char* outpath : {"${jube_benchmark_home}/../../run", "nowhere/../../run", "../run",
                              "$NOT_SET/../../run", "link/../../run"}) {
    CAPTURE(std::string(outpath));
    CHECK(runs_in(outpath) == "./in/run/000000\n");
  }
  CHECK(runs_in("link/../run") == "./in/sub/run/000000\n");
  CHECK(runs_in("run/./a/..//") == "./in/sub/run/000000\n");
  CHECK(runs_in("run", "-o link/../o") == "./other/o/000000\n");
  CHECK(runs_in("run", "-o nowhere/../o") == "./in/sub/o/000000\n");
  const Ran ran =
      shell.sh("cd in/sub && $TALLY run b.xml -o link/../o >/dev/null && $TALLY result link/../o");
  CHECK_MESSAGE(ran.code == 0, ran.err);
}

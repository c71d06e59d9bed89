// A run of the last days of tally 0.1.0, whose journal has the version of today: shown, analysed and
// continued by this one.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/support/shell.h"

using namespace tally::testing;
namespace fs = std::filesystem;

namespace {

void take_old_run(const Shell& shell) {
  fs::copy(fs::path(TALLY_SOURCE_DIR) / "tests/golden/run_0.1.0_journal2", shell.root(),
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  // git keeps no empty folder.
  for (const char* folder : {"000012_wait", "000009_values"}) {
    fs::create_directories(fs::path(shell.root()) / "runs/000000" / folder / "work");
  }
}

// That `parts` stand in the text one behind the other.
void check_order(const std::string& text, const std::vector<std::string>& parts) {
  size_t at = 0;
  for (const std::string& part : parts) {
    at = text.find(part, at);
    CAPTURE(part);
    CAPTURE(text);
    CHECK(at != std::string::npos);
    if (at == std::string::npos) return;
    at += part.size();
  }
}

}  // namespace

TEST_CASE("a run of tally 0.1.0 is shown as that showed it, and not changed") {
  const Shell shell;
  take_old_run(shell);
  const std::string before = shell.content("runs/000000/journal.sqlite");
  const Ran info = shell.tally("info runs --id 0");
  CHECK(info.code == 0);
  check_order(info.out, {"# stored id:0 tags:big", "# a run of tally 0.1.0",
                         "|   compile |         |     3 |      0 |     3 |",
                         "|   prepare |         |     3 |      0 |     3 |",
                         "|   measure | prepare |     3 |      1 |     2 |",
                         "|    limits |         |     3 |      0 |     3 |",
                         "|    errors | prepare |     1 |      1 |     0 |",
                         "|    values |         |     2 |      1 |     1 |",
                         "|      wait | prepare |     3 |      0 |     0 |",
                         "--- Benchmark not finished! ---"});
  check_order(shell.tally("info runs --id 0 -s measure").out,
              {"label: big-3", "label: big-1", "label: big-2"});
  CHECK(shell.tally("status runs").out == "RUNNING\n");
  const Ran shown = shell.tally("result runs");
  check_order(shown.out, {"n,label,rate[MB/s]", "1,big-1,2.5", "2,big-2,4.5"});
  CHECK(has(shown.err, "workpackage 11 (measure) failed: exit code "));
  CHECK(shell.tally("analyse runs").code == 0);
  CHECK(has(shell.content("runs/000000/analyse.xml"), ">4.5</pattern>"));
  CHECK(shell.content("runs/000000/journal.sqlite") == before);
}

TEST_CASE("a run of tally 0.1.0 goes on, and says again what failed and where") {
  const Shell shell;
  take_old_run(shell);
  shell.file("runs/000000/000012_wait/work/ready", "");
  shell.file("go", "");
  const Ran ran = shell.tally("continue runs");
  CHECK(ran.code == 1);  // what failed stays so
  check_order(ran.out,
              {"|  compile |   3 |    0 |    0 |     0 |    3 |",
               "|  measure |   3 |    0 |    0 |     1 |    2 |",
               "|   values |   2 |    0 |    0 |     1 |    1 |",
               "|     wait |   3 |    0 |    0 |     0 |    3 |",
               "|     late |   3 |    0 |    0 |     0 |    3 |", "(values",
               "Cannot evaluate \"1 // 0\" for parameter \"quotient\": integer "
               "division or modulo by zero",
               "(bench.yaml:19:43", "(measure", "exit code ", "no such device", "(bench.yaml:39:9",
               "(errors", "error file \"wrong\"", "(bench.yaml:50:32",
               "reused 1 (compile): commands, environment and files are those of workpackage 0",
               "expected 7 (limits): out of memory", "1,big-1,2.5", "2,big-2,4.5"});
  // What waited was not run a second time.
  CHECK(shell.content("runs/000000/000012_wait/work/stdout") == "rate: 93\n");
  CHECK(shell.sh("cat runs/000000/*_late/work/stdout | sort").out == "late 1\nlate 2\nlate 3\n");
  CHECK(shell.tally("status runs").out == "ERROR\n");
  // Workpackages can be taken back and done again.
  CHECK(shell.tally("remove runs -w 11 --force").code == 0);
  CHECK(shell.tally("continue runs").code == 1);
  CHECK(shell.tally("comment -a \" and of another\" runs").code == 0);
  CHECK(has(shell.tally("info runs --id 0").out, "# a run of tally 0.1.0 and of another"));
}

namespace {

// Each operation prints a value. The last one kills its engine where there is no `go`.
std::string killed_shape(const std::string& keys, const std::string& operations) {
  return "name: k\noutpath: runs\nparameterset: {name: p, parameter: {name: i, type: int, _: "
         "\"1,2\"}}\n"
         "patternset: {name: pt, pattern: {name: v, type: int, _: \"v=$jube_pat_int\"}}\n"
         "step:\n  - name: s\n    use: p\n" +
         keys + "    do:\n" + operations +
         "      - \"test -e $jube_benchmark_home/go || kill -KILL $PPID; echo v=9$i\"\n"
         "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, sort: i, column: [i, v, v_cnt, v_last]}}\n";
}

}  // namespace

TEST_CASE("a run that was killed goes on where it was moved to, with the output that it had") {
  const std::string prints = "      - \"echo v=1$i\"\n      - \"echo v=2$i\"\n";
  const std::string shapes[] = {
      killed_shape("", prints),
      killed_shape("    cycles: 2\n", prints),
      killed_shape("    suffix: of$i\n", prints),
      killed_shape("    shared: all\n", prints + "      - {shared: true, _: \"echo v=7\"}\n"),
      killed_shape("    iterations: 2\n", prints),
  };
  for (const std::string& shape : shapes) {
    CAPTURE(shape);
    const Shell shell;
    shell.file("here/bench.yaml", shape);
    CHECK(
        shell
            .sh("cd here && \"$TALLY\" run bench.yaml; cd .. && cp -r here there && mkdir deep && "
                "cp -r here deep/er && touch here/go there/go deep/er/go")
            .code == 0);
    const std::string right = shell.sh("cd here && \"$TALLY\" continue runs -q").out;
    CHECK_MESSAGE(has(right, "1,11,"), right);
    for (const char* folder : {"there", "deep/er"}) {
      const Ran moved = shell.sh("cd " + std::string(folder) + " && \"$TALLY\" continue runs -q");
      CHECK_MESSAGE(moved.out == right, moved.err);
    }
  }
}

TEST_CASE("a run of tally 0.1.0 in a folder that may not be written") {
  const Shell shell;
  take_old_run(shell);
  // Root may write everywhere: nobody then, where there is one who can start the program.
  const std::string as_other = geteuid() == 0 ? "setpriv --reuid 65534 --clear-groups " : "";
  CHECK(shell.sh("chmod -R a+rX,a-w .").code == 0);
  if (shell.sh(as_other + "\"$TALLY\" --version").code == 0) {
    const Ran shown = shell.sh(as_other + "\"$TALLY\" result runs");
    CHECK(has(shown.out, "1,big-1,2.5"));
  }
  CHECK(shell.sh("chmod -R u+w .").code == 0);
}

TEST_CASE("a journal that cannot be read to its end is an error of every command") {
  const Shell shell;
  shell.file("bench.yaml",
             "name: b\noutpath: runs\n"
             "parameterset: {name: p, parameter: {name: n, mode: python, _: \"','.join(map(str, "
             "range(300)))\"}}\n"
             "step: {name: s, use: p, active: $n > 200, do: \"true\"}\n"
             "patternset: {name: f, pattern: {name: x, _: x}}\n"
             "analyser: {name: a, use: f, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, column: [n, x]}}\n");
  REQUIRE(shell.tally("run bench.yaml -j 1").code == 0);
  // All pages but the first that have the row of a workpackage: which these are depends on how
  // many changes the engine had time to commit at once.
  const fs::path journal = fs::path(shell.root()) / "runs/000000/journal.sqlite";
  std::ifstream stored(journal, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(stored), {}};
  const size_t page = 4096;
  size_t damaged = 0;
  for (size_t at = page; at < bytes.size(); at += page) {
    size_t named = bytes.find("_s", at);
    while (named < at + page && bytes[named + 2] == '/') named = bytes.find("_s", named + 1);
    if (named >= at + page) continue;
    bytes.replace(at, page, page, 'Z');
    ++damaged;
  }
  REQUIRE(damaged > 0);
  std::ofstream(journal, std::ios::binary) << bytes;
  for (const char* command :
       {"info runs --id 0", "info runs --id 0 -s s", "status runs", "result runs", "analyse runs",
        "output runs --id 0", "continue runs", "remove runs -w 3 --force"}) {
    const Ran ran = shell.tally(command);
    CAPTURE(command);
    CAPTURE(ran.out);
    CHECK(ran.code != 0);
    CHECK(has(ran.err, "is damaged"));
  }
}

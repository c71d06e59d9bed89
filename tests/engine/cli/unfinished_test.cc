// Results of runs that were killed, go on or wait: each command says how many workpackages have not
// ended. Standard output and files are those of the same run without the note.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// Three workpackages. The engine dies in the second one, once. `kind`: empty for JUBE's language.
std::string killed(const std::string& kind) {
  return "name: b\noutpath: run\n"
         "parameterset: {name: p, parameter: {name: i, type: int, _: \"1,2,3\"}}\n"
         "patternset: {name: o, pattern: {name: v, type: int, _: v=$jube_pat_int}}\n"
         "step:\n"
         "- {name: s, " +
         kind +
         "use: p, do: [echo v=$i, 'if test $i = 2 && mkdir $jube_benchmark_home/once; then kill -9 "
         "$PPID; fi', 'echo v=${i}0']}\n"
         "- {name: after, " +
         kind +
         "depend: s, do: 'true'}\n"
         "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: csv, sort: i, column: [i, {_: v" +
         (kind.empty() ? "" : ", better: higher") + "}, v_cnt]}}\n";
}

const char* const kLanguages[] = {"", "kind: run, quiet_check: false, "};

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("unfinished runs: every command that shows results counts what has not ended") {
  for (const std::string kind : kLanguages) {
    CAPTURE(kind);
    const Shell shell;
    shell.file("b.yaml", killed(kind));
    shell.sh("\"$TALLY\" run b.yaml -j1");
    std::vector<std::string> commands = {
        "\"$TALLY\" result run",
        "\"$TALLY\" analyse run",
        "\"$TALLY\" result run -s csv",
        "\"$TALLY\" result run -s markdown",
        "\"$TALLY\" result run -s json",
        "\"$TALLY\" result run -s jsonl",
        "\"$TALLY\" report run -o r.html",
        "\"$TALLY\" report run --format md",
        "\"$TALLY\" report run --format csv",
        "\"$TALLY\" report run --format junit",
        "\"$TALLY\" plot run -y v -x i -o p.svg",
        "\"$TALLY\" result run -u b.yaml",
        "ln -sf \"$TALLY\" jube; ./jube result run",
        "./jube analyse run",
    };
    if (!kind.empty()) {
      commands.emplace_back("\"$TALLY\" compare run --by i");
      commands.emplace_back("\"$TALLY\" compare run --null");
    }
    for (const std::string& command : commands) {
      CAPTURE(command);
      const Ran ran = shell.sh(command);
      CHECK_MESSAGE(count(ran.err,
                          "note: run/000000: 3 of 4 workpackages have not ended (1 running, "
                          "2 not begun): rows or values may be missing; `continue` runs "
                          "what is left\n") == 1,
                    ran.err);
    }
    CHECK(shell.tally("continue run").code == 0);
    for (const std::string& command : commands) {
      CAPTURE(command);
      const Ran ran = shell.sh(command);
      CHECK_MESSAGE(!has(ran.err, "not ended"), ran.err);
    }
  }
}

TEST_CASE(
    "unfinished runs: one that has just begun, and one that died before its first workpackage") {
  for (const std::string kind : kLanguages) {
    CAPTURE(kind);
    const Shell shell;
    std::string text = killed(kind);
    text.insert(text.find("{name: i,"), "[{name: k, mode: shell, _: 'kill -9 $PPID; echo 1'}, ");
    text.insert(text.find("1,2,3") + 7, "]");
    shell.file("b.yaml", text);
    shell.sh("\"$TALLY\" run b.yaml");
    Ran ran = shell.tally("result run");
    CHECK_MESSAGE(has(ran.err, "note: run/000000: it has no workpackages and thus no rows"),
                  ran.err);
    CHECK(has(shell.tally("info run --id 0").out, "Benchmark not finished!"));
    // Its first command goes on for as long as nobody writes to the pipe.
    text = killed(kind);
    const size_t at = text.find("do: [echo v=$i,") + 5;
    text.insert(at, "read x < $jube_benchmark_home/go, ");
    shell.file("c.yaml", text);
    ran = shell.sh(
        "mkfifo go; rm -r run; timeout 60 \"$TALLY\" run c.yaml -j1 > out 2>&1 & "
        "until \"$TALLY\" result run 2>&1 | grep '1 running, 2 not begun'; do sleep 0.1; done; "
        "kill $!; "
        "wait");
    CHECK_MESSAGE(has(ran.out, "3 of 3 workpackages have not ended"), (ran.out + ran.err));
  }
}

TEST_CASE("unfinished runs: of several runs, those are named that have not ended") {
  for (const std::string kind : kLanguages) {
    CAPTURE(kind);
    const Shell shell;
    shell.file("b.yaml", killed(kind));
    shell.sh("mkdir once; \"$TALLY\" run b.yaml; rmdir once; \"$TALLY\" run b.yaml -j1");
    for (const char* command :
         {"result run -i all", "analyse run -i all", "report run -i all --format md"}) {
      CAPTURE(command);
      const Ran ran = shell.tally(command);
      CHECK_MESSAGE(has(ran.err, "note: run/000001: 3 of 4 workpackages have not ended"), ran.err);
      CHECK_MESSAGE(!has(ran.err, "run/000000: "), ran.err);
    }
    if (kind.empty()) continue;
    Ran ran = shell.tally("compare run/000000 run/000001");
    CHECK_MESSAGE(has(ran.err, "note: run/000001: 3 of 4 workpackages have not ended"), ran.err);
    shell.tally("result run -i 1");  // writes its history
    ran = shell.tally("history run");
    CHECK_MESSAGE(has(ran.err, "note: run 1: 3 of 4 workpackages have not ended"), ran.err);
    CHECK(count(ran.err, "not ended") == 1);
    // Documents have the note, too.
    CHECK(has(shell.tally("result run -i 1 -s json").out, "3 of 4 workpackages have not ended"));
    CHECK(
        has(shell.tally("report run -i 1 --format md").out, "3 of 4 workpackages have not ended"));
    CHECK(shell.tally("continue run -i 1").code == 0);
    CHECK(!has(shell.tally("history run").err, "not ended"));
  }
}

TEST_CASE("unfinished runs: one that waits for its done_file says so, and its bytes are JUBE's") {
  const Shell shell;
  const std::string file =
      "name: b\noutpath: run\n"
      "patternset: {name: o, pattern: {name: v, type: int, _: v=$jube_pat_int}}\n"
      "step:\n- {name: s, do: {done_file: ready, _: echo v=1}}\n- {name: post, depend: s, do: "
      "'true'}\n"
      "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [v]}}\n";
  shell.file("b.yaml", file);
  Ran ran = shell.tally("run b.yaml -r");
  const std::string note =
      "note: run/000000: 1 of 1 workpackages has not ended (1 waiting for `continue`) and none of "
      "'post' has been made: rows or values may be missing; `continue` looks whether what they "
      "wait "
      "for is there\n";
  CHECK_MESSAGE(has(ran.err, note), ran.err);
  ran = shell.tally("result run");
  CHECK_MESSAGE((ran.out == "v\n1\n\n" && ran.err == note && ran.code == 0), (ran.out + ran.err));
  shell.sh("touch run/000000/000000_s/work/ready");
  CHECK(shell.tally("continue run").code == 0);
  ran = shell.tally("result run");
  CHECK_MESSAGE((ran.out == "v\n1\n\n" && ran.err.empty()), (ran.out + ran.err));
}

TEST_CASE("unfinished runs: a failure that ended a run is no note") {
  for (const std::string kind : kLanguages) {
    CAPTURE(kind);
    const Shell shell;
    shell.file("b.yaml", "name: b\noutpath: run\nstep:\n- {name: s, " + kind +
                             "do: [echo v=1, 'false']}\n- {name: post, " + kind +
                             "depend: s, do: 'true'}\n"
                             "patternset: {name: o, pattern: {name: v, _: v=(.)}}\n"
                             "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
                             "result: {use: a, table: {name: t, column: v}}\n");
    shell.tally("run b.yaml");
    const Ran ran = shell.tally("result run");
    CHECK_MESSAGE(!has(ran.err, "not ended"), ran.err);
  }
}

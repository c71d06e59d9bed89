// Work of set-ups that is reused, and when it must not be.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

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
        "cd $jube_benchmark_home && cat src/v", "make -s -C$jube_benchmark_home/src",
        "sh -c \"cat $jube_benchmark_home/src/v\"",
        "cat --squeeze-blank -- $jube_benchmark_home/src/v",
        "env IN=$jube_benchmark_home/src/v sh -c \"cat \\$IN\""}) {
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

TEST_CASE("reused work: a slash in a quoted text is no folder, and the host is no input") {
  for (const char* command : {"echo gcc 12 | sed \"s/^/host compiler /\" >versions.txt; echo v=1",
                              "echo v=1; awk \"BEGIN { x = 4 / 2; print x }\" >x",
                              "echo v=1; ls / /proc /sys /run /dev >x", "echo v=1 # all of /"}) {
    CAPTURE(command);
    const Shell shell;
    shell.file("b.yaml", workflow(command));
    CHECK(shell.tally("run b.yaml").code == 0);
    const Ran plan = shell.tally("run -n b.yaml");
    CHECK_MESSAGE(has(plan.out, "#000000 b  reused"), (plan.out + plan.err));
  }
}

TEST_CASE("reused work: folders in a quoted text that no shell reads are no inputs, files are") {
  const Shell shell;
  shell.sh("mkdir src; echo 1 > src/v");
  for (const char* command :
       {"echo x | sed \"s|$jube_benchmark_home/src|/y|\" >o; echo v=1",
        "echo \"of $jube_benchmark_home/src\" >o; echo v=1",
        "echo v=1; awk -v d=1 \"/$jube_benchmark_home/src/ { print }\" o || true"}) {
    CAPTURE(command);
    shell.file("b.yaml", workflow(command));
    shell.tally("run b.yaml");
    shell.sh("echo 2 >> src/v");
    const Ran plan = shell.tally("run -n b.yaml");
    CHECK_MESSAGE(has(plan.out, "#000000 b  reused"), (plan.out + plan.err));
  }
  for (const char* command :
       {"bash -ec \"ls $jube_benchmark_home/src >o\"; echo v=1",
        "eval \"ls $jube_benchmark_home/src >o\"; echo v=1",
        "env A=1 sh -c \"cd $jube_benchmark_home/src && ls\" >o; echo v=1",
        "awk \"BEGIN { getline <\\\"$jube_benchmark_home/src/v\\\" }\"; echo v=1"}) {
    CAPTURE(command);
    shell.file("b.yaml", workflow(command));
    CHECK(shell.tally("run b.yaml").code == 0);
    shell.sh("echo 2 >> src/v");
    const Ran plan = shell.tally("run -n b.yaml");
    CHECK_MESSAGE(has(plan.out, "#000000 b  will run: compared with the last kept work: file "),
                  (plan.out + plan.err));
  }
}

TEST_CASE(
    "reused work: of a folder with too many files as many are compared, and it is said once") {
  const Shell shell;
  shell.sh("mkdir many; cd many; seq -f %05g 10001 | xargs touch");
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\n"
      "step: {name: b, kind: build, iterations: 2, do: 'ls $jube_benchmark_home/many | wc -l; echo "
      "$jube_wp_iteration'}\n");
  const std::string note =
      "many has more than 10000 files, of which as many are compared by size and time: `input` "
      "names "
      "what counts\n";
  const auto count = [&](const std::string& text) {
    size_t times = 0;
    for (size_t at = text.find(note); at != std::string::npos; at = text.find(note, at + 1))
      ++times;
    return times;
  };
  CHECK(shell.tally("run b.yaml").code == 0);
  CHECK(count(shell.content("run/000000/run.log")) == 1);
  Ran plan = shell.tally("run -n b.yaml");
  CHECK_MESSAGE(has(plan.out, "iteration 0  reused"), plan.out);
  CHECK_MESSAGE(count(plan.out) == 1, plan.out);
  shell.sh("echo x > many/00007");
  plan = shell.tally("run -n b.yaml");
  CHECK_MESSAGE(has(plan.out, "iteration 0  will run: compared with the last kept work: "),
                plan.out);
  CHECK_MESSAGE(has(plan.out, "file many changed"), plan.out);
  // Few files that are large: sizes and times of all of them.
  shell.sh("rm -r many; mkdir many; truncate -s 2G many/a; echo 1 > many/b");
  CHECK(shell.tally("run b.yaml").code == 0);
  plan = shell.tally("run -n b.yaml");
  CHECK_MESSAGE(has(plan.out, "iteration 0  reused"), plan.out);
  CHECK(count(plan.out) == 0);
  shell.sh("echo 2 > many/b");
  plan = shell.tally("run -n b.yaml");
  CHECK_MESSAGE(has(plan.out, "iteration 0  will run: "), plan.out);
}

TEST_CASE("reused work: runs of another workflow beside it change nothing") {
  const Shell shell;
  shell.file("b.yaml", workflow("ls $jube_benchmark_home >x; echo v=1"));
  shell.file("other.yaml",
             "name: o\noutpath: other\n"
             "parameterset: {name: p, parameter: {name: n, type: int, _: [1, 2]}}\n"
             "step: {name: s, kind: run, use: p, do: echo v=$n}\n"
             "patternset: {name: o, pattern: {name: v, type: float, _: 'v=$jube_pat_fp'}}\n"
             "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, column: [n, {_: v, better: lower}]}}\n");
  CHECK(shell.tally("run b.yaml").code == 0);
  for (int i = 0; i < 2; ++i) {
    CHECK(shell.tally("run other.yaml").code == 0);
    CHECK(shell.exists("other/history.d"));
    const Ran plan = shell.tally("run -n b.yaml");
    CHECK_MESSAGE(has(plan.out, "#000000 b  reused"), (plan.out + plan.err));
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

namespace {

// The build prints BASE.0 to BASE.5, where the file `base` holds BASE. The run step measures anew.
const std::string kMeasuredBuild =
    "name: b\noutpath: run\n"
    "step: [{name: c, kind: build, iterations: 6, do: 'echo compile=$$(cat "
    "$jube_benchmark_home/base).$jube_wp_iteration'}]\n"
    "patternset: {name: o, pattern: {name: compile, type: float, _: 'compile=$jube_pat_fp'}}\n"
    "analyser: {name: a, use: o, analyse: {step: c, file: stdout}}\n"
    "result: {use: a, table: {name: t, style: csv, column: [{_: compile, statistic: median, "
    "better: lower}]}, database: {name: r, file: x.db, key: [compile]}}\n";

// Three runs that print 100.x and three that print 200.x: two measurements.
void run_six_times(const Shell& shell) {
  for (const char* base : {"100", "100", "100", "200", "200", "200"}) {
    shell.file("base", base);
    const Ran ran = shell.tally("run b.yaml -q");
    CHECK_MESSAGE(ran.code == 0, ran.err);
  }
}

std::string rows_of_database(const Shell& shell) {
  return shell
      .sh("python3 -c \"import sqlite3; print(sqlite3.connect('x.db').execute('select compile, "
          "substr(tally_run, 1, 8) from r order by 2').fetchall())\"")
      .out;
}

}  // namespace

TEST_CASE("reused work: it is no new measurement in a history") {
  const Shell shell;
  shell.file("b.yaml", kMeasuredBuild);
  run_six_times(shell);
  Ran ran = shell.tally("history run --metric compile -s csv");
  CHECK(ran.code == 0);
  for (const char* row : {"\n0,", "\n3,"}) {
    const std::string line = ran.out.substr(ran.out.find(row) + 1);
    CHECK_MESSAGE(has(line.substr(0, line.find('\n')), ",6 of 6,,"), ran.out);
  }
  CHECK_MESSAGE(has(ran.out, ",100.25,100,100.5,6 of 6,REUSED,\n"), ran.out);
  CHECK_MESSAGE(has(ran.out, ",200.25,200,200.5,6 of 6,REUSED,\n"), ran.out);
  CHECK_MESSAGE(!has(ran.out, "regresses"), ran.out);
  ran = shell.tally("history run --metric compile -s json");
  CHECK_MESSAGE(has(ran.out, "\"reused\": true"), ran.out);
  // A file of an earlier version does not say it.
  shell.sh(
      "sed -i 's/,\"reused\":true//; s/,\"failed\":true//; s/,\"mark\":\"REUSED\"//' "
      "run/history.d/*.json");
  ran = shell.tally("history run --metric compile -s csv");
  CHECK_MESSAGE((ran.code == 0 && has(ran.out, "regresses by 99.8 %")), (ran.out + ran.err));
}

TEST_CASE("reused work: it is not compared") {
  const Shell shell;
  shell.file("b.yaml", kMeasuredBuild);
  run_six_times(shell);
  Ran ran = shell.tally("compare run/000003 run/000004");
  CHECK_MESSAGE((ran.code == 0 && has(ran.out, " unclear REUSED |")), ran.out);
  CHECK_MESSAGE(!has(ran.out, "+0.00"), ran.out);
  CHECK_MESSAGE(has(ran.err, "unclear: it was reused, not measured, in the second run"), ran.err);
  ran = shell.tally("compare run/000001 run/000003");
  CHECK_MESSAGE(has(ran.err, "unclear: it was reused, not measured, in the first run"), ran.err);
  ran = shell.tally("compare run/000001 run/000004 -s json");
  CHECK_MESSAGE(has(ran.out, "\"status\": \"reused\""), ran.out);
  CHECK_MESSAGE(!has(ran.out, "\"status\": \"done\""), ran.out);
  CHECK_MESSAGE(has(ran.out, "\"failed\": false"), ran.out);
  CHECK(has(shell.tally("compare run/000000 run/000003").out, " regressed |"));
}

TEST_CASE("reused work: a chart that draws it says so") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset: {name: p, parameter: {name: n, type: int, _: '1,2'}}\n"
             "step:\n"
             "  - {name: c, kind: build, use: p, do: 'echo compile=$n.5'}\n"
             "  - {name: r, kind: run, depend: c, do: 'echo compile_rate=$n.5'}\n"
             "patternset: {name: o, pattern: [{name: compile, type: float, _: "
             "'compile=$jube_pat_fp'}, {name: compile_rate, type: float, _: "
             "'compile_rate=$jube_pat_fp'}]}\n"
             "analyser: {name: a, use: o, analyse: [{step: c, file: stdout}, {step: r, file: "
             "stdout}]}\n"
             "result:\n"
             "  use: a\n"
             "  table: {name: t, column: [n, compile, compile_rate]}\n"
             "  chart:\n"
             "    - {name: built, table: t, kind: bar, x: n, y: compile}\n"
             "    - {name: measured, table: t, kind: bar, x: n, y: compile_rate}\n");
  for (int i = 0; i < 2; ++i) CHECK(shell.tally("run b.yaml -q").code == 0);
  const auto text_of = [&](int run, const std::string& name) {
    return shell.sh("cat $(find run/00000" + std::to_string(run) + " -name " + name + ".svg)").out;
  };
  CHECK(has(text_of(1, "built"), "2 rows have values of reused work, not measured in this run."));
  CHECK(has(text_of(0, "built"), "<svg"));
  CHECK(!has(text_of(0, "built"), "reused"));
  CHECK(has(text_of(1, "measured"), "<svg"));
  CHECK(!has(text_of(1, "measured"), "reused"));
}

TEST_CASE("reused work: a database gets it once, in the name of the run that measured it") {
  const Shell shell;
  shell.file("b.yaml", kMeasuredBuild);
  for (int i = 0; i < 2; ++i) {
    shell.file("base", "100");
    const Ran ran = shell.tally("run b.yaml");
    CHECK(ran.code == 0);
    CHECK_MESSAGE(has(ran.err, "1 of 1 rows is REUSED and not written") == (i == 1), ran.err);
  }
  CHECK(rows_of_database(shell) == "[(100.0, 'b 000000')]\n");
  std::string text = kMeasuredBuild;
  text.replace(text.find("key: [compile]"), 14, "key: [compile, status]");
  shell.sh("rm x.db");
  shell.file("b.yaml", text);
  CHECK(shell.tally("run b.yaml -q").code == 0);
  CHECK(rows_of_database(shell) == "[(100.0, 'b 000002')]\n");
}

TEST_CASE("reused work: what the run measured beside it counts") {
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\n"
      "step: [{name: c, kind: build, do: 'echo compile=100.5'},\n"
      " {name: s, kind: run, depend: c, repeat: 6, do: 'echo rate=20.$jube_wp_iteration'}]\n"
      "patternset: [{name: o, pattern: {name: compile, type: float, _: "
      "'compile=$jube_pat_fp'}},\n"
      " {name: q, pattern: [{name: rate, type: float, _: 'rate=$jube_pat_fp'}, {name: twice, type: "
      "float, mode: python, _: '2 * $rate + $compile'}, {name: half, type: float, mode: python, _: "
      "'$compile / 2'}]}]\n"
      "analyser: {name: a, analyse: [{step: c, file: {_: stdout, use: o}}, {step: s, file: {_: "
      "stdout, use: q}}]}\n"
      "result: {use: a, table: {name: t, style: csv, column: [{_: compile, better: lower}, {_: "
      "half, better: lower}, {_: rate, better: higher}, {_: twice, better: higher}, {_: sum, "
      "expression: 'rate + compile', better: higher}, {_: third, expression: 'compile / 3', "
      "better: lower}]}, database: {name: r, file: x.db, key: [compile, rate]}}\n");
  for (int i = 0; i < 2; ++i) {
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == 0, ran.err);
    CHECK_MESSAGE(
        has(ran.err, "1 of 1 rows in the database have values of reused work") == (i == 1),
        ran.err);
  }
  for (const char* metric : {"rate", "twice", "sum"}) {
    CAPTURE(metric);
    CHECK(!has(shell.tally("history run -s csv --metric " + std::string(metric)).out, "REUSED"));
    Ran ran = shell.tally("compare run/000000 run/000001 --metric " + std::string(metric));
    CHECK_MESSAGE(has(ran.out, " same |"), (ran.out + ran.err));
  }
  for (const char* metric : {"compile", "half", "third"}) {
    CAPTURE(metric);
    CHECK(has(shell.tally("history run -s csv --metric " + std::string(metric)).out, "REUSED"));
    Ran ran = shell.tally("compare run/000000 run/000001 --metric " + std::string(metric));
    CHECK_MESSAGE(has(ran.err, "it was reused, not measured"), (ran.out + ran.err));
  }
  CHECK(rows_of_database(shell) == "[(100.5, 'b 000000'), (100.5, 'b 000001')]\n");
}

TEST_CASE("reused work: iterations that are one piece of work are one measurement") {
  const Shell shell;
  std::string text = kMeasuredBuild;
  text.replace(text.find(".$jube_wp_iteration"), 19, ".5");
  shell.file("b.yaml", text);
  shell.file("base", "100");
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "compile,repeats\n100.5,1 of 6\n"), ran.out);
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

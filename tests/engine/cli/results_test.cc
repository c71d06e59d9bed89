// Tables through the program: what a person is told of workpackages that failed, of values that are
// missing and of results that cannot be written.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"
#include "tests/support/workflows.h"

using tally::testing::has;
using tally::testing::middle_fails;
using tally::testing::Ran;
using tally::testing::Shell;
using tally::testing::with_replaced;

TEST_CASE("a failed workpackage is marked, and no reference passes on what it printed") {
  const Shell shell;
  shell.file("b.yaml", middle_fails(", reference: {column: rate, _: \"<= 10\"}"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 5);
  CHECK_MESSAGE(has(ran.out, "n,rate,status\n1,1.5,done\n2,2.5,FAILED\n4,4.5,done\n"), ran.out);
  CHECK(shell.content("run/000000/result/t.dat") ==
        "n,rate,status\n1,1.5,done\n2,2.5,FAILED\n4,4.5,done\n");
  CHECK_MESSAGE(has(ran.err, "note: t: row 2 FAILED: workpackage 1 (s) failed: exit code 1\n"),
                ran.err);
  CHECK_MESSAGE(has(ran.err,
                    "b.yaml:7:83: reference missed: t: row 2 (n=2): no value of 'rate' counts: "
                    "workpackage 1 failed; expected <= 10\n"),
                ran.err);
  CHECK(!has(ran.err, "row 2 (n=2) has"));
}

TEST_CASE("an output that cannot be read, or that a pattern gave up on, is an error") {
  const Shell shell;
  shell.file("b.yaml", middle_fails());
  shell.tally("run b.yaml");
  shell.sh("f=$(find run/000000/000002_s -name stdout) && rm $f && mkdir $f");
  Ran ran = shell.tally("result run");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "error: cannot read '"), ran.err);
  CHECK_MESSAGE(has(ran.err, "/stdout': not a regular file"), ran.err);
  std::string text = with_replaced(middle_fails(), "rate=$jube_pat_fp", "rate=(?:0+)+([2-9])z");
  text = with_replaced(text, "rate=$n.5; test $n -ne 2", "rate=$(printf %0200d 1)x z");
  text = with_replaced(text, "outpath: run", "outpath: gives_up");
  // One output: seconds go by before a match is given up.
  shell.file("c.yaml", with_replaced(text, "_: \"1,2,4\"", "_: 1"));
  ran = shell.tally("run c.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "error: pattern 'rate' gave up on "), ran.err);
}

TEST_CASE("the same as JUBE has it: in JUBE's language, and called by the name jube") {
  const Shell shell;
  shell.file("b.yaml", with_replaced(middle_fails(), "kind: run, ", ""));
  Ran ran = shell.tally("run -r b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "n,rate\n1,1.5\n2,2.5\n4,4.5\n"), ran.out);
  shell.file("b.yaml", middle_fails());
  shell.sh("ln -s \"$TALLY\" jube");
  ran = shell.sh("./jube run -r b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "n,rate\n1,1.5\n2,2.5\n4,4.5\n"), ran.out);
}

TEST_CASE("a database by titles, and units after titles, in JUBE's files") {  // JUBE 2.7.1
  const Shell shell;
  std::string text = with_replaced(middle_fails(), "kind: run, ", "");
  text = with_replaced(text, "; test $n -ne 2", "");
  text = with_replaced(text, "type: float, _", "type: float, unit: G/s, _");
  text = with_replaced(
      text, "table: {name: t, column: [n, rate]}",
      "table: {name: t, column: [n, {title: \"R \", _: rate}, {title: A, _: rate_avg}, "
      "{title: N, _: rate_cnt}]}, database: {name: d, file: d.db, primekeys: NUM, key: "
      "[{title: NUM, _: n}, rate]}");
  shell.file("b.yaml", text);
  for (int i = 0; i < 2; ++i) {  // the second run's rows take the place of the first's
    const Ran ran = shell.tally("run -r b.yaml");
    CHECK(ran.code == 0);
    CHECK_MESSAGE(has(ran.out, "n,R [G/s],A[G/s],N\n1,1.5,1.5,1\n"), ran.out);
  }
  CHECK(shell
            .sh("python3 -c \"import sqlite3; print(sqlite3.connect('d.db').execute('select NUM, "
                "rate from d order by NUM').fetchall())\"")
            .out == "[(1, 1.5), (2, 2.5), (4, 4.5)]\n");
}

TEST_CASE("a step that failed before the measurement could begin: its missing rows are said") {
  const Shell shell;
  shell.file(
      "b.yaml",
      with_replaced(with_replaced(middle_fails(),
                                  "{name: s, kind: run, use: ps, do: \"echo rate=$n.5; test $n "
                                  "-ne 2\"}",
                                  "[{name: prep, use: ps, do: \"test $n -ne 2\"}, {name: s, kind: "
                                  "run, depend: prep, do: \"echo rate=$n.5\"}]"),
                    "step: [", "step: ["));
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "note: t: workpackage 1 (prep) failed: exit code 1; rows of "),
                ran.err);
  CHECK_MESSAGE(has(ran.err, "; rows of step 's' are missing\n"), ran.err);
}

TEST_CASE("a pattern that no column shows may match nothing") {
  const Shell shell;
  shell.file("b.yaml",
             "run: echo a 1\nmetrics: {a: 'a $jube_pat_int', b: 'b $jube_pat_int'}\n"
             "result: {use: metrics, table: {name: t, column: a}}\n");
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.err, "warning: pattern 'b' matched nothing in 1 of 1 workpackage"),
                ran.err);
  shell.file("b.yaml", "run: echo a 1\nmetrics: {a: 'a $jube_pat_int', b: 'b $jube_pat_int'}\n");
  ran = shell.tally("run b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "error: pattern 'b' matched nothing in 1 of 1 workpackage"), ran.err);
}

TEST_CASE(
    "a failure is told once, below the first table that has its row; a baseline that failed") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: runs\n"
             "parameterset: {name: p, parameter: {name: a, type: int, _: \"1,2\"}}\n"
             "patternset: {name: pt, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
             "step: {name: s, kind: setup, use: p, do: 'echo v=$a; test $a -gt 1'}\n"
             "analyser: {name: an, use: pt, analyse: {step: s, file: stdout}}\n"
             "result:\n"
             "  use: an\n"
             "  table:\n"
             "    - {name: t, column: [a, v, {_: v, relative_to: {a: 1}, title: speedup}]}\n"
             "    - {name: u, column: [a, v]}\n");
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "1,1.0,,FAILED\n2,2.0,,done\n"), ran.out);
  CHECK_MESSAGE(has(ran.out, "1,1.0,FAILED\n2,2.0,done\n"), ran.out);
  const std::string failure = "workpackage 0 (s) failed: ";
  CHECK_MESSAGE(has(ran.err, failure), ran.err);
  CHECK(ran.err.find(failure) == ran.err.rfind(failure));
  CHECK_MESSAGE(
      has(ran.err, "note: t: row 2: 'speedup' is empty: its baseline row, with a=1, FAILED\n"),
      ran.err);
  CHECK_MESSAGE(!has(ran.err, "no baseline row"), ran.err);
}

// JUBE 2.5.1 and 2.7.1 cut the fraction off: a table with 1 where the command said 1.5.
TEST_CASE("a shown pattern no match of which is of its type was not measured") {
  const auto text = [](const std::string& type, const std::string& more,
                       const std::string& column) {
    return "name: b\noutpath: run\nparameterset: {name: p, parameter: {name: i, _: '1,2'}}\n"
           "step: {name: s, kind: run, quiet_check: false, use: p, do: 'echo \"v ${i},2 w $i\"'}\n"
           "patternset: {name: o, pattern: [{name: v, type: " +
           type + ", _: 'v (\\S+)'" + more +
           "}, {name: w, _: 'w (\\S+)'}]}\n"
           "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
           "result: {use: a, table: {name: t, style: csv, column: [i, " +
           column + "]}}\n";
  };
  const std::string message = "pattern 'v': \"1,2\" cannot be represented as a \"float\", in ";
  const Shell shell;
  for (const char* type : {"float", "int"}) {
    shell.file("b.yaml", text(type, "", "v"));
    for (const char* command : {"run b.yaml", "result run", "report run --format csv"}) {
      CAPTURE(command);
      const Ran ran = shell.tally(command);
      CHECK(ran.code == 1);
      CHECK_MESSAGE(has(ran.err, "error: pattern 'v': \"1,2\" cannot be represented as a \"" +
                                     std::string(type) + "\", in "),
                    ran.err);
      CHECK(has(ran.err, "/stdout (and 1 more of this kind)\n"));
    }
  }
  // Those that are not shown, that may lack values, or that have one.
  for (const auto& [more, column] : {std::pair{", default: '0'", "v"}, std::pair{"", "w"},
                                     std::pair{"", "{_: v, null_value: none}"}}) {
    CAPTURE(column);
    shell.file("b.yaml", text("float", more, column));
    const Ran ran = shell.tally("run b.yaml");
    CHECK(ran.code == 0);
    CHECK_MESSAGE(has(ran.err, "warning: " + message), ran.err);
  }
  std::string some = text("float", "", "v");
  some.replace(some.find("${i},2"), 6, "$(echo ${i},2 | sed s/2,2/2.2/)");
  shell.file("b.yaml", some);
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.err, "warning: " + message), ran.err);
}

TEST_CASE("an int never loses a fraction, but in JUBE's files") {
  const Shell shell;
  const std::string text =
      "name: b\noutpath: runs\n"
      "patternset:\n"
      "  name: p\n"
      "  pattern:\n"
      "    - {name: f, type: float, _: \"f=$jube_pat_fp\"}\n"
      "    - {name: i, type: int, _: \"i=$jube_pat_fp\"}\n"
      "    - {name: half, type: int, mode: python, _: \"$f / 2\"}\n"
      "step: {name: s, kind: setup, do: \"echo f=1.5 i=2.5\"}\n"
      "analyser: {name: an, use: p, analyse: {step: s, file: stdout}}\n"
      "result:\n"
      "  use: an\n"
      "  table: {name: t, style: csv, column: [{_: f, format: d}, i, half]}\n";
  shell.file("b.yaml", text);
  Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "f,i,half\n1.5,,0.75\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "'1.5' cannot be formatted as \"d\": 1.5 is not a whole number"),
                ran.err);
  CHECK_MESSAGE(has(ran.err, "pattern 'i': \"2.5\" cannot be represented as a \"int\""), ran.err);
  shell.file("b.yaml", with_replaced(text, "kind: setup, ", ""));
  ran = shell.tally("run -r b.yaml");
  CHECK_MESSAGE(has(ran.out, "f,i,half\n1,2,0\n"), ran.out);

  const std::string parameter =
      "name: b\noutpath: more\nparameterset: {name: p, parameter: {name: n, type: int, _: 2.5}}\n"
      "step: {name: s, kind: setup, use: p, do: echo $n}\n";
  shell.file("c.yaml", parameter);
  ran = shell.tally("run c.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "\"2.5\" from \"n\" cannot be represented as a \"int\""), ran.err);
  CHECK(shell.tally("validate c.yaml").code == 2);
  shell.file("c.yaml", with_replaced(parameter, "2.5", "2.0"));
  CHECK(shell.tally("run c.yaml").code == 0);
}

TEST_CASE("a workpackage whose folder is gone") {
  const Shell shell;
  shell.file("b.yaml", with_replaced(middle_fails(), "; test $n -ne 2", ""));
  CHECK(shell.tally("run b.yaml").code == 0);
  CHECK(shell.tally("status run").code == 0);
  shell.sh("rm -r run/000000/000001_s");
  Ran ran = shell.tally("result run");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "error: workpackage 1 (s) is done, but its work directory is gone: "),
                ran.err);
  ran = shell.tally("status run");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "error: 1 finished workpackage has no folder any more in "), ran.err);
  CHECK(has(ran.err, "000001_s"));
}

TEST_CASE("what cannot be written is an error") {
  const Shell shell;
  shell.file("b.yaml", with_replaced(middle_fails(), "; test $n -ne 2", ""));
  CHECK(shell.tally("run b.yaml").code == 0);
  const char* table = "n,rate\n1,1.5\n2,2.5\n4,4.5\n";
  for (const char* option : {"--version", "-V", "-q --version", "--help"}) {
    CAPTURE(option);
    const Ran told = shell.sh(std::string("\"$TALLY\" ") + option + " >/dev/full");
    CHECK(told.code == 1);
    CHECK_MESSAGE(has(told.err, "tally: error: cannot write to standard output"), told.err);
  }
  Ran ran = shell.sh("\"$TALLY\" result run >/dev/full");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "error: cannot write to standard output"), ran.err);
  // A reader that has gone is none.
  ran = shell.sh("\"$TALLY\" result run | true");
  CHECK_MESSAGE(ran.err.empty(), ran.err);
  shell.sh("rm run/000000/result/t.dat && mkdir run/000000/result/t.dat");
  ran = shell.tally("result run");
  CHECK(ran.code == 1);
  CHECK(has(ran.out, table));
  CHECK_MESSAGE(has(ran.err, "t.dat"), ran.err);
  shell.sh("rm -r run/000000/result && touch run/000000/result");
  ran = shell.tally("result run");
  CHECK(ran.code == 1);
  CHECK(has(ran.out, table));
  CHECK_MESSAGE(has(ran.err, "results are shown, but not kept"), ran.err);
  shell.sh("mkdir -p run/000000/analyse.xml");
  ran = shell.tally("analyse run");
  CHECK(ran.code == 1);
  CHECK(!has(ran.out, "analyse.xml"));
  CHECK_MESSAGE(has(ran.err, "analyse.xml"), ran.err);
}

TEST_CASE("columns show what the command saw of `resources`, not the platform's own values") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset: {name: systemParameter, parameter: [{name: nodes, type: int, _: 1}, "
             "{name: tasks, "
             "type: int, _: 1}, {name: n, _: \"2,3\"}]}\n"
             "patternset: {name: pt, pattern: {name: saw, _: \"saw (.*)\"}}\n"
             "step: {name: s, kind: run, use: systemParameter, resources: {nodes: 4, "
             "tasks_per_node: $n}, do: "
             "\"echo saw $nodes $tasks\"}\n"
             "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, column: [nodes, tasks, taskspernode, saw]}}\n");
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "nodes,tasks,taskspernode,saw\n4,8,2,4 8\n4,12,3,4 12\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "note: step 's' asks for up to 4 nodes, and runs on this machine"),
                ran.err);
}

TEST_CASE("--logs: references and marks as in a run") {
  const Shell shell;
  shell.file("b.yaml",
             middle_fails(", reference: {column: rate, _: \"1 .. 5\", where: \"n > 1\"}"));
  shell.sh("mkdir 1 2 4; for n in 1 2 4; do echo rate=$n.5 >$n/stdout; done; echo 3 >2/job.status");
  Ran ran = shell.tally("result b.yaml --logs 1 2 4");
  CHECK(ran.code == 5);
  CHECK_MESSAGE(has(ran.out, "n,rate,status\n1,1.5,done\n2,2.5,FAILED\n4,4.5,done\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "row 2 FAILED: workpackage 1 (s) failed: its job.status says 3\n"),
                ran.err);
  CHECK_MESSAGE(has(ran.err, "reference missed: t: row 2 (n=2): no value of 'rate' counts"),
                ran.err);
  // A job that runs, or that was killed.
  shell.sh("rm 2/job.status; echo '17 0' >2/job.status.begun");
  ran = shell.tally("result b.yaml --logs 1 2 4");
  CHECK(ran.code == 5);
  CHECK_MESSAGE(has(ran.out, "n,rate,status\n1,1.5,done\n2,2.5,RUNNING\n4,4.5,done\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "workpackage 1 (s) has not ended, or was killed: beside its log"),
                ran.err);
  shell.sh("echo 0 >2/job.status");
  ran = shell.tally("result b.yaml --logs 1 2 4");
  CHECK(ran.code == 0);
  shell.sh("echo rate=9 >4/stdout");
  ran = shell.tally("result b.yaml --logs 1 2 4");
  CHECK(ran.code == 5);
  CHECK_MESSAGE(
      has(ran.err,
          "reference missed: t: row 3 (n=4): rate is 9; expected 1 .. 5, missed by 80 %\n"),
      ran.err);
}

TEST_CASE("a reference that Python cannot read is said before anything runs") {
  const Shell shell;
  shell.file("b.yaml", middle_fails(", reference: {column: rate, _: \"<= 5 MiB\"}"));
  const Ran ran = shell.tally("validate b.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "a reference: Python cannot read \"x <= 5 MiB\""), ran.err);
}

TEST_CASE("a filter that compares the status with a table's mark is warned of") {
  const Shell shell;
  const auto validated = [&](const std::string& filter) {
    shell.file("b.yaml", middle_fails(", filter: \"" + filter + "\""));
    return shell.tally("validate b.yaml");
  };
  Ran ran = validated("status != 'FAILED' and n > 1");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "the filter: no row has the status 'FAILED'"), ran.err);
  CHECK(has(ran.err, "write 'failed'"));
  for (const char* good : {"status != 'failed'", "n == 'FAILED'"}) {
    ran = validated(good);
    CHECK_MESSAGE(!has(ran.err, "no row has the status"), ran.err);
  }
}

TEST_CASE("a table of a killed run says that workpackages have not ended, and marks their rows") {
  const Shell shell;
  // The engine is killed in the second workpackage of the last step, and once.
  const std::string kill =
      "\"echo rate=$n.5; if test $n -eq 2 && mkdir $jube_benchmark_home/once; then kill -9 $PPID; "
      "fi\"";
  const std::string rest =
      with_replaced(middle_fails(", style: csv"), "\"echo rate=$n.5; test $n -ne 2\"", kill);
  shell.file("b.yaml", rest);
  shell.tally("run b.yaml");
  Ran ran = shell.tally("result run");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.err,
                    "2 of 3 workpackages have not ended (1 running, 1 not begun): rows or "
                    "values may be missing"),
                ran.err);
  CHECK_MESSAGE(!has(ran.out, "2,2.5\n"), ran.out);
  CHECK(shell.tally("continue run").code == 0);
  CHECK(has(shell.tally("result run").out, "n,rate\n1,1.5\n2,2.5\n4,4.5\n"));

  // A step of commands has a row at once.
  shell.clear();
  shell.file("b.yaml", with_replaced(with_replaced(rest, "kind: run, ", ""), "[n, rate]",
                                     "[n, {better: higher, _: rate}]"));
  shell.tally("run b.yaml");
  ran = shell.tally("result run");
  CHECK_MESSAGE(has(ran.out, "n,rate,status\n1,1.5,done\n2,"), ran.out);
  CHECK_MESSAGE(has(ran.out, ",RUNNING\n4,,PENDING\n"), ran.out);
  CHECK(has(shell.tally("result run -s json").out, "2 of 3 workpackages have not ended"));
}

TEST_CASE("relative_to: a name that nothing else shows") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset: {name: p, parameter: {name: n, type: int, _: \"1,2,4\"}}\n"
             "step: {name: s, kind: run, use: p, launch: 'echo rate=$n', resources: {nodes: 1, "
             "tasks_per_node: $n}}\n"
             "patternset: {name: o, pattern: {name: rate, type: float, _: 'rate=$jube_pat_fp'}}\n"
             "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, style: csv, column: [n, {_: rate, title: speedup, "
             "relative_to: {n: 1, tasks: 1}}, {_: rate, title: same, relative_to: "
             "{jube_wp_iteration: 0}}]}}\n");
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "n,speedup,same\n1,1.0,1.0\n2,2.0,1.0\n4,4.0,1.0\n"), ran.out);
  CHECK_MESSAGE(!has(ran.err, "baseline"), ran.err);
}

TEST_CASE("report: a failed run step's output is shown, also with a work_dir") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "step: {name: s, kind: run, work_dir: wd, launch: 'sh -c \"echo said; exit 3\"'}\n"
             "patternset: {name: q, pattern: {name: v, type: int, default: 0, _: 'v=(\\d+)'}}\n"
             "analyser: {name: a, use: q, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, column: [v]}}\n");
  CHECK(shell.tally("-q run b.yaml").code == 1);
  CHECK(shell.tally("report run -o r.html").code == 0);
  CHECK(has(shell.content("r.html"), "The end of stdout:\nsaid"));
}

TEST_CASE("a file that has changed since the run is said, with what reads it") {
  const Shell shell;
  const std::string before =
      "name: b\noutpath: run\nrun: echo 'Time 5'\nmetrics: {t: 'time $jube_pat_fp'}\n";
  shell.file("b.yaml", before);
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 1, (ran.out + ran.err));
  CHECK(has(ran.err,
            "hint: a pattern that may have no value has a 'default', or its column a 'null_value'; "
            "a mended file is read by `result RUN -u FILE`, and nothing runs again\n"));
  CHECK(!has(ran.err, "has changed since"));
  CHECK(!has(shell.tally("result run").err, "has changed since"));
  shell.sh("sed -i s/time/Time/ b.yaml");
  const Ran old = shell.tally("result run");
  CHECK(old.code == 1);
  const std::string offered = "result run --id 0 -u b.yaml";
  CHECK_MESSAGE(has(old.err,
                    "note: b.yaml has changed since; the results are made with what the run "
                    "has kept. `"),
                old.err);
  CHECK(has(old.err,
            offered + "` makes them with today's patterns and tables; nothing runs again\n"));
  CHECK(has(shell.tally("analyse run").err, "note: b.yaml has changed since; "));
  const Ran on = shell.tally("continue run");
  CHECK_MESSAGE(has(on.err, "note: b.yaml has changed since; run 0 goes on as it was begun. `"),
                on.err);
  const Ran mended = shell.tally(offered);
  CHECK_MESSAGE(mended.code == 0, (mended.out + mended.err));
  CHECK(has(mended.out, "5"));
  // What is kept is what the file says; from another folder and in a moved suite, too.
  CHECK(!has(shell.tally("result run").err, "has changed since"));
  CHECK(!has(shell.sh("mkdir other; cd other; \"$TALLY\" result ../run").err, "has changed since"));
  shell.sh("echo '# more' >>b.yaml");
  CHECK(has(shell.sh("cd other; \"$TALLY\" result ../run").err, "has changed since"));
  shell.sh("mkdir moved; mv b.yaml run moved");
  CHECK(has(shell.sh("\"$TALLY\" result moved/run").err, "has changed since"));
  shell.sh("rm moved/b.yaml");
  CHECK(!has(shell.sh("\"$TALLY\" result moved/run").err, "has changed since"));
}

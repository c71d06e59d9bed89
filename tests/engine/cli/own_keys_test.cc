// Tally's own keys through the program: what a person writes, the table and the messages that
// person sees, when it goes well and when it does not.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"
#include "tests/support/workflows.h"

using tally::testing::count_of;
using tally::testing::has;
using tally::testing::kNodesTasks;
using tally::testing::one_step_bench;
using tally::testing::Ran;
using tally::testing::Shell;

TEST_CASE("where: excluded points are in the plan with their rule, and in no table") {
  const Shell shell;
  const std::string step = "do: \"echo v=$$(( $nodes * $tasks ))\"";
  shell.file("b.yaml",
             one_step_bench("where: \"$nodes * $tasks <= 8\", " + std::string(kNodesTasks), step,
                            "nodes, tasks, v"));
  const Ran plan = shell.tally("run -n b.yaml");
  CHECK(plan.code == 0);
  CHECK(plan.out ==
        "plan  b: 6 points, 3 excluded -> 6 workpackages\n"
        "  #000000 s  nodes=1 tasks=2\n"
        "  #000001 s  nodes=1 tasks=4\n"
        "  #000002 s  nodes=1 tasks=8\n"
        "  #000003 s  nodes=2 tasks=2\n"
        "  #000004 s  nodes=2 tasks=4\n"
        "  #000005 s  nodes=4 tasks=2\n"
        "excluded by a rule:\n"
        "  s  nodes=2 tasks=8  where: $nodes * $tasks <= 8 (2 * 8 <= 8)\n"
        "  s  nodes=4 tasks=4  where: $nodes * $tasks <= 8 (4 * 4 <= 8)\n"
        "  s  nodes=4 tasks=8  where: $nodes * $tasks <= 8 (4 * 8 <= 8)\n");
  const Ran ran = shell.tally("run -r b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out,
                    "| nodes | tasks | v |\n"
                    "|-------|-------|---|\n"
                    "|     1 |     2 | 2 |\n"
                    "|     1 |     4 | 4 |\n"
                    "|     1 |     8 | 8 |\n"
                    "|     2 |     2 | 4 |\n"
                    "|     2 |     4 | 8 |\n"
                    "|     4 |     2 | 8 |\n"),
                ran.out);
}

TEST_CASE("where: a rule that cannot be evaluated is an error; one that leaves none is said") {
  const Shell shell;
  const std::string step = "do: echo v=1";
  shell.file("b.yaml", one_step_bench("where: \"$nodes < many\", " + std::string(kNodesTasks), step,
                                      "nodes, v"));
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err,
                    "error: Cannot evaluate the rule \"$nodes < many\": name 'many' is not "
                    "defined\n"),
                ran.err);
  shell.file("b.yaml", one_step_bench("where: \"$nodes > 4\", " + std::string(kNodesTasks), step,
                                      "nodes, v"));
  for (const char* command : {"run -n b.yaml", "run b.yaml"}) {
    ran = shell.tally(command);
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, "error: step 's' has no point: this rule leaves out all 9\n"),
                  ran.err);
  }
}

TEST_CASE(
    "zip: lists of unequal length and unknown names are errors of the file, nothing is made") {
  const Shell shell;
  const std::string step = "do: echo v=$nodes";
  shell.file("b.yaml",
             "name: b\noutpath: run\nparameterset:\n  name: ps\n  zip: [nodes, tasks]\n"
             "  parameter:\n    - {name: nodes, type: int, _: \"1,2,4\"}\n"
             "    - {name: tasks, type: int, _: \"2,4\"}\n"
             "step: {name: s, use: ps, do: echo $nodes $tasks}\n");
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(
      has(ran.err,
          "b.yaml:5:9: error: zipped parameters differ in their number of values: nodes has 3, "
          "tasks has 2\n"
          "      zip: [nodes, tasks]\n"
          "            ^~~~~"),
      ran.err);
  CHECK(!shell.exists("run"));
  // The list of one of them is known only when the script has run: then the step has no points.
  shell.file("b.yaml",
             "name: b\noutpath: run\nparameterset:\n  name: ps\n  zip: [nodes, tasks]\n"
             "  parameter:\n    - {name: nodes, type: int, _: \"1,2,4\"}\n"
             "    - {name: tasks, type: int, mode: python, _: \"'2,4'\"}\n"
             "step: {name: s, use: ps, do: echo $nodes $tasks}\n");
  ran = shell.tally("run b.yaml");
  CHECK(ran.code != 0);
  CHECK_MESSAGE(
      has(ran.err, "zipped parameters differ in their number of values: nodes has 3, tasks has 2"),
      ran.err);
  shell.file("b.yaml",
             "name: b\noutpath: run\nparameterset:\n  name: ps\n  zip: [nodes, tsks]\n"
             "  parameter:\n    - {name: nodes, _: \"1,2\"}\n    - {name: tasks, _: \"2,4\"}\n"
             "step: {name: s, use: ps, do: echo $nodes $tasks}\n");
  ran = shell.tally("validate b.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(
      has(ran.err, "b.yaml:5:16: error: zip names 'tsks', which is not a parameter of this set\n"),
      ran.err);
  CHECK(has(ran.err, "hint: did you mean 'tasks'?\n"));
}

TEST_CASE("repeat: interleaved over the points, one row a point with its statistics") {
  const Shell shell;
  // The m-th command of all prints n.m: 1.1, 1.3, 1.5 for n=1 and 2.2, 2.4, 2.6 for n=2.
  const std::string step =
      "repeat: 3, do: \"echo $n >>$jube_benchmark_home/order; "
      "echo v=$n.$$(wc -l <$jube_benchmark_home/order)\"";
  const std::string set = "parameter: {name: n, type: int, _: \"1,2\"}";
  const std::string columns = "n, v, v_avg, {_: v_std, format: .4f}, v_min, v_max, v_cnt";
  shell.file("b.yaml", one_step_bench(set, step, columns));
  const Ran plan = shell.tally("run -n b.yaml");
  CHECK_MESSAGE(has(plan.out, "plan  b: 2 points, 3 repeats -> 6 workpackages\n"), plan.out);
  CHECK(has(plan.out, "  #000003 s  n=2  repeat 2\n"));
  Ran ran = shell.tally("run -r b.yaml");
  CHECK(ran.code == 0);
  CHECK(shell.content("order") == "1\n2\n1\n2\n1\n2\n");
  CHECK_MESSAGE(has(ran.out,
                    "| n |   v | v_avg |  v_std | v_min | v_max | v_cnt |\n"
                    "|---|-----|-------|--------|-------|-------|-------|\n"
                    "| 1 | 1.1 |   1.3 | 0.2000 |   1.1 |   1.5 |     3 |\n"
                    "| 2 | 2.2 |   2.4 | 0.2000 |   2.2 |   2.6 |     3 |\n"),
                ran.out);
  // One repeat of n=2 fails: the row goes on with what there is and says so.
  shell.sh("rm order");
  shell.file("b.yaml",
             one_step_bench(set,
                            "repeat: 3, do: \"echo $n >>$jube_benchmark_home/order; test $$(wc -l "
                            "<$jube_benchmark_home/order) -ne 4 || exit 1; echo v=$n\"",
                            "n, v_avg, v_cnt"));
  ran = shell.tally("run -r b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "| 1 |     1 |     3 |\n| 2 |     2 |     2 |\n"), ran.out);
  CHECK_MESSAGE(has(ran.err,
                    "note: t: row 2: workpackage 3 (s) failed: exit code 1; it is left "
                    "out of the row\n"),
                ran.err);
}

TEST_CASE("retry: a new try in a fresh folder, the failed one kept; no more tries than that") {
  const Shell shell;
  const std::string set = "parameter: {name: p, type: int, _: \"1,2,3\"}";
  // Workpackage p succeeds at its p-th try.
  const std::string step =
      "do: \"echo try $p >>$jube_benchmark_home/tries; test $$(grep -c $p "
      "$jube_benchmark_home/tries) -ge $p || exit 7; echo v=$p\"";
  shell.file("b.yaml", one_step_bench(set, "retry: 2, " + step, "p, v"));
  Ran ran = shell.tally("run -r b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "| 1 | 1 |\n| 2 | 2 |\n| 3 | 3 |\n"), ran.out);
  CHECK(shell.exists("run/000000/000002_s/work.failed.1/stdout"));
  CHECK(shell.exists("run/000000/000002_s/work.failed.2/stdout"));
  CHECK(!shell.exists("run/000000/000000_s/work.failed.1"));
  CHECK(has(shell.content("run/000000/run.log"), "trying again, retry 2 of 2: "));
  CHECK(!has(shell.content("run/000000/run.log"), "_s: failed"));
  shell.sh("rm tries");
  shell.file("b.yaml", one_step_bench(set, "retry: 1, " + step, "p, v"));
  ran = shell.tally("run -r b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "failed: 1 of 3 (s, p=3): exit code 7 ("), ran.out);
  CHECK_MESSAGE(has(ran.out, "| 2 | 2 |   done |\n| 3 |   | FAILED |\n"), ran.out);
  CHECK(count_of(shell.content("tries"), "try 3") == 2);
}

TEST_CASE("timeout: ends the commands, says so, keeps what was printed") {
  const Shell shell;
  const std::string set = "parameter: {name: p, type: int, _: \"0,600\"}";
  const std::string step = "do: \"echo v=$p; exec sleep $p\"";
  shell.file("b.yaml", one_step_bench(set, "timeout: 3s, " + step, "p, v"));
  Ran ran = shell.tally("run -r b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out,
                    "failed: 1 of 2 (s, p=600): time limit of 3s reached (b.yaml:5:43; "
                    "run/000000/000001_s"),
                ran.out);
  CHECK_MESSAGE(has(ran.out, "|   0 |   0 |   done |\n| 600 | 600 | FAILED |\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "note: t: row 2 FAILED: workpackage 1 (s) failed: time limit of 3s"),
                ran.err);
  shell.file("b.yaml", one_step_bench(set, "timeout: soon, " + step, "p, v"));
  ran = shell.tally("run b.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(
      has(ran.err, "b.yaml:5:35: error: 'soon' is not a valid value for 'timeout' in step 's'\n"),
      ran.err);
}

TEST_CASE("expect: the row says what came of it, dependent steps and the rest go on, exit code 0") {
  const Shell shell;
  const std::string set = "parameter: {name: p, type: int, _: \"1,2,3,4\"}";
  const std::string step =
      "kind: run, timeout: 3s, launch: \"sh -c 'test $p -ne 2 || exit 3; test $p -ne 3 || exec "
      "sleep 600; test $p -ne 4 || exit 5; echo v=$p'\"";
  shell.file("b.yaml", one_step_bench(set, "expect: [oom, timeout, check], " + step, "p, v"));
  Ran ran = shell.tally("run -r b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "|        s |   4 |    0 |    0 |     0 |    4 |\n"), ran.out);
  CHECK_MESSAGE(has(ran.out, "expected 1 (s): out of memory\nexpected 2 (s): time limit\n"),
                ran.out);
  CHECK_MESSAGE(has(ran.out,
                    "| 1 | 1 |     done |\n| 2 |   | EXPECTED |\n| 3 |   | EXPECTED |\n"
                    "| 4 |   | EXPECTED |\n"),
                ran.out);
  CHECK_MESSAGE(has(ran.err,
                    "note: t: row 2: workpackage 1 (s) expected: out of memory\n"
                    "note: t: row 3: workpackage 2 (s) expected: time limit\n"
                    "note: t: row 4: workpackage 3 (s) expected: check failed\n"),
                ran.err);
  CHECK(shell.tally("status run").out == "FINISHED\n");
  // Not expected, the same outcomes are failures.
  shell.file("b.yaml", one_step_bench(set, "expect: oom, " + step, "p, v"));
  ran = shell.tally("run b.yaml");
  CHECK(ran.code == 1);
  CHECK(has(ran.out, "(s, p=3): time limit of 3s reached"));
  CHECK(!has(ran.out, "(s, p=2)"));
  shell.file("b.yaml", one_step_bench(set, "expect: [oom, timeot], " + step, "p, v"));
  ran = shell.tally("run b.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "error: 'timeot' is not a valid value for 'expect'\n"), ran.err);
  CHECK(has(ran.err, "hint: did you mean 'timeout'?\n"));
}

TEST_CASE("gpu_slots: a GPU belongs to one workpackage at a time") {
  const Shell shell;
  // Two by two the workpackages meet at a pipe, so that both hold their GPU at that time; a GPU
  // that is held twice shows as a folder that is there already.
  const std::string set =
      "parameter: [{name: p, type: int, _: \"1,2,3,4\"}, {name: pair, mode: python, _: \"($p + 1) "
      "// 2\"}, {name: meet, mode: python, _: \"['read x <','echo here >'][$p % 2]\"}]";
  const std::string step =
      "gpu_slots: 1, do: [\"cd $jube_benchmark_home; mkdir held$$CUDA_VISIBLE_DEVICES && $meet "
      "pipe$pair && rmdir held$$CUDA_VISIBLE_DEVICES\", \"echo v=$$CUDA_VISIBLE_DEVICES\"]";
  shell.file("b.yaml", one_step_bench(set, step, "p, v"));
  shell.sh("mkfifo pipe1 pipe2");
  Ran ran = shell.sh("CUDA_VISIBLE_DEVICES=3,5 \"$TALLY\" run -r -j 4 b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.out);
  CHECK_MESSAGE(has(ran.out, "| 1 | 3 |\n| 2 | 5 |\n"), ran.out);
  shell.file("b.yaml", one_step_bench(set, "gpu_slots: 3, do: echo v=1", "p, v"));
  ran = shell.sh("CUDA_VISIBLE_DEVICES=3,5 \"$TALLY\" run b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "failed: 4 of 4 (s): needs 3 GPU slots, this machine has 2 ("),
                ran.out);
}

TEST_CASE(
    "relative_to: speedup and efficiency against the baseline row of equal other parameters") {
  const Shell shell;
  const std::string set =
      "parameter: [{name: devices, type: int, _: \"1,2,4\"}, {name: model, _: \"small,large\"}]";
  const std::string columns =
      "devices, model, v, {_: v, title: speedup, format: .2f, relative_to: {devices: 1}}, {_: eff, "
      "format: .3f, expression: \"$v / baseline.v / $devices\", relative_to: {devices: 1}}";
  const std::string step = "do: \"echo v=$$(( $devices * 90 + 10 ))\"";
  shell.file("b.yaml", one_step_bench(set, step, columns));
  Ran ran = shell.tally("run -r b.yaml");
  CHECK(ran.code == 0);
  CHECK(ran.err.empty());
  CHECK_MESSAGE(has(ran.out,
                    "| devices | model |   v | speedup |   eff |\n"
                    "|---------|-------|-----|---------|-------|\n"
                    "|       1 | small | 100 |    1.00 | 1.000 |\n"
                    "|       1 | large | 100 |    1.00 | 1.000 |\n"
                    "|       2 | small | 190 |    1.90 | 0.950 |\n"
                    "|       2 | large | 190 |    1.90 | 0.950 |\n"
                    "|       4 | small | 370 |    3.70 | 0.925 |\n"
                    "|       4 | large | 370 |    3.70 | 0.925 |\n"),
                ran.out);
  ran = shell.tally("run -r b.yaml --set devices=2 --set model=large");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "|       2 | large | 190 |         |     |\n"), ran.out);
  CHECK(ran.err ==
        "note: t: row 1: 'speedup' is empty: there is no baseline row with devices=1\n"
        "note: t: row 1: 'eff' is empty: there is no baseline row with devices=1\n");
  const std::string zipped =
      "zip: \"devices,batch\", parameter: [{name: devices, type: int, _: \"1,2\"}, "
      "{name: batch, type: int, _: \"32,64\"}]";
  const std::string plain = "devices, v, {_: v, title: speedup, relative_to: {devices: 1}}";
  shell.file("b.yaml", one_step_bench(zipped, step, plain));
  ran = shell.tally("run -r b.yaml");
  CHECK(ran.err ==
        "note: t: row 2: 'speedup' is empty: no row with devices=1 has the same batch; if it "
        "changes together with devices, name it in relative_to, too\n");
  shell.file("b.yaml",
             one_step_bench(set, step,
                            "devices, {_: e, expression: \"v / baseline.w\", relative_to: "
                            "{devices: 1}}"));
  ran = shell.tally("run -r b.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "error: column 'e': 'baseline.w' is not the name of a value\n"),
                ran.err);
}

TEST_CASE("relative_to: what a step computes of its resources is no parameter of its own") {
  const Shell shell;
  const std::string set =
      "parameter: [{name: devices, type: int, _: \"1,2\"}, {name: ranks, mode: python, _: "
      "\"$devices * 1\"}]";
  const std::string step =
      "kind: run, platform: local, resources: {nodes: 1, tasks_per_node: $ranks}, launch: \"echo "
      "v=${devices}0\"";
  shell.file(
      "b.yaml",
      one_step_bench(set, step, "devices, {_: v, title: speedup, relative_to: {devices: 1}}"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.out, "|       1 |       1 |\n|       2 |       2 |\n"), ran.out);
}

TEST_CASE("an expression does not take the name of a value that the table shows") {
  const Shell shell;
  const std::string set = "parameter: {name: n, type: int, _: \"1,2\"}";
  shell.file("b.yaml",
             one_step_bench(set, "do: \"echo v=$n\"", "n, v, {_: v, expression: \"n * 2\"}"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err,
                    "column 'v' is an expression, and another column shows the value "
                    "of that name"),
                ran.err);
}

TEST_CASE("references: a missed one is said with its row, value and place, and exit code 5") {
  const Shell shell;
  const std::string set = "parameter: {name: n, type: int, _: \"1,2\"}";
  const std::string step = "do: \"echo v=$n.25\"";
  shell.file("b.yaml",
             one_step_bench(
                 set, step, "n, {_: v, format: .1f}",
                 ", reference: [{column: v, _: \"<= 2\", note: \"last year's machine\"}, {column: "
                 "v, _: \"2.3 +- 5%\", where: \"$n == 2\"}]"));
  const std::string missed =
      "note: t: reference v <= 2 (last year's machine): pass, row 1 (n=1) has 1.2\n"
      "note: t: reference v 2.3 +- 5%: pass, row 2 (n=2) has 2.2\n"
      "b.yaml:7:111: reference missed: t: row 2 (n=2): v is 2.2; expected <= 2 (last year's "
      "machine), missed by 12.5 %\n";
  // Without -r, too: a gate must not depend on being asked for.
  for (const char* command : {"run b.yaml", "result run", "continue run"}) {
    CAPTURE(std::string(command));
    const Ran gate = shell.tally(command);
    CHECK(gate.code == 5);
    CHECK_MESSAGE(has(gate.err, missed), gate.err);
  }
  shell.sh("ln -s \"$TALLY\" jube");
  CHECK(shell.sh("./jube run -r b.yaml").code == 0);  // JUBE's codes
  Ran ran;
  shell.file("b.yaml", one_step_bench(set, step, "n, v", ", reference: {column: w, _: \"<= 2\"}"));
  ran = shell.tally("run -r b.yaml");
  CHECK_MESSAGE(has(ran.err, "error: unknown column 'w' in table 't'\n"), ran.err);
}

TEST_CASE("setup work: done once for all that need it, across runs too, and said") {
  const Shell shell;
  const std::string text =
      "name: b\noutpath: run\n"
      "parameterset: {name: ps, parameter: {name: size, type: int, _: \"1,2\"}}\n"
      "fileset: {name: fs, copy: in.txt}\n"
      "patternset: {name: pt, pattern: {name: v, type: int, _: \"v=$jube_pat_int\"}}\n"
      "step:\n"
      "  - {name: corpus, kind: setup, use: [ps, fs], do: \"echo made "
      ">>$jube_benchmark_home/times; cp in.txt data\"}\n"
      "  - {name: train, kind: run, depend: corpus, launch: \"cat corpus/data\"}\n"
      "analyser: {name: a, use: pt, analyse: {step: train, file: stdout}}\n"
      "result: {use: a, table: {name: t, style: pretty, column: [size, v]}}\n";
  shell.file("b.yaml", text);
  shell.file("in.txt", "v=10\n");
  Ran ran = shell.tally("run -r b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out,
                    "reused 1 (corpus): commands, environment and files are those of workpackage "
                    "0\n"),
                ran.out);
  CHECK_MESSAGE(has(ran.out, "|    1 | 10 |\n|    2 | 10 |\n"), ran.out);
  CHECK(shell.content("times") == "made\n");
  ran = shell.tally("run -r b.yaml");
  CHECK_MESSAGE(
      has(ran.out, "reused 0 (corpus): commands, environment and files are the same as in " +
                       shell.root() + "/run/000000/000000_corpus/work\n"),
      ran.out);
  CHECK(shell.content("times") == "made\n");
  // Another input is other work.
  shell.file("in.txt", "v=20\n");
  ran = shell.tally("run -r b.yaml");
  CHECK(!has(ran.out, "reused 0"));
  CHECK_MESSAGE(has(ran.out, "|    1 | 20 |\n|    2 | 20 |\n"), ran.out);
  CHECK(has(shell.content("run/000002/run.log"),
            "000000_corpus: done here, compared with the last kept work: file in.txt changed\n"));
  CHECK(shell.content("times") == "made\nmade\n");
}

TEST_CASE("setup work: what its parents left is an input, within a run and over runs") {
  const Shell shell;
  shell.file("source.txt", "one\n");
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset: {name: ps, parameter: {name: seed, type: int, _: \"1,2\"}}\n"
             "fileset: {name: fs, copy: source.txt}\n"
             "step:\n"
             "  - {name: build, kind: build, use: [ps, fs], do: \"echo $seed >prog; cat source.txt "
             ">>prog\"}\n"
             "  - {name: data, kind: setup, depend: build, do: \"cat build/prog >data\"}\n"
             "  - {name: go, kind: run, depend: data, launch: \"cat data/data\"}\n");
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  CHECK(shell.content("run/000000/000004_go/work/stdout") == "1\none\n");
  CHECK(shell.content("run/000000/000005_go/work/stdout") == "2\none\n");
  ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "reused 2 (data): "), ran.out);
  CHECK(shell.content("run/000001/000005_go/work/stdout") == "2\none\n");
  // The build is made again; the data that was made from the old one is not taken over.
  shell.file("source.txt", "two\n");
  ran = shell.tally("run -n b.yaml");
  CHECK_MESSAGE(has(ran.out,
                    "#000001 build  seed=2  will run: compared with the last kept work: file "
                    "source.txt changed\n"),
                ran.out);
  CHECK_MESSAGE(has(ran.out, "will run: compared with the last kept work: parent build changed"),
                ran.out);
  ran = shell.tally("run b.yaml");
  CHECK(!has(ran.out, "reused"));
  CHECK(shell.content("run/000002/000004_go/work/stdout") == "1\ntwo\n");
  CHECK(shell.content("run/000002/000005_go/work/stdout") == "2\ntwo\n");
  // A parent that is made again for another reason, too: its work may be another.
  std::filesystem::remove(shell.root() + "/run/000002/000000_build/work/prog");
  ran = shell.tally("run b.yaml");
  CHECK(!has(ran.out, "reused 0 "));
  CHECK(!has(ran.out, "reused 2 "));
  CHECK_MESSAGE(has(ran.out, "reused 1 (build): "), ran.out);
  CHECK_MESSAGE(has(ran.out, "reused 3 (data): "), ran.out);
  // What a plain step leaves may differ in every run.
  shell.file("p.yaml",
             "name: p\noutpath: prun\nstep:\n"
             "  - {name: plain, do: \"date +%N >now\"}\n"
             "  - {name: data, kind: setup, depend: plain, do: \"cp plain/now now\"}\n");
  shell.tally("run p.yaml");
  ran = shell.tally("run -n p.yaml");
  CHECK_MESSAGE(
      has(ran.out, "will run: step 'plain', which it depends on, is done again in every run"),
      ran.out);
  shell.tally("run p.yaml");
  CHECK(shell.content("prun/000001/000000_plain/work/now") ==
        shell.content("prun/000001/000001_data/work/now"));
}

TEST_CASE(
    "setup work: files that are named, declared and large, variables, reuse: false, --fresh") {
  const Shell shell;
  shell.file("text", "one\n");
  shell.file("folder/a", "1\n");
  shell.file("script.sh", "cat folder/* \"$TEXT\" >out; echo \"$MODE\" >>out\n");
  const std::string head = "name: b\noutpath: run\n";
  const std::string step =
      "parameterset: {name: ps, parameter: {name: text, _: none}}\n"
      "step:\n  - {name: prepare, kind: setup, use: ps, do: \"cat $text >out; echo ${MODE:-none} "
      ">>out\"";
  shell.file("b.yaml", head + step + "}\n");
  const auto run = [&](const std::string& more) {
    return shell.sh("MODE=\"$M\" \"$TALLY\" run b.yaml --set text=$PWD/text " + more);
  };
  CHECK(!has(run("").out, "reused"));
  CHECK(has(run("").out, "reused 0 (prepare)"));
  // In place, with the size and the time that it had.
  shell.sh("touch -r text when; printf 'two\\n' >text; touch -r when text");
  Ran ran = run("-n");
  CHECK_MESSAGE(has(ran.out, "file text changed"), ran.out);
  CHECK(!has(run("").out, "reused"));
  CHECK(shell.content("run/000002/000000_prepare/work/out") == "two\nnone\n");
  // A variable that the command names.
  ran = shell.sh("MODE=fast \"$TALLY\" run b.yaml --set text=$PWD/text");
  CHECK(!has(ran.out, "reused"));
  CHECK(shell.content("run/000003/000000_prepare/work/out") == "two\nfast\n");
  CHECK(has(run("").out, "reused 0 (prepare)"));
  CHECK(!has(run("--fresh").out, "reused"));
  CHECK(has(run("--fresh -n").out, "will run: --fresh"));
  CHECK(has(run("").out, "reused 0 (prepare)"));
  shell.file("b.yaml", head + step + ", reuse: false}\n");
  CHECK(!has(run("").out, "reused"));
  CHECK(has(run("-n").out, "will run: reuse is false"));
  // Declared: a folder that only a script reads.
  shell.file("b.yaml", head +
                           "fileset: {name: fs, copy: script.sh}\n"
                           "step:\n  - {name: prepare, kind: setup, use: fs, input: folder, env: "
                           "{TEXT: $jube_benchmark_home/text}, do: \"cd $jube_benchmark_home; sh "
                           "script.sh\"}\n");
  CHECK(!has(shell.tally("run b.yaml").out, "reused"));
  // It has written to the folder that it names.
  CHECK(!has(shell.tally("run b.yaml").out, "reused"));
  CHECK(has(shell.tally("run b.yaml").out, "reused 0 (prepare)"));
  shell.file("folder/b", "2\n");
  CHECK(!has(shell.tally("run b.yaml").out, "reused"));
  shell.file("text", "three\n");
  CHECK(!has(shell.tally("run b.yaml").out, "reused"));
  // Only where work is ever left out.
  shell.file("b.yaml",
             head + "step: {name: go, kind: run, reuse: false, input: folder, launch: ls}");
  ran = shell.tally("run b.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "b.yaml:3:36: error: 'reuse' in step 'go' needs kind: setup or build"),
                ran.err);
  CHECK(has(ran.err, "'input' in step 'go' needs kind: setup or build"));
}

TEST_CASE("setup work that passes on its environment: all that share it pass on the same") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset: {name: ps, parameter: {name: n, type: int, _: \"1,2\"}}\n"
             "step:\n"
             "  - {name: env, kind: setup, use: ps, export: true, do: \"export WHERE=$$(pwd)\"}\n"
             "  - {name: go, kind: run, depend: env, launch: \"echo $$WHERE\"}\n");
  CHECK(shell.tally("run b.yaml").code == 0);
  const std::string where = shell.root() + "/run/000000/000000_env/work\n";
  CHECK(shell.content("run/000000/000002_go/work/stdout") == where);
  CHECK(shell.content("run/000000/000003_go/work/stdout") == where);
}

TEST_CASE("setup work that fails is nobody's: it is done again, and what needs it does not run") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\nstep:\n"
             "  - {name: corpus, kind: setup, do: \"echo try >>$jube_benchmark_home/times; test -e "
             "$jube_benchmark_home/net\"}\n"
             "  - {name: train, kind: run, depend: corpus, launch: \"echo trained\"}\n");
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "failed: 1 of 1 (corpus): exit code 1 ("), ran.out);
  CHECK(!shell.exists("run/000000/000001_train"));
  shell.file("net", "");
  ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  CHECK(shell.content("run/000001/000001_train/work/stdout") == "trained\n");
  CHECK(shell.content("times") == "try\ntry\n");
}

TEST_CASE(
    "env and env_unset: variables of one step, with parameters; a name that cannot be is said") {
  const Shell shell;
  const std::string set = "parameter: {name: n, type: int, _: \"1,2\"}";
  const std::string step = "do: \"echo v=$${SPEED-0} $${HOME-gone} >>out; cat out\"";
  shell.file("b.yaml",
             one_step_bench(set, "env: {SPEED: \"1$n\"}, env_unset: [HOME], " + step, "n, v"));
  Ran ran = shell.tally("run -r b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "| 1 | 11 |\n| 2 | 12 |\n"), ran.out);
  CHECK(shell.content("run/000000/000000_s/work/out") == "v=11 gone\n");
  shell.file("b.yaml", one_step_bench(set, "enw: {SPEED: \"1$n\"}, timeout: 5s, " + step, "n, v"));
  ran = shell.tally("run b.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "unknown key 'enw' in step 's'"), ran.err);
  CHECK(has(ran.err, "hint: did you mean 'env'?\n"));
}

TEST_CASE("the plan does not show a platform's `tasks` that the step's resources replace") {
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: b\noutpath: runs\n"
      "step: {name: r, kind: run, platform: local, resources: {nodes: 4, tasks_per_node: 2}, "
      "do: 'echo tasks=$tasks'}\n");
  const Ran plan = shell.tally("run -n b.yaml");
  CHECK(plan.code == 0);
  CHECK_MESSAGE(!has(plan.out, " tasks=1"), plan.out);
  CHECK(shell.tally("run b.yaml").code == 0);
  CHECK(shell.content("runs/000000/000000_r/work/stdout") == "tasks=8\n");
}

// Several runs shown together: each is computed by its own definitions.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

struct Parts {
  std::string name = "v", outpath = "run", parameters = "{name: n, type: int, _: \"1,2\"}",
              command = "echo rate=$n", pattern = "{name: rate, type: int, _: 'rate=$jube_pat_fp'}",
              table = "column: [n, rate]", more;
};

std::string workflow(const Parts& parts) {
  return "name: " + parts.name + "\noutpath: " + parts.outpath +
         "\nparameterset: {name: p, parameter: [" + parts.parameters +
         "]}\n"
         "step: {name: s, kind: run, use: p, do: '" +
         parts.command +
         "'}\n"
         "patternset: {name: o, pattern: [" +
         parts.pattern +
         "]}\n"
         "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: csv, " +
         parts.table + "}" + parts.more + "}\n";
}

// Two runs, the second with another expression and another filter.
void run_with_changed_table(const Shell& shell) {
  Parts parts;
  parts.table = "column: [n, rate, {_: x, expression: \"rate*10\"}]";
  shell.file("v.yaml", workflow(parts));
  shell.tally("run v.yaml");
  parts.table = "filter: \"n < 2\", column: [n, rate, {_: x, expression: \"rate*100\"}]";
  shell.file("v.yaml", workflow(parts));
  shell.tally("run v.yaml");
}

}  // namespace

TEST_CASE("several runs: each run's rows and files come from its own definitions") {
  const Shell shell;
  run_with_changed_table(shell);
  const std::string first = "n,rate,x\n1,1,10\n2,2,20\n";
  CHECK(shell.content("run/000000/result/t.dat") == first);
  const Ran ran = shell.tally("result run -i all");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(ran.out == "id,n,rate,x\n0,1,1,10\n0,2,2,20\n1,1,1,100\n\n");
  CHECK_MESSAGE(has(ran.err,
                    "note: t: run 0 is computed by other definitions than run 1: filter, column "
                    "'x'; `tally result -u FILE` computes all runs by one file\n"),
                ran.err);
  CHECK(shell.content("run/000000/result/t.dat") == first);
  CHECK(shell.content("run/000001/result/t.dat") == "n,rate,x\n1,1,100\n");
  // -u computes all runs by one file, as it says.
  const Ran updated = shell.tally("result run -i all -u v.yaml");
  CHECK(updated.out == "id,n,rate,x\n0,1,1,100\n1,1,1,100\n\n");
  CHECK_MESSAGE(!has(updated.err, "definitions"), updated.err);
}

TEST_CASE("several runs: report and plot compute each run by its own definitions, too") {
  const Shell shell;
  run_with_changed_table(shell);
  Ran ran = shell.tally("report run -i 0 1 --format csv");
  CHECK_MESSAGE(ran.out == "id,n,rate,x\n0,1,1,10\n0,2,2,20\n1,1,1,100\n", ran.out);
  ran = shell.tally("report run -i 0 1 --format md");
  CHECK_MESSAGE(has(ran.out, "run 0 is computed by other definitions than run 1"), ran.out);
  ran = shell.tally("plot run -i all -x n --metric x --series id -o c.svg");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK(has(shell.content("c.svg"), "<title>0: n 2, x 20</title>"));
  CHECK(has(shell.content("c.svg"), "<title>1: n 1, x 100</title>"));
}

TEST_CASE("several runs: columns and tables that only some runs have are joined") {
  const Shell shell;
  Parts parts;
  parts.table = "column: [n, rate, {_: old, expression: \"rate+1\"}]";
  shell.file("v.yaml", workflow(parts));
  shell.tally("run v.yaml");
  parts.table = "column: [{_: new, expression: \"rate+2\"}, rate]";
  shell.file("v.yaml", workflow(parts));
  shell.tally("run v.yaml");
  const Ran ran = shell.tally("result run -i all");
  CHECK_MESSAGE(ran.out == "id,new,rate,n,old\n0,,1,1,2\n0,,2,2,3\n1,3,1,,\n1,4,2,,\n\n", ran.out);
  CHECK(shell.tally("result run -i all --select old").out == "id,old\n0,2\n0,3\n\n");
}

TEST_CASE("several runs: a baseline is a row of the same run") {
  const Shell shell;
  Parts parts;
  parts.table = "column: [n, {_: rate, title: rel, relative_to: {n: 1}}]";
  shell.file("v.yaml", workflow(parts));
  shell.tally("run v.yaml");
  parts.command = "echo rate=$(($n*$n*10))";
  shell.file("v.yaml", workflow(parts));
  shell.tally("run v.yaml");
  CHECK(shell.tally("result run -i all").out == "id,n,rel\n0,1,1.0\n0,2,2.0\n1,1,1.0\n1,2,4.0\n\n");
}

TEST_CASE("several runs: rows, notes and missed references name their run") {
  const Shell shell;
  Parts parts;
  parts.command = "echo rate=$n; test $n = 1";
  parts.table = "column: [n, {_: rate, reference: \"<= 1\"}]";
  shell.file("v.yaml", workflow(parts));
  shell.tally("run v.yaml");
  parts.command = "echo rate=$n";
  shell.file("v.yaml", "# one line more\n" + workflow(parts));
  shell.tally("run v.yaml");
  const Ran ran = shell.tally("result run -i all");
  CHECK(ran.code == 5);
  CHECK_MESSAGE(ran.out == "id,n,rate,status\n0,1,1,done\n0,2,2,FAILED\n1,1,1,done\n1,2,2,done\n\n",
                ran.out);
  CHECK_MESSAGE(has(ran.err, "note: t: run 0, row 2 FAILED: workpackage 1 (s) failed"), ran.err);
  CHECK_MESSAGE(has(ran.err, "v.yaml:7:80: reference missed: t: run 0: row 2 (n=2): no value"),
                ran.err);
  CHECK_MESSAGE(has(ran.err, "v.yaml:8:80: reference missed: t: run 1: row 2 (n=2): rate is 2"),
                ran.err);
}

TEST_CASE("several runs: tables of different benchmarks are not mixed") {
  const Shell shell;
  shell.file("v.yaml", workflow({}));
  shell.tally("run v.yaml");
  Parts other;
  other.name = "w";
  other.command = "echo rate=$(($n*1000))";
  shell.file("w.yaml", workflow(other));
  shell.tally("run w.yaml");
  Ran ran = shell.tally("result run -i all");
  CHECK_MESSAGE(ran.out == "id,n,rate\n1,1,1000\n1,2,2000\n\nid,n,rate\n0,1,1\n0,2,2\n\n", ran.out);
  CHECK_MESSAGE(has(ran.err, "note: t: this table is of benchmark 'w', run 1\n"), ran.err);
  CHECK_MESSAGE(has(ran.err, "note: t: this table is of benchmark 'v', run 0\n"), ran.err);
  ran = shell.tally("plot run -i all -x n --metric rate --series id -o c.svg");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "the runs are of different benchmarks: 'v' (run 0) and 'w' (run 1)"),
                ran.err);
}

TEST_CASE("several runs: a parameter named id keeps its values") {
  const Shell shell;
  Parts parts;
  parts.parameters = "{name: id, _: \"a,b\"}";
  parts.command = "echo rate=1";
  parts.table = "filter: \"id == \\\"b\\\"\", column: [id, rate]";
  shell.file("v.yaml", workflow(parts));
  shell.tally("run v.yaml");
  shell.tally("run v.yaml");
  CHECK(shell.tally("result run -i all").out == "run id,id,rate\n0,b,1\n1,b,1\n\n");
  const Ran ran = shell.tally("report run -i 0 1 --format csv");
  CHECK_MESSAGE(ran.out == "run id,id,rate\n0,b,1\n1,b,1\n", ran.out);
  CHECK(has(shell.tally("result run -i all -s jsonl").out,
            "\"run\":1,\"workpackage\":1,\"status\":\"done\",\"repeats\":1,"
            "\"values\":{\"id\":\"b\",\"rate\":1}"));
}

namespace {

std::string rate_in(const std::string& unit) {
  return "{name: rate, type: float, unit: " + unit + ", _: 'rate=$jube_pat_fp'}";
}

// Run 0 is in s, run 1 in ms.
void run_in_two_units(const Shell& shell) {
  Parts parts;
  parts.command = "echo rate=$n.$jube_wp_iteration";
  parts.table = "column: [n, {_: rate, better: lower}]";
  for (const char* unit : {"s", "ms"}) {
    parts.pattern = rate_in(unit);
    std::string text = workflow(parts);
    text.insert(text.find("use: p, do"), "repeat: 6, ");
    shell.file("v.yaml", text);
    shell.tally("run v.yaml -q");
  }
}

}  // namespace

TEST_CASE("units: runs with different units do not make one table") {
  const Shell shell;
  run_in_two_units(shell);
  const std::string message =
      "table 't': column 'rate' has the unit s in run 0 and ms in run 1, so that their rows do not "
      "make one table; show these runs one by one, or leave the column out";
  for (const char* command :
       {"result run -i all", "result run -i all -s json", "report run -i 0 1 --format json"}) {
    const Ran ran = shell.tally(command);
    CHECK(ran.code == 1);
    CHECK_MESSAGE(has(ran.err, message), ran.err);
    CHECK_MESSAGE(!has(ran.out, "rate"), ran.out);
  }
  CHECK(shell.tally("plot run -i all -x n --metric rate --series id -o c.svg").code == 2);
  CHECK(shell.tally("result run -i all --select n").out == "id,n\n0,1\n0,2\n1,1\n1,2\n\n");
}

TEST_CASE("units: compare refuses different units and different benchmarks") {
  const Shell shell;
  run_in_two_units(shell);
  Ran ran = shell.tally("compare run/000000 run/000001");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "'rate' has the unit s in the first run and ms in the second"),
                ran.err);
  CHECK(ran.out.empty());
  CHECK(shell.tally("compare run/000000 run/000000 --null").code != 2);
  Parts other;
  other.name = "w";
  other.outpath = "other";
  other.pattern = rate_in("ms");
  other.table = "column: [n, {_: rate, better: lower}]";
  shell.file("w.yaml", workflow(other));
  shell.tally("run w.yaml -q");
  ran = shell.tally("compare run/000001 other/000000");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "the first run is of benchmark 'v', and the second of 'w'"), ran.err);
}

TEST_CASE("units: a history has a series for each unit and each benchmark") {
  const Shell shell;
  run_in_two_units(shell);
  const Ran ran = shell.tally("history run -s csv");
  CHECK_MESSAGE(has(ran.out, "parameters,unit,run,start,rate,ci_low"), ran.out);
  CHECK_MESSAGE(has(ran.out, "n=1,s,0,"), ran.out);
  CHECK_MESSAGE(has(ran.out, "n=1,ms,1,"), ran.out);
  CHECK_MESSAGE(
      has(ran.err, "note: the runs give 'rate' in different units; each has its own lines\n"),
      ran.err);
  CHECK(has(shell.tally("history run -s json").out, "\"unit\": \"s\""));
}

TEST_CASE("units: two patterns of one name in one table") {
  const Shell shell;
  shell.file(
      "a.yaml",
      "name: a\noutpath: run\n"
      "parameterset: {name: p, parameter: [{name: n, type: int, _: \"1\"}]}\n"
      "step:\n"
      " - {name: s, kind: run, use: p, do: 'echo \"time=$n.5 ms\"'}\n"
      " - {name: r, kind: run, use: p, do: 'echo \"time=$n.7 s\"'}\n"
      "patternset:\n"
      " - {name: o, pattern: {name: time, type: float, unit: ms, _: 'time=$jube_pat_fp ms'}}\n"
      " - {name: q, pattern: {name: time, type: float, unit: s, _: 'time=$jube_pat_fp s'}}\n"
      "analyser:\n"
      " - {name: a, use: o, analyse: {step: s, file: stdout}}\n"
      " - {name: b, use: q, analyse: {step: r, file: stdout}}\n"
      "result: {use: [a,b], table: {name: t, style: csv, column: [n, time, {_: time, "
      "title: rel, relative_to: {n: 1}}]}}\n");
  const Ran ran = shell.tally("run a.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(
      has(ran.err, "a.yaml:13:63: error: table 't': the values of 'time' are in ms and in s\n"),
      ran.err);
  CHECK_MESSAGE(has(ran.err, "hint: give the patterns different names"), ran.err);
  CHECK_MESSAGE(has(ran.out, "n,time,rel\n1,1.5,\n1,1.7,\n"), ran.out);
  // JUBE's language keeps JUBE's header.
  shell.sh("ln -s \"$TALLY\" jube");
  CHECK(has(shell.sh("./jube result run").out, "n,time["));
}

TEST_CASE("units: plot refuses files with different units, and a ratio has none") {
  const Shell shell;
  shell.file("a.csv", "n,tps[tokens/s]\n1,2000\n");
  shell.file("b.csv", "n,tps[ktokens/s]\n1,3\n");
  Ran ran = shell.tally("plot a.csv b.csv -x n -y tps --series file -o c.svg");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err,
                    "column 'tps' has the unit tokens/s in 'a.csv' and ktokens/s in "
                    "'b.csv'"),
                ran.err);
  CHECK(!shell.exists("c.svg"));
  Parts parts;
  parts.pattern = rate_in("s");
  parts.table = "column: [rate, {_: rate, title: rel, relative_to: {n: 1}}]";
  shell.file("v.yaml", workflow(parts));
  shell.tally("run v.yaml");
  ran = shell.tally("result run -s json");
  CHECK_MESSAGE(
      has(ran.out, "{\"key\":\"rate\",\"name\":\"rate\",\"title\":\"rate\",\"unit\":\"s\"}"),
      ran.out);
  CHECK_MESSAGE(has(ran.out, "{\"key\":\"rel\",\"name\":\"rate\",\"title\":\"rel\"}"), ran.out);
}

TEST_CASE("result_dir: files of another outpath's run are not overwritten") {
  const Shell shell;
  Parts parts;
  parts.outpath = "one";
  parts.more = ", result_dir: shared";
  shell.file("a.yaml", workflow(parts));
  CHECK(shell.tally("run a.yaml").code == 0);
  const std::string first = "n,rate\n1,1\n2,2\n";
  CHECK(shell.content("shared/000000/t.dat") == first);
  parts.outpath = "two";
  parts.command = "echo rate=7";
  shell.file("b.yaml", workflow(parts));
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 1);
  CHECK(has(ran.out, "n,rate\n1,7\n2,7\n"));
  CHECK_MESSAGE(has(ran.err, "shared/000000' has the results of run '" + shell.root() +
                                 "/one/000000'; they are not overwritten\n"
                                 "hint: results are shown, but not kept: give each outpath a "
                                 "result_dir of its own\n"),
                ran.err);
  CHECK(shell.content("shared/000000/t.dat") == first);
  // The run itself may write them again, also under another name of its folder.
  CHECK(shell.tally("result one").code == 0);
  CHECK(shell.sh("mv one other && \"$TALLY\" result other").code == 0);
  // Nobody owns the files of a run that was removed.
  CHECK(shell.tally("result two").code == 1);
  CHECK(shell.sh("rm -r other && \"$TALLY\" result two").code == 0);
  CHECK(shell.content("shared/000000/t.dat") == "n,rate\n1,7\n2,7\n");
  // As in JUBE, whoever writes last has the file.
  shell.sh("ln -s \"$TALLY\" jube; sed s/two/three/ b.yaml > c.yaml");
  CHECK(shell.sh("./jube run -r c.yaml").code == 0);
}

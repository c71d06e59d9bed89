// `rows` of an analyser: a row for each match of a pattern. Expected tables by hand.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/report/printed_tables.h"

using tally::testing::has;
using tally::testing::printed_tables;
using tally::testing::Ran;

TEST_CASE("rows: what stands above the rows of a file is not another file's") {
  std::string workflow;
  workflow =
      "name: o\noutpath: run\n"
      "step: {name: s, kind: run, quiet_check: false, do: \"printf 'hdr 3\\n1 10\\n2 20\\n' > f1; "
      "printf 'hdr 7\\n1 11\\n' > f2; printf '4 40\\n' > f3\"}\n"
      "patternset: {name: q, pattern: [{name: x, type: int, _: '^(\\d+) '}, {name: v, type: int, "
      "_: '^\\d+ (\\d+)$'}, {name: h, type: int, _: 'hdr (\\d+)', default: 0}]}\n"
      "analyser: {name: a, use: q, rows: x, analyse: {step: s, file: 'f1,f2,f3'}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [x, v, h]}}\n";
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "x,v,h\n1,10,3\n2,20,3\n1,11,7\n4,40,0\n"), (ran.out + ran.err));
}

TEST_CASE("rows: a step behind the measurement shows the measurement's rows") {
  std::string workflow;
  // Repeats of the first step: each sample is its own workpackage's.
  workflow =
      "name: o\noutpath: run\n"
      "step:\n"
      "- {name: s, kind: run, quiet_check: false, repeat: 3, do: 'for n in 1 2 3; do echo $n "
      "$((n * 10 + $jube_wp_iteration)); done'}\n"
      "- {name: p, kind: run, depend: s, quiet_check: false, do: echo total 6$jube_wp_iteration}\n"
      "patternset:\n"
      "- {name: q, pattern: [{name: x, type: int, _: '^(\\d+) '}, {name: v, type: int, _: "
      "'^\\d+ (\\d+)$'}]}\n"
      "- {name: z, pattern: {name: total, type: int, _: 'total (\\d+)'}}\n"
      "analyser: {name: a, rows: x, analyse: [{step: s, file: {_: stdout, use: q}}, {step: p, "
      "file: {_: stdout, use: z}}]}\n"
      "result: {use: a, table: {name: t, style: csv, column: [x, {_: v, statistic: max}, v_n, "
      "total]}}\n";
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "1,12,3,60,3 of 3\n2,22,3,60,3 of 3\n3,32,3,60,3 of 3\n"),
                (ran.out + ran.err));
}

TEST_CASE("rows: several patterns tell them apart, and a block has several lines") {
  std::string workflow;
  // HPL: two rows of one N, which differ in NB. The residual stands below its row; one lacks it.
  workflow =
      "name: hpl\noutpath: run\n"
      "step:\n  name: s\n  kind: run\n  quiet_check: false\n  do: |\n    cat <<end\n"
      "    T/V N NB P Q Time Gflops\n    WR 1000 64 1 2 0.5 10.5\n    resid= 0.001 PASSED\n"
      "    WR 1000 128 1 2 0.4 12.5\n    WR 2000 64 1 2 2.5 20.5\n    resid= 0.003 PASSED\n"
      "    end\n"
      "patternset:\n  name: q\n  pattern:\n"
      "  - {name: n, type: int, _: '^WR (\\d+)'}\n"
      "  - {name: nb, type: int, _: '^WR \\d+ (\\d+)'}\n"
      "  - {name: gflops, type: float, _: '^WR .* ([\\d.]+)$'}\n"
      "  - {name: resid, type: float, _: 'resid= $jube_pat_fp', default: -1}\n"
      "  - {name: twice, type: float, mode: python, _: 2 * $gflops}\n"
      "analyser: {name: a, use: q, rows: 'n, nb', analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [n, nb, gflops, resid, twice, "
      "{_: gflops, title: x, relative_to: {nb: 64}}]}}\n";
  const Ran ran = printed_tables(workflow);
  CHECK(has(ran.out,
            "n,nb,gflops,resid,twice,x\n1000,64,10.5,0.001,21.0,1.0\n1000,128,12.5,-1.0,25.0,"
            "1.1904761904761905\n2000,64,20.5,0.003,41.0,1.0\n"));
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
}

TEST_CASE("rows: repeats of a row are its samples, whatever other rows there are") {
  std::string workflow;
  // The second repeat ends before the last size.
  workflow =
      "name: o\noutpath: run\n"
      "step:\n  name: s\n  kind: run\n  quiet_check: false\n  repeat: 3\n"
      "  do: for n in 1 2 4; do test $jube_wp_iteration != 1 || test $n != 4 || exit 0; "
      "echo $n $((n * 10 + $jube_wp_iteration)).5; done\n"
      "patternset: {name: q, pattern: [{name: size, type: int, _: '^(\\d+) '}, {name: lat, "
      "type: float, _: '^\\d+ ([\\d.]+)$'}]}\n"
      "analyser: {name: a, use: q, rows: size, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [size, {_: lat, statistic: "
      "median, title: median}, lat_n]}}\n";
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(
      has(ran.out,
          "size,median,lat_n,repeats\n1,11.5,3,3 of 3\n2,21.5,3,3 of 3\n4,41.5,2,2 of 3\n"),
      (ran.out + ran.err));
}

TEST_CASE("rows: equal keys of one workpackage stay rows of their own") {
  std::string workflow;
  workflow =
      "name: o\noutpath: run\n"
      "step: {name: s, kind: run, quiet_check: false, repeat: 2, do: \"printf 'x 1 5\\\\nx 1 "
      "7\\\\n'\"}\n"
      "patternset: {name: q, pattern: [{name: x, type: int, _: '^x (\\d+)'}, {name: v, type: "
      "int, _: '(\\d+)$'}]}\n"
      "analyser: {name: a, use: q, rows: x, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [x, {_: v, statistic: mean}, "
      "v_n]}}\n";
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "\n1,5.0,2,2 of 2\n1,7.0,2,2 of 2\n"), (ran.out + ran.err));
}

TEST_CASE("rows: a match whose group is empty begins a row") {
  std::string workflow;
  workflow =
      "name: b\noutpath: run\n"
      "step: {name: s, kind: run, quiet_check: false, do: \"printf 'n=2 t=7\\nn= t=5\\n'\"}\n"
      "patternset: {name: q, pattern: [{name: n, type: int, _: 'n=(\\d*)'}, {name: t, type: "
      "int, _: 't=(\\d+)'}]}\n"
      "analyser: {name: a, use: q, rows: n, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [n, t, t_cnt]}}\n";
  const Ran ran = printed_tables(workflow);
  CHECK_MESSAGE(has(ran.out, "n,t,t_cnt\n2,7,1\n,5,1\n"), (ran.out + ran.err));
}

TEST_CASE("rows: equal rows of two files are an error, of one file rows of their own") {
  std::string workflow;
  const auto run = [&](const std::string& command, const std::string& file) {
    workflow =
        "name: b\noutpath: run\n"
        "step: {name: s, kind: run, quiet_check: false, do: \"" +
        command +
        "\"}\n"
        "patternset: {name: q, pattern: [{name: n, type: int, _: 'n=(\\d+)'}, {name: t, "
        "type: int, _: 't=(\\d+)'}]}\n"
        "analyser: {name: a, use: q, rows: n, analyse: {step: s, file: " +
        file +
        "}}\n"
        "result: {use: a, table: {name: t, style: csv, column: [n, t]}}\n";
    return printed_tables(workflow);
  };
  const std::string two = "echo n=1 t=7 >a.log; echo n=1 t=8 >b.log";
  for (const char* files : {"'a.log,b.log'", "'*.log'", "[a.log, '*.log']"}) {
    const Ran ran = run(two, files);
    CHECK(ran.code == 1);
    CHECK_MESSAGE(has(ran.err, "two files have a row with n 1: "), ran.err);
  }
  const Ran one = run("echo n=1 t=7 >a.log; echo n=1 t=8 >>a.log", "a.log");
  CHECK_MESSAGE(one.code == 0, one.err);
  CHECK(has(one.out, "n,t\n1,7\n1,8\n"));
}

TEST_CASE("several different values where only the first is shown are said") {
  std::string workflow;
  const auto said = [&](const std::string& output, const std::string& rest) {
    workflow =
        "name: b\noutpath: run\nparameters: {n: [1, 2]}\nrun: printf '" + output + "' $n\n" + rest;
    const Ran ran = printed_tables(workflow);
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    return ran.err;
  };
  const std::string metrics = "metrics: {size: '^(\\d+) ', rate: '^\\d+ $jube_pat_fp'}\n";
  CHECK(said("%d 5\\n7 6\\n7 6\\n", metrics) ==
        "b.yaml:5:17: note: 'size', 'rate' have up to 3 different values in an output, and the "
        "first is shown\n"
        "    metrics: {size: '^(\\d+) ', rate: '^\\d+ $jube_pat_fp'}\n"
        "                    ^~~~~~~~~\n"
        "hint: size_last, size_max, size_avg and the like are columns, too; `rows: size` makes a "
        "row of each match\n");
  CHECK(said("%d 5\\n", metrics).empty());
  CHECK(said("%d 5\\n", "metrics: {size: '^(\\d+) '}\n").empty());
  // Equal values; rows; another of the values; both.
  CHECK(said("%d 5\\n", "metrics: {size: '(5)'}\n").empty());
  CHECK(said("5 5 %d\\n", "metrics: {size: '(5)'}\n").empty());
  CHECK(said("%d 5\\n7 6\\n", metrics + "rows: size\n").empty());
  CHECK(
      said("%d 5\\n7 6\\n",
           metrics + "result: {use: metrics, table: {name: t, column: [n, size_last, rate_max]}}\n")
          .empty());
}

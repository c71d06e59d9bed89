// What a row says of the workpackages of earlier steps, whose values it shows or which failed.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

const std::string kTail =
    "patternset: [{name: oa, pattern: {name: ra, type: float, _: 'ra=$jube_pat_fp'}},\n"
    " {name: ob, pattern: {name: rb, type: float, _: 'rb=$jube_pat_fp'}}]\n"
    "analyser: {name: a, analyse: [{step: a, file: {_: stdout, use: oa}}, {step: b, file: {_: "
    "stdout, "
    "use: ob}}]}\n";

}  // namespace

TEST_CASE("earlier steps: a value of reused work is marked") {
  const Shell shell;
  const std::string head =
      "name: b\noutpath: run\nstep: [{name: a, kind: build, do: 'echo ra=1'},\n"
      " {name: b, kind: run, depend: a, do: 'echo rb=2'}]\n" +
      kTail;
  shell.file("b.yaml", head + "result: {use: a, table: {name: t, style: csv, column: [ra, rb]}}\n");
  CHECK(has(shell.tally("run b.yaml").out, "ra,rb\n1.0,2.0\n"));
  Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE((ran.code == 0 && has(ran.out, "ra,rb,status\n1.0,2.0,REUSED\n")),
                (ran.out + ran.err));
  CHECK(has(shell.tally("result run -s json").out, "\"status\":\"reused\""));
  // Not if the row shows nothing of it.
  shell.file("b.yaml", head + "result: {use: a, table: {name: t, style: csv, column: [rb]}}\n");
  ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "rb\n2.0\n"), ran.out);
}

TEST_CASE("earlier steps: each table of a result is marked for the values that it shows") {
  const Shell shell;
  std::string tail = kTail;
  const std::string last = "'rb=$jube_pat_fp'}";
  tail.insert(tail.find(last) + last.size(),
              ", {name: rc, mode: python, type: float, _: '$rb + $ra_avg'}]");
  tail.insert(tail.find("{name: rb,"), "[");
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\nstep: [{name: a, kind: build, do: 'sleep 1; echo ra=1'},\n"
      " {name: b, kind: run, depend: a, do: 'echo rb=2'}]\n" +
          tail +
          "result: {use: a, table: [{name: t1, style: csv, column: [rb]},\n"
          " {name: t2, style: csv, column: [ra, rb]}, {name: t3, style: csv, column: [rc]},\n"
          " {name: t4, style: csv, column: [{_: twice, expression: 2 * ra_max}]},\n"
          " {name: t5, style: csv, filter: \"status == 'done' and ra == 1\", sort: ra, column: "
          "[rb]},\n"
          " {name: t6, style: csv, column: [rb, status]},\n"
          " {name: t7, style: csv, column: [rb], reference: {column: rb, _: 'x > ra'}}]}\n");
  Ran ran = shell.sh(
      "export TALLY_QUIET_CHECK=on; (while :; do :; done) & loop=$!; \"$TALLY\" -q run b.yaml; "
      "code=$?; kill $loop; exit $code");
  CHECK_MESSAGE(ran.out ==
                    "rb\n2.0\n\nra,rb,machine\n1.0,2.0,BUSY\n\nrc,machine\n3.0,BUSY\n\n"
                    "twice,machine\n2.0,BUSY\n\nrb\n2.0\n\nrb,status\n2.0,done\n\n"
                    "rb,machine\n2.0,BUSY\n\n",
                (ran.out + ran.err));
  ran = shell.sh("TALLY_QUIET_CHECK=off \"$TALLY\" -q run b.yaml");
  CHECK_MESSAGE(ran.out ==
                    "rb\n2.0\n\nra,rb,status\n1.0,2.0,REUSED\n\nrc,status\n3.0,REUSED\n\n"
                    "twice,status\n2.0,REUSED\n\nrb\n2.0\n\nrb,status\n2.0,done\n\n"
                    "rb,status\n2.0,REUSED\n\n",
                (ran.out + ran.err));
  ran = shell.tally("result run -i 1 -s csv --select rb");
  CHECK_MESSAGE(!has(ran.out, "ra,rb,status"), ran.out);
}

TEST_CASE("earlier steps: a busy machine during a measurement whose value a later row shows") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\nstep: [{name: a, kind: run, do: 'sleep 1; echo ra=1'},\n"
             " {name: b, kind: run, depend: a, do: 'echo rb=2'}]\n" +
                 kTail + "result: {use: a, table: {name: t, style: csv, column: [ra, rb]}}\n");
  const Ran ran = shell.sh(
      "export TALLY_QUIET_CHECK=on; (while :; do :; done) & loop=$!; \"$TALLY\" run b.yaml; "
      "code=$?; kill $loop; exit $code");
  CHECK_MESSAGE(has(ran.out, "ra,rb,machine\n1.0,2.0,BUSY\n"), (ran.out + ran.err));
}

TEST_CASE("earlier steps: a value that is read through the link to a build has the build's marks") {
  const Shell shell;
  const std::string head =
      "name: b\noutpath: run\nstep: [{name: b, kind: build, do: 'sleep 1; echo ra=1'},\n"
      " {name: s, kind: run, depend: b, do: 'echo rb=2'}]\n"
      "patternset: [{name: oa, pattern: {name: ra, type: float, _: 'ra=$jube_pat_fp'}},\n"
      " {name: ob, pattern: {name: rb, type: float, _: 'rb=$jube_pat_fp'}}]\n"
      "analyser: {name: a, analyse: {step: s, file: [{_: stdout, use: ob}, {_: b/stdout, use: "
      "oa}]}}\n";
  const auto bench = [&](const std::string& columns) {
    return head + "result: {use: a, table: {name: t, style: csv, column: [" + columns + "]}}\n";
  };
  shell.file("b.yaml", bench("{_: ra, better: lower}, {_: rb, better: lower}"));
  Ran ran = shell.sh(
      "export TALLY_QUIET_CHECK=on; (while :; do :; done) & loop=$!; \"$TALLY\" run b.yaml; "
      "code=$?; kill $loop; exit $code");
  CHECK_MESSAGE(has(ran.out, "ra,rb,machine\n1.0,2.0,BUSY\n"), (ran.out + ran.err));
  ran = shell.sh("TALLY_QUIET_CHECK=off \"$TALLY\" run b.yaml");
  CHECK_MESSAGE(has(ran.out, "ra,rb,status\n1.0,2.0,REUSED\n"), (ran.out + ran.err));
  CHECK(has(shell.tally("history run -s csv --metric ra").out, ",REUSED,"));
  CHECK(!has(shell.tally("history run -s csv --metric rb").out, ",REUSED,"));
  // Not if the row shows nothing of it.
  shell.file("b.yaml", bench("rb"));
  ran = shell.sh("TALLY_QUIET_CHECK=off \"$TALLY\" run b.yaml");
  CHECK_MESSAGE(has(ran.out, "rb\n2.0\n"), (ran.out + ran.err));
}

TEST_CASE("earlier steps: what repeats read through the link to one build is one measurement") {
  // Three repeats of a build that are one piece of work, and three that are not.
  for (const char* build : {"echo ra=1", "echo ra=$jube_wp_iteration"}) {
    CAPTURE(build);
    const Shell shell;
    shell.file(
        "b.yaml",
        std::string("name: b\noutpath: run\nstep: [{name: b, kind: build, iterations: 3, do: '") +
            build +
            "'},\n"
            " {name: s, kind: run, depend: b, do: 'echo rb=2'}]\n"
            "patternset: [{name: oa, pattern: {name: ra, type: float, _: 'ra=$jube_pat_fp'}},\n"
            " {name: ob, pattern: {name: rb, type: float, _: 'rb=$jube_pat_fp'}}]\n"
            "analyser: {name: a, analyse: {step: s, file: [{_: stdout, use: ob}, {_: b/stdout, "
            "use: "
            "oa}]}}\n"
            "result: {use: a, table: {name: t, style: csv, column: [ra_n, rb_n, ra_median]}}\n");
    const Ran ran = shell.tally("run b.yaml");
    const bool one = std::string(build) == "echo ra=1";
    CHECK_MESSAGE(has(ran.out, one ? "\n1,3,1.0\n" : "\n3,3,1.0\n"), (ran.out + ran.err));
  }
}

TEST_CASE("earlier steps: rows that a failed set-up leaves out are told everywhere") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\nparameterset: {name: p, parameter: {name: n, type: int, _: "
             "\"1,2\"}}\n"
             "step: [{name: a, kind: build, use: p, reuse: false, do: 'test $n != 2 || test ! -e "
             "$jube_benchmark_home/bad'},\n"
             " {name: b, kind: run, depend: a, repeat: 4, do: 'echo rb=$n'}]\n"
             "patternset: {name: o, pattern: {name: rb, type: float, _: 'rb=$jube_pat_fp'}}\n"
             "analyser: {name: a, use: o, analyse: {step: b, file: stdout}}\n"
             "result: {use: a, table: {name: t, style: csv, column: [n, {_: rb, statistic: median, "
             "better: lower}]}}\n");
  CHECK(shell.tally("run b.yaml").code == 0);
  shell.file("bad", "");
  CHECK(shell.tally("run b.yaml").code == 1);
  const std::string why = "workpackage 1 (a) failed: ";
  Ran ran = shell.tally("compare run/000000 run/000001");
  CHECK_MESSAGE(ran.code == 1, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.err, "note: t: second run: " + why), ran.err);
  // The other way round nothing is lost.
  CHECK(shell.tally("compare run/000001 run/000000").code == 0);
  ran = shell.tally("report run -i 1 --format csv");
  CHECK_MESSAGE(has(ran.err, why), ran.err);
  ran = shell.tally("plot run -i 1 --x n --y rb -o p.svg");
  CHECK_MESSAGE((ran.code == 0 && has(ran.err, "note: t: " + why)), ran.err);
}

namespace {

// Step s ends as `expect` says for i = 2, after it has printed a number, and step c depends on it.
std::string with_expected(const std::string& keys, const std::string& analyser,
                          const std::string& columns, const std::string& more = "") {
  return "name: b\noutpath: run\n"
         "parameterset: {name: p, parameter: {name: i, type: int, _: \"1,2\"}}\n"
         "patternset:\n"
         "- {name: pt, pattern: [{name: v, type: float, _: 'v=$jube_pat_fp'},\n"
         "   {name: d, mode: python, type: float, _: '2 * $v'}]}\n"
         "- {name: pw, pattern: {name: w, type: float, _: 'w=$jube_pat_fp'}}\n"
         "step:\n- {name: s, kind: run, quiet_check: false, use: p, expect: timeout, " +
         keys +
         "}\n- {name: c, kind: run, quiet_check: false, depend: s, do: 'echo w=7'}\n"
         "analyser: {name: a, use: pt, analyse: " +
         analyser + "}\nresult: {use: a, " + more + "table: {name: t, style: csv, column: [" +
         columns + "]}}\n";
}

constexpr const char* kExpected = "do: 'echo v=$i; test $i = 1 || exit 4'";
// The value is that of s in each of these.
constexpr const char* kAnalysers[] = {
    "[{step: s, file: stdout}, {step: c, file: {_: stdout, use: pw}}]",
    "[{step: c, file: [s/stdout, {_: stdout, use: pw}]}]",
    "[{step: s, file: stdout}, {step: c, file: [s/stdout, {_: stdout, use: pw}]}]"};

}  // namespace

TEST_CASE("earlier steps: a value of a step that ended as expected is no measurement") {
  const Shell shell;
  for (const char* analyser : kAnalysers) {
    CAPTURE(analyser);
    for (const char* name : {"v", "d", "v_max"}) {
      CAPTURE(name);
      shell.clear();
      const std::string column = name;
      shell.file("b.yaml",
                 with_expected(kExpected, analyser,
                               "i, {_: " + column + ", reference: '< 3'}, {_: " + column +
                                   ", title: r, relative_to: {i: 2}}, " + column + "_n",
                               "database: {name: e, file: e.sqlite, key: [i, " + column + "]}, "));
      const Ran ran = shell.tally("-q run b.yaml");
      CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
      CHECK_MESSAGE(has(ran.out, ",,1,done\n2,"), (ran.out + ran.err));
      CHECK_MESSAGE(has(ran.out, ",0,EXPECTED\n"), (ran.out + ran.err));
      CHECK_MESSAGE(has(ran.err, "its baseline row, with i=2, EXPECTED"), ran.err);
      CHECK(has(ran.err, "1 of 2 rows ended as `expect` says and is not written to the database"));
    }
    // A row that shows nothing of it is one of the later step's own.
    shell.clear();
    shell.file("b.yaml", with_expected(kExpected, analyser, "i, w"));
    const Ran ran = shell.tally("-q run b.yaml");
    CHECK_MESSAGE(has(ran.out, "i,w\n1,7.0\n2,7.0\n"), (ran.out + ran.err));
  }
}

TEST_CASE("earlier steps: repeats that ended as expected are in no sample of a later step's row") {
  const Shell shell;
  const std::string repeats =
      "repeat: 4, do: 'echo v=$i$jube_wp_iteration; test $i$jube_wp_iteration != 20 -a "
      "$i$jube_wp_iteration != 21 || exit 4'";
  for (const char* analyser : kAnalysers) {
    CAPTURE(analyser);
    shell.clear();
    shell.file("b.yaml", with_expected(repeats, analyser,
                                       "i, {_: v, statistic: median, uncertainty: range}, v_max, "
                                       "{_: w, title: own, statistic: median}"));
    const Ran ran = shell.tally("-q run b.yaml");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    // Iterations 0 to 3, of which 0 and 1 of i 2 are expected.
    CHECK_MESSAGE(has(ran.out, "1,11.5,10.0,13.0,13.0,7.0,4 of 4\n"), (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.out, "2,22.5,22.0,23.0,23.0,7.0,2 of 4\n"), (ran.out + ran.err));
  }
}

TEST_CASE("earlier steps: the nearest step that prints a value is the one that is asked") {
  const Shell shell;
  // Step s ended as expected and printed v; step m in between prints its own v.
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "patternset: {name: pt, pattern: {name: v, type: float, _: 'v=$jube_pat_fp'}}\n"
             "step:\n- {name: s, kind: run, quiet_check: false, expect: timeout, do: 'echo v=1; "
             "exit 4'}\n"
             "- {name: m, kind: run, quiet_check: false, depend: s, do: 'echo v=2'}\n"
             "- {name: c, kind: run, quiet_check: false, depend: m, do: 'true'}\n"
             "analyser: {name: a, use: pt, analyse: [{step: s, file: stdout}, {step: m, file: "
             "stdout}, {step: c, file: stdout}]}\n"
             "result: {use: a, table: {name: t, style: csv, column: [v, {_: v, title: m, "
             "statistic: median}]}}\n");
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(has(ran.out, "v,m,repeats\n2.0,2.0,1 of 1\n"), (ran.out + ran.err));
}

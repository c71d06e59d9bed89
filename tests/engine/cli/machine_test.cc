// What a run says of its machine, through the program.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/survive/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// The program takes half a second, so that its share of the machine can be told.
constexpr const char* kBench =
    "name: b\noutpath: run\n"
    "parameterset: {name: ps, parameter: [{name: size, type: int, _: \"1,2\"}, {name: label, _: "
    "\"x,y\"}]}\n"
    "patternset: {name: pt, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
    "step: {name: s, kind: run, use: ps, active: \"$size == 1 or '$label' == 'x'\", do: \"echo "
    "v=$size.5; sleep 0.5\"}\n"
    "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
    "result: {use: a, table: {name: t, style: csv, column: [size, label, {_: v, better: higher}]},"
    " chart: {name: c, kind: scatter, x: size, y: v}}\n";

}  // namespace

TEST_CASE("quiet check: a busy loop beside the run marks its rows, everywhere") {
  const Shell shell;
  shell.file("b.yaml", kBench);
  Ran ran = shell.sh(
      "export TALLY_QUIET_CHECK=on; (while :; do :; done) & loop=$!; \"$TALLY\" run b.yaml; "
      "code=$?; kill $loop; exit $code");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "size,label,v,machine\n1,x,1.5,BUSY\n1,y,1.5,BUSY\n2,x,2.5,BUSY\n"),
                (ran.out + ran.err));
  CHECK(has(ran.err, "note: t: row 1 BUSY: other programs used up to "));
  // It is kept with the run.
  ran = shell.tally("result run -s json");
  CHECK_MESSAGE(has(ran.out, "\"busy\":{\"repeats\":1,\"cores_of_others\":"), ran.out);
  CHECK(has(shell.content("run/000000/result/c.svg"), "measured while other programs used"));
  CHECK(has(shell.tally("report run -o r.html").out, "r.html"));
  CHECK(has(shell.content("r.html"), ">BUSY<"));
  // Without the check there is no mark.
  ran = shell.sh("TALLY_QUIET_CHECK=off \"$TALLY\" run b.yaml");
  CHECK_MESSAGE(has(ran.out, "size,label,v\n1,x,1.5\n"), ran.out);
  ran = shell.tally("compare run/000000 run/000001");
  CHECK_MESSAGE(has(ran.out, "unclear BUSY |"), ran.out);
  CHECK_MESSAGE(has(ran.err, "BUSY: other programs used the machine in the first run"), ran.err);
  // The parameters are in the workflow's order.
  CHECK_MESSAGE(has(ran.out, "| size | label | metric |"), ran.out);
}

TEST_CASE("provenance: kept with the run, shown, and compared") {
  const Shell shell;
  shell.file("b.yaml", kBench);
  CHECK(shell.sh("OMP_NUM_THREADS=1 \"$TALLY\" run b.yaml -q").code == 0);
  CHECK(shell.sh("OMP_NUM_THREADS=2 \"$TALLY\" run b.yaml -q").code == 0);
  const std::string kernel = shell.sh("uname -sr | tr -d '\\n'").out;
  Ran ran = shell.tally("result run -i 0 -s json");
  CHECK_MESSAGE(has(ran.out, "\"Kernel\":\"" + kernel + "\""), ran.out);
  CHECK(has(ran.out, "OMP_NUM_THREADS=1"));
  CHECK(has(ran.out, "\"Load at end\":\""));
  shell.tally("report run -i 0 -o r.html");
  CHECK(has(shell.content("r.html"), kernel));
  ran = shell.tally("compare run/000000 run/000001");
  CHECK_MESSAGE(has(ran.err, "note: the runs differ in Environment: "), ran.err);
  CHECK(!has(ran.err, "the runs differ in Load"));
  ran = shell.tally("compare run/000000 run/000001 -s json");
  CHECK_MESSAGE(
      has(ran.out, "\"differences\": [\n  {\n   \"name\": \"Environment\",\n   \"base\": \""),
      ran.out);
  CHECK(has(ran.out, "\"verdict\": \"unclear\""));
  // A session more on the same machine adds nothing.
  CHECK(shell.sh("OMP_NUM_THREADS=1 \"$TALLY\" continue run -i 0 -q").code == 0);
  ran = shell.tally("result run -i 0 -s json");
  CHECK(!has(ran.out, kernel + " / "));
}

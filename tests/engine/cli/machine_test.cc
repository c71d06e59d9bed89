// What a run says of its machine, through the program.
#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// The program takes longer than a look at the machine, so that its share of the machine can be told.
constexpr const char* kBench =
    "name: b\noutpath: run\n"
    "parameterset: {name: ps, parameter: [{name: size, type: int, _: \"1,2\"}, {name: label, _: "
    "\"x,y\"}]}\n"
    "patternset: {name: pt, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
    "step: {name: s, kind: run, use: ps, active: \"$size == 1 or '$label' == 'x'\", do: \"echo "
    "v=$size.5; sleep 1.5\"}\n"
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
  CHECK(has(ran.err, "note: t: rows 1 to 3 BUSY: other programs used up to "));
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

TEST_CASE("quiet check: of set-ups and builds, what an analyser reads is watched") {
  const auto row_of = [](const std::string& kind) {
    const Shell shell;
    std::string text = kBench;
    text.replace(text.find("kind: run"), 9, kind);
    shell.file("b.yaml", text);
    const Ran ran = shell.sh(
        "export TALLY_QUIET_CHECK=on; (while :; do :; done) & loop=$!; \"$TALLY\" run b.yaml; "
        "code=$?; kill $loop; exit $code");
    return ran.out + ran.err;
  };
  for (const char* kind : {"kind: setup", "kind: build"}) {
    const std::string shown = row_of(kind);
    // The second row shows the work of the first.
    CHECK_MESSAGE(
        has(shown, "size,label,v,status,machine\n1,x,1.5,done,BUSY\n1,y,1.5,REUSED,BUSY\n"), shown);
  }
  // Such as a prediction, which does not depend on how busy the machine is.
  for (const char* kind : {"kind: setup, quiet_check: false", "kind: run, quiet_check: false"}) {
    const std::string shown = row_of(kind);
    CHECK_MESSAGE(has(shown, "\n1,x,1.5"), shown);
    CHECK_MESSAGE(!has(shown, "BUSY"), shown);
  }
}

TEST_CASE("the report's last change is the run's end") {
  const Shell shell;
  std::string text = kBench;
  shell.file("b.yaml", text);
  CHECK(shell.tally("run b.yaml").code == 0);
  shell.tally("report run -o r.html");
  const std::string page = shell.content("r.html");
  const auto fact = [&](const std::string& name) {
    const size_t at = page.find("20", page.find(">" + name + "<"));
    return page.substr(at, page.find('<', at) - at);
  };
  CHECK(fact("Started").size() == 19);
  CHECK(fact("Last change").size() == 19);
  CHECK(fact("Started") < fact("Last change"));
}

TEST_CASE("quiet check: a table's own column may be called Machine; one note for all tables") {
  const Shell shell;
  std::string text = kBench;
  const std::string columns = "column: [size, label,";
  text.replace(text.find(columns), columns.size(),
               "column: [{_: label, title: Machine}, size, label,");
  const std::string chart = ", chart:";
  text.replace(text.find("result: {use: a, table: {"), 25, "result: {use: a, table: [{");
  text.replace(text.find("]}, chart:"), 10, "]}, {name: u, column: [size, v]}], chart:");
  text.replace(text.find("x: size"), 7, "table: t, x: size");
  shell.file("b.yaml", text);
  const Ran ran = shell.sh(
      "export TALLY_QUIET_CHECK=on; (while :; do :; done) & loop=$!; \"$TALLY\" run b.yaml; "
      "code=$?; kill $loop; exit $code");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.out, "Machine,size,label,v,machine state\nx,1,x,1.5,BUSY\n"),
                (ran.out + ran.err));
  CHECK(has(ran.err, "note: t: rows 1 to 3 BUSY: other programs used up to "));
  CHECK(!has(ran.err, "note: u: "));
  CHECK(shell.tally("plot run/000000/result/t.dat -x size -y v --kind scatter -o p.svg").code == 0);
}

namespace {

// The program says that it uses GPU 0, and waits until a look has seen as many processes as there
// are then. `looks`: of how many looks the last one has.
std::string on_gpu(int processes, int looks = 1) {
  std::string text = "echo 0 $$ >> \\\"$P\\\"; ";
  for (int i = 0; i < looks; ++i)
    text += "rm -f \\\"$P.seen\\\"; until grep -qs " + std::to_string(processes) +
            " \\\"$P.seen\\\"; do sleep 0.01; done; ";
  return "name: g\noutpath: run\n"
         "patternset: {name: pt, pattern: {name: v, type: float, _: \"v=$jube_pat_fp\"}}\n"
         "step: {name: s, kind: run, do: \"" +
         text +
         "echo v=1\"}\n"
         "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: csv, column: [{_: v, better: higher}]}}\n";
}

std::string with_gpus(const std::string& fake = "") {
  return "export TALLY_QUIET_CHECK=on P=\"$PWD/processes\" FAKE_NVML_PROCESSES=\"$PWD/processes\" "
         "LD_LIBRARY_PATH=" TALLY_FAKE_NVML " FAKE_NVML=" +
         fake + "; rm -f processes*; ";
}

}  // namespace

TEST_CASE("quiet check: a GPU that another program uses, too" *
          doctest::test_suite(tally::testing::kOpensALibrary)) {
  const Shell shell;
  shell.file("g.yaml", on_gpu(2));
  Ran ran = shell.sh(with_gpus() +
                     "sleep 600 & other=$!; echo 0 $other > processes; \"$TALLY\" run g.yaml; "
                     "code=$?; kill $other; exit $code");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "v,machine\n1.0,BUSY"), (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.err, "GPU 0: process "), ran.err);
  CHECK(has(ran.err, " (sleep) during the measurement; measure again on a quiet machine"));
  ran = shell.tally("result run -s json");
  CHECK_MESSAGE(has(ran.out, "\"gpus\":\"GPU 0: process "), ran.out);
  // Nobody else, and somebody on a GPU that the program does not use.
  shell.file("g.yaml", on_gpu(1));
  ran = shell.sh(with_gpus() + "\"$TALLY\" run g.yaml");
  CHECK_MESSAGE(!has(ran.err, "GPU"), ran.err);
  ran = shell.sh(with_gpus() +
                 "sleep 600 & other=$!; echo 1 $other > processes; \"$TALLY\" run g.yaml; "
                 "kill $other");
  CHECK_MESSAGE(!has(ran.err, "GPU"), ran.err);
}

TEST_CASE("quiet check: throttled GPUs" * doctest::test_suite(tally::testing::kOpensALibrary)) {
  const Shell shell;
  shell.file("g.yaml", on_gpu(1));
  // At the default limit the power cap is normal.
  Ran ran = shell.sh(with_gpus() + "\"$TALLY\" run g.yaml");
  CHECK_MESSAGE(!has(ran.err, "THROTTLED"), ran.err);
  ran = shell.sh(with_gpus("hot") + "\"$TALLY\" run g.yaml");
  CHECK_MESSAGE(has(ran.out, "THROTTLED\n"), ran.out);
  CHECK_MESSAGE(has(ran.err,
                    "note: t: row 1 THROTTLED: the machine was slower than it should be during the "
                    "measurement: GPU 0: thermal slowdown\n"),
                ran.err);
  ran = shell.tally("result run -i 1 -s json");
  CHECK_MESSAGE(has(ran.out, "\"throttled\":{\"repeats\":1,\"what\":\"GPU 0: thermal slowdown\"}"),
                ran.out);
  CHECK_MESSAGE(has(shell.tally("history run").out, "THROTTLED"), ran.out);
  ran = shell.tally("compare run/000000 run/000001");
  CHECK_MESSAGE(has(ran.out, " THROTTLED |"), ran.out);
  CHECK_MESSAGE(has(ran.err, "THROTTLED: the machine was throttled in the second run"), ran.err);
  // What is done again is judged again.
  shell.file("g.yaml", on_gpu(1));
  CHECK(has(shell.sh(with_gpus("hot") + "\"$TALLY\" run g.yaml").out, "THROTTLED"));
  CHECK(shell.tally("remove run -i 2 -w 0 -f").code == 0);
  ran = shell.sh(with_gpus() + "\"$TALLY\" continue run -i 2");
  CHECK_MESSAGE((has(ran.out, "\n1.0") && !has(ran.out, "THROTTLED")), (ran.out + ran.err));
}

TEST_CASE("quiet check: what throttles a GPU, and how it normally works" *
          doctest::test_suite(tally::testing::kOpensALibrary)) {
  const Shell shell;
  // Two looks tell for how long.
  shell.file("g.yaml", on_gpu(1, 2));
  const auto said_of = [&](const std::string& fake) {
    const Ran ran = shell.sh(with_gpus(fake) + "\"$TALLY\" run g.yaml");
    CHECK_MESSAGE(has(ran.out, "v"), ran.err);
    const std::string said =
        "THROTTLED: the machine was slower than it should be during the "
        "measurement: GPU 0: ";
    const size_t at = ran.err.find(said);
    CHECK((at != std::string::npos) == has(ran.out, "THROTTLED"));
    if (at == std::string::npos) return std::string();
    return ran.err.substr(at + said.size(), ran.err.find('\n', at) - at - said.size());
  };
  // An H100 at its default 700 W in a loop of GEMMs has clocks below its base clock.
  for (const char* normal :
       {"", "low", "lower", "low,flickers", "lower,flickers", "low,uncapped,counted",
        "lower,uncapped,counted", "uncapped", "low,idle", "lower,uncapped,idle",
        "lower,uncapped,idle,unsaid", "limited,uncapped"}) {
    CAPTURE(std::string(normal));
    CHECK(said_of(normal).empty());
  }
  CHECK(said_of("hot") == "thermal slowdown");
  CHECK(said_of("slow,idle") == "hardware slowdown");
  CHECK(said_of("brake,uncapped") == "power brake");
  CHECK(said_of("limited") == "power cap");
  for (const char* low : {"low,uncapped", "low,uncapped,unsaid"}) {
    CAPTURE(std::string(low));
    CHECK(has(said_of(low), "below its base clock for 7 % of the time in which it was busy"));
  }
  CHECK(has(said_of("lower,uncapped,hot"), "thermal slowdown, below its base clock for "));
}

TEST_CASE("provenance: GPUs and compilers" * doctest::test_suite(tally::testing::kOpensALibrary)) {
  const Shell shell;
  shell.file("b.yaml", kBench);
  for (const char* name : {"cc", "nvcc", "mpicc"}) {
    shell.file(std::string("bin/") + name,
               std::string("#!/bin/sh\n[ \"$1\" = --version ] || exit 1\necho ") + name +
                   " of somebody\necho 'Cuda compilation tools, release 13.1, V13.1.80'\n");
  }
  // As MPICH's compiler does.
  shell.file("bin/mpicc",
             "#!/bin/sh\n[ \"$1\" = -v ] || exit 1\necho mpicc for MPICH version 4.0.2\n");
  Ran ran = shell.sh("chmod +x bin/*; PATH=\"$PWD/bin:$PATH\" LD_LIBRARY_PATH=" TALLY_FAKE_NVML
                     " \"$TALLY\" run b.yaml -q; \"$TALLY\" result run -s json");
  for (const char* fact :
       {"\"C compiler\":\"cc of somebody\"", "\"MPI\":\"mpicc for MPICH version 4.0.2\"",
        "\"CUDA compiler\":\"Cuda compilation tools, release 13.1, V13.1.80\"",
        "\"GPUs\":\"1 x Fake H100, 2 x Fake old GPU\"", "\"GPU driver\":\"580.95.05\"",
        "\"CUDA of the driver\":\"13.1\"", "\"GPU power limits\":\"1 x 700 W\"",
        "\"GPU clocks\":\"1 x SM 1980 MHz, memory 2619 MHz\""})
    CHECK_MESSAGE(has(ran.out, fact), (std::string(fact) + "\n" + ran.out));
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

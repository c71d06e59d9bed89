// Large inputs take time and memory in proportion to their size. The limits are far above what they
// take, and far below what they would take if it grew with the square: 80,000 parameters once took
// 11 s of the processor, 20,000 chained ones 82 s, 3,000 chained steps 13 s.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

#if defined(TALLY_SANITIZED)
constexpr const char* kSeconds = "60";
#else
constexpr const char* kSeconds = "9";
#endif

std::string with_parameters(const std::string& list) {
  return "name: n\noutpath: run\nparameterset:\n  name: p\n  parameter:\n" + list +
         "step: {name: s, use: p, do: echo $p0}\n";
}

std::string parameter(int number, const std::string& value) {
  return "    - {name: p" + std::to_string(number) + ", _: \"" + value + "\"}\n";
}

std::string name_of(int number) {
  return "${p" + std::to_string(number) + "}";
}

Ran dry_run(const Shell& shell, const std::string& input) {
  shell.file("n.yaml", input);
  return shell.sh(std::string("ulimit -t ") + kSeconds + "; \"$TALLY\" run -n n.yaml");
}

}  // namespace

TEST_CASE("80,000 parameters in one set") {
  const Shell shell;
  std::string list;
  for (int i = 0; i < 80000; ++i) list += parameter(i, "v" + std::to_string(i));
  const Ran ran = dry_run(shell, with_parameters(list));
  CHECK(ran.code == 0);
  CHECK(has(ran.out, "p79999"));
}

TEST_CASE("20,000 parameters, each with the value of the next") {
  const Shell shell;
  std::string list;
  for (int i = 0; i < 20000; ++i) list += parameter(i, i + 1 < 20000 ? name_of(i + 1) : "end");
  const Ran ran = dry_run(shell, with_parameters(list));
  CHECK(ran.code == 0);
  CHECK(has(ran.out, "p0=end "));
}

TEST_CASE("3,000 steps, each after the one before it") {
  const Shell shell;
  std::string steps = "name: n\noutpath: run\nstep:\n";
  for (int i = 0; i < 3000; ++i) {
    steps += "  - {name: s" + std::to_string(i) +
             (i == 0 ? "" : ", depend: s" + std::to_string(i - 1)) + ", do: \"true\"}\n";
  }
  const Ran ran = dry_run(shell, steps);
  CHECK(ran.code == 0);
  CHECK(has(ran.out, "3000"));
}

TEST_CASE("parameters that double each other's text: a limit, at its place in the file") {
  const Shell shell;
  std::string list;
  for (int i = 0; i < 60; ++i) {
    list += parameter(i, i + 1 < 60 ? name_of(i + 1) + name_of(i + 1) : "sixteen letters.");
  }
  const Ran ran = dry_run(shell, with_parameters(list));
  CHECK(ran.code == 2);
  CHECK(has(ran.err,
            "becomes longer than 16 MiB; parameters that contain each other twice double "
            "at every step"));
  CHECK(has(ran.err, "n.yaml:"));
}

TEST_CASE("one set used 1,000 times: an error for each, not one for each pair") {
  const Shell shell;
  std::string uses = "p";
  for (int i = 1; i < 1000; ++i) uses += ", p";
  const Ran ran = dry_run(shell,
                          "name: n\noutpath: run\nparameterset: {name: p, parameter: {name: a, _: "
                          "1}}\nstep: {name: s, use: [" +
                              uses + "], do: echo $a}\n");
  CHECK(ran.code == 2);
  CHECK(has(ran.err, "Element \"p\" can only be used once"));
  CHECK(ran.err.size() < 1000000);
}

namespace {

// The most memory in MiB that `arguments` take, in "peak"; the files of the run are 1 GB.
Ran measured(const Shell& shell, const std::string& arguments) {
  return shell.sh(
      "python3 -c 'import resource, subprocess, sys; code = "
      "subprocess.run(sys.argv[1:]).returncode;"
      " print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10, file=open(\"peak\", "
      "\"w\")); sys.exit(code)' \"$TALLY\" " +
      arguments);
}

}  // namespace

TEST_CASE("a line of a gigabyte does not fill the memory") {
  const Shell shell;
  const std::string line = R"(head -c 1000000000 /dev/zero | tr '\0' x; )";
  std::string output = "echo v=1; " + line + "echo; echo w=7";
  std::string pattern = R"(w=(\d+))", more;
  SUBCASE("values on both sides") {}
  SUBCASE("no end of the line") {
    output = "echo v=1; echo w=7; " + line;
  }
  SUBCASE("a pattern that goes over it") {
    pattern = R"(v=1\nx*\nw=(\d+))";
  }
  SUBCASE("dotall") {
    pattern = R"(v=1.*w=(\d+))";
    more = ", dotall: true";
  }
  SUBCASE("not ASCII") {
    output = "echo v=1; " + line + R"(printf '\303\251\n'; echo w=7)";
  }
  SUBCASE("carriage returns") {
    output = "echo v=1; " + line + R"(printf 'x\r\n'; echo w=7)";
  }
  shell.file("print.sh", output);
  shell.file("long.yaml", R"yaml(name: long
outpath: run
patternset: {name: pt, pattern: [{name: v, _: 'v=(\d+)'}, {name: w, _: 'PATTERN'MORE}]}
step: {name: s, do: sh $jube_benchmark_home/print.sh}
analyser: {name: an, use: pt, analyse: {step: s, file: stdout}}
result: {use: an, table: {name: t, style: csv, column: [v, w]}}
)yaml");
  std::string text = shell.content("long.yaml");
  text.replace(text.find("PATTERN"), 7, pattern);
  text.replace(text.find("MORE"), 4, more);
  shell.file("long.yaml", text);
  const Ran run = shell.tally("run long.yaml");
  REQUIRE_MESSAGE(run.code == 0, run.err);
  CAPTURE(pattern);
  CAPTURE(output);
  const Ran ran = measured(shell, "result run");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.out, "v,w\n1,7\n"), ran.out.substr(0, 200));
  CHECK(std::stol(shell.content("peak")) < 800);
}

TEST_CASE("a value of a gigabyte is an error, and outputs are shown piece by piece") {
  const Shell shell;
  shell.file("long.yaml", R"yaml(name: long
outpath: run
patternset: {name: pt, pattern: [{name: v, _: "v=(.*)"}, {name: w, _: "w=(.*)"}]}
step: {name: s, do: "printf v=; head -c 1000000000 /dev/zero | tr '\\\\0' x; echo; echo w=7"}
analyser: {name: an, use: pt, analyse: {step: s, file: stdout}}
result: {use: an, table: {name: t, style: csv, column: [v, w]}}
)yaml");
  const Ran first = measured(shell, "run -vv long.yaml > shown");
  CHECK_MESSAGE(first.code == 1, first.err.substr(0, 500));
  CHECK(std::stol(shell.content("peak")) < 800);
  CHECK(shell.sh("test $(stat -c %s shown) -gt 1000000000").code == 0);
  const Ran ran = measured(shell, "result run");
  CHECK(ran.code == 1);
  CHECK(has(ran.err, "long.yaml:3:"));
  CHECK(has(ran.err, "pattern 'v' matched 1000000000 bytes in "));
  CHECK(has(ran.err, "a value may have 16 MiB"));
  CHECK(std::stol(shell.content("peak")) < 800);
  for (const std::string arguments :
       {"output run", "output -d run", "log run", "report run --format md", "info run -i 0 -s s"}) {
    CAPTURE(arguments);
    measured(shell, arguments + " > shown");
    CHECK(std::stol(shell.content("peak")) < 800);
  }
  CHECK(shell.sh("\"$TALLY\" output -d run | tail -c 200 | grep -c w=7").out == "1\n");
}

// Iterations and repeats are multiplied like value lists.
TEST_CASE("more workpackages than a million are an error of the file, whatever multiplies them") {
  const Shell shell;
  std::string values = "1";
  for (int i = 2; i <= 6000; ++i) values += "," + std::to_string(i);
  const std::string sets =
      "parameterset: [{name: p, parameter: {name: n, type: int, _: 2147483647}}, {name: v, "
      "parameter: {name: a, _: '" +
      values + "'}}]\n";
  const auto bench = [&](const std::string& steps) {
    shell.file("s.yaml", "name: s\noutpath: runs\n" + sets + "step: [" + steps + "]\n");
  };
  const std::string error = " workpackages; 1000000 are the most\n";
  for (const char* step :
       {"{name: s, do: x, iterations: 999999999}", "{name: s, kind: run, do: x, repeat: 30000000}",
        "{name: s, do: x, iterations: 999999999, repeat: 999999999}",
        "{name: s, use: p, do: x, iterations: $n, repeat: $n}",
        "{name: s, use: v, do: x, iterations: 4000}"}) {
    CAPTURE(std::string(step));
    bench(step);
    for (const char* command : {"validate s.yaml", "run -n s.yaml", "run s.yaml"}) {
      const Ran ran = shell.sh("ulimit -v 3000000; timeout 120 \"$TALLY\" " + std::string(command));
      CHECK(ran.code == 2);
      CHECK_MESSAGE(has(ran.err, error), ran.err);
    }
  }
  // Those of all parents together count.
  bench(
      "{name: o, do: x, iterations: 2}, {name: s, depend: o, do: x, active: 'false', "
      "repeat: 750000}");
  Ran ran = shell.tally("run -n s.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, error), ran.err);
  bench("{name: o, use: v, do: x}, {name: s, depend: o, do: x, repeat: 999}");
  ran = shell.sh("ulimit -v 3000000; timeout 120 \"$TALLY\" validate s.yaml");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, error), ran.err);
  // Memory that is not there is an error like others.
  bench("{name: s, do: x, iterations: 950000}");
  ran = shell.sh("ulimit -v 200000; timeout 120 \"$TALLY\" validate s.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "not enough memory"), ran.err);
}

// Large inputs take time and memory in proportion to their size. The limits are far above what they
// take, and far below what they would take if it grew with the square: 80,000 parameters once took
// 11 s of the processor, 20,000 chained ones 82 s, 3,000 chained steps 13 s.
#include <doctest/doctest.h>

#include <string>

#include "tests/engine/survive/shell.h"

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

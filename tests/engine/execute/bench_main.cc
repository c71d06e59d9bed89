// tally_execute_bench N: runs N workpackages of `echo` and prints the seconds that took, beside a
// bare loop that starts the same N shells. Not a test: a number to look at.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "engine/workspace/process.h"
#include "tests/engine/execute/run_fixture.h"

int main(int argc, char** argv) {
  using namespace tally;
  using namespace tally::testing;
  const int count = argc > 1 ? static_cast<int>(strtol(argv[1], nullptr, 10)) : 1000;
  RunFixture fixture;
  std::string values = "0";
  for (int i = 1; i < count; ++i) values.append(",").append(std::to_string(i));
  fixture.add(set_of("p", {parameter("i", values)}));
  fixture.add(step_of("s", {"echo value $i"}, {"p"}));
  const auto seconds = [](auto since) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - since).count();
  };
  auto start = std::chrono::steady_clock::now();
  const RunSummary summary = fixture.run();
  const double engine = seconds(start);
  start = std::chrono::steady_clock::now();
  {
    auto processes = make_process_runner();
    const std::string out = fixture.folder.path() + "/bare";
    for (int i = 0; i < count; ++i) {
      ProcessSpec spec;
      spec.argv = {"/bin/sh", "-c", std::string("echo value ").append(std::to_string(i))};
      spec.stdout_path = spec.stderr_path = out;
      int pid = 0;
      if (!processes->start(spec, &pid)) return 1;
      ProcessResult result;
      processes->wait_any(std::chrono::milliseconds(-1), &result);
    }
  }
  const double bare = seconds(start);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  printf("%d workpackages: %.3f s (%d done), bare loop %.3f s, ratio %.2f, peak memory %ld MB\n",
         count, engine, summary.done, bare, engine / bare, usage.ru_maxrss / 1024);
  return 0;
}

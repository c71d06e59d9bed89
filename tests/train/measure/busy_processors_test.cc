// Processors that others use, by what the kernel would say.
#include "src/measure/busy_processors.h"

#include <doctest/doctest.h>
#include <sched.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

using namespace tally::train;
namespace fs = std::filesystem;

namespace {

int first_processor() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &set)) return i;
  return 0;
}

// busy_processors() where the kernel's lines change from `before` to `after` meanwhile.
int busy(const std::string& before, const std::string& after) {
  std::string name = (fs::temp_directory_path() / "tally_busy_XXXXXX").string();
  const fs::path root = mkdtemp(name.data());
  fs::create_directories(root / "proc");
  const auto write = [&](const std::string& text) { std::ofstream(root / "proc/stat") << text; };
  write(before);
  const int count = busy_processors([&] { write(after); }, root.string() + "/");
  fs::remove_all(root);
  return count;
}

// The line of one processor with these ticks since the system began.
std::string line(int processor, int user, int idle, int waiting = 0) {
  return "cpu" + std::to_string(processor) + " " + std::to_string(user) + " 0 0 " +
         std::to_string(idle) + " " + std::to_string(waiting) + " 0 0 0 7 0\n";
}

TEST_CASE("a processor is busy where most of its time was not idle") {
  const int p = first_processor();
  const std::string sum = "cpu  1 2 3 4 5 6 7 8 9 0\n", rest = "intr 1 2\nctxt 5\n";
  const std::string before = sum + line(p, 1000, 5000) + rest;
  CHECK(busy(before, sum + line(p, 1020, 5000) + rest) == 1);
  CHECK(busy(before, sum + line(p, 1004, 5016) + rest) == 0);
  CHECK(busy(before, sum + line(p, 1012, 5008) + rest) == 1);
  // Waiting for a disk is no use of the processor.
  CHECK(busy(before, sum + line(p, 1000, 5002, 18) + rest) == 0);
}

TEST_CASE("processors that this process may not run on do not count, nor does an unknown system") {
  const int other = CPU_SETSIZE - 1;
  CHECK(busy(line(other, 10, 10), line(other, 30, 10)) == 0);
  CHECK(busy("", "") == 0);
  const int p = first_processor();
  CHECK(busy(line(p, 10, 10), line(p, 10, 10)) == 0);  // no tick has passed
}

}  // namespace

// How many threads a process computes with, where its processor time is limited.
#include <doctest/doctest.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "src/measure/system_info.h"

using namespace tally::train;
namespace fs = std::filesystem;

namespace {

// A system's /proc and /sys as the kernel shows them, with the files of one test.
struct System {
  System() {
    std::string name = (fs::temp_directory_path() / "tally_threads_XXXXXX").string();
    root = mkdtemp(name.data());
    unsetenv("OMP_NUM_THREADS");
    unsetenv("SLURM_CPUS_PER_TASK");
  }
  ~System() { fs::remove_all(root); }
  System(const System&) = delete;
  System& operator=(const System&) = delete;
  void write(const std::string& path, const std::string& text) const {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  }
  int threads(int local_size = 1) const { return default_threads(local_size, root.string() + "/"); }
  fs::path root;
};

int processors() {
  cpu_set_t set;
  sched_getaffinity(0, sizeof set, &set);
  return CPU_COUNT(&set);
}

TEST_CASE("threads: every processor that the process may run on, without a limit") {
  const System s;
  CHECK(s.threads() == processors());
  s.write("proc/self/cgroup", "0::/user.slice\n");
  s.write("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
  CHECK(s.threads() == processors());
}

TEST_CASE("threads: a container's share of processor time, shared by the processes of a host") {
  const System s;
  s.write("proc/self/cgroup", "0::/a/b\n");
  s.write("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  s.write("sys/fs/cgroup/a/cpu.max", "150000 100000\n");  // one and a half, of the group around
  CHECK(s.threads() == 1);
  s.write("sys/fs/cgroup/a/cpu.max", "25000 100000\n");  // a quarter: one thread computes, slowly
  CHECK(s.threads() == 1);
  s.write("sys/fs/cgroup/a/cpu.max", "6400000 100000\n");
  CHECK(s.threads() == processors());
}

TEST_CASE("threads: the same of version 1") {
  const System s;
  s.write("proc/self/cgroup", "4:cpu,cpuacct:/job\n");
  s.write("sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
  s.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "-1\n");
  CHECK(s.threads() == processors());
  s.write("sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "100000\n");
  CHECK(s.threads() == 1);
}

TEST_CASE("threads: what the user says counts") {
  const System s;
  s.write("proc/self/cgroup", "0::/\n");
  s.write("sys/fs/cgroup/cpu.max", "100000 100000\n");
  setenv("OMP_NUM_THREADS", "3", 1);
  CHECK(s.threads() == 3);
  unsetenv("OMP_NUM_THREADS");
}

}  // namespace

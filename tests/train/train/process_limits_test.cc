// How many processes a host lets a run start.
#include "src/train/run/process_limits.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include "src/measure/control_groups.h"
#include "tests/train/data/temp_dir.h"

using namespace tally::train;

namespace {

// proc/ and sys/ of a host with 1000 process numbers, of which 100 are in use.
struct Host {
  Host() {
    add("proc/loadavg", "0.20 0.18 0.12 1/100 11206\n");
    add("proc/sys/kernel/pid_max", "1000\n");
    add("proc/sys/kernel/threads-max", "5000\n");
  }
  void add(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(dir / name).parent_path());
    dir.write(name, text);
  }
  std::string shortage(int processes, int threads) const {
    return process_shortage(processes, threads, dir / "");
  }
  TempDir dir;
};

}  // namespace

TEST_CASE("the system's limits, less what is in use") {
  const Host host;
  CHECK(host.shortage(300, 1).empty());
  CHECK(
      host.shortage(301, 1) ==
      "--nproc-per-node 301: 301 processes of 3 threads are 903 tasks, and this host has room for "
      "900 (kernel.pid_max is 1000, of which 100 are in use): start at most 300");
  CHECK(host.shortage(100, 8).find("start at most 90") != std::string::npos);
  CHECK(!host.shortage(100000, 1).empty());
  host.add("proc/sys/kernel/threads-max", "400\n");
  CHECK(host.shortage(101, 1).find("kernel.threads-max is 400") != std::string::npos);
}

TEST_CASE("the control groups around the process, of both versions") {
  const Host host;
  host.add("proc/self/cgroup", "3:cpu,pids:/other\n0::/user/job\n");
  host.add("sys/fs/cgroup/user/job/pids.max", "max\n");
  CHECK(host.shortage(300, 1).empty());
  host.add("sys/fs/cgroup/user/pids.max", "60\n");
  host.add("sys/fs/cgroup/user/pids.current", "30\n");
  CHECK(host.shortage(10, 1).empty());
  CHECK(host.shortage(11, 1).find("user/pids.max is 60, of which 30 are in use") !=
        std::string::npos);
  host.add("sys/fs/cgroup/pids/other/pids.max", "5\n");
  CHECK(host.shortage(2, 1).find("pids/other/pids.max is 5, of which 0") != std::string::npos);
}

TEST_CASE("the limit of open files is raised as far as it may be") {
  rlimit before{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &before) == 0);
  rlimit small = before;
  small.rlim_cur = 100;
  REQUIRE(setrlimit(RLIMIT_NOFILE, &small) == 0);
  CHECK(open_file_shortage(2, 2).empty());
  CHECK(open_file_shortage(200, 8).empty());
  rlimit after{};
  REQUIRE(getrlimit(RLIMIT_NOFILE, &after) == 0);
  CHECK(after.rlim_cur >= 264);
  REQUIRE(setrlimit(RLIMIT_NOFILE, &before) == 0);
  const std::string why = open_file_shortage(1 << 30, 4);
  CHECK(why.find("--nproc-per-node 4: 1073741824 ranks need up to ") == 0);
  CHECK(why.find("ulimit -Hn") != std::string::npos);
}

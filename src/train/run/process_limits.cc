#include "src/train/run/process_limits.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "src/measure/control_groups.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;

// A rank has, besides its operations' threads, one that reads data and one that watches the others.
constexpr int own_threads = 2;

struct Limit {
  size_t most = no_number;
  size_t used = 0;
  std::string name;
  size_t left() const { return most == no_number ? no_number : most - std::min(most, used); }
};

// "0.20 0.18 0.12 1/80 11206": 80 processes and threads exist.
size_t tasks_of_system(const std::string& root) {
  std::ifstream in(fs::path(root) / "proc/loadavg");
  std::string load, of_tasks;
  for (int i = 0; i < 3; ++i) in >> load;
  in >> of_tasks;
  const size_t slash = of_tasks.find('/');
  return slash == std::string::npos ? 0 : std::strtoul(of_tasks.c_str() + slash + 1, nullptr, 10);
}

Limit limit_of_user() {
  rlimit limit{};
  // root is not limited.
  if (geteuid() == 0 || getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return {};
  return {limit.rlim_cur, 0, "ulimit -u"};
}

// The limit that leaves the fewest tasks.
Limit tightest_limit(const std::string& root) {
  const size_t tasks = tasks_of_system(root);
  const fs::path kernel = fs::path(root) / "proc/sys/kernel";
  std::vector<Limit> limits{{number_in(kernel / "pid_max"), tasks, "kernel.pid_max"},
                            {number_in(kernel / "threads-max"), tasks, "kernel.threads-max"},
                            limit_of_user()};
  for (const fs::path& group : control_groups(root, "pids")) {
    const size_t used = number_in(group / "pids.current");
    limits.push_back({number_in(group / "pids.max"), used == no_number ? 0 : used,
                      (group / "pids.max").string()});
  }
  return *std::min_element(limits.begin(), limits.end(),
                           [](const Limit& a, const Limit& b) { return a.left() < b.left(); });
}

}  // namespace

std::string process_shortage(int processes, int threads, const std::string& root) {
  const Limit limit = tightest_limit(root);
  const size_t each = static_cast<size_t>(std::max(1, threads) + own_threads);
  const size_t needed = static_cast<size_t>(processes) * each;
  if (needed <= limit.left()) return "";
  return fmt::format(
      "--nproc-per-node {}: {} processes of {} threads are {} tasks, and this host has room for {} "
      "({} is {}, of which {} are in use): start at most {}",
      processes, processes, each, needed, limit.left(), limit.name, limit.most, limit.used,
      std::max<size_t>(1, limit.left() / each));
}

std::string open_file_shortage(int ranks, int local_ranks) {
  // Libraries, datasets, files and pipes.
  constexpr rlim_t others = 64;
  // The rendezvous connects rank 0 to all others. Where sockets carry the gradients, every rank is
  // connected to all others once more. This process has pipes for the output of its ranks.
  const auto least = std::max<rlim_t>(static_cast<rlim_t>(ranks), 4 * local_ranks) + others;
  const auto best = least + static_cast<rlim_t>(ranks);
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= best) return "";
  if (limit.rlim_max < least)
    return fmt::format(
        "--nproc-per-node {}: {} ranks need up to {} open files in one process, and {} are allowed "
        "(ulimit -Hn): raise the limit, or start fewer processes",
        local_ranks, ranks, least, limit.rlim_max);
  limit.rlim_cur = std::min(limit.rlim_max, best);
  setrlimit(RLIMIT_NOFILE, &limit);
  return "";
}

}  // namespace tally::train

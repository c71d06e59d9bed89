#include "engine/energy/cpu_energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>

#include "engine/base/presence.h"
#include "engine/base/system_files.h"

namespace tally {
namespace {

std::string read_word(const std::string& path) {
  std::ifstream in(path);
  std::string word;
  in >> word;
  return word;
}

// "intel-rapl:0", or "intel-rapl:0:1" for a part of it. AMD's CPUs have the same names.
bool is_domain(const std::string& name) {
  return name.rfind("intel-rapl:", 0) == 0;
}

}  // namespace

CpuEnergy::CpuEnergy(std::string root) : root_(std::move(root)) {}

Status CpuEnergy::start() {
  std::vector<std::string> names;
  if (Status s = names_in(root_, &names); !s) return s;
  std::erase_if(names, [](const std::string& name) { return !is_domain(name); });
  if (names.empty()) return Status::error(fmt::format("'{}' has no counters (RAPL)", root_));
  for (const std::string& name : names) {
    Counter counter;
    const std::string folder = root_ + "/" + name + "/";
    const bool part = std::count(name.begin(), name.end(), ':') > 1;
    counter.domain.name = read_word(folder + "name");
    if (part) {
      const std::string whole = read_word(root_ + "/" + name.substr(0, name.rfind(':')) + "/name");
      // Cores are in the package's energy already; memory is not.
      if (counter.domain.name != "dram") continue;
      counter.domain.name = whole + " dram";
    }
    counter.path = folder + "energy_uj";
    errno = 0;
    if (!read_number(counter.path, &counter.last) ||
        !read_number(folder + "max_energy_range_uj", &counter.range))
      return Status::error(
          fmt::format("'{}' cannot be read: {}", counter.path,
                      errno == EACCES ? "only root may; ask the administrator for read permission"
                                      : std::strerror(errno == 0 ? EINVAL : errno)));
    counters_.push_back(std::move(counter));
  }
  return Status::ok();
}

Status CpuEnergy::update() {
  constexpr double kMicro = 1e-6;
  for (Counter& counter : counters_) {
    double now = 0;
    if (!read_number(counter.path, &now))
      return Status::error(fmt::format("'{}' cannot be read any more", counter.path));
    const double used =
        now >= counter.last ? now - counter.last : now + counter.range - counter.last;
    counter.domain.joules += used * kMicro;
    counter.last = now;
  }
  return Status::ok();
}

std::vector<CpuEnergy::Domain> CpuEnergy::domains() const {
  std::vector<Domain> all;
  for (const Counter& counter : counters_) all.push_back(counter.domain);
  return all;
}

}  // namespace tally

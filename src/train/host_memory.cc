#include "src/train/host_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "src/model/stage.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;

// "MemAvailable:   123 kB" of /proc/meminfo, in bytes.
size_t of_meminfo(const std::string& root, const std::string& key) {
  std::ifstream in(root + "/proc/meminfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string name;
    size_t kilobytes = 0;
    if (words >> name >> kilobytes && name == key + ":") return kilobytes * 1024;
  }
  return unknown_memory;
}

// A limit of a control group; "max" and what is not there are none.
size_t limit_in(const fs::path& file) {
  std::ifstream in(file);
  size_t bytes = 0;
  return in >> bytes ? bytes : unknown_memory;
}

// The smallest limit of a group and of those around it.
size_t smallest_limit(const fs::path& mount, const fs::path& group, const char* name) {
  size_t least = limit_in(mount / name);
  for (fs::path at = group.relative_path(); !at.empty(); at = at.parent_path())
    least = std::min(least, limit_in(mount / at / name));
  return least;
}

// Lines as "0::/user/job" (version 2) and "5:memory:/user/job" (version 1).
size_t limit_of_groups(const std::string& root) {
  std::ifstream in(root + "/proc/self/cgroup");
  const fs::path mount = fs::path(root) / "sys/fs/cgroup";
  size_t least = unknown_memory;
  for (std::string line; std::getline(in, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string kinds = line.substr(first + 1, second - first - 1);
    const fs::path group = line.substr(second + 1);
    if (kinds.empty()) least = std::min(least, smallest_limit(mount, group, "memory.max"));
    if (kinds == "memory")
      least = std::min(least, smallest_limit(mount / "memory", group, "memory.limit_in_bytes"));
  }
  return least;
}

}  // namespace

size_t available_memory(const std::string& root) {
  const size_t memory = of_meminfo(root, "MemAvailable");
  if (memory == unknown_memory) return unknown_memory;
  const size_t swap = of_meminfo(root, "SwapFree");
  const size_t more = swap == unknown_memory ? 0 : swap;
  const size_t limit = limit_of_groups(root);
  // A group may swap, too; what it holds already is not counted, for much of it can be given back.
  return std::min(memory, limit) + more;
}

size_t training_bytes(const Config& c) {
  ParameterTable table;
  register_gpt(c.model, &table);
  const auto elements = static_cast<size_t>(table.count());
  const size_t weight = size_of(c.compute_type());
  const size_t wide = c.compute_type() == DType::f64 ? weight : size_of(DType::f32);
  if (c.skip_train) return elements * weight;
  // Weights, gradients, two moments, and master weights where the weights are narrower.
  return elements * (weight + 3 * wide + (weight < wide ? wide : 0));
}

std::string memory_shortage(const Config& c, Device device) {
  if (device.is_cuda()) return "";
  const size_t available = available_memory();
  const size_t needed = training_bytes(c) * static_cast<size_t>(std::max(1, c.local_size));
  if (available == unknown_memory || needed <= available) return "";
  const auto gibibytes = [](size_t bytes) {
    return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1 << 30));
  };
  return fmt::format("{}{} need {}, and {} of memory are available on this host",
                     c.skip_train ? "the weights" : "weights, gradients and the optimizer's state",
                     c.local_size > 1 ? fmt::format(" of {} processes", c.local_size) : "",
                     gibibytes(needed), gibibytes(available));
}

}  // namespace tally::train

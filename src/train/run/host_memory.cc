#include "src/train/run/host_memory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "src/measure/control_groups.h"
#include "src/train/run/memory_estimate.h"

namespace tally::train {
namespace {

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

size_t limit_of_groups(const std::string& root) {
  size_t least = unknown_memory;
  for (const std::filesystem::path& group : control_groups(root, "memory"))
    for (const char* name : {"memory.max", "memory.limit_in_bytes"})
      least = std::min(least, number_in(group / name));
  return least;
}

std::string gibibytes(double bytes) {
  return fmt::format("{:.2f} GiB", bytes / (1 << 30));
}

// The memory of all processes of the run on this host. Processes of different pipeline stages
// differ.
double needed_bytes(Config c, int processes) {
  if (c.pipeline_parallel == 1) return estimate_memory(c).total() * std::max(1, processes);
  double sum = 0;
  const int first = c.rank - c.local_rank;
  for (c.rank = first; c.rank < first + std::max(1, processes); ++c.rank)
    sum += estimate_memory(c).total();
  return sum;
}

Config of_micro_batch(Config c, int64_t micro_batch) {
  c.micro_batch = micro_batch;
  return c;
}

Config with_recompute(Config c) {
  c.recompute = Recompute::full;
  return c;
}

Config with_bf16(Config c) {
  c.precision = Precision::bf16;
  return c;
}

Config with_sequence(Config c, int64_t sequence) {
  c.sequence = sequence;
  return c;
}

bool is_wide(const Config& c) {
  return c.compute_type() == DType::f32 || c.compute_type() == DType::f64;
}

// The largest micro batch below the present one that fits and divides the global batch; 0: none.
int64_t fitting_micro_batch(const Config& c, double available) {
  const int64_t of_process = c.global_batch / std::max(1, c.data_parallel);
  for (int64_t m = c.micro_batch / 2; m > 0; m = c.micro_batch / (c.micro_batch / m + 1)) {
    if (of_process % m == 0 && needed_bytes(of_micro_batch(c, m), c.local_size) <= available)
      return m;
  }
  return 0;
}

int64_t fitting_sequence(const Config& c, double available) {
  for (int64_t t = c.sequence / 2; t > 0; t /= 2)
    if (needed_bytes(with_sequence(c, t), c.local_size) <= available) return t;
  return 0;
}

int fitting_processes(const Config& c, double available) {
  const double each = estimate_memory(c).total();
  return static_cast<int>(std::min<double>(c.local_size, available / each));
}

// The single changes with which the run fits.
std::string advice_that_fits(const Config& c, double available) {
  std::vector<std::string> advice;
  const auto fits = [&](const Config& other) {
    return needed_bytes(other, c.local_size) <= available;
  };
  if (const int64_t m = fitting_micro_batch(c, available); m > 0 && c.command == Command::train)
    advice.push_back(fmt::format("--micro-batch-size {} (the global batch stays the same)", m));
  else if (m > 0)
    advice.push_back(fmt::format("--micro-batch-size {}", m));
  if (c.command == Command::train && c.recompute != Recompute::full && fits(with_recompute(c)))
    advice.emplace_back("--recompute-granularity full");
  if (is_wide(c) && fits(with_bf16(c))) advice.emplace_back("--bf16");
  if (const int n = fitting_processes(c, available); c.local_size > 1 && n > 0)
    advice.push_back(fmt::format("{} process{} on this host", n, n == 1 ? "" : "es"));
  if (const int64_t t = fitting_sequence(c, available); t > 0)
    advice.push_back(fmt::format("--seq-length {}", t));
  if (!advice.empty()) return fmt::format("try {}", fmt::join(advice, ", or "));
  if (estimate_memory(c).parameters <= available)
    return "try a smaller --micro-batch-size and --seq-length together with "
           "--recompute-granularity full, in fewer processes on this host";
  return "the parameters alone do not fit: try a smaller model (--num-layers, --hidden-size) or a "
         "host with more memory";
}

std::string shortage_text(const Config& c, double needed, size_t available,
                          const std::string& parts) {
  return fmt::format("{} are needed on this host{}, and {} are available: {}", gibibytes(needed),
                     c.local_size > 1 ? fmt::format(" for {} processes", c.local_size) : "",
                     gibibytes(static_cast<double>(available)), parts);
}

}  // namespace

size_t available_memory(const std::string& root) {
  const size_t memory = of_meminfo(root, "MemAvailable");
  if (memory == unknown_memory) return unknown_memory;
  const size_t swap = of_meminfo(root, "SwapFree");
  const size_t more = swap == unknown_memory ? 0 : swap;
  const size_t limit = limit_of_groups(root);
  // A group may swap, too. The memory that it holds already is not counted, because much of that
  // can be reclaimed.
  return std::min(memory, limit) + more;
}

std::string memory_shortage(const Config& c, Device device, size_t available) {
  const double needed = needed_bytes(c, c.local_size);
  if (device.is_cuda() || available == unknown_memory || needed <= static_cast<double>(available))
    return "";
  const MemoryEstimate each = estimate_memory(c);
  return shortage_text(
      c, needed, available,
      fmt::format("{}weights, gradients{} {}, activations {}, token ids read ahead {}; {}",
                  c.local_size > 1 ? "in each, " : "",
                  c.command == Command::train ? " and the optimizer's state" : "",
                  gibibytes(each.parameters), gibibytes(each.activations), gibibytes(each.batches),
                  advice_that_fits(c, static_cast<double>(available))));
}

std::string memory_shortage_before_start(const Config& c, size_t available) {
  const double programs = process_bytes * std::max(1, c.local_size);
  if (available == unknown_memory) return "";
  if (programs > static_cast<double>(available))
    return shortage_text(
        c, programs, available,
        fmt::format("the program alone takes {} in each process; start at most {}",
                    gibibytes(process_bytes),
                    std::max(1.0, std::floor(static_cast<double>(available) / process_bytes))));
  if (c.device != "cpu") return "";
  return memory_shortage(c, Device{}, available - static_cast<size_t>(programs));
}

std::string memory_advice(const Config& c) {
  const double now = estimate_memory(c).total();
  const auto helps = [&](const Config& other) {
    return estimate_memory(other).total() < 0.9 * now;
  };
  std::vector<std::string> advice;
  if (c.micro_batch > 1 && helps(of_micro_batch(c, 1)))
    advice.push_back(fmt::format("--micro-batch-size below {} (the global batch stays the same)",
                                 c.micro_batch));
  if (c.recompute != Recompute::full && helps(with_recompute(c)))
    advice.emplace_back("--recompute-granularity full");
  if (is_wide(c) && helps(with_bf16(c))) advice.emplace_back("--bf16");
  if (c.sequence > 1 && helps(with_sequence(c, c.sequence / 2)))
    advice.push_back(fmt::format("--seq-length below {}", c.sequence));
  if (advice.empty())
    advice.emplace_back(
        "a smaller model (--num-layers, --hidden-size) or a device with more memory");
  return fmt::format("try {}", fmt::join(advice, ", "));
}

}  // namespace tally::train

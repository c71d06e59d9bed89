#include <ATen/Parallel.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <unordered_map>

#include "src/device/devices.h"

namespace tally::train {

void set_threads(int threads) {
  const int64_t cores = sysconf(_SC_NPROCESSORS_ONLN);
  at::set_num_threads(threads > 0 ? threads : static_cast<int>(std::max<int64_t>(cores, 1)));
}

void restart_with_brief_spinning(char** argv) {
  if (std::getenv("OMP_WAIT_POLICY") || std::getenv("GOMP_SPINCOUNT")) return;
  setenv("GOMP_SPINCOUNT", "3000", 1);
  // Start it by its own path where that is known: a process started by the link is called "exe" in
  // ps.
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  if (length > 0) {
    path[length] = '\0';
    execv(path, argv);
  }
  execv("/proc/self/exe", argv);  // returns only if it failed, which makes the run slower
}

namespace cpu {
namespace {

constexpr size_t alignment = 256;

// fmt is not used here: LibTorch's include directory holds another version of its headers.
std::string gibibytes(size_t bytes) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.2f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

class CpuStream final : public Stream {
 public:
  CpuStream() = default;
  CpuStream(const CpuStream&) = delete;
  CpuStream& operator=(const CpuStream&) = delete;
  ~CpuStream() override {
    for (const auto& [data, bytes] : blocks_) std::free(data);
  }

  Device device() const override { return {DeviceKind::cpu, 0}; }
  void* native() const override { return nullptr; }
  void synchronize() override {}
  void copy(void* to, const void* from, size_t bytes) override {
    if (bytes) std::memmove(to, from, bytes);
  }
  void fill_zero(void* data, size_t bytes) override {
    if (bytes) std::memset(data, 0, bytes);
  }

  void* allocate(size_t bytes, const char* what) override {
    const size_t rounded = allocated_bytes(bytes);
    void* data = rounded >= bytes ? std::aligned_alloc(alignment, rounded) : nullptr;
    if (!data) {
      throw OutOfMemory(gibibytes(bytes) + " of memory for " + what + " could not be allocated; " +
                        gibibytes(allocated_) + " are held by this run");
    }
    blocks_[data] = rounded;
    ++allocations_;
    allocated_ += rounded;
    peak_ = std::max(peak_, allocated_);
    return data;
  }
  void release(void* data) override {
    const auto it = blocks_.find(data);
    if (it == blocks_.end()) return;
    allocated_ -= it->second;
    blocks_.erase(it);
    std::free(data);
  }
  int64_t allocations() const override { return allocations_; }
  size_t bytes_allocated() const override { return allocated_; }
  size_t bytes_peak() const override { return peak_; }

 private:
  std::unordered_map<void*, size_t> blocks_;
  int64_t allocations_ = 0;
  size_t allocated_ = 0, peak_ = 0;
};

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

}  // namespace

DeviceInfo device_info() {
  DeviceInfo info;
  info.name = processor_name();
  info.total_bytes =
      static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<size_t>(sysconf(_SC_PAGE_SIZE));
  info.sms = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  return info;
}

std::unique_ptr<Stream> make_stream() {
  return std::make_unique<CpuStream>();
}

}  // namespace cpu

const Cpu* cpu_device() {
  static constexpr Cpu functions{cpu::device_info, cpu::make_stream, cpu::convert_elements};
  return &functions;
}

}  // namespace tally::train

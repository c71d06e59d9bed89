// What of the host's memory a process may take.
#include "src/train/host_memory.h"

#include <doctest/doctest.h>

#include "tests/train/data/temp_dir.h"

using namespace tally::train;

namespace {

// proc/ and sys/ of a host with 8 MiB available and no swap.
struct Host {
  Host() {
    add("proc/meminfo",
        "MemTotal:       16384 kB\nMemAvailable:   8192 kB\nSwapTotal: 4 kB\nSwapFree: 0 kB\n");
  }
  void add(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(dir / name).parent_path());
    dir.write(name, text);
  }
  size_t kilobytes() const { return available_memory(dir / "") / 1024; }
  TempDir dir;
};

}  // namespace

TEST_CASE("available memory: the kernel's word, swap, and limits of the groups around") {
  const Host host;
  CHECK(host.kilobytes() == 8192);
  host.add("proc/self/cgroup", "0::/user/job/step\n");
  host.add("sys/fs/cgroup/user/job/step/memory.max", "max\n");
  CHECK(host.kilobytes() == 8192);
  host.add("sys/fs/cgroup/user/job/memory.max", "4194304\n");
  CHECK(host.kilobytes() == 4096);
  host.add("sys/fs/cgroup/memory.max", "2097152\n");  // as a container sees its own
  CHECK(host.kilobytes() == 2048);
  host.add("proc/meminfo", "MemAvailable:   8192 kB\nSwapFree: 100 kB\n");
  CHECK(host.kilobytes() == 2148);
  host.add("proc/self/cgroup", "7:cpu,cpuacct:/x\n5:memory:/job\n");
  host.add("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "1048576\n");
  CHECK(host.kilobytes() == 1124);
  const TempDir nothing;
  CHECK(available_memory(nothing / "") == unknown_memory);
}

TEST_CASE("what a training holds: weights, gradients, moments, master weights of narrow types") {
  Config c;
  c.model.layers = 2, c.model.hidden = 8, c.model.heads = 2, c.model.ffn = 32;
  c.model.max_positions = 4, c.model.vocabulary = 11, c.model.padded_vocabulary = 16;
  // 16 x 8 and 4 x 8 embeddings; a layer: 2 norms, 3 x 8 x 8 + 24, 8 x 8 + 8, 8 x 32 + 32,
  // 32 x 8 + 8; the last norm.
  const size_t parameters = 128 + 32 + 2 * (32 + 192 + 24 + 64 + 8 + 256 + 32 + 256 + 8) + 16;
  CHECK(training_bytes(c) == parameters * 16);
  c.precision = Precision::bf16;
  CHECK(training_bytes(c) == parameters * 18);
  c.precision = Precision::f64;
  CHECK(training_bytes(c) == parameters * 32);
  CHECK(memory_shortage(c, Device{}).empty());
  c.model.layers = 1000, c.model.hidden = 32768, c.model.ffn = 131072;
  CHECK(memory_shortage(c, Device{}).find("weights, gradients and the optimizer's state need ") ==
        0);
  CHECK(memory_shortage(c, Device{DeviceKind::cuda, 0}).empty());
}

// How much of the host's memory a process may take.
#include "src/train/run/host_memory.h"

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

TEST_CASE("available memory: the kernel's figure, swap, and limits of the control groups") {
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

namespace {

// 124 million parameters.
Config gpt2() {
  Config c;
  c.micro_batch = c.global_batch = 8;
  return c;
}

constexpr size_t gibibyte = size_t{1} << 30;

}  // namespace

TEST_CASE("a run that does not fit is told what it needs, and what makes it fit") {
  const Config c = gpt2();
  CHECK(memory_shortage(c, Device{}, unknown_memory).empty());
  CHECK(memory_shortage(c, Device{}, 16 * gibibyte).empty());
  CHECK(memory_shortage(c, Device{DeviceKind::cuda, 0}, 1).empty());
  CHECK(memory_shortage(c, Device{}, 4 * gibibyte) ==
        "6.62 GiB are needed on this host, and 4.00 GiB are available: weights, gradients and the "
        "optimizer's state 1.85 GiB, activations 4.76 GiB, token ids read ahead 0.00 GiB; try "
        "--micro-batch-size 2 (the global batch stays the same), or --recompute-granularity full, "
        "or --seq-length 256");
  // Each advice makes it fit.
  Config other = c;
  other.micro_batch = 2;
  CHECK(memory_shortage(other, Device{}, 4 * gibibyte).empty());
  other.micro_batch = 4;
  CHECK(!memory_shortage(other, Device{}, 4 * gibibyte).empty());
  other = c;
  other.recompute = Recompute::full;
  CHECK(memory_shortage(other, Device{}, 4 * gibibyte).empty());
}

TEST_CASE("bf16 is advised where activations are most of the memory, and not where weights are") {
  const auto advises_bf16 = [](const Config& c, size_t available) {
    const std::string shortage = memory_shortage(c, Device{}, available);
    CHECK(!shortage.empty());
    return shortage.find("--bf16") != std::string::npos;
  };
  CHECK(advises_bf16(gpt2(), 6 * gibibyte));
  CHECK(memory_advice(gpt2()).find("--bf16") != std::string::npos);
  // Weights and optimizer: 16 bytes a parameter in fp32, 18 in bf16.
  Config large = gpt2();
  large.micro_batch = large.global_batch = 1;
  large.model.layers = 48, large.model.hidden = 1600, large.model.heads = 25;
  large.model.ffn = 6400;
  large.sequence = 256;
  CHECK(!advises_bf16(large, 23 * gibibyte));
  CHECK(memory_advice(large) ==
        "try a smaller model (--num-layers, --hidden-size) or a device with more memory");
  Config bf16 = large;
  bf16.precision = Precision::bf16;
  CHECK(memory_shortage(large, Device{}, 25 * gibibyte).empty());
  CHECK(!memory_shortage(bf16, Device{}, 25 * gibibyte).empty());
  const std::string shortage = memory_shortage(large, Device{}, 10 * gibibyte);
  CHECK(shortage.find("the parameters alone do not fit: try a smaller model") != std::string::npos);
}

TEST_CASE("all processes of a host count") {
  Config c = gpt2();
  c.micro_batch = 1;
  c.local_size = c.world_size = c.data_parallel = 8;
  const std::string shortage = memory_shortage(c, Device{}, 16 * gibibyte);
  CHECK(shortage.find(" are needed on this host for 8 processes, and 16.00 GiB are available: in "
                      "each, weights, gradients") != std::string::npos);
  CHECK(shortage.find("or 6 processes on this host") != std::string::npos);
  c.device = "auto";
  c.local_size = 100000;
  CHECK(
      memory_shortage_before_start(c, 16 * gibibyte) ==
      "4687.50 GiB are needed on this host for 100000 processes, and 16.00 GiB are available: the "
      "program alone takes 0.05 GiB in each process; start at most 341");
  c.local_size = 300;
  CHECK(memory_shortage_before_start(c, 16 * gibibyte).empty());  // they may be on GPUs
  c.device = "cpu";
  CHECK(!memory_shortage_before_start(c, 16 * gibibyte).empty());
}

TEST_CASE("sizes that no machine has do not wrap around") {
  Config c = gpt2();
  c.micro_batch = c.global_batch = int64_t{1} << 40;
  c.local_size = 100000;
  CHECK(!memory_shortage(c, Device{}, unknown_memory - 1).empty());
}

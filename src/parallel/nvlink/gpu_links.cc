#include "src/parallel/nvlink/gpu_links.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "src/parallel/nvlink/cuda_check.h"

namespace tally::train {
namespace {

std::string bus_id(int index) {
  std::array<char, 64> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), index),
        "cudaDeviceGetPCIBusId");
  return bus.data();
}

std::string this_host() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  return fmt::format("{} ({})", host.data(), boot);
}

// Whether GPU `index` reaches the GPU of that bus id over NVLink: atomic operations on another
// GPU's memory are native over NVLink and not over PCI Express. False where this process does not
// see it.
bool reaches(int index, const std::string& bus) {
  int other = 0, native_atomics = 0;
  if (cudaDeviceGetByPCIBusId(&other, bus.c_str()) != cudaSuccess) {
    cudaGetLastError();  // so that no later check finds it
    return false;
  }
  return other == index ||
         (cudaDeviceGetP2PAttribute(&native_atomics, cudaDevP2PAttrNativeAtomicSupported, index,
                                    other) == cudaSuccess &&
          native_atomics == 1);
}

// Whether NCCL may let GPUs read each other's memory. Its settings hold for our own messages, too:
// who turns peer-to-peer off measures without it.
bool peer_to_peer_allowed() {
  const char* disabled = std::getenv("NCCL_P2P_DISABLE");
  const char* level = std::getenv("NCCL_P2P_LEVEL");
  if (disabled != nullptr && std::strtol(disabled, nullptr, 0) != 0) return false;
  return level == nullptr || (strcasecmp(level, "LOC") != 0 && std::strcmp(level, "0") != 0);
}

}  // namespace

std::string gpu_name(int index) {
  return fmt::format("GPU {} of {}", bus_id(index), this_host());
}

bool all_linked(int index, const ExchangeText& exchange) {
  const std::string host = this_host();
  bool linked = peer_to_peer_allowed();
  for (const std::string& other : exchange(bus_id(index) + " " + host)) {
    const size_t space = other.find(' ');
    linked = linked && other.substr(space + 1) == host && reaches(index, other.substr(0, space));
  }
  const std::vector<std::string> all = exchange(linked ? "linked" : "not linked");
  return std::count(all.begin(), all.end(), "linked") == static_cast<long>(all.size());
}

}  // namespace tally::train

#include "src/device/gpu_table.h"

#include <algorithm>

namespace tally::train {
namespace {

constexpr auto switched = NodeLinks::switched;

// Rates, bandwidth and NVLink (half of the sum of both directions): NVIDIA's datasheets; those of
// an NVL72 rack divided by its 72 GPUs. Clocks: an SM has 4096 FLOPs in 16 bits a clock on Hopper,
// 2048 on GA100, 1024 on V100, T4 and other Ampere and Ada GPUs, and 512 on L40. Memory: nvidia-smi's total on such a GPU. Four GH200 share
// a node of JUPITER or Alps, where six of a GPU's 18 links lead to each of the others. Network: one
// adapter for each GPU, of 200 Gbit/s (A100: JUWELS Booster, DGX A100), 400 (DGX H100, DGX B200,
// GB200 NVL72) or 800 (DGX B300, GB300 NVL72).
constexpr KnownGpu table[] = {
    {"H200 NVL", {1671, 835.5, 835.5, 417.5, 60, 60, 1545}, "NVIDIA H200 datasheet, NVL"},
    {"H200",
     {1979, 989.5, 989.5, 494.5, 67, 67, 1830},
     "NVIDIA H200 datasheet, SXM",
     {"H200", 90, 143771, 4800, switched(450), 50}},
    {"GH200",
     {1979, 989.5, 989.5, 494.5, 67, 67, 1830},
     "NVIDIA GH200 datasheet",
     {"GH200", 90, 97871, 4000, NodeLinks::direct(150), 50}},
    {"H100 PCIe", {1513, 756.5, 756.5, 378, 51, 51, 1620}, "NVIDIA H100 datasheet, PCIe"},
    {"H100 NVL", {1671, 835.5, 835.5, 417.5, 60, 60, 1545}, "NVIDIA H100 datasheet, NVL"},
    {"H100",
     {1979, 989.5, 989.5, 494.5, 67, 67, 1830},
     "NVIDIA H100 datasheet, SXM",
     {"H100", 90, 81559, 3350, switched(450), 50}},
    {"GB300",
     {5000, 2500, 2500, 1250, 80, 1.4},
     "NVIDIA GB300 NVL72 datasheet",
     {"GB300", 103, 284208, 8000, switched(900), 100, 72}},
    {"B300",
     {4500, 2250, 2250, 1125, 75, 1.25},
     "NVIDIA HGX B300 datasheet",
     {"B300", 103, 275040, 7700, switched(900), 100}},
    {"GB200",
     {5000, 2500, 2500, 1250, 80, 40},
     "NVIDIA GB200 NVL72 datasheet",
     {"GB200", 100, 189471, 8000, switched(900), 50, 72}},
    {"B200",
     {4500, 2250, 2250, 1125, 75, 37},
     "NVIDIA Blackwell datasheet, B200",
     {"B200", 100, 183359, 7700, switched(900), 50}},
    {"A100",
     {0, 312, 312, 156, 19.5, 19.5, 1410},
     "NVIDIA A100 datasheet",
     {"A100-80GB", 80, 81920, 2039, switched(300), 25}},
    {"A100",
     {0, 312, 312, 156, 19.5, 19.5, 1410},
     "NVIDIA A100 datasheet",
     {"A100-40GB", 80, 40960, 1555, switched(300), 25}},
    {"A800", {0, 312, 312, 156, 19.5, 9.7}, "NVIDIA A800 datasheet"},
    {"A30", {0, 165, 165, 82, 10.3, 10.3, 1439}, "NVIDIA A30 datasheet"},
    {"A40", {0, 149.7, 149.7, 74.8, 37.4, 0, 1740}, "NVIDIA A40 datasheet"},
    {"A10", {0, 125, 125, 62.5, 31.2, 0, 1695}, "NVIDIA A10 datasheet"},
    {"L40S", {733, 362.05, 362.05, 183, 91.6, 0, 2490}, "NVIDIA L40S datasheet"},
    {"L40", {362, 181.05, 181.05, 90.5, 90.5, 0, 2490}, "NVIDIA L40 datasheet"},
    {"L4", {242.5, 121, 121, 60, 30.3, 0}, "NVIDIA L4 datasheet"},
    {"V100-PCIE", {0, 112, 0, 0, 14, 7, 1367}, "NVIDIA V100 datasheet, PCIe"},
    {"V100", {0, 125, 0, 0, 15.7, 7.8, 1526}, "NVIDIA V100 datasheet, SXM2"},
    {"Tesla T4", {0, 65, 0, 0, 8.1, 0, 1587}, "NVIDIA T4 datasheet"},
    {"RTX PRO 6000 Blackwell Workstation",
     {1007.6, 503.8, 503.8, 251.9, 126, 1.97},
     "NVIDIA RTX Blackwell PRO GPU architecture whitepaper"},
    {"RTX 5090",
     {419, 209.5, 209.5, 104.8, 104.8, 1.64},
     "NVIDIA RTX Blackwell GPU architecture whitepaper"},
    {"RTX 4090", {0, 165.2, 165.2, 82.6, 82.6, 1.3}, "NVIDIA Ada GPU architecture whitepaper"},
    {"RTX 3090", {0, 71, 71, 35.6, 35.6, 0.56}, "NVIDIA Ampere GA102 whitepaper"},
};

// "A10" must not match "A100".
bool names(std::string_view gpu, std::string_view part) {
  const size_t at = gpu.find(part);
  if (at == std::string_view::npos) return false;
  const auto is_word = [&](size_t i) {
    return i < gpu.size() && ((gpu[i] >= '0' && gpu[i] <= '9') ||
                              (gpu[i] >= 'A' && gpu[i] <= 'Z') || (gpu[i] >= 'a' && gpu[i] <= 'z'));
  };
  return !is_word(at + part.size()) && (at == 0 || !is_word(at - 1));
}

}  // namespace

double NodeLinks::of(int members) const {
  return rates[static_cast<size_t>(std::clamp(members, 2, 4) - 2)];
}

std::span<const KnownGpu> known_gpus() {
  return table;
}

const KnownGpu* find_gpu(std::string_view driver) {
  for (const KnownGpu& gpu : table)
    if (names(driver, gpu.driver)) return &gpu;
  return nullptr;
}

std::vector<std::string> plan_gpu_names() {
  std::vector<std::string> names;
  for (const KnownGpu& gpu : table)
    if (!gpu.plan.name.empty()) names.emplace_back(gpu.plan.name);
  return names;
}

}  // namespace tally::train

#include "src/plan/gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "engine/base/text.h"
#include "src/config/args.h"
#include "src/plan/units.h"

namespace tally::train {
namespace {

struct Row {
  const char* name;
  double memory_mib, bandwidth_gb;
  NodeLinks links_gb;
  double network_gb, efficiency, fp32_efficiency;
  int capability;
};

// Memory: nvidia-smi's total. Bandwidth and NVLink (half of the sum of both directions): NVIDIA's
// datasheets; four GH200 share a node of JUPITER or Alps, where six of a GPU's 18 links lead to
// each of the others. Network: one 200 Gbit/s adapter for each A100 (JUWELS Booster, DGX A100), one
// of 400 Gbit/s for each later GPU (DGX H100). Efficiency: of the A100s that of Megatron-LM; H100
// and GH200 have the H200's chip.
constexpr std::array<Row, 6> known_gpus{
    {{"H200", 143771, 4800, NodeLinks::switched(450), 50, 0.71, 0.92, 90},
     {"H100", 81559, 3350, NodeLinks::switched(450), 50, 0.71, 0.92, 90},
     {"GH200", 97871, 4000, NodeLinks::direct(150), 50, 0.71, 0.92, 90},
     {"B200", 183359, 8000, NodeLinks::switched(900), 50, 0, 0, 100},
     {"A100-80GB", 81920, 2039, NodeLinks::switched(300), 25, 0.63, 0, 80},
     {"A100-40GB", 40960, 1555, NodeLinks::switched(300), 25, 0.58, 0, 80}}};

NodeLinks in_bytes(NodeLinks gigabytes) {
  for (double& rate : gigabytes.rates) rate *= gb;
  return gigabytes;
}

std::string upper(std::string text) {
  for (char& c : text)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return text;
}

// "64GB", "64 GB", "64GiB" or "64"; 0 for anything else. Sizes of GPUs are binary whatever they are
// called: an A100-40GB has 40 GiB.
double size_of_memory(const std::string& text) {
  char* end = nullptr;
  const double size = std::strtod(text.c_str(), &end);
  std::string unit = upper(end);
  while (!unit.empty() && unit.front() == ' ') unit.erase(unit.begin());
  const bool known = unit.empty() || unit == "GB" || unit == "GIB" || unit == "G";
  return known && size > 0 && size < 1e6 ? size * gib : 0;
}

}  // namespace

double NodeLinks::of(int members) const {
  return rates[static_cast<size_t>(std::clamp(members, 2, 4) - 2)];
}

std::vector<std::string> gpu_kind_names() {
  std::vector<std::string> names;
  for (const Row& row : known_gpus) names.emplace_back(row.name);
  return names;
}

GpuKind gpu_kind(const std::string& name) {
  const std::string wanted = upper(name);
  for (const Row& row : known_gpus)
    if (wanted == row.name)
      return {row.name,
              row.memory_mib * mib,
              row.bandwidth_gb * gb,
              in_bytes(row.links_gb),
              row.network_gb * gb,
              row.efficiency,
              row.fp32_efficiency,
              row.capability};
  if (const double memory = size_of_memory(name); memory > 0) {
    GpuKind kind;
    kind.name = fmt::format("{:.4g} GB", memory / gib);
    kind.memory = memory;
    return kind;
  }
  throw UsageError(fmt::format("--plan-device: '{}' is not known: {}, or a size of memory as 64GB",
                               name, fmt::join(gpu_kind_names(), ", ")));
}

}  // namespace tally::train

#include "src/plan/gpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdlib>
#include <string_view>

#include "engine/base/text.h"
#include "src/config/args.h"
#include "src/plan/units.h"

namespace tally::train {
namespace {

// The A100s have that of Megatron-LM; H100 and GH200 have the H200's chip.
struct Efficiency {
  std::string_view gpu;
  double of_16_bits, of_fp32;
};
constexpr Efficiency measured[] = {{"H200", 0.70, 0.92},
                                   {"H100", 0.70, 0.92},
                                   {"GH200", 0.70, 0.92},
                                   {"A100-80GB", 0.63, 0},
                                   {"A100-40GB", 0.57, 0}};

NodeLinks in_bytes(NodeLinks gigabytes) {
  for (double& rate : gigabytes.rates) rate *= gb;
  return gigabytes;
}

GpuKind kind_of(const PlannedGpu& gpu) {
  GpuKind kind;
  kind.name = gpu.name;
  kind.memory = gpu.memory_mib * mib;
  kind.memory_bandwidth = gpu.bandwidth_gb * gb;
  kind.links = in_bytes(gpu.links_gb);
  kind.linked_by_switch = gpu.linked_by_switch;
  kind.network = gpu.network_gb * gb;
  kind.capability = gpu.capability;
  for (const Efficiency& e : measured) {
    if (e.gpu != gpu.name) continue;
    kind.efficiency = e.of_16_bits;
    kind.fp32_efficiency = e.of_fp32;
  }
  return kind;
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

GpuKind gpu_kind(const std::string& name) {
  const std::string wanted = upper(name);
  for (const KnownGpu& gpu : known_gpus())
    if (!gpu.plan.name.empty() && wanted == gpu.plan.name) return kind_of(gpu.plan);
  if (const double memory = size_of_memory(name); memory > 0) {
    GpuKind kind;
    kind.name = fmt::format("{:.4g} GB", memory / gib);
    kind.memory = memory;
    return kind;
  }
  throw UsageError(fmt::format("--plan-device: '{}' is not known: {}, or a size of memory as 64GB",
                               name, fmt::join(plan_gpu_names(), ", ")));
}

}  // namespace tally::train

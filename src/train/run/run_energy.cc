#include "src/train/run/run_energy.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "src/device/pci_address.h"
#include "src/measure/system_info.h"

namespace tally::train {
namespace {

using PlainJson = nlohmann::json;

template <typename T>
PlainJson known(const std::optional<T>& value) {
  return value ? PlainJson(*value) : PlainJson(nullptr);
}

template <typename T>
void take(const PlainJson& value, std::optional<T>* out) {
  if (!value.is_null()) *out = value.get<T>();
}

std::string encoded_use(const GpuEnergyUse& use) {
  PlainJson faults = PlainJson::array();
  for (const GpuFaults& one : use.faults)
    faults.push_back({one.name, known(one.count), known(one.in_run)});
  return PlainJson{{"host", use.host},
                   {"local_rank", use.local_rank},
                   {"gpu", use.gpu},
                   {"uuid", use.uuid},
                   {"faults", faults},
                   {"seconds", use.energy.seconds},
                   {"joules", known(use.energy.joules)},
                   {"sampled_joules", known(use.energy.sampled_joules)},
                   {"throttle", use.energy.throttle},
                   {"sm_mhz", known(use.energy.sm_mhz)},
                   {"celsius", known(use.energy.celsius)},
                   {"limit_watts", known(use.limit_watts)},
                   {"default_limit_watts", known(use.default_limit_watts)},
                   {"max_sm_mhz", known(use.max_sm_mhz)},
                   {"not_available", use.not_available}}
      .dump(-1, ' ', false, PlainJson::error_handler_t::replace);
}

GpuEnergyUse decoded(int rank, const std::string& text) {
  const PlainJson in = PlainJson::parse(text);
  GpuEnergyUse use;
  use.rank = rank;
  use.host = in["host"];
  use.gpu = in["gpu"];
  use.local_rank = in["local_rank"];
  use.uuid = in["uuid"];
  use.energy.seconds = in["seconds"];
  use.energy.throttle = in["throttle"];
  take(in["joules"], &use.energy.joules);
  take(in["sampled_joules"], &use.energy.sampled_joules);
  take(in["sm_mhz"], &use.energy.sm_mhz);
  take(in["celsius"], &use.energy.celsius);
  take(in["limit_watts"], &use.limit_watts);
  take(in["default_limit_watts"], &use.default_limit_watts);
  take(in["max_sm_mhz"], &use.max_sm_mhz);
  for (const PlainJson& one : in["faults"]) {
    GpuFaults& faults = use.faults.emplace_back();
    faults.name = one[0];
    take(one[1], &faults.count);
    take(one[2], &faults.in_run);
  }
  use.not_available = in["not_available"];
  return use;
}

}  // namespace

std::unique_ptr<EnergySampler> open_energy(const Config& config, Device device, std::string* why) {
  if (!device.is_cuda()) {
    *why = "the run used no GPU";
    return nullptr;
  }
  if (!config.energy) {
    *why = "--no-energy";
    return nullptr;
  }
  std::unique_ptr<GpuDevices> gpus;
  if (const Status s = GpuDevices::open(&gpus); !s) {
    *why = s.message();
    return nullptr;
  }
  const std::optional<size_t> gpu = gpus->at_pci(pci_address(device));
  if (!gpu) {
    *why = "NVML does not list this GPU";
    return nullptr;
  }
  return std::make_unique<EnergySampler>(std::move(gpus), *gpu);
}

std::vector<GpuEnergyUse> gather_energy(Rendezvous& meeting, EnergySampler* sampler,
                                        const std::string& why, const Record& record) {
  GpuEnergyUse mine;
  mine.not_available = why;
  if (sampler && record.steps.empty()) mine.not_available = "the run did no step";
  if (sampler && !record.steps.empty())
    mine = sampler->finish(record.steps, first_steady_step(record));
  mine.host = host_name();
  mine.local_rank = record.config.local_rank;
  mine.gpu = pci_address(record.device);
  const std::vector<std::string> all = meeting.size() == 1
                                           ? std::vector<std::string>{encoded_use(mine)}
                                           : meeting.exchange(encoded_use(mine));
  std::vector<GpuEnergyUse> energy;
  for (size_t rank = 0; rank < all.size(); ++rank)
    energy.push_back(decoded(static_cast<int>(rank), all[rank]));
  return energy;
}

}  // namespace tally::train

#include "src/train/run/run_energy.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "src/device/pci_address.h"
#include "src/measure/system_info.h"

namespace tally::train {
namespace {

using PlainJson = nlohmann::json;

PlainJson known(const std::optional<double>& value) {
  return value ? PlainJson(*value) : PlainJson(nullptr);
}

std::optional<double> value_of(const PlainJson& value) {
  return value.is_null() ? std::nullopt : std::optional<double>(value.get<double>());
}

std::string encoded_use(const GpuEnergyUse& use) {
  return PlainJson{{"host", use.host},
                   {"gpu", use.gpu},
                   {"seconds", use.energy.seconds},
                   {"joules", known(use.energy.joules)},
                   {"sampled_joules", known(use.energy.sampled_joules)},
                   {"throttle", use.energy.throttle},
                   {"limit_watts", known(use.limit_watts)},
                   {"sm_mhz", known(use.energy.sm_mhz)},
                   {"not_available", use.not_available}}
      .dump(-1, ' ', false, PlainJson::error_handler_t::replace);
}

GpuEnergyUse decoded(int rank, const std::string& text) {
  const PlainJson in = PlainJson::parse(text);
  GpuEnergyUse use;
  use.rank = rank;
  use.host = in["host"];
  use.gpu = in["gpu"];
  use.energy = {in["seconds"], value_of(in["joules"]), value_of(in["sampled_joules"]),
                in["throttle"], value_of(in["sm_mhz"])};
  use.limit_watts = value_of(in["limit_watts"]);
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

// Measures the energy of a run's GPUs, each by the rank that computes on it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/measure/energy.h"
#include "src/measure/record.h"
#include "src/parallel/control/rendezvous.h"

namespace tally::train {

// Samples the energy of this rank's device. Null where there is nothing to read, and *why says why.
std::unique_ptr<EnergySampler> open_energy(const Config& config, Device device, std::string* why);

// Collective: the energy that each rank's GPU used. `sampler` may be null: then `why` is this
// rank's reason.
std::vector<GpuEnergyUse> gather_energy(Rendezvous& meeting, EnergySampler* sampler,
                                        const std::string& why, const Record& record);

}  // namespace tally::train

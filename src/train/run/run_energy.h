// Measures the energy of a run's GPUs, each by the rank that computes on it.
#pragma once

#include <memory>
#include <string>

#include "src/measure/energy.h"
#include "src/measure/record.h"
#include "src/parallel/control/rendezvous.h"

namespace tally::train {

// Of this rank's device. Null where there is nothing to read, and *why says why.
std::unique_ptr<EnergySampler> open_energy(const Config& config, const Record& record,
                                           std::string* why);

// Collective: what each rank's GPU used goes into rank 0's record. `sampler` may be null: then `why`
// is this rank's reason.
void gather_energy(Rendezvous& meeting, EnergySampler* sampler, const std::string& why,
                   Record* record);

}  // namespace tally::train

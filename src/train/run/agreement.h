// Whether the processes of a run were asked for the same run. Ranks with different settings would
// train different models, or wait for each other for ever.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/device/stream.h"
#include "src/measure/build_info.h"
#include "src/parallel/control/rendezvous.h"

namespace tally::train {

// One setting that must be the same on all ranks of a run.
struct RunSetting {
  std::string name;   // "training.lr": its key in the record's configuration
  std::string label;  // its name in messages: "--lr"
  std::string value;  // its text in the record: "0.0001"
};
using RunSettings = std::vector<RunSetting>;

// The settings of the record's configuration (docs/record.md), as their rows say
// (Setting::agreement): new settings are compared without further work. Paths of models are
// compared only by whether they are given, as they may differ from host to host.
RunSettings run_settings(const Config& config);

// Version, commit, LibTorch and CUDA toolkit of the program.
RunSettings build_settings(const BuildInfo& build);

// Compares the settings of all ranks: hashes first, and in full only where these differ.
// Collective. `host`: of this rank, for the message. `remedy`: what the user should do, as "give
// every rank the same flags". Throws InputError on rank 0 with one sentence that names the first
// setting that differs, both values and the ranks; the other ranks throw CommunicationError when
// rank 0 has failed.
void require_same_settings(Rendezvous& meeting, const std::string& host, const RunSettings& mine,
                           const std::string& remedy);

// Lets all ranks with the same device run the same algorithms: of those that were chosen so far,
// for each call that of the first rank which made it. Collective; `device` is this rank's name and
// version of the device.
void agree_on_algorithms(Rendezvous& meeting, Stream& stream, const std::string& device);

}  // namespace tally::train

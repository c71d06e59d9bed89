// The device of a run.
#pragma once

#include <memory>
#include <string>

#include "src/config/config.h"
#include "src/measure/record.h"
#include "src/model/stage.h"
#include "src/ops/attention/attention.h"

namespace tally::train {

struct OpenDevice {
  std::unique_ptr<Stream> stream;
  DeviceFacts facts;
};

// Chooses the device that `config` asks for, checks that it supports the precision, sets the number
// of threads, and makes a stream on the device. Throws InputError.
OpenDevice open_device(const Config& config);

// One sentence on GPU kernels that the build or the run lacks and why, as open_device() found it;
// empty where nothing is missing.
std::string kernel_notice(const DeviceFacts& device);

// One sentence on GPUs of the host that a run on the CPU leaves idle. `reason`: why CUDA cannot use
// them, as an old driver; empty where the build has no CUDA.
std::string idle_gpus_notice(int gpus, const std::string& reason);

// One sentence where fewer threads compute than the processors allow, because others use these.
std::string threads_notice(const DeviceFacts& device);

// The attention of a full micro batch. `documents`: of an encoder, all its sequences in one row.
AttentionShape attention_shape(const Config& config, bool documents = false);

}  // namespace tally::train

// The questions that the flags have about folders that hold a model. checkpoint/ knows those
// folders; config/ only asks, so that it depends on no format of a file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "src/config/config.h"

namespace tally::train {

// The values that config.json leaves open, and what the run needs of it.
struct ModelConfigRequest {
  ModelConfig defaults;               // values of fields that the file does not have
  int64_t vocabulary_multiple = 128;  // padded_vocabulary is rounded up to a multiple of it
  bool dropout = true;                // the model's dropout is used, so it must be a known one
};

// Every member is set. They throw std::runtime_error with one sentence that names the folder.
struct StoredModels {
  // Whether `path` is a folder that --save made.
  std::function<bool(const std::string& path)> holds_checkpoints;
  // The folder of the newest checkpoint below `root`; nothing where there is none.
  std::function<std::optional<std::string>(const std::string& root)> latest_checkpoint;
  // The sizes of the model that lies in `folder`.
  std::function<ModelConfig(const std::string& folder, const ModelConfigRequest&)> read_config;
  // Whether the WordPiece tokenizer of `folder` lower-cases; nothing where no file there says.
  std::function<std::optional<bool>(const std::string& folder)> lower_case;
};

}  // namespace tally::train

// A trained model as a folder that transformers reads.
#pragma once

#include <string>

#include "src/checkpoint/model_weights.h"
#include "src/checkpoint/save_group.h"
#include "src/checkpoint/side_files.h"
#include "src/config/config.h"
#include "src/device/stream.h"

namespace tally::train {

// Whether save_hugging_face() may and can write to `directory`: it does not exist, is empty, or,
// where the run resumes a training (`goes_on`), holds a GPT-2 model, which is replaced. Writing is
// tried and leaves nothing behind. Throws std::runtime_error with one sentence.
void check_hugging_face_target(const std::string& directory, bool goes_on);

// Writes model.safetensors, config.json and the side files to `directory`, which is made when
// missing. A new folder appears whole; in an existing one the files are replaced one by one, the
// weights last. Throws std::runtime_error with one sentence, and leaves nothing unfinished.
// Collective where group.divided(), as save_checkpoint().
void save_hugging_face(const std::string& directory, const ModelConfig& config,
                       const SideFiles& side, const ParameterState& parameters, Stream& stream,
                       const SaveGroup& group = {});

}  // namespace tally::train

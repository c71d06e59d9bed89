// The folders that a run reads its model from and writes it to, checked before anything is
// allocated.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "src/checkpoint/save_folder.h"
#include "src/checkpoint/side_files.h"
#include "src/config/config.h"
#include "src/measure/record.h"
#include "src/train/run/world.h"

namespace tally::train {

using Print = std::function<void(const std::string&)>;

// The start of a run: a checkpoint, or (without one) --load-hf's weights or random ones.
struct StartingPoint {
  std::optional<std::string> checkpoint;  // its folder
  bool resumes = false;                   // the checkpoint's counters continue
  bool optimizer = false;                 // its optimizer's state, too
  // The checkpoint that training resumes from; nothing where training starts anew.
  std::optional<std::string> resumed() const { return resumes ? checkpoint : std::nullopt; }
};

// Looks for --load's checkpoint. `notice` is called when training starts from scratch without it.
// Throws InputError.
StartingPoint find_start(const Config& config, const Print& notice);

// Calls `notice` where the folder that `flag` names is a checkpoint without checksums. Throws
// InputError.
void note_checksums(const char* flag, const std::string& folder, const Print& notice);

// The flag that names the folder of an evaluation's model.
const char* evaluated_flag(const Config& config);

// The files that are copied next to checkpoints and the saved model, read now, by the one process
// that writes. Throws InputError.
SideFiles side_files(const Config& config, const World& world, const StartingPoint& start);

// Checks that the weights to read fit, and that those to save may be saved. `notice` is called for
// another length of samples than the checkpoint's. Throws InputError.
void check_model_folders(const Config& config, const World& world, const StartingPoint& start,
                         const Print& notice);

// Tells how the run differs from the checkpoint's. `run` has the content of its data.
void note_differences(const Record& run, const StartingPoint& start, const Print& notice);

// Takes --save's folder for the one process that writes checkpoints. Throws InputError.
void take_save_folder(const Config& config, const World& world, const StartingPoint& start,
                      std::optional<SaveFolder>* folder, const Print& notice);

}  // namespace tally::train

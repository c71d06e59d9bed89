// The folders that a run reads its model from and writes it to, checked before anything is
// allocated.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "src/checkpoint/save_folder.h"
#include "src/checkpoint/side_files.h"
#include "src/config/config.h"
#include "src/train/world.h"

namespace tally::train {

using Print = std::function<void(const std::string&)>;

// What a run begins with: a checkpoint, or (without one) --load-hf's weights or random ones.
struct StartingPoint {
  std::optional<std::string> checkpoint;  // its folder
  bool resumes = false;                   // the checkpoint's counters continue
  bool optimizer = false;                 // its optimizer's state, too
  // The checkpoint that training resumes from; nothing where it starts anew.
  std::optional<std::string> resumed() const { return resumes ? checkpoint : std::nullopt; }
};

// Looks for --load's checkpoint. `notice` is called when training starts from scratch without it.
// Throws InputError.
StartingPoint find_start(const Config& config, const Print& notice);

// What is copied beside checkpoints and the saved model, by the one process that writes: read now.
// Throws InputError.
SideFiles side_files(const Config& config, const World& world, const StartingPoint& start);

// Whether the weights that are read fit, and those that are saved may be. `notice` is called for
// what differs from the checkpoint's run. Throws InputError.
void check_model_folders(const Config& config, const World& world, const StartingPoint& start,
                         const Print& notice);

// Takes --save's folder for the one process that writes checkpoints. Throws InputError.
void take_save_folder(const Config& config, const World& world, const StartingPoint& start,
                      std::optional<SaveFolder>* folder, const Print& notice);

}  // namespace tally::train

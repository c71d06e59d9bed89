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

// The checkpoint to resume from; nothing where training starts from scratch, which is said. Throws
// InputError.
std::optional<std::string> find_checkpoint(const Config& config, const Print& notice);

// What is copied beside checkpoints and the saved model, by the one process that writes: read now.
// Throws InputError.
SideFiles side_files(const Config& config, const World& world,
                     const std::optional<std::string>& resumed);

// Whether the weights that are read fit, and those that are saved may be. `resumed`: as
// find_checkpoint() gives it. Throws InputError.
void check_model_folders(const Config& config, const World& world,
                         const std::optional<std::string>& resumed);

// Takes --save's folder for the one process that writes checkpoints. Throws InputError.
void take_save_folder(const Config& config, const World& world,
                      const std::optional<std::string>& resumed, std::optional<SaveFolder>* folder,
                      const Print& notice);

}  // namespace tally::train

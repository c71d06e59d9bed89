#include "src/train/folders.h"

#include <fmt/format.h>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/hugging_face.h"
#include "src/model/model.h"
#include "src/train/failures.h"

namespace tally::train {

std::optional<std::string> find_checkpoint(const Config& c, const Print& notice) {
  if (c.load_dir.empty()) return std::nullopt;
  std::optional<std::string> found;
  check_flag("--load", [&] { found = latest_checkpoint(c.load_dir); });
  if (found) return found;
  if (c.exit_on_missing_checkpoint)
    throw InputError(fmt::format("--load: {} holds no checkpoint", c.load_dir));
  notice(
      fmt::format("--load: {} holds no checkpoint yet, training starts from scratch", c.load_dir));
  return std::nullopt;
}

void check_model_folders(const Config& c, const World& world,
                         const std::optional<std::string>& resumed) {
  ParameterTable names;
  register_gpt(c.model, &names);
  TrainingState state;
  if (resumed) {
    check_flag("--load", [&] {
      check_model_weights(*resumed, c.model, names.all());
      const bool wide = c.compute_type() == DType::f64;
      state = check_checkpoint(*resumed, names.all(), wide ? DType::f64 : DType::f32);
    });
  }
  if (state.sequence != 0 && state.sequence != c.sequence)
    throw InputError(fmt::format("--seq-length: {} differs from the checkpoint's {}", c.sequence,
                                 state.sequence));
  if (!c.load_hf_dir.empty())
    check_flag("--load-hf", [&] { check_model_weights(c.load_hf_dir, c.model, names.all()); });
  if (c.save_hf_dir.empty() || !world.is_primary()) return;
  if (c.model.positions == Positions::rotary)
    throw InputError("--save-hf: transformers' GPT-2 has no rotary positions: use --save");
  check_flag("--save-hf", [&] { check_hugging_face_target(c.save_hf_dir, resumed.has_value()); });
}

void take_save_folder(const Config& c, const World& world,
                      const std::optional<std::string>& resumed, std::optional<SaveFolder>* folder,
                      const Print& notice) {
  if (c.save_dir.empty() || !world.is_primary()) return;
  check_flag("--save", [&] {
    folder->emplace(c.save_dir);
    check_goes_on(c.save_dir, resumed);
  });
  if (!(*folder)->notice().empty()) notice((*folder)->notice());
}

SideFiles side_files(const Config& c, const World& world,
                     const std::optional<std::string>& resumed) {
  if ((c.save_dir.empty() && c.save_hf_dir.empty()) || !world.is_primary()) return {};
  try {
    return read_side_files(c.model, c.data, resumed.value_or(c.load_hf_dir));
  } catch (const std::runtime_error& e) {
    throw InputError(fmt::format("{} (it is copied beside what is saved)", e.what()));
  }
}

}  // namespace tally::train

#include "src/train/run/folders.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/hugging_face.h"
#include "src/checkpoint/latest_checkpoint.h"
#include "src/model/stage.h"
#include "src/train/run/failures.h"
#include "src/train/run/saved_run.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;

TrainingState check_start(const Config& c, const StartingPoint& start,
                          const std::vector<Parameter>& parameters) {
  const std::string& folder = *start.checkpoint;
  TrainingState state;
  check_flag("--load", [&] { state = read_training_state(folder); });
  check_flag("--load", [&] {
    const auto missing = check_model_weights(folder, c.model, parameters);
    if (start.resumes && !missing.empty())
      throw std::runtime_error(
          fmt::format("{} was trained for another task, without {}: add --finetune to begin this "
                      "task with its weights",
                      folder, fmt::join(missing, ", ")));
    const bool wide = c.compute_type() == DType::f64;
    if (start.optimizer)
      state = check_checkpoint(folder, c.model, parameters, wide ? DType::f64 : DType::f32,
                               c.optimizer.kind);
  });
  return state;
}

// Refuses one folder for both, because neither flag could read it: --load-hf refuses a folder with
// checkpoints, and a run that is killed before its end leaves one that --save-hf refuses.
void check_save_folders_differ(const Config& c) {
  if (c.save_dir.empty()) return;
  const auto resolved = [](const std::string& path) {
    std::error_code error;
    return fs::weakly_canonical(fs::absolute(path + "/."), error);
  };
  if (resolved(c.save_dir) == resolved(c.save_hf_dir))
    throw InputError(
        fmt::format("--save-hf: '{}' is --save's folder, too, and --load-hf does not read a model "
                    "from a folder with checkpoints: name another folder",
                    c.save_hf_dir));
}

// A GPT's samples are cut from a text by the length, so that their numbers would mean other text.
// An encoder's samples are those of its files: BERT's second phase goes on with longer ones.
void check_sequence(const Config& c, int64_t saved, const Print& notice) {
  if (c.model.language_model())
    throw InputError(
        fmt::format("--seq-length: {} differs from the checkpoint's {}", c.sequence, saved));
  notice(fmt::format(
      "--seq-length {} differs from the checkpoint's {}: steps, samples and the optimizer's state "
      "go on from it",
      c.sequence, saved));
}

// Notes what a user should know of the checkpoint that is loaded.
void note_checkpoint(const Config& c, const std::string& checkpoint, const Print& notice) {
  note_checksums("--load", checkpoint, notice);
  check_flag("--load", [&] {
    const std::string newer = newer_checkpoint(c.load_dir, checkpoint);
    if (!newer.empty())
      notice(fmt::format("--load: {} is loaded, which {} names, and {} is newer", checkpoint,
                         latest_file, newer));
  });
}

}  // namespace

void note_checksums(const char* flag, const std::string& folder, const Print& notice) {
  check_flag(flag, [&] {
    if (lacks_checksums(folder))
      notice(fmt::format(
          "{}: {} has no checksums (tally-train 0.2.0 or an earlier version saved it), so that "
          "damage to its files may not be noticed",
          flag, folder));
  });
}

const char* evaluated_flag(const Config& c) {
  return c.load_hf_dir.empty() ? "--load" : "--load-hf";
}

StartingPoint find_start(const Config& c, const Print& notice) {
  StartingPoint start;
  if (c.load_dir.empty()) return start;
  check_flag("--load", [&] { start.checkpoint = latest_checkpoint(c.load_dir); });
  if (start.checkpoint) {
    start.resumes = !c.finetune;
    start.optimizer = c.load_optimizer;
    note_checkpoint(c, *start.checkpoint, notice);
    return start;
  }
  if (c.finetune && c.load_hf_dir.empty())
    throw InputError(
        fmt::format("--finetune: --load {} holds no checkpoint to take weights from", c.load_dir));
  if (c.exit_on_missing_checkpoint)
    throw InputError(fmt::format("--load: {} holds no checkpoint", c.load_dir));
  notice(
      fmt::format("--load: {} holds no checkpoint yet, training starts from scratch", c.load_dir));
  return start;
}

void check_model_folders(const Config& c, const World& world, const StartingPoint& start,
                         const Print& notice) {
  ParameterTable names;
  register_model(c.model, &names);
  TrainingState state;
  if (start.checkpoint) state = check_start(c, start, names.all());
  if (start.resumes && state.sequence != 0 && state.sequence != c.sequence)
    check_sequence(c, state.sequence, notice);
  if (!c.load_hf_dir.empty()) {
    check_flag("--load-hf", [&] { check_model_weights(c.load_hf_dir, c.model, names.all()); });
    if (!start.checkpoint) note_checksums("--load-hf", c.load_hf_dir, notice);
  }
  if (c.save_hf_dir.empty() || !world.is_primary()) return;
  if (c.model.positions == Positions::rotary && c.model.kind() == "gpt")
    throw InputError("--save-hf: transformers' GPT-2 has no rotary positions: use --save");
  check_save_folders_differ(c);
  check_flag("--save-hf", [&] { check_hugging_face_target(c.save_hf_dir, start.resumes); });
}

void note_differences(const Record& run, const StartingPoint& start, const Print& notice) {
  if (!start.checkpoint) return;
  const TrainingState state = read_training_state(*start.checkpoint);
  const bool resumes = start.resumes && !run.config.skip_train;  // trains on
  for (const std::string& note : differences(state.config_json, run, resumes)) notice(note);
}

void take_save_folder(const Config& c, const World& world, const StartingPoint& start,
                      std::optional<SaveFolder>* folder, const Print& notice) {
  if (c.save_dir.empty() || !world.is_primary()) return;
  check_flag("--save", [&] {
    folder->emplace(c.save_dir);
    check_goes_on(c.save_dir, start.resumed());
  });
  if (!(*folder)->notice().empty()) notice((*folder)->notice());
}

SideFiles side_files(const Config& c, const World& world, const StartingPoint& start) {
  if ((c.save_dir.empty() && c.save_hf_dir.empty()) || !world.is_primary()) return {};
  try {
    return read_side_files(c.model, c.data, start.checkpoint.value_or(c.load_hf_dir));
  } catch (const std::runtime_error& e) {
    throw InputError(fmt::format("{} (it is copied next to what is saved)", e.what()));
  }
}

}  // namespace tally::train

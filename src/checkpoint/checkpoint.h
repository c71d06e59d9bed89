// Saving a training run and resuming it, bit for bit.
//   ROOT/latest_checkpointed_iteration.txt   the number of the last good one, as Megatron names it
//   ROOT/iter_0000010/model.safetensors      weights in Hugging Face's format (model_weights.h)
//                     config.json            the model (model_config_file.h)
//                     optimizer.safetensors  "master.NAME", "exp_avg.NAME", "exp_avg_sq.NAME" (of
//                                            SGD "momentum_buffer.NAME" instead of the two) in our
//                                            layout
//                     state.json             counters, loss scale, the run's configuration
//                     manifest.json          all files with their checksums (stored_files.h)
//                     and the tokenizer's files
// Processes of which none has everything (SaveGroup::divided) write
//                     optimizer-00001-of-00008.safetensors ...   what each of them holds
// in place of optimizer.safetensors, and model.safetensors together; manifest.json then says
// where each element is (manifest.h). Either is loaded by processes of any layout.
// A checkpoint appears whole: it is written under another name, synced and renamed, and then the
// text file names it. A save that is killed at any instant leaves the last good one as it was.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "src/checkpoint/model_weights.h"
#include "src/checkpoint/save_group.h"
#include "src/checkpoint/side_files.h"
#include "src/config/config.h"
#include "src/device/stream.h"

namespace tally::train {

// The state besides the parameters on which the next step depends.
struct TrainingState {
  int64_t iteration = 0;  // steps done
  int64_t consumed_samples = 0;
  int64_t scheduled_samples = 0;  // samples of steps whose update was not skipped (schedule.h)
  int64_t optimizer_steps = 0;    // t of Adam's bias correction: iterations that were not skipped
  int64_t skipped_iterations = 0;
  // Dynamic loss scaling: the scale, clean steps since it last changed, overflows still tolerated.
  double loss_scale = 1;
  int64_t loss_scale_good_steps = 0;
  int64_t loss_scale_hysteresis = 0;
  uint64_t seed = 0;
  int64_t sequence = 0;                 // a GPT's; consumed samples mean nothing under another one
  bool optimizer = true;                // its state is saved with the weights
  std::string optimizer_kind = "adam";  // optimizer_name()
  std::string config_json;              // the run's, for people to read; any JSON text or empty
};

// Writes the checkpoint of state.iteration under `root`, which is made when missing; one run at a
// time does so (SaveFolder). Returns its directory. The optimizer's state is left out unless
// state.optimizer. Throws std::runtime_error with one sentence, and leaves nothing unfinished.
// Collective where group.divided(): every process has the same `root`, a folder that their hosts
// share, and all of them return or throw alike.
std::string save_checkpoint(const std::string& root, const TrainingState& state,
                            const ModelConfig& config, const ParameterState& parameters,
                            Stream& stream, const SideFiles& side = {},
                            const SaveGroup& group = {});

// The directory of the last good checkpoint under `root`, or `root` where it is a checkpoint
// itself; nothing when there is none yet. Throws when the text file is missing or names a directory
// that does not exist, and when `root` is something else: a file, or a model in Hugging Face's
// layout.
std::optional<std::string> latest_checkpoint(const std::string& root);

// Throws when `root` holds checkpoints that this run would replace without having resumed from
// them. `resumed`: the checkpoint that the run resumes from, as latest_checkpoint() returns it.
void check_goes_on(const std::string& root, const std::optional<std::string>& resumed);

// Checks a folder that a model is read from where it is a checkpoint: the files other than those of
// tensors are those that were saved, and the iteration is that of the folder's name. Throws
// std::runtime_error with one sentence.
void check_folder(const std::string& directory);

// The counters alone, of a folder that check_folder() finds good. Throws like it.
TrainingState read_training_state(const std::string& directory);

// Whether it is a checkpoint without checksums, as version 0.2.0 and earlier ones saved them.
bool lacks_checksums(const std::string& directory);

// A newer checkpoint under `root` than the one that latest_checkpoint() finds; empty: there is
// none.
std::string newer_checkpoint(const std::string& root, const std::string& latest);

// Whether a training can be resumed from the checkpoint in `directory`, with master weights and
// moments of the type `master`, by an optimizer of this kind: for a check before anything is
// allocated. `parameters`: of the whole model. Throws std::runtime_error with one sentence that
// names the file.
TrainingState check_checkpoint(const std::string& directory, const ModelConfig& config,
                               const std::vector<Parameter>& parameters, DType master,
                               OptimizerKind kind);

// Reads the last good checkpoint under `root` into `parameters`, which may be a part of the model:
// master weights and moments bit for bit, weights rounded from the master weights as every step
// does it; without an optimizer (evaluation) the weights from model.safetensors. The padding of the
// vocabulary may be another one: rows that are not stored become 0. Everything is checked before
// anything is changed. std::nullopt when there is no checkpoint.
std::optional<TrainingState> load_checkpoint(const std::string& root, const ModelConfig& config,
                                             const ParameterState& parameters, Stream& stream);

}  // namespace tally::train

// The parts of resolve() (flags.h), one file a topic: resolve_model.cc, resolve_encoder.cc,
// resolve_run.cc (precision, device, processes), resolve_data.cc (data, length, schedule),
// resolve_llama.cc (which blocks), resolve_rampup.cc, resolve_output.cc (checkpoints, evaluation,
// output), resolve_measure.cc (what is measured), resolve_plan.cc (--plan). Each reads flags and
// writes its part of the Config; all throw UsageError with the flag's name in front.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

#include "src/config/args.h"
#include "src/config/flags.h"
#include "src/config/stored_models.h"

namespace tally::train {

template <typename... Args>
[[noreturn]] void fail(const char* flag, fmt::format_string<Args...> text, Args&&... args) {
  throw UsageError(fmt::format("{}: {}", flag, fmt::format(text, std::forward<Args>(args)...)));
}
std::string lower(std::string text);

// --plan: flags that a plan can do without get values that change no figure of it.
Flags flags_of_plan(const Flags& f);
// The GPUs that are planned for.
int planned_world_size(const Flags& f);
// Comes after resolve_parallel().
void resolve_plan(const Flags& f, Config* c);

// The names that --model knows.
std::vector<std::string> preset_names();
// The folder of a stored model that the run starts from; empty: it starts from random weights.
std::string model_folder(const Config& c, const StoredModels& stored);
// A flag that only Llama's blocks have, and that is given; null: none.
const char* flag_of_llama(const Flags& f);
// Fails where a number is given without --use-rope-scaling.
RotaryScaling resolve_rotary_scaling(const Flags& f);
// The blocks that the flags ask for: ModelConfig::kind(). `llama_preset`: --model names one of
// Llama.
std::string resolve_kind(const Flags& f, bool llama_preset);
// Checks the flags that say which blocks there are against a stored model.
void agree_with_kind(const Flags& f, const std::string& folder, const ModelConfig& m);
// The MLP's width where none is given, as Megatron-LM has it.
int64_t default_ffn(const ModelConfig& m);
// Query groups and the size of a head. `preset`: the query groups of --model; 0: none.
void resolve_heads(const Flags& f, int64_t preset, ModelConfig* m);
void resolve_model(const Flags& f, const StoredModels& stored, const std::string& folder,
                   Config* c);
// The parts of an encoder's model: its sizes where no folder has them, what a folder leaves open;
// its flags, and what it does not support.
void encoder_of_flags(const Flags& f, Config* c);
void encoder_of_folder(const Flags& f, const StoredModels& stored, const std::string& folder,
                       Config* c);
// Refuses what an encoder does not support, in one clear error. Comes before resolve_parallel(),
// whose errors would hide it.
void refuse_for_encoders(const Flags& f, const ModelConfig& m);
// Comes after resolve_data().
void resolve_encoder(const Flags& f, Config* c);
void resolve_precision(const Flags& f, Config* c);
void resolve_fp8(const Flags& f, Config* c);
// Sizes that FP8 cannot take, where it is on. Throws UsageError.
void check_fp8_sizes(const Config& c);
void resolve_recompute(const Flags& f, Config* c);
// Takes the layout of --rehearse over into `f` and its number of ranks into `world_size`.
Rehearsal resolve_rehearsal(Flags* f, Command command, int* world_size);
void resolve_parallel(const Flags& f, int world_size, Config* c);
// --split. Throws UsageError.
void check_split(const std::string& flag, const std::string& split);
void resolve_data(const Flags& f, Config* c);
// vocab.json and merges.txt of a stored model, unless flags name others.
void resolve_tokenizer_files(const std::string& folder, Config* c);
void resolve_evaluation(const Flags& f, const std::string& folder, Config* c);
// The words of --rampup-batch-size. Throws UsageError.
BatchRampup parse_rampup(const std::vector<std::string>& words);
// Checks the ramp-up, and takes the number of steps that follows from it.
void resolve_rampup(const Flags& f, Config* c);
// The samples of one pass over the training data; of a language model, its blocks (--epochs). Reads
// the data.
int64_t count_epoch_samples(const Config& c);
void resolve_length(const Flags& f, Config* c);
// Converts everything to samples, so that the schedule has one unit however it was given.
void resolve_schedule(const Flags& f, Config* c);
void resolve_output(const Flags& f, Config* c);
void resolve_device(const Flags& f, Config* c);
// --find-batch needs no length of a training.
Flags flags_of_find_batch(const Flags& f);
// Comes after all others: it turns off what would disturb a measurement.
void resolve_measuring(const Flags& f, Config* c);

}  // namespace tally::train

// Turns the flags into a checked Config: defaults that depend on other flags, presets, validity
// rules. The parts are in resolve_parts.h.
#include <cctype>
#include <filesystem>

#include "src/config/resolve_parts.h"

namespace tally::train {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

void check_parallel_layout(const Config& c) {
  const ModelConfig& m = c.model;
  const int tp = c.tensor_parallel, pp = c.pipeline_parallel;
  const int64_t model_parallel = static_cast<int64_t>(tp) * pp;
  const char* size_flag =
      tp > 1 ? "--tensor-model-parallel-size" : "--pipeline-model-parallel-size";
  if (c.world_size % model_parallel != 0)
    fail(size_flag,
         "world size ({}) is not divisible by tensor parallel size ({}) times pipeline parallel "
         "size ({})",
         c.world_size, tp, pp);
  if (c.global_batch % (c.micro_batch * c.data_parallel) != 0)
    fail("--global-batch-size",
         "global batch size ({}) is not divisible by micro batch size ({}) times data parallel "
         "size ({})",
         c.global_batch, c.micro_batch, c.data_parallel);
  if (m.heads % tp != 0)
    fail("--num-attention-heads",
         "num_attention_heads ({}) must be a multiple of tensor_model_parallel_size ({}).", m.heads,
         tp);
  if (m.kv_heads() % tp != 0)
    fail("--num-query-groups",
         "num_query_groups ({}) must be a multiple of tensor_model_parallel_size ({}).",
         m.kv_heads(), tp);
  if (m.layers % pp != 0)
    fail("--num-layers",
         "num_layers must be divisible by transformer_pipeline_model_parallel_size ({} by {})",
         m.layers, pp);
  if (m.ffn % tp != 0) fail("--ffn-hidden-size", "{} is not divisible by {}", m.ffn, tp);
  if (m.hidden % tp != 0) fail("--hidden-size", "{} is not divisible by {}", m.hidden, tp);
  if (m.padded_vocabulary % tp != 0)
    fail("--make-vocab-size-divisible-by", "{} is not divisible by {}", m.padded_vocabulary, tp);
  if (c.sequence_parallel && c.sequence % tp != 0)
    fail("--sequence-parallel", "--seq-length {} is not divisible by the tensor parallel size {}",
         c.sequence, tp);
  check_fp8_sizes(c);
  if (c.virtual_pipeline_layers == 0) return;
  const char* flag = "--num-layers-per-virtual-pipeline-stage";
  if (pp <= 2)
    fail(flag, "pipeline-model-parallel size should be greater than 2 with interleaved schedule");
  if (m.layers / pp % c.virtual_pipeline_layers != 0)
    fail(flag,
         "number of layers per pipeline stage must be divisible number of layers per virtual "
         "pipeline stage");
  if (c.micro_batches() % pp != 0)
    fail(flag,
         "number of microbatches ({}) is not divisible by pipeline-model-parallel-size ({}) when "
         "using "
         "interleaved schedule",
         c.micro_batches(), pp);
}

namespace {

void note_unused(const Flags& f, Config* c) {
  if (c->model.positions == Positions::rotary) return;
  if (const char* flag = f.first_given({"--rotary-base", "--rotary-percent"}))
    c->notices.push_back(
        fmt::format("{} has no effect: this model's positions are a learned table", flag));
}

// Every rank reads the files of its data. Each would get a part of a pipe, and of standard input,
// which they share.
void refuse_shared_pipes(const Config& c, int world_size) {
  if (world_size == 1) return;
  const auto check = [&](const char* flag, const std::string& path) {
    std::error_code none;
    if (path == "-" || std::filesystem::is_fifo(path, none))
      fail(flag,
           "'{}' is one stream for all of {} ranks, and each would get a part of what comes: "
           "write it to a file",
           path, world_size);
  };
  check("--text", c.text);
  for (const std::string& path : c.data.paths) check("--data-path", path);
  for (const std::string& path : c.data.validation.paths) check("--valid-data-path", path);
  for (const std::string& path : c.data.test.paths) check("--test-data-path", path);
  check("--vocab-file", c.data.vocab_file);
  check("--merge-file", c.data.merge_file);
}

}  // namespace

Config resolve(const Flags& given, const StoredModels& stored, int world_size, Command command) {
  if (given.config.plan.asked && command == Command::evaluate)
    fail("--plan", "plans training, and this is 'evaluate'");
  if (given.config.find_batch && command == Command::evaluate)
    fail("--find-batch", "finds the micro batch of training, and this is 'evaluate'");
  const Flags f = given.config.plan.asked   ? flags_of_plan(given)
                  : given.config.find_batch ? flags_of_find_batch(given)
                                            : given;
  Config c = f.config;
  c.command = command;
  const std::string folder = model_folder(c, stored);
  resolve_model(f, stored, folder, &c);
  refuse_for_encoders(f, c.model);
  resolve_precision(f, &c);
  resolve_recompute(f, &c);
  resolve_parallel(f, c.plan.asked ? planned_world_size(f) : world_size, &c);
  resolve_plan(f, &c);
  resolve_data(f, &c);
  resolve_encoder(f, &c);
  resolve_tokenizer_files(folder, &c);
  if (command == Command::evaluate) {
    resolve_evaluation(f, folder, &c);
  } else {
    if (!c.text.empty())
      fail("--text",
           "is read by 'tally-train evaluate'; 'tally-train prepare' makes a dataset for training");
    if (const char* flag = f.first_given({"--stride", "--eval-mode", "--predictions"}))
      fail(flag, "is read by 'tally-train evaluate' only");
    resolve_length(f, &c);
    resolve_rampup(f, &c);
    resolve_schedule(f, &c);
  }
  refuse_shared_pipes(c, world_size);
  resolve_output(f, &c);
  resolve_device(f, &c);
  resolve_fp8(f, &c);
  resolve_measuring(f, &c);
  note_unused(f, &c);
  if (!f.ignored.empty()) {
    std::string text = "accepted without effect: ";
    for (size_t i = 0; i < f.ignored.size(); ++i) text += (i ? ", " : "") + f.ignored[i];
    c.notices.push_back(text);
  }
  return c;
}

}  // namespace tally::train

// The stored model, the output and the evaluation of a Config.
#include <filesystem>

#include "src/config/resolve_parts.h"

namespace tally::train {
namespace {

void resolve_predictions(const Flags& f, Config* c) {
  const std::string mode = lower(f.eval_mode.value_or("reduce"));
  if (mode != "reduce" && mode != "gather")
    fail("--eval-mode", "'{}' is not known: reduce, gather", *f.eval_mode);
  c->eval_mode = mode == "gather" ? EvalMode::gather : EvalMode::reduce;
  const Task task = c->model.task;
  const bool predicts = task == Task::classification || task == Task::question_answering;
  if (f.eval_mode && !predicts)
    fail("--eval-mode",
         "goes with --task classify and squad, which have predictions; a loss is always reduced: "
         "leave it out");
  if (!f.predictions.empty() && !predicts)
    fail("--predictions", "goes with --task classify and squad: leave it out");
  const std::filesystem::path predictions(f.predictions), record(f.record);
  if (!f.predictions.empty() && predictions.lexically_normal() == record.lexically_normal())
    fail("--predictions", "'{}' is the file of --record, too: name another one", f.predictions);
  c->predictions_path = f.predictions;
}

}  // namespace

void resolve_evaluation(const Flags& f, const std::string& folder, Config* c) {
  const std::pair<const char*, bool> only_training[] = {
      {"--train-iters", f.train_iterations.has_value()},
      {"--train-samples", f.train_samples.has_value()},
      {"--epochs", f.epochs.has_value()},
      {"--save", !f.save.empty()},
      {"--save-hf", !f.save_hf.empty()},
      {"--split", f.data.split != DataConfig().split},
      {"--rampup-batch-size", !f.rampup.empty()},
      {"--finetune", f.finetune},
      {"--no-load-optim", f.no_load_optimizer},
      {"--no-save-optim", f.no_save_optimizer},
      {"--skip-train", f.skip_train},
      {"--eod-mask-loss", f.data.eod_mask_loss},
      {"--calculate-per-token-loss", f.per_token_loss},
      {"--reset-position-ids", f.data.reset_position_ids},
      {"--reset-attention-mask", f.data.reset_attention_mask},
      {"--eval-interval", f.eval_interval.has_value()},
      {"--eval-iters", f.eval_iterations.has_value()}};
  for (const auto& [flag, given] : only_training)
    if (given) fail(flag, "has a meaning in training only, and this is 'evaluate'");
  for (const auto& [flag, size] :
       {std::pair{"--tensor-model-parallel-size", f.tensor_parallel},
        std::pair{"--pipeline-model-parallel-size", f.pipeline_parallel}})
    if (size > 1) fail(flag, "{}: evaluate is parallel in data only: take 1", size);
  if (c->data.mock && c->model.language_model())
    fail("--mock-data", "has no text to evaluate on: give --data-path or --text");
  if (c->data.mock && c->model.task == Task::question_answering)
    fail("--mock-data", "has no questions to answer: give --data-path with SQuAD's JSON");
  if (!f.text.empty() && !c->data.paths.empty())
    fail("--text", "contradicts --data-path {}", c->data.paths.front());
  if (c->data.paths.size() > 1)
    fail("--data-path", "evaluate reads one dataset, and {} were given", c->data.paths.size());
  resolve_predictions(f, c);
  c->model_dir = folder;
  c->text = f.text;
  c->stride = f.stride.value_or(c->sequence);
  if (c->stride > c->sequence)
    fail("--stride", "{} is more than --seq-length {}: tokens between blocks would not be scored",
         c->stride, c->sequence);
  const bool has_files = !c->data.vocab_file.empty() && !c->data.merge_file.empty();
  if (!c->text.empty() && c->data.tokenizer != "bytes" && !has_files)
    fail("--text",
         "needs a tokenizer, and {} has no vocab.json and merges.txt, and no tokenizer.json: give "
         "--vocab-file and --merge-file, or --tokenizer-type bytes",
         folder);
}

namespace {

void resolve_checkpoints(const Flags& f, Config* c) {
  c->finetune = f.finetune;
  c->load_optimizer = !f.no_load_optimizer && !f.finetune && !f.skip_train;
  c->save_optimizer = !f.no_save_optimizer;
  c->exit_on_missing_checkpoint = f.exit_on_missing_checkpoint;
  if (f.finetune && f.load.empty() && f.load_hf.empty())
    fail("--finetune", "needs the weights to begin with: give --load DIR or --load-hf DIR");
  if (f.finetune && f.load.empty())
    c->notices.emplace_back(
        "--finetune has no effect with --load-hf, which begins at iteration 0 in any case");
  if (f.no_load_optimizer && f.load.empty())
    c->notices.emplace_back("--no-load-optim has no effect without --load");
  if (f.no_save_optimizer && f.save.empty())
    c->notices.emplace_back("--no-save-optim has no effect without --save");
  if (f.save_interval && f.save.empty()) fail("--save-interval", "needs --save DIR");
  if (f.exit_on_missing_checkpoint && f.load.empty())
    fail("--exit-on-missing-checkpoint", "needs --load DIR");
  c->save_interval = f.save_interval.value_or(0);
}

void resolve_skip_train(const Flags& f, Config* c) {
  c->skip_train = f.skip_train;
  if (!f.skip_train) return;
  if (c->eval_iterations == 0)
    fail("--skip-train",
         "leaves nothing to do with --eval-iters 0: give the global batches to "
         "evaluate on");
  for (const auto& [flag, dir] :
       {std::pair{"--save", &c->save_dir}, std::pair{"--save-hf", &c->save_hf_dir}}) {
    if (dir->empty()) continue;
    c->notices.push_back(fmt::format("{} has no effect with --skip-train: nothing changes", flag));
    dir->clear();
  }
}

}  // namespace

void resolve_output(const Flags& f, Config* c) {
  c->save_dir = f.save;
  c->load_dir = f.load;
  c->load_hf_dir = f.load_hf;
  c->save_hf_dir = f.save_hf;
  c->record_path = f.record;
  c->log_interval = f.log_interval;
  if (f.log_format != "jupiter" && f.log_format != "megatron")
    fail("--log-format", "'{}' is not known: jupiter, megatron", f.log_format);
  c->log_format = f.log_format == "megatron" ? LogFormat::megatron : LogFormat::jupiter;
  c->log_throughput = f.log_throughput;
  if (f.log_throughput && c->log_format == LogFormat::jupiter)
    c->notices.emplace_back(
        "--log-throughput has no effect: the log line of --log-format jupiter always has TFLOPs");
  resolve_checkpoints(f, c);
  // Megatron's defaults are 1000 and 100. A benchmark that gives neither flag evaluates nothing.
  const bool asked = f.eval_interval || f.eval_iterations || f.skip_train;
  if (asked) {
    c->eval_interval = f.eval_interval.value_or(1000);
    c->eval_iterations = f.eval_iterations.value_or(100);
  }
  resolve_skip_train(f, c);
  const DataConfig& data = c->data;
  if (!data.separate) return;
  const bool any = !data.validation.paths.empty() || !data.test.paths.empty();
  if (c->eval_iterations > 0 && !any)
    fail(f.eval_interval ? "--eval-interval" : "--eval-iters",
         "needs --valid-data-path or --test-data-path with --train-data-path");
  if (c->eval_iterations == 0 && any && c->epochs == 0)
    c->notices.emplace_back(
        "--valid-data-path and --test-data-path have no effect without --eval-interval or "
        "--eval-iters");
}

}  // namespace tally::train

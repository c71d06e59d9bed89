// The stored model, the output and the evaluation of a Config.
#include <filesystem>

#include "src/config/resolve_parts.h"

namespace tally::train {
namespace {

void resolve_predictions(const Flags& f, Config* c) {
  c->eval_mode = f.eval_mode.value_or(EvalMode::reduce);
  const Task task = c->model.task;
  const bool predicts = task == Task::classification || task == Task::question_answering;
  if (f.eval_mode && !predicts)
    fail("--eval-mode",
         "goes with --task classify and squad, which have predictions; a loss is always reduced: "
         "leave it out");
  if (!c->predictions_path.empty() && !predicts)
    fail("--predictions", "goes with --task classify and squad: leave it out");
  const std::filesystem::path predictions(c->predictions_path), record(c->record_path);
  if (!predictions.empty() && predictions.lexically_normal() == record.lexically_normal())
    fail("--predictions", "'{}' is the file of --record, too: name another one",
         c->predictions_path);
}

}  // namespace

void resolve_evaluation(const Flags& f, const std::string& folder, Config* c) {
  const char* only_training = f.first_given(
      {"--train-iters", "--train-samples", "--epochs", "--save", "--save-hf", "--rampup-batch-size",
       "--finetune", "--no-load-optim", "--no-save-optim", "--skip-train", "--eod-mask-loss",
       "--calculate-per-token-loss", "--reset-position-ids", "--reset-attention-mask",
       "--eval-interval", "--eval-iters"});
  if (const char* flag =
          f.first_given({"--eval-interval-samples", "--target-loss", "--mllog", "--mllog-set"}))
    only_training = flag;
  if (c->data.split != DataConfig().split) only_training = "--split";
  if (only_training) fail(only_training, "has a meaning in training only, and this is 'evaluate'");
  for (const auto& [flag, size] :
       {std::pair{"--tensor-model-parallel-size", c->tensor_parallel},
        std::pair{"--pipeline-model-parallel-size", c->pipeline_parallel}})
    if (size > 1) fail(flag, "{}: evaluate is parallel in data only: take 1", size);
  if (c->data.mock && c->model.language_model())
    fail("--mock-data", "has no text to evaluate on: give --data-path or --text");
  if (c->data.mock && c->model.task == Task::question_answering)
    fail("--mock-data", "has no questions to answer: give --data-path with SQuAD's JSON");
  if (!c->text.empty() && !c->data.paths.empty())
    fail("--text", "contradicts --data-path {}", c->data.paths.front());
  if (c->data.paths.size() > 1)
    fail("--data-path", "evaluate reads one dataset, and {} were given", c->data.paths.size());
  resolve_predictions(f, c);
  c->model_dir = folder;
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

void resolve_checkpoints(Config* c) {
  const bool loads = !c->load_dir.empty(), saves = !c->save_dir.empty();
  if (c->finetune && !loads && c->load_hf_dir.empty())
    fail("--finetune", "needs the weights to begin with: give --load DIR or --load-hf DIR");
  if (c->finetune && !loads)
    c->notices.emplace_back(
        "--finetune has no effect with --load-hf, which begins at iteration 0 in any case");
  if (!c->load_optimizer && !loads)
    c->notices.emplace_back("--no-load-optim has no effect without --load");
  if (!c->save_optimizer && !saves)
    c->notices.emplace_back("--no-save-optim has no effect without --save");
  if (c->save_interval > 0 && !saves) fail("--save-interval", "needs --save DIR");
  if (c->exit_on_missing_checkpoint && !loads)
    fail("--exit-on-missing-checkpoint", "needs --load DIR");
  if (c->finetune || c->skip_train) c->load_optimizer = false;
}

void resolve_targets(const Flags& f, Config* c) {
  if (f.eval_interval && c->eval_interval_samples > 0)
    fail("--eval-interval-samples", "contradicts --eval-interval {}: leave one out",
         *f.eval_interval);
  if (c->eval_interval_samples > 0) c->eval_interval = 0;
  if (c->target_loss > 0 && !c->evaluates() && c->epochs == 0)
    fail("--target-loss",
         "is that of an evaluation: give --eval-interval-samples or "
         "--eval-interval");
  if (!c->mllog_values.empty() && c->mllog_path.empty())
    fail("--mllog-set", "goes with --mllog FILE");
  if (!c->skip_train) return;
  if (const char* flag = f.first_given({"--target-loss", "--mllog", "--eval-interval-samples"}))
    fail(flag, "has a meaning in training only, and --skip-train leaves it out");
}

void resolve_skip_train(Config* c) {
  if (!c->skip_train) return;
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
  if (c->log_throughput && c->log_format == LogFormat::jupiter)
    c->notices.emplace_back(
        "--log-throughput has no effect: the log line of --log-format jupiter always has TFLOPs");
  resolve_checkpoints(c);
  // Megatron's defaults are 1000 and 100. A benchmark that gives neither flag evaluates nothing.
  const bool asked =
      f.eval_interval || f.eval_iterations || c->skip_train || c->eval_interval_samples > 0;
  if (asked) {
    c->eval_interval = f.eval_interval.value_or(1000);
    c->eval_iterations = f.eval_iterations.value_or(100);
  }
  resolve_targets(f, c);
  resolve_skip_train(c);
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

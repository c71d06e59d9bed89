// Data, length of the run, schedule of the learning rate, evaluation and output of a Config.
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <sstream>

#include "src/checkpoint/checkpoint.h"
#include "src/config/resolve_parts.h"
#include "src/data/dataset.h"
#include "src/data/tokenizer.h"

namespace tally::train {
namespace {

int64_t product(const char* flag, int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    fail(flag, "{} steps of --global-batch-size {} are more samples than can be counted", a, b);
  return result;
}

// --epochs: how many samples a pass over the training blocks has.
int64_t count_blocks(const Config& c) {
  if (c.data.mock) fail("--epochs", "random tokens (--mock-data) have no end: give --train-iters");
  if (c.data.paths.size() > 1)
    fail("--epochs", "counts the passes over one dataset, and {} are blended: give --train-samples",
         c.data.paths.size());
  try {
    const auto dataset = std::make_shared<const IndexedDataset>(c.data.paths.front());
    return make_block_samples(dataset, c.data.split, Split::train, c.sequence, c.seed)
        ->samples_per_epoch();
  } catch (const std::runtime_error& e) {
    fail("--epochs", "{}", e.what());
  }
}

void resolve_weight_decay(const Flags& f, Config* c) {
  c->optimizer = f.adam;
  OptimizerConfig& o = c->optimizer;
  const std::string& style = o.weight_decay_style;
  const char* flag = "--weight-decay-incr-style";
  o.end_weight_decay = o.weight_decay;
  o.weight_decay_samples = c->train_samples;
  if (style == "constant") {
    for (const auto& [name, given] :
         {std::pair{"--start-weight-decay", f.start_weight_decay.has_value()},
          std::pair{"--end-weight-decay", f.end_weight_decay.has_value()}})
      if (given)
        fail(name, "goes with {} linear or cosine; a constant weight decay is --weight-decay",
             flag);
    return;
  }
  if (style != "linear" && style != "cosine")
    fail(flag, "'{}' is not known: constant, linear, cosine", style);
  if (!f.start_weight_decay || !f.end_weight_decay)
    fail(flag, "{} needs --start-weight-decay and --end-weight-decay", style);
  o.weight_decay = *f.start_weight_decay;
  o.end_weight_decay = *f.end_weight_decay;
  if (o.end_weight_decay < o.weight_decay)
    fail("--end-weight-decay", "{} is less than --start-weight-decay {}", o.end_weight_decay,
         o.weight_decay);
}

}  // namespace

void resolve_length(const Flags& f, Config* c) {
  if (f.train_iterations && f.train_samples)
    fail("--train-samples",
         "expected iteration-based training: give --train-iters or --train-samples, not both");
  if (f.epochs && (f.train_iterations || f.train_samples))
    fail("--epochs", "and {} are two lengths of one training: give one",
         f.train_iterations ? "--train-iters" : "--train-samples");
  if (!f.train_iterations && !f.train_samples && !f.epochs)
    fail("--train-iters", "is missing: give --train-iters, --train-samples or --epochs");
  if (f.epochs) {
    c->epochs = *f.epochs;
    c->epoch_samples = count_blocks(*c);
    if (__builtin_mul_overflow(c->epochs, c->epoch_samples, &c->train_samples))
      fail("--epochs", "{} epochs of {} blocks are more samples than can be counted", c->epochs,
           c->epoch_samples);
    c->train_iterations = c->train_samples / c->global_batch;
    if (c->train_iterations == 0)
      fail("--epochs", "{} of {} blocks are less than one step of --global-batch-size {}",
           c->epochs, c->epoch_samples, c->global_batch);
  } else if (f.train_iterations) {
    c->train_iterations = *f.train_iterations;
    c->train_samples = product("--train-iters", c->train_iterations, c->global_batch);
  } else {
    c->train_samples = *f.train_samples;
    c->train_iterations = c->train_samples / c->global_batch;
    if (c->train_iterations == 0)
      fail("--train-samples", "{} is less than one step of --global-batch-size {}",
           c->train_samples, c->global_batch);
  }
  c->exit_interval = f.exit_interval.value_or(0);
  c->exit_duration_minutes = f.exit_duration_minutes.value_or(0);
}

void resolve_schedule(const Flags& f, Config* c) {
  if (f.optimizer != "adam" && f.optimizer != "adamw")
    fail("--optimizer", "'{}' is not known: adam", f.optimizer);
  OptimizerConfig& o = c->optimizer;
  resolve_weight_decay(f, c);
  if (o.decay_style != "constant" && o.decay_style != "linear" && o.decay_style != "cosine")
    fail("--lr-decay-style", "'{}' is not known: constant, linear, cosine", o.decay_style);
  if (o.min_lr > o.lr) fail("--min-lr", "{} is greater than --lr {}", o.min_lr, o.lr);
  if (o.warmup_init > o.lr)
    fail("--lr-warmup-init", "{} is greater than --lr {}", o.warmup_init, o.lr);
  if (o.epsilon == 0) fail("--adam-eps", "must be greater than 0");
  const bool by_samples = f.train_samples.has_value();
  if (by_samples && f.decay_iterations)
    fail("--lr-decay-iters",
         "expected sample-based learning rate decay: --train-samples goes with --lr-decay-samples");
  if (by_samples && f.warmup_iterations)
    fail("--lr-warmup-iters",
         "expected sample-based learning rate warmup: --train-samples goes with "
         "--lr-warmup-samples");
  if (!by_samples && f.decay_samples)
    fail("--lr-decay-samples",
         "expected iteration-based learning rate decay: --train-iters goes with --lr-decay-iters");
  if (!by_samples && f.warmup_samples)
    fail(
        "--lr-warmup-samples",
        "expected iteration-based learning rate warmup: --train-iters goes with --lr-warmup-iters");
  if (f.warmup_fraction && (f.warmup_iterations || f.warmup_samples))
    fail("--lr-warmup-fraction", "can only specify one of lr-warmup-fraction and {}",
         by_samples ? "lr-warmup-samples" : "lr-warmup-iters");

  o.decay_samples = f.decay_samples.value_or(c->train_samples);
  if (f.decay_iterations)
    o.decay_samples = product("--lr-decay-iters", *f.decay_iterations, c->global_batch);
  o.warmup_samples = static_cast<double>(f.warmup_samples.value_or(0));
  if (f.warmup_iterations)
    o.warmup_samples =
        static_cast<double>(product("--lr-warmup-iters", *f.warmup_iterations, c->global_batch));
  if (f.warmup_fraction)
    o.warmup_samples = *f.warmup_fraction * static_cast<double>(o.decay_samples);
  if (o.decay_style != "constant" && o.warmup_samples >= static_cast<double>(o.decay_samples))
    fail(f.warmup_fraction ? "--lr-warmup-fraction"
                           : (by_samples ? "--lr-warmup-samples" : "--lr-warmup-iters"),
         "the warm-up of {} samples must end before the decay does at {} samples", o.warmup_samples,
         o.decay_samples);
}

namespace {

void check_split(const std::string& split) {
  double sum = 0;
  size_t parts = 0;
  for (size_t at = 0; at <= split.size();) {
    const size_t comma = std::min(split.find_first_of(",/", at), split.size());
    const std::string part = split.substr(at, comma - at);
    char* end = nullptr;
    const double weight = std::strtod(part.c_str(), &end);
    if (part.empty() || end != part.c_str() + part.size() || !(weight >= 0) ||
        weight > std::numeric_limits<float>::max())
      fail("--split", "'{}' is not a list of up to three weights, as 969,30,1", split);
    sum += weight;
    ++parts;
    at = comma + 1;
  }
  if (parts > 3)
    fail("--split", "'{}' has {} weights: at most three (training, validation, test)", split,
         parts);
  if (!(sum > 0)) fail("--split", "'{}' gives no document to any split", split);
}

// Megatron-LM's spelling of a blend: weight prefix weight prefix ...
void resolve_blend(DataConfig* data) {
  if (data->paths.size() < 2) return;
  const std::vector<std::string> words = std::move(data->paths);
  data->paths.clear();
  for (size_t i = 0; i < words.size(); i += 2) {
    char* end = nullptr;
    const double weight = std::strtod(words[i].c_str(), &end);
    if (*end != '\0' || i + 1 == words.size())
      fail("--data-path",
           "several datasets are given as pairs of a weight and a prefix (0.7 A 0.3 B), and '{}' "
           "{}",
           words[i], *end != '\0' ? "is no weight" : "has no prefix after it");
    if (!(weight > 0) || weight > std::numeric_limits<float>::max())
      fail("--data-path", "the weight {} of {} is not a positive number", words[i], words[i + 1]);
    data->weights.push_back(weight);
    data->paths.push_back(words[i + 1]);
  }
}

}  // namespace

void resolve_data(const Flags& f, Config* c) {
  const std::string tokenizer = c->data.tokenizer;
  c->data = f.data;
  c->data.tokenizer = tokenizer;
  check_split(c->data.split);
  resolve_blend(&c->data);
  if (c->data.mock && !c->data.paths.empty())
    fail("--mock-data", "contradicts --data-path {}", c->data.paths.front());
  if (c->data.mock || !c->data.paths.empty() || !f.text.empty()) return;
  if (c->command == Command::evaluate)
    fail("--text",
         "is missing: name a plain text, or with --data-path a dataset made by 'tally-train "
         "prepare'");
  fail("--data-path",
       "is missing: name a dataset made by 'tally-train prepare', or give --mock-data");
}

void resolve_tokenizer_files(const std::string& folder, Config* c) {
  DataConfig& data = c->data;
  if (data.merge_file.empty() && is_tokenizer_json(data.vocab_file))
    data.merge_file = data.vocab_file;
  if (data.vocab_file.empty() != data.merge_file.empty())
    fail(data.merge_file.empty() ? "--vocab-file" : "--merge-file", "needs {} beside it",
         data.merge_file.empty() ? "--merge-file" : "--vocab-file");
  if (folder.empty() || data.tokenizer != "GPT2BPETokenizer" || !data.vocab_file.empty()) return;
  const std::string vocab = folder + "/vocab.json", merges = folder + "/merges.txt";
  const std::string both = folder + "/tokenizer.json";
  if (access(vocab.c_str(), R_OK) == 0 && access(merges.c_str(), R_OK) == 0) {
    data.vocab_file = vocab;
    data.merge_file = merges;
  } else if (access(both.c_str(), R_OK) == 0) {
    data.vocab_file = data.merge_file = both;
  }
}

void resolve_evaluation(const Flags& f, const std::string& folder, Config* c) {
  const std::pair<const char*, bool> only_training[] = {
      {"--train-iters", f.train_iterations.has_value()},
      {"--train-samples", f.train_samples.has_value()},
      {"--epochs", f.epochs.has_value()},
      {"--save", !f.save.empty()},
      {"--save-hf", !f.save_hf.empty()},
      {"--split", f.data.split != DataConfig().split},
      {"--eval-interval", f.eval_interval.has_value()},
      {"--eval-iters", f.eval_iterations.has_value()}};
  for (const auto& [flag, given] : only_training)
    if (given) fail(flag, "has a meaning in training only, and this is 'evaluate'");
  if (f.processes.value_or(1) > 1)
    fail("--nproc-per-node", "evaluate runs in one process, and {} were asked for: leave it out",
         *f.processes);
  if (c->data.mock) fail("--mock-data", "has no text to evaluate on: give --data-path or --text");
  if (!f.text.empty() && !c->data.paths.empty())
    fail("--text", "contradicts --data-path {}", c->data.paths.front());
  if (c->data.paths.size() > 1)
    fail("--data-path", "evaluate reads one dataset, and {} were given", c->data.paths.size());
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

void resolve_output(const Flags& f, Config* c) {
  c->save_dir = f.save;
  c->load_dir = f.load;
  c->load_hf_dir = f.load_hf;
  c->save_hf_dir = f.save_hf;
  c->record_path = f.record;
  c->log_interval = f.log_interval;
  c->exit_on_missing_checkpoint = f.exit_on_missing_checkpoint;
  c->finetune = f.finetune;
  c->load_optimizer = !f.no_load_optimizer && !f.finetune;
  c->save_optimizer = !f.no_save_optimizer;
  if (f.finetune && f.load.empty() && f.load_hf.empty())
    fail("--finetune", "needs the weights to begin with: give --load DIR or --load-hf DIR");
  if (f.finetune && f.load.empty())
    c->notices.emplace_back(
        "--finetune has no effect beside --load-hf, which begins at iteration 0 in any case");
  if (f.no_load_optimizer && f.load.empty())
    c->notices.emplace_back("--no-load-optim has no effect without --load");
  if (f.no_save_optimizer && f.save.empty())
    c->notices.emplace_back("--no-save-optim has no effect without --save");
  if (f.save_interval && f.save.empty()) fail("--save-interval", "needs --save DIR");
  if (f.exit_on_missing_checkpoint && f.load.empty())
    fail("--exit-on-missing-checkpoint", "needs --load DIR");
  c->save_interval = f.save_interval.value_or(0);
  // Megatron's defaults are 1000 and 100; without either flag a benchmark evaluates nothing.
  if (f.eval_interval || f.eval_iterations) {
    c->eval_interval = f.eval_interval.value_or(1000);
    c->eval_iterations = f.eval_iterations.value_or(100);
  }
}

}  // namespace tally::train

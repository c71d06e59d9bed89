// Data, length of the run and schedule of the learning rate of a Config.
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "src/config/resolve_parts.h"
#include "src/config/settings.h"
#include "src/data/tokenizers/tokenizer.h"

namespace tally::train {
namespace {

int64_t product(const char* flag, int64_t a, int64_t b) {
  int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    fail(flag, "{} steps of --global-batch-size {} are more samples than can be counted", a, b);
  return result;
}

void resolve_weight_decay(const Flags& f, Config* c) {
  OptimizerConfig& o = c->optimizer;
  const std::string& style = o.weight_decay_style;
  const char* flag = "--weight-decay-incr-style";
  o.end_weight_decay = o.weight_decay;
  o.weight_decay_samples = c->train_samples;
  if (style == "constant") {
    if (const char* name = f.first_given({"--start-weight-decay", "--end-weight-decay"}))
      fail(name, "goes with {} linear or cosine; a constant weight decay is --weight-decay", flag);
    return;
  }
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
    fail("--epochs", "contradicts {}: give one length of training",
         f.train_iterations ? "--train-iters" : "--train-samples");
  if (f.epochs && c->skip_train)
    fail("--epochs", "is a length of training, and --skip-train does not train: leave it out");
  if (c->skip_train && !f.train_iterations && !f.train_samples) return;
  if (!f.train_iterations && !f.train_samples && !f.epochs)
    fail("--train-iters", "is missing: give --train-iters, --train-samples or --epochs");
  if (f.epochs) {
    c->epochs = *f.epochs;
    c->epoch_samples = count_epoch_samples(*c);
    const char* what = c->model.language_model() ? "blocks" : "samples";
    if (__builtin_mul_overflow(c->epochs, c->epoch_samples, &c->train_samples))
      fail("--epochs", "{} epochs of {} {} are more samples than can be counted", c->epochs,
           c->epoch_samples, what);
    c->train_iterations = c->train_samples / c->global_batch;
    if (c->train_iterations == 0)
      fail("--epochs", "{} of {} {} are less than one step of --global-batch-size {}", c->epochs,
           c->epoch_samples, what, c->global_batch);
  } else if (f.train_iterations) {
    c->train_iterations = *f.train_iterations;
    c->train_samples = product("--train-iters", c->train_iterations, c->global_batch);
  } else {
    c->train_samples = *f.train_samples;
    c->train_iterations = c->train_samples / c->global_batch;
    if (c->train_iterations == 0 && c->rampup.start == 0)
      fail("--train-samples", "{} is less than one step of --global-batch-size {}",
           c->train_samples, c->global_batch);
  }
  c->exit_duration_minutes = f.exit_duration_minutes.value_or(0);
  if (f.exit_duration_minutes == 0)
    c->notices.emplace_back("--exit-duration-in-mins 0 sets no limit, as if it were left out");
}

namespace {

void resolve_optimizer(const Flags& f, OptimizerConfig* o) {
  const bool sgd = o->kind == OptimizerKind::sgd;
  if (f.sgd_momentum && !sgd)
    fail("--sgd-momentum", "goes with --optimizer sgd; this run's is {}", optimizer_name(o->kind));
  if (f.adam_epsilon && sgd) fail("--adam-eps", "goes with --optimizer adam or lamb, not sgd");
  const OptimizerConfig otherwise;
  for (const auto& [flag, given] : {std::pair{"--adam-beta1", o->beta1 != otherwise.beta1},
                                    std::pair{"--adam-beta2", o->beta2 != otherwise.beta2}})
    if (given && sgd) fail(flag, "goes with --optimizer adam or lamb, not sgd");
  o->sgd_momentum = f.sgd_momentum.value_or(0.9);
  o->epsilon = f.adam_epsilon.value_or(o->kind == OptimizerKind::lamb ? 1e-6 : 1e-8);
  if (o->epsilon == 0) fail("--adam-eps", "must be greater than 0");
}

}  // namespace

void resolve_schedule(const Flags& f, Config* c) {
  OptimizerConfig& o = c->optimizer;
  resolve_weight_decay(f, c);
  resolve_optimizer(f, &o);
  if (o.min_lr > o.lr) fail("--min-lr", "{} is greater than --lr {}", o.min_lr, o.lr);
  if (o.warmup_init > o.lr)
    fail("--lr-warmup-init", "{} is greater than --lr {}", o.warmup_init, o.lr);
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
  if (!c->skip_train && o.decay_style != "constant" &&
      o.warmup_samples >= static_cast<double>(o.decay_samples))
    fail(f.warmup_fraction ? "--lr-warmup-fraction"
                           : (by_samples ? "--lr-warmup-samples" : "--lr-warmup-iters"),
         "the warm-up of {} samples must end before the decay does at {} samples", o.warmup_samples,
         o.decay_samples);
}

void check_split(const std::string& flag, const std::string& split) {
  double sum = 0;
  size_t parts = 0;
  for (size_t at = 0; at <= split.size();) {
    const size_t comma = std::min(split.find_first_of(",/", at), split.size());
    const std::string part = split.substr(at, comma - at);
    char* end = nullptr;
    const double weight = std::strtod(part.c_str(), &end);
    if (part.empty() || end != part.c_str() + part.size() || !(weight >= 0) ||
        weight > std::numeric_limits<float>::max())
      refuse_value(flag,
                   fmt::format("'{}' is not a list of up to three weights, as 969,30,1", split));
    sum += weight;
    ++parts;
    at = comma + 1;
  }
  if (parts > 3)
    refuse_value(
        flag, fmt::format("'{}' has {} weights: at most three (training, validation, test)", split,
                          parts));
  if (!(sum > 0)) refuse_value(flag, fmt::format("'{}' leaves no documents for any split", split));
}

namespace {

// Megatron-LM's spelling of a blend: weight prefix weight prefix ...
Blend resolve_blend(const char* flag, const std::vector<std::string>& words) {
  Blend blend;
  if (words.size() < 2) {
    blend.paths = words;
    return blend;
  }
  for (size_t i = 0; i < words.size(); i += 2) {
    char* end = nullptr;
    const double weight = std::strtod(words[i].c_str(), &end);
    if (*end != '\0' || i + 1 == words.size())
      fail(flag,
           "several datasets are given as pairs of a weight and a prefix (0.7 A 0.3 B), and '{}' "
           "{}",
           words[i], *end != '\0' ? "is not a weight" : "has no prefix after it");
    if (!(weight > 0) || weight > std::numeric_limits<float>::max())
      fail(flag, "the weight {} of {} is not a positive number", words[i], words[i + 1]);
    blend.weights.push_back(weight);
    blend.paths.push_back(words[i + 1]);
  }
  return blend;
}

// One dataset for each of training, validation and test.
void resolve_separate(const Flags& f, Config* c) {
  DataConfig& data = c->data;
  const char* first = !f.train_paths.empty()   ? "--train-data-path"
                      : !f.valid_paths.empty() ? "--valid-data-path"
                                               : "--test-data-path";
  if (!data.paths.empty()) fail(first, "contradicts --data-path {}", data.paths.front());
  if (data.mock) fail("--mock-data", "contradicts {}", first);
  if (c->command == Command::evaluate)
    fail(first, "has a meaning in training only: evaluate reads --text or --data-path");
  if (data.split != DataConfig().split)
    fail("--split", "divides --data-path; the dataset of {} is taken whole", first);
  if (f.train_paths.empty() && !c->skip_train)
    fail("--train-data-path", "is missing: {} needs a dataset to train on", first);
  data.separate = true;
  if (!c->model.language_model()) {
    data.paths = f.train_paths;
    data.validation.paths = f.valid_paths;
    data.test.paths = f.test_paths;
    return;
  }
  static_cast<Blend&>(data) = resolve_blend("--train-data-path", f.train_paths);
  data.validation = resolve_blend("--valid-data-path", f.valid_paths);
  data.test = resolve_blend("--test-data-path", f.test_paths);
}

// Chooses what each loss is divided by.
void resolve_loss(Config* c) {
  if (!c->model.language_model()) c->per_token_loss = true;
  const bool one = c->global_batch == c->micro_batch;  // they are the same
  if (!c->data.eod_mask_loss || c->per_token_loss || one || c->skip_train) return;
  c->notices.emplace_back(
      "--eod-mask-loss: each micro batch's loss is the mean over its own tokens that count, as in "
      "Megatron-LM, so that training depends on --micro-batch-size and on the number of processes: "
      "give --calculate-per-token-loss to divide by the tokens that count in the global batch");
}

}  // namespace

void resolve_data(const Flags& f, Config* c) {
  resolve_loss(c);
  if (!f.train_paths.empty() || !f.valid_paths.empty() || !f.test_paths.empty()) {
    resolve_separate(f, c);
    return;
  }
  if (c->model.language_model())
    static_cast<Blend&>(c->data) = resolve_blend("--data-path", c->data.paths);
  if (c->data.mock && !c->data.paths.empty())
    fail("--mock-data", "contradicts --data-path {}", c->data.paths.front());
  if (c->data.mock || !c->data.paths.empty() || !c->text.empty()) return;
  if (c->command == Command::evaluate && !c->model.language_model())
    fail("--data-path", "is missing: name the data of the model's task (docs/encoders.md)");
  if (c->command == Command::evaluate)
    fail("--text",
         "is missing: name a plain text, or with --data-path a dataset made by 'tally-train "
         "prepare'");
  fail("--data-path",
       "is missing: name a dataset made by 'tally-train prepare', or give --mock-data");
}

void resolve_tokenizer_files(const std::string& folder, Config* c) {
  DataConfig& data = c->data;
  if (!c->model.language_model()) {
    if (!data.merge_file.empty()) fail("--merge-file", "is not read for BERT's tokenizers");
    const std::string pieces = folder + "/vocab.txt", both = folder + "/tokenizer.json";
    const bool known = folder.empty() || !data.vocab_file.empty();
    if (!known && access(pieces.c_str(), R_OK) == 0) {
      data.vocab_file = pieces;
    } else if (!known && access(both.c_str(), R_OK) == 0) {
      data.vocab_file = both;
    }
    if (data.dynamic_masking && !data.mock && data.vocab_file.empty())
      fail("--dynamic-masking", "needs --vocab-file: the [MASK] of the data's vocabulary");
    return;
  }
  const bool whole = data.tokenizer == "HuggingFaceTokenizer";
  if (whole && !data.merge_file.empty())
    fail("--merge-file", "is not read for HuggingFaceTokenizer: --vocab-file names tokenizer.json");
  if (whole && data.vocab_file.empty() && !folder.empty())
    data.vocab_file = folder + "/tokenizer.json";
  if (data.merge_file.empty() && (whole || is_tokenizer_json(data.vocab_file)))
    data.merge_file = data.vocab_file;
  if (data.vocab_file.empty() != data.merge_file.empty())
    fail(data.merge_file.empty() ? "--vocab-file" : "--merge-file", "needs {}, too",
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

}  // namespace tally::train

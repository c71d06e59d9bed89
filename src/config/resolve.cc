// From what was given to a checked Config: defaults that depend on other flags, presets, validity
// rules.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/model_config_file.h"
#include "src/config/args.h"
#include "src/config/flags.h"
#include "src/data/dataset.h"

namespace tally::train {
namespace {

template <typename... Args>
[[noreturn]] void fail(const char* flag, fmt::format_string<Args...> text, Args&&... args) {
  throw UsageError(fmt::format("{}: {}", flag, fmt::format(text, std::forward<Args>(args)...)));
}

struct Preset {
  const char* name;
  const char* size;  // the other name
  int64_t layers, hidden, heads;
};
// Radford et al. 2019, with the head counts of the released models.
constexpr std::array<Preset, 4> presets{{{"gpt2", "124M", 12, 768, 12},
                                         {"gpt2-medium", "355M", 24, 1024, 16},
                                         {"gpt2-large", "774M", 36, 1280, 20},
                                         {"gpt2-xl", "1.5B", 48, 1600, 25}}};

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

const Preset& find_preset(const std::string& name) {
  for (const Preset& p : presets)
    if (lower(name) == p.name || lower(name) == lower(p.size)) return p;
  fail("--model",
       "'{}' is not a known model: gpt2 (124M), gpt2-medium (355M), gpt2-large (774M), gpt2-xl "
       "(1.5B)",
       name);
}

int64_t resolve_vocabulary(const Flags& f, std::string* tokenizer) {
  *tokenizer = f.tokenizer.value_or("GPT2BPETokenizer");
  const std::string kind = lower(*tokenizer);
  if (kind == "gpt2bpetokenizer") {
    *tokenizer = "GPT2BPETokenizer";
    return f.vocabulary.value_or(50257);
  }
  if (kind == "bytes") {
    *tokenizer = "bytes";
    return f.vocabulary.value_or(257);  // 256 byte values and the end of a document
  }
  if (kind == "nulltokenizer") {
    *tokenizer = "NullTokenizer";
    if (!f.vocabulary) fail("--tokenizer-type", "NullTokenizer needs --vocab-size");
    return *f.vocabulary;
  }
  fail("--tokenizer-type", "'{}' is not a known tokenizer: GPT2BPETokenizer, bytes, NullTokenizer",
       *tokenizer);
}

Positions resolve_positions(const Flags& f) {
  if (!f.positions) return f.rotary ? Positions::rotary : Positions::learned;
  const std::string& given = *f.positions;
  if (given == "rope" || given == "rotary") return Positions::rotary;
  if (given != "learned_absolute" && given != "learned")
    fail("--position-embedding-type", "'{}' is not known: learned_absolute, rope", given);
  if (f.rotary)
    fail("--use-rotary-position-embeddings", "contradicts --position-embedding-type {}", given);
  return Positions::learned;
}

// The sizes that the flags give.
void model_of_flags(const Flags& f, Config* c) {
  ModelConfig& m = c->model;
  const Preset preset = find_preset(f.model.value_or("gpt2"));
  if (f.model) m.preset = preset.name;
  m.layers = f.layers.value_or(preset.layers);
  m.hidden = f.hidden.value_or(preset.hidden);
  m.heads = f.heads.value_or(preset.heads);
  m.ffn = f.ffn.value_or(4 * m.hidden);
  c->sequence = f.sequence.value_or(1024);
  m.max_positions =
      f.max_positions.value_or(f.model ? std::max<int64_t>(1024, c->sequence) : c->sequence);
  m.positions = resolve_positions(f);
  m.rotary_base = f.rotary_base.value_or(10000);
  m.rotary_fraction = f.rotary_percent.value_or(1);
  m.layernorm_epsilon = f.layernorm_epsilon.value_or(1e-5);
  m.init_std = f.init_std;
  m.hidden_dropout = f.hidden_dropout.value_or(0.1);
  m.attention_dropout = f.attention_dropout.value_or(0.1);
  m.vocabulary = resolve_vocabulary(f, &c->data.tokenizer);
}

// The folder of a stored model that the run starts from; empty: it starts from random weights.
std::string model_folder(const Flags& f, Command command) {
  if (command == Command::train) return f.load_hf;
  if (f.load_hf.empty() == f.load.empty())
    fail("--load-hf", "evaluate needs one model: give --load-hf DIR or --load DIR");
  if (!f.load_hf.empty()) return f.load_hf;
  const std::optional<std::string> newest = latest_checkpoint(f.load);
  if (!newest) fail("--load", "{} holds no checkpoint", f.load);
  return *newest;
}

template <typename T>
void agree(const char* flag, const std::optional<T>& given, const T& stored,
           const std::string& folder) {
  if (given && *given != stored)
    fail(flag, "{} contradicts {}/config.json, which says {}", *given, folder, stored);
}

// The sizes of a stored model; a flag may repeat them.
void model_of_folder(const Flags& f, const std::string& folder, Config* c) {
  ModelConfig& m = c->model;
  ModelConfig defaults;
  defaults.init_std = f.init_std;
  m = read_model_config(folder, defaults, f.vocabulary_multiple * f.tensor_parallel);
  if (f.model) fail("--model", "{} contradicts {}/config.json: leave it out", *f.model, folder);
  agree("--num-layers", f.layers, m.layers, folder);
  agree("--hidden-size", f.hidden, m.hidden, folder);
  agree("--num-attention-heads", f.heads, m.heads, folder);
  agree("--ffn-hidden-size", f.ffn, m.ffn, folder);
  agree("--max-position-embeddings", f.max_positions, m.max_positions, folder);
  agree("--vocab-size", f.vocabulary, m.vocabulary, folder);
  agree("--layernorm-epsilon", f.layernorm_epsilon, m.layernorm_epsilon, folder);
  if ((f.positions || f.rotary) && resolve_positions(f) != m.positions)
    fail("--position-embedding-type", "contradicts {}/config.json, which says {}", folder,
         m.positions == Positions::rotary ? "rope" : "learned_absolute");
  agree("--rotary-base", f.rotary_base, m.rotary_base, folder);
  agree("--rotary-percent", f.rotary_percent, m.rotary_fraction, folder);
  m.hidden_dropout = f.hidden_dropout.value_or(m.hidden_dropout);
  m.attention_dropout = f.attention_dropout.value_or(m.attention_dropout);
  c->sequence = f.sequence.value_or(std::min<int64_t>(1024, m.max_positions));
  Flags vocabulary = f;
  vocabulary.vocabulary = m.vocabulary;
  resolve_vocabulary(vocabulary, &c->data.tokenizer);
}

// Sizes that no machine holds are slips of the keyboard; below them all sums fit 64 bits.
void check_size(const ModelConfig& m) {
  const auto layers = static_cast<double>(m.layers);
  const auto hidden = static_cast<double>(m.hidden);
  const auto rows = static_cast<double>(m.padded_vocabulary) + static_cast<double>(m.max_positions);
  const double parameters =
      layers * hidden * (4 * hidden + 2 * static_cast<double>(m.ffn)) + rows * hidden;
  if (m.layers > 1'000'000 || parameters > 1e15)
    fail("--num-layers",
         "a model of {} layers and {:.1e} parameters fits no machine: check --num-layers, "
         "--hidden-size, --ffn-hidden-size and --vocab-size",
         m.layers, parameters);
}

void check_micro_batch(const Config& c) {
  const double tokens = static_cast<double>(c.micro_batch) * static_cast<double>(c.sequence);
  const double layers = static_cast<double>(c.model.layers) * static_cast<double>(c.model.hidden);
  if (tokens * layers > 1e17)
    fail("--micro-batch-size", "{} samples of {} tokens at a time fit no machine", c.micro_batch,
         c.sequence);
}

void resolve_model(const Flags& f, const std::string& folder, Config* c) {
  ModelConfig& m = c->model;
  if (folder.empty()) {
    model_of_flags(f, c);
  } else {
    try {
      model_of_folder(f, folder, c);
    } catch (const UsageError&) {
      throw;
    } catch (const std::runtime_error& e) {
      fail(f.load_hf.empty() ? "--load" : "--load-hf", "{}", e.what());
    }
  }
  if (folder.empty())
    m.padded_vocabulary = pad_vocabulary(m.vocabulary, f.vocabulary_multiple * f.tensor_parallel);

  check_size(m);
  if (m.hidden % m.heads != 0)
    fail("--hidden-size", "{} is not divisible by --num-attention-heads {}", m.hidden, m.heads);
  if (m.max_positions < c->sequence)
    fail("--max-position-embeddings", "{} is less than --seq-length {}", m.max_positions,
         c->sequence);
  if (m.positions == Positions::rotary) {
    const auto rotated =
        static_cast<int64_t>(static_cast<double>(m.head_dim()) * m.rotary_fraction);
    if (rotated < 2 || rotated % 2 != 0)
      fail("--rotary-percent",
           "{} of a head of {} dimensions rotates {} of them, and rotation needs pairs: choose "
           "another "
           "share, --hidden-size or --num-attention-heads",
           m.rotary_fraction, m.head_dim(), rotated);
  }
}

void resolve_precision(const Flags& f, Config* c) {
  struct Choice {
    const char* flag;
    bool given;
    Precision precision;
  };
  std::vector<Choice> given;
  for (const Choice& choice :
       {Choice{"--fp16", f.fp16, Precision::f16}, Choice{"--bf16", f.bf16, Precision::bf16},
        Choice{"--tf32", f.tf32, Precision::tf32}, Choice{"--fp64", f.fp64, Precision::f64}})
    if (choice.given) given.push_back(choice);
  if (f.precision) {
    const std::string name = lower(*f.precision);
    const std::array<std::pair<const char*, Precision>, 11> names{{{"fp32", Precision::f32},
                                                                   {"float32", Precision::f32},
                                                                   {"tf32", Precision::tf32},
                                                                   {"tf32x3", Precision::tf32x3},
                                                                   {"bf16", Precision::bf16},
                                                                   {"bfloat16", Precision::bf16},
                                                                   {"fp16", Precision::f16},
                                                                   {"float16", Precision::f16},
                                                                   {"fp64", Precision::f64},
                                                                   {"float64", Precision::f64},
                                                                   {"f32", Precision::f32}}};
    const auto* found = std::find_if(names.begin(), names.end(),
                                     [&](const auto& entry) { return name == entry.first; });
    if (found == names.end())
      fail("--precision", "'{}' is not known: fp32, tf32x3, tf32, bf16, fp16, fp64", *f.precision);
    if (given.empty() || given.front().precision != found->second)
      given.push_back({"--precision", true, found->second});
  }
  if (given.size() > 1)
    fail(given[0].flag, "{} and {} cannot both be given", given[0].flag, given[1].flag);
  c->precision = given.empty() ? Precision::f32 : given.front().precision;

  if (f.fp32_attention) {
    const std::string name = lower(*f.fp32_attention);
    if (name != "ieee" && name != "tf32x3")
      fail("--fp32-attention", "'{}' is not known: ieee, tf32x3", *f.fp32_attention);
    if (c->precision != Precision::f32)
      fail("--fp32-attention", "goes with --precision fp32; this run is {}",
           precision_name(c->precision));
    c->three_tf32_attention = name == "tf32x3";
  }
  if (f.loss_scale && c->precision != Precision::f16)
    fail("--loss-scale", "only --fp16 scales its loss; this run is {}",
         precision_name(c->precision));
  if (f.initial_loss_scale < f.min_loss_scale)
    fail("--initial-loss-scale", "{} is less than --min-loss-scale {}", f.initial_loss_scale,
         f.min_loss_scale);
  c->loss_scale = f.loss_scale.value_or(0);
  c->initial_loss_scale = f.initial_loss_scale;
  c->min_loss_scale = f.min_loss_scale;
  c->loss_scale_window = f.loss_scale_window;
  c->hysteresis = f.hysteresis;
}

void resolve_backend(const Flags& f, Config* c) {
  const std::string name = lower(f.launch.backend);
  const bool known =
      name.empty() || name == "nccl" || name == "mpi" || name == "sockets" || name == "gloo";
  if (!known)
    fail("--distributed-backend", "'{}' is not known: nccl, mpi, sockets", f.launch.backend);
  c->distributed_backend = name == "gloo" ? "sockets" : name;
}

void resolve_parallel(const Flags& f, int world_size, Config* c) {
  c->world_size = world_size;
  c->tensor_parallel = f.tensor_parallel;
  c->pipeline_parallel = f.pipeline_parallel;
  c->sequence_parallel = f.sequence_parallel && f.tensor_parallel > 1;
  c->virtual_pipeline_layers = f.virtual_pipeline_layers.value_or(0);
  c->data_parallel = std::max(1, world_size / (f.tensor_parallel * f.pipeline_parallel));
  c->micro_batch = f.micro_batch.value_or(1);
  check_micro_batch(*c);
  c->global_batch = f.global_batch.value_or(c->micro_batch * c->data_parallel);
  check_parallel_layout(*c);
  resolve_backend(f, c);
  c->network_interface = f.launch.interface;
  c->gradient_bucket = f.gradient_bucket;
  c->weight_check_interval = f.weight_check_interval.value_or(0);
  if (f.sequence_parallel && !c->sequence_parallel)
    c->notices.emplace_back("--sequence-parallel has no effect at tensor parallel size 1");
  if (f.distributed_optimizer && c->data_parallel == 1)
    c->notices.emplace_back("--use-distributed-optimizer has no effect at data parallel size 1");
}

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

// Everything becomes samples, so that the schedule has one clock whichever way it was given.
void resolve_schedule(const Flags& f, Config* c) {
  if (f.optimizer != "adam" && f.optimizer != "adamw")
    fail("--optimizer", "'{}' is not known: adam", f.optimizer);
  c->optimizer = f.adam;
  OptimizerConfig& o = c->optimizer;
  if (o.decay_style != "constant" && o.decay_style != "linear" && o.decay_style != "cosine")
    fail("--lr-decay-style", "'{}' is not known: constant, linear, cosine", o.decay_style);
  if (o.min_lr > o.lr) fail("--min-lr", "{} is greater than --lr {}", o.min_lr, o.lr);
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
  o.warmup_samples = f.warmup_samples.value_or(0);
  if (f.warmup_iterations)
    o.warmup_samples = product("--lr-warmup-iters", *f.warmup_iterations, c->global_batch);
  if (f.warmup_fraction)
    o.warmup_samples =
        static_cast<int64_t>(*f.warmup_fraction * static_cast<double>(o.decay_samples));
  if (o.decay_style != "constant" && o.warmup_samples >= o.decay_samples)
    fail(f.warmup_fraction ? "--lr-warmup-fraction"
                           : (by_samples ? "--lr-warmup-samples" : "--lr-warmup-iters"),
         "the warm-up of {} samples must end before the decay does at {} samples", o.warmup_samples,
         o.decay_samples);
}

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

void resolve_data(const Flags& f, Config* c) {
  const std::string tokenizer = c->data.tokenizer;
  c->data = f.data;
  c->data.tokenizer = tokenizer;
  check_split(c->data.split);
  resolve_blend(&c->data);
  if (c->data.mock && !c->data.paths.empty())
    fail("--mock-data", "contradicts --data-path {}", c->data.paths.front());
  if (!c->data.mock && c->data.paths.empty() && f.text.empty())
    fail("--data-path",
         "is missing: name a dataset made by 'tally-train prepare', or give --mock-data");
}

// vocab.json and merges.txt of a stored model, unless flags name others.
void resolve_tokenizer_files(const std::string& folder, Config* c) {
  if (folder.empty() || c->data.tokenizer != "GPT2BPETokenizer") return;
  if (!c->data.vocab_file.empty() || !c->data.merge_file.empty()) return;
  const std::string vocab = folder + "/vocab.json", merges = folder + "/merges.txt";
  if (access(vocab.c_str(), R_OK) != 0 || access(merges.c_str(), R_OK) != 0) return;
  c->data.vocab_file = vocab;
  c->data.merge_file = merges;
}

void resolve_evaluation(const Flags& f, const std::string& folder, Config* c) {
  const std::pair<const char*, bool> only_training[] = {
      {"--train-iters", f.train_iterations.has_value()},
      {"--train-samples", f.train_samples.has_value()},
      {"--epochs", f.epochs.has_value()},
      {"--save", !f.save.empty()},
      {"--save-hf", !f.save_hf.empty()},
      {"--eval-interval", f.eval_interval.has_value()},
      {"--eval-iters", f.eval_iterations.has_value()}};
  for (const auto& [flag, given] : only_training)
    if (given) fail(flag, "has a meaning in training only, and this is 'evaluate'");
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
         "needs a tokenizer, and {} has no vocab.json and merges.txt: give --vocab-file and "
         "--merge-file, or --tokenizer-type bytes",
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

void resolve_fusions(const Flags& f, Config* c) {
  if (!f.no_fusion) return;
  Fusions& u = c->fusions;
  const std::array<std::pair<const char*, bool*>, 5> known{{{"residual", &u.residual},
                                                            {"bias-sums", &u.bias_sums},
                                                            {"qkv-bias", &u.qkv_bias},
                                                            {"overwrite", &u.overwrite},
                                                            {"gelu", &u.gelu}}};
  std::istringstream names(*f.no_fusion);
  for (std::string name; std::getline(names, name, ',');) {
    bool found = false;
    for (const auto& [shortcut, on] : known) {
      if (name != shortcut && name != "all") continue;
      *on = false;
      found = true;
    }
    if (!found)
      fail("--no-fusion", "'{}' is not known: residual, bias-sums, qkv-bias, overwrite, gelu, all",
           name);
  }
}

void resolve_device(const Flags& f, Config* c) {
  c->device = lower(f.device);
  bool known = c->device == "auto" || c->device == "cpu" || c->device == "cuda";
  if (c->device.rfind("cuda:", 0) == 0) {
    const std::string index = c->device.substr(5);
    known = !index.empty() && index.size() < 4 &&
            std::all_of(index.begin(), index.end(), [](char ch) { return ch >= '0' && ch <= '9'; });
  }
  if (!known) fail("--device", "'{}' is not known: auto, cpu, cuda, cuda:N", f.device);
  if (c->device == "cpu" && c->precision == Precision::tf32)
    fail("--tf32", "a CPU has no TF32: use --precision fp32, or a GPU");
  if (c->device == "cpu" && c->precision == Precision::tf32x3)
    fail("--precision", "a CPU has no TF32: use --precision fp32, or a GPU");
  if (c->device == "cpu" && c->three_tf32_attention)
    fail("--fp32-attention", "a CPU has no TF32: leave it out, or use a GPU");
  c->reference = f.reference;
  c->cuda_graph = !f.no_cuda_graph;
  c->deterministic = f.deterministic;
  resolve_fusions(f, c);
}

void resolve_recompute(const Flags& f, Config* c) {
  if (f.recompute_activations) c->recompute = Recompute::selective;
  if (!f.recompute_granularity) return;
  if (*f.recompute_granularity == "selective") {
    c->recompute = Recompute::selective;
  } else if (*f.recompute_granularity == "full") {
    c->recompute = Recompute::full;
  } else {
    fail("--recompute-granularity", "'{}' is not known: selective, full", *f.recompute_granularity);
  }
}

}  // namespace

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

Config resolve(const Flags& f, int world_size, Command command) {
  Config c;
  c.command = command;
  c.seed = f.seed;
  const std::string folder = model_folder(f, command);
  resolve_model(f, folder, &c);
  resolve_precision(f, &c);
  resolve_recompute(f, &c);
  resolve_parallel(f, world_size, &c);
  resolve_data(f, &c);
  resolve_tokenizer_files(folder, &c);
  if (command == Command::evaluate) {
    resolve_evaluation(f, folder, &c);
  } else {
    if (!f.text.empty())
      fail("--text",
           "is read by 'tally-train evaluate'; 'tally-train prepare' makes a dataset for training");
    if (f.stride) fail("--stride", "is read by 'tally-train evaluate' only");
    resolve_length(f, &c);
    resolve_schedule(f, &c);
  }
  resolve_output(f, &c);
  resolve_device(f, &c);
  if (!f.ignored.empty()) {
    std::string text = "accepted without effect: ";
    for (size_t i = 0; i < f.ignored.size(); ++i) text += (i ? ", " : "") + f.ignored[i];
    c.notices.push_back(text);
  }
  return c;
}

}  // namespace tally::train

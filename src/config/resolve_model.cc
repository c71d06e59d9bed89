// The model of a Config: presets, sizes, a Hugging Face folder, the vocabulary.
#include <algorithm>
#include <array>
#include <filesystem>

#include "src/config/resolve_parts.h"
#include "src/config/settings.h"
#include "src/data/tokenizers/tokenizer.h"

namespace tally::train {
namespace {

struct Preset {
  const char* name;
  const char* size;  // the other name
  int64_t layers, hidden, heads;
  int64_t ffn = 0;  // 0: 4 hidden
  // Llama's blocks have them; 0: GPT-2's.
  int64_t query_groups = 0;
  double rotary_base = 10000;
  bool tied = true;
  const char* encoder = nullptr;  // bert, distilbert

  bool is_llama() const { return query_groups > 0; }
  // Llama has none; GPT-2's, BERT's and DistilBERT's config.json say 0.1.
  double dropout() const { return is_llama() ? 0 : 0.1; }
};

// Radford et al. 2019, with the head counts of the released models; Grattafiori et al.,
// arXiv:2407.21783, table 3, and the config.json of Llama 3.2 1B; Devlin et al., arXiv:1810.04805;
// Sanh et al., arXiv:1910.01108.
constexpr std::array<Preset, 9> presets{
    {{"gpt2", "124M", 12, 768, 12},
     {"gpt2-medium", "355M", 24, 1024, 16},
     {"gpt2-large", "774M", 36, 1280, 20},
     {"gpt2-xl", "1.5B", 48, 1600, 25},
     {"llama-1b", "llama-3.2-1b", 16, 2048, 32, 8192, 8, 500000},
     {"llama-8b", "llama-3-8b", 32, 4096, 32, 14336, 8, 500000, false},
     {"bert-base", "110M", 12, 768, 12, 0, 0, 0, true, "bert"},
     {"bert-large", "340M", 24, 1024, 16, 0, 0, 0, true, "bert"},
     {"distilbert", "66M", 6, 768, 12, 0, 0, 0, true, "distilbert"}}};

const Preset& find_preset(const std::string& name) {
  for (const Preset& p : presets)
    if (lower(name) == p.name || lower(name) == lower(p.size)) return p;
  std::vector<std::string> known;
  for (const Preset& p : presets)
    known.push_back(p.is_llama() ? p.name : fmt::format("{} ({})", p.name, p.size));
  fail("--model", "'{}' is not a known model: {}", name, listed(known));
}

constexpr int64_t gpt2_tokens = 50257, llama_tokens = 128256;  // the published models'

// Finds the tokens of a HuggingFaceTokenizer.
int64_t file_vocabulary(const Flags& f, const std::string& tokenizer) {
  if (f.vocabulary) return *f.vocabulary;
  if (f.config.data.vocab_file.empty())
    fail("--tokenizer-type", "{} needs --vocab-file, the model's tokenizer.json", tokenizer);
  try {
    return make_tokenizer(tokenizer, f.config.data.vocab_file, "")->vocabulary();
  } catch (const std::runtime_error& e) {
    fail("--tokenizer-type", "{}: {}", tokenizer, e.what());
  }
}

// `preset`: the size of a vocabulary that no tokenizer, file or flag names.
int64_t resolve_vocabulary(const Flags& f, int64_t preset, std::string* tokenizer) {
  *tokenizer = f.tokenizer.value_or("GPT2BPETokenizer");
  const std::string kind = lower(*tokenizer);
  if (kind == "gpt2bpetokenizer") {
    *tokenizer = "GPT2BPETokenizer";
    const bool named = f.tokenizer || !f.config.data.vocab_file.empty();
    return f.vocabulary.value_or(named ? gpt2_tokens : preset);
  }
  if (kind == "huggingfacetokenizer") {
    *tokenizer = "HuggingFaceTokenizer";
    return file_vocabulary(f, *tokenizer);
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
  if (kind.rfind("bertwordpiece", 0) == 0)
    fail("--tokenizer-type",
         "{} is the tokenizer of BERT's models, and this is a GPT: GPT2BPETokenizer, "
         "HuggingFaceTokenizer, bytes, NullTokenizer",
         *tokenizer);
  fail("--tokenizer-type",
       "'{}' is not a known tokenizer: GPT2BPETokenizer, HuggingFaceTokenizer, bytes, "
       "NullTokenizer",
       *tokenizer);
}

Positions resolve_positions(const Flags& f) {
  if (f.rotary && f.positions == Positions::learned)
    fail("--use-rotary-position-embeddings",
         "contradicts --position-embedding-type learned_absolute");
  return f.positions.value_or(f.rotary ? Positions::rotary : Positions::learned);
}

// Llama's blocks that flags ask for, and no preset, have Megatron-LM's default.
void resolve_dropout(const Flags& f, double preset, Config* c) {
  ModelConfig& m = c->model;
  m.hidden_dropout = f.hidden_dropout.value_or(preset);
  m.attention_dropout = f.attention_dropout.value_or(preset);
  const bool unasked = (!f.hidden_dropout && m.hidden_dropout > 0) ||
                       (!f.attention_dropout && m.attention_dropout > 0);
  if (m.kind() == "llama" && unasked)
    c->notices.push_back(fmt::format(
        "Llama has no dropout, and this model has --hidden-dropout {} and --attention-dropout {} "
        "(Megatron-LM's default is 0.1): give both flags the value that you mean",
        m.hidden_dropout, m.attention_dropout));
}

// Sets the sizes that the flags give.
void model_of_flags(const Flags& f, Config* c) {
  ModelConfig& m = c->model;
  const Preset preset = find_preset(f.model.value_or("gpt2"));
  if (f.model) m.preset = preset.name;
  m.layers = f.layers.value_or(preset.layers);
  m.hidden = f.hidden.value_or(preset.hidden);
  m.heads = f.heads.value_or(preset.heads);
  if (preset.encoder) {
    m.set_kind(preset.encoder);
    m.ffn = f.ffn.value_or(4 * m.hidden);
    return encoder_of_flags(f, c);
  }
  m.set_kind(resolve_kind(f, preset.is_llama()));
  m.ffn = f.ffn.value_or(f.hidden || !preset.is_llama() ? default_ffn(m) : preset.ffn);
  if (m.ffn == 0)
    fail("--swiglu",
         "needs --ffn-hidden-size at --hidden-size {}, of which two thirds of four times "
         "are less than 64",
         m.hidden);
  c->sequence = f.sequence.value_or(1024);
  m.max_positions =
      f.max_positions.value_or(f.model ? std::max<int64_t>(1024, c->sequence) : c->sequence);
  m.positions = preset.is_llama() ? Positions::rotary : resolve_positions(f);
  m.rotary_base = f.rotary_base.value_or(preset.rotary_base);
  m.rotary_fraction = f.rotary_percent.value_or(1);
  m.layernorm_epsilon = f.layernorm_epsilon.value_or(1e-5);
  m.tied_embeddings = !f.untied && preset.tied;
  resolve_heads(f, preset.query_groups, &m);
  resolve_dropout(f, preset.dropout(), c);
  m.vocabulary =
      resolve_vocabulary(f, preset.is_llama() ? llama_tokens : gpt2_tokens, &c->data.tokenizer);
}

// Refuses paths that people give by mistake instead of the folder.
void check_load_hf(const StoredModels& stored, const std::string& path) {
  if (std::filesystem::is_regular_file(path))
    fail("--load-hf", "{} is a file: name the folder that it is in", path);
  if (stored.holds_checkpoints(path))
    fail("--load-hf", "{} holds checkpoints of --save: give it to --load", path);
}

}  // namespace

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const Preset& p : presets) names.emplace_back(p.name);
  return names;
}

std::string model_folder(const Config& c, const StoredModels& stored) {
  const bool trains = c.command == Command::train;
  if (!trains && c.load_hf_dir.empty() == c.load_dir.empty())
    fail("--load-hf", "evaluate needs one model: give --load-hf DIR or --load DIR");
  // A resumed run continues with its checkpoint, wherever its first weights came from.
  if (c.load_dir.empty()) {
    if (!c.load_hf_dir.empty()) check_load_hf(stored, c.load_hf_dir);
    return c.load_hf_dir;
  }
  std::optional<std::string> newest;
  try {
    newest = stored.latest_checkpoint(c.load_dir);
  } catch (const std::runtime_error& e) {
    fail("--load", "{}", e.what());
  }
  if (!newest && !trains) fail("--load", "{} holds no checkpoint", c.load_dir);
  return newest.value_or(c.load_hf_dir);
}

namespace {

template <typename T>
void agree(const char* flag, const std::optional<T>& given, const T& stored,
           const std::string& folder) {
  if (given && *given != stored)
    fail(flag, "{} contradicts {}/config.json, which says {}", *given, folder, stored);
}

// --model may repeat the sizes of a stored model.
void agree_with_preset(const Flags& f, const std::string& folder, ModelConfig* m) {
  if (!f.model) return;
  const Preset& preset = find_preset(*f.model);
  if (std::string(preset.encoder ? preset.encoder : "") != (m->language_model() ? "" : m->kind()))
    fail("--model", "{} contradicts {}/config.json, which says {}", *f.model, folder, m->kind());
  if (f.layers.value_or(preset.layers) != m->layers ||
      f.hidden.value_or(preset.hidden) != m->hidden || f.heads.value_or(preset.heads) != m->heads ||
      f.ffn.value_or(preset.ffn > 0 && !f.hidden ? preset.ffn : default_ffn(*m)) != m->ffn ||
      preset.is_llama() != (m->kind() == "llama") ||
      (preset.is_llama() && f.query_groups.value_or(preset.query_groups) != m->kv_heads()))
    fail("--model",
         "{} contradicts {}/config.json, which says {} layers, hidden size {}, {} heads and "
         "MLP size {}: leave it out",
         *f.model, folder, m->layers, m->hidden, m->heads, m->ffn);
  m->preset = preset.name;
}

// Larger sizes are typing errors. Below these limits all sums fit 64 bits.
bool fits_no_machine(const ModelConfig& m, double* parameters) {
  const auto layers = static_cast<double>(m.layers);
  const auto hidden = static_cast<double>(m.hidden);
  const auto rows = static_cast<double>(m.padded_vocabulary) + static_cast<double>(m.max_positions);
  *parameters = layers * hidden * (4 * hidden + 2 * static_cast<double>(m.ffn)) + rows * hidden;
  return m.layers > 1'000'000 || *parameters > 1e15;
}

void check_size(const ModelConfig& m) {
  double parameters = 0;
  if (fits_no_machine(m, &parameters))
    fail("--num-layers",
         "a model of {} layers and {:.1e} parameters is too large for any machine: check "
         "--num-layers, "
         "--hidden-size, --ffn-hidden-size and --vocab-size",
         m.layers, parameters);
}

void check_size_of_folder(const ModelConfig& m, const std::string& folder) {
  double parameters = 0;
  if (fits_no_machine(m, &parameters))
    throw std::runtime_error(
        fmt::format("{}/config.json describes a model of {} layers and {:.1e} parameters, which "
                    "is too large for any machine",
                    folder, m.layers, parameters));
}

// The sizes of a stored model; a flag may repeat them.
void model_of_folder(const Flags& f, const StoredModels& stored, const std::string& folder,
                     Config* c) {
  ModelConfig& m = c->model;
  ModelConfigRequest request;
  request.defaults.init_std = m.init_std;
  request.defaults.task = f.task.value_or(Task::language_model);
  request.defaults.classes = f.classes.value_or(2);
  request.vocabulary_multiple = f.vocabulary_multiple * c->tensor_parallel;
  request.dropout = c->command == Command::train && !f.hidden_dropout;
  m = stored.read_config(folder, request);
  check_size_of_folder(m, folder);
  agree("--num-layers", f.layers, m.layers, folder);
  agree("--hidden-size", f.hidden, m.hidden, folder);
  agree("--num-attention-heads", f.heads, m.heads, folder);
  agree("--ffn-hidden-size", f.ffn, m.ffn, folder);
  agree("--num-query-groups", f.query_groups, m.kv_heads(), folder);
  agree("--kv-channels", f.kv_channels, m.head_dim(), folder);
  agree_with_kind(f, folder, m);
  agree_with_preset(f, folder, &m);
  agree("--max-position-embeddings", f.max_positions, m.max_positions, folder);
  agree("--vocab-size", f.vocabulary, m.vocabulary, folder);
  agree("--layernorm-epsilon", f.layernorm_epsilon, m.layernorm_epsilon, folder);
  if (!m.language_model()) return encoder_of_folder(f, stored, folder, c);
  if ((f.positions || f.rotary) && resolve_positions(f) != m.positions)
    fail("--position-embedding-type", "contradicts {}/config.json, which says {}", folder,
         m.positions == Positions::rotary ? "rope" : "learned_absolute");
  if (f.untied && m.tied_embeddings)
    fail("--untie-embeddings-and-output-weights",
         "contradicts {}/config.json, which says that the output layer has the embedding's "
         "weights: leave it out",
         folder);
  if (m.positions == Positions::rotary) {
    agree("--rotary-base", f.rotary_base, m.rotary_base, folder);
    agree("--rotary-percent", f.rotary_percent, m.rotary_fraction, folder);
  }
  m.hidden_dropout = f.hidden_dropout.value_or(m.hidden_dropout);
  m.attention_dropout = f.attention_dropout.value_or(m.attention_dropout);
  c->sequence = f.sequence.value_or(std::min<int64_t>(1024, m.max_positions));
  Flags vocabulary = f;
  vocabulary.vocabulary = m.vocabulary;
  // Llama and its kin have tokenizers of their own.
  if (!f.tokenizer && f.config.data.vocab_file.empty() && m.kind() == "llama" &&
      std::filesystem::exists(folder + "/tokenizer.json"))
    vocabulary.tokenizer = "HuggingFaceTokenizer";
  resolve_vocabulary(vocabulary, gpt2_tokens, &c->data.tokenizer);
  if (c->command == Command::evaluate || folder == c->load_hf_dir || !f.tokenizer) return;
  // A resumed run keeps the vocabulary that it was started with.
  if (!f.vocabulary && c->data.tokenizer != "NullTokenizer") vocabulary.vocabulary.reset();
  if (const int64_t tokens = resolve_vocabulary(vocabulary, gpt2_tokens, &c->data.tokenizer);
      tokens != m.vocabulary)
    fail("--tokenizer-type", "{} has {} tokens, which contradicts {}/config.json, which says {}",
         c->data.tokenizer, tokens, folder, m.vocabulary);
}

}  // namespace

void resolve_model(const Flags& f, const StoredModels& stored, const std::string& folder,
                   Config* c) {
  ModelConfig& m = c->model;
  if (folder.empty()) {
    model_of_flags(f, c);
  } else {
    try {
      model_of_folder(f, stored, folder, c);
    } catch (const UsageError&) {
      throw;
    } catch (const std::runtime_error& e) {
      fail(folder == c->load_hf_dir ? "--load-hf" : "--load", "{}", e.what());
    }
  }
  if (folder.empty())
    m.padded_vocabulary = pad_vocabulary(m.vocabulary, f.vocabulary_multiple * c->tensor_parallel);

  if (folder.empty()) check_size(m);
  if (m.kv_channels == 0 && m.hidden % m.heads != 0)
    fail("--hidden-size", "{} is not divisible by --num-attention-heads {}", m.hidden, m.heads);
  if (m.max_positions < c->sequence) {
    if (!folder.empty() && !f.max_positions)
      fail("--seq-length", "{} is more than the {} positions of {}/config.json", c->sequence,
           m.max_positions, folder);
    fail("--max-position-embeddings", "{} is less than --seq-length {}", m.max_positions,
         c->sequence);
  }
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

}  // namespace tally::train

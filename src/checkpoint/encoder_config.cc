#include "src/checkpoint/encoder_config.h"

#include <array>
#include <map>
#include <set>

namespace tally::train {
namespace {

// The keys that differ between the two kinds.
struct Keys {
  const char *layers, *hidden, *heads, *ffn, *activation, *hidden_dropout, *attention_dropout;
};
constexpr Keys bert{"num_hidden_layers",           "hidden_size", "num_attention_heads",
                    "intermediate_size",           "hidden_act",  "hidden_dropout_prob",
                    "attention_probs_dropout_prob"};
constexpr Keys distilbert{"n_layers",   "dim",     "n_heads",          "hidden_dim",
                          "activation", "dropout", "attention_dropout"};

const Keys& keys_of(const std::string& kind) {
  return kind == "bert" ? bert : distilbert;
}

// The key of head_dropout(). In a file without a value, BERT's is hidden_dropout_prob.
const char* head_dropout_key(const ModelConfig& config) {
  if (config.pooler) return "classifier_dropout";
  return config.task == Task::classification ? "seq_classif_dropout" : "qa_dropout";
}

// The name that transformers has for the model with a task's head.
std::string architecture(const ModelConfig& config) {
  const std::string kind = config.kind() == "bert" ? "Bert" : "DistilBert";
  if (config.task == Task::classification) return kind + "ForSequenceClassification";
  if (config.task == Task::question_answering) return kind + "ForQuestionAnswering";
  return kind + (config.predicts_next_sentence() ? "ForPreTraining" : "ForMaskedLM");
}

bool ends_with(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

// The task and, of BERT, whether it predicts the next sentence.
void read_task(const ConfigReader& in, ModelConfig* config) {
  const auto names = in.get<std::vector<std::string>>("architectures", {});
  const std::string name = names.empty() ? "" : names.front();
  if (config->task != Task::language_model) return;
  if (ends_with(name, "ForSequenceClassification")) {
    config->task = Task::classification;
  } else if (ends_with(name, "ForQuestionAnswering")) {
    config->task = Task::question_answering;
  } else {
    config->task = Task::pretraining;
    if (ends_with(name, "ForMaskedLM")) config->next_sentence = false;
  }
}

std::string unnamed_class(int64_t number) {
  return "LABEL_" + std::to_string(number);
}

int64_t classes_of(const ConfigReader& in, int64_t missing) {
  if (in.has("id2label")) return static_cast<int64_t>(in.json().at("id2label").size());
  return in.get<int64_t>("num_labels", missing);
}

}  // namespace

void write_encoder_config(const ModelConfig& config, const std::string& type,
                          const std::vector<std::string>& classes, ConfigJson* json) {
  ConfigJson& j = *json;
  const Keys& keys = keys_of(config.kind());
  const auto keep = [&](const char* key, const ConfigJson& value) {
    if (!j.contains(key)) j[key] = value;
  };
  j["architectures"] = {architecture(config)};
  j["model_type"] = config.kind();
  keep(keys.activation, entry_of(config.block.mlp).name);
  j[keys.layers] = config.layers;
  j[keys.hidden] = config.hidden;
  j[keys.heads] = config.heads;
  j[keys.ffn] = config.ffn;
  j[keys.hidden_dropout] = config.hidden_dropout;
  j[keys.attention_dropout] = config.attention_dropout;
  if (const auto dropout = config.head_dropout())
    j[head_dropout_key(config)] = config.kind() == "bert" && !config.classifier_dropout
                                      ? ConfigJson(nullptr)
                                      : ConfigJson(*dropout);
  j["initializer_range"] = config.init_std;
  j["max_position_embeddings"] = config.max_positions;
  j["vocab_size"] = config.vocabulary;
  keep("pad_token_id", 0);
  j[j.contains("dtype") ? "dtype" : "torch_dtype"] = type;
  if (config.kind() == "bert") {
    j["layer_norm_eps"] = config.layernorm_epsilon;
    j["type_vocab_size"] = config.token_types;
  } else {
    keep("sinusoidal_pos_embds", false);
  }
  if (config.task != Task::classification) return;
  if (classes.empty() && j.contains("id2label") &&
      static_cast<int64_t>(j["id2label"].size()) == config.classes)
    return;
  ConfigJson names = ConfigJson::object(), numbers = ConfigJson::object();
  for (int64_t k = 0; k < config.classes; ++k) {
    const auto at = static_cast<size_t>(k);
    const std::string label = at < classes.size() ? classes[at] : unnamed_class(k);
    names[std::to_string(k)] = label;
    numbers[label] = k;
  }
  j["id2label"] = names;
  j["label2id"] = numbers;
}

std::vector<std::string> read_class_names(const ConfigReader& in) {
  const auto architectures = in.get<std::vector<std::string>>("architectures", {});
  if (architectures.empty() || !ends_with(architectures.front(), "ForSequenceClassification"))
    return {};
  const auto known = in.get<std::map<std::string, std::string>>("id2label", {});
  std::vector<std::string> names;
  std::set<std::string> different;
  bool named = false;
  for (size_t k = 0; k < known.size(); ++k) {
    const auto found = known.find(std::to_string(k));
    if (found == known.end()) throw in.bad(fmt::format("names no class {} in \"id2label\"", k));
    if (!different.insert(found->second).second)
      throw in.bad(fmt::format("gives two classes the name \"{}\"", found->second));
    named = named || found->second != unnamed_class(static_cast<int64_t>(k));
    names.push_back(found->second);
  }
  return named ? names : std::vector<std::string>();
}

ModelConfig read_encoder_config(const ConfigReader& in, const std::string& type,
                                const ModelConfig& defaults, int64_t vocabulary_multiple) {
  const Keys& keys = keys_of(type);
  ModelConfig config = defaults;
  config.set_kind(type);
  read_task(in, &config);
  config.block.mlp = in.activation(keys.activation, MlpActivation::gelu_erf);
  if (in.get<std::string>("position_embedding_type", "absolute") != "absolute")
    throw in.bad("has relative positions, and only absolute ones are supported");
  in.refuse("is_decoder", true);
  in.refuse("add_cross_attention", true);
  config.layers = in.size(keys.layers, bert.layers);
  config.hidden = in.size(keys.hidden, bert.hidden);
  config.heads = in.size(keys.heads, bert.heads);
  config.ffn = in.size(keys.ffn);
  config.max_positions = in.size("max_position_embeddings");
  config.vocabulary = in.size("vocab_size");
  config.padded_vocabulary = pad_vocabulary(config.vocabulary, vocabulary_multiple);
  if (config.hidden % config.heads != 0)
    throw in.bad(fmt::format("has {} {} that {} heads do not divide", keys.hidden, config.hidden,
                             config.heads));
  config.positions = Positions::learned;
  config.tied_embeddings = true;
  if (!in.get("tie_word_embeddings", true))
    throw in.bad("has an output layer of its own, and only a tied one is supported");
  if (type == "bert") config.token_types = in.get<int64_t>("type_vocab_size", 2);
  config.layernorm_epsilon = type == "bert" ? in.get("layer_norm_eps", 1e-12) : 1e-12;
  if (!(config.layernorm_epsilon > 0))
    throw in.bad(
        fmt::format("has the layer_norm_eps {}, which is not positive", config.layernorm_epsilon));
  config.init_std = in.get("initializer_range", 0.02);
  config.hidden_dropout = in.probability(keys.hidden_dropout);
  config.attention_dropout = in.probability(keys.attention_dropout);
  if (const char* key = head_dropout_key(config); config.head_dropout() && in.has(key))
    config.classifier_dropout = in.probability(key);
  if (config.task != Task::classification) return config;
  config.classes = classes_of(in, defaults.classes);
  const auto problem = in.get<std::string>("problem_type", "single_label_classification");
  if (problem != "single_label_classification")
    throw in.bad(fmt::format(
        "has the problem_type \"{}\", and only single_label_classification is supported", problem));
  return config;
}

}  // namespace tally::train

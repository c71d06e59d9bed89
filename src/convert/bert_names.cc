#include "src/convert/bert_names.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tally::train {
namespace {

bool begins_with(const std::string& text, const std::string& begin) {
  return text.compare(0, begin.size(), begin) == 0;
}

// The variables of heads, whose names have no pattern in common.
constexpr std::pair<const char*, const char*> kHeads[] = {
    {"cls/predictions/output_bias", "cls.predictions.bias"},
    {"cls/seq_relationship/output_weights", "cls.seq_relationship.weight"},
    {"cls/seq_relationship/output_bias", "cls.seq_relationship.bias"},
    {"cls/squad/output_weights", "qa_outputs.weight"},
    {"cls/squad/output_bias", "qa_outputs.bias"},
    {"output_weights", "classifier.weight"},
    {"output_bias", "classifier.bias"}};

}  // namespace

bool is_bert_variable(const std::string& name) {
  for (const auto& [variable, ours] : kHeads)
    if (name == variable) return true;
  if (!begins_with(name, "bert/") && !begins_with(name, "cls/")) return false;
  // Moments of the optimizers lie beside the weights.
  const std::string last = name.substr(name.rfind('/') + 1);
  for (const char* slot : {"adam_m", "adam_v", "lamb_m", "lamb_v"})
    if (begins_with(last, slot)) return false;
  return last.find("Optimizer") == std::string::npos && last != "Adam" && last != "Adam_1" &&
         last != "Momentum";
}

BertTensorName bert_tensor_name(const std::string& variable) {
  for (const auto& [head, ours] : kHeads)
    if (variable == head) return {ours, false};
  std::string name = variable;
  std::replace(name.begin(), name.end(), '/', '.');
  if (const size_t layer = name.find(".layer_"); layer != std::string::npos)
    name[layer + std::strlen(".layer")] = '.';
  if (name.ends_with("_embeddings")) return {name + ".weight", false};
  const std::string norm = with_new_norm_names(name);
  if (norm != name) return {norm, false};
  if (name.ends_with(".bias")) return {name, false};
  if (!name.ends_with(".kernel")) return {};
  return {name.substr(0, name.size() - std::strlen("kernel")) + "weight", true};
}

std::string with_new_norm_names(const std::string& name) {
  for (const auto& [old, now] : {std::pair("LayerNorm.gamma", "LayerNorm.weight"),
                                 std::pair("LayerNorm.beta", "LayerNorm.bias")})
    if (name.ends_with(old)) return name.substr(0, name.size() - std::strlen(old)) + now;
  return name;
}

}  // namespace tally::train

// The question of a dry run to `tally-train --plan`, and what it makes of the answer.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/text.h"
#include "steps/kinds.h"

namespace tally {
namespace {

constexpr const char* trainer = "tally-train";

// Words of a command line without anything that a shell would expand; nothing where there is
// something, or where a quote is left open.
std::optional<std::vector<std::string>> plain_words(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;
  char quote = 0;
  const auto finish = [&] {
    if (begun) words.push_back(std::move(word));
    word.clear();
    begun = false;
  };
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != '\'' && (c == '$' || c == '`')) return std::nullopt;
    if (quote == 0 && std::string_view("|&;<>()*?[{~#").find(c) != std::string_view::npos)
      return std::nullopt;
    if (quote == 0 && (c == ' ' || c == '\t' || c == '\n')) {
      finish();
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      begun = true;
    } else if (c == quote) {
      quote = 0;
    } else {
      if (c == '\\' && quote != '\'' && i + 1 < line.size()) ++i;
      word += line[i];
      begun = true;
    }
  }
  if (quote != 0) return std::nullopt;
  finish();
  return words;
}

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

// The planner knows language models alone. The model of a folder (--load-hf) is an encoder where
// the words have a task.
bool trains_encoder(const std::vector<std::string>& words) {
  for (size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--task" || word.rfind("--task=", 0) == 0) return true;
    const bool model = word == "--model" && i + 1 < words.size();
    const std::string name = model                            ? words[i + 1]
                             : word.rfind("--model=", 0) == 0 ? word.substr(8)
                                                              : std::string();
    if (name.rfind("bert", 0) == 0 || name.rfind("distilbert", 0) == 0) return true;
  }
  return false;
}

long long number_of(const Lookup& lookup, std::string_view name) {
  return std::strtoll(stripped_value(lookup, name).c_str(), nullptr, 10);
}

std::string gigabytes(double bytes) {
  return fmt::format("{:.1f} GB", bytes / 1e9);
}

std::string memory(const nlohmann::json& plan, const char* of) {
  const auto& worst = plan.at("stages").at(plan.at("worst_stage").get<size_t>());
  std::string text = gigabytes(worst.at("bytes").at("total").get<double>()) + of;
  if (!plan.contains("device")) return text;
  const auto& device = plan.at("device");
  return fmt::format("{} of the {} of {}: {}", text, gigabytes(device.at("bytes").get<double>()),
                     device.at("name").get<std::string>(),
                     plan.at("fits").get<bool>() ? "fits" : "DOES NOT FIT");
}

}  // namespace

PlanRequest TallyKinds::plan_request(const Step& step, const Lookup& lookup) const {
  PlanRequest request;
  const std::string launch = stripped_value(lookup, "launch");
  if (step.kind != StepKind::run || launch.find(trainer) == std::string::npos) return request;
  const auto words = plain_words(launch);
  if (!words) {
    request.why_not = "its launch line is known only to the shell that runs it";
    return request;
  }
  const auto program = std::ranges::find_if(
      *words, [](const std::string& word) { return file_name(word) == trainer; });
  if (program == words->end()) return request;
  const std::string first = program + 1 == words->end() ? "" : program[1];
  // Other commands than training.
  if (first.empty() || (first.front() != '-' && first.front() != '@' && first != "train"))
    return request;
  if (trains_encoder(*words)) return request;
  // The first needs no LibTorch, which a login node may not have.
  request.programs = {"tally-train-help", trainer};
  request.arguments.assign(program + 1, words->end());
  const long long nodes = number_of(lookup, "nodes");
  const long long gpus = number_of(lookup, "gpuspernode");
  for (const char* word : {"--plan", "--plan-json"}) request.arguments.emplace_back(word);
  if (gpus > 0) {
    request.arguments.push_back(fmt::format("--plan-nodes={}", std::max(1LL, nodes)));
    request.arguments.push_back(fmt::format("--plan-gpus-per-node={}", gpus));
  }
  if (const std::string device = stripped_value(lookup, "plan_device"); !device.empty())
    request.arguments.push_back("--plan-device=" + device);
  return request;
}

std::string TallyKinds::plan_summary(const std::string& json) const {
  try {
    const auto plan = nlohmann::json::parse(json);
    const auto& layout = plan.at("layout");
    const auto size = [&](const char* key) { return layout.at(key).get<long long>(); };
    const auto parameters = plan.at("parameters").get<double>();
    std::string text = parameters < 1e9
                           ? fmt::format("{:.1f} M parameters", parameters / 1e6)
                           : fmt::format("{:.1f} billion parameters", parameters / 1e9);
    // One device has no layout.
    if (size("gpus") == 1) {
      text += ", 1 GPU, " + memory(plan, "");
    } else {
      text += fmt::format(" on {} GPUs (tensor {} x pipeline {} x data {}), {}, bubble {:.1f} %",
                          size("gpus"), size("tensor"), size("pipeline"), size("data"),
                          memory(plan, " a GPU"), plan.at("bubble").get<double>() * 100);
    }
    if (plan.contains("changes") && !plan.at("changes").empty())
      text += ", would fit with " + plan.at("changes").at(0).get<std::string>();
    if (plan.contains("smallest") && plan.at("smallest").is_object()) {
      // 0: none.
      const auto nodes = plan.at("smallest").at("nodes").get<long long>();
      text += nodes > 0
                  ? fmt::format(", the model fits from {} node{} on", nodes, nodes == 1 ? "" : "s")
                  : ", no layout of the model fits such nodes";
    }
    return text;
  } catch (const nlohmann::json::exception&) {
    return "";
  }
}

}  // namespace tally

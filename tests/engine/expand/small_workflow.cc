#include "tests/engine/expand/small_workflow.h"

#include <map>
#include <stdexcept>

#include <yaml-cpp/yaml.h>

#include "engine/base/text.h"
#include "steps/kinds.h"

namespace tally::testing {
namespace {

Text text_of(const YAML::Node& node) {
  const YAML::Mark mark = node.Mark();
  return {node.as<std::string>(),
          {0, static_cast<uint32_t>(mark.line + 1), static_cast<uint32_t>(mark.column + 1)}};
}

template <typename Function>
void each(const YAML::Node& node, Function use) {
  if (!node) return;
  if (!node.IsSequence()) {
    use(node);
    return;
  }
  for (const YAML::Node& item : node) use(item);
}

template <typename Value>
Value one_of(const std::string& word, const std::map<std::string, Value>& values) {
  const auto found = values.find(word);
  if (found == values.end()) throw std::runtime_error("test workflow: unknown word " + word);
  return found->second;
}

Parameter parameter(const YAML::Node& node) {
  Parameter p;
  for (const auto& entry : node) {
    const auto key = entry.first.as<std::string>();
    const auto value = entry.second.as<std::string>();
    if (key == "name") {
      p.name = text_of(entry.second);
    } else if (key == "_") {
      p.value = text_of(entry.second);
    } else if (key == "mode") {
      p.mode = one_of<Mode>(value, {{"text", Mode::text},
                                    {"python", Mode::python},
                                    {"perl", Mode::perl},
                                    {"shell", Mode::shell},
                                    {"env", Mode::env},
                                    {"tag", Mode::tag}});
    } else if (key == "type") {
      p.type = one_of<ValueType>(value, {{"string", ValueType::string},
                                         {"int", ValueType::integer},
                                         {"float", ValueType::floating}});
    } else if (key == "allowed") {
      p.allowed = text_of(entry.second);
    } else if (key == "update_mode") {
      p.update = one_of<UpdateMode>(value, {{"never", UpdateMode::never},
                                            {"use", UpdateMode::use},
                                            {"step", UpdateMode::step},
                                            {"cycle", UpdateMode::cycle},
                                            {"always", UpdateMode::always}});
    } else if (key == "separator") {
      p.separator = value;
    } else {
      throw std::runtime_error("test workflow: unknown key " + key);
    }
  }
  return p;
}

ParameterSet parameter_set(const YAML::Node& node) {
  ParameterSet set;
  set.name = text_of(node["name"]);
  each(node["parameter"], [&](const YAML::Node& p) { set.parameters.push_back(parameter(p)); });
  each(node["where"], [&](const YAML::Node& rule) { set.where.push_back(text_of(rule)); });
  each(node["zip"], [&](const YAML::Node& group) {
    std::vector<Text>& names = set.zip.emplace_back();
    for (std::string& name : split_strip(group.as<std::string>(), ",")) {
      names.push_back({std::move(name), {}});
    }
  });
  return set;
}

Step step(const YAML::Node& node) {
  Step s;
  s.kinds = &step_kinds();
  for (const auto& entry : node) {
    const auto key = entry.first.as<std::string>();
    const YAML::Node& value = entry.second;
    if (key == "name") {
      s.name = text_of(value);
    } else if (key == "depend") {
      for (const std::string& name : split_strip(value.as<std::string>(), ",")) {
        s.depend.push_back({name, {}});
      }
    } else if (key == "use") {
      each(value, [&](const YAML::Node& use) { s.use.push_back(text_of(use)); });
    } else if (key == "do") {
      each(value, [&](const YAML::Node& command) {
        Operation operation;
        operation.command = text_of(command);
        s.operations.push_back(operation);
      });
    } else if (key == "iterations") {
      s.iterations = text_of(value);
    } else if (key == "cycles") {
      s.cycles = text_of(value);
    } else if (key == "active") {
      s.active = text_of(value);
    } else if (key == "repeat") {
      s.repeat = text_of(value);
    } else if (key == "nodes") {
      s.resources.nodes = text_of(value);
      s.resources.any = true;
    } else if (key == "time") {
      s.resources.time = text_of(value);
      s.resources.any = true;
    } else if (key == "kind") {
      s.kind = one_of<StepKind>(value.as<std::string>(), {{"plain", StepKind::plain},
                                                          {"setup", StepKind::setup},
                                                          {"build", StepKind::build},
                                                          {"run", StepKind::run},
                                                          {"result", StepKind::result}});
    } else {
      throw std::runtime_error("test workflow: unknown key " + key);
    }
  }
  return s;
}

}  // namespace

Benchmark small_workflow(const std::string& yaml) {
  const YAML::Node root = YAML::Load(yaml);
  Benchmark benchmark;
  benchmark.name = {root["name"] ? root["name"].as<std::string>() : "b", {}};
  benchmark.outpath = {"out", {}};
  each(root["parameterset"], [&](const YAML::Node& node) {
    ParameterSet set = parameter_set(node);
    benchmark.parameter_sets[set.name.value] = std::move(set);
  });
  each(root["step"], [&](const YAML::Node& node) { benchmark.steps.push_back(step(node)); });
  return benchmark;
}

}  // namespace tally::testing

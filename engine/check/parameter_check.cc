#include "engine/check/parameter_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "engine/base/text.h"
#include "engine/python/value.h"
#include "engine/workflow/allowed.h"

namespace tally {
namespace {

const Parameter* find(const ParameterSet& set, const std::string& name) {
  for (const Parameter& parameter : set.parameters) {
    if (parameter.name.value == name) return &parameter;
  }
  return nullptr;
}

// Compares lists that are written in the file. Expansion compares lists from scripts and
// references.
void check_zips(const ParameterSet& set, Diagnostics& diagnostics) {
  for (const std::vector<Text>& group : set.zip) {
    std::string lengths;
    std::set<size_t> different;
    for (const Text& name : group) {
      const Parameter* parameter = find(set, name.value);
      if (parameter == nullptr || parameter->mode != Mode::text ||
          has_dollar(parameter->value.value)) {
        continue;
      }
      const size_t count = split_strip(parameter->value.value, parameter->separator).size();
      different.insert(count);
      lengths += fmt::format("{}{} has {}", lengths.empty() ? "" : ", ", name.value, count);
    }
    if (different.size() < 2) continue;
    diagnostics.error(group.front().mark,
                      "zipped parameters differ in their number of values: " + lengths,
                      "parameters that advance together need lists of equal length");
  }
}

// The names in a text's $name and ${name}.
std::set<std::string> names_after_dollars(const std::string& text) {
  std::set<std::string> names;
  for (size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != '$') continue;
    if (text[i + 1] == '$') {
      ++i;
      continue;
    }
    size_t begin = i + 1 + (text[i + 1] == '{' ? 1 : 0);
    size_t end = begin;
    while (end < text.size() && is_name_char(text[end])) ++end;
    if (end > begin) names.insert(text.substr(begin, end - begin));
  }
  return names;
}

// Finds cycles among parameters that are used together.
class Circles {
 public:
  Circles(bool strict, Diagnostics& diagnostics) : strict_(strict), diagnostics_(diagnostics) {}

  void check(const std::vector<const ParameterSet*>& sets) {
    parameters_.clear();
    done_.clear();
    for (const ParameterSet* set : sets) {
      for (const Parameter& p : set->parameters) parameters_[p.name.value] = &p;
    }
    for (const ParameterSet* set : sets) {
      for (const Parameter& p : set->parameters) visit(p.name.value);
    }
  }

 private:
  void visit(const std::string& name) {
    if (done_.count(name) != 0) return;
    const auto before = std::find(path_.begin(), path_.end(), name);
    if (before != path_.end()) {
      report({before, path_.end()});
      return;
    }
    path_.push_back(name);
    for (const std::string& next : names_after_dollars(parameters_[name]->value.value)) {
      // A parameter may name itself: the shell resolves PATH=$PATH:/more.
      if (next != name && parameters_.count(next) != 0) visit(next);
    }
    path_.pop_back();
    done_.insert(name);
  }

  void report(const std::vector<std::string>& circle) {
    const Parameter& first = *parameters_[circle.front()];
    if (!reported_.insert(&first).second) return;
    const std::string message = fmt::format("parameters refer to each other in a circle: {} -> {}",
                                            join(circle, " -> "), circle.front());
    const std::string hint = "none of them has a value: their $names stay as they are";
    if (strict_) {
      diagnostics_.error(first.value.mark, message, hint);
    } else {
      diagnostics_.warning(first.value.mark, message, hint);
    }
    for (size_t i = 1; i < circle.size(); ++i) {
      const Parameter& other = *parameters_[circle[i]];
      diagnostics_.note(other.value.mark, fmt::format("'{}' is here", circle[i]));
    }
  }

  bool strict_;
  Diagnostics& diagnostics_;
  std::map<std::string, const Parameter*> parameters_;
  std::vector<std::string> path_;
  std::set<std::string> done_;
  std::set<const Parameter*> reported_;
};

bool is_of_type(const Parameter& parameter, const std::string& value) {
  if (parameter.type == ValueType::string || has_dollar(value)) return true;
  const std::optional<double> number = python_float(value);
  return number && (parameter.type == ValueType::floating || std::isfinite(*number));
}

// The fault of a value that is written in the file or on the command line.
std::string needed_value(const Parameter& parameter, const std::string& value) {
  if (has_dollar(value)) return {};  // expansion knows it
  const std::string needed = has_to_be(parameter.allowed.value, value);
  if (needed.empty()) return {};
  return fmt::format("parameter '{}' has to be {}, not '{}'", parameter.name.value, needed, value);
}

// Compares values that are written in the file. Expansion compares those that are computed.
void check_allowed(const ParameterSet& set, Diagnostics& diagnostics) {
  for (const Parameter& parameter : set.parameters) {
    const std::string fault = allowed_fault(parameter.allowed.value);
    if (!fault.empty()) diagnostics.error(parameter.allowed.mark, "allowed: " + fault);
    // A value of --set has no place in the file, and was checked when it was set.
    if (parameter.mode != Mode::text || !parameter.value.mark.known()) continue;
    for (const std::string& piece : split_strip(parameter.value.value, parameter.separator)) {
      const std::string needed = needed_value(parameter, piece);
      if (needed.empty()) continue;
      diagnostics.error(parameter.value.mark, needed,
                        did_you_mean(piece, allowed_values(parameter.allowed.value)));
      break;
    }
  }
}

void check_set_value(const std::pair<std::string, std::string>& set, const Parameter& parameter,
                     Diagnostics& diagnostics) {
  const char* type = parameter.type == ValueType::integer ? "int" : "float";
  for (const std::string& piece : split_strip(parameter.value.value, parameter.separator)) {
    if (!is_of_type(parameter, piece)) {
      diagnostics.error(
          {}, fmt::format("--set {}={}: '{}' is not a valid {}, which parameter '{}' has to be",
                          set.first, set.second, piece, type, set.first));
    } else if (const std::string needed = needed_value(parameter, piece); !needed.empty()) {
      diagnostics.error({}, fmt::format("--set {}={}: {}", set.first, set.second, needed),
                        did_you_mean(piece, allowed_values(parameter.allowed.value)));
    } else {
      continue;
    }
    diagnostics.note(parameter.name.mark, fmt::format("'{}' is defined here", set.first));
    return;
  }
}

// Warns about print(), which writes to the terminal and returns None, in JUBE as well.
void check_print(const ParameterSet& set, Diagnostics& diagnostics) {
  for (const Parameter& parameter : set.parameters) {
    if (parameter.mode != Mode::python || !starts_with(parameter.value.value, "print(")) continue;
    diagnostics.warning(parameter.value.mark,
                        fmt::format("the value of parameter '{}' is None: print() returns nothing",
                                    parameter.name.value),
                        "the value is what the expression comes to: leave print() away");
  }
}

}  // namespace

void check_parameters(const Benchmark& benchmark, bool strict, Diagnostics& diagnostics) {
  Circles circles(strict, diagnostics);
  for (const Step& step : benchmark.steps) {
    std::vector<const ParameterSet*> used;
    for (const Text& use : step.use) {
      for (const std::string& name : split_strip(use.value, ",")) {
        const auto set = benchmark.parameter_sets.find(name);
        if (set != benchmark.parameter_sets.end()) used.push_back(&set->second);
      }
    }
    circles.check(used);
  }
  for (const auto& [name, set] : benchmark.parameter_sets) {
    check_zips(set, diagnostics);
    check_print(set, diagnostics);
    check_allowed(set, diagnostics);
    circles.check({&set});
  }
}

void check_types(const Benchmark& benchmark, Diagnostics& diagnostics) {
  for (const Parameter& parameter : all_parameters(benchmark)) {
    if (parameter.mode != Mode::text || !parameter.value.mark.known()) continue;
    const char* type = parameter.type == ValueType::integer ? "int" : "float";
    for (const std::string& piece : split_strip(parameter.value.value, parameter.separator)) {
      if (piece.empty() || is_of_type(parameter, piece)) continue;
      diagnostics.error(parameter.value.mark,
                        fmt::format("'{}' is not a valid {}, which parameter '{}' has to be", piece,
                                    type, parameter.name.value));
      break;
    }
  }
}

void apply_set(const std::pair<std::string, std::string>& set, std::vector<Benchmark>* benchmarks,
               Diagnostics& diagnostics) {
  std::vector<std::string> names;
  bool found = false;
  constexpr std::string_view kOfFleet = "fleet.";
  for (Benchmark& benchmark : *benchmarks) {
    if (benchmark.fleet.any && starts_with(set.first, kOfFleet)) {
      benchmark.fleet.given[set.first.substr(kOfFleet.size())] = set.second;
      found = true;
      if (set.first.substr(kOfFleet.size()) == kFleetPair &&
          find_parameter(benchmark, kFleetPair) != nullptr)
        return apply_set({kFleetPair, set.second}, benchmarks, diagnostics);
    }
    const bool users = has_users(benchmark, set.first);
    for (auto& [set_name, parameters] : benchmark.parameter_sets) {
      for (Parameter& p : parameters.parameters) {
        names.push_back(p.name.value);
        if (p.name.value != set.first || (p.owner == Owner::platform && users)) continue;
        found = true;
        p.value = {std::string(strip(set.second)), {}};
        p.mode = Mode::text;
        check_set_value(set, p, diagnostics);
      }
    }
  }
  if (found) return;
  if (starts_with(set.first, kOfFleet)) {
    const std::string what =
        "the workflow has no section `fleet`, which says what `tally fleet` judges";
    const bool said = std::ranges::any_of(
        diagnostics.all(), [&](const Diagnostic& one) { return one.message == what; });
    if (!said)
      diagnostics.error({}, what, "docs/fleet.md has an example; workflows/fleet.yaml is one");
    return;
  }
  constexpr size_t kMost = 12;
  std::string hint = did_you_mean(set.first, names);
  if (hint.empty() && !names.empty() && names.size() <= kMost)
    hint = "there are: " + join(names, ", ");
  diagnostics.error(
      {}, fmt::format("--set {}={}: no parameter is called '{}'", set.first, set.second, set.first),
      hint);
}

}  // namespace tally

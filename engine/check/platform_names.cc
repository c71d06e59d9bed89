#include "engine/check/platform_names.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <variant>

#include "engine/base/ascii.h"
#include "engine/check/platform.h"
#include "engine/workflow/lookup.h"

namespace tally {
namespace {

using Names = std::set<std::string, std::less<>>;

// The text with the platform's names in place of those in `names`, but for `own`: a parameter that
// names itself means what the user has. `$$` stays: it is for a second look (steps/), which asks
// for the platform's names itself.
std::string with_platform_names(std::string_view text, const Names& names,
                                std::string_view own = {}) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t dollar = std::min(text.find('$', at), text.size());
    result.append(text.substr(at, dollar - at));
    if (dollar == text.size()) break;
    const bool braces = text.substr(dollar + 1, 1) == "{";
    const size_t begin = dollar + (braces ? 2 : 1);
    size_t end = begin;
    while (end < text.size() && is_name_char(text[end])) ++end;
    const std::string_view name = text.substr(begin, end - begin);
    const bool whole = !braces || text.substr(end, 1) == "}";
    const size_t after = text.substr(dollar, 2) == "$$" ? dollar + 2 : end + (braces ? 1 : 0);
    if (whole && name != own && names.find(name) != names.end()) {
      result += (braces ? "${" : "$") + platform_name(name) + (braces ? "}" : "");
    } else {
      result.append(text.substr(dollar, after - dollar));
    }
    at = after;
  }
  return result;
}

template <typename Sets>
auto* set_in(Sets& sets, const std::string& name) {
  const auto found = sets.find(name);
  return found == sets.end() ? nullptr : &found->second;
}

}  // namespace

void give_to_platform(const std::string& ending, const StepKinds& kinds, Benchmark* benchmark) {
  Names names(kinds.value_names().begin(), kinds.value_names().end());
  for (const std::string& name : platform_sets()) {
    const ParameterSet* set = set_in(benchmark->parameter_sets, name + ending);
    if (set == nullptr) continue;
    for (const Parameter& parameter : set->parameters) names.insert(parameter.name.value);
  }
  for (const std::string& name : platform_sets()) {
    if (ParameterSet* set = set_in(benchmark->parameter_sets, name + ending)) {
      for (Parameter& parameter : set->parameters) {
        parameter.owner = Owner::platform;
        std::string& value = parameter.value.value;
        value = with_platform_names(value, names, parameter.name.value);
      }
    }
    if (SubstituteSet* set = set_in(benchmark->substitute_sets, name + ending)) {
      for (IoFile& file : set->files) {
        for (Text* text : {&file.in, &file.out})
          text->value = with_platform_names(text->value, names);
      }
      for (Substitution& sub : set->substitutions)
        sub.dest.value = with_platform_names(sub.dest.value, names);
    }
    if (FileSet* set = set_in(benchmark->file_sets, name + ending)) {
      for (auto& entry : set->entries) {
        auto* copy = std::get_if<FileCopy>(&entry);
        if (copy == nullptr) continue;
        for (Text* text : {&copy->source, &copy->target})
          text->value = with_platform_names(text->value, names);
      }
    }
  }
}

}  // namespace tally

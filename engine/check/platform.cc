#include "engine/check/platform.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>
#include <variant>
#include <vector>

#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/workflow/lookup.h"

namespace tally {
namespace {

// Keys whose value becomes a parameter of the template's set unchanged.
struct PlainKey {
  const char* key;
  const char* parameter;
  bool number;
};
constexpr PlainKey kJobKeys[] = {{"partition", "queue", false},
                                 {"account", "account", false},
                                 {"time", "timelimit", false},
                                 {"memory", "memory", false},
                                 {"tasks_per_node", "taskspernode", true},
                                 {"cpus_per_task", "threadspertask", true},
                                 {"gpus_per_node", "gpuspernode", false},
                                 {"hint", "site_hint", false},
                                 {"signal", "signal", false},
                                 {"tmp", "site_tmp", false},
                                 {"cache", "site_cache", false}};
constexpr PlainKey kContainerKeys[] = {{"runtime", "container_runtime", false},
                                       {"image", "container_image", false},
                                       {"gpus", "container_gpus", false},
                                       {"bind", "container_bind", false},
                                       {"args", "container_args", false}};

Element parameter(const std::string& name, const Text& value, bool number = false) {
  Element made;
  made.name = "parameter";
  made.mark = value.mark;
  made.text = value;
  made.attributes.push_back({{"name", value.mark}, {name, value.mark}});
  // A site's value is a single value. Commas in it do not make a parameter space.
  made.attributes.push_back({{"separator", value.mark}, {"", value.mark}});
  if (number) made.attributes.push_back({{"type", value.mark}, {"int", value.mark}});
  return made;
}

Element set_element(const char* kind, const char* name, const std::string& file, const Mark& mark) {
  Element made;
  made.name = kind;
  made.mark = mark;
  made.attributes.push_back({{"name", mark}, {name, mark}});
  made.attributes.push_back({{"init_with", mark}, {fmt::format("{}:{}", file, name), mark}});
  return made;
}

void add_plain(const Element& from, const PlainKey& key, Element* set) {
  const Attribute* given = from.find(key.key);
  if (!given) return;
  Text value = given->value;
  if (strip(value.value) == "none" && std::string_view(key.key) == "signal") value.value.clear();
  set->children.push_back(parameter(key.parameter, value, key.number));
}

// One line for each attribute of the elements called `name`.
template <typename Line>
Text lines_of(const Element& platform, const char* name, const Line& line) {
  Text text;
  for (const Element& child : platform.children) {
    if (child.name != name) continue;
    if (!text.mark.known()) text.mark = child.mark;
    for (const Attribute& a : child.attributes) {
      if (a.name.value == "tag") continue;
      if (!text.value.empty()) text.value += '\n';
      text.value += line(a.name.value, a.value.value);
    }
  }
  return text;
}

// Steps write the lines that set them (steps/kinds.cc), because a step's values may be in them.
std::string packed(const std::string& name, const std::string& value) {
  return pack_variables({{name, value}});
}

// One parameter for each option, so that none of their values can run into another one.
void add_options(const Element& platform, Element* set) {
  int count = 0;
  for (const Element& child : platform.children) {
    if (child.name != "options") continue;
    for (const Attribute& a : child.attributes) {
      if (a.name.value == "tag") continue;
      set->children.push_back(parameter(fmt::format("site_option_{}", ++count),
                                        {a.name.value + "=" + a.value.value, a.name.mark}));
    }
  }
}

Text modules_of(const Element& platform) {
  Text text;
  for (const Element& child : platform.children) {
    if (child.name != "modules") continue;
    if (!text.mark.known()) text.mark = child.mark;
    for (const std::string& module : split_strip(child.text.value, ",")) {
      if (!module.empty()) text.value += ' ' + module;
    }
  }
  if (!text.value.empty()) text.value.insert(0, "module load");
  return text;
}

// The mark of the place that names the file with the sets.
const Mark& template_mark(const Element& platform) {
  const Attribute* given = platform.find("template");
  return given ? given->value.mark : platform.mark;
}

Element job_set(const Element& platform, const std::string& file) {
  Element set = set_element("parameterset", "systemParameter", file, template_mark(platform));
  for (const PlainKey& key : kJobKeys) add_plain(platform, key, &set);
  const auto add = [&](const char* name, const Text& value) {
    if (!value.value.empty()) set.children.push_back(parameter(name, value));
  };
  add("site_modules", modules_of(platform));
  add("site_interconnect_variables", lines_of(platform, "interconnect", packed));
  add("site_variables", lines_of(platform, "env", packed));
  add_options(platform, &set);
  for (const Element& child : platform.children) {
    if (child.name != "container") continue;
    for (const PlainKey& key : kContainerKeys) add_plain(child, key, &set);
    add("container_env", lines_of(child, "env", packed));
  }
  return set;
}

void add_launcher(Text value, Element* set) {
  if (strip(value.value) == "none") value.value.clear();
  // $tasks and similar names belong to the step. Their dollars are doubled, so that they survive
  // until the step's values are known.
  for (size_t at = 0; (at = value.value.find('$', at)) != std::string::npos; at += 2) {
    value.value.insert(at, 1, '$');
  }
  set->children.push_back(parameter("starter", value));
}

Element submit_set(const Element& platform, const std::string& file, const SchedulerTable* table) {
  Element set = set_element("parameterset", "executeset", file, template_mark(platform));
  const Attribute* launcher = platform.find("launcher");
  if (table != nullptr) {
    set.children.push_back(parameter("scheduler", {table->name, platform.mark}));
    set.children.push_back(parameter("submit", {table->submit.front(), platform.mark}));
    if (launcher == nullptr) add_launcher({table->launcher, platform.mark}, &set);
  }
  if (launcher != nullptr) add_launcher(launcher->value, &set);
  if (const Attribute* mpi = platform.find("mpi")) {
    set.children.push_back(parameter("site_mpi", {"--mpi=" + mpi->value.value, mpi->value.mark}));
  }
  for (const char* name :
       {"max_node_hours", "max_time", "jobs_in_flight", "submit_rate", "submit_patience",
        "poll_slowest", "status_grace", "pending_limit", "resubmit", "job_environment"}) {
    if (const Attribute* given = platform.find(name)) {
      set.children.push_back(parameter(name, given->value));
    }
  }
  return set;
}

class PlatformAdder {
 public:
  PlatformAdder(const TableFinder& table_of, Diagnostics& diagnostics)
      : table_of_(table_of), diagnostics_(diagnostics) {}

  void add(Element* parent) {
    std::vector<Element> sets;
    for (Element& child : parent->children) {
      if (child.name == "benchmark") add(&child);
      if (child.name != "platform") continue;
      if (seen_.known()) {
        diagnostics_.error(child.mark, "a file describes one platform",
                           "give each a tag, so that one of them is left");
        diagnostics_.note(seen_, "another one is here");
        continue;
      }
      seen_ = child.mark;
      check_container(child);
      const Attribute* scheduler = child.find("scheduler");
      const size_t errors = diagnostics_.error_count();
      const SchedulerTable* table = scheduler == nullptr ? nullptr : table_of_(scheduler->value);
      if (diagnostics_.error_count() > errors) continue;
      std::string file(strip(child.get("template")));
      if (file.empty()) {
        file =
            std::string(table != nullptr ? "schedulers" : strip(child.get("scheduler", "slurm"))) +
            "/platform.yaml";
      }
      sets.push_back(job_set(child, file));
      sets.push_back(submit_set(child, file, table));
      sets.push_back(set_element("fileset", "jobfiles", file, template_mark(child)));
      sets.push_back(set_element("substituteset", "executesub", file, template_mark(child)));
    }
    for (Element& set : sets) parent->children.push_back(std::move(set));
  }

 private:
  void check_container(const Element& platform) {
    for (const Element& child : platform.children) {
      if (child.name != "container" || strip(child.get("runtime")) == "none") continue;
      if (!strip(child.get("image")).empty()) continue;
      diagnostics_.error(child.mark, "the platform's container has no image",
                         "image: a file or a name, or runtime: none");
    }
  }

  const TableFinder& table_of_;
  Diagnostics& diagnostics_;
  Mark seen_;
};

}  // namespace

const std::vector<std::string>& platform_sets() {
  static const std::vector<std::string> names = {"systemParameter", "executeset", "executesub",
                                                 "jobfiles"};
  return names;
}

void add_platform_sets(Element* root, const TableFinder& table_of, Diagnostics& diagnostics) {
  PlatformAdder(table_of, diagnostics).add(root);
}

std::string platforms_of(const Element& parent) {
  std::vector<std::string> platforms;
  for (const Element& child : parent.children) {
    if (child.name == "step") return {};
    if (child.name == "platform") {
      platforms.push_back(
          fmt::format("{} ({})", child.get("name"), child.get("scheduler", "slurm")));
    }
    if (child.name != "benchmark") continue;
    std::string inner = platforms_of(child);
    if (inner.empty()) return {};
    platforms.push_back(std::move(inner));
  }
  return join(platforms, ", ");
}

bool describes_platform(const Element& root) {
  return !platforms_of(root).empty();
}

std::string job_on(const std::string& platform) {
  std::string quoted;
  for (const char c : platform) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return fmt::format(
      "name: platform\nstep: {{name: job, kind: run, platform: \"{}\", resources: {{nodes: 1}}, "
      "launch: \"true\"}}\n",
      quoted);
}

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

#include "engine/check/build.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>

#include "engine/base/text.h"
#include "engine/check/elements.h"
#include "engine/check/platform.h"
#include "engine/check/schema_check.h"
#include "engine/read/schema.h"

namespace tally {

namespace {

void append(const Text& list, std::vector<Text>* out) {
  for (Text& part : split_text(list)) out->push_back(std::move(part));
}

StepKind step_kind(const Element& element) {
  std::string kind(strip(element.get("kind")));
  if (kind == "setup") return StepKind::setup;
  if (kind == "build") return StepKind::build;
  if (kind == "run") return StepKind::run;
  if (kind == "result") return StepKind::result;
  return StepKind::plain;
}

// A whole number of at least `least` in a key of `repeat` or `fleet`; `otherwise` if there is none.
int count_of(const Element& element, const char* key, int least, int otherwise,
             Diagnostics& diagnostics) {
  const Text text = attribute_text(element, key);
  if (text.value.empty()) return otherwise;
  const bool digits =
      text.value.size() < 7 && text.value.find_first_not_of("0123456789") == std::string::npos;
  const int count = digits ? std::atoi(text.value.c_str()) : -1;
  if (count >= least) return count;
  diagnostics.error(text.mark, fmt::format("{}: {}: '{}' is not a whole number of at least {}",
                                           element.name, key, text.value, least));
  return otherwise;
}

void read_until(const Element& element, RepeatUntil* until, Diagnostics& diagnostics) {
  until->metric = attribute_text(element, "metric");
  const Text width = attribute_text(element, "half_width");
  char* end = nullptr;
  until->half_width = std::strtod(width.value.c_str(), &end) / 100;
  const bool read = end != width.value.c_str() && std::string_view(end) == "%";
  if (width.value.empty() || (read && until->half_width > 0 && until->half_width < 1)) return;
  diagnostics.error(width.mark,
                    fmt::format("until: half_width: '{}' is not a percentage between "
                                "0% and 100%",
                                width.value),
                    "write it as 1% or 0.5%");
}

// `repeat: 5`, or `repeat: {min: 6, max: 30, warmup: 1, until: {metric: rate, half_width: 1%}}`.
// Needs the step's iterations.
void read_repeat(const Element& element, Step* s, Diagnostics& diagnostics) {
  s->repeat = text_of(element);
  const bool keys = !element.attributes.empty() || !element.children.empty();
  if (!keys) return;
  for (const Element& child : element.children) {
    if (child.name == "until") read_until(child, &s->until, diagnostics);
  }
  const bool until = !s->until.metric.value.empty();
  s->until.warmup = count_of(element, "warmup", 0, 0, diagnostics);
  const bool in_text = !s->repeat.value.empty();
  const int most = count_of(element, "max", 1, 0, diagnostics);
  constexpr int kFewestWithInterval = 6;
  s->until.min = count_of(element, "min", 1, kFewestWithInterval, diagnostics);
  if (in_text || most == 0) {
    diagnostics.error(
        element.mark,
        fmt::format("repeat of step '{}': {}", s->name.value,
                    in_text ? "a number and keys exclude each other" : "it needs `max`"),
        "repeat: {max: 10, warmup: 1}");
  } else if (!until && element.find("min") != nullptr) {
    diagnostics.error(element.mark, "repeat: `min` needs `until`",
                      "until: {metric: NAME, half_width: 1%}");
  } else if (until && s->until.min > most) {
    diagnostics.error(element.mark,
                      fmt::format("repeat: min ({}) is greater than max ({})", s->until.min, most));
  } else if (s->iterations.value != "1") {
    diagnostics.error(element.mark, "repeat with keys and `iterations` exclude each other",
                      "leave out iterations");
  }
  s->repeat = {std::to_string(s->until.warmup + std::max(most, 1)), element.mark};
}

std::set<std::string> sets_of(const AnalyseFile& file) {
  std::set<std::string> names;
  for (const Text& name : file.use) names.insert(name.value);
  return names;
}

bool is_listed(const std::string& path, const AnalyseFile& file, const Analyse& analyse) {
  return std::ranges::any_of(analyse.files, [&](const AnalyseFile& other) {
    const std::vector<Text> parts = split_text(other.path);
    return sets_of(other) == sets_of(file) &&
           std::ranges::any_of(parts, [&](const Text& part) { return part.value == path; });
  });
}

// A list of files is kept as it is written, without the parts that are listed already.
void add_files(const Element& element, Analyse* analyse) {
  AnalyseFile file{text_of(element), split_text(attribute_text(element, "use"))};
  const std::vector<Text> parts = split_text(file.path);
  std::vector<std::string> kept;
  for (const Text& part : parts) {
    const bool here = contains(kept, part.value);
    if (!here && !is_listed(part.value, file, *analyse)) kept.push_back(part.value);
  }
  if (kept.empty() && !parts.empty()) return;
  if (kept.size() != parts.size()) file.path.value = join(kept, ",");
  analyse->files.push_back(std::move(file));
}

// Adds an `analyse` to its analyser. Two of one step make one, and a file that is named twice with
// the same pattern sets is read once, as in JUBE.
void add_analyse(const Element& element, Analyser* analyser) {
  const Text step = attribute_text(element, "step");
  std::vector<Analyse>& all = analyser->analyse;
  auto same = std::ranges::find_if(
      all, [&](const Analyse& other) { return other.step.value == step.value; });
  if (same == all.end()) same = all.insert(same, Analyse{step, {}});
  for (const Element& child : element.children) {
    if (child.name == "file") add_files(child, &*same);
  }
}

// "95%" as 0.95.
double part_of(const Element& element, const char* key, double otherwise,
               Diagnostics& diagnostics) {
  const Text text = attribute_text(element, key);
  if (text.value.empty()) return otherwise;
  char* end = nullptr;
  const double part = std::strtod(text.value.c_str(), &end) / 100;
  if (end != text.value.c_str() && std::string_view(end) == "%" && part > 0 && part < 1)
    return part;
  diagnostics.error(
      text.mark,
      fmt::format("fleet: {}: '{}' is not a percentage between 0% and 100%", key, text.value),
      fmt::format("write it as {:g}%", 100 * otherwise));
  return otherwise;
}

Fleet read_fleet(const Element& element, Diagnostics& diagnostics) {
  Fleet fleet;
  fleet.any = true;
  fleet.mark = element.mark;
  fleet.rule.at_least = part_of(element, "at_least", fleet.rule.at_least, diagnostics);
  fleet.rule.of_median = part_of(element, "of_median", fleet.rule.of_median, diagnostics);
  fleet.rule.wrong = part_of(element, "wrong", fleet.rule.wrong, diagnostics);
  fleet.first = count_of(element, "first", 1, fleet.first, diagnostics);
  fleet.same = split_text(attribute_text(element, "same"));
  fleet.show = split_text(attribute_text(element, "show"));
  fleet.part = attribute_text(element, "part");
  return fleet;
}

class BenchmarkBuilder {
 public:
  BenchmarkBuilder(const SetFile& home, SetBuilder& sets, Benchmark* benchmark,
                   Diagnostics& diagnostics)
      : home_(home), sets_(sets), benchmark_(*benchmark), diagnostics_(diagnostics) {}

  void build(const Element& element) {
    bool has_comment = false;
    for (const Element& child : element.children) {
      if (child.name == "comment") {
        // JUBE takes the first.
        if (!has_comment) benchmark_.comment = one_line(child.text.value);
        has_comment = true;
      } else if (child.name == "step") {
        add_named(step(child), child, &benchmark_.steps);
      } else if (child.name == "analyser") {
        add_named(analyser(child), child, &benchmark_.analysers);
      } else if (child.name == "result") {
        benchmark_.results.push_back(result(child));
      } else if (child.name == "fleet") {
        benchmark_.fleet = read_fleet(child, diagnostics_);
      }
    }
  }

 private:
  template <typename T>
  void add_named(T item, const Element& element, std::vector<T>* all) {
    for (const T& other : *all) {
      if (other.name.value != item.name.value || item.name.value.empty()) continue;
      diagnostics_.error(item.name.mark, fmt::format("{} is defined twice", describe(element)));
      diagnostics_.note(other.name.mark, "the first one is here");
      return;
    }
    all->push_back(std::move(item));
  }

  // Adds the sets that one `use` names, under their names in the benchmark.
  void add_use(const Element& element, bool pattern_sets, std::vector<Text>* use) {
    std::vector<Text> names = split_text(text_of(element));
    Text from = attribute_text(element, "from");
    if (!from.value.empty()) names = sets_.add_from(from, names, pattern_sets, home_, &benchmark_);
    for (Text& name : names) {
      for (const Text& other : *use) {
        if (other.value != name.value) continue;
        diagnostics_.error(name.mark,
                           fmt::format("Element \"{}\" can only be used once", name.value));
        diagnostics_.note(other.mark, "it is used here already");
        break;
      }
      use->push_back(std::move(name));
    }
  }

  static Operation operation(const Element& element) {
    Operation op;
    op.command = text_of(element);
    op.active = attribute_text(element, "active", "true");
    op.stdout_file = attribute_text(element, "stdout");
    op.stderr_file = attribute_text(element, "stderr");
    op.work_dir = attribute_text(element, "work_dir");
    op.done_file = attribute_text(element, "done_file");
    op.error_file = attribute_text(element, "error_file");
    op.break_file = attribute_text(element, "break_file");
    op.shared = boolean_or(element.get("shared"), false);
    return op;
  }

  // `s`: gets parameters for the keys with lists. Null: no key has one.
  Resources resources(const Element& element, Step* s) {
    Resources r;
    r.any = true;
    for (const ResourceKey& one : resource_keys()) {
      const Attribute* given = element.find(one.key);
      const bool list = given != nullptr && given->of_list;
      r.*one.text =
          list && s != nullptr ? add_points(element, *given, s) : attribute_text(element, one.key);
      if (list && s == nullptr)
        diagnostics_.error(given->value.mark,
                           fmt::format("'{}' of a component has one value", one.key),
                           "a parameter may have several: nodes: $nodes");
    }
    for (const Element& child : element.children) {
      if (child.name != "options") continue;
      for (auto& option : all_attributes(child)) r.extra.push_back(std::move(option));
    }
    return r;
  }

  // Makes a parameter of the list of a key, in a set of the step's own. Returns its name as a text.
  Text add_points(const Element& element, const Attribute& key, Step* s) {
    std::vector<std::string> values;
    for (const Attribute& one : element.attributes)
      if (one.name.value == key.name.value) values.emplace_back(strip(one.value.value));
    const bool commas = std::ranges::any_of(
        values, [](const std::string& value) { return value.find(',') != std::string::npos; });
    Parameter parameter;
    parameter.name = key.name;
    parameter.separator = commas ? "\n" : ",";
    parameter.value = {join(values, parameter.separator), key.value.mark};
    // A value that is no number has been reported.
    if (find_key("resources", key.name.value)->rule == ValueRule::number &&
        std::ranges::all_of(values, is_number_or_parameter))
      parameter.type = ValueType::integer;
    if (sets_.rules().names_are_the_users) parameter.owner = Owner::user;
    const std::string name = "resources of " + s->name.value;
    ParameterSet& set = benchmark_.parameter_sets[name];
    if (set.parameters.empty()) {
      set.name = {name, element.mark};
      s->use.push_back(set.name);
    }
    set.parameters.push_back(std::move(parameter));
    return {"$" + key.name.value, key.value.mark};
  }

  static Container container(const Element& element) {
    Container c;
    c.runtime = attribute_text(element, "runtime");
    c.image = attribute_text(element, "image");
    c.gpus = attribute_text(element, "gpus");
    c.bind = attribute_text(element, "bind");
    c.args = attribute_text(element, "args");
    for (const Element& child : element.children) {
      if (child.name != "env") continue;
      for (auto& variable : all_attributes(child)) c.env.push_back(std::move(variable));
    }
    return c;
  }

  // Each component is the step with its own resources and program.
  Step component(const Element& element, Step one) {
    one.name.mark = element.mark;
    one.resources = {};
    one.launch = {};
    for (const Element& child : element.children) {
      if (child.name == "resources") one.resources = resources(child, nullptr);
      if (child.name == "launch") add_to_step(child, &one);
    }
    check_single(element, "resources", "two lists of resources");
    if (one.launch.value.empty())
      diagnostics_.error(element.mark,
                         fmt::format("a component of step '{}' launches nothing", one.name.value),
                         "launch: the program of its tasks");
    return one;
  }

  // The first component is the step itself.
  void add_components(const Element& element, Step* s) {
    std::vector<Step> all;
    for (const Element& child : element.children) {
      if (child.name != "components") continue;
      all.push_back(component(child, *s));
      Text& time = all.back().resources.time;
      if (all.size() > 1 && !time.value.empty())
        diagnostics_.error(time.mark, "the components of a job have one time limit",
                           "give it to the first of them");
      time = all.front().resources.time;
    }
    if (all.empty()) return;
    for (const Element& child : element.children) {
      if (child.name != "resources" && child.name != "launch" && child.name != "pack") continue;
      diagnostics_.error(
          child.mark, fmt::format("{} has '{}' and 'components'", describe(element), child.name),
          child.name == "pack" ? "such a job cannot be shared" : "each component has its own");
    }
    s->resources = all.front().resources;
    s->launch = all.front().launch;
    s->components.assign(std::make_move_iterator(all.begin() + 1),
                         std::make_move_iterator(all.end()));
  }

  // Adds the four sets from the file or the name in `platform`.
  void add_platform(const Element& element, Step* s) {
    Text from = text_of(element);
    if (from.value.empty()) return;
    s->platform = from.value.substr(from.value.rfind('/') + 1);
    s->platform = s->platform.substr(0, s->platform.rfind('.'));
    std::vector<Text> names;
    for (const std::string& name : platform_sets()) names.push_back({name, element.mark});
    for (Text& name : sets_.add_from(from, names, false, home_, &benchmark_)) {
      s->use.push_back(std::move(name));
    }
  }

  Step step(const Element& element) {
    Step s;
    s.name = attribute_text(element, "name");
    s.kind = step_kind(element);
    for (Text& name : split_text(attribute_text(element, "depend"))) {
      auto same = [&](const Text& other) { return other.value == name.value; };
      if (std::ranges::none_of(s.depend, same)) s.depend.push_back(std::move(name));
    }
    s.work_dir = attribute_text(element, "work_dir");
    s.suffix = attribute_text(element, "suffix");
    s.active = attribute_text(element, "active", "true");
    s.shared = attribute_text(element, "shared").value;
    s.exported = boolean_or(element.get("export"), false);
    s.max_async = attribute_text(element, "max_async", "0");
    s.iterations = attribute_text(element, "iterations", "1");
    s.cycles = attribute_text(element, "cycles", "1");
    s.procs = attribute_text(element, "procs", "1");
    s.do_log_file = attribute_text(element, "do_log_file");
    s.timeout = attribute_text(element, "timeout");
    s.retry = attribute_text(element, "retry");
    s.repeat = attribute_text(element, "repeat");
    s.gpu_slots = attribute_text(element, "gpu_slots");
    s.reuse = boolean_or(element.get("reuse"), true);
    s.quiet_check = boolean_or(element.get("quiet_check"), true);
    for (const Element& child : element.children) add_to_step(child, &s);
    add_components(element, &s);
    check_single(element, "platform", "two platforms");
    check_single(element, "resources", "two lists of resources");
    check_kind(element, s);
    return s;
  }

  void add_to_step(const Element& child, Step* s) {
    if (child.name == "use") {
      add_use(child, false, &s->use);
    } else if (child.name == "do") {
      s->operations.push_back(operation(child));
    } else if (child.name == "resources") {
      s->resources = resources(child, s);
    } else if (child.name == "repeat") {
      read_repeat(child, s, diagnostics_);
    } else if (child.name == "platform") {
      add_platform(child, s);
    } else if (child.name == "container") {
      s->container = container(child);
    } else if (child.name == "pack") {
      s->pack = {text_of(child), attribute_text(child, "size"), attribute_text(child, "at_once")};
    } else if (child.name == "launch") {
      if (!s->launch.value.empty()) {
        diagnostics_.error(child.mark, "a step launches one program",
                           "put further commands under 'do', or make a second step");
      }
      s->launch = text_of(child);
    } else if (child.name == "env") {
      for (auto& variable : all_attributes(child)) s->env.push_back(std::move(variable));
    } else if (child.name == "env_unset") {
      append(text_of(child), &s->env_unset);
    } else if (child.name == "modules") {
      append(text_of(child), &s->modules);
    } else if (child.name == "expect") {
      append(text_of(child), &s->expect);
    } else if (child.name == "input") {
      append(text_of(child), &s->inputs);
    }
  }

  // The last of several would silently take the place of the others.
  void check_single(const Element& element, const char* name, const char* two) {
    const Element* first = nullptr;
    for (const Element& child : element.children) {
      if (child.name != name) continue;
      if (first) {
        diagnostics_.error(child.mark, fmt::format("{} has {}", describe(element), two),
                           "give each a tag, so that one of them is left");
        diagnostics_.note(first->mark, "the other one is here");
      }
      first = &child;
    }
  }

  void check_kind(const Element& element, const Step& s) {
    if (s.kind != StepKind::run && !s.launch.value.empty()) {
      diagnostics_.error(s.launch.mark,
                         fmt::format("'launch' in {} needs kind: run", describe(element)),
                         "other steps have commands under 'do'");
    }
    for (const Element& child : element.children) {
      if (s.kind == StepKind::run) break;
      if (child.name != "resources" && child.name != "platform" && child.name != "container" &&
          child.name != "pack" && child.name != "components") {
        continue;
      }
      diagnostics_.error(child.mark,
                         fmt::format("'{}' in {} needs kind: run", child.name, describe(element)));
    }
    if (s.kind != StepKind::setup && s.kind != StepKind::build) check_reuse(element);
    const bool components = std::ranges::any_of(
        element.children, [](const Element& child) { return child.name == "components"; });
    if (s.operations.empty() && s.launch.value.empty() && !components &&
        s.kind != StepKind::plain && s.kind != StepKind::result) {
      diagnostics_.error(element.mark, fmt::format("{} does nothing", describe(element)),
                         s.kind == StepKind::run ? "give it 'launch' or 'do'" : "give it 'do'");
    }
  }

  // `input` and `reuse` decide whether work is done again. Only setup and build steps can skip
  // work.
  void check_reuse(const Element& element) {
    const auto say = [&](const Mark& mark, const char* key) {
      diagnostics_.error(
          mark, fmt::format("'{}' in {} needs kind: setup or build", key, describe(element)),
          "other steps always run again");
    };
    for (const Element& child : element.children) {
      if (child.name == "input") say(child.mark, "input");
    }
    if (const Attribute* reuse = element.find("reuse")) say(reuse->value.mark, "reuse");
  }

  Analyser analyser(const Element& element) {
    Analyser a;
    a.name = attribute_text(element, "name");
    a.reduce = boolean_or(element.get("reduce"), true);
    a.rows = split_text(attribute_text(element, "rows"));
    for (const Element& child : element.children) {
      if (child.name == "use") {
        add_use(child, true, &a.use);
      } else if (child.name == "analyse") {
        add_analyse(child, &a);
      }
    }
    return a;
  }

  Result result(const Element& element) {
    Result r;
    r.result_dir = attribute_text(element, "result_dir");
    for (const Element& child : element.children) {
      if (child.name == "use") {
        add_use(child, true, &r.use);
      } else {
        add_output(child, &r, diagnostics_);
      }
    }
    return r;
  }

  const SetFile& home_;
  SetBuilder& sets_;
  Benchmark& benchmark_;
  Diagnostics& diagnostics_;
};

}  // namespace

void build_benchmark(const Element& element, const SetFile& home, SetBuilder& sets,
                     Benchmark* benchmark, Diagnostics& diagnostics) {
  BenchmarkBuilder(home, sets, benchmark, diagnostics).build(element);
  for (Step& step : benchmark->steps) {
    for (const Text& name : step.use) {
      const auto set = benchmark->parameter_sets.find(name.value);
      if (set == benchmark->parameter_sets.end()) continue;
      for (const Parameter& parameter : set->second.parameters) {
        if (parameter.name.value == "scheduler")
          step.scheduler = sets.files().table(parameter.value.value);
      }
    }
    for (Step& component : step.components) component.scheduler = step.scheduler;
  }
}

}  // namespace tally

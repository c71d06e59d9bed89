#include "engine/expand/expand.h"

#include <algorithm>
#include <unordered_map>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/expand/definitions.h"
#include "engine/expand/expansion.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/builtin_names.h"

namespace tally {
namespace {

// The value of a name whose phase is run or step. `step`: null for the phase run.
std::string value_of(Builtin name, const RunInfo& run, const Step* step) {
  switch (name) {
    case Builtin::benchmark_id:
      return std::to_string(run.id);
    case Builtin::benchmark_padid:
      return padded_id(run.id);
    case Builtin::benchmark_name:
      return run.name;
    case Builtin::benchmark_home:
      return run.home;
    case Builtin::benchmark_rundir:
      return run.rundir.empty() ? std::string() : absolute_path(run.rundir);
    case Builtin::benchmark_start:
      return run.start;
    case Builtin::step_name:
      return step->name.value;
    case Builtin::step_iterations:
      return step->iterations.value;
    case Builtin::step_cycles:
      return step->cycles.value;
    default:
      return {};  // of a workpackage
  }
}

}  // namespace

Builtins run_builtins(const RunInfo& run, const Step* step) {
  Builtins values;
  for (const BuiltinName& one : builtin_names()) {
    if (one.phase == BuiltinPhase::run || (one.phase == BuiltinPhase::step && step != nullptr))
      values.emplace_back(one.name, value_of(one.id, run, step));
  }
  return values;
}

struct Expander::Impl {
  Impl(const Benchmark& bench, const RunInfo& run, Evaluator& eval, TextPool& texts,
       const std::set<std::string>& tag_set)
      : benchmark(bench),
        info(run),
        evaluator(eval),
        pool(texts),
        tags(tag_set),
        definitions(texts) {}

  // Made once per step. The steps outlive the object.
  const Builtins& step_builtins(const Step& step) const {
    Builtins& all = by_step[&step];
    if (all.empty()) all = run_builtins(info, &step);
    return all;
  }

  // Whether finish() works for a run or a plan. A plan leaves open what only a run can compute.
  enum class Purpose { run, plan };
  bool start_cycle(Point& point);
  // How values that are not final are computed.
  struct Finishing {
    const Builtins& late;  // those of the workpackage
    Purpose purpose = Purpose::run;
    const Names& later;     // names that are known later
    Mark* place = nullptr;  // if given: of the value that cannot be computed
  };
  std::string finish(const Step& step, Point& point, const Finishing& how);
  std::string resolve(Point& point, const Finishing& how, const Builtins& early, bool last,
                      bool* changed);
  bool blocked(const Point& point, const Binding& binding, const Names& later) const;
  std::string evaluate(Binding& binding, const std::string& text, bool literal);

  const Benchmark& benchmark;
  RunInfo info;
  Evaluator& evaluator;
  TextPool& pool;
  std::set<std::string> tags;
  mutable std::unordered_map<const Step*, Builtins> by_step;
  Definitions definitions;
  std::set<std::pair<const Step*, const Text*>> reported;
  std::set<std::string> not_computed;
};

// Whether a value refers to one that is known later, or to one that is not final, possibly itself.
bool Expander::Impl::blocked(const Point& point, const Binding& binding, const Names& later) const {
  for (const std::string& name : dollar_names(pool[binding.value])) {
    if (contains(later, name)) return true;
    const Binding* other = find_binding(point, pool, name);
    if (other != nullptr && progress(*other) != Progress::closed) return true;
  }
  return false;
}

// Stores the final value made from a substituted text. Returns an error text, or "".
std::string Expander::Impl::evaluate(Binding& binding, const std::string& text, bool literal) {
  const Parameter& parameter = *definitions.of(binding).parameter;
  std::string value;
  if (parameter.mode == Mode::text) {
    value = text;
  } else if (parameter.mode == Mode::tag) {
    value = tags.count(text) > 0 ? text : "";
  } else {
    Evaluation result = evaluator.evaluate_one(parameter.mode, text);
    if (result.unknown) return {};  // the binding stays open
    if (!result.ok)
      return evaluation_error(parameter, text, result, benchmark.rules.value_errors_are_explained);
    value = std::move(result.value);
  }
  const TextId id = definitions.piece_again(binding, pool.intern(value));
  definitions.close(binding, id, literal);
  return value_error(parameter, pool[id], benchmark.rules.fractions_are_kept);
}

// One pass over the values that are not final. With `last`, values that wait for each other are
// resolved too.
std::string Expander::Impl::resolve(Point& point, const Finishing& how, const Builtins& early,
                                    bool last, bool* changed) {
  const Purpose purpose = how.purpose;
  Mark* const place = how.place;
  bool literal = false;
  const Lookup lookup = [&](std::string_view name) -> const std::string* {
    if (const Binding* found = find_binding(point, pool, name)) {
      const Binding& b = *found;
      if (progress(b) != Progress::closed) return nullptr;
      if (!is_unresolved(b) && has_dollar(pool[b.value])) literal = true;
      return &pool[b.value];
    }
    for (const Builtins* list : {&how.late, &early}) {
      for (const auto& [key, value] : *list) {
        if (key == name) return &value;
      }
    }
    return nullptr;
  };
  // Values that wait for each other are all computed from the state before this pass, so that their
  // order does not matter.
  struct Ready {
    Binding* binding;
    std::string text;
    bool literal;
  };
  std::vector<Ready> ready;
  for (Binding& binding : point.bindings) {
    if (progress(binding) == Progress::closed) continue;
    if (blocked(point, binding, how.later) && (!last || purpose == Purpose::plan)) continue;
    const Mode mode = definitions.of(binding).parameter->mode;
    if (purpose == Purpose::plan && (mode == Mode::shell || mode == Mode::perl)) continue;
    literal = pool[binding.value].find("$$") != std::string::npos;
    std::string text = substitute(pool[binding.value], lookup);
    if (text.size() > longest_text) {
      const Parameter& parameter = *definitions.of(binding).parameter;
      if (place != nullptr) *place = parameter.value.mark;
      return too_long(parameter);
    }
    ready.push_back({&binding, std::move(text), literal});
  }
  for (const Ready& each : ready) {
    std::string error = evaluate(*each.binding, each.text, each.literal);
    if (error.empty()) {
      *changed = *changed || progress(*each.binding) == Progress::closed;
    } else if (purpose == Purpose::run) {
      if (place != nullptr) *place = definitions.of(*each.binding).parameter->value.mark;
      return error;
    }
  }
  return {};
}

// Opens the values that are computed again when the first cycle begins. Returns whether there are
// any.
bool Expander::Impl::start_cycle(Point& point) {
  bool any = false;
  for (Binding& binding : point.bindings) {
    if (!is_until_cycle(binding)) continue;
    definitions.restart(binding);
    any = true;
  }
  return any;
}

std::string Expander::Impl::finish(const Step& step, Point& point, const Finishing& how) {
  const Builtins& early = step_builtins(step);
  for (bool last = false;;) {
    bool changed = false;
    std::string error = resolve(point, how, early, last, &changed);
    if (!error.empty()) return error;
    // The step's own values come first: they read those of the step before, as in JUBE.
    const bool goes_on = changed || (how.later.empty() && start_cycle(point));
    if (!goes_on && (last || !how.later.empty())) return {};
    last = !goes_on;
  }
}

Expander::Expander(const Benchmark& benchmark, const RunInfo& run, Evaluator& evaluator,
                   TextPool& pool, const std::set<std::string>& tags)
    : impl_(std::make_unique<Impl>(benchmark, run, evaluator, pool, tags)) {}

Expander::~Expander() = default;

StepPoints Expander::expand(const Step& step, const std::vector<const Point*>& parents,
                            Diagnostics& diagnostics) {
  const Builtins& builtins = impl_->step_builtins(step);
  const ExpansionContext context{
      impl_->benchmark, impl_->evaluator, impl_->definitions,  impl_->tags,
      builtins,         impl_->reported,  impl_->not_computed, impl_->info.most_points};
  return Expansion(context, step, diagnostics).run(parents);
}

std::string Expander::finish(const Step& step, Point& point, const Builtins& builtins, Mark* place,
                             const Names& later) {
  if (is_final(point)) return {};
  return impl_->finish(step, point, {builtins, Impl::Purpose::run, later, place});
}

std::vector<std::string> Expander::finish_for_plan(const Step& step, Point& point,
                                                   const Builtins& builtins, const Names& later) {
  std::vector<std::string> open;
  if (is_final(point)) return open;
  impl_->finish(step, point, {builtins, Impl::Purpose::plan, later});
  for (const Binding& binding : point.bindings) {
    if (!is_final(binding)) open.push_back(impl_->pool[binding.name]);
  }
  return open;
}

std::string Expander::update(const Step& step, Point& point, const Builtins& builtins) {
  bool any = false;
  for (Binding& binding : point.bindings) {
    if (!updates_in_cycle(definition(binding).update)) continue;
    impl_->definitions.restart(binding);
    any = true;
  }
  return any ? impl_->finish(step, point, {builtins, Impl::Purpose::run, {}}) : std::string();
}

const Parameter& Expander::definition(const Binding& binding) const {
  return *impl_->definitions.of(binding).parameter;
}

const RunInfo& Expander::run() const {
  return impl_->info;
}
const TextPool& Expander::pool() const {
  return impl_->pool;
}
Evaluator& Expander::evaluator() const {
  return impl_->evaluator;
}
std::set<std::string>& Expander::not_computed() {
  return impl_->not_computed;
}
Builtins Expander::step_builtins(const Step& step) const {
  return impl_->step_builtins(step);
}

bool Expander::is_final(const Binding& binding) const {
  return is_final_value(binding);
}

bool Expander::is_final(const Point& point) const {
  // Many plans have a million points.
  return std::ranges::all_of(point.bindings, [](const Binding& b) { return is_final_value(b); });
}

std::string Expander::definition_key(const Binding& binding) const {
  const Definition& definition = impl_->definitions.of(binding);
  const char* mark = !is_final(binding) ? "?" : is_unresolved(binding) ? "$" : "";
  return definition.set->name.value + "/" + impl_->pool[binding.name] + mark;
}

const Parameter* find_definition(const Benchmark& benchmark, const std::string& key,
                                 const ParameterSet** set) {
  const size_t slash = key.rfind('/');
  if (slash == std::string::npos) return nullptr;
  const auto found = benchmark.parameter_sets.find(key.substr(0, slash));
  if (found == benchmark.parameter_sets.end()) return nullptr;
  const size_t mark = key.back() == '?' || key.back() == '$' ? 1 : 0;
  const std::string_view name =
      std::string_view(key).substr(slash + 1, key.size() - slash - 1 - mark);
  const std::string_view moved = without_platform_prefix(name);
  for (const Parameter& parameter : found->second.parameters) {
    if (parameter.name.value != name && (moved.empty() || parameter.name.value != moved)) continue;
    if (set != nullptr) *set = &found->second;
    return &parameter;
  }
  return nullptr;
}

bool Expander::restore(const std::string& key, const std::string& value, uint32_t index,
                       Binding* binding) {
  const ParameterSet* set = nullptr;
  const Parameter* parameter = find_definition(impl_->benchmark, key, &set);
  if (parameter == nullptr) return false;
  const uint32_t number = impl_->definitions.number(*set, *parameter);
  const TextId own = impl_->definitions[number].name;
  // The name in the key differs where the user has a parameter of the platform's name.
  const bool moved = key.find("/" + platform_name(parameter->name.value)) != std::string::npos;
  const TextId name = moved ? impl_->pool.intern(platform_name(parameter->name.value)) : own;
  *binding = {name, impl_->pool.intern(value), index,
              with_progress(number, key.back() == '?' ? Progress::raw : Progress::closed) |
                  (key.back() == '$' ? unresolved_bit : 0)};
  return true;
}

}  // namespace tally

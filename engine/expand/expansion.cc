#include "engine/expand/expansion.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/expand/where_rules.h"
#include "engine/workflow/builtin_names.h"

namespace tally {
namespace {}  // namespace

bool starts_anew(UpdateMode mode, bool set_is_used) {
  if (mode == UpdateMode::use || mode == UpdateMode::always) return set_is_used;
  return mode == UpdateMode::step;
}

bool updates_in_cycle(UpdateMode mode) {
  return mode == UpdateMode::cycle || mode == UpdateMode::always;
}

std::string evaluation_error(const Parameter& parameter, const std::string& expression,
                             const Evaluation& evaluation, bool explained) {
  std::string shown = expression;
  std::string why = evaluation.error;
  if (explained) {
    constexpr size_t kMost = 160;
    if (shown.size() > kMost) {
      size_t end = kMost;  // not inside a character of UTF-8
      while (end > 0 && (static_cast<unsigned char>(shown[end]) & 0xC0U) == 0x80U) --end;
      shown = shown.substr(0, end) + " ...";
    }
    // Python's text of a KeyError is the key alone.
    if (why.size() > 1 && why.front() == '\'' && why.back() == '\'') why = "KeyError: " + why;
  }
  return "Cannot evaluate \"" + shown + "\" for parameter \"" + parameter.name.value + "\": " + why;
}

std::string too_long(const Parameter& parameter) {
  return "the value of parameter \"" + parameter.name.value + "\" becomes longer than " +
         std::to_string(longest_text >> 20) +
         " MiB; parameters that contain each other twice double at every step";
}

// ---- start: parents' values and the step's own sets

void Expansion::add_slot(const Binding& binding, Layout& layout, Point& point) {
  const auto slot = static_cast<uint32_t>(layout.names.size());
  layout.names.push_back(binding.name);
  layout.slots.emplace(context_.definitions.pool()[binding.name], slot);
  layout.zip_of.push_back(-1);
  point.bindings.push_back(binding);
}

// The name under which the point has a parameter that is called `name`. Where the user and the
// platform have parameters of one name, the user's keeps it, and the platform's has its prefix.
TextId Expansion::name_in(TextId name, const Parameter& parameter, Layout& layout,
                          Point& point) const {
  TextPool& pool = context_.definitions.pool();
  const auto found = layout.slots.find(pool[name]);
  if (found == layout.slots.end()) return name;
  const uint32_t slot = found->second;
  const Owner present = context_.definitions.of(point.bindings[slot]).parameter->owner;
  if (present == Owner::user && parameter.owner == Owner::platform)
    return pool.intern(platform_name(parameter.name.value));
  if (present == Owner::platform && parameter.owner == Owner::user) {
    const TextId moved = pool.intern(platform_name(parameter.name.value));
    layout.slots.erase(found);
    layout.slots.emplace(pool[moved], slot);
    layout.names[slot] = moved;
    point.bindings[slot].name = moved;
  }
  return name;
}

void Expansion::collect_own_sets() {
  for (const Text& use : step_.use) {
    if (has_dollar(use.value)) continue;
    for (const std::string& name : split_strip(use.value, ",")) {
      const auto set = context_.benchmark.parameter_sets.find(name);
      if (set == context_.benchmark.parameter_sets.end()) continue;
      own_sets_.insert(&set->second);
      for (const Parameter& parameter : set->second.parameters)
        has_platform_ = has_platform_ || parameter.owner == Owner::platform;
    }
  }
}

// Whether a parameter is of the platform of a step before this one, which has another platform.
bool Expansion::is_of_other_platform(const Binding& binding) const {
  const Definition& definition = context_.definitions.of(binding);
  return has_platform_ && definition.parameter->owner == Owner::platform &&
         own_sets_.count(definition.set) == 0;
}

bool Expansion::starts_anew(const Binding& binding) const {
  const Definition& definition = context_.definitions.of(binding);
  return tally::starts_anew(definition.parameter->update, own_sets_.count(definition.set) > 0);
}

// Whether a set of this step replaces a parent's parameter by its own.
bool Expansion::is_replaced(const Binding& present, const Binding& own) const {
  const Definition& definition = context_.definitions.of(own);
  const UpdateMode mode = definition.parameter->update;
  return tally::starts_anew(mode, true) ||
         (mode == UpdateMode::cycle && context_.definitions.of(present).text != definition.text);
}

// Adds the parents' parameters, each once. Returns false when two parents disagree about a
// parameter that is not updated.
bool Expansion::inherit(const std::vector<const Point*>& parents, Layout& layout, Point& point) {
  for (const Point* parent : parents) {
    for (const Binding& binding : parent->bindings) {
      if (is_of_other_platform(binding)) continue;
      const Parameter& parameter = *context_.definitions.of(binding).parameter;
      const TextId name = name_in(binding.name, parameter, layout, point);
      const auto found = layout.slots.find(context_.definitions.pool()[name]);
      if (found == layout.slots.end()) {
        Binding own = binding;
        const UpdateMode mode = context_.definitions.of(binding).parameter->update;
        if (starts_anew(binding)) {
          own = context_.definitions.fresh(definition_number(binding));
        } else if (mode == UpdateMode::always) {
          context_.definitions.restart(own);
        }
        own.name = name;
        add_slot(own, layout, point);
        continue;
      }
      const Binding& present = point.bindings[found->second];
      if (starts_anew(binding) || progress(present) != Progress::closed) continue;
      const UpdateMode mode = context_.definitions.of(binding).parameter->update;
      const bool same = present.value == binding.value || updates_in_cycle(mode);
      if (!same || present.index != binding.index) return false;
    }
  }
  layout.own_begin = static_cast<uint32_t>(layout.names.size());
  return true;
}

void Expansion::add_zips(const ParameterSet& set, Layout& layout) {
  for (const std::vector<Text>& group : set.zip) {
    std::vector<uint32_t> slots;
    for (const Text& name : group) {
      const auto slot = layout.slots.find(name.value);
      if (slot != layout.slots.end()) slots.push_back(slot->second);
    }
    for (const uint32_t slot : slots) layout.zip_of[slot] = static_cast<int>(layout.zips.size());
    layout.zips.push_back(std::move(slots));
  }
}

// Whether two definitions have one text. In that of a platform's file the names have a prefix.
bool Expansion::same_text(const Definition& a, const Definition& b) const {
  if (a.text == b.text) return true;
  if (a.parameter->owner == b.parameter->owner) return false;
  const TextPool& pool = context_.definitions.pool();
  std::string texts[] = {pool[a.text], pool[b.text]};
  for (std::string& text : texts) replace_all(text, std::string(kPlatformPrefix), "");
  return texts[0] == texts[1];
}

// Returns false when the step gets no points; the reason has then been reported.
bool Expansion::add_set(const ParameterSet& set, const Text& use, Layout& layout, Point& point) {
  if (contains(layout.sets, &set)) return true;
  layout.sets.push_back(&set);
  for (const Parameter& parameter : set.parameters) {
    Binding fresh = context_.definitions.fresh(context_.definitions.number(set, parameter));
    fresh.name = name_in(fresh.name, parameter, layout, point);
    const auto found = layout.slots.find(context_.definitions.pool()[fresh.name]);
    if (found == layout.slots.end()) {
      add_slot(fresh, layout, point);
      continue;
    }
    const uint32_t slot = found->second;
    const Definition& present = context_.definitions.of(point.bindings[slot]);
    const bool same = same_text(present, context_.definitions.of(fresh));
    if (slot >= layout.own_begin) {
      if (same) continue;
      if (!first_report(use)) return false;
      diagnostics_.error(use.mark,
                         "Cannot use parameterset '" + set.name.value + "' in step '" +
                             step_.name.value + "'.\nParameter '" + parameter.name.value +
                             "' is/are already defined by a different parameterset.",
                         "set '" + present.set->name.value + "' gives it '" +
                             present.parameter->value.value + "', set '" + set.name.value +
                             "' gives it '" + parameter.value.value + "'");
      return false;
    }
    if (is_replaced(point.bindings[slot], fresh)) {
      point.bindings[slot] = fresh;
    } else if (!same) {
      if (!first_report(use)) return false;
      diagnostics_.warning(
          use.mark,
          "step '" + step_.name.value + "' gets no workpackages here: set '" + set.name.value +
              "' defines parameter '" + parameter.name.value + "' as '" + parameter.value.value +
              "', a step before it already as '" + present.parameter->value.value + "'",
          "rename one of them, or set update_mode to 'use' to take the new value");
      return false;
    }
  }
  add_zips(set, layout);
  for (const Text& rule : set.where) layout.rules.push_back(&rule);
  return true;
}

// Adds the parameter sets from a comma-separated list of set names.
bool Expansion::add_use(const Text& use, const std::string& names, Layout& layout, Point& point) {
  const Benchmark& benchmark = context_.benchmark;
  for (const std::string& name : split_strip(names, ",")) {
    if (name.empty()) continue;
    const auto set = benchmark.parameter_sets.find(name);
    if (set != benchmark.parameter_sets.end()) {
      if (!add_set(set->second, use, layout, point)) return false;
    } else if (benchmark.file_sets.count(name) == 0 && benchmark.substitute_sets.count(name) == 0) {
      // JUBE takes nothing: a site may have sets of its own that others lack.
      const bool from_parameter =
          !benchmark.rules.unknown_names_are_errors && has_dollar_name(use.value);
      if (!first_report(use)) {
        if (from_parameter) continue;
        return false;
      }
      if (from_parameter) {
        diagnostics_.warning(use.mark, fmt::format("step '{}' takes nothing of '{}', which '{}' "
                                                   "is here: there is no set of that name",
                                                   step_.name.value, name, use.value));
        continue;
      }
      std::vector<std::string> known;
      for (const auto& entry : benchmark.parameter_sets) known.push_back(entry.first);
      for (const auto& entry : benchmark.file_sets) known.push_back(entry.first);
      for (const auto& entry : benchmark.substitute_sets) known.push_back(entry.first);
      diagnostics_.error(use.mark, "<use>" + name + "</use> not found in available sets",
                         did_you_mean(name, known));
      return false;
    }
  }
  return true;
}

// ---- sets whose names depend on parameters

// Whether the names in `use` are still unknown for this work.
bool Expansion::waits(const Work& work, const Text& use, std::string* names) const {
  bool open = false;
  const TextPool& pool = context_.definitions.pool();
  const Lookup lookup = [&](std::string_view name) -> const std::string* {
    if (const uint32_t* found = work.layout->find(name)) {
      const Binding& b = work.point.bindings[*found];
      if (progress(b) == Progress::closed) return &pool[b.value];
      open = true;
      return nullptr;
    }
    for (const auto& [key, value] : context_.builtins) {
      if (key == name) return &value;
    }
    open = true;
    return nullptr;
  };
  *names = substitute(use.value, lookup);
  return open;
}

// Gives a work the sets of a layout that was already made for another work. Only the values need to
// be added.
void Expansion::take_layout(Work& work, const Layout& layout) const {
  for (const ParameterSet* set : layout.sets) {
    const bool in_old = contains(work.layout->sets, set);
    for (const Parameter& parameter : set->parameters) {
      Binding fresh = context_.definitions.fresh(context_.definitions.number(*set, parameter));
      auto found = layout.slots.end();
      if (parameter.owner == Owner::platform)
        found = layout.slots.find(platform_name(parameter.name.value));
      const uint32_t slot =
          found != layout.slots.end() ? found->second : layout.slots.at(parameter.name.value);
      fresh.name = layout.names[slot];
      if (slot >= work.point.bindings.size()) {
        work.point.bindings.push_back(fresh);
      } else if (!in_old && slot < layout.own_begin &&
                 is_replaced(work.point.bindings[slot], fresh)) {
        work.point.bindings[slot] = fresh;
      }
    }
  }
  for (size_t slot = 0; slot < work.point.bindings.size(); ++slot)
    work.point.bindings[slot].name = layout.names[slot];
  work.layout = &layout;
}

// Adds the sets whose names have become known. Returns whether there were any.
bool Expansion::resolve_uses() {
  struct Key {
    const Layout* layout;
    const Text* use;
    std::string names;
    bool operator<(const Key& other) const {
      return std::tie(layout, use, names) < std::tie(other.layout, other.use, other.names);
    }
  };
  std::map<Key, const Layout*> made;
  bool any = false;
  for (Work& work : works_) {
    if (!work.error.empty() || work.layout->uses.empty()) continue;
    for (const Text* use : std::vector<const Text*>(work.layout->uses)) {
      std::string names;
      if (waits(work, *use, &names)) continue;
      any = true;
      const Key key{work.layout, use, names};
      const auto known = made.find(key);
      if (known != made.end()) {
        take_layout(work, *known->second);
        continue;
      }
      Layout next = *work.layout;
      next.uses.erase(std::find(next.uses.begin(), next.uses.end(), use));
      if (!add_use(*use, names, next, work.point)) {
        work.error = "the sets that this point uses do not fit together";
        break;
      }
      layouts_.push_back(std::move(next));
      made.emplace(key, &layouts_.back());
      work.layout = &layouts_.back();
    }
    open_slots(work);
  }
  return any;
}

// Lists the values that are not final. A parent's value is opened again if it names something that
// this work knows.
void Expansion::open_slots(Work& work) const {
  const auto known = [&](TextId name) {
    const std::string& text = context_.definitions.pool()[name];
    return work.layout->find(text) != nullptr || is_workpackage_name(text);
  };
  work.open.clear();
  for (uint32_t slot = 0; slot < work.point.bindings.size(); ++slot) {
    Binding& b = work.point.bindings[slot];
    if (slot < work.layout->own_begin && is_unresolved(b) && progress(b) == Progress::closed) {
      const std::vector<TextId>& names = context_.definitions.dollar_names(b.value);
      if (std::ranges::any_of(names, known)) {
        b.definition = with_progress(definition_number(b), Progress::raw) | unresolved_bit;
      }
    }
    if (progress(b) != Progress::closed) work.open.push_back(slot);
  }
}

// ---- end: types and rules

void Expansion::check_types() {
  for (Work& work : works_) {
    for (const Binding& b : work.point.bindings) {
      const Definition& definition = context_.definitions.of(b);
      if (!definition.checked || progress(b) != Progress::closed) continue;
      if (!work.error.empty()) break;
      const Parameter& parameter = *definition.parameter;
      work.error = value_error(parameter, context_.definitions.pool()[b.value],
                               context_.benchmark.rules.fractions_are_kept);
      if (!work.error.empty()) work.place = parameter.value.mark;
    }
  }
}

void Expansion::apply_rules(StepPoints& result) {
  std::map<const Layout*, std::vector<size_t>> by_layout;
  for (size_t i = 0; i < works_.size(); ++i) {
    if (works_[i].layout->rules.empty()) continue;
    if (!context_.evaluator.computes()) {
      // Its rules may exclude the point.
      context_.not_computed.insert("the rules of step '" + step_.name.value + "'");
      works_[i].error = {};
      result.in_doubt = true;
    } else if (works_[i].error.empty()) {
      by_layout[works_[i].layout].push_back(i);
    }
  }
  std::vector<const Text*> excluded(by_layout.empty() ? 0 : works_.size());
  for (auto& [layout, indices] : by_layout) {
    for (const Text* rule : layout->rules) {
      std::vector<const Point*> points;
      points.reserve(indices.size());
      for (const size_t i : indices) points.push_back(&works_[i].point);
      const std::vector<RuleResult> results = evaluate_rule(
          rule->value, points, context_.definitions, context_.builtins, context_.evaluator);
      std::vector<size_t> kept;
      for (size_t k = 0; k < indices.size(); ++k) {
        Work& work = works_[indices[k]];
        if (!results[k].error.empty()) {
          work.error = "Cannot evaluate the rule \"" + rule->value + "\": " + results[k].error;
          work.place = rule->mark;
        } else if (!results[k].holds) {
          excluded[indices[k]] = rule;
        } else {
          kept.push_back(indices[k]);
        }
      }
      indices.swap(kept);
    }
  }
  if (by_layout.empty() || !context_.evaluator.computes()) return;
  std::vector<Work> kept;
  kept.reserve(works_.size());
  for (size_t i = 0; i < works_.size(); ++i) {
    if (excluded[i] != nullptr) {
      result.excluded.push_back({&step_, std::move(works_[i].point), *excluded[i]});
    } else {
      kept.push_back(std::move(works_[i]));
    }
  }
  works_.swap(kept);
}

// The first cycle of a child step computes such values again.
void Expansion::restart_cycles(Point& point) const {
  for (Binding& binding : point.bindings) {
    const UpdateMode mode = context_.definitions.of(binding).parameter->update;
    if (updates_in_cycle(mode)) binding.definition |= until_cycle_bit;
  }
}

StepPoints Expansion::collect() {
  StepPoints result;
  check_types();
  apply_rules(result);
  result.points.reserve(works_.size());
  const bool computes = context_.evaluator.computes();
  for (Work& work : works_) {
    if (has_parents_) restart_cycles(work.point);
    if (!computes) {  // what is left is asked for again
      for (Binding& binding : work.point.bindings) binding.definition &= ~not_computed_bit;
    }
    if (!work.error.empty()) result.errors[result.points.size()] = {work.error, work.place};
    result.points.push_back(std::move(work.point));
  }
  return result;
}

StepPoints Expansion::run(const std::vector<const Point*>& parents) {
  has_parents_ = !parents.empty();
  collect_own_sets();
  layouts_.emplace_back();
  Layout& layout = layouts_.back();
  Work start;
  start.layout = &layout;
  if (!inherit(parents, layout, start.point)) return {};
  for (const Text& use : step_.use) {
    if (has_dollar(use.value)) {
      layout.uses.push_back(&use);
    } else if (!add_use(use, use.value, layout, start.point)) {
      return {};
    }
  }
  open_slots(start);
  works_.push_back(std::move(start));
  split(true);
  for (;;) {
    resolve_slots(Force::none);
    if (has_lists()) {
      const size_t before = works_.size();
      split(false);
      // A zip group that waits for one of its own members makes no progress here. It is forced
      // below.
      if (works_.size() != before || !has_lists()) continue;
    }
    if (resolve_uses()) {
      split(false);
      continue;
    }
    if (resolve_slots(Force::unknown_names)) continue;
    if (!resolve_slots(Force::everything)) break;
  }
  for (Work& work : works_) {
    if (!work.error.empty() || work.layout->uses.empty()) continue;
    const Text& use = *work.layout->uses.front();
    if (!context_.evaluator.computes()) {
      context_.not_computed.insert("the sets of step '" + step_.name.value + "'");
      continue;
    }
    diagnostics_.error(use.mark, "<use>" + use.value + "</use> not found in available sets",
                       "it names a parameter that is not known before the step");
    break;
  }
  return collect();
}

}  // namespace tally

#include "engine/expand/expansion.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/expand/rules.h"
#include "engine/expand/substitute.h"

namespace tally {
namespace {

// More points than this are a mistake in the file: a point too many costs memory, not time.
constexpr size_t most_points = 20'000'000;

bool has_dollar(const std::string& text) {
  return text.find('$') != std::string::npos;
}

}  // namespace

bool updates_in_step(UpdateMode mode, bool set_is_used) {
  return mode == UpdateMode::use ? set_is_used : mode != UpdateMode::never;
}

bool is_late_name(std::string_view name) {
  return starts_with(name, "jube_wp_");
}

std::string evaluation_error(const Parameter& parameter, const std::string& expression,
                             const Evaluation& evaluation) {
  return "Cannot evaluate \"" + expression + "\" for parameter \"" + parameter.name.value +
         "\": " + evaluation.error;
}

// ---- the start: parents' values and the step's own sets

void Expansion::add_slot(const Binding& binding, Layout& layout, Point& point) {
  const auto slot = static_cast<uint32_t>(layout.names.size());
  layout.names.push_back(binding.name);
  layout.slots.emplace(context_.definitions.pool()[binding.name], slot);
  layout.zip_of.push_back(-1);
  point.bindings.push_back(binding);
}

void Expansion::collect_own_sets() {
  for (const Text& use : step_.use) {
    if (has_dollar(use.value)) continue;
    for (const std::string& name : split_strip(use.value, ",")) {
      const auto set = context_.benchmark.parameter_sets.find(name);
      if (set != context_.benchmark.parameter_sets.end()) own_sets_.insert(&set->second);
    }
  }
}

// Whether a parent's parameter is made anew although no set of this step brings it.
bool Expansion::is_updated(const Binding& binding) const {
  const Definition& definition = context_.definitions.of(binding);
  return updates_in_step(definition.parameter->update, own_sets_.count(definition.set) > 0);
}

// The parents' parameters, each once. False when two parents disagree about one that is not
// updated.
bool Expansion::inherit(const std::vector<const Point*>& parents, Layout& layout, Point& point) {
  for (const Point* parent : parents) {
    for (const Binding& binding : parent->bindings) {
      const std::string& name = context_.definitions.pool()[binding.name];
      const auto found = layout.slots.find(name);
      if (found == layout.slots.end()) {
        Binding own = binding;
        if (is_updated(binding)) own = context_.definitions.fresh(definition_number(binding));
        add_slot(own, layout, point);
        continue;
      }
      const Binding& present = point.bindings[found->second];
      if (is_updated(binding) || progress(present) != Progress::closed) continue;
      if (present.value != binding.value || present.index != binding.index) return false;
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

// False: the step gets no points, for a reason that was reported.
bool Expansion::add_set(const ParameterSet& set, const Text& use, Layout& layout, Point& point) {
  if (std::find(layout.sets.begin(), layout.sets.end(), &set) != layout.sets.end()) return true;
  layout.sets.push_back(&set);
  for (const Parameter& parameter : set.parameters) {
    const Binding fresh = context_.definitions.fresh(context_.definitions.number(set, parameter));
    const auto found = layout.slots.find(parameter.name.value);
    if (found == layout.slots.end()) {
      add_slot(fresh, layout, point);
      continue;
    }
    const uint32_t slot = found->second;
    const Definition& present = context_.definitions.of(point.bindings[slot]);
    const TextId text = context_.definitions.of(fresh).text;
    if (slot >= layout.own_begin) {
      if (present.text == text) continue;
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
    if (updates_in_step(parameter.update, true)) {
      point.bindings[slot] = fresh;
    } else if (present.text != text) {
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

// Adds the parameter sets among a comma list of set names.
bool Expansion::add_use(const Text& use, const std::string& names, Layout& layout, Point& point) {
  const Benchmark& benchmark = context_.benchmark;
  for (const std::string& name : split_strip(names, ",")) {
    if (name.empty()) continue;
    const auto set = benchmark.parameter_sets.find(name);
    if (set != benchmark.parameter_sets.end()) {
      if (!add_set(set->second, use, layout, point)) return false;
    } else if (benchmark.file_sets.count(name) == 0 && benchmark.substitute_sets.count(name) == 0) {
      if (!first_report(use)) return false;
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

// ---- value lists

bool Expansion::has_lists() const {
  for (const Work& work : works_) {
    for (const uint32_t slot : work.open) {
      if (progress(work.point.bindings[slot]) > Progress::raw && work.error.empty()) return true;
    }
  }
  return false;
}

// The groups of slots to expand, in definition order; zipped parameters form one group. False:
// failed.
bool Expansion::axes(const Work& work, uint32_t from, std::vector<std::vector<uint32_t>>& out,
                     Work& failed) {
  const auto& bindings = work.point.bindings;
  std::vector<bool> zip_seen(work.layout->zips.size());
  for (const uint32_t slot : work.open) {
    if (slot < from || progress(bindings[slot]) == Progress::raw) continue;
    const int zip = work.layout->zip_of[slot];
    if (zip < 0) {
      out.push_back({slot});
      continue;
    }
    if (zip_seen[static_cast<size_t>(zip)]) continue;
    zip_seen[static_cast<size_t>(zip)] = true;
    const std::vector<uint32_t>& group = work.layout->zips[static_cast<size_t>(zip)];
    size_t length = 0;
    bool waits = false;
    std::string lengths;
    bool equal = true;
    for (const uint32_t member : group) {
      const Binding& b = bindings[member];
      const Definition& d = context_.definitions.of(b);
      waits = waits || progress(b) == Progress::raw;
      const size_t count = progress(b) > Progress::raw
                               ? context_.definitions.pieces(b.value, d.parameter->separator).size()
                               : 1;
      if (length == 0) length = count;
      equal = equal && count == length;
      lengths +=
          (lengths.empty() ? "" : ", ") + d.parameter->name.value + " has " + std::to_string(count);
    }
    if (waits) continue;
    if (!equal) {
      const Definition& d = context_.definitions.of(bindings[group.front()]);
      failed.error = "zipped parameters differ in their number of values: " + lengths;
      if (!first_report(d.parameter->value)) return false;
      diagnostics_.error(d.parameter->value.mark, failed.error,
                         "parameters that advance together need lists of equal length");
      return false;
    }
    out.push_back(group);
  }
  return true;
}

void Expansion::split_one(Work& work, uint32_t from, std::vector<Work>& out) {
  std::vector<std::vector<uint32_t>> groups;
  if (!work.error.empty() || !axes(work, from, groups, work) || groups.empty()) {
    out.push_back(std::move(work));
    return;
  }
  struct Axis {
    uint32_t slot;
    uint32_t group;
    const std::vector<TextId>* pieces;
    Progress from;
  };
  std::vector<Axis> members;
  std::vector<size_t> lengths, position(groups.size(), 0);
  size_t total = 1;
  for (uint32_t g = 0; g < groups.size(); ++g) {
    for (const uint32_t slot : groups[g]) {
      const Binding& b = work.point.bindings[slot];
      const Definition& d = context_.definitions.of(b);
      members.push_back(
          {slot, g, &context_.definitions.pieces(b.value, d.parameter->separator), progress(b)});
    }
    lengths.push_back(members.back().pieces->size());
    total = total > most_points ? total : total * lengths.back();
  }
  if (total + out.size() > most_points) {
    diagnostics_.error(step_.name.mark,
                       "step '" + step_.name.value + "' would have more than " +
                           std::to_string(most_points) + " points",
                       "its parameters' value lists are multiplied: shorten or zip them");
    work.error = "too many points";
    out.push_back(std::move(work));
    return;
  }
  const TextPool& pool = context_.definitions.pool();
  out.reserve(out.size() + total);
  for (size_t i = 0; i < total; ++i) {
    Work& next = out.emplace_back();
    next.layout = work.layout;
    next.point.bindings.reserve(work.point.bindings.size());
    next.point.bindings = work.point.bindings;
    for (const Axis& axis : members) {
      Binding& b = next.point.bindings[axis.slot];
      const auto index = static_cast<uint32_t>(position[axis.group]);
      b.value = (*axis.pieces)[index];
      b.index = index;
      const bool raw = axis.from == Progress::split_raw && has_dollar(pool[b.value]);
      b.definition = with_progress(definition_number(b), raw ? Progress::raw : Progress::closed);
    }
    for (const uint32_t slot : work.open) {
      if (progress(next.point.bindings[slot]) != Progress::closed) next.open.push_back(slot);
    }
    for (size_t g = groups.size(); g-- > 0;) {  // the first parameter is the slowest
      if (++position[g] < lengths[g]) break;
      position[g] = 0;
    }
  }
}

// Expands all value lists. At the start (`own_first`) the step's own come before the updated ones
// of its parents, which then vary fastest.
void Expansion::split(bool own_first) {
  std::vector<Work> out;
  for (Work& work : works_) {
    uint32_t from = 0;
    if (own_first) {
      for (const uint32_t slot : work.open) {
        if (slot >= work.layout->own_begin && progress(work.point.bindings[slot]) > Progress::raw) {
          from = work.layout->own_begin;
        }
      }
    }
    if (work.open.empty()) {
      out.push_back(std::move(work));
    } else {
      split_one(work, from, out);
    }
  }
  works_.swap(out);
}

// ---- substitution and scripts

// Whether a slot needs what only finish() can tell, itself or through others.
bool Expansion::is_late(const Work& work, uint32_t slot) const {
  std::vector<uint32_t> todo{slot};
  std::vector<bool> seen(work.layout->names.size());
  seen[slot] = true;
  while (!todo.empty()) {
    const uint32_t at = todo.back();
    todo.pop_back();
    for (const TextId name : context_.definitions.references(work.point.bindings[at].value)) {
      const std::string& text = context_.definitions.pool()[name];
      const auto found = work.layout->slots.find(text);
      if (found == work.layout->slots.end()) {
        if (is_late_name(text)) return true;
      } else if (!seen[found->second] &&
                 progress(work.point.bindings[found->second]) == Progress::raw) {
        seen[found->second] = true;
        todo.push_back(found->second);
      }
    }
  }
  return false;
}

// Whether a reference of this slot has no value yet.
bool Expansion::is_blocked(const Work& work, uint32_t slot, Force force) const {
  const Binding& b = work.point.bindings[slot];
  const bool script = context_.definitions.of(b).parameter->mode != Mode::text;
  for (const TextId name : context_.definitions.references(b.value)) {
    const std::string& text = context_.definitions.pool()[name];
    const auto found = work.layout->slots.find(text);
    if (found != work.layout->slots.end()) {
      if (force != Force::everything &&
          progress(work.point.bindings[found->second]) != Progress::closed) {
        return true;
      }
      continue;
    }
    if (is_late_name(text)) return true;
    if (force != Force::none) continue;
    // A name that nobody gives: a set that is still to come may; a script waits until nothing else
    // is left to do.
    if (!script && work.layout->uses.empty()) continue;
    const auto& builtins = context_.builtins;
    if (std::none_of(builtins.begin(), builtins.end(),
                     [&](const auto& entry) { return entry.first == text; })) {
      return true;
    }
  }
  return false;
}

// The slot's text with its references replaced. *blocked: a name that turned up meanwhile (as in
// ${x_$y}) has no value yet.
std::string Expansion::substituted(const Work& work, uint32_t slot, Force force,
                                   bool* blocked) const {
  const TextPool& pool = context_.definitions.pool();
  const Lookup lookup = [&](std::string_view name) -> const std::string* {
    const auto found = work.layout->slots.find(name);
    if (found != work.layout->slots.end()) {
      const Binding& b = work.point.bindings[found->second];
      if (progress(b) == Progress::closed) return &pool[b.value];
      if (force != Force::everything) *blocked = true;
      return nullptr;
    }
    if (is_late_name(name)) *blocked = true;
    for (const auto& [key, value] : context_.builtins) {
      if (key == name) return &value;
    }
    return nullptr;
  };
  return substitute(pool[work.point.bindings[slot].value], lookup);
}

// Stores a value that a substitution or a script gave; a list of them when it splits.
void Expansion::set_value(Work& work, uint32_t slot, std::string_view value) {
  Binding& b = work.point.bindings[slot];
  const Parameter& parameter = *context_.definitions.of(b).parameter;
  b.value = context_.definitions.pool().intern(value);
  // A piece of a list stays one value, even when its text came to hold separators.
  const bool list = b.index == Binding::no_index && !parameter.separator.empty() &&
                    value.find(parameter.separator) != std::string_view::npos;
  b.definition =
      with_progress(definition_number(b), list ? Progress::split_value : Progress::closed);
}

// One pass over a work's open slots: texts are substituted, scripts that are ready are collected.
bool Expansion::settle_text(Work& work, Force force, std::vector<Task>& scripts, size_t index) {
  // Values that wait for each other all see what was there before, whatever their order.
  std::vector<std::pair<uint32_t, std::string>> forced;
  bool changed = false;
  for (const uint32_t slot : work.open) {
    const Binding& b = work.point.bindings[slot];
    if (progress(b) != Progress::raw || is_blocked(work, slot, force)) continue;
    if (force == Force::everything && is_late(work, slot)) continue;
    bool blocked = false;
    std::string text = substituted(work, slot, force, &blocked);
    if (blocked) continue;
    const Mode mode = context_.definitions.of(b).parameter->mode;
    if (mode != Mode::text && mode != Mode::tag) {
      scripts.push_back({index, slot, std::move(text)});
      continue;
    }
    if (mode == Mode::tag && context_.tags.count(text) == 0) text.clear();
    changed = true;
    if (force == Force::everything) {
      forced.emplace_back(slot, std::move(text));
    } else {
      set_value(work, slot, text);
    }
  }
  for (const auto& [slot, text] : forced) set_value(work, slot, text);
  return changed;
}

void Expansion::run_scripts(std::vector<Task>& scripts) {
  for (const Mode mode : {Mode::env, Mode::python, Mode::perl, Mode::shell}) {
    std::vector<const Task*> tasks;
    std::vector<std::string> expressions;
    for (Task& task : scripts) {
      const Binding& b = works_[task.work].point.bindings[task.slot];
      if (context_.definitions.of(b).parameter->mode != mode) continue;
      tasks.push_back(&task);
      expressions.push_back(task.expression);
    }
    if (tasks.empty()) continue;
    const std::vector<Evaluation> results = context_.evaluator.evaluate(mode, expressions);
    for (size_t i = 0; i < tasks.size(); ++i) {
      Work& work = works_[tasks[i]->work];
      if (!results[i].ok) {
        const Binding& b = work.point.bindings[tasks[i]->slot];
        if (work.error.empty()) {
          work.error =
              evaluation_error(*context_.definitions.of(b).parameter, expressions[i], results[i]);
        }
        continue;
      }
      set_value(work, tasks[i]->slot, results[i].value);
    }
  }
}

// Substitutes and evaluates until nothing more is ready. Returns whether anything happened.
bool Expansion::settle(Force force) {
  bool any = false;
  for (;;) {
    bool changed = false;
    std::vector<Task> scripts;
    for (size_t i = 0; i < works_.size(); ++i) {
      Work& work = works_[i];
      if (work.open.empty() || !work.error.empty()) continue;
      if (settle_text(work, force, scripts, i)) changed = true;
    }
    if (!scripts.empty()) {
      run_scripts(scripts);
      changed = true;
    }
    if (!changed) return any;
    any = true;
    for (Work& work : works_) {
      if (work.open.empty()) continue;
      work.open.erase(std::remove_if(work.open.begin(), work.open.end(),
                                     [&](uint32_t slot) {
                                       return progress(work.point.bindings[slot]) ==
                                              Progress::closed;
                                     }),
                      work.open.end());
    }
    // What was forced may make others ready in the ordinary way.
    if (force != Force::none) return true;
  }
}

// ---- sets whose names depend on parameters

// Whether the names in `use` are not known yet for this work.
bool Expansion::waits(const Work& work, const Text& use, std::string* names) const {
  bool open = false;
  const TextPool& pool = context_.definitions.pool();
  const Lookup lookup = [&](std::string_view name) -> const std::string* {
    const auto found = work.layout->slots.find(name);
    if (found != work.layout->slots.end()) {
      const Binding& b = work.point.bindings[found->second];
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
      Layout next = known != made.end() ? *known->second : *work.layout;
      if (known != made.end()) {
        // The same sets again: only this work's values are to be added.
        for (const ParameterSet* set : known->second->sets) {
          for (const Parameter& parameter : set->parameters) {
            const Binding fresh =
                context_.definitions.fresh(context_.definitions.number(*set, parameter));
            const uint32_t slot = next.slots.at(parameter.name.value);
            const bool added = slot >= work.point.bindings.size();
            const bool in_old = std::find(work.layout->sets.begin(), work.layout->sets.end(),
                                          set) != work.layout->sets.end();
            if (added) {
              work.point.bindings.push_back(fresh);
            } else if (!in_old && slot < next.own_begin &&
                       updates_in_step(parameter.update, true)) {
              work.point.bindings[slot] = fresh;
            }
          }
        }
        work.layout = known->second;
        continue;
      }
      next.uses.erase(std::find(next.uses.begin(), next.uses.end(), use));
      if (!add_use(*use, names, next, work.point)) {
        work.error = "the sets that this point uses do not fit together";
        break;
      }
      layouts_.push_back(std::move(next));
      made.emplace(key, &layouts_.back());
      work.layout = &layouts_.back();
    }
    work.open.clear();
    for (uint32_t slot = 0; slot < work.point.bindings.size(); ++slot) {
      if (progress(work.point.bindings[slot]) != Progress::closed) work.open.push_back(slot);
    }
  }
  return any;
}

// ---- the end: types, rules

void Expansion::check_types() {
  for (Work& work : works_) {
    for (const Binding& b : work.point.bindings) {
      if (!work.error.empty()) break;
      const Parameter& parameter = *context_.definitions.of(b).parameter;
      if (parameter.type == ValueType::string || progress(b) != Progress::closed) continue;
      work.error = type_error(parameter, context_.definitions.pool()[b.value]);
    }
  }
}

void Expansion::apply_rules(StepPoints& result) {
  std::map<const Layout*, std::vector<size_t>> by_layout;
  for (size_t i = 0; i < works_.size(); ++i) {
    if (works_[i].error.empty() && !works_[i].layout->rules.empty()) {
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
        } else if (!results[k].holds) {
          excluded[indices[k]] = rule;
        } else {
          kept.push_back(indices[k]);
        }
      }
      indices.swap(kept);
    }
  }
  if (by_layout.empty()) return;
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

StepPoints Expansion::collect() {
  StepPoints result;
  check_types();
  apply_rules(result);
  result.points.reserve(works_.size());
  result.errors.reserve(works_.size());
  for (Work& work : works_) {
    result.points.push_back(std::move(work.point));
    result.errors.push_back(std::move(work.error));
  }
  return result;
}

StepPoints Expansion::run(const std::vector<const Point*>& parents) {
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
  for (uint32_t slot = 0; slot < start.point.bindings.size(); ++slot) {
    if (progress(start.point.bindings[slot]) != Progress::closed) start.open.push_back(slot);
  }
  works_.push_back(std::move(start));
  split(true);
  for (;;) {
    settle(Force::none);
    if (has_lists()) {
      const size_t before = works_.size();
      split(false);
      // A zip group that waits for one of its own members does not move: go on and force it.
      if (works_.size() != before || !has_lists()) continue;
    }
    if (resolve_uses()) {
      split(false);
      continue;
    }
    if (settle(Force::unknown_names)) continue;
    if (!settle(Force::everything)) break;
  }
  for (Work& work : works_) {
    if (!work.error.empty() || work.layout->uses.empty()) continue;
    const Text& use = *work.layout->uses.front();
    diagnostics_.error(use.mark, "<use>" + use.value + "</use> not found in available sets",
                       "it names a parameter that is not known before the step");
    break;
  }
  return collect();
}

}  // namespace tally

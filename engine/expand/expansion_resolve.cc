// The part of an expansion that computes values: substitution, and scripts in batches.
#include <algorithm>

#include "engine/base/text.h"
#include "engine/expand/expansion.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/builtin_names.h"

namespace tally {

// Whether a slot needs something that only finish() knows, directly or through other slots.
bool Expansion::is_late(const Work& work, uint32_t slot) const {
  std::vector<uint32_t> todo{slot};
  std::vector<bool> seen(work.layout->names.size());
  seen[slot] = true;
  while (!todo.empty()) {
    const uint32_t at = todo.back();
    todo.pop_back();
    if (is_not_computed(work.point.bindings[at])) return true;
    for (const TextId name : context_.definitions.dollar_names(work.point.bindings[at].value)) {
      const std::string& text = context_.definitions.pool()[name];
      const uint32_t* found = work.layout->find(text);
      if (found == nullptr) {
        if (is_workpackage_name(text)) return true;
      } else if (!seen[*found] && progress(work.point.bindings[*found]) == Progress::raw) {
        seen[*found] = true;
        todo.push_back(*found);
      }
    }
  }
  return false;
}

// Whether one of this slot's references has no value yet.
bool Expansion::is_blocked(const Work& work, uint32_t slot, Force force) const {
  const Binding& b = work.point.bindings[slot];
  const bool script = context_.definitions.of(b).parameter->mode != Mode::text;
  for (const TextId name : context_.definitions.dollar_names(b.value)) {
    const std::string& text = context_.definitions.pool()[name];
    if (const uint32_t* found = work.layout->find(text)) {
      if (force != Force::everything && progress(work.point.bindings[*found]) != Progress::closed) {
        return true;
      }
      continue;
    }
    if (is_workpackage_name(text)) return true;
    if (force != Force::none) continue;
    // No known set defines the name. A set that is still to be resolved may define it. A script
    // waits until nothing else is left to do.
    if (!script && work.layout->uses.empty()) continue;
    const auto& builtins = context_.builtins;
    if (std::ranges::none_of(builtins, [&](const auto& entry) { return entry.first == text; })) {
      return true;
    }
  }
  return false;
}

// The slot's text with its references replaced. *blocked is set when a name that only appeared
// during substitution (as in ${x_$y}) has no value yet. *literal: see Definitions::close().
std::string Expansion::substituted(const Work& work, uint32_t slot, Force force, bool* blocked,
                                   bool* literal) const {
  const TextPool& pool = context_.definitions.pool();
  *literal = pool[work.point.bindings[slot].value].find("$$") != std::string::npos;
  const Lookup lookup = [&](std::string_view name) -> const std::string* {
    if (const uint32_t* found = work.layout->find(name)) {
      const Binding& b = work.point.bindings[*found];
      if (progress(b) == Progress::closed) {
        if (!is_unresolved(b) && has_dollar(pool[b.value])) *literal = true;
        return &pool[b.value];
      }
      if (force != Force::everything) *blocked = true;
      return nullptr;
    }
    if (is_workpackage_name(name)) *blocked = true;
    for (const auto& [key, value] : context_.builtins) {
      if (key == name) return &value;
    }
    return nullptr;
  };
  return substitute(pool[work.point.bindings[slot].value], lookup);
}

// Stores a value that came from a substitution or a script. A value that splits becomes a list.
void Expansion::set_value(Work& work, uint32_t slot, std::string_view value, bool literal) {
  Binding& b = work.point.bindings[slot];
  const Parameter& parameter = *context_.definitions.of(b).parameter;
  const bool resolved_again = slot < work.layout->own_begin && is_unresolved(b);
  TextId text = context_.definitions.pool().intern(value);
  const bool splits =
      !parameter.separator.empty() && value.find(parameter.separator) != std::string_view::npos;
  if (splits && b.index == Binding::no_index) {
    b.value = text;
    b.definition = with_progress(definition_number(b), Progress::split_value);
    if (!literal) b.definition |= unresolved_bit;  // inherited by the pieces
    return;
  }
  // A piece of a list stays one value, even if its text now holds separators. If it became a list
  // in a later step, it keeps its position in that list.
  if (splits && resolved_again) {
    const std::vector<TextId>& pieces = context_.definitions.pieces(text, parameter.separator);
    if (b.index < pieces.size()) text = pieces[b.index];
  } else if (slot < work.layout->own_begin) {
    text = context_.definitions.piece_again(b, text);
  }
  context_.definitions.close(b, text, literal);
}

// The open slots, each after those that it refers to, so that one pass resolves a chain of any
// length. A few slots are resolved soon in any order.
std::vector<uint32_t> Expansion::in_order(const Work& work) const {
  constexpr size_t few = 32;
  if (work.open.size() <= few) return work.open;
  enum class Visit : char { new_slot, entered, listed };
  std::vector<Visit> marks(work.point.bindings.size(), Visit::new_slot);
  std::vector<uint32_t> order;
  std::vector<uint32_t> todo;
  for (const uint32_t first : work.open) {
    todo.push_back(first);
    while (!todo.empty()) {
      const uint32_t slot = todo.back();
      if (marks[slot] != Visit::new_slot) {
        todo.pop_back();
        if (marks[slot] == Visit::entered) order.push_back(slot);
        marks[slot] = Visit::listed;
        continue;
      }
      marks[slot] = Visit::entered;
      for (const TextId name : context_.definitions.dollar_names(work.point.bindings[slot].value)) {
        const uint32_t* found = work.layout->find(context_.definitions.pool()[name]);
        if (found != nullptr && marks[*found] == Visit::new_slot &&
            progress(work.point.bindings[*found]) == Progress::raw) {
          todo.push_back(*found);
        }
      }
    }
  }
  return order;
}

// One pass over a work's open slots: substitutes texts and collects the scripts that are ready.
bool Expansion::resolve_text(Work& work, Force force, std::vector<Task>& scripts, size_t index) {
  // Values that wait for each other are all computed from the state before this pass, so that their
  // order does not matter.
  struct Forced {
    uint32_t slot;
    std::string text;
    bool literal;
  };
  std::vector<Forced> forced;
  bool changed = false;
  const size_t scripts_before = scripts.size();
  for (const uint32_t slot : force == Force::none ? in_order(work) : work.open) {
    const Binding& b = work.point.bindings[slot];
    if (progress(b) != Progress::raw || is_not_computed(b) || is_blocked(work, slot, force))
      continue;
    if (force == Force::everything && is_late(work, slot)) continue;
    bool blocked = false, literal = false;
    std::string text = substituted(work, slot, force, &blocked, &literal);
    if (blocked) continue;
    if (text.size() > longest_text) {
      const Parameter& parameter = *context_.definitions.of(b).parameter;
      work.error = too_long(parameter);
      work.place = parameter.value.mark;
      return true;
    }
    // Values that wait for each other here keep the text from the previous step.
    if (force == Force::everything && is_unresolved(b)) text = context_.definitions.pool()[b.value];
    const Mode mode = context_.definitions.of(b).parameter->mode;
    if (mode != Mode::text && mode != Mode::tag) {
      scripts.push_back({index, slot, std::move(text)});
      continue;
    }
    if (mode == Mode::tag && context_.tags.count(text) == 0) text.clear();
    changed = true;
    if (force == Force::everything) {
      forced.push_back({slot, std::move(text), literal});
    } else {
      set_value(work, slot, text, literal);
    }
  }
  // Scripts run in the order of the file.
  std::sort(scripts.begin() + static_cast<std::ptrdiff_t>(scripts_before), scripts.end(),
            [](const Task& a, const Task& b) { return a.slot < b.slot; });
  for (const Forced& each : forced) set_value(work, each.slot, each.text, each.literal);
  return changed;
}

void Expansion::note_not_computed(const Binding& binding) const {
  const std::string& name = context_.definitions.of(binding).parameter->name.value;
  // A key of the step hides such a parameter.
  const std::vector<std::string_view>& hiding = step_.kinds->value_names();
  if (!std::binary_search(hiding.begin(), hiding.end(), name))
    context_.not_computed.insert("parameter '" + name + "'");
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
      if (results[i].unknown) {
        Binding& b = work.point.bindings[tasks[i]->slot];
        b.definition |= not_computed_bit;
        note_not_computed(b);
        continue;
      }
      if (!results[i].ok) {
        const Binding& b = work.point.bindings[tasks[i]->slot];
        if (work.error.empty()) {
          const Parameter& parameter = *context_.definitions.of(b).parameter;
          work.error = evaluation_error(parameter, expressions[i], results[i],
                                        context_.benchmark.rules.value_errors_are_explained);
          work.place = parameter.value.mark;
        }
        continue;
      }
      set_value(work, tasks[i]->slot, results[i].value, true);
    }
  }
}

// Substitutes and evaluates until nothing more is ready. Returns whether anything happened.
bool Expansion::resolve_slots(Force force) {
  bool any = false;
  for (;;) {
    bool changed = false;
    std::vector<Task> scripts;
    for (size_t i = 0; i < works_.size(); ++i) {
      Work& work = works_[i];
      if (work.open.empty() || !work.error.empty()) continue;
      if (resolve_text(work, force, scripts, i)) changed = true;
    }
    if (!scripts.empty()) {
      run_scripts(scripts);
      changed = true;
    }
    if (!changed) return any;
    any = true;
    for (Work& work : works_) {
      if (work.open.empty()) continue;
      std::erase_if(work.open, [&](uint32_t slot) {
        return progress(work.point.bindings[slot]) == Progress::closed;
      });
    }
    // A forced value may make others ready without force.
    if (force != Force::none) return true;
  }
}

}  // namespace tally

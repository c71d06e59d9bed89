// The part of an expansion that makes several points from one: value lists, crossed or zipped.

#include "engine/base/text.h"
#include "engine/expand/expansion.h"
#include "engine/expand/point.h"

namespace tally {
bool Expansion::has_lists() const {
  for (const Work& work : works_) {
    for (const uint32_t slot : work.open) {
      if (progress(work.point.bindings[slot]) > Progress::raw && work.error.empty()) return true;
    }
  }
  return false;
}

// Collects the groups of slots to expand, in definition order. Zipped parameters form one group.
// Returns false on failure, with the error in `failed`.
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
  std::vector<Axis> members;
  std::vector<size_t> lengths;
  size_t total = 1;
  for (uint32_t g = 0; g < groups.size(); ++g) {
    for (const uint32_t slot : groups[g]) {
      const Binding& b = work.point.bindings[slot];
      const Definition& d = context_.definitions.of(b);
      members.push_back(
          {slot, g, &context_.definitions.pieces(b.value, d.parameter->separator), progress(b)});
    }
    lengths.push_back(members.back().pieces->size());
    total = limited_product(total, lengths.back());
  }
  if (total + out.size() > context_.most_points) {
    diagnostics_.error(step_.name.mark,
                       "step '" + step_.name.value + "' would have at least " +
                           std::to_string(limited_sum(total, out.size())) + " points; " +
                           std::to_string(context_.most_points) + " are the most",
                       "its parameters' value lists are multiplied: shorten or zip them, or allow "
                       "more with --max-workpackages");
    work.error = "too many points";
    out.push_back(std::move(work));
    return;
  }
  out.reserve(out.size() + total);
  cross(work, members, lengths, out);
}

// Appends one work for each combination of the groups' values. The first parameter varies slowest.
void Expansion::cross(const Work& work, const std::vector<Axis>& members,
                      const std::vector<size_t>& lengths, std::vector<Work>& out) const {
  const TextPool& pool = context_.definitions.pool();
  std::vector<size_t> position(lengths.size(), 0);
  for (bool more = true; more;) {
    Work& next = out.emplace_back();
    next.layout = work.layout;
    next.point.bindings.reserve(work.point.bindings.size());
    next.point.bindings = work.point.bindings;
    for (const Axis& axis : members) {
      Binding& b = next.point.bindings[axis.slot];
      const auto index = static_cast<uint32_t>(position[axis.group]);
      const TextId value = (*axis.pieces)[index];
      b.index = index;
      if (axis.from == Progress::split_raw && has_dollar(pool[value])) {
        b.value = value;
        b.definition = with_progress(definition_number(b), Progress::raw);
      } else {
        context_.definitions.close(b, value, !is_unresolved(b));
      }
    }
    for (const uint32_t slot : work.open) {
      if (progress(next.point.bindings[slot]) != Progress::closed) next.open.push_back(slot);
    }
    more = false;
    for (size_t g = lengths.size(); g-- > 0 && !more;) {
      more = ++position[g] < lengths[g];
      if (!more) position[g] = 0;
    }
  }
}

// Expands all value lists. At the start (`own_first`), the step's own lists are expanded before its
// parents' updated lists, so that the parents' lists vary fastest.
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

}  // namespace tally

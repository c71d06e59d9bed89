#include "src/measure/step_bars.h"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

namespace tally::train {
namespace {

constexpr int64_t never = std::numeric_limits<int64_t>::max();

// From `begin` to `end` the GPU did what `bar` says, perhaps with others beside it.
struct Piece {
  int64_t begin, end;
  StepBar bar;
};

int64_t length(const DeviceActivity& a) {
  return a.end - a.start;
}

bool is_message(KernelClass kind) {
  return kind == KernelClass::collective || kind == KernelClass::point_to_point;
}

StepBar bar_of(KernelClass kind) {
  if (kind == KernelClass::gemm) return StepBar::gemm;
  return kind == KernelClass::attention ? StepBar::attention : StepBar::other;
}

int64_t median_of(std::vector<int64_t> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The key that tells kernels apart.
std::string kind_of(const DeviceActivity& a) {
  return a.name + "/" + a.grid + "/" + a.block;
}

// An activity is its own kind of work, behind the wait or the interruption in it.
void add_pieces(const DeviceActivity& a, KernelClass kind, int64_t first, std::vector<Piece>* out) {
  if (!is_message(kind)) {
    out->push_back({a.start, a.end - first, bar_of(kind)});
    out->push_back({a.end - first, a.end, StepBar::interrupted});
    return;
  }
  const StepBar wait = kind == KernelClass::collective ? StepBar::waiting : StepBar::bubble;
  out->push_back({a.start, a.start + first, wait});
  out->push_back({a.start + first, a.end, StepBar::messages});
}

// Each nanosecond between `begin` and `end` by the first bar of the pieces that have it.
BarTimes exclusive(const std::vector<Piece>& pieces, int64_t begin, int64_t end) {
  // The moments at which a piece of a bar begins (1) or ends (-1).
  std::vector<std::pair<int64_t, std::pair<size_t, int>>> changes;
  for (const Piece& p : pieces) {
    const int64_t from = std::max(p.begin, begin), to = std::min(p.end, end);
    if (from >= to) continue;
    changes.push_back({from, {static_cast<size_t>(p.bar), 1}});
    changes.push_back({to, {static_cast<size_t>(p.bar), -1}});
  }
  std::sort(changes.begin(), changes.end());
  BarTimes times{};
  std::array<int, step_bars> running{};
  running[static_cast<size_t>(StepBar::gap)] = 1;
  int64_t at = begin;
  const auto until = [&](int64_t next) {
    const auto first = std::find_if(running.begin(), running.end(), [](int n) { return n > 0; });
    times[static_cast<size_t>(first - running.begin())] += next - at;
    at = next;
  };
  for (const auto& [when, change] : changes) {
    until(when);
    running[change.first] += change.second;
  }
  until(end);
  return times;
}

// The places in `activities` of each kind of kernel that computes, step by step.
using Places = std::vector<std::vector<size_t>>;
std::map<std::string, Places> places_of(const StepTrace& trace) {
  std::map<std::string, Places> found;
  const size_t steps = trace.ends.size() - 1;
  for (size_t i = 0; i < trace.activities.size(); ++i) {
    const DeviceActivity& a = trace.activities[i];
    if (a.grid.empty() || is_message(class_of(a.name))) continue;
    const auto after = std::upper_bound(trace.ends.begin(), trace.ends.end(), a.start);
    if (after == trace.ends.begin() || after == trace.ends.end()) continue;
    Places& places = found[kind_of(a)];
    places.resize(steps);
    places[static_cast<size_t>(after - trace.ends.begin()) - 1].push_back(i);
  }
  return found;
}

}  // namespace

std::vector<int64_t> step_ends(const std::vector<DeviceActivity>& activities, int64_t bytes) {
  std::vector<int64_t> ends;
  for (const DeviceActivity& a : activities)
    if (a.name == "[copy to host]" && a.bytes == bytes) ends.push_back(a.end);
  std::sort(ends.begin(), ends.end());
  return ends;
}

TracedMessages messages_of(const std::vector<DeviceActivity>& activities) {
  TracedMessages messages;
  for (const DeviceActivity& a : activities) {
    const KernelClass kind = class_of(a.name);
    if (!is_message(kind)) continue;
    messages.kinds += kind == KernelClass::collective ? 'c' : 'p';
    messages.nanoseconds.push_back(length(a));
  }
  return messages;
}

std::vector<int64_t> transfers_of(const std::vector<TracedMessages>& ranks, size_t mine) {
  const TracedMessages& own = ranks.at(mine);
  std::vector<int64_t> least = own.nanoseconds;
  int64_t of_two = never;
  for (const TracedMessages& rank : ranks) {
    for (size_t i = 0; i < rank.kinds.size(); ++i)
      if (rank.kinds[i] == 'p') of_two = std::min(of_two, rank.nanoseconds[i]);
    if (rank.kinds != own.kinds) continue;
    for (size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], rank.nanoseconds[i]);
  }
  for (size_t i = 0; i < least.size(); ++i)
    if (own.kinds[i] == 'p') least[i] = of_two;
  return least;
}

std::vector<int64_t> interruptions_of(const StepTrace& trace) {
  std::vector<int64_t> excess(trace.activities.size());
  constexpr size_t fewest_steps = 3;
  if (trace.ends.size() < fewest_steps + 1) return excess;
  for (const auto& [kind, steps] : places_of(trace)) {
    const size_t calls = steps.front().size();
    if (std::any_of(steps.begin(), steps.end(), [&](const auto& s) { return s.size() != calls; }))
      continue;
    for (size_t call = 0; call < calls; ++call) {
      std::vector<int64_t> lengths;
      for (const auto& step : steps) lengths.push_back(length(trace.activities[step[call]]));
      const int64_t usual = median_of(lengths);
      for (const auto& step : steps) {
        const int64_t more = length(trace.activities[step[call]]) - usual;
        if (more >= kInterruption && 2 * more > usual) excess[step[call]] = more;
      }
    }
  }
  return excess;
}

BarTimes divide(const StepTrace& trace, const std::vector<int64_t>& transfers) {
  const std::vector<int64_t> excess = interruptions_of(trace);
  std::vector<Piece> pieces;
  size_t message = 0;
  for (size_t i = 0; i < trace.activities.size(); ++i) {
    const DeviceActivity& a = trace.activities[i];
    const KernelClass kind = class_of(a.name);
    const int64_t wait = is_message(kind) ? length(a) - transfers.at(message++) : excess[i];
    add_pieces(a, kind, std::clamp<int64_t>(wait, 0, length(a)), &pieces);
  }
  return exclusive(pieces, trace.ends.front(), trace.ends.back());
}

int64_t gemm_nanoseconds(const std::vector<DeviceActivity>& activities) {
  std::map<std::string, std::vector<int64_t>> lengths;
  for (const DeviceActivity& a : activities)
    if (class_of(a.name) == KernelClass::gemm) lengths[kind_of(a)].push_back(length(a));
  int64_t sum = 0;
  for (const auto& [kind, of_kind] : lengths)
    sum += median_of(of_kind) * static_cast<int64_t>(of_kind.size());
  return sum;
}

}  // namespace tally::train

// A point is one combination of parameter values for a step. A plan may have a million points, so a
// point holds only numbers, and the texts are shared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

using TextId = uint32_t;

// A pool of interned texts. Ids are dense and stable. Not thread-safe.
class TextPool {
 public:
  TextId intern(std::string_view text);
  size_t size() const { return texts_.size(); }
  const std::string& operator[](TextId id) const { return texts_[id]; }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, TextId> ids_;
};

// One parameter's value at a point. `definition` leads to the mode, type, unit, export and update
// mode, which all points share (Expander::definition()). `index` is the position in the list of
// values that the parameter was expanded from (JUBE's "idx"), or no_index if there was only one.
struct Binding {
  static constexpr uint32_t no_index = 0xffffffff;
  TextId name;
  TextId value;
  uint32_t index;
  uint32_t definition;  // number of the definition in the Expander, and how final the value is
};

struct Point {
  // Parameters in JUBE's order: the parents' first, then those of the step's sets.
  std::vector<Binding> bindings;
};

// The parameter of this name, or null. Where the user has no parameter of the name, a name with the
// platform's prefix (workflow/lookup.h) is that of the parameter without it.
const Binding* find_binding(const Point& point, const TextPool& pool, std::string_view name);

// A step with more points, or with more workpackages, is a mistake in its file, unless
// `--max-workpackages` says otherwise. So many take about 1 GB.
inline constexpr size_t most_points = 1'000'000;

// Messages name no larger number. Sums and products stop there.
inline constexpr size_t most_countable = 1'000'000'000'000'000;
inline size_t limited_sum(size_t a, size_t b) {
  return std::min(a + b, most_countable);
}
inline size_t limited_product(size_t a, size_t b) {
  return b != 0 && a > most_countable / b ? most_countable : a * b;
}

}  // namespace tally

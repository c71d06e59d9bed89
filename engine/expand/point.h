// Points: one combination of parameter values for a step. Made for a million of them: a point holds
// numbers, the texts are shared.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/workflow/workflow.h"

namespace tally {

using TextId = uint32_t;

// Interned texts; ids are dense and stable. Not thread-safe.
class TextPool {
 public:
  TextId intern(std::string_view text);
  size_t size() const { return texts_.size(); }
  const std::string& operator[](TextId id) const { return texts_[id]; }

 private:
  std::deque<std::string> texts_;
  std::unordered_map<std::string_view, TextId> ids_;
};

// One parameter's value at a point. `definition` tells mode, type, unit, export and update mode,
// and is shared by all points (Expander::definition()); `index` is the place among the values it
// was expanded from (JUBE's "idx"), no_index when there was only one.
struct Binding {
  static constexpr uint32_t no_index = 0xffffffff;
  TextId name;
  TextId value;
  uint32_t index;
  uint32_t definition;  // the Expander's number of the definition, and whether the value is final
};

struct Point {
  std::vector<Binding>
      bindings;  // parameters in JUBE's order: parents' first, then the step's sets
};

}  // namespace tally

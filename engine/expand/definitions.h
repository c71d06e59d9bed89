// The parameters of a benchmark, prepared for expansion: they are numbered, their texts are
// interned, and their value lists are split once. Private to expand/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/expand/point.h"
#include "engine/workflow/workflow.h"

namespace tally {

// How far a binding's value has been resolved. The two lowest bits of Binding::definition store it.
// Three more are marks, see below.
enum class Progress : uint32_t {
  closed,       // final
  raw,          // the definition's text, or one piece of it: still to be substituted and evaluated
  split_raw,    // a list of raw texts: still to be expanded into one point each
  split_value,  // a list that came from a substitution or a script: still to be expanded
};
inline constexpr uint32_t progress_bits = 3U;
inline Progress progress(const Binding& b) {
  return static_cast<Progress>(b.definition & progress_bits);
}
inline uint32_t definition_number(const Binding& b) {
  return b.definition >> 5U;
}
inline uint32_t with_progress(uint32_t number, Progress p) {
  return number << 5U | static_cast<uint32_t>(p);
}
// Marks a final text that names something which no set of its step defines. A later step that knows
// the name resolves it there, as JUBE does.
inline constexpr uint32_t unresolved_bit = 4U;
inline bool is_unresolved(const Binding& b) {
  return (b.definition & unresolved_bit) != 0;
}
// Marks a raw value that this expansion did not compute, see Evaluator::computes().
inline constexpr uint32_t not_computed_bit = 8U;
inline bool is_not_computed(const Binding& b) {
  return (b.definition & not_computed_bit) != 0;
}
// Marks a value of the step before that is computed again when the first cycle begins. Until then
// the step's other values read it.
inline constexpr uint32_t until_cycle_bit = 16U;
inline bool is_until_cycle(const Binding& b) {
  return (b.definition & until_cycle_bit) != 0;
}

// Whether it is a value that nothing computes again: closed, and not until the first cycle.
inline bool is_final_value(const Binding& b) {
  static_assert(static_cast<uint32_t>(Progress::closed) == 0, "one comparison answers both");
  return (b.definition & (progress_bits | until_cycle_bit)) == 0;
}

struct Definition {
  const Parameter* parameter = nullptr;
  const ParameterSet* set = nullptr;
  TextId name = 0;
  TextId text = 0;  // the value, stripped
  Progress start = Progress::closed;
  bool checked = false;  // its values have a type or are among `allowed`
};

class Definitions {
 public:
  explicit Definitions(TextPool& pool) : pool_(pool) {}

  uint32_t number(const ParameterSet& set, const Parameter& parameter);
  const Definition& operator[](uint32_t number) const { return definitions_[number]; }
  const Definition& of(const Binding& b) const { return definitions_[definition_number(b)]; }
  // The binding with which expansion starts.
  Binding fresh(uint32_t number) const;
  // Resets a binding to the text that its value was made from. It keeps its position in a list.
  void restart(Binding& binding);
  // The value of a restarted binding that has been computed again. If the text is the list from
  // which the point had one value, the point keeps its position in it.
  TextId piece_again(const Binding& binding, TextId text);
  // The pieces of a text, stripped and interned. The same text and separator give the same object.
  const std::vector<TextId>& pieces(TextId text, const std::string& separator);
  // The names of dollar_names(), interned.
  const std::vector<TextId>& dollar_names(TextId text);
  // Closes a binding with a value that came from a substitution or a script. `literal` means that a
  // dollar in the value was escaped or was printed by a script. Later steps must not read it as the
  // start of a name.
  void close(Binding& binding, TextId value, bool literal);
  TextPool& pool() { return pool_; }

 private:
  TextPool& pool_;
  std::vector<Definition> definitions_;
  std::unordered_map<const Parameter*, uint32_t> numbers_;
  std::map<std::pair<TextId, std::string>, std::vector<TextId>> pieces_;
  std::unordered_map<TextId, std::vector<TextId>> dollar_names_;
};

// Checks that a value has its parameter's type and is one of the allowed values. Returns "" or a
// message.
// A fraction is an error for an int, unless it is accepted because tables cut it off.
std::string value_error(const Parameter& parameter, const std::string& value,
                        bool fractions_are_kept);

}  // namespace tally

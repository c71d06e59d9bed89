// The parameters of a benchmark as expansion sees them: numbered, with their texts interned and
// their value lists split once. Private to expand/.
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

// How far a binding's value is. Stored in the two lowest bits of Binding::definition; the third
// says that a later step may resolve it again.
enum class Progress : uint32_t {
  closed,       // final
  raw,          // the definition's text, or one piece of it: to be substituted, then evaluated
  split_raw,    // a list of raw texts, to be expanded into one point each
  split_value,  // a list that a substitution or a script gave
};
inline Progress progress(const Binding& b) {
  return static_cast<Progress>(b.definition & 3U);
}
inline uint32_t definition_number(const Binding& b) {
  return b.definition >> 3U;
}
inline uint32_t with_progress(uint32_t number, Progress p) {
  return number << 3U | static_cast<uint32_t>(p);
}
// A final text that names something no set of its step knows. A later step that knows the name
// resolves it there, as JUBE does.
inline constexpr uint32_t unresolved_bit = 4U;
inline bool is_unresolved(const Binding& b) {
  return (b.definition & unresolved_bit) != 0;
}

struct Definition {
  const Parameter* parameter = nullptr;
  const ParameterSet* set = nullptr;
  TextId name = 0;
  TextId text = 0;  // the value, stripped
  Progress start = Progress::closed;
};

class Definitions {
 public:
  explicit Definitions(TextPool& pool) : pool_(pool) {}

  uint32_t number(const ParameterSet& set, const Parameter& parameter);
  const Definition& operator[](uint32_t number) const { return definitions_[number]; }
  const Definition& of(const Binding& b) const { return definitions_[definition_number(b)]; }
  // A binding as expansion starts with it.
  Binding fresh(uint32_t number) const;
  // The pieces of a text, stripped, interned; the same object for the same text and separator.
  const std::vector<TextId>& pieces(TextId text, const std::string& separator);
  // The names a text refers to, interned.
  const std::vector<TextId>& references(TextId text);
  // Closes a binding with a value that substitution or a script gave. `literal`: a dollar in it was
  // escaped or came out of a script, so no later step takes it for a name.
  void close(Binding& binding, TextId value, bool literal);
  TextPool& pool() { return pool_; }

 private:
  TextPool& pool_;
  std::vector<Definition> definitions_;
  std::unordered_map<const Parameter*, uint32_t> numbers_;
  std::map<std::pair<TextId, std::string>, std::vector<TextId>> pieces_;
  std::unordered_map<TextId, std::vector<TextId>> references_;
};

// "" or the message for a value that is not of its parameter's type.
// JUBE takes a fraction for an int, and its tables cut it off; `as_jube` false does not.
std::string type_error(const Parameter& parameter, const std::string& value, bool as_jube);

}  // namespace tally

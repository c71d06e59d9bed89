// Whether a condition of Python may be true, from what is known of its names before a run. Private
// to results/.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/python/value.h"

namespace tally {

enum class Truth { no, yes, open };

// A value as far as it is known.
struct KnownValue {
  enum class Kind {
    open,    // nothing
    number,  // a number; which one, if `known`
    text,    // a text; which one, if `known`
    list     // of `items`
  };
  Kind kind = Kind::open;
  bool known = false;
  Value number;
  std::string text;  // also of a number: as it is written
  std::vector<KnownValue> items;
  std::string name;  // whose value it is; empty: a literal
  // The number that a text of a name is beside numbers.
  std::optional<Value> beside_numbers = {};
  bool same_form = true;  // the text is that number's own: 10, and not 010
  bool is_truth = false;  // True, False or the result of a comparison
  bool no_truth = false;  // an open value that is a number or a text, as x - 1 or abs(x)
  bool fails = false;     // Python has no value of it: 1 < 'a'
};

// The value that a text of a name has in a condition: a text, and beside numbers the number that it
// reads as (engine/python/guarded_literal.h).
KnownValue known_text(const std::string& name, const std::string& text);
// The value of a parameter of this type, by its text. A text that is no number may be anything.
KnownValue known_value(const std::string& name, const std::string& text, ValueType type);

using KnownValues = std::function<KnownValue(const std::string& name)>;

// Reads `or`, `and`, `not`, comparisons, also chained and with `in`, parentheses, lists, literals,
// names, `$name` and `'$name'`. Everything else may have any value. If a number and a text were
// compared, *mixed says so, a clause.
Truth known_truth(std::string_view expression, const KnownValues& values, std::string* mixed);

// Whether the value of the expression is certainly neither True nor False: x - 1, abs(x), (x > 1,).
// Expressions nested more deeply than Python reads may have either.
bool is_no_truth(std::string_view expression, const KnownValues& values);

}  // namespace tally

// Whether a condition of Python may be true, from what is known of its names before a run. Private
// to results/.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

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
  double number = 0;
  std::string text;  // also of a number that is the value of a name: as it is written
  std::vector<KnownValue> items;
  std::string name;  // whose value it is; empty: a literal
};

using KnownValues = std::function<KnownValue(const std::string& name)>;

// Reads `or`, `and`, `not`, comparisons, also chained and with `in`, parentheses, lists, literals,
// names, `$name` and `'$name'`. Everything else may have any value. If a number and a text were
// compared, *mixed says so, a clause.
Truth known_truth(std::string_view expression, const KnownValues& values, std::string* mixed);

}  // namespace tally

// The statistics that JUBE computes of a pattern's matches: first, last, count, smallest, largest,
// sums, mean, standard deviation.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/python/value.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Takes a value and its name.
using StoreValue = std::function<void(const std::string& name, Value value)>;

enum class MatchStatistic { value, first, last, count, least, most, sum, sum2, mean, deviation };

// A statistic and the name of its value: "rate_avg".
struct StoredStatistic {
  MatchStatistic which = MatchStatistic::value;
  std::string name;
};
// All of them for a pattern, in the order in which a result shows them.
std::vector<StoredStatistic> all_statistics(const std::string& name);

// Takes values one at a time, in order. Memory use does not grow with their number. Numbers follow
// Python: whole numbers are exact at any size, their sums stay whole, and floats are added from
// left to right. The mean is a float. The standard deviation of one value is the whole number 0.
// Values may have different types, where several patterns of one name search in a step's files. As in
// JUBE, texts count, and are in no smallest, largest or sum; mean and deviation are as they were at
// the last number, with all values up to it as their count.
class Statistics {
 public:
  // `type`: of the pattern, until there is a value.
  explicit Statistics(ValueType type) : type_(type) {}

  void add(const Value& value);
  // Adds the values that `later` has taken, as if they were taken after the own ones. Sums of
  // floats may differ in the last digit from those of the single values.
  void add(const Statistics& later);
  ValueType type() const { return type_; }
  long long count() const { return count_; }
  const Value& first() const { return first_; }

  // Stores name, name_first, name_last, name_cnt, and for numbers name_min, _max, _sum, _sum2,
  // _avg, _std:
  //   std = sqrt(|sum2 - sum^2 / n| / (n - 1))
  // Stores nothing when there was no value.
  void store(const std::string& name, const StoreValue& out) const;
  // One of these. None: texts have no such statistic, or there was no value.
  Value value_of(MatchStatistic which) const;
  // All that it holds, as bytes; and back, unless the bytes are of another type or damaged.
  std::string packed() const;
  static std::optional<Statistics> unpacked(ValueType type, std::string_view bytes);

 private:
  // Facts about all values together.
  struct All {
    Value last, least, most;
    long long up_to_number = 0;  // the count of values up to the last number; 0: there is none
    bool floating = false;       // one of the numbers is a float, and thus the sums are
    Int128 sum = 0, sum2 = 0;    // sums of the values that are too small to overflow
    std::optional<BigInt> big_sum, big_sum2;
    double float_sum = 0, float_sum2 = 0;

    // `type`: the value's own. `count`: of the values up to this one.
    void add(const Value& value, ValueType type, long long count);
    void add_integer(const Value& value);
    void make_floating();  // the sums, which are whole so far
    Value total() const;
    Value total_of_squares() const;
  };

  All of_first() const;
  All& edit();
  bool has_numbers() const { return all_ ? all_->up_to_number > 0 : first_.number(); }
  void take_type(ValueType type);
  static Value mean(const All& all);
  static Value spread(const All& all);

  ValueType type_;  // of all values; string where some are texts, else floating where types differ
  long long count_ = 0;
  Value first_;
  std::unique_ptr<All> all_;  // null: as of the first value alone, as in most of 100,000 files
};

// Stores the values of a pattern that matched nothing but has a default: the default everywhere,
// and count 0.
void store_default(const std::string& name, const Value& value, ValueType type,
                   const StoreValue& out);

}  // namespace tally

#include "engine/results/statistics.h"

#include <cmath>
#include <limits>

namespace tally {
namespace {

BigInt as_big(const Value& value) {
  if (const auto* big = std::get_if<BigInt>(&value.data)) return *big;
  return BigInt(static_cast<Int128>(std::get<long long>(value.data)));
}

// Python's x ** 2 calls the C library's pow(). With a constant exponent the compiler would replace
// pow() by x * x.
double square(double x) {
  static volatile double two = 2.0;
  return std::pow(x, two);
}

}  // namespace

void Statistics::add(const Value& value) {
  if (count_++ == 0) {
    first_ = value;
    if (type_ != ValueType::string) least_ = most_ = value;
  } else if (type_ != ValueType::string) {
    if (less(value, least_)) least_ = value;
    if (less(most_, value)) most_ = value;
  }
  last_ = value;
  if (type_ == ValueType::integer) add_integer(value);
  if (type_ == ValueType::floating) {
    double x = std::get<double>(value.data);
    float_sum_ += x;
    float_sum2_ += square(x);
  }
}

void Statistics::add_integer(const Value& value) {
  constexpr long long kSmall = 1LL << 40;  // squares below 2^80: 2^46 of them fit
  const auto* small = std::get_if<long long>(&value.data);
  if (small != nullptr && *small<kSmall&& * small> - kSmall) {
    sum_ += *small;
    sum2_ += static_cast<Int128>(*small) * *small;
    return;
  }
  BigInt big = as_big(value);
  big_sum_ = big_sum_.value_or(BigInt()) + big;
  big_sum2_ = big_sum2_.value_or(BigInt()) + big * big;
}

Value Statistics::spread(const Value& sum, const Value& sum2) const {
  if (count_ == 1) return {0LL};
  auto n = static_cast<double>(count_);
  double difference = 0;
  if (type_ == ValueType::integer) {
    BigInt total = as_big(sum);
    difference = sum2.as_double() - (total * total).divide(static_cast<uint32_t>(count_));
  } else {
    difference = sum2.as_double() - square(sum.as_double()) / n;
  }
  return {std::sqrt(std::fabs(difference) / (n - 1))};
}

Value Statistics::sum() const {
  if (type_ != ValueType::integer) return {float_sum_};
  return integer_value(BigInt(sum_) + big_sum_.value_or(BigInt()));
}

Value Statistics::sum_of_squares() const {
  if (type_ != ValueType::integer) return {float_sum2_};
  return integer_value(BigInt(sum2_) + big_sum2_.value_or(BigInt()));
}

Value Statistics::mean() const {
  if (type_ != ValueType::integer) return {float_sum_ / static_cast<double>(count_)};
  const BigInt total = BigInt(sum_) + big_sum_.value_or(BigInt());
  return {total.divide(static_cast<uint32_t>(count_))};
}

Value Statistics::value_of(MatchStatistic which) const {
  switch (which) {
    case MatchStatistic::last:
      return last_;
    case MatchStatistic::count:
      return {count_};
    case MatchStatistic::least:
      return least_;
    case MatchStatistic::most:
      return most_;
    case MatchStatistic::sum:
      return sum();
    case MatchStatistic::sum2:
      return sum_of_squares();
    case MatchStatistic::mean:
      return mean();
    case MatchStatistic::deviation:
      return spread(sum(), sum_of_squares());
    case MatchStatistic::value:
    case MatchStatistic::first:
      break;
  }
  return first_;
}

void Statistics::store(const std::vector<StoredStatistic>& wanted,
                       std::map<std::string, Value>& out) const {
  if (count_ == 0) return;
  for (const auto& [which, name] : wanted) {
    const bool of_any_type = which == MatchStatistic::value || which == MatchStatistic::first ||
                             which == MatchStatistic::last || which == MatchStatistic::count;
    if (of_any_type || type_ != ValueType::string) out[name] = value_of(which);
  }
}

void Statistics::store(const std::string& name, std::map<std::string, Value>& out) const {
  store(all_statistics(name), out);
}

std::vector<StoredStatistic> all_statistics(const std::string& name) {
  return {{MatchStatistic::value, name},
          {MatchStatistic::first, name + "_first"},
          {MatchStatistic::least, name + "_min"},
          {MatchStatistic::most, name + "_max"},
          {MatchStatistic::sum, name + "_sum"},
          {MatchStatistic::sum2, name + "_sum2"},
          {MatchStatistic::count, name + "_cnt"},
          {MatchStatistic::mean, name + "_avg"},
          {MatchStatistic::deviation, name + "_std"},
          {MatchStatistic::last, name + "_last"}};
}

void store_default(const std::string& name, const Value& value, ValueType type,
                   std::map<std::string, Value>& out) {
  out[name] = out[name + "_first"] = out[name + "_last"] = value;
  out[name + "_cnt"] = {0LL};
  if (type == ValueType::string || !value.number()) return;
  out[name + "_min"] = out[name + "_max"] = out[name + "_sum"] = out[name + "_avg"] = value;
  if (type == ValueType::integer) {
    BigInt whole = as_big(value);
    out[name + "_sum2"] = integer_value(whole * whole);
  } else {
    out[name + "_sum2"] = {square(value.as_double())};
  }
  out[name + "_std"] = {0LL};
}

}  // namespace tally

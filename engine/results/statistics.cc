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

void Statistics::store(const std::string& name, std::map<std::string, Value>& out) const {
  if (count_ == 0) return;
  out[name] = first_;
  out[name + "_first"] = first_;
  out[name + "_last"] = last_;
  out[name + "_cnt"] = {count_};
  if (type_ == ValueType::string) return;
  Value sum{float_sum_};
  Value sum2{float_sum2_};
  double mean = float_sum_ / static_cast<double>(count_);
  if (type_ == ValueType::integer) {
    BigInt total = BigInt(sum_) + big_sum_.value_or(BigInt());
    sum = integer_value(total);
    sum2 = integer_value(BigInt(sum2_) + big_sum2_.value_or(BigInt()));
    mean = total.divide(static_cast<uint32_t>(count_));
  }
  out[name + "_min"] = least_;
  out[name + "_max"] = most_;
  out[name + "_sum"] = sum;
  out[name + "_sum2"] = sum2;
  out[name + "_avg"] = {mean};
  out[name + "_std"] = spread(sum, sum2);
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

#include "engine/results/statistics.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
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

void Statistics::add(const Statistics& later) {
  if (later.count_ == 0) return;
  if (count_ == 0) {
    first_ = later.first_;
    least_ = later.least_;
    most_ = later.most_;
  } else if (type_ != ValueType::string) {
    if (less(later.least_, least_)) least_ = later.least_;
    if (less(most_, later.most_)) most_ = later.most_;
  }
  count_ += later.count_;
  last_ = later.last_;
  if (type_ == ValueType::integer) {
    big_sum_ = as_big(sum()) + as_big(later.sum());
    big_sum2_ = as_big(sum_of_squares()) + as_big(later.sum_of_squares());
    sum_ = sum2_ = 0;
  }
  float_sum_ += later.float_sum_;
  float_sum2_ += later.float_sum2_;
}

// "f", the count, and the length of each value with the value behind it: "5:hello". A double has its
// shortest text that is read back as the same.
std::string Statistics::packed() const {
  constexpr std::string_view kTypes = "sif";
  std::string bytes(1, kTypes[static_cast<size_t>(type_)]);
  const auto put = [&](const std::string& text) {
    bytes += std::to_string(text.size()) + ":" + text;
  };
  put(std::to_string(count_));
  for (const Value& value : {first_, last_, least_, most_, sum(), sum_of_squares()})
    put(value.str());
  return bytes;
}

std::optional<Statistics> Statistics::unpacked(ValueType type, std::string_view bytes) {
  constexpr std::string_view kTypes = "sif";
  if (bytes.empty() || bytes.front() != kTypes[static_cast<size_t>(type)]) return {};
  bytes.remove_prefix(1);
  std::vector<std::string> texts;
  while (!bytes.empty()) {
    const size_t colon = bytes.find(':');
    size_t length = 0;
    if (colon == std::string_view::npos ||
        std::from_chars(bytes.data(), bytes.data() + colon, length).ptr != bytes.data() + colon ||
        length > bytes.size() - colon - 1)
      return {};
    texts.emplace_back(bytes.substr(colon + 1, length));
    bytes.remove_prefix(colon + 1 + length);
  }
  constexpr size_t kTexts = 7;
  if (texts.size() != kTexts) return {};
  Statistics out(type);
  out.count_ = std::atoll(texts[0].c_str());
  const auto value = [&](size_t i) {
    if (type == ValueType::integer) return integer_value(BigInt::from_digits(texts[i]));
    return make_value(texts[i], type).value_or(Value{});
  };
  if (out.count_ <= 0) return {};
  out.first_ = value(1);
  out.last_ = value(2);
  if (type == ValueType::string) return out;
  out.least_ = value(3);
  out.most_ = value(4);
  if (type == ValueType::integer) {
    out.big_sum_ = BigInt::from_digits(texts[5]);
    out.big_sum2_ = BigInt::from_digits(texts[6]);
  } else {
    out.float_sum_ = value(5).as_double();
    out.float_sum2_ = value(6).as_double();
  }
  return out;
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

#include "engine/results/read/match_statistics.h"

#include <charconv>
#include <cmath>

namespace tally {
namespace {

// Python's x ** 2 calls the C library's pow(). With a constant exponent the compiler would replace
// pow() by x * x.
double square(double x) {
  static volatile double two = 2.0;
  return std::pow(x, two);
}

}  // namespace

void Statistics::All::add(const Value& value, ValueType type) {
  last = value;
  if (type == ValueType::string) return;
  if (least.none() || less(value, least)) least = value;
  if (most.none() || less(most, value)) most = value;
  if (type == ValueType::integer) return add_integer(value);
  const double x = std::get<double>(value.data);
  float_sum += x;
  float_sum2 += square(x);
}

void Statistics::All::add_integer(const Value& value) {
  constexpr long long kSmall = 1LL << 40;  // squares below 2^80: 2^46 of them fit
  const auto* small = std::get_if<long long>(&value.data);
  if (small != nullptr && *small<kSmall&& * small> - kSmall) {
    sum += *small;
    sum2 += static_cast<Int128>(*small) * *small;
    return;
  }
  BigInt big = as_big(value);
  big_sum = big_sum.value_or(BigInt()) + big;
  big_sum2 = big_sum2.value_or(BigInt()) + big * big;
}

Value Statistics::All::total(ValueType type) const {
  if (type != ValueType::integer) return {float_sum};
  return integer_value(BigInt(sum) + big_sum.value_or(BigInt()));
}

Value Statistics::All::total_of_squares(ValueType type) const {
  if (type != ValueType::integer) return {float_sum2};
  return integer_value(BigInt(sum2) + big_sum2.value_or(BigInt()));
}

Statistics::All Statistics::of_first() const {
  All all;
  if (count_ > 0) all.add(first_, type_);
  return all;
}

Statistics::All& Statistics::edit() {
  if (!all_) all_ = std::make_unique<All>(of_first());
  return *all_;
}

void Statistics::add(const Value& value) {
  if (count_ == 0) {
    first_ = value;
  } else {
    edit().add(value, type_);
  }
  ++count_;
}

void Statistics::add(const Statistics& later) {
  if (later.count_ == 0) return;
  if (count_ == 0) {
    count_ = later.count_;
    first_ = later.first_;
    if (later.all_) all_ = std::make_unique<All>(*later.all_);
    return;
  }
  All& all = edit();
  const All more = later.all_ ? *later.all_ : later.of_first();
  count_ += later.count_;
  all.last = more.last;
  if (type_ == ValueType::string) return;
  if (less(more.least, all.least)) all.least = more.least;
  if (less(all.most, more.most)) all.most = more.most;
  if (type_ == ValueType::integer) {
    all.big_sum = as_big(all.total(type_)) + as_big(more.total(type_));
    all.big_sum2 = as_big(all.total_of_squares(type_)) + as_big(more.total_of_squares(type_));
    all.sum = all.sum2 = 0;
  }
  all.float_sum += more.float_sum;
  all.float_sum2 += more.float_sum2;
}

// "f", the count, and the length of each value with the value behind it: "5:hello". A double has
// a text that is read back as the same, with the decimals that it was printed with.
std::string Statistics::packed() const {
  constexpr std::string_view kTypes = "sif";
  std::string bytes(1, kTypes[static_cast<size_t>(type_)]);
  const auto put = [&](const std::string& text) {
    bytes += std::to_string(text.size()) + ":" + text;
  };
  put(std::to_string(count_));
  const All made = all_ ? All{} : of_first();
  const All& all = all_ ? *all_ : made;
  for (const Value& value :
       {first_, all.last, all.least, all.most, all.total(type_), all.total_of_squares(type_)})
    put(value.printed());
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
  out.all_ = std::make_unique<All>();
  All& all = *out.all_;
  all.last = value(2);
  if (type == ValueType::string) return out;
  all.least = value(3);
  all.most = value(4);
  if (type == ValueType::integer) {
    all.big_sum = BigInt::from_digits(texts[5]);
    all.big_sum2 = BigInt::from_digits(texts[6]);
  } else {
    all.float_sum = value(5).as_double();
    all.float_sum2 = value(6).as_double();
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

Value Statistics::mean(const All& all) const {
  if (type_ != ValueType::integer) return {all.float_sum / static_cast<double>(count_)};
  const BigInt total = BigInt(all.sum) + all.big_sum.value_or(BigInt());
  return {total.divide(static_cast<uint32_t>(count_))};
}

Value Statistics::value_of(MatchStatistic which) const {
  if (count_ == 0) return {};
  if (which == MatchStatistic::value || which == MatchStatistic::first) return first_;
  if (which == MatchStatistic::count) return {count_};
  if (type_ == ValueType::string && which != MatchStatistic::last) return {};
  const All made = all_ ? All{} : of_first();
  const All& all = all_ ? *all_ : made;
  switch (which) {
    case MatchStatistic::least:
      return all.least;
    case MatchStatistic::most:
      return all.most;
    case MatchStatistic::sum:
      return all.total(type_);
    case MatchStatistic::sum2:
      return all.total_of_squares(type_);
    case MatchStatistic::mean:
      return mean(all);
    case MatchStatistic::deviation:
      return spread(all.total(type_), all.total_of_squares(type_));
    case MatchStatistic::last:
    default:
      return all.last;
  }
}

void Statistics::store(const std::string& name, const StoreValue& out) const {
  for (const auto& [which, stored_name] : all_statistics(name)) {
    Value value = value_of(which);
    if (!value.none()) out(stored_name, std::move(value));
  }
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
                   const StoreValue& out) {
  for (const char* suffix : {"", "_first", "_last"}) out(name + suffix, value);
  out(name + "_cnt", {0LL});
  if (type == ValueType::string || !value.number()) return;
  for (const char* suffix : {"_min", "_max", "_sum", "_avg"}) out(name + suffix, value);
  if (type == ValueType::integer) {
    BigInt whole = as_big(value);
    out(name + "_sum2", integer_value(whole * whole));
  } else {
    out(name + "_sum2", {square(value.as_double())});
  }
  out(name + "_std", {0LL});
}

}  // namespace tally

#include "engine/results/read/match_statistics.h"

#include <charconv>
#include <cmath>
#include <variant>

namespace tally {
namespace {

// Python's x ** 2 calls the C library's pow(). With a constant exponent the compiler would replace
// pow() by x * x.
double square(double x) {
  static volatile double two = 2.0;
  return std::pow(x, two);
}

ValueType own_type(const Value& value) {
  if (!value.number()) return ValueType::string;
  return std::holds_alternative<double>(value.data) ? ValueType::floating : ValueType::integer;
}

}  // namespace

void Statistics::All::add(const Value& value, ValueType type, long long count) {
  last = value;
  if (type == ValueType::string) return;
  up_to_number = count;
  if (least.none() || less(value, least)) least = value;
  if (most.none() || less(most, value)) most = value;
  if (type == ValueType::floating && !floating) make_floating();
  if (!floating) return add_integer(value);
  const double x = value.as_double();
  float_sum += x;
  float_sum2 += square(x);
}

void Statistics::All::make_floating() {
  float_sum = total().as_double();
  float_sum2 = total_of_squares().as_double();
  floating = true;
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

Value Statistics::All::total() const {
  if (floating) return {float_sum};
  return integer_value(BigInt(sum) + big_sum.value_or(BigInt()));
}

Value Statistics::All::total_of_squares() const {
  if (floating) return {float_sum2};
  return integer_value(BigInt(sum2) + big_sum2.value_or(BigInt()));
}

Statistics::All Statistics::of_first() const {
  All all;
  if (count_ > 0) all.add(first_, own_type(first_), 1);
  return all;
}

Statistics::All& Statistics::edit() {
  if (!all_) all_ = std::make_unique<All>(of_first());
  return *all_;
}

void Statistics::take_type(ValueType type) {
  if (count_ == 0) {
    type_ = type;
  } else if (type != type_) {
    const bool texts = type == ValueType::string || type_ == ValueType::string;
    type_ = texts ? ValueType::string : ValueType::floating;
  }
}

void Statistics::add(const Value& value) {
  const ValueType type = own_type(value);
  take_type(type);
  if (count_ == 0) {
    first_ = value;
  } else {
    edit().add(value, type, count_ + 1);
  }
  ++count_;
}

void Statistics::add(const Statistics& later) {
  if (later.count_ == 0) return;
  take_type(later.type_);
  if (count_ == 0) {
    count_ = later.count_;
    first_ = later.first_;
    if (later.all_) all_ = std::make_unique<All>(*later.all_);
    return;
  }
  All& all = edit();
  const All more = later.all_ ? *later.all_ : later.of_first();
  const long long before = count_;
  count_ += later.count_;
  all.last = more.last;
  if (more.up_to_number == 0) return;
  all.up_to_number = before + more.up_to_number;
  if (all.least.none() || less(more.least, all.least)) all.least = more.least;
  if (all.most.none() || less(all.most, more.most)) all.most = more.most;
  if (more.floating && !all.floating) all.make_floating();
  if (all.floating) {
    all.float_sum += more.total().as_double();
    all.float_sum2 += more.total_of_squares().as_double();
  } else {
    all.big_sum = as_big(all.total()) + as_big(more.total());
    all.big_sum2 = as_big(all.total_of_squares()) + as_big(more.total_of_squares());
    all.sum = all.sum2 = 0;
  }
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
       {first_, all.last, all.least, all.most, all.total(), all.total_of_squares()})
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
  all.up_to_number = out.count_;
  all.floating = type == ValueType::floating;
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

Value Statistics::spread(const All& all) {
  if (all.up_to_number == 1) return {0LL};
  const Value sum = all.total(), sum2 = all.total_of_squares();
  const auto n = static_cast<double>(all.up_to_number);
  double difference = 0;
  if (!all.floating) {
    BigInt total = as_big(sum);
    difference = sum2.as_double() - (total * total).divide(static_cast<uint32_t>(all.up_to_number));
  } else {
    difference = sum2.as_double() - square(sum.as_double()) / n;
  }
  return {std::sqrt(std::fabs(difference) / (n - 1))};
}

Value Statistics::mean(const All& all) {
  if (all.floating) return {all.float_sum / static_cast<double>(all.up_to_number)};
  const BigInt total = BigInt(all.sum) + all.big_sum.value_or(BigInt());
  return {total.divide(static_cast<uint32_t>(all.up_to_number))};
}

Value Statistics::value_of(MatchStatistic which) const {
  if (count_ == 0) return {};
  if (which == MatchStatistic::value || which == MatchStatistic::first) return first_;
  if (which == MatchStatistic::count) return {count_};
  if (which != MatchStatistic::last && !has_numbers()) return {};
  const All made = all_ ? All{} : of_first();
  const All& all = all_ ? *all_ : made;
  switch (which) {
    case MatchStatistic::least:
      return all.least;
    case MatchStatistic::most:
      return all.most;
    case MatchStatistic::sum:
      return all.total();
    case MatchStatistic::sum2:
      return all.total_of_squares();
    case MatchStatistic::mean:
      return mean(all);
    case MatchStatistic::deviation:
      return spread(all);
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

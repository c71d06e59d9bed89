#include "engine/python/big_int.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tally {
namespace {

using Limbs = std::vector<uint32_t>;

int compare_magnitude(const Limbs& a, const Limbs& b) {
  if (a.size() != b.size()) return a.size() < b.size() ? -1 : 1;
  for (size_t i = a.size(); i-- > 0;) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

Limbs add_magnitude(const Limbs& a, const Limbs& b) {
  Limbs sum(std::max(a.size(), b.size()) + 1);
  uint64_t carry = 0;
  for (size_t i = 0; i < sum.size(); ++i) {
    carry += (i < a.size() ? a[i] : 0ULL) + (i < b.size() ? b[i] : 0ULL);
    sum[i] = static_cast<uint32_t>(carry);
    carry >>= 32;
  }
  return sum;
}

// a - b for a >= b.
Limbs subtract_magnitude(const Limbs& a, const Limbs& b) {
  Limbs difference(a.size());
  int64_t borrow = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    int64_t digit = static_cast<int64_t>(a[i]) - (i < b.size() ? b[i] : 0) - borrow;
    borrow = digit < 0 ? 1 : 0;
    difference[i] = static_cast<uint32_t>(digit + (borrow << 32));
  }
  return difference;
}

}  // namespace

BigInt::BigInt(Int128 value) : negative_(value < 0) {
  auto magnitude = static_cast<UInt128>(value);
  if (negative_) magnitude = -magnitude;
  for (; magnitude != 0; magnitude >>= 32) limbs_.push_back(static_cast<uint32_t>(magnitude));
}

BigInt BigInt::from_double(double value) {
  int exponent = 0;
  double fraction = std::frexp(std::trunc(value), &exponent);
  if (exponent <= 64) return BigInt(static_cast<Int128>(std::trunc(value)));
  BigInt result(static_cast<Int128>(std::ldexp(fraction, 53)));
  result.shift_left(static_cast<unsigned>(exponent - 53));
  return result;
}

BigInt BigInt::from_digits(std::string_view digits) {
  const bool negative = !digits.empty() && digits.front() == '-';
  if (negative) digits.remove_prefix(1);
  BigInt value;
  for (const char digit : digits)
    value = value * BigInt(static_cast<Int128>(10)) + BigInt(static_cast<Int128>(digit - '0'));
  value.negative_ = negative && !value.zero();
  return value;
}

void BigInt::trim() {
  while (!limbs_.empty() && limbs_.back() == 0) limbs_.pop_back();
  if (limbs_.empty()) negative_ = false;
}

size_t BigInt::bit_length() const {
  if (limbs_.empty()) return 0;
  return limbs_.size() * 32 - static_cast<size_t>(__builtin_clz(limbs_.back()));
}

void BigInt::shift_left(unsigned bits) {
  limbs_.insert(limbs_.begin(), bits / 32, 0);
  unsigned rest = bits % 32;
  if (rest != 0) {
    uint64_t carry = 0;
    for (uint32_t& limb : limbs_) {
      carry |= static_cast<uint64_t>(limb) << rest;
      limb = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    limbs_.push_back(static_cast<uint32_t>(carry));
  }
  trim();
}

uint32_t BigInt::divide_in_place(uint32_t divisor) {
  uint64_t remainder = 0;
  for (size_t i = limbs_.size(); i-- > 0;) {
    remainder = (remainder << 32) | limbs_[i];
    limbs_[i] = static_cast<uint32_t>(remainder / divisor);
    remainder %= divisor;
  }
  trim();
  return static_cast<uint32_t>(remainder);
}

bool BigInt::fits(long long* out) const {
  if (limbs_.size() > 2) return false;
  uint64_t magnitude = 0;
  for (size_t i = limbs_.size(); i-- > 0;) magnitude = (magnitude << 32) | limbs_[i];
  constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<long long>::max());
  if (magnitude > kMost + (negative_ ? 1 : 0)) return false;
  *out = static_cast<long long>(negative_ ? -magnitude : magnitude);
  return true;
}

std::string BigInt::str(uint32_t base) const {
  if (limbs_.empty()) return "0";
  uint32_t chunk = base;  // as many digits at once as fit in one division
  int digits = 1;
  while (static_cast<uint64_t>(chunk) * base <= std::numeric_limits<uint32_t>::max()) {
    chunk *= base;
    ++digits;
  }
  std::string reversed;
  BigInt rest = *this;
  while (!rest.limbs_.empty()) {
    uint32_t part = rest.divide_in_place(chunk);
    for (int i = 0; i < digits && (part != 0 || !rest.limbs_.empty()); ++i, part /= base) {
      reversed += "0123456789abcdef"[part % base];
    }
  }
  if (negative_) reversed += '-';
  return {reversed.rbegin(), reversed.rend()};
}

// Uses the 64 leading bits with a sticky lowest bit, so that the conversion rounds only once.
double BigInt::to_double() const {
  size_t bits = bit_length();
  uint64_t top = 0;
  bool sticky = false;
  if (bits <= 64) {
    for (size_t i = limbs_.size(); i-- > 0;) top = (top << 32) | limbs_[i];
  } else {
    size_t drop = bits - 64;
    for (size_t bit = 0; bit < 64; ++bit) {
      size_t at = drop + bit;
      top |= static_cast<uint64_t>((limbs_[at / 32] >> (at % 32)) & 1U) << bit;
    }
    for (size_t at = 0; at < drop / 32; ++at) sticky = sticky || limbs_[at] != 0;
    if (drop % 32 != 0) {
      sticky = sticky || (limbs_[drop / 32] & ((1U << (drop % 32)) - 1)) != 0;
    }
  }
  if (sticky) top |= 1;
  double value = std::ldexp(static_cast<double>(top), bits > 64 ? static_cast<int>(bits - 64) : 0);
  return negative_ ? -value : value;
}

BigInt BigInt::operator+(const BigInt& other) const {
  BigInt result;
  if (negative_ == other.negative_) {
    result.limbs_ = add_magnitude(limbs_, other.limbs_);
    result.negative_ = negative_;
  } else if (compare_magnitude(limbs_, other.limbs_) >= 0) {
    result.limbs_ = subtract_magnitude(limbs_, other.limbs_);
    result.negative_ = negative_;
  } else {
    result.limbs_ = subtract_magnitude(other.limbs_, limbs_);
    result.negative_ = other.negative_;
  }
  result.trim();
  return result;
}

BigInt BigInt::operator*(const BigInt& other) const {
  BigInt result;
  result.limbs_.assign(limbs_.size() + other.limbs_.size(), 0);
  for (size_t i = 0; i < limbs_.size(); ++i) {
    uint64_t carry = 0;
    for (size_t j = 0; j < other.limbs_.size(); ++j) {
      carry += static_cast<uint64_t>(limbs_[i]) * other.limbs_[j] + result.limbs_[i + j];
      result.limbs_[i + j] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
    result.limbs_[i + other.limbs_.size()] = static_cast<uint32_t>(carry);
  }
  result.negative_ = negative_ != other.negative_;
  result.trim();
  return result;
}

// Scales the dividend so that the quotient has at least 66 bits. The remainder becomes the sticky
// bit.
double BigInt::divide(uint32_t count) const {
  constexpr unsigned kScale = 128;
  BigInt quotient = *this;
  quotient.shift_left(kScale);
  uint32_t remainder = quotient.divide_in_place(count);
  if (remainder != 0 && !quotient.limbs_.empty()) quotient.limbs_.front() |= 1U;
  if (bit_length() <= 900) {
    return std::ldexp(quotient.to_double(), -static_cast<int>(kScale));
  }
  BigInt whole = *this;  // scaling would leave a double's range and is not needed
  if (whole.divide_in_place(count) != 0) whole.limbs_.front() |= 1U;
  return whole.to_double();
}

std::strong_ordering BigInt::operator<=>(const BigInt& other) const {
  if (negative_ != other.negative_) {
    return negative_ ? std::strong_ordering::less : std::strong_ordering::greater;
  }
  int order = compare_magnitude(limbs_, other.limbs_);
  if (negative_) order = -order;
  return order <=> 0;
}

}  // namespace tally

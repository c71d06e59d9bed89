// Integers of unlimited size, for the few places where Python's int matters: sums and squares of
// pattern values, and int(float("1e30")).
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

__extension__ typedef __int128 Int128;
__extension__ typedef unsigned __int128 UInt128;

// Sign and magnitude. Zero is never negative. A value type; operations are O(digits) or schoolbook
// O(digits^2).
class BigInt {
 public:
  BigInt() = default;
  explicit BigInt(Int128 value);
  // The exact integer part of a finite double, as Python's int(x) gives it.
  static BigInt from_double(double value);
  // Decimal digits, perhaps behind a minus.
  static BigInt from_digits(std::string_view digits);

  bool negative() const { return negative_; }
  bool zero() const { return limbs_.empty(); }
  // Whether the value fits a long long. If it does, *out is set.
  bool fits(long long* out) const;
  // Digits in a base from 2 to 16, lower case, with a minus sign.
  std::string str(uint32_t base = 10) const;
  // The nearest double, with ties to even. Infinity if the value is out of range.
  double to_double() const;

  BigInt operator+(const BigInt& other) const;
  BigInt operator*(const BigInt& other) const;
  // Python's true division by a positive count. The quotient is correctly rounded.
  double divide(uint32_t count) const;
  std::strong_ordering operator<=>(const BigInt& other) const;
  bool operator==(const BigInt& other) const = default;

 private:
  void trim();
  void shift_left(unsigned bits);
  uint32_t divide_in_place(uint32_t divisor);  // returns the remainder
  size_t bit_length() const;

  std::vector<uint32_t> limbs_;  // least significant first, no leading zeros
  bool negative_ = false;
};

}  // namespace tally

// Ticks: which values an axis names, and how it writes them.
#include "engine/chart/ticks.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "engine/chart/markup.h"

using namespace tally;

namespace {

std::string labels(const Scale& scale) {
  std::string out;
  for (const Tick& tick : scale.ticks) out += (out.empty() ? "" : " ") + tick.label;
  return out;
}

}  // namespace

TEST_CASE("a linear axis has ticks at multiples of 1, 2 or 5") {
  CHECK(labels(linear_scale(0, 10, 5, true)) == "0 2 4 6 8 10");
  CHECK(labels(linear_scale(0, 34063, 6, true)) == "0 10,000 20,000 30,000 40,000");
  CHECK(labels(linear_scale(0.2, 0.9, 5, true)) == "0.2 0.4 0.6 0.8 1");
  CHECK(labels(linear_scale(-3, 4, 4, true)) == "-4 -2 0 2 4");
  // Without round ends the axis ends at the values.
  const Scale scale = linear_scale(1, 8, 8, false);
  CHECK(labels(scale) == "1 2 3 4 5 6 7 8");
  CHECK(scale.at(1) == 0);
  CHECK(scale.at(8) == 1);
}

TEST_CASE("an axis with ticks at its values") {
  const Scale scale = linear_scale_at({48, 96, 144, 192});
  CHECK(labels(scale) == "48 96 144 192");
  CHECK(scale.at(48) == 0);
  CHECK(scale.at(192) == 1);
  const Scale large = linear_scale_at({1.5e6, 3e6});
  CHECK(large.exponent == 6);
  CHECK(labels(large) == "1.5 3");
}

TEST_CASE("large and small values have a common power of ten") {
  const Scale large = linear_scale(0, 2.4e6, 5, true);
  CHECK(large.exponent == 6);
  CHECK(labels(large) == "0 0.5 1 1.5 2 2.5");
  const Scale small = linear_scale(0, 4e-5, 5, true);
  CHECK(small.exponent == -6);
  CHECK(labels(small) == "0 10 20 30 40");
  CHECK(power_label(6) == "×10⁶");
  CHECK(power_label(-12) == "×10⁻¹²");
}

TEST_CASE("an axis exists for equal, for extreme and for huge values") {
  for (const double value : {0.0, 5.0, -1e-300, 1e300, std::numeric_limits<double>::max()}) {
    const Scale scale = linear_scale(value, value, 5, true);
    CHECK(scale.low < scale.high);
    CHECK(scale.ticks.size() >= 2);
    CHECK(scale.ticks.size() <= 12);
  }
  const Scale wide = linear_scale(-1e308, 1e308, 5, true);
  CHECK(wide.ticks.size() <= 12);
}

TEST_CASE("a logarithmic axis has decades, and 2 and 5 between them where there are few") {
  CHECK(labels(log_scale(1, 1000, 6)) == "1 10 100 1,000");
  CHECK(labels(log_scale(3, 60, 6)) == "2 5 10 20 50 100");
  CHECK(labels(log_scale(1e-9, 1e9, 6)) == "10⁻⁹ 10⁻⁶ 0.001 1 1,000 1,000,000 10⁹");
  CHECK(labels(log_scale(1, 8, 6, {1, 2, 4, 8})) == "1 2 4 8");
  const Scale scale = log_scale(1, 100, 6);
  CHECK(scale.at(10) == doctest::Approx(0.5));
  const Scale same = log_scale(4, 4, 6);
  CHECK(same.low < 4);
  CHECK(same.high > 4);
}

TEST_CASE("numbers are written for people") {
  CHECK(number_label(0) == "0");
  CHECK(number_label(34063) == "34,063");
  CHECK(number_label(-1234.5) == "-1,234.5");
  CHECK(number_label(0.1 + 0.2) == "0.3");
  CHECK(number_label(999999.7) == "1,000,000");
  CHECK(number_label(123456789) == "1.23457×10⁸");
  CHECK(number_label(1e-7) == "10⁻⁷");
  CHECK(number_label(std::numeric_limits<double>::quiet_NaN()) == "not a number");
}

TEST_CASE("hostile texts are harmless in markup") {
  CHECK(escaped("<script>alert(\"x\")</script> & co") ==
        "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; co");
  CHECK(escaped(std::string("a\0b\x1b[1m\r\xff", 9)) == "a�b�[1m��");
  CHECK(escaped("größe \t\n 模型") == "größe \t\n 模型");
  CHECK(escaped("\xed\xa0\x80") == "���");  // a surrogate
}

TEST_CASE("a text is shortened to its room") {
  CHECK(shortened("short", 10) == "short");
  CHECK(shortened("a rather long text", 5) == "a rather…");
  CHECK(text_width(shortened("a rather long text", 5)) <= 5);
}

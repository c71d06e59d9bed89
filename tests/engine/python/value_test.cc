// Numbers as Python prints and parses them.
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <random>

#include "engine/python/value.h"
#include "tests/engine/python/python.h"

using namespace tally;
using tally::testing::run_python;

TEST_CASE("floats print as Python's repr") {
  CHECK(python_repr(1.0) == "1.0");
  CHECK(python_repr(1e22) == "1e+22");
  CHECK(python_repr(1e20) == "1e+20");
  CHECK(python_repr(1e-5) == "1e-05");
  CHECK(python_repr(1.0 / 3) == "0.3333333333333333");
  CHECK(python_repr(std::nan("")) == "nan");
  CHECK(python_repr(-INFINITY) == "-inf");
  CHECK(python_repr(-0.0) == "-0.0");
}

TEST_CASE("two thousand random doubles print as python3 prints them") {
  std::mt19937_64 random(7);
  std::vector<double> values;
  std::string input;
  while (values.size() < 2000) {
    uint64_t bits = random();
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (values.size() % 2 == 0)
      value = std::ldexp(static_cast<double>(bits >> 11), -40 + int(bits % 40));
    if (!std::isfinite(value)) continue;
    values.push_back(value);
    char text[64];
    std::snprintf(text, sizeof text, "%a\n", value);
    input += text;
  }
  auto lines = run_python(
      "import sys\nfor l in open(sys.argv[1]): print(repr(float.fromhex(l.strip())))\n", input);
  REQUIRE(lines.size() == values.size());
  for (size_t i = 0; i < values.size(); ++i) CHECK(python_repr(values[i]) == lines[i]);
}

TEST_CASE("texts become floats exactly when Python's float() takes them") {
  std::vector<std::string> texts = {
      "1",     " 1.5 ",   "+2",  "-3.",    ".5",     ".",     "",      "1e5",    "1E-5",     "e5",
      "1_000", "_1",      "1_",  "1__0",   "inf",    "-Inf",  "NaN",   "nan(1)", "infinity", "0x10",
      "1,5",   "--1",     "+-1", "1e400",  "1e-400", "12abc", "\t7\n", "1 2",    "1e",       "1e+",
      "01",    "1.5e1_0", "abc", "-.5e-3", "1f",     "1d",    "+",     "1._5"};
  std::string input;
  for (const std::string& text : texts) input += text + '\x01';
  auto lines = run_python(
      "import sys\nfor t in open(sys.argv[1]).read().split('\\x01')[:-1]:\n"
      "    try: print(repr(float(t)))\n    except ValueError: print('error')\n",
      input);
  REQUIRE(lines.size() == texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(texts[i]);
    std::optional<double> value = python_float(texts[i]);
    CHECK((value ? python_repr(*value) : "error") == lines[i]);
  }
}

TEST_CASE("an int value goes through a double, as in JUBE") {  // spec/jube.md section 2, row 11
  CHECK(make_value("3.9", ValueType::integer)->str() == "3");
  CHECK(make_value("-3.9", ValueType::integer)->str() == "-3");
  CHECK(make_value("12345678901234567", ValueType::integer)->str() == "12345678901234568");
  CHECK(make_value("1e30", ValueType::integer)->str() == "1000000000000000019884624838656");
  CHECK(!make_value("abc", ValueType::integer));
  CHECK(!make_value("inf", ValueType::integer));
  CHECK(make_value("-3.10", ValueType::floating)->str() == "-3.1");
  CHECK(make_value("1e3", ValueType::floating)->str() == "1000.0");
  CHECK(make_value("abc", ValueType::string)->str() == "abc");
}

TEST_CASE("an exact int has the digits of its text") {
  const auto exact = [](const char* text) {
    const auto value = make_value(text, ValueType::integer, true);
    return value ? value->str() : "none";
  };
  CHECK(exact("9007199254740992") == "9007199254740992");
  CHECK(exact(" +9007199254740993 ") == "9007199254740993");
  CHECK(exact("-9223372036854775808") == "-9223372036854775808");
  CHECK(exact("99999999999999999999") == "99999999999999999999");
  CHECK(exact("9_007_199_254_740_993") == "9007199254740993");
  CHECK(exact("0009007199254740993.00") == "9007199254740993");
  CHECK(exact("1e22") == "10000000000000000000000");
  CHECK(exact("90071992.54740993e0_8") == "9007199254740993");
  CHECK(exact("9007199254740993.5") == "none");
  CHECK(exact("9007199254740993.5e0") == "none");
  CHECK(exact("1.5") == "none");
  CHECK(exact("1e400") == "none");
  CHECK(
      std::get_if<long long>(&make_value("-9223372036854775808", ValueType::integer, true)->data));
}

TEST_CASE("whole numbers of any size: sums, squares, quotients as Python's") {
  std::mt19937_64 random(11);
  std::string input;
  std::vector<std::pair<BigInt, BigInt>> pairs;
  std::vector<uint32_t> counts;
  for (int i = 0; i < 400; ++i) {
    double a =
        std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 300) - 40);
    double b =
        std::ldexp(static_cast<double>(random() >> 11), static_cast<int>(random() % 300) - 40);
    if (i % 3 == 0) a = -a;
    if (i % 5 == 0) b = -b;
    pairs.emplace_back(BigInt::from_double(a), BigInt::from_double(b));
    counts.push_back(static_cast<uint32_t>(random() % 1000 + 1));
    char text[160];
    std::snprintf(text, sizeof text, "%a %a %u\n", a, b, counts.back());
    input += text;
  }
  auto lines = run_python(
      "import sys\nfor l in open(sys.argv[1]):\n    a, b, n = l.split()\n"
      "    a = int(float.fromhex(a)); b = int(float.fromhex(b))\n"
      "    print(a, a + b, a * b, repr(a / int(n)), a < b, repr(float(a * b)), hex(a), sep='|')\n",
      input);
  REQUIRE(lines.size() == pairs.size());
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [a, b] = pairs[i];
    std::string hexed = a.str(16);
    hexed.insert(a.negative() ? 1 : 0, "0x");
    std::string ours = a.str() + "|" + (a + b).str() + "|" + (a * b).str() + "|" +
                       python_repr(a.divide(counts[i])) + "|" + (a < b ? "True" : "False") + "|" +
                       python_repr((a * b).to_double()) + "|" + hexed;
    CHECK(ours == lines[i]);
  }
}

TEST_CASE("values compare as Python's numbers and strings") {
  CHECK(less({2LL}, {10LL}));
  CHECK(less({std::string("10")}, {std::string("2")}));
  CHECK(!less({}, {1LL}));
  CHECK(!less({1LL}, {}));
  CHECK(less({1LL}, {1.5}));
  CHECK(Value{2LL} == Value{2.0});
}

TEST_CASE("printed: a float has the digits of its text") {
  struct Case {
    const char *text, *printed;
  };
  for (const auto& [text, printed] :
       {Case{"12", "12"}, Case{"0.040", "0.040"}, Case{"+1.50", "1.50"}, Case{"-0.0", "-0.0"},
        Case{".5", "0.5"}, Case{"7.", "7"}, Case{"1e3", "1000"}, Case{"1.50e+03", "1500"},
        Case{"1.234560e+03", "1234.560"}, Case{"1.5E-3", "0.0015"}, Case{"0.000e+00", "0.000"},
        Case{"0.00001", "0.00001"}, Case{"123456789.10", "123456789.10"},
        // As Python: with an exponent, or with more digits than a double keeps.
        Case{"6.02e23", "6.02e+23"}, Case{"1.5e-9", "1.5e-09"},
        Case{"3.14159265358979323846", "3.141592653589793"},
        Case{"12345678901234567", "1.2345678901234568e+16"}, Case{"nan", "nan"},
        Case{"-inf", "-inf"}, Case{"1_000.0", "1000"}}) {
    CAPTURE(std::string(text));
    const std::optional<Value> value = make_value(text, ValueType::floating);
    REQUIRE(value);
    CHECK(value->printed() == printed);
    if (!std::isnan(value->as_double()))
      CHECK(python_float(value->printed()) == python_float(value->str()));
  }
  CHECK(make_value("012", ValueType::integer)->printed() == "12");
  CHECK(make_value("0.040", ValueType::string)->printed() == "0.040");
  // Computed ones.
  CHECK(Value{12.0}.printed() == "12");
  CHECK(Value{12.25}.printed() == "12.25");
  CHECK(Value{1e16}.printed() == "1e+16");
}

TEST_CASE("printed: a statistic of floats that has more decimals than these") {
  CHECK(Value{12.5, 0}.printed() == "12.5");
  CHECK(Value{0.15, 1}.printed() == "0.15");
  CHECK(Value{12.0, 3}.printed() == "12.000");
  CHECK(Value{38.0 / 3, 0}.printed() == "12.6667");
  CHECK(Value{123456.785, 2}.printed() == "123456.785");
  CHECK(Value{1234567.0 / 3, 2}.printed() == "411522.333");
  CHECK(Value{1e-20 / 3, 0}.printed() == "3.33333e-21");
  CHECK(Value{std::nan(""), 1}.printed() == "nan");
}

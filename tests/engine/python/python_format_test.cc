// Python's format mini-language against python3's own format().
#include "engine/python/python_format.h"

#include <doctest/doctest.h>

#include <unistd.h>
#include "engine/base/text.h"

#include "tests/engine/python/python.h"

using namespace tally;
using tally::testing::hex;
using tally::testing::run_python;

namespace {

constexpr const char* kReference = R"(
import sys
for case in open(sys.argv[1]).read().split('\x01')[:-1]:
    kind, text, spec = case.split('\x02')
    value = {'s': str, 'i': int, 'f': float}[kind](text)
    try:
        print(format(value, spec).encode().hex())
    except (ValueError, OverflowError):
        print('error')
)";

// What a column's format does with a value, as observed of JUBE: int first for any of dbcoxX, float
// for any of eEfFgG.
constexpr const char* kCell = R"(
import sys
for case in open(sys.argv[1]).read().split('\x01')[:-1]:
    kind, text, spec = case.split('\x02')
    value = {'s': str, 'i': int, 'f': float}[kind](text)
    try:
        if any(c in spec for c in 'dbcoxX'): value = int(float(value))
        elif any(c in spec for c in 'eEfFgG'): value = float(value)
        print(('{:' + spec + '}').format(value).encode().hex())
    except (ValueError, OverflowError):
        print('error')
)";

Value make(const std::string& kind, const std::string& text) {
  if (kind == "s") return {text};
  if (kind == "f") return {*python_float(text)};
  if (text.size() < 18) return {std::stoll(text)};
  return *make_value(text, ValueType::integer);  // powers of two, exact in a double
}

using Formatter = Status (*)(const Value&, std::string_view, std::string*);

void compare(const char* reference, Formatter formatter, const std::vector<std::string>& specs) {
  const std::vector<std::pair<std::string, std::string>> values = {{"i", "0"},
                                                                   {"i", "1"},
                                                                   {"i", "-1"},
                                                                   {"i", "42"},
                                                                   {"i", "1234567"},
                                                                   {"i", "-9876543"},
                                                                   {"i", "147573952589676412928"},
                                                                   {"f", "0.0"},
                                                                   {"f", "-0.0"},
                                                                   {"f", "1.0"},
                                                                   {"f", "-2.5"},
                                                                   {"f", "3.14159"},
                                                                   {"f", "1e22"},
                                                                   {"f", "123456.789"},
                                                                   {"f", "1e-7"},
                                                                   {"f", "nan"},
                                                                   {"f", "inf"},
                                                                   {"f", "-inf"},
                                                                   {"f", "99.995"},
                                                                   {"f", "1000.0"},
                                                                   {"s", "abc"},
                                                                   {"s", "h\xc3\xa9llo"},
                                                                   {"s", "12.75"}};
  std::string input;
  for (const std::string& spec : specs) {
    for (const auto& [kind, text] : values) {
      input += kind + '\x02' + text + '\x02' + spec + '\x01';
    }
  }
  std::vector<std::string> expected = run_python(reference, input);
  REQUIRE(expected.size() == specs.size() * values.size());
  size_t at = 0;
  for (const std::string& spec : specs) {
    for (const auto& value : values) {
      const auto kind = value.first;
      const std::string text = value.second;
      std::string out;
      const Status formatted = formatter(make(kind, text), spec, &out);
      const std::string ours = formatted ? hex(out) : "error";
      CAPTURE(spec);
      CAPTURE(text);
      CAPTURE(out);
      CAPTURE(formatted.message());
      CHECK(ours == expected[at]);
      ++at;
    }
  }
}

}  // namespace

TEST_CASE("format() of ints, floats and strings as python3 gives it") {
  compare(kReference, python_format,
          {"",        "d",    "5d",      "05d",  "+d",  " d",    "<8d",   ">8d",    "^8d",
           "=8d",     "*^9d", ",",       ",d",   "_d",  "012,d", "x",     "X",      "#x",
           "#X",      "08x",  "#010x",   "b",    "#b",  "_b",    "_x",    "o",      "#o",
           "c",       "5c",   "n",       "f",    ".0f", ".2f",   "10.3f", "-10.3f", "+.1f",
           "010.2f",  ",.2f", "015,.2f", "#.0f", "F",   "e",     ".3e",   "E",      "12.2e",
           "g",       ".3g",  ".10g",    "#g",   "G",   "%",     ".1%",   "10.2%",  ".3",
           "8.3",     ".10",  ".0",      "#.3",  "+.2", "z.1f",  "zf",    "s",      ".2s",
           "10s",     "<10",  ">10",     "^10",  "^11", "=10",   "010",   "0<10",   "\xc3\xa9^9",
           ",s",      "5.1s", "+s",      ".d",   "5.d", ".2d",   "q",     "10q",    "5dd",
           "{}",      "1,2",  "020,.3f", "_f",   "09,", "010,",  "+,.1f", " ,.1f",  "013_d",
           "018,.2e", ".16",  ".17",     ".1",   "25",  "<025",  "x<8",   "d<8d",   "#.3g",
           ",_d",     "__d",  ",n",      "_n",   ",c",  "+c",    "#d",    "#,d",    "zd"});
}

TEST_CASE("a column's format converts first, as JUBE does") {
  const Formatter as_jube = [](const Value& value, std::string_view spec, std::string* out) {
    return format_cell(value, spec, false, out);
  };
  compare(kCell, as_jube,
          {"d", "05d", ".2f", "10.3e", "g", ",.2f", "<8", "^9", "x", ".1%", "5.1f", "_d", "", "c"});
}

TEST_CASE("length counts characters, not bytes") {
  CHECK(code_points("h\xc3\xa9llo") == 5);
  CHECK(code_points("") == 0);
}

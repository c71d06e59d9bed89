#include "engine/read/yaml_scalar.h"

#include <doctest/doctest.h>

#include "engine/python/value.h"

using namespace tally;

namespace {

std::string constructed(const std::string& plain) {
  std::string text;
  const Status made = construct_scalar(plain, resolve_scalar(plain), &text);
  return made ? text : "error: " + made.message();
}

struct Row {
  const char* plain;
  const char* text;
};

}  // namespace

// What JUBE makes of plain scalars: observed on 2.7.1 and 2.5.1, and PyYAML's own answers.
TEST_CASE("plain scalars become what PyYAML and str() make of them") {
  const Row rows[] = {
      {"yes", "True"},
      {"off", "False"},
      {"On", "True"},
      {"y", "y"},
      {"n", "n"},
      {"007", "7"},
      {"010", "8"},
      {"08", "08"},
      {"1_000", "1000"},
      {"0x10", "16"},
      {"-0x1F", "-31"},
      {"0b11", "3"},
      {"+12", "12"},
      {"0", "0"},
      {"-0", "0"},
      {"12:30:00", "45000"},
      {"00:30:00", "00:30:00"},
      {"1:2.5", "62.5"},
      {"1e3", "1e3"},
      {"1.5e3", "1.5e3"},
      {"1.0e+3", "1000.0"},
      {".5", "0.5"},
      {"1.", "1.0"},
      {"-.5", "-.5"},
      {".inf", "inf"},
      {"-.inf", "-inf"},
      {".nan", "nan"},
      {"~", ""},
      {"null", ""},
      {"", ""},
      {"text", "text"},
      {"1.2.3", "1.2.3"},
      {"-", "-"},
      {"+", "+"},
      {".", "."},
      {"123456789012345678901234567890", "123456789012345678901234567890"},
      {"0xFFFFFFFFFFFFFFFFFFFF", "1208925819614629174706175"},
      {"1.0e+22", "1e+22"},
      {"0.00001", "1e-05"},
      {"3.10", "3.1"},
      {"2026-11-21", "2026-11-21"},
      {"2026-11-21T01:02:03Z", "2026-11-21 01:02:03+00:00"},
      {"2026-11-21 01:02:03.5", "2026-11-21 01:02:03.500000"},
      {"2026-11-21 1:02:03 -5:30", "2026-11-21 01:02:03-05:30"},
      {"2026-1-2", "2026-1-2"},
      {"2026-13-01", "2026-13-01"},
      {"2026-02-30", "2026-02-30"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.plain));
    CHECK(constructed(row.plain) == row.text);
  }
}

TEST_CASE("scalars that mean something else are errors") {
  CHECK(constructed("=") ==
        "error: a bare '=' has a special meaning in YAML and is not a valid value");
  CHECK(constructed("<<") ==
        "error: a bare '<<' has a special meaning in YAML and is not a valid value");
  CHECK(constructed("0b_") == "error: '0b_' is not an integer");
}

TEST_CASE("explicit types read text as that type or refuse") {
  std::string text;
  CHECK(construct_scalar("12", ScalarType::floating, &text));
  CHECK(text == "12.0");
  CHECK(construct_scalar("abc", ScalarType::integer, &text).message() == "'abc' is not an integer");
  CHECK_FALSE(construct_scalar("maybe", ScalarType::boolean, &text));
}

// Values of Python 3.11's repr().
TEST_CASE("floats print as Python prints them") {
  CHECK(python_repr(1.0 / 3) == "0.3333333333333333");
  CHECK(python_repr(1e16) == "1e+16");
  CHECK(python_repr(123456789012345680.0) == "1.2345678901234568e+17");
  CHECK(python_repr(1e15) == "1000000000000000.0");
  CHECK(python_repr(-0.0) == "-0.0");
  CHECK(python_repr(1e-4) == "0.0001");
}

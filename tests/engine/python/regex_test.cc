// Patterns against Python's own re.findall on the same text.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <unistd.h>

#include <ctime>
#include <memory>
#include <string>

#include "engine/python/python_regex.h"
#include "tests/engine/python/python.h"

using tally::Regex;
using tally::Status;
using tally::testing::hex;
using tally::testing::run_python;

namespace {

struct Case {
  const char* pattern;
  std::string text;
};

std::unique_ptr<Regex> valid(const std::string& pattern, bool dot_all = false) {
  std::unique_ptr<Regex> regex;
  const Status compiled = Regex::compile(pattern, dot_all, &regex);
  REQUIRE_MESSAGE(compiled, compiled.message());
  return regex;
}

std::string error_of(const std::string& pattern) {
  std::unique_ptr<Regex> regex;
  const Status compiled = Regex::compile(pattern, false, &regex);
  CHECK(regex == nullptr);
  return compiled.message();
}

std::string find_all(const std::string& pattern, const std::string& text, bool ascii) {
  std::unique_ptr<Regex> regex;
  if (!Regex::compile(pattern, false, &regex)) return "error";
  std::string out;
  const Status searched = regex->find_all(text, ascii, [&](std::string_view match, int) {
    if (!match.empty()) out += hex(std::string(match)) + ",";
  });
  return searched ? fmt::format("[{}]", out) : "gave up: " + searched.message();
}

bool is_ascii(const std::string& text) {
  for (char c : text) {
    if (static_cast<unsigned char>(c) > 127) return false;
  }
  return true;
}

// findall with MULTILINE, groups flattened, empty matches dropped: JUBE's use of it.
constexpr const char* kReference = R"(
import re, sys, warnings
warnings.simplefilter('ignore')
data = open(sys.argv[1], 'rb').read().decode()
for case in data.split('\x01')[:-1]:
    pattern, text = case.split('\x02')
    try:
        found = re.findall(pattern, text, re.MULTILINE)
    except re.error:
        print('error')
        continue
    flat = []
    for f in found:
        flat.extend(f if isinstance(f, tuple) else (f,))
    print('[' + ''.join(f.encode().hex() + ',' for f in flat if f != '') + ']')
)";

const std::vector<Case>& cases() {
  static const std::vector<Case> list = {
      {R"(time=([+-]?\d+))", "time=1 time=-22\ntime=x time=+3"},
      {R"(t=([+-]?(?:\d*\.?\d+(?:[eE][-+]?\d+)?|\d+\.)))", "t=1.5 t=2 t=4e0 t=.5 t=7. t=-1e-3"},
      {R"(x=(\d+) y=(\d+))", "x=1 y=2\nx=3 y=4\n"},
      {R"(q=(\d*))", "q= q=5"},
      {R"(\d*)", "12a345"},
      {R"(a|)", "baab"},
      {R"(^time=(\S+)$)", "time=1\n time=2\ntime=3"},
      {R"(^)", "a\nb\n"},
      {R"(^x?)", "a\nx\n"},
      {R"($)", "a\n\n"},
      {R"(a$)", "a\na"},
      {R"(\Aab)", "ab\nab"},
      {R"(ab\Z)", "ab\nab"},
      {R"(ab\Z)", "ab\nab\n"},
      {R"(a{,2})", "aaaa a{,2}"},
      {R"(ba{,2}c)", "bc bac baac baaac"},
      {R"(a{2,})", "aaaa a"},
      {R"(a{,})", "aaaa a"},
      {R"(a{2})", "aaaa a"},
      {R"(a{x})", "a{x} aa"},
      {R"(a{})", "a{} aa"},
      {R"([[:digit:]]+)", "1:d]i] [:t]"},
      {R"([]a]+)", "]a]b"},
      {R"([^]a]+)", "]a]bcd"},
      {R"([a\]b]+)", "a]b"},
      {R"([\b]x)", "\bx x"},
      {R"(\x41\x{42})", "AB A"},
      {R"(\x41b)", "Ab"},
      {R"(\x4)", "x"},
      {R"(\u0041b)", "Ab"},
      {"\\u00e9", "caf\xc3\xa9"},
      {R"(\U0001F600)", "\xf0\x9f\x98\x80"},
      {R"((?P<n>\d)(?P=n))", "11 12 22"},
      {R"((\d)\1)", "11 12 22"},
      {R"((a)(b)\2\1)", "abba abab"},
      {R"(\07|\0)", std::string("a\x07")},
      {R"(\101)", "A"},
      {R"([\101])", "A"},
      {R"((?i)error: (\w+))", "ERROR: Disk error: net"},
      {R"(a(?i:B)c)", "abc aBc aBC"},
      {R"((?s)a.b)", "a\nb"},
      {R"(a.b)", "a\nb a\rb axb"},
      {R"((?x) a  b # comment (
          c)",
       "abc ab c"},
      {R"((?a)\w+)", "caf\xc3\xa9"},
      {R"(\w+)", "caf\xc3\xa9 na\xc3\xafve"},
      {R"(\d+)", "12 \xd9\xa3\xd9\xa4"},
      {R"(\s+)",
       "a \t\x1c\x1d\xc2\xa0\x0b"
       "b"},
      {R"([\s]x)", "\x1cx x"},
      {R"(\S+)",
       "a\x1c"
       "b c"},
      {R"(\bfoo\b)", "foo afoo foo-bar"},
      {R"(\Boo)", "foo oo"},
      {R"((?<=a)b)", "ab cb"},
      {R"((?<!a)b)", "ab cb"},
      {R"((?=a)\w)", "ab b"},
      {R"((?!a)\w)", "ab b"},
      {R"((a)?(?(1)b|c))", "ab c b"},
      {R"((?>a+)b)", "aab"},
      {R"(a++b)", "aab"},
      {R"(a*?b)", "aab b"},
      {R"((?:a|b)+)", "abc"},
      {R"((?#note)a)", "a"},
      {R"(\h)", "a"},
      {R"(\R)", "a"},
      {R"(\K)", "a"},
      {R"(\p{L})", "a"},
      {R"(\Qa\E)", "a"},
      {R"((*UTF)a)", "a"},
      {R"(a))", "a"},
      {R"((a)", "a"},
      {R"([a)", "a"},
      {R"(*a)", "a"},
      {R"(a\)", "a"},
      {R"((?P>n))", "a"},
      {R"((?Z))", "a"},
      {R"((?<n>a))", "a"},
      {R"(\v)", "\x0b\x0a"},
      {R"([\v])", "\x0b\x0a"},
      {R"(\a\f\n\r\t)", "\a\f\n\r\t"},
      {R"(\.\*\+\?\(\)\[\]\{\}\^\$\|\\\/\-\_\ \#)", ".*+?()[]{}^$|\\/-_ #"},
      {R"((.|\n)*?end)", "a\nb\nend c end"},
      {R"(iteration\s+\d+/\s*\d+ .*elapsed time per iteration \(s\):\s+(\d+\.\d+))",
       " iteration       10/     100 | elapsed time per iteration (s): 1.2345 |\n iteration 20/ "
       "100 | x"},
      {"\xc3\xa9+", "\xc3\xa9\xc3\xa9 e"},
      {"[\xc3\xa0-\xc3\xaf]", "\xc3\xa9 z"},
      {R"((?i))"
       "\xc3\x89",
       "\xc3\xa9"},
      {R"([^a]+)",
       "b\xc3\xa9"
       "a"},
      {R"(a(?=\Z))", "aa"},
      {R"(|a)", "a"},
      {R"(()a)", "a"},
      {R"((a*)(b*))", "aabb"},
      {R"(x*)", "axb"},
      {R"([0-9]+|(?:))", "1a22"},
  };
  return list;
}

}  // namespace

TEST_CASE("patterns find what Python's findall finds") {
  std::string input;
  for (const Case& c : cases()) input += std::string(c.pattern) + '\x02' + c.text + '\x01';
  std::vector<std::string> expected = run_python(kReference, input);
  REQUIRE(expected.size() == cases().size());
  size_t matched = 0;
  for (size_t i = 0; i < cases().size(); ++i) {
    const Case& c = cases()[i];
    CAPTURE(std::string(c.pattern));
    CAPTURE(c.text);
    CHECK(find_all(c.pattern, c.text, false) == expected[i]);
    if (is_ascii(c.text)) {
      CHECK(find_all(c.pattern, c.text, true) == expected[i]);
    }
    matched += expected[i].size() > 2 && expected[i] != "error" ? 1 : 0;
  }
  CHECK(matched > 50);  // the reference does find things
}

TEST_CASE("a global flag in the middle is for the whole pattern, as up to Python 3.10") {
  CHECK(find_all("a(?i)b", "AB ab", true) == "[4142,6162,]");
}

TEST_CASE("an unreadable pattern says what and where") {
  CHECK(error_of("a\\hb") == "bad escape \\h at position 1");
  CHECK(error_of("a(b").find("at position") != std::string::npos);
}

TEST_CASE("dotall lets a dot match a newline") {
  std::string found;
  REQUIRE(
      valid("a(.*)b", true)->find_all("a1\n2b", true, [&](std::string_view m, int) { found = m; }));
  CHECK(found == "1\n2");
}

TEST_CASE("NUL bytes and bytes that are no UTF-8 do no harm") {
  std::string text("a\0v=1\n\xff\xfe v=2 \xc3(v=3\n\x80v=4", 23);
  CHECK(find_all("v=(\\d)", text, false) == "[31,32,33,34,]");
  CHECK(find_all("(?s)\xc3\xa9.", text, false) == "[]");
}

TEST_CASE("a lazy repeat of a group over long text neither fails nor crashes") {
  std::string text = "start\n" + std::string(2'000'000, 'x') + "\nend=7\n";
  std::string found;
  CHECK(valid(R"(start(?:.|\n)*?end=(\d+))")->find_all(text, true, [&](std::string_view m, int) {
    found = m;
  }));
  CHECK(found == "7");
}

TEST_CASE("matching takes time linear in the file") {
  std::string line = "some words of a log line 12345 and time=1.5 s\n";
  auto seconds = [&](size_t lines) {
    std::string text;
    for (size_t i = 0; i < lines; ++i) text += line;
    text += "\xc3\xa9\n";  // the Unicode program
    const auto regex = valid(R"(time=(\d+\.\d+))");
    size_t found = 0;
    const std::clock_t start = std::clock();  // processor time: other programs do not count
    CHECK(regex->find_all(text, false, [&](std::string_view, int) { ++found; }));
    CHECK(found == lines);
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  seconds(1000);
  double small = seconds(20'000);
  double large = seconds(320'000);
  CHECK(large < 16 * small * 4 + 0.05);  // quadratic would be 256 times
}

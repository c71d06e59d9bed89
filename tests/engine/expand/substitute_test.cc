#include "engine/expand/substitute.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace tally {
namespace {

std::string with(const std::map<std::string, std::string>& values, const std::string& text) {
  return substitute(text, [&](std::string_view name) -> const std::string* {
    const auto found = values.find(std::string(name));
    return found == values.end() ? nullptr : &found->second;
  });
}

// The golden table of the JUBE specification (1.3), taken from runs of JUBE 2.7.1.
const std::vector<std::pair<std::string, std::string>> golden = {
    {"$x", "X"},        {"${x}x", "Xx"},
    {"$xx", "$xx"},     {"$$x", "$x"},
    {"$$$x", "$X"},     {"$$$$x", "$$x"},
    {"$y", "$x"},       {"$$", "$$"},
    {"$$$", "$$"},      {"$$$$", "$$$"},
    {"$$$$$", "$$$"},   {"a$", "a$$"},
    {"a$ b", "a$$ b"},  {"$1", "$1"},
    {"$(x)", "$(x)"},   {"$-x", "$-x"},
    {"${x", "${x"},     {"$é", "$é"},
    {"$xé", "Xé"},      {"${}", "${}"},
    {"${ x}", "${ x}"}, {"$x y", "X y"},
    {"$x_", "$x_"},     {"", ""},
    {"plain", "plain"}, {"echo 5$ x", "echo 5$$ x"},
};

TEST_CASE("the golden table of JUBE's substitution") {
  const std::map<std::string, std::string> values{{"x", "X"}, {"y", "$x"}};
  for (const auto& [given, expected] : golden) {
    const std::string text = given;
    CAPTURE(text);
    CHECK(with(values, text) == expected);
  }
}

TEST_CASE("an escaped dollar is escaped wherever it stands") {
  // JUBE answers $xX: its escape is lost at the end of a text.
  CHECK(with({{"x", "X"}}, "$$x$$x") == "$x$x");
  CHECK(with({{"x", "X"}, {"y", "$x"}}, "$y$y") == "$x$x");
}

// Runs of JUBE 2.5.1: n dollars at the end of a parameter.
TEST_CASE("runs of dollars at the end") {
  const std::vector<size_t> expected = {2, 2, 2, 3, 3, 4, 4, 5, 5, 6};
  for (size_t n = 1; n <= expected.size(); ++n) {
    CAPTURE(n);
    CHECK(with({}, std::string(n, '$')) == std::string(expected[n - 1], '$'));
  }
}

std::string surrounded(size_t dollars, const std::string& tail) {
  std::string text = "a";
  text.append(dollars, '$');
  return text.append(tail);
}

TEST_CASE("runs of an even number of dollars inside a text halve") {  // JUBE 2.5.1
  for (size_t n = 2; n <= 10; n += 2) {
    CAPTURE(n);
    CHECK(with({{"x", "X"}}, surrounded(n, "x")) == surrounded(n / 2, "x"));
    CHECK(with({{"x", "X"}}, surrounded(n, "-b")) == surrounded(n / 2, "-b"));
  }
}

TEST_CASE("a name may be built from a value") {
  CHECK(with({{"n", "a"}, {"v_a", "1"}}, "${v_$n}") == "1");
}

TEST_CASE("a value's dollars are not expanded again") {
  CHECK(with({{"a", "$b"}, {"b", "$a"}}, "<$a>") == "<$b>");
  CHECK(with({{"a", "$$b"}, {"b", "B"}}, "<$a>") == "<$$b>");
}

TEST_CASE("names referred to") {
  using Names = std::vector<std::string>;
  CHECK(dollar_names("$a ${b} $a $$c $$$d ${e $1 $(f) $g1_x") == Names{"a", "b", "d", "g1_x"});
  CHECK(dollar_names("none").empty());
  CHECK(has_dollar_name("x$y"));
  CHECK_FALSE(has_dollar_name("x$$y $1 $"));
}

}  // namespace
}  // namespace tally

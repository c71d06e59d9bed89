// Help as wide as the terminal.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <sstream>

#include "src/config/args.h"
#include "src/config/megatron_flags.h"
#include "src/data/commands/help_formatter.h"
#include "tests/train/config/parse.h"

using namespace tally::train;

namespace {

std::string help_at(const char* columns) {
  setenv("COLUMNS", columns, 1);
  const std::string text = help_text();
  unsetenv("COLUMNS");
  return text;
}

size_t longest_line(const std::string& text) {
  std::istringstream in(text);
  size_t longest = 0;
  for (std::string line; std::getline(in, line);) longest = std::max(longest, line.size());
  return longest;
}

}  // namespace

TEST_CASE("the help fits the terminal, between 80 and 120 columns") {
  struct Row {
    const char* columns;
    size_t least, most;
  };
  for (const Row& row : {Row{"80", 70, 80}, Row{"40", 70, 80}, Row{"101", 92, 101},
                         Row{"120", 110, 120}, Row{"1000", 110, 120}, Row{"x", 70, 120}}) {
    CAPTURE(std::string(row.columns));
    const size_t longest = longest_line(help_at(row.columns));
    CHECK(longest >= row.least);
    CHECK(longest <= row.most);
  }
}

TEST_CASE("the help loses no word to wrapping") {
  const std::vector<std::string> wide = split_words(help_at("120"));
  CHECK(split_words(help_at("80")) == wide);
  CHECK(wide.size() > 1000);
}

TEST_CASE("words are wrapped with an indent, long ones stand alone") {
  CHECK(wrap_words("one two three", 7, 0) == "one two\nthree");
  CHECK(wrap_words("one two three", 9, 2) == "one two\n  three");
  CHECK(wrap_words("a extraordinarily b", 5, 1) == "a\n extraordinarily\n b");
  CHECK(wrap_words("a\nb", 80, 2) == "a\n  b");
  CHECK(wrap_words("", 80, 2).empty());
}

// Flags whose help promises a refusal are refused, and flags that are refused are not in the help.
TEST_CASE(
    "the help says of no flag that works that it does not, and offers no flag that is refused") {
  const tally::CommandSpec spec = flags_spec();
  std::set<std::string> offered;
  for (const tally::OptionSpec& option : spec.options) {
    const std::string& name = option.names.back();
    CAPTURE(name);
    offered.insert(option.names.begin(), option.names.end());
    std::string help = option.help;
    std::transform(help.begin(), help.end(), help.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    for (const char* words : {"not supported", "unsupported", "not yet", "not implemented"}) {
      CAPTURE(words);
      CHECK(help.find(words) == std::string::npos);
    }
  }
  CHECK(offered.size() > 150);
  for (const UnsupportedFlags& row : unsupported_flags())
    for (const std::string& name : split_words(row.names)) {
      if (name.back() == '*') continue;
      CAPTURE(name);
      CHECK(offered.count(name) == 0);
      CHECK(error_of(base + name).find(name + ": not supported by tally-train: ") !=
            std::string::npos);
    }
}

TEST_CASE("why a flag has no effect is true of every run: it does not know which one it is") {
  int ignored = 0;
  for (const tally::OptionSpec& option : flags_spec().options) {
    const std::string& name = option.names.back();
    std::string notice;
    for (const char* value : {"", " 1"}) {
      try {
        for (const std::string& text : parse(base + name + value).notices)
          if (text.find("accepted without effect: " + name) == 0) notice = text;
      } catch (const UsageError&) {
      }
    }
    if (notice.empty()) continue;
    ++ignored;
    CAPTURE(notice);
    CHECK(notice.find("this run") == std::string::npos);
    CHECK(notice.find("causal") == std::string::npos);  // an encoder's is not
    const size_t type = notice.find("in fp32");         // --fp64
    CHECK((type == std::string::npos || notice.find("in fp32 or wider") == type));
  }
  CHECK(ignored > 50);
}

TEST_CASE("what completion offers are values that the flags know") {
  for (const auto& [flag, values] : flag_values()) {
    CAPTURE(flag);
    const tally::CommandSpec spec = flags_spec();
    const auto option =
        std::find_if(spec.options.begin(), spec.options.end(),
                     [&name = flag](const tally::OptionSpec& candidate) {
                       return std::find(candidate.names.begin(), candidate.names.end(), name) !=
                              candidate.names.end();
                     });
    REQUIRE(option != spec.options.end());
    CHECK(option->choices == values);
    // Its help explains each, or the message about a wrong one lists them.
    const std::string known = option->help + error_of(base + flag + " nonsense");
    for (const std::string& value : values) {
      CAPTURE(value);
      CHECK(known.find(value) != std::string::npos);
    }
  }
}

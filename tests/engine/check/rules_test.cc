#include "engine/workflow/rules.h"

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/engine/check/checked.h"

using namespace tally;

namespace {

constexpr const char* kPage = TALLY_SOURCE_DIR "/docs/jube-compatibility.md";
constexpr const char* kBegin = "<!-- rules: begin -->\n";
constexpr const char* kEnd = "<!-- rules: end -->\n";

std::string text_of(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// The part of a link that leads to the section.
std::string anchor(const std::string& section) {
  std::string text;
  for (const char c : section) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0)
      text += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (c == ' ' || c == '-')
      text += '-';
  }
  return text;
}

struct NamedRule {
  std::string name;
  std::string section;  // its title in docs/jube-compatibility.md
};

// The fields of Rules in the header's text, each with the beginning of its comment.
std::vector<NamedRule> named_rules() {
  const std::string header = text_of(TALLY_SOURCE_DIR "/engine/workflow/rules.h");
  const size_t begin = header.find("struct Rules {");
  REQUIRE(begin != std::string::npos);
  std::istringstream lines(header.substr(begin, header.find("\n};", begin) - begin));
  std::vector<NamedRule> rules;
  const std::string field = "  bool ", value = " = false;", comment = "  // ";
  std::string above;  // the comment's first line
  bool in_comment = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(comment) && !in_comment) above = line.substr(comment.size());
    in_comment = line.starts_with(comment);
    if (!line.starts_with(field) || !line.ends_with(value)) continue;
    const size_t length = line.size() - field.size() - value.size();
    rules.push_back({line.substr(field.size(), length), above.substr(0, above.find(": "))});
  }
  return rules;
}

std::string list_of_rules() {
  std::string list = "| rule | section |\n|---|---|\n";
  for (const NamedRule& rule : named_rules())
    list += "| `" + rule.name + "` | [" + rule.section + "](#" + anchor(rule.section) + ") |\n";
  return list;
}

}  // namespace

TEST_CASE("every field of Rules is false by JUBE's rule and true by Tally's") {
  CHECK(named_rules().size() == sizeof(Rules));
  CHECK(Rules::jube() == Rules());
  const Rules all = Rules::tally();
  CHECK(all.plain_values_as_written);
  CHECK(all.csv_is_quoted);
  CHECK(all.charts_are_drawn);
  for (const bool field : std::bit_cast<std::array<bool, sizeof(Rules)>>(all)) CHECK(field);
}

// TALLY_UPDATE_REFERENCE=1 writes the page's list anew.
TEST_CASE("docs/jube-compatibility.md has the section and the name of each rule") {
  std::string page = text_of(kPage);
  const size_t begin = page.find(kBegin) + std::string(kBegin).size();
  const size_t end = page.find(kEnd);
  REQUIRE(end != std::string::npos);
  if (std::getenv("TALLY_UPDATE_REFERENCE")) {
    page.replace(begin, end - begin, list_of_rules());
    std::ofstream(kPage) << page;
  } else {
    CHECK_MESSAGE(page.substr(begin, end - begin) == list_of_rules(),
                  std::string("run this test with TALLY_UPDATE_REFERENCE=1 to write the list"));
  }
  for (const NamedRule& rule : named_rules()) {
    CAPTURE(rule.name);
    CHECK(page.find("\n### " + rule.section + "\n") != std::string::npos);
  }
}

TEST_CASE("a file's keys and the program's name choose the rules") {
  const std::string plain = "name: b\noutpath: r\nstep: {name: s, do: echo}\n";
  const std::string own = "name: b\noutpath: r\nstep: {name: s, do: echo, timeout: 5}\n";
  const auto rules = [](const std::string& text, const CheckOptions& options = {}) {
    return Checked(text, options).benchmark().rules;
  };
  CheckOptions called;
  called.called_as_jube = true;
  CHECK(rules(plain) == Rules::jube());
  CHECK(rules(own) == Rules::tally());
  CHECK(rules(own, called) == Rules::jube());
}

#include "engine/workflow/rules.h"

#include <doctest/doctest.h>

#include <cctype>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

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

std::string list_of_rules() {
  std::string list = "| rule | section |\n|---|---|\n";
  for (const NamedRule& rule : named_rules()) {
    const std::string section = rule.section;
    list += "| `" + std::string(rule.name) + "` | [" + section + "](#" + anchor(section) + ") |\n";
  }
  return list;
}

}  // namespace

TEST_CASE("every field of Rules is in the list once, false by JUBE's rules and true by Tally's") {
  CHECK(sizeof(Rules) == named_rules().size() * sizeof(bool));
  const Rules tally = Rules::tally();
  Rules rules = Rules::jube();
  for (const NamedRule& rule : named_rules()) {
    CAPTURE(std::string(rule.name));
    CHECK_FALSE(rules.*rule.field);
    rules.*rule.field = true;
    CHECK(tally.*rule.field);
  }
  CHECK(rules == tally);
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
    CAPTURE(std::string(rule.name));
    CHECK(page.find("\n### " + std::string(rule.section) + "\n") != std::string::npos);
  }
}

TEST_CASE("the comment of each field of Rules begins with its section") {
  const std::string header = text_of(TALLY_SOURCE_DIR "/engine/workflow/rules.h");
  size_t before = header.find("struct Rules {");
  for (const NamedRule& rule : named_rules()) {
    CAPTURE(std::string(rule.name));
    const size_t field = header.find("\n  bool " + std::string(rule.name) + " = false;", before);
    REQUIRE(field != std::string::npos);
    const size_t comment = header.find("\n  // " + std::string(rule.section) + ": ", before);
    CHECK(comment < field);
    before = field + 1;
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

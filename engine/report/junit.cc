#include "engine/report/junit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <pugixml.hpp>
#include <sstream>

#include "engine/base/text.h"

namespace tally {
namespace {

bool is_xml(uint32_t code) {
  return code == '\t' || code == '\n' || code == '\r' ||
         (code >= 0x20 && code != 0xFFFE && code != 0xFFFF);
}

std::string xml_text(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    uint32_t code = 0;
    const size_t length = utf8_length(std::string_view(text).substr(i), &code);
    if (length == 0 || !is_xml(code)) {
      out += "\xEF\xBF\xBD";
      i += std::max<size_t>(length, 1);
      continue;
    }
    out.append(text, i, length);
    i += length;
  }
  return out;
}

void set(pugi::xml_node node, const char* name, const std::string& value) {
  node.append_attribute(name).set_value(xml_text(value).c_str());
}

void add_case(pugi::xml_node suite, const JunitCase& one) {
  pugi::xml_node node = suite.append_child("testcase");
  set(node, "classname", one.classname);
  set(node, "name", one.name);
  set(node, "time", fmt::format("{:.3f}", one.seconds));
  if (one.result == JunitResult::skipped) set(node.append_child("skipped"), "message", one.message);
  if (one.result != JunitResult::failed) return;
  pugi::xml_node failure = node.append_child("failure");
  set(failure, "message", one.message);
  failure.append_child(pugi::node_pcdata).set_value(xml_text(one.details).c_str());
}

void count(pugi::xml_node node, const std::vector<const JunitCase*>& cases) {
  const auto number = [&](JunitResult result) {
    return std::to_string(
        std::ranges::count_if(cases, [&](const JunitCase* one) { return one->result == result; }));
  };
  double seconds = 0;
  for (const JunitCase* one : cases) seconds += one->seconds;
  set(node, "tests", std::to_string(cases.size()));
  set(node, "failures", number(JunitResult::failed));
  set(node, "errors", "0");
  set(node, "skipped", number(JunitResult::skipped));
  set(node, "time", fmt::format("{:.3f}", seconds));
}

}  // namespace

std::string junit_document(const std::vector<JunitSuite>& suites) {
  pugi::xml_document document;
  pugi::xml_node root = document.append_child("testsuites");
  std::vector<const JunitCase*> all;
  for (const JunitSuite& suite : suites) {
    for (const JunitCase& one : suite.cases) all.push_back(&one);
  }
  count(root, all);
  for (const JunitSuite& suite : suites) {
    pugi::xml_node node = root.append_child("testsuite");
    std::vector<const JunitCase*> cases;
    for (const JunitCase& one : suite.cases) cases.push_back(&one);
    set(node, "name", suite.name);
    if (!suite.timestamp.empty()) set(node, "timestamp", suite.timestamp);
    count(node, cases);
    for (const JunitCase& one : suite.cases) add_case(node, one);
  }
  std::ostringstream out;
  document.save(out, "  ", pugi::format_default, pugi::encoding_utf8);
  return out.str();
}

}  // namespace tally

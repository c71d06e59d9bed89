#include "engine/check/reference_page.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "engine/read/schema.h"

using namespace tally;

// TALLY_UPDATE_REFERENCE=1 writes the page anew.
TEST_CASE("docs/reference.md is what the schema table says") {
  const std::string path = TALLY_SOURCE_DIR "/docs/reference.md";
  if (std::getenv("TALLY_UPDATE_REFERENCE")) std::ofstream(path) << reference_markdown();
  std::stringstream page;
  page << std::ifstream(path).rdbuf();
  CHECK_MESSAGE(page.str() == reference_markdown(),
                std::string("run this test with TALLY_UPDATE_REFERENCE=1 to write the page anew"));
}

TEST_CASE("the schema table holds together") {
  std::set<std::string> ids, keys;
  for (const ElementRule& rule : element_rules()) {
    CHECK(ids.insert(rule.id).second);
    CHECK(std::string(rule.doc).size() > 5);
  }
  for (const KeyRule& key : key_rules()) {
    std::string name = std::string(key.element) + "." + key.key;
    CAPTURE(name);
    CHECK(ids.count(key.element) == 1);
    CHECK(keys.insert(name).second);
    CHECK(std::string(key.doc).size() > 5);
    CHECK((key.rule != ValueRule::choice || *key.choices != '\0'));
    // A key and a child element of one name could not be told apart in YAML. `repeat` is an element
    // there, and in XML also an attribute.
    CHECK((find_child(key.element, key.key) == nullptr || name == "step.repeat"));
  }
  CHECK(find_child("step", "use")->id == std::string("step.use"));
  CHECK(find_child("result", "use")->id == std::string("result.use"));
  CHECK(find_child("step", "column") == nullptr);
}

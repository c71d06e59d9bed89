#include "engine/base/compact.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <random>
#include <string>

using tally::FlatMap;

TEST_CASE("a flat map has the entries of a std::map, in its order") {
  std::mt19937 random(1);
  FlatMap<std::string, int> flat;
  std::map<std::string, int> map;
  for (int i = 0; i < 300; ++i) {
    const std::string key = std::to_string(random() % 100);
    const bool is_new = flat.try_emplace(key, i).second;
    CHECK(is_new == map.try_emplace(key, i).second);
    const std::string changed = std::to_string(random() % 100);
    flat[changed] += 1;
    map[changed] += 1;
  }
  REQUIRE(flat.size() == map.size());
  auto at = flat.begin();
  for (const auto& [key, value] : map) {
    CHECK(at->first == key);
    CHECK(at->second == value);
    CHECK(flat.find(key) == at);
    ++at;
  }
  CHECK(at == flat.end());
  for (const char* missing : {"", "1x", "nothing"}) {  // before, between and behind the keys
    CHECK(flat.count(missing) == 0);
    CHECK(flat.find(missing) == flat.end());
  }
}

TEST_CASE("a flat map makes a value only for a new key, and holds what cannot be copied") {
  FlatMap<int, std::unique_ptr<int>> flat;
  CHECK(flat.empty());
  flat.try_emplace(2, std::make_unique<int>(20));
  auto unused = std::make_unique<int>(21);
  CHECK_FALSE(flat.try_emplace(2, std::move(unused)).second);
  CHECK(unused != nullptr);
  flat.try_emplace(1, std::make_unique<int>(10));
  CHECK(*flat.begin()->second == 10);
  CHECK(*flat.find(2)->second == 20);
}

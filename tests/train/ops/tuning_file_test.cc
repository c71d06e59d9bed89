#include "src/device/tuning_file.h"

#include <doctest/doctest.h>

#include <map>

namespace tally::train {
namespace {

std::string file(const std::map<std::string, std::string>& variables) {
  return tuning_file("NVIDIA H200", 130100, [&](const char* name) {
    const auto it = variables.find(name);
    return it == variables.end() ? nullptr : it->second.c_str();
  });
}

TEST_CASE("tuning file: the most particular of the variables decides") {
  const std::string name = "tuning-3-NVIDIA-H200-130100.txt";
  CHECK(file({{"HOME", "/home/a"}}) == "/home/a/.cache/tally/" + name);
  CHECK(file({{"HOME", "/home/a"}, {"XDG_CACHE_HOME", "/x"}}) == "/x/tally/" + name);
  CHECK(file({{"XDG_CACHE_HOME", "/x"}, {"TALLY_CACHE_DIR", "/site"}}) == "/site/" + name);
  CHECK(file({{"TALLY_CACHE_DIR", "/site"}, {"TALLY_TUNING_CACHE", "/my/file"}}) == "/my/file");
}

TEST_CASE("tuning file: none where nothing names a folder, or by wish") {
  CHECK(file({}) == "");
  CHECK(file({{"HOME", ""}, {"XDG_CACHE_HOME", ""}}) == "");
  CHECK(file({{"HOME", "/home/a"}, {"TALLY_TUNING_CACHE", "off"}}) == "");
}

TEST_CASE("tuning file: an empty variable counts as not set") {
  CHECK(file({{"HOME", "/home/a"}, {"TALLY_TUNING_CACHE", ""}, {"TALLY_CACHE_DIR", ""}}) ==
        "/home/a/.cache/tally/tuning-3-NVIDIA-H200-130100.txt");
}

}  // namespace
}  // namespace tally::train

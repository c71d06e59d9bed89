#include "engine/workflow/pattern_blocks.h"

#include <map>

namespace tally {
namespace {

// Fortran's exponents are numbers, too: D and Q (0.5D+02, 1.d0), and none before one of three
// digits (1.0-100). A letter behind them makes it a name.
const std::string* own_building_block(std::string_view name) {
  // The look ahead spares a number without an exponent the alternatives.
  static const std::string exponent =
      R"((?:(?=[-+DEQdeq])(?:[eE][-+]?\d+|[dDqQ][-+]?\d+(?!\w)|[-+]\d{3}(?!\w|\.\d))))";
  static const std::string number = R"([+-]?(?:(?:\d+\.\d+|\d+\.(?=)" + exponent + R"()|\.\d+))" +
                                    exponent + R"(?|\d+(?:[eE][-+]?\d+|[dDqQ][-+]?\d+(?!\w))?))";
  static const std::string with_group = "(" + number + ")";
  static const std::string without_group = "(?:" + number + ")";
  if (name == "jube_pat_fp") return &with_group;
  return name == "jube_pat_nfp" ? &without_group : nullptr;
}

const std::map<std::string, std::string, std::less<>>& all_blocks() {
  static const std::map<std::string, std::string, std::less<>> blocks = {
      {"jube_pat_int", R"(([+-]?\d+))"},
      {"jube_pat_nint", R"((?:[+-]?\d+))"},
      {"jube_pat_fp", R"(([+-]?(?:\d*\.?\d+(?:[eE][-+]?\d+)?|\d+\.)))"},
      {"jube_pat_nfp", R"((?:[+-]?(?:\d*\.?\d+(?:[eE][-+]?\d+)?|\d+\.)))"},
      {"jube_pat_wrd", R"((\S+))"},
      {"jube_pat_nwrd", R"((?:\S+))"},
      {"jube_pat_bl", R"((?:\s+))"}};
  return blocks;
}

}  // namespace

const std::string* pattern_building_block(std::string_view name, bool fortran) {
  if (const std::string* own = fortran ? own_building_block(name) : nullptr) return own;
  const auto found = all_blocks().find(name);
  return found == all_blocks().end() ? nullptr : &found->second;
}

std::vector<std::string> pattern_block_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : all_blocks()) names.push_back(name);
  return names;
}

}  // namespace tally

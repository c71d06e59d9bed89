#include "src/device/tuning_file.h"

#include <cctype>

namespace tally::train {
namespace {

std::string folder(const Environment& get) {
  const auto value = [&](const char* name) {
    const char* text = get(name);
    return std::string(text ? text : "");
  };
  if (std::string given = value("TALLY_CACHE_DIR"); !given.empty()) return given;
  if (const std::string xdg = value("XDG_CACHE_HOME"); !xdg.empty()) return xdg + "/tally";
  if (const std::string home = value("HOME"); !home.empty()) return home + "/.cache/tally";
  return "";
}

}  // namespace

std::string tuning_file(const std::string& device, size_t version, const Environment& get) {
  if (const char* given = get("TALLY_TUNING_CACHE"); given && *given)
    return std::string(given) == "off" ? "" : given;
  const std::string root = folder(get);
  if (root.empty()) return "";
  std::string name = device;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '-';
  }
  // The number stands for the method of timing: another method's choices are not reused by default.
  return root + "/tuning-3-" + name + "-" + std::to_string(version) + ".txt";
}

}  // namespace tally::train

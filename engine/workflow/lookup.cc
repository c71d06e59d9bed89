#include "engine/workflow/lookup.h"

namespace tally {

std::string platform_name(std::string_view name) {
  return std::string(kPlatformPrefix).append(name);
}

std::string_view without_platform_prefix(std::string_view name) {
  return starts_with(name, kPlatformPrefix) ? name.substr(kPlatformPrefix.size())
                                            : std::string_view();
}

const std::string& no_platform_value() {
  static const std::string none;
  return none;
}

const std::string* job_value(const Lookup& lookup, std::string_view name) {
  const std::string* found = lookup(platform_name(name));
  if (found == &no_platform_value()) return nullptr;
  return found != nullptr ? found : lookup(name);
}

bool is_users(const Lookup& lookup, std::string_view name) {
  const std::string* found = lookup(platform_name(name));
  return found != nullptr && found != lookup(name);
}

}  // namespace tally

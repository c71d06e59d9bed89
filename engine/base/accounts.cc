#include "engine/base/accounts.h"

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <vector>

#include "engine/base/text.h"

namespace tally {

#ifdef TALLY_STATIC
namespace {

// The first line that `getent DATABASE KEY` prints. "" if it knows no such key.
std::string entry(const char* database, const std::string& key) {
  const std::string command =
      std::string("getent ") + database + " -- " + shell_quote(key) + " 2>/dev/null";
  FILE* printed = ::popen(command.c_str(), "re");
  if (printed == nullptr) return {};
  std::string text;
  for (int c = 0; (c = std::fgetc(printed)) != EOF;) text += static_cast<char>(c);
  ::pclose(printed);
  return text.substr(0, text.find('\n'));
}

// The fields of NAME:FIELD:... for that name or user id. Empty if there is none, or fewer.
std::vector<std::string> fields(const char* database, const std::string& key, size_t least) {
  std::vector<std::string> found;
  std::string rest = entry(database, key);
  for (size_t colon = 0; colon != std::string::npos; rest.erase(0, colon + 1)) {
    colon = rest.find(':');
    found.push_back(rest.substr(0, colon));
    if (colon == std::string::npos) break;
  }
  return found.size() < least ? std::vector<std::string>{} : found;
}

}  // namespace

std::string home_folder(const std::string& user) {
  const auto found = fields("passwd", user.empty() ? std::to_string(getuid()) : user, 7);
  // A name of digits would be read as a number.
  return found.empty() || (!user.empty() && found[0] != user) ? "" : found[5];
}

std::string effective_user() {
  const auto found = fields("passwd", std::to_string(geteuid()), 1);
  return found.empty() || found[0].empty() ? std::to_string(geteuid()) : found[0];
}

std::optional<long> group_id(const std::string& name) {
  const auto found = fields("group", name, 3);
  if (found.empty() || found[0] != name) return std::nullopt;
  long id = 0;
  const auto end = found[2].data() + found[2].size();
  if (std::from_chars(found[2].data(), end, id).ptr != end) return std::nullopt;
  return id;
}

std::string host_to_resolve(const std::string& host) {
  const std::string line = entry("ahosts", host);
  return line.substr(0, line.find_first_of(" \t"));
}

#else

std::string home_folder(const std::string& user) {
  const passwd* known = user.empty() ? getpwuid(getuid()) : getpwnam(user.c_str());
  return known != nullptr ? known->pw_dir : "";
}

std::string effective_user() {
  const passwd* user = getpwuid(geteuid());
  return user != nullptr ? user->pw_name : std::to_string(geteuid());
}

std::optional<long> group_id(const std::string& name) {
  const group* found = getgrnam(name.c_str());
  return found != nullptr ? std::optional<long>(found->gr_gid) : std::nullopt;
}

std::string host_to_resolve(const std::string& host) {
  return host;
}

#endif

}  // namespace tally

#include "engine/base/secrets.h"

#include <unistd.h>

#include <algorithm>
#include <optional>

#include "engine/base/text.h"

namespace tally {
namespace {

bool is_secret_word(std::string_view word, bool first) {
  for (const std::string_view end : {"key", "token", "password", "passwd", "passphrase", "secret",
                                     "credential", "credentials"}) {
    if (word.size() >= end.size() && word.substr(word.size() - end.size()) == end) return true;
  }
  return !first && (word == "pass" || word == "pwd" || word == "jwt");
}

// Less the characters that quoting adds to a text or doubles in it: the value of a secret may be a
// word of a shell or of Python, or a text in which JUBE's substitution doubled a dollar.
std::string without_quoting(std::string_view text) {
  std::string bare;
  bare.reserve(text.size());
  for (const char c : text) {
    if (std::string_view("\\\"'$").find(c) == std::string_view::npos) bare += c;
  }
  return bare;
}

}  // namespace

bool names_secret(std::string_view name) {
  const std::string lower = to_lower(name);
  for (size_t at = 0; at <= lower.size();) {
    const size_t end = std::min(lower.find('_', at), lower.size());
    if (is_secret_word(std::string_view(lower).substr(at, end - at), at == 0)) return true;
    at = end + 1;
  }
  return false;
}

bool has_secret(const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals != std::string::npos && equals + 1 < entry.size() &&
        names_secret(std::string_view(entry).substr(0, equals))) {
      return true;
    }
  }
  return false;
}

bool shows_secret(std::string_view text, const std::vector<std::string>& entries) {
  constexpr size_t shortest = 4;
  std::optional<std::string> bare;
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos || entry.size() - equals <= shortest) continue;
    if (!names_secret(std::string_view(entry).substr(0, equals))) continue;
    const std::string_view secret = std::string_view(entry).substr(equals + 1);
    if (text.find(secret) != std::string_view::npos) return true;
    const std::string bare_secret = without_quoting(secret);
    if (bare_secret.size() < shortest) continue;
    if (!bare) bare = without_quoting(text);
    if (bare->find(bare_secret) != std::string::npos) return true;
  }
  return false;
}

bool keeps_secret(const std::string& entry) {
  static const std::vector<std::string> own = [] {
    std::vector<std::string> secrets;
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (has_secret({*variable})) secrets.emplace_back(*variable);
    }
    return secrets;
  }();
  return has_secret({entry}) || shows_secret(entry, own);
}

}  // namespace tally

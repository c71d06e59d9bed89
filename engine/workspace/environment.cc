#include "engine/workspace/environment.h"

#include "engine/base/secrets.h"
#include "engine/base/text.h"

#include <unistd.h>

#include "engine/base/variables.h"
#include "engine/workspace/left_behind.h"

namespace tally {
namespace {

// Variables that belong to each shell itself. They are not a result of the command.
bool is_shells_own(const std::string& name) {
  return name == "PWD" || name == "OLDPWD" || name == "SHLVL" || name == "_" ||
         name == process_mark;
}

// Reads shell words with the quoting that `export -p` uses.
class ExportReader {
 public:
  explicit ExportReader(std::string_view text) : text_(text) {}

  bool read(Environment& environment) {
    for (;;) {
      while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == ' ')) ++at_;
      if (at_ == text_.size()) return true;
      if (!skip_keyword()) return false;
      const size_t start = at_;
      while (at_ < text_.size() && is_name_char(text_[at_])) ++at_;
      const std::string name(text_.substr(start, at_ - start));
      if (!is_variable_name(name)) return false;
      if (at_ < text_.size() && text_[at_] == '=') {
        ++at_;
        std::string value;
        if (!read_value(value)) return false;
        environment[name] = std::move(value);
      }
      // The variable is exported without a value. A child's environment does not have it.
      if (at_ < text_.size() && text_[at_] != '\n') return false;
    }
  }

 private:
  // Skips "export ", "declare -x " or "typeset -rx ".
  bool skip_keyword() {
    size_t word_end = text_.find(' ', at_);
    if (word_end == std::string_view::npos) return false;
    const std::string_view word = text_.substr(at_, word_end - at_);
    if (word != "export" && word != "declare" && word != "typeset") return false;
    at_ = word_end + 1;
    while (at_ < text_.size() && text_[at_] == '-') {
      word_end = text_.find(' ', at_);
      if (word_end == std::string_view::npos) return false;
      at_ = word_end + 1;
    }
    return true;
  }

  bool read_value(std::string& value) {
    while (at_ < text_.size() && text_[at_] != '\n') {
      const char c = text_[at_++];
      bool good = true;
      if (c == '\'') {
        good = read_single(value);
      } else if (c == '"') {
        good = read_double(value);
      } else if (c == '$' && at_ < text_.size() && text_[at_] == '\'') {
        ++at_;
        good = read_ansi(value);
      } else if (c == '\\') {
        if (at_ == text_.size()) return false;
        value += text_[at_++];
      } else {
        value += c;
      }
      if (!good) return false;
    }
    return true;
  }

  bool read_single(std::string& value) {
    const size_t end = text_.find('\'', at_);
    if (end == std::string_view::npos) return false;
    value.append(text_.substr(at_, end - at_));
    at_ = end + 1;
    return true;
  }

  bool read_double(std::string& value) {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '"') return true;
      if (c == '\\' && at_ < text_.size()) {
        const char next = text_[at_];
        if (next == '$' || next == '`' || next == '"' || next == '\\') {
          value += next;
          ++at_;
          continue;
        }
        if (next == '\n') {
          ++at_;
          continue;
        }
      }
      value += c;
    }
    return false;
  }

  unsigned read_digits(size_t most, int base) {
    unsigned code = 0;
    for (size_t n = 0; n < most && at_ < text_.size(); ++n, ++at_) {
      const char c = text_[at_];
      unsigned digit = 99;
      if (c >= '0' && c <= '9') digit = static_cast<unsigned>(c - '0');
      if (c >= 'a' && c <= 'f') digit = static_cast<unsigned>(c - 'a') + 10;
      if (c >= 'A' && c <= 'F') digit = static_cast<unsigned>(c - 'A') + 10;
      if (digit >= static_cast<unsigned>(base)) break;
      code = code * static_cast<unsigned>(base) + digit;
    }
    return code;
  }

  bool read_ansi(std::string& value) {
    static constexpr std::string_view letters = "abeEfnrtv";
    static constexpr std::string_view codes = "\a\b\033\033\f\n\r\t\v";
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\'') return true;
      if (c != '\\') {
        value += c;
        continue;
      }
      if (at_ == text_.size()) return false;
      const char next = text_[at_++];
      if (const size_t letter = letters.find(next); letter != std::string_view::npos) {
        value += codes[letter];
      } else if (next == 'x') {
        value += static_cast<char>(read_digits(2, 16));
      } else if (next == 'u' || next == 'U') {
        append_utf8(read_digits(next == 'u' ? 4 : 8, 16), value);
      } else if (next >= '0' && next <= '7') {
        --at_;
        value += static_cast<char>(read_digits(3, 8));
      } else {
        value += next;
      }
    }
    return false;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Environment current_environment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

Environment with_changes(const Environment& base, const EnvironmentChanges& changes) {
  Environment result = base;
  for (const auto& [name, value] : changes) {
    if (value) {
      result[name] = *value;
    } else {
      result.erase(name);
    }
  }
  return result;
}

Environment with_programs(Environment base, const std::string& programs) {
  if (programs.empty()) return base;
  std::string& path = base["PATH"];
  path = (path.empty() ? "/usr/bin:/bin" : path) + ":" + programs;
  return base;
}

std::vector<std::string> entries(const Environment& environment) {
  std::vector<std::string> list;
  list.reserve(environment.size());
  for (const auto& [name, value] : environment) {
    std::string entry;
    entry.reserve(name.size() + 1 + value.size());
    entry.append(name).append("=").append(value);
    list.push_back(std::move(entry));
  }
  return list;
}

EnvironmentChanges difference(const Environment& base, const Environment& after) {
  EnvironmentChanges changes;
  for (const auto& [name, value] : after) {
    if (is_shells_own(name)) continue;
    const auto before = base.find(name);
    if (before == base.end() || before->second != value) changes[name] = value;
  }
  for (const auto& [name, value] : base) {
    if (!is_shells_own(name) && after.count(name) == 0) changes[name] = std::nullopt;
  }
  return changes;
}

std::vector<std::string> pack_changes(const EnvironmentChanges& changes) {
  std::vector<std::string> list;
  for (const auto& [name, value] : changes) {
    std::string entry = name;
    if (value) entry.append("=").append(*value);
    list.push_back(std::move(entry));
  }
  return list;
}

EnvironmentChanges unpack_changes(const std::vector<std::string>& list) {
  EnvironmentChanges changes;
  for (const std::string& entry : list) {
    const size_t equals = entry.find('=');
    if (equals == std::string::npos) {
      changes[entry] = std::nullopt;
    } else {
      changes[entry.substr(0, equals)] = entry.substr(equals + 1);
    }
  }
  return changes;
}

std::optional<Environment> parse_exports(std::string_view text, const Environment& before) {
  // The last line ends in a newline only if the shell could write all of it.
  if (text.empty() || text.back() != '\n') return std::nullopt;
  Environment environment;
  if (!ExportReader(text).read(environment)) return std::nullopt;
  for (const auto& [name, value] : before) {
    if (!is_variable_name(name)) environment.emplace(name, value);
  }
  return environment;
}

Environment parse_env0(std::string_view text) {
  Environment environment;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\0', at);
    const std::string_view entry = text.substr(at, end - at);
    const size_t equals = entry.find('=');
    if (equals != std::string_view::npos) {
      environment.emplace(entry.substr(0, equals), entry.substr(equals + 1));
    }
    if (end == std::string_view::npos) break;
    at = end + 1;
  }
  return environment;
}

bool posix_shell(const std::string& shell) {
  const std::string name = shell.substr(shell.rfind('/') + 1);
  return name != "csh" && name != "tcsh" && name != "fish";
}

namespace {

// A trap of the user's own for EXIT would take the place of ours. These aliases add ours to it:
// after its action, and before an `exit` within the action. An alias counts only in text that is
// read after it, hence eval, which also keeps the line numbers. An `exit` without an operand keeps
// the status that the user's text left.
constexpr const char* own_traps =
    "tally_exit() { case $# in 0) tally_capture $? ;; *) tally_capture ;; esac; exit \"$@\"; }; "
    "tally_names_exit() { [ $# -lt 2 ] || shift; "
    "case \" $* \" in *' EXIT '* | *' 0 '* | *' SIGEXIT '*) return 0 ;; esac; return 1; }; "
    "tally_trap() { trap \"$@\" || return; [ \"${1-}\" != -- ] || shift; "
    "tally_names_exit \"$@\" || return 0; "
    "case $1 in -[lpP]*) return 0 ;; - | EXIT | SIGEXIT | [0-9]*) set -- : ;; esac; "
    "trap \"${1:-:}\ntally_capture\" EXIT; }; "
    "[ -z \"${BASH_VERSION-}\" ] || shopt -s expand_aliases; "
    "alias trap=tally_trap exit=tally_exit; trap tally_capture EXIT; eval ";

}  // namespace

bool has_shell_word(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool begins = at == 0 || !is_name_char(text[at - 1]);
    if (begins && (end == text.size() || !is_name_char(text[end]))) return true;
  }
  return false;
}

std::string with_capture(const std::string& command, const std::string& shell,
                         const std::string& file) {
  if (!posix_shell(shell)) return command + "\nenv -0 > " + shell_quote(file);
  // A file that cannot be written completely is left empty. One that cannot be opened ends a shell
  // with a status of its own, unless the redirection is that of braces.
  const std::string to = " >| " + shell_quote(file);  // also under `set -C`
  const std::string capture = "{ export -p; }" + to + " || { :; }" + to + " || exit " +
                              std::to_string(no_environment_status);
  if (has_shell_word(command, "trap")) {
    return "tally_capture() { " + capture + "; return \"${1-0}\"; }; " + own_traps +
           shell_quote(command);
  }
  // The trap stays on the command's first line, so that line numbers in the shell's messages match
  // those of the user's text.
  return "trap " + shell_quote(capture) + " EXIT; " + command;
}

bool shows_secret_in_pack(const PackMember& member, const std::vector<std::string>& secrets) {
  std::string text = member.options;
  for (const auto& [name, value] : member.environment) {
    if (names_secret(name)) return true;
    text.append("\n").append(value);
  }
  return shows_secret(text, secrets);
}

}  // namespace tally

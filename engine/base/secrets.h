// Which environment variables are secrets. A file of a run that has the value of one is readable
// for its user alone (private_mode), or leaves the value out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tally {

inline constexpr int private_mode = 0600;

// Decides by its name, in capital or small letters: a word of it ends with KEY, TOKEN, PASSWORD,
// PASSWD, PASSPHRASE, SECRET or CREDENTIAL(S), or is PASS, PWD or JWT behind another word. Words
// are divided by underscores. (PWD alone is the current directory.)
bool names_secret(std::string_view name);
// Whether one of the entries "NAME=value" is a secret. An empty value is none.
bool has_secret(const std::vector<std::string>& entries);
// Whether the text has the value of one of these secrets, also quoted, as a job script has it. A
// value of fewer than four characters is not looked for.
bool shows_secret(std::string_view text, const std::vector<std::string>& entries);
// Whether the entry "NAME=value" is a secret, or its value has one of this process's environment:
// `env` may put it there.
bool keeps_secret(const std::string& entry);

}  // namespace tally

// The words of a shell text, for those who ask which files and variables it names. It expands and
// runs nothing.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tally {

struct ShellWord {
  std::string text;      // without its quotes
  bool quoted = false;   // a part of it stood in quotes or behind a backslash
  bool written = false;  // the target of an output redirection
};

// The words, in order. Blanks and the shell's operators end a word, unless they are quoted. A text
// in $(...) or backticks is a command, also in double quotes: its words follow the word that holds
// it.
std::vector<ShellWord> shell_words(std::string_view text);

// The variables that a shell text names: $NAME, ${NAME...}.
std::set<std::string> shell_variables(std::string_view text);

}  // namespace tally

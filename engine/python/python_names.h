// The names that Python itself gives a meaning.
#pragma once

#include <string>

namespace tally {

bool is_python_keyword(const std::string& word);
// The functions that an expression may call.
bool is_python_function(const std::string& word);
// Whether the word is one of these two.
bool is_python_word(const std::string& word);
// Whether an expression may name it: these, and all other builtins and modules that expressions
// have without an import.
bool is_python_name(const std::string& word);

}  // namespace tally

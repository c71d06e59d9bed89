// Texts as characters (code points), and what Python's str does with them: the evaluation of SQuAD
// is defined by Python's methods.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tally::train {

// Characters of valid UTF-8, and back.
std::u32string to_characters(std::string_view text);
std::string to_utf8(std::u32string_view characters);

// str.lower(): the full mapping of Unicode, with a final sigma.
std::string lower_of(const std::string& text);
// str.isspace() of one character.
bool is_python_space(char32_t c);
// str.split(): the words between white space.
std::vector<std::string> split_at_space(std::string_view text);
// Normalization form C of valid UTF-8 by Unicode 9, which is the version of Hugging Face's
// tokenizers, and whether a text has it already. Later characters stay as they are.
std::string nfc_of(std::string_view text);
bool is_nfc(std::string_view text);
// Whether regular expressions take the character as part of a word (\w).
bool is_word_character(char32_t c);

}  // namespace tally::train

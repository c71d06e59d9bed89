// The meaning of a word of the workflow language, for `tally help WORD`.
#pragma once

#include <string>
#include <vector>

namespace tally {

// All words that have an entry: elements as they are called in files, "parameterset", and what runs
// are made of, "workpackage".
std::vector<std::string> glossary_words();

// The entry of a word, in plain text. An element may also be called as JUBE's help does,
// "parameterset_tag". Empty: there is none.
std::string glossary_entry(const std::string& word);

}  // namespace tally

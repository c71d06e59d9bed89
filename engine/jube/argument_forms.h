// Forms of command lines that only JUBE has.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tally {

// The JUBE version whose language Tally reads. Scripts that ask for JUBE's version get this one.
constexpr const char* kJubeVersion = "2.7.1";

using Words = std::vector<std::string>;

// JUBE's list options take all words up to the next option, including a file that follows them.
// This function gives such words back. `take` decides which words do not belong to a list, starting
// at its end.
void give_back(const std::vector<Words*>& lists,
               const std::function<bool(const std::string&)>& take, Words* words);

// Removes all -t options but the last, because JUBE only uses the last. Words for which `elsewhere`
// holds are input files, not tags. Returns false when there was nothing to remove. Otherwise
// *kept_tags are the tags that remain.
bool keep_last_tags(std::vector<char*>* words,
                    const std::function<bool(const std::string&)>& elsewhere,
                    std::string* kept_tags);

// Completes an abbreviated long option. As in Python's argparse, the abbreviation must be unique
// among `known`.
std::string unabbreviated(const std::string& word, const Words& known);

}  // namespace tally

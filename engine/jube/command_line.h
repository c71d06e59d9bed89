// JUBE's forms of command lines.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace tally {

// The version whose language is read, and which scripts that ask for JUBE's version get.
constexpr const char* kJubeVersion = "2.7.1";

using Words = std::vector<std::string>;

// JUBE's list options take every word up to the next option, the file behind them too. Gives such
// words back: `take` says which belong elsewhere, from the end of each list.
void give_back(const std::vector<Words*>& lists,
               const std::function<bool(const std::string&)>& take, Words* words);

// Of several -t JUBE keeps the last: leaves out the others. Words for which `elsewhere` holds are
// no tags, but input files behind them. False when there was none to leave out; else *kept_tags are
// the ones that count.
bool keep_last_tags(std::vector<char*>* words,
                    const std::function<bool(const std::string&)>& elsewhere,
                    std::string* kept_tags);

// A long option may be cut short as far as it stays the only one of those `known`, as in Python's
// argparse.
std::string unabbreviated(const std::string& word, const Words& known);

}  // namespace tally

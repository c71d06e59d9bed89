#include "engine/jube/argument_forms.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "engine/base/text.h"

namespace tally {

void give_back(const std::vector<Words*>& lists,
               const std::function<bool(const std::string&)>& take, Words* words) {
  for (Words* list : lists) {
    Words back;
    while (!list->empty() && take(list->back())) {
      back.push_back(list->back());
      list->pop_back();
    }
    words->insert(words->end(), back.rbegin(), back.rend());
  }
}

bool keep_last_tags(std::vector<char*>* words,
                    const std::function<bool(const std::string&)>& elsewhere,
                    std::string* kept_tags) {
  std::vector<char*> kept;
  std::string dropped;
  kept_tags->clear();
  bool in_tags = false;
  std::vector<char*> tags;  // tags of the previous option
  for (char* word : *words) {
    const bool starts = std::strcmp(word, "-t") == 0 || std::strcmp(word, "--tag") == 0;
    if (starts || (in_tags && word[0] == '-')) in_tags = starts;
    if (starts) {
      for (const char* tag : tags) dropped += std::string(dropped.empty() ? "" : " ") + tag;
      tags.clear();
      continue;
    }
    if (in_tags && !elsewhere(word)) {
      tags.push_back(word);
    } else {
      kept.push_back(word);
    }
  }
  if (dropped.empty()) return false;
  for (const char* tag : tags) *kept_tags += std::string(kept_tags->empty() ? "" : " ") + tag;
  static char option[] = "-t";
  kept.push_back(option);
  kept.insert(kept.end(), tags.begin(), tags.end());
  words->swap(kept);
  return true;
}

std::string unabbreviated(const std::string& word, const Words& known) {
  if (word.size() < 3 || word.compare(0, 2, "--") != 0) return word;
  const size_t end = std::min(word.find('='), word.size());
  const std::string name = word.substr(2, end - 2);
  std::set<std::string> longer;
  for (const std::string& one : known) {
    if (one == name) return word;
    if (starts_with(one, name)) longer.insert(one);
  }
  return longer.size() == 1 ? "--" + *longer.begin() + word.substr(end) : word;
}

}  // namespace tally

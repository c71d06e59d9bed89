// Workpackages that failed for the same reason, with the same words: they are told of once.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/journal/journal.h"

namespace tally {

struct EqualFailures {
  std::vector<const Journal::Stored*> all;  // never empty
};

// In the order of the first of each. `words`: what a failure is called; without it
// message_in_short(). `put_off`: workpackages that another host shall do are among them.
std::vector<EqualFailures> equal_failures(
    const std::vector<Journal::Stored>& workpackages,
    const std::function<std::string(const Journal::Stored&)>& words = {}, bool put_off = false);

// The parameters that the failures share and other workpackages of their step have otherwise. They
// most often say what is wrong.
std::vector<std::pair<std::string, std::string>> shared_parameters(
    const EqualFailures& failure, const std::vector<Journal::Stored>& workpackages);

}  // namespace tally

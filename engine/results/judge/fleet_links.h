// Which pairs of a fleet's machines say more about a slow link, and whose the slowness is. Internal
// to judge/.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>

#include "engine/results/judge/fleet.h"

namespace tally {

// Says of each pair that is slow whether a machine or the link is: the link, if both machines pass
// in another pair; a machine, if its other pairs are slow, too, and its partner passes in one. Such
// a machine is slow.
void assign_links(FleetReport& report);

// Asks which pairs of later rounds say something about one of the first that does not pass: those
// that have one of its machines, and whose second is in no such pair. A machine that does not pass
// by itself explains its pairs.
class LinkQuestions {
 public:
  // `is_first`: whether a pair is of the first round.
  LinkQuestions(const FleetReport& report,
                const std::function<bool(const std::string& pair)>& is_first);
  bool are_answered_by(const std::string& pair) const;

 private:
  bool explained(const std::pair<std::string, std::string>& machines) const;

  std::set<std::string> not_passing_, suspects_;  // machines
};

}  // namespace tally

// When a workpackage's turn is, beside its number: the rounds of a step's `repeat`, and those of the
// machines of a fleet.
#pragma once

#include <map>
#include <string>

#include "engine/expand/point.h"
#include "engine/workflow/workflow.h"
#include "engine/workpackage/workpackage.h"

namespace tally {

struct Turn {
  // A later phase begins when the earlier ones have ended.
  int phase = 0;
  // 0: of no chain. The rounds of a chain wait for each other and for no other chain's.
  int chain = 0;
  int round = 0;  // a later one waits for the earlier ones
};

// In a fleet each machine has a chain, so that one that is busy holds up no other, and each round is
// as many repeats as make one job. Pairs come after the machines: phase 1 and later ones, by the
// round of the tournament.
class TurnOrder {
 public:
  // Both must outlive the object.
  TurnOrder(const Benchmark& benchmark, const TextPool& texts);

  Turn of(const Workpackage& workpackage);

 private:
  int chain_of(const std::string& machines);

  const Benchmark& benchmark_;
  const TextPool& texts_;
  std::map<std::string, int, std::less<>> pair_rounds_;
  std::map<std::string, int> chains_;
};

}  // namespace tally

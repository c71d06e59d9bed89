#include "engine/execute/turn_order.h"

#include "engine/statistics/fleet.h"
#include "engine/workflow/fleet_pairs.h"

namespace tally {

TurnOrder::TurnOrder(const Benchmark& benchmark, const TextPool& texts)
    : benchmark_(benchmark), texts_(texts) {
  if (benchmark.fleet.is_tested()) pair_rounds_ = fleet_rounds(benchmark);
}

Turn TurnOrder::of(const Workpackage& workpackage) {
  Turn turn;
  turn.round = workpackage.repetition;
  if (!benchmark_.fleet.is_tested()) return turn;
  const Binding* pair = find_binding(workpackage.point, texts_, kFleetPair);
  const Binding* node = find_binding(workpackage.point, texts_, kFleetNode);
  if (pair == nullptr && node == nullptr) return turn;
  const std::string& machines = texts_[pair != nullptr ? pair->value : node->value];
  turn.round = statistics::fleet_round(workpackage.repetition, benchmark_.fleet.first);
  turn.chain = chain_of(machines);
  if (pair != nullptr) {
    const auto round = pair_rounds_.find(machines);
    turn.phase = 1 + (round == pair_rounds_.end() ? 0 : round->second);
  }
  return turn;
}

int TurnOrder::chain_of(const std::string& machines) {
  return chains_.emplace(machines, static_cast<int>(chains_.size()) + 1).first->second;
}

}  // namespace tally

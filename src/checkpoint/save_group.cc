#include "src/checkpoint/save_group.h"

#include <fmt/format.h>

#include <stdexcept>

namespace tally::train {

bool SaveGroup::divided() const {
  return shape.tensor > 1 || shape.pipeline > 1 || (divided_optimizer && shape.data > 1);
}

int SaveGroup::parts() const {
  return shape.tensor * shape.pipeline * (divided_optimizer ? shape.data : 1);
}

int SaveGroup::part_of(int rank) const {
  if (divided_optimizer) return rank;
  const MeshPosition there = position_of(shape, rank);
  return there.replica == 0 ? there.stage * shape.tensor + there.shard : -1;
}

std::vector<std::string> work_together(const SaveGroup& group,
                                       const std::function<std::string()>& work) {
  if (!group.divided()) return {work()};
  constexpr char good = '+', bad = '-';  // first in the text
  std::string mine;
  try {
    mine = good + work();
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& e) {
    mine = bad + std::string(e.what());
  }
  std::vector<std::string> all = group.exchange(mine);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const bool failed = all[rank].empty() || all[rank].front() != good;
    if (!all[rank].empty()) all[rank].erase(0, 1);
    if (!failed) continue;
    throw SharedFailure(fmt::format("rank {}: {}", rank, all[rank]));
  }
  return all;
}

}  // namespace tally::train

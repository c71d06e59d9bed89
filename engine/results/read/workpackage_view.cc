#include "engine/results/read/workpackage_view.h"

#include <algorithm>

namespace tally {

WorkpackagesById by_id(const std::vector<WorkpackageView>& workpackages) {
  WorkpackagesById list;
  list.reserve(workpackages.size());
  for (const WorkpackageView& workpackage : workpackages) list.push_back(&workpackage);
  const auto before = [](const auto* a, const auto* b) { return a->id < b->id; };
  if (!std::is_sorted(list.begin(), list.end(), before))
    std::stable_sort(list.begin(), list.end(), before);
  return list;
}

const WorkpackageView* find_id(const WorkpackagesById& workpackages, int id) {
  const auto found =
      std::lower_bound(workpackages.begin(), workpackages.end(), id,
                       [](const WorkpackageView* one, int wanted) { return one->id < wanted; });
  return found != workpackages.end() && (*found)->id == id ? *found : nullptr;
}

}  // namespace tally

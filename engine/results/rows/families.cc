#include "engine/results/rows/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"

namespace tally {
namespace {

class Families {
 public:
  explicit Families(const std::function<std::string(const WorkpackageView&)>& point_key)
      : point_key_(point_key) {}

  // Adds a workpackage. Its parents' families must be complete.
  void add(const WorkpackageView& workpackage) {
    std::vector<size_t>& same = of_key_[key(workpackage)];
    const auto free = std::find_if(same.begin(), same.end(), [&](size_t at) {
      return std::none_of(
          members_[at].begin(), members_[at].end(),
          [&](const WorkpackageView* other) { return is_repeated(workpackage, *other); });
    });
    const size_t at = free != same.end() ? *free : members_.size();
    if (free == same.end()) {
      same.push_back(at);
      members_.emplace_back();
    }
    members_[at].push_back(&workpackage);
    family_of_[workpackage.id] = at;
  }

  std::unordered_map<int, size_t> take() { return std::move(family_of_); }

 private:
  std::string key(const WorkpackageView& workpackage) const {
    const auto alone = [&](int parent) {
      const auto family = family_of_.find(parent);
      return family == family_of_.end() || members_[family->second].size() == 1;
    };
    const bool apart = workpackage.parents.size() > 1 &&
                       std::any_of(workpackage.parents.begin(), workpackage.parents.end(), alone);
    std::string key = point_key_(workpackage);
    for (const int parent : workpackage.parents) {
      const auto family = family_of_.find(parent);
      key += '\0';
      key += apart || family == family_of_.end() ? "#" + std::to_string(parent)
                                                 : std::to_string(family->second);
    }
    return key;
  }

  // Whether the same iteration occurs twice. Then a parameter has the same value twice, and this is
  // not an iteration.
  static bool is_repeated(const WorkpackageView& a, const WorkpackageView& b) {
    return a.iteration == b.iteration && (a.parents.size() < 2 || a.parents == b.parents);
  }

  const std::function<std::string(const WorkpackageView&)>& point_key_;
  std::unordered_map<std::string, std::vector<size_t>> of_key_;
  std::vector<std::vector<const WorkpackageView*>> members_;  // of each family
  std::unordered_map<int, size_t> family_of_;
};

}  // namespace

std::unordered_map<int, size_t> find_families(
    const WorkpackagesById& workpackages,
    const std::function<std::string(const WorkpackageView&)>& point_key,
    const std::function<std::string(const WorkpackageView&)>& own_values) {
  std::unordered_map<int, int> depth;
  std::map<int, std::vector<const WorkpackageView*>> by_depth;
  for (const WorkpackageView* workpackage : workpackages) {  // parents have lower ids
    int own = 0;
    for (const int parent : workpackage->parents) {
      const auto above = depth.find(parent);  // none: the first ones, of depth 0
      own = std::max(own, above == depth.end() ? 1 : above->second + 1);
    }
    if (own != 0) depth[workpackage->id] = own;
    by_depth[own].push_back(workpackage);
  }
  const bool plain = std::all_of(workpackages.begin(), workpackages.end(),
                                 [&](const auto* one) { return own_values(*one).empty(); });
  // Iterations of one workpackage may differ in `own_values`. Iterations of its parents belong to
  // one family only if these values are equal too.
  // The values of the iterations of one workpackage.
  std::map<std::string, std::multiset<std::string>> values_of;
  const auto iterations_of = [](const std::string& point, const WorkpackageView& workpackage) {
    return fmt::format("{}\1{}", point, fmt::join(workpackage.parents, ","));
  };
  for (auto at = workpackages.begin(); !plain && at != workpackages.end(); ++at) {
    const WorkpackageView& workpackage = **at;
    values_of[iterations_of(point_key(workpackage), workpackage)].insert(own_values(workpackage));
  }
  const std::function<std::string(const WorkpackageView&)> full_key =
      [&](const WorkpackageView& workpackage) {
        const std::string point = point_key(workpackage);
        return fmt::format("{}\1{}", point,
                           fmt::join(values_of[iterations_of(point, workpackage)], "\1"));
      };
  Families families(plain ? point_key : full_key);
  for (const auto& [at, list] : by_depth) {
    for (const WorkpackageView* workpackage : list) families.add(*workpackage);
  }
  return families.take();
}

}  // namespace tally

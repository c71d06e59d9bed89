#include "engine/analyse/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

namespace tally {
namespace {

class Families {
 public:
  explicit Families(const std::function<std::string(const PackageView&)>& point_key)
      : point_key_(point_key) {}

  // Its parents' families must be complete.
  void add(const PackageView& package) {
    std::vector<size_t>& same = of_key_[key(package)];
    const auto free = std::find_if(same.begin(), same.end(), [&](size_t at) {
      return std::none_of(members_[at].begin(), members_[at].end(),
                          [&](const PackageView* other) { return is_repeated(package, *other); });
    });
    const size_t at = free != same.end() ? *free : members_.size();
    if (free == same.end()) {
      same.push_back(at);
      members_.emplace_back();
    }
    members_[at].push_back(&package);
    family_of_[package.id] = at;
  }

  std::map<int, size_t> take() { return std::move(family_of_); }

 private:
  std::string key(const PackageView& package) const {
    const auto alone = [&](int parent) {
      const auto family = family_of_.find(parent);
      return family == family_of_.end() || members_[family->second].size() == 1;
    };
    const bool apart = package.parents.size() > 1 &&
                       std::any_of(package.parents.begin(), package.parents.end(), alone);
    std::string key = point_key_(package);
    for (const int parent : package.parents) {
      const auto family = family_of_.find(parent);
      key += '\0';
      key += apart || family == family_of_.end() ? "#" + std::to_string(parent)
                                                 : std::to_string(family->second);
    }
    return key;
  }

  // The same iteration twice: a value that a parameter has twice, not an iteration.
  static bool is_repeated(const PackageView& a, const PackageView& b) {
    return a.iteration == b.iteration && (a.parents.size() < 2 || a.parents == b.parents);
  }

  const std::function<std::string(const PackageView&)>& point_key_;
  std::map<std::string, std::vector<size_t>> of_key_;
  std::vector<std::vector<const PackageView*>> members_;  // of each family
  std::map<int, size_t> family_of_;
};

}  // namespace

std::map<int, size_t> find_families(
    const std::map<int, const PackageView*>& packages,
    const std::function<std::string(const PackageView&)>& point_key,
    const std::function<std::string(const PackageView&)>& own_values) {
  std::map<int, int> depth;
  std::map<int, std::vector<const PackageView*>> by_depth;
  for (const auto& [id, package] : packages) {  // parents have lower ids
    int own = 0;
    for (const int parent : package->parents) own = std::max(own, depth[parent] + 1);
    depth[id] = own;
    by_depth[own].push_back(package);
  }
  const bool plain = std::all_of(packages.begin(), packages.end(), [&](const auto& entry) {
    return own_values(*entry.second).empty();
  });
  // Iterations of one workpackage may differ in `own_values`. Iterations of its parents' are
  // siblings only where these are the same, too.
  std::map<std::string, std::multiset<std::string>> values_of;  // of the iterations of one
  const auto iterations_of = [](const std::string& point, const PackageView& package) {
    return fmt::format("{}\1{}", point, fmt::join(package.parents, ","));
  };
  for (auto at = packages.begin(); !plain && at != packages.end(); ++at) {
    const PackageView& package = *at->second;
    values_of[iterations_of(point_key(package), package)].insert(own_values(package));
  }
  const std::function<std::string(const PackageView&)> full_key = [&](const PackageView& package) {
    const std::string point = point_key(package);
    return fmt::format("{}\1{}", point, fmt::join(values_of[iterations_of(point, package)], "\1"));
  };
  Families families(plain ? point_key : full_key);
  for (const auto& [at, list] : by_depth) {
    for (const PackageView* package : list) families.add(*package);
  }
  return families.take();
}

}  // namespace tally

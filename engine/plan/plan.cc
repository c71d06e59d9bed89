#include "engine/plan/plan.h"

#include <algorithm>

#include "engine/workpackage/generator.h"

namespace tally {
namespace {

class List : public WorkpackageSink {
 public:
  explicit List(std::vector<Workpackage>& workpackages) : workpackages_(workpackages) {}
  void expect(size_t more) override {
    const size_t size = workpackages_.size() + more;
    // At least twice the room: many small families must not move everything each time.
    if (const size_t room = workpackages_.capacity(); size > room)
      workpackages_.reserve(std::max(size, 2 * room));
  }
  void take(Workpackage&& workpackage) override { workpackages_.push_back(std::move(workpackage)); }
  const Workpackage& at(int id) const override { return workpackages_[static_cast<size_t>(id)]; }

 private:
  std::vector<Workpackage>& workpackages_;
};

}  // namespace

// Simulates a sequential run in which everything succeeds. Workpackages finish in the order in
// which they were made.
Plan make_plan(const Benchmark& benchmark, Expander& expander, Diagnostics& diagnostics) {
  Plan plan;
  plan.benchmark = &benchmark;
  List list(plan.workpackages);
  Generator generator(benchmark, expander, Purpose::plan, list);
  generator.make_roots(diagnostics);
  if (generator.roots_are_final()) plan.first = plan.workpackages.size();
  for (size_t next = 0; next < plan.workpackages.size() && !diagnostics.has_errors(); ++next) {
    if (plan.workpackages[next].outcome.state == State::failed) continue;
    generator.make_children(static_cast<int>(next), diagnostics);
  }
  plan.excluded = generator.take_excluded();
  plan.unknown = generator.unknown();
  plan.not_computed = expander.not_computed();
  plan.in_doubt = generator.take_in_doubt();
  plan.points = generator.points();
  plan.repeats = generator.repeats();
  return plan;
}

}  // namespace tally

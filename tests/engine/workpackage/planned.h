// The workpackages that the dry run, `script` and --logs know, with every value that they would
// say.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "engine/expand/expand.h"
#include "engine/workpackage/generator.h"
#include "engine/workpackage/values.h"
#include "engine/workspace/environment.h"

namespace tally::testing {

using ByName = std::map<std::string, std::string>;
ByName by_name(const NamedValues& values);

class Planned : private WorkpackageSink {
 public:
  Planned(const Benchmark& benchmark, const RunInfo& info, Evaluator& evaluator,
          const std::set<std::string>& tags);

  // Whether there are more workpackages than that. Stops counting there.
  static bool more_than(size_t most, const Benchmark& benchmark, const RunInfo& info,
                        Evaluator& evaluator, const std::set<std::string>& tags);
  // As the dry run has them: make_plan().
  void all_at_once();
  // As a run makes them whose workpackages finish well in this order, session by session.
  void in_order(const std::vector<std::vector<int>>& finished);

  const Benchmark& benchmark() const { return benchmark_; }
  Expander& expander() { return expander_; }
  const std::vector<Workpackage>& workpackages() const { return workpackages_; }
  const Step& step_of(const Workpackage& workpackage) const {
    return benchmark_.steps[static_cast<size_t>(workpackage.step)];
  }
  // What makes the whole benchmark impossible, or "".
  const std::string& error() const { return error_; }

 private:
  struct TooMany {};
  void take(Workpackage&& workpackage) override {
    if (workpackages_.size() >= most_) throw TooMany();
    workpackages_.push_back(std::move(workpackage));
  }
  const Workpackage& at(int id) const override { return workpackages_[static_cast<size_t>(id)]; }
  void adopt_all(Generator& generator, Diagnostics& diagnostics);
  void take_error(const Diagnostics& diagnostics);

  const Benchmark& benchmark_;
  TextPool pool_;
  Expander expander_;
  std::vector<Workpackage> workpackages_;
  size_t most_ = static_cast<size_t>(-1);
  std::string error_;
};

// One workpackage, every value computed as a run computes it.
struct Finished {
  Workpackage workpackage;
  std::string error;              // why it cannot be run
  std::vector<ByName> by_cycle;   // every name and value, in each cycle; status RUNNING
  std::vector<ByName> of_shared;  // the same for a shared operation
  NamedValues exported;           // of the first cycle
  EnvironmentChanges environment;
};
// `finished`: those with lower ids.
Finished finish(Planned& planned, const Workpackage& workpackage,
                const std::vector<Finished>& finished);

}  // namespace tally::testing

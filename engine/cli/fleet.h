// A run that tests the machines of a fleet: which repeats it needs, and its verdicts at the end.
#pragma once

#include <memory>

#include "engine/execute/execute.h"
#include "engine/results/judge/fleet.h"
#include "engine/run/run.h"
#include "engine/run/settings.h"

namespace tally {

// Ends the repeats of machines and links that are decided.
class FleetRepeats final : public RepeatJudge {
 public:
  // The status says why the baseline cannot be read.
  static Status make(const Run& run, std::unique_ptr<FleetRepeats>* out);
  Status not_needed(const Run& run, std::vector<int>* workpackages) override;
  bool is_spent() const override { return judge_.is_spent(); }
  // Prints the table, the map and what to do, writes fleet.json, fleet.svg and fleet.xml into the
  // run's folder `result`, and the baseline if it was asked for. Returns the exit code: 5 where a
  // machine or a link is slow or wrong, 1 where one is undecided.
  int report(const Settings& settings, const Run& run);

 private:
  FleetRepeats(const Benchmark& benchmark, FleetBaseline baseline)
      : judge_(benchmark, std::move(baseline)) {}
  // Reads what has ended, and keeps what that decides.
  Status decide(const Run& run);
  Status write_files(const Run& run, const FleetReport& report) const;

  FleetJudge judge_;
};

}  // namespace tally

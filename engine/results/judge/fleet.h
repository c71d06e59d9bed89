// Judges the machines of a fleet and the links between them by what a run has measured so far
// (docs/fleet.md): verdicts for people, and which repeats need not run.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "engine/expand/evaluator.h"
#include "engine/journal/journal.h"
#include "engine/results/read/views.h"
#include "engine/results/rows/records.h"
#include "engine/statistics/fleet.h"
#include "engine/workflow/fleet_pairs.h"
#include "engine/workflow/workflow.h"

namespace tally {

enum class FleetVerdict { undecided, passes, slow, wrong };
const char* fleet_word(FleetVerdict verdict);

// A rate that all machines have: a column with `better` at one point.
struct FleetRateName {
  std::string step, metric, unit;
  std::string point;  // "size=4096"; empty: the metric alone tells
  bool lower_is_better = false;
  bool operator<(const FleetRateName& other) const;
  std::string text() const;  // "bandwidth (size=4096)"
};

// A value that was accepted, with its interval. Not logarithms.
struct AcceptedRate {
  double rate = 0, low = 0, high = 0;
  size_t machines = 0, repeats = 0;
};
struct FleetBaseline {
  std::map<FleetRateName, AcceptedRate> rates;
  // By step, pattern and point: the text that all machines had.
  std::map<std::string, std::string> same;
};

// One rate of one machine, or of one part of it.
struct FleetFinding {
  FleetRateName name;
  std::string part;
  double rate = 0;  // the median of the repeats
  int repeats = 0;
  bool compared = false;  // with a median or a baseline
  statistics::RateVerdict verdict = statistics::RateVerdict::undecided;
  statistics::RateDeviations deviations;
};

// A machine, or a pair of machines for their link.
struct FleetMember {
  std::string name;
  std::string group;  // that the site names: rack, switch, rail; empty: none
  bool is_pair = false;
  FleetVerdict verdict = FleetVerdict::undecided;
  std::string why;    // a clause, of a verdict that is not `passes`
  std::string part;   // whose the verdict is; empty: the whole machine's
  std::string lacks;  // a clause: what others have and it has not; it does not pass
  std::vector<FleetFinding> findings;
  std::vector<std::pair<std::string, std::string>> shown;  // `show` and `same`: name, text
  // Workpackages: those that count, and those that are no measurement.
  int measured = 0, failed = 0, lost = 0, busy = 0, throttled = 0, open = 0;
  double ended = 0;  // the last one, in seconds since 1970; 0: none

  // The finding that decides about the member: the slowest of those with its verdict. Null: none.
  const FleetFinding* decisive() const;
  bool is_bad() const { return verdict == FleetVerdict::slow || verdict == FleetVerdict::wrong; }
};

struct FleetReport {
  std::vector<FleetMember> members;  // machines, then pairs, in the order of the workpackages
  std::vector<std::pair<std::string, std::string>> not_tested;  // name, why
  std::vector<std::string> notes;
  double node_hours = 0;
  double budget = 0;  // 0: none
  bool any_bad() const;
  bool all_pass() const;
};

// Verdicts are kept as facts of the run: a machine that has passed is not measured any more, and what
// others measure later moves the median against which it has passed. The name of its fact: this and
// the machine's.
inline constexpr const char* kFleetFact = "fleet: ";
// That of the budget which `continue` gave.
inline constexpr const char* kBudgetFact = "fleet budget";

class FleetJudge {
 public:
  // `benchmark` must outlive the object.
  FleetJudge(const Benchmark& benchmark, FleetBaseline baseline);

  // Reads what has ended since the last call.
  Status read(const Journal& journal, const std::string& run_dir, Evaluator& evaluator);
  // Decides by the rates what can be decided now, for good. The facts that the run is to keep.
  Journal::Facts decide();
  // Takes what an earlier engine has decided, and the newest budget.
  void take_decided(const Journal::Facts& facts);
  FleetReport report() const;
  // The workpackages that have not begun and need not run: those of machines and links that are
  // decided, and pairs that would not tell more.
  std::vector<int> not_needed() const;
  bool is_spent() const;  // the budget
  // The values of the machines that pass, and of those that nothing judges.
  FleetBaseline accepted() const;

 private:
  // One machine or pair, by what its workpackages have left.
  struct Unit {
    FleetMember member;
    std::map<std::string, std::vector<std::pair<std::string, std::string>>> shown;  // by part
    std::vector<int> pending;
    int pair_round = 0;
    // By step and point: workpackages that measured, and that did not.
    struct Tried {
      int measured = 0, failed = 0;
    };
    std::map<std::pair<std::string, std::string>, Tried> tried;
  };
  using Samples = std::map<std::pair<std::string, std::string>, statistics::Sample>;  // unit, part

  Unit& unit_of(const WorkpackageView& view);
  void count(const WorkpackageView& view);
  void take(const Record& row, const WorkpackageView& view);
  std::string point_of(const Record& row) const;
  bool fails_always(const Unit& unit) const;
  // Whether the pairs of a later round are tested only where they answer a question.
  bool asks_only(const Unit& unit) const;
  // The verdicts, without words. The deviations take most of the time.
  FleetReport verdicts(bool with_deviations) const;
  void judge_rates(FleetReport& report, bool with_deviations) const;
  void judge_bits(FleetReport& report) const;
  void find_gaps(FleetReport& report) const;
  std::string right_text(const std::string& key) const;
  std::string part_words(const std::string& part) const;
  // Whether no number of repeats can decide it: too few machines have a median, and there is no
  // baseline.
  bool nothing_judges(const FleetMember& member) const;
  void explain(FleetMember& member) const;

  const Benchmark& benchmark_;
  const FleetBaseline baseline_;
  std::set<std::string> point_names_;  // the parameters that tell points apart, but for the machine
  std::map<std::string, FleetRateName> metrics_;  // by the pattern
  std::map<std::string, int, std::less<>> pair_rounds_;
  const FleetGroups groups_;
  std::vector<std::string> order_;  // names of units
  std::map<std::string, Unit> units_;
  std::map<FleetRateName, Samples> rates_;  // as they were printed
  using Parts = std::set<std::string>;
  // By step, pattern and point: the texts of each unit, with the parts that had them.
  std::map<std::string, std::map<std::string, std::map<std::string, Parts>>> texts_;
  std::set<std::string> printed_;                // those of `same` that any machine has
  std::map<std::string, FleetVerdict> decided_;  // passes or slow, by name
  std::set<int> read_;                           // ids
  double seconds_ = 0;                           // of nodes
  double budget_ = 0;                            // node-hours; 0: none
};

}  // namespace tally

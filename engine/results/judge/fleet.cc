#include "engine/results/judge/fleet.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>

#include "engine/base/text.h"
#include "engine/results/judge/fleet_links.h"
#include "engine/results/rows/analyse.h"
#include "engine/results/rows/point_key.h"
#include "engine/workflow/fleet_pairs.h"

namespace tally {
namespace {

using statistics::RateVerdict;

constexpr double kSecondsOfHour = 3600;

const std::string* parameter_of(const WorkpackageView& view, std::string_view name) {
  for (const auto& [parameter, value] : view.values)
    if (parameter == name) return &value;
  return nullptr;
}

// The machine or pair that the workpackage tests. Null: none, as a set-up.
const std::string* tested_by(const WorkpackageView& view) {
  const std::string* pair = parameter_of(view, kFleetPair);
  return pair != nullptr ? pair : parameter_of(view, kFleetNode);
}

// The seconds that its job worked: from the file that it claims its folder with to its status. 0:
// it has left none.
double seconds_of_job(const std::string& folder) {
  DIR* open = ::opendir(folder.c_str());
  if (open == nullptr) return 0;
  double begin = 0, end = 0;
  while (const dirent* entry = ::readdir(open)) {
    const std::string name = entry->d_name;
    const bool claim = name.find(".status.claim-") != std::string::npos;
    const bool status = name.size() > 7 && name.rfind(".status") == name.size() - 7;
    struct stat info {};
    if ((!claim && !status) || ::stat((folder + "/" + name).c_str(), &info) != 0) continue;
    const double time =
        static_cast<double>(info.st_mtim.tv_sec) + 1e-9 * static_cast<double>(info.st_mtim.tv_nsec);
    (claim ? begin : end) = time;
  }
  ::closedir(open);
  return begin > 0 && end > begin ? end - begin : 0;
}

double node_seconds(const WorkpackageView& view, const Journal::Stored& stored) {
  const std::string& folder = view.own_dir.empty() ? view.work_dir : view.own_dir;
  double seconds = seconds_of_job(folder);
  if (stored.job_id.empty() && stored.started > 0)
    seconds = std::max(0.0, stored.ended - stored.started);
  return parameter_of(view, kFleetPair) != nullptr ? 2 * seconds : seconds;
}

std::string group_of_machine(const FleetGroups& groups, const std::string& machine) {
  const auto found = groups.find(machine);
  return found == groups.end() ? std::string() : found->second;
}

bool is_across(const FleetGroups& groups, const std::string& pair) {
  const auto [one, other] = machines_of(pair);
  return group_of_machine(groups, one) != group_of_machine(groups, other);
}

// That of both machines, "rack1 to rack2", or empty without groups.
std::string group_of_pair(const FleetGroups& groups, const std::string& pair) {
  const auto [one, other] = machines_of(pair);
  const std::string first = group_of_machine(groups, one), second = group_of_machine(groups, other);
  return first == second ? first : first + " to " + second;
}

std::string percent_below(const statistics::Deviation& deviation) {
  const auto text = [](double change) {
    return std::isfinite(change) ? fmt::format("{:.1f}", -100 * change) : std::string("?");
  };
  return fmt::format("{} % ({} to {} %)", text(deviation.change), text(deviation.interval.high),
                     text(deviation.interval.low));
}

}  // namespace

const char* fleet_word(FleetVerdict verdict) {
  constexpr const char* kWords[] = {"undecided", "passes", "slow", "wrong"};
  return kWords[static_cast<int>(verdict)];
}

bool FleetRateName::operator<(const FleetRateName& other) const {
  return std::tie(step, metric, point) < std::tie(other.step, other.metric, other.point);
}

std::string FleetRateName::text() const {
  return point.empty() ? metric : fmt::format("{} ({})", metric, point);
}

const FleetFinding* FleetMember::decisive() const {
  const FleetFinding* slowest = nullptr;
  const auto change = [](const FleetFinding& one) {
    double lowest = 0;
    for (const auto& deviation : {one.deviations.of_median, one.deviations.of_baseline})
      if (deviation) lowest = std::min(lowest, deviation->change);
    return lowest;
  };
  const bool any_slow = std::ranges::any_of(
      findings, [](const FleetFinding& one) { return one.verdict == RateVerdict::slow; });
  for (const FleetFinding& finding : findings) {
    if (verdict == FleetVerdict::slow && any_slow && finding.verdict != RateVerdict::slow) continue;
    if (slowest == nullptr || change(finding) < change(*slowest)) slowest = &finding;
  }
  return slowest;
}

bool FleetReport::any_bad() const {
  return std::ranges::any_of(members, [](const FleetMember& one) { return one.is_bad(); });
}

bool FleetReport::all_pass() const {
  return std::ranges::all_of(
      members, [](const FleetMember& one) { return one.verdict == FleetVerdict::passes; });
}

FleetJudge::FleetJudge(const Benchmark& benchmark, FleetBaseline baseline)
    : benchmark_(benchmark),
      baseline_(std::move(baseline)),
      pair_rounds_(fleet_rounds(benchmark)),
      groups_(fleet_groups(benchmark.fleet.find_given("groups"))),
      budget_(std::strtod(benchmark.fleet.find_given("budget").c_str(), nullptr)) {
  for (const Table* table : tables_of(benchmark)) {
    for (const Column& column : table->columns) {
      if (column.better == Better::unknown) continue;
      FleetRateName& name = metrics_[column.name.value];
      name.metric = column.name.value;
      name.lower_is_better = column.better == Better::lower;
      if (const Pattern* pattern = find_pattern(benchmark, name.metric)) name.unit = pattern->unit;
    }
  }
  const std::set<std::string> free = free_parameters(benchmark);
  for (const Parameter& parameter : all_parameters(benchmark)) {
    const std::string& name = parameter.name.value;
    const bool list = !parameter.separator.empty() &&
                      parameter.value.value.find(parameter.separator) != std::string::npos;
    if (list && name != kFleetNode && name != kFleetPair && free.count(name) != 0)
      point_names_.insert(name);
  }
  for (const Analyser& analyser : benchmark.analysers)
    for (const Text& row : analyser.rows)
      if (row.value != benchmark.fleet.part.value) point_names_.insert(row.value);
}

FleetJudge::Unit& FleetJudge::unit_of(const WorkpackageView& view) {
  const std::string& name = *tested_by(view);
  const auto [found, is_new] = units_.try_emplace(name);
  if (is_new) {
    order_.push_back(name);
    FleetMember& member = found->second.member;
    member.name = name;
    member.is_pair = parameter_of(view, kFleetPair) != nullptr;
    member.group = member.is_pair ? group_of_pair(groups_, name) : group_of_machine(groups_, name);
    const auto round = pair_rounds_.find(name);
    if (round != pair_rounds_.end()) found->second.pair_round = round->second;
  }
  return found->second;
}

// Counts a workpackage that has ended by how it did.
void FleetJudge::count(const WorkpackageView& view) {
  Unit& unit = unit_of(view);
  FleetMember& member = unit.member;
  std::vector<std::string> point;
  for (const std::string& name : point_names_)
    if (const std::string* value = parameter_of(view, name)) point.push_back(name + "=" + *value);
  Unit::Tried& tried = unit.tried[{view.step, join(point, ", ")}];
  ++(view.state == State::done ? tried.measured : tried.failed);
  if (view.state == State::lost) {
    ++member.lost;
  } else if (view.state != State::done) {
    ++member.failed;
  } else if (view.disturbance.busy()) {
    ++member.busy;
  } else if (view.disturbance.throttled()) {
    ++member.throttled;
  } else {
    ++member.measured;
  }
}

std::string FleetJudge::point_of(const Record& row) const {
  std::vector<std::string> parts;
  for (const std::string& name : point_names_) {
    if (const std::string* value = row.point.value(name)) {
      parts.push_back(name + "=" + *value);
    } else if (const Value* cell = row.values.find(name)) {
      parts.push_back(name + "=" + cell->str());
    }
  }
  return join(parts, ", ");
}

// Takes the values of one row: rates, texts that are equal everywhere, and what is shown.
void FleetJudge::take(const Record& row, const WorkpackageView& view) {
  Unit& unit = unit_of(view);
  const Fleet& fleet = benchmark_.fleet;
  const Value* part = fleet.part.value.empty() ? nullptr : row.values.find(fleet.part.value);
  const std::string part_text = part == nullptr ? std::string() : part->str();
  std::string point = point_of(row);
  // A link across groups has other parts, and another rate, than one within.
  if (unit.member.is_pair && is_across(groups_, unit.member.name))
    point += point.empty() ? "across groups" : ", across groups";
  for (const Text& name : fleet.same) {
    const Value* value = row.values.find(name.value);
    if (value == nullptr) continue;
    printed_.insert(name.value);
    const std::string label = point.empty() ? name.value : name.value + " (" + point + ")";
    texts_[view.step + '\0' + label][unit.member.name][value->str()].insert(part_text);
  }
  auto& shown = unit.shown[part_text];
  for (const std::vector<Text>* list : {&fleet.same, &fleet.show}) {
    for (const Text& name : *list) {
      const Value* value = row.values.find(name.value);
      if (value == nullptr) continue;
      std::erase_if(shown, [&](const auto& one) { return one.first == name.value; });
      shown.emplace_back(name.value, value->str());
    }
  }
  // A number that others disturbed is no measurement; wrong bits are wrong in any case.
  if (row.busy > 0 || row.throttled > 0) return;
  for (const auto& [metric, found] : metrics_) {
    const Value* value = row.values.find(metric);
    if (value == nullptr || !value->number() || !(value->as_double() > 0)) continue;
    FleetRateName name = found;
    name.step = view.step;
    name.point = point;
    rates_[name][{unit.member.name, part_text}].push_back(value->as_double());
  }
}

Status FleetJudge::read(const Journal& journal, const std::string& run_dir, Evaluator& evaluator) {
  std::vector<WorkpackageView> views;
  TRY(workpackage_views(benchmark_, journal, run_dir, &views));
  std::vector<Journal::Stored> all;
  TRY(journal.workpackages(&all));
  std::map<int, const Journal::Stored*> times;
  for (const Journal::Stored& stored : all) times[stored.workpackage.id] = &stored;
  for (auto& [name, unit] : units_) {
    unit.pending.clear();
    unit.member.open = 0;
  }
  std::vector<WorkpackageView> fresh;
  std::map<int, const WorkpackageView*> by_id;
  for (const WorkpackageView& view : views) {
    if (tested_by(view) == nullptr) {
      fresh.push_back(view);  // a step before, whose values rows may show
      continue;
    }
    Unit& unit = unit_of(view);
    if (view.state == State::pending) unit.pending.push_back(view.id);
    if (!has_ended(view.state)) ++unit.member.open;
    if (!has_ended(view.state) || !read_.insert(view.id).second) continue;
    count(view);
    const Journal::Stored& stored = *times.at(view.id);
    unit.member.ended = std::max(unit.member.ended, stored.ended);
    seconds_ += node_seconds(view, stored);
    by_id[view.id] = &view;
    fresh.push_back(view);
  }
  if (by_id.empty()) return Status::ok();
  Diagnostics said_elsewhere;
  for (Analyser analyser : benchmark_.analysers) {
    analyser.reduce = false;
    const Records records = analyse({benchmark_, evaluator, said_elsewhere}, analyser, fresh);
    for (const Record& row : records.rows) {
      const auto view = by_id.find(row.id);
      if (view != by_id.end() && row.measured()) take(row, *view->second);
    }
  }
  return Status::ok();
}

void FleetJudge::judge_rates(FleetReport& report, bool with_deviations) const {
  std::map<std::string, FleetMember*> members;
  for (FleetMember& member : report.members) members[member.name] = &member;
  std::vector<std::pair<const FleetRateName*, statistics::FleetRate>> all;
  size_t hypotheses = 0;
  for (const auto& [name, samples] : rates_) {
    statistics::FleetRate rate;
    for (const auto& [who, values] : samples) {
      statistics::Sample& logs = rate.logs.emplace_back();
      for (const double value : values)
        logs.push_back(name.lower_is_better ? -std::log(value) : std::log(value));
    }
    if (const auto known = baseline_.rates.find(name); known != baseline_.rates.end()) {
      const double low = std::log(known->second.low), high = std::log(known->second.high);
      rate.baseline = name.lower_is_better ? statistics::Interval{-high, -low}
                                           : statistics::Interval{low, high};
    }
    hypotheses += rate.hypotheses();
    all.emplace_back(&name, std::move(rate));
  }
  for (const auto& [name, rate] : all) {
    const std::vector<RateVerdict> verdicts =
        statistics::judge_rate(rate, benchmark_.fleet.rule, hypotheses);
    std::vector<statistics::RateDeviations> deviations(rate.logs.size());
    if (with_deviations) deviations = statistics::deviations(rate);
    size_t at = 0;
    for (const auto& [who, values] : rates_.at(*name)) {
      FleetFinding& finding = members.at(who.first)->findings.emplace_back();
      finding.name = *name;
      finding.part = who.second;
      finding.rate = statistics::median(values);
      finding.repeats = static_cast<int>(values.size());
      finding.compared = rate.hypotheses() > 0;
      finding.verdict = verdicts[at];
      finding.deviations = deviations[at++];
    }
  }
  for (FleetMember& member : report.members) {
    const auto is = [](RateVerdict verdict) {
      return [verdict](const FleetFinding& one) { return one.verdict == verdict; };
    };
    if (std::ranges::any_of(member.findings, is(RateVerdict::slow))) {
      member.verdict = FleetVerdict::slow;
    } else if (!member.findings.empty() &&
               std::ranges::all_of(member.findings, is(RateVerdict::passes))) {
      member.verdict = FleetVerdict::passes;
    }
    if (const auto known = decided_.find(member.name); known != decided_.end())
      member.verdict = known->second;
  }
}

// The text that counts: that of the baseline, if any has it, or else of more than half of the
// machines or their parts. Empty: none is.
std::string FleetJudge::right_text(const std::string& key) const {
  std::map<std::string, size_t> votes;
  size_t all = 0;
  for (const auto& [unit, texts] : texts_.at(key)) {
    std::map<std::string, std::vector<const std::string*>> by_part;
    for (const auto& [text, parts] : texts)
      for (const std::string& part : parts) by_part[part].push_back(&text);
    all += by_part.size();
    // A part that gives now this, now that has no vote.
    for (const auto& [part, given] : by_part)
      if (given.size() == 1) ++votes[*given.front()];
  }
  const auto accepted = baseline_.same.find(key);
  if (accepted != baseline_.same.end() && votes.count(accepted->second) != 0)
    return accepted->second;
  for (const auto& [text, count] : votes)
    if (2 * count > all) return text;
  return {};
}

void FleetJudge::judge_bits(FleetReport& report) const {
  std::map<std::string, FleetMember*> members;
  for (FleetMember& member : report.members) members[member.name] = &member;
  for (const auto& [key, units] : texts_) {
    const std::string right = right_text(key);
    const std::string label = key.substr(key.find('\0') + 1);
    const bool alike = units.size() == 1 && units.begin()->second.size() == 1;
    const auto accepted = baseline_.same.find(key);
    const bool strange = accepted != baseline_.same.end() && accepted->second != right;
    if (strange)
      report.notes.push_back(fmt::format(
          "{}: nobody has the accepted {}: another program or kind of machine, or all are wrong",
          label, accepted->second));
    if (right.empty() && !alike)
      report.notes.push_back(fmt::format(
          "{}: no text is that of more than half of the machines; which is right cannot be told",
          label));
    for (const auto& [unit, texts] : units) {
      FleetMember& member = *members.at(unit);
      const auto other =
          std::ranges::find_if(texts, [&](const auto& text) { return text.first != right; });
      if (right.empty() && !alike) {
        if (member.verdict == FleetVerdict::passes) member.verdict = FleetVerdict::undecided;
        if (member.why.empty()) member.why = label + " differs between machines";
      } else if (!right.empty() && other != texts.end()) {
        member.verdict = FleetVerdict::wrong;
        // A text that the rows of several parts have is one of the whole machine.
        member.part = other->second.size() == 1 ? *other->second.begin() : std::string();
        member.why = fmt::format("{}{} is {}, on the others {}", part_words(member.part), label,
                                 other->first, right);
      } else if (strange && member.verdict == FleetVerdict::passes) {
        member.verdict = FleetVerdict::undecided;
        member.why = label + " is not the accepted one";
      }
    }
  }
}

namespace {

// Members of one kind have the same rates. Links across groups have points of their own.
enum class MemberKind : uint8_t { machine, link, link_across };

// Members that have fewer values of a name than most: a GPU that is gone is not slow.
void find_fewer(const std::string& label, const std::string& part,
                const std::map<std::string, size_t>& counts,
                const std::vector<FleetMember*>& members) {
  const auto count_of = [&](const FleetMember* member) {
    const auto found = counts.find(member->name);
    return found == counts.end() ? size_t{0} : found->second;
  };
  std::map<size_t, size_t> frequencies;
  for (const FleetMember* member : members) ++frequencies[count_of(member)];
  size_t usual = 0;
  for (const auto& [count, frequency] : frequencies)
    if (frequency >= frequencies[usual]) usual = count;
  for (FleetMember* member : members) {
    const size_t count = count_of(member);
    if (count >= usual || !member->lacks.empty()) continue;
    member->lacks = count == 0
                        ? "no " + label
                        : fmt::format("{} of {} {}, others have {}", label, count, part, usual);
  }
}

}  // namespace

// A machine passes if it has all that the others have, and each of its points was measured.
void FleetJudge::find_gaps(FleetReport& report) const {
  const std::string& part = benchmark_.fleet.part.value;
  for (const auto& [name, samples] : rates_)
    if (!baseline_.rates.empty() && baseline_.rates.count(name) == 0)
      report.notes.push_back(fmt::format(
          "{}: the baseline does not have it; it is judged by the median alone", name.text()));
  const auto kind_of = [&](const FleetMember& member) {
    if (!member.is_pair) return MemberKind::machine;
    return is_across(groups_, member.name) ? MemberKind::link_across : MemberKind::link;
  };
  for (const MemberKind kind : {MemberKind::machine, MemberKind::link, MemberKind::link_across}) {
    std::vector<FleetMember*> members;
    for (FleetMember& member : report.members)
      if (kind_of(member) == kind && member.measured > 0) members.push_back(&member);
    for (const auto& [name, samples] : rates_) {
      std::map<std::string, size_t> counts;
      for (const auto& [who, values] : samples) ++counts[who.first];
      find_fewer(name.text(), part, counts, members);
    }
    for (const auto& [key, units] : texts_) {
      std::map<std::string, size_t> counts;
      for (const auto& [unit, texts] : units) {
        Parts parts;
        for (const auto& [text, of] : texts) parts.insert(of.begin(), of.end());
        counts[unit] = parts.size();
      }
      find_fewer(key.substr(key.find('\0') + 1), part, counts, members);
    }
    for (FleetMember* member : members) {
      const auto& tried = units_.at(member->name).tried;
      for (const auto& [name, accepted] : baseline_.rates) {
        const bool has_step = std::ranges::any_of(
            tried, [&](const auto& entry) { return entry.first.first == name.step; });
        if (has_step && rates_.count(name) == 0)
          member->lacks = fmt::format("no {} of the baseline", name.text());
      }
      for (const Text& name : benchmark_.fleet.same)
        if (kind == MemberKind::machine && printed_.count(name.value) == 0)
          member->lacks = "no " + name.value;
      for (const auto& [where, count] : tried)
        if (count.measured == 0)
          member->lacks = "nothing of " + (where.second.empty() ? where.first : where.second);
      const bool passes = member->verdict == FleetVerdict::passes;
      if (passes && !member->lacks.empty()) member->verdict = FleetVerdict::undecided;
    }
  }
}

// "gpu 3: ".
std::string FleetJudge::part_words(const std::string& part) const {
  return part.empty() ? part : fmt::format("{} {}: ", benchmark_.fleet.part.value, part);
}

bool FleetJudge::nothing_judges(const FleetMember& member) const {
  const auto alike = std::ranges::count_if(
      units_, [&](const auto& unit) { return unit.second.member.is_pair == member.is_pair; });
  return static_cast<size_t>(alike) < statistics::kFewestInFleet && !member.findings.empty() &&
         std::ranges::none_of(member.findings,
                              [](const FleetFinding& finding) { return finding.compared; });
}

// Says why a member is not decided, or slow.
void FleetJudge::explain(FleetMember& member) const {
  const FleetFinding* finding = member.decisive();
  if (member.verdict == FleetVerdict::slow && finding != nullptr) {
    member.part = finding->part;
    const auto& [of_median, of_baseline] = finding->deviations;
    const bool median = of_median && (!of_baseline || of_median->change <= of_baseline->change);
    member.why = fmt::format("{}{} is below the {} by {}", part_words(member.part),
                             finding->name.text(), median ? "median" : "baseline",
                             percent_below(median ? *of_median : *of_baseline));
  }
  if (member.verdict != FleetVerdict::undecided || !member.why.empty()) return;
  std::vector<std::string> marks;
  const auto add = [&](int count, const char* word) {
    if (count > 0) marks.push_back(fmt::format("{} {}", count, word));
  };
  add(member.lost, "LOST");
  add(member.failed, "FAILED");
  add(member.busy, kBusy);
  add(member.throttled, kThrottled);
  if (member.measured == 0) {
    member.why = marks.empty() ? "not measured" : "no measurement: " + join(marks, ", ");
    return;
  }
  member.why =
      fmt::format("after {} measurement{}", member.measured, member.measured == 1 ? "" : "s");
  if (!marks.empty()) member.why += ", and " + join(marks, ", ");
  if (!member.lacks.empty()) member.why.insert(0, member.lacks + " ");
  if (nothing_judges(member))
    member.why += fmt::format("; fewer than {} have no median: --accept makes a baseline",
                              statistics::kFewestInFleet);
}

FleetReport FleetJudge::verdicts(bool with_deviations) const {
  FleetReport report;
  for (const bool pairs : {false, true}) {
    for (const std::string& name : order_) {
      const FleetMember& member = units_.at(name).member;
      const bool tested = member.measured + member.failed + member.lost + member.busy +
                              member.throttled + member.open >
                          0;
      if (member.is_pair == pairs && tested) report.members.push_back(member);
    }
  }
  judge_rates(report, with_deviations);
  judge_bits(report);
  find_gaps(report);
  report.node_hours = seconds_ / kSecondsOfHour;
  report.budget = budget_;
  return report;
}

bool FleetJudge::is_spent() const {
  return budget_ > 0 && seconds_ / kSecondsOfHour >= budget_;
}

FleetReport FleetJudge::report() const {
  FleetReport report = verdicts(true);
  for (FleetMember& member : report.members) {
    explain(member);
    const auto& shown = units_.at(member.name).shown;
    if (shown.empty()) continue;
    const FleetFinding* decisive = member.decisive();
    const auto part = !member.part.empty()  ? shown.find(member.part)
                      : decisive == nullptr ? shown.begin()
                                            : shown.find(decisive->part);
    member.shown = (part == shown.end() ? shown.begin() : part)->second;
  }
  assign_links(report);
  for (const std::string& line : split_strip(benchmark_.fleet.find_given("not_tested"), "\n")) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos)
      report.not_tested.emplace_back(line.substr(0, colon), line.substr(colon + 2));
  }
  return report;
}

Journal::Facts FleetJudge::decide() {
  Journal::Facts facts;
  for (const FleetMember& member : verdicts(false).members) {
    if (member.verdict != FleetVerdict::passes && member.verdict != FleetVerdict::slow) continue;
    if (decided_.emplace(member.name, member.verdict).second)
      facts.emplace_back(kFleetFact + member.name, fleet_word(member.verdict));
  }
  return facts;
}

void FleetJudge::take_decided(const Journal::Facts& facts) {
  for (const auto& [name, word] : facts) {
    if (name == kBudgetFact) budget_ = std::strtod(word.c_str(), nullptr);
    if (!starts_with(name, kFleetFact)) continue;
    for (const FleetVerdict verdict : {FleetVerdict::passes, FleetVerdict::slow})
      if (word == fleet_word(verdict))
        decided_.emplace(name.substr(std::string_view(kFleetFact).size()), verdict);
  }
}

// Whether one of its points was tried often enough, and was never measured.
bool FleetJudge::fails_always(const Unit& unit) const {
  return std::ranges::any_of(unit.tried, [&](const auto& entry) {
    return entry.second.measured == 0 && entry.second.failed >= benchmark_.fleet.first;
  });
}

bool FleetJudge::asks_only(const Unit& unit) const {
  // With groups, the first two rounds test a link within and one across groups of each machine.
  return unit.pair_round >= (groups_.empty() ? 1 : 2);
}

std::vector<int> FleetJudge::not_needed() const {
  const FleetReport report = verdicts(false);
  const LinkQuestions questions(
      report, [&](const std::string& pair) { return !asks_only(units_.at(pair)); });
  std::vector<int> ids;
  for (const FleetMember& member : report.members) {
    const Unit& unit = units_.at(member.name);
    // Machines whose jobs fail say nothing more by failing again.
    const bool decided = member.verdict != FleetVerdict::undecided || fails_always(unit) ||
                         (member.failed + member.lost >= benchmark_.fleet.first &&
                          member.failed + member.lost > member.measured);
    const bool idle = asks_only(unit) && !questions.are_answered_by(member.name);
    const bool enough =
        nothing_judges(member) && std::ranges::all_of(member.findings, [](const auto& finding) {
          return finding.repeats >= static_cast<int>(statistics::kFewestForMedian);
        });
    if (decided || idle || enough) ids.insert(ids.end(), unit.pending.begin(), unit.pending.end());
  }
  return ids;
}

FleetBaseline FleetJudge::accepted() const {
  FleetBaseline out;
  std::set<std::string> passing;
  const FleetReport report = verdicts(false);
  for (const FleetMember& member : report.members)
    if (member.verdict == FleetVerdict::passes || (!member.is_bad() && nothing_judges(member)))
      passing.insert(member.name);
  for (const auto& [name, samples] : rates_) {
    statistics::Sample medians, repeats;
    AcceptedRate rate;
    for (const auto& [who, values] : samples) {
      if (passing.count(who.first) == 0) continue;
      medians.push_back(statistics::median(values));
      repeats.insert(repeats.end(), values.begin(), values.end());
    }
    if (medians.empty()) continue;
    rate.machines = medians.size();
    rate.repeats = repeats.size();
    rate.rate = statistics::median(medians);
    // Few machines have no interval: that of their repeats.
    const bool few = medians.size() < statistics::kFewestInFleet;
    const statistics::Interval interval =
        statistics::median_interval(few ? repeats : medians).interval;
    rate.low = interval.low;
    rate.high = interval.high;
    out.rates[name] = rate;
  }
  for (const auto& [key, units] : texts_)
    for (const auto& [unit, texts] : units)
      if (passing.count(unit) != 0) out.same[key] = texts.begin()->first;
  return out;
}

}  // namespace tally

#include "engine/results/judge/fleet_links.h"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "engine/workflow/fleet_pairs.h"

namespace tally {
namespace {

struct PairCounts {
  int slow = 0, passes = 0;
};

std::map<std::string, PairCounts> count_pairs(const FleetReport& report) {
  std::map<std::string, PairCounts> counts;
  for (const FleetMember& member : report.members) {
    if (!member.is_pair) continue;
    const auto [one, other] = machines_of(member.name);
    for (const std::string& machine : {one, other}) {
      if (member.verdict == FleetVerdict::slow) ++counts[machine].slow;
      if (member.verdict == FleetVerdict::passes) ++counts[machine].passes;
    }
  }
  return counts;
}

}  // namespace

void assign_links(FleetReport& report) {
  std::map<std::string, FleetMember*> machines;
  for (FleetMember& member : report.members)
    if (!member.is_pair) machines[member.name] = &member;
  const auto is_bad = [&](const std::string& name) {
    const auto found = machines.find(name);
    return found != machines.end() && found->second->is_bad();
  };
  std::map<std::string, PairCounts> counts = count_pairs(report);
  std::set<std::string> slow;  // by their pairs
  for (FleetMember& pair : report.members) {
    if (!pair.is_pair || pair.verdict != FleetVerdict::slow) continue;
    const auto [one, other] = machines_of(pair.name);
    const auto blamed = [&](const std::string& machine, const std::string& partner) {
      return counts[machine].slow > 1 && counts[machine].passes == 0 && counts[partner].passes > 0;
    };
    if (is_bad(one) || is_bad(other)) {
      pair.why +=
          fmt::format("; {} is not as fast as the others by itself", is_bad(one) ? one : other);
    } else if (counts[one].passes > 0 && counts[other].passes > 0) {
      pair.why += "; it is the link: both pass in another pair";
    } else if (blamed(one, other) || blamed(other, one)) {
      const std::string& machine = blamed(one, other) ? one : other;
      pair.why += fmt::format("; it is {}: its other pairs are slow, too", machine);
      slow.insert(machine);
    } else {
      pair.why += "; no other pair tells whether a machine or the link is slow";
    }
  }
  for (const std::string& name : slow) {
    const auto found = machines.find(name);
    if (found == machines.end()) continue;
    found->second->verdict = FleetVerdict::slow;
    found->second->why = fmt::format("slow in each of its {} pairs", counts[name].slow);
  }
}

LinkQuestions::LinkQuestions(const FleetReport& report,
                             const std::function<bool(const std::string& pair)>& is_first) {
  for (const FleetMember& member : report.members)
    if (!member.is_pair && member.verdict != FleetVerdict::passes) not_passing_.insert(member.name);
  for (const FleetMember& member : report.members) {
    if (!member.is_pair || member.verdict == FleetVerdict::passes || !is_first(member.name))
      continue;
    const auto machines = machines_of(member.name);
    if (!explained(machines)) suspects_.insert({machines.first, machines.second});
  }
}

bool LinkQuestions::explained(const std::pair<std::string, std::string>& machines) const {
  return not_passing_.count(machines.first) + not_passing_.count(machines.second) > 0;
}

bool LinkQuestions::are_answered_by(const std::string& pair) const {
  const auto machines = machines_of(pair);
  return !explained(machines) &&
         suspects_.count(machines.first) + suspects_.count(machines.second) == 1;
}

}  // namespace tally

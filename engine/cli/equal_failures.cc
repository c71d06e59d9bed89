#include "engine/cli/equal_failures.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "engine/base/secrets.h"
#include "engine/base/text.h"

namespace tally {
namespace {

// Equal failures have this in common. A value that could not be computed is told by its place in
// the file alone.
using FailureKey = std::tuple<State, std::string, std::string, Reason, std::string>;
FailureKey failure_key(const Journal::Stored& stored,
                       const std::function<std::string(const Journal::Stored&)>& words) {
  const Outcome& outcome = stored.workpackage.outcome;
  if (stored.started <= 0 && !stored.place.empty())
    return {outcome.state, stored.step, stored.place, Reason::value, ""};
  return {outcome.state, stored.step, stored.place, outcome.reason,
          words ? words(stored) : std::string(strip(message_in_short(outcome)))};
}

}  // namespace

std::vector<EqualFailures> equal_failures(
    const std::vector<Journal::Stored>& workpackages,
    const std::function<std::string(const Journal::Stored&)>& words, bool put_off) {
  std::vector<EqualFailures> failures;
  std::map<FailureKey, size_t> known;
  for (const Journal::Stored& stored : workpackages) {
    const Outcome& outcome = stored.workpackage.outcome;
    const bool elsewhere = outcome.state == State::pending && outcome.reason == Reason::host;
    if (!has_failed(outcome.state) && !(put_off && elsewhere)) continue;
    const auto [at, is_new] = known.try_emplace(failure_key(stored, words), failures.size());
    if (is_new) failures.emplace_back();
    failures[at->second].all.push_back(&stored);
  }
  return failures;
}

std::vector<std::pair<std::string, std::string>> shared_parameters(
    const EqualFailures& failure, const std::vector<Journal::Stored>& workpackages) {
  const Journal::Stored& first = *failure.all.front();
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& parameter : first.parameters) {
    const auto has = [&](const Journal::Stored& stored) {
      return std::find(stored.parameters.begin(), stored.parameters.end(), parameter) !=
             stored.parameters.end();
    };
    const bool shared = std::all_of(failure.all.begin(), failure.all.end(),
                                    [&](const Journal::Stored* stored) { return has(*stored); });
    const bool tells = std::any_of(
        workpackages.begin(), workpackages.end(),
        [&](const Journal::Stored& stored) { return stored.step == first.step && !has(stored); });
    const bool may_be_shown =
        parameter.second.find('$') == std::string::npos && !names_secret(parameter.first);
    if (shared && tells && may_be_shown) out.push_back(parameter);
  }
  return out;
}

}  // namespace tally

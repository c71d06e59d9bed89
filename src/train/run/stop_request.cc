#include "src/train/run/stop_request.h"

#include <fmt/format.h>

#include "src/measure/system_info.h"
#include "src/train/run/output.h"

namespace tally::train {
namespace {

constexpr char time_mark = 't', signal_mark = 's';

// Empty where no signal has come.
std::string signal_received() {
  const int signal = received_stop_signal();
  return signal == 0 ? "" : fmt::format("{} was received", signal_name(signal));
}

}  // namespace

void throw_if_signalled() {
  if (const std::string why = signal_received(); !why.empty()) throw StopRequested(why);
}

Ending stop_request(const TimeLimit& limit) {
  if (const std::string why = signal_received(); !why.empty()) return {Outcome::signalled, why};
  if (const std::string failure = output_failure(); !failure.empty())
    return {Outcome::signalled, failure};
  if (limit.reached())
    return {Outcome::time_limit,
            fmt::format("--exit-duration-in-mins {} is over", limit.minutes())};
  return {};
}

Ending reason_to_stop(const Ending& agreed, const TimeLimit& limit, World& world) {
  const bool stops = agreed.outcome == Outcome::time_limit || agreed.outcome == Outcome::signalled;
  if (!stops || world.size() == 1) return agreed;
  const Ending mine = stop_request(limit);
  std::string text;
  if (mine.outcome != Outcome::completed) {
    text += mine.outcome == Outcome::time_limit ? time_mark : signal_mark;
    text += world.rank() == 0
                ? mine.message
                : fmt::format("rank {} on {}: {}", world.rank(), host_name(), mine.message);
  }
  for (const std::string& reason : world.meeting().exchange(text))
    if (!reason.empty())
      return {reason[0] == time_mark ? Outcome::time_limit : Outcome::signalled, reason.substr(1)};
  return agreed;
}

}  // namespace tally::train

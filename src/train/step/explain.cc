#include "src/train/step/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "src/device/events.h"
#include "src/device/step_state.h"
#include "src/nn/gemm_hook.h"
#include "src/train/run/failures.h"

namespace tally::train {
namespace {

// A GPU at its power limit lowers its clock.
constexpr double sustained_seconds = 0.25;

std::vector<std::string> of_all_ranks(Rendezvous& meeting, const std::string& mine) {
  return meeting.size() == 1 ? std::vector<std::string>{mine} : meeting.exchange(mine);
}

struct Listened {
  GemmCall call;
  int64_t calls = 0;
};

// The GEMMs of one step, each shape once, in the order of their first calls.
std::vector<Listened> gemms_of_step(StepLoop& loop) {
  std::vector<Listened> found;
  std::map<std::string, size_t> places;
  loop.hear_gemms([&](const GemmCall& call) {
    const auto [place, is_new] = places.try_emplace(call.name, found.size());
    if (is_new) found.push_back({call});
    ++found[place->second].calls;
  });
  loop.repeat(1, StepLoop::Calls::eager);
  loop.hear_gemms({});
  return found;
}

// Seconds of the GEMM's kernels in one call.
double seconds_alone(const ExplainParts& parts, const GemmCall& call) {
  const auto events = StreamEvents::make(parts.stream, 2);
  const auto run = [&](int64_t calls) {
    for (int64_t i = 0; i < calls; ++i) call.again();
  };
  constexpr int64_t some = 3, most = 5000;
  run(1);
  events->record(0);
  run(some);
  events->record(1);
  events->wait(1);
  const double once = std::max(events->seconds(0, 1) / some, 1e-7);
  const int64_t calls = std::clamp(static_cast<int64_t>(sustained_seconds / once), some, most);
  run(calls / 2);
  parts.stream.synchronize();
  int64_t lost = 0;
  parts.profiler.start();
  run(calls);
  parts.stream.synchronize();
  const int64_t nanoseconds = gemm_nanoseconds(parts.profiler.stop(&lost));
  return 1e-9 * static_cast<double>(nanoseconds) / static_cast<double>(calls);
}

// The time of this rank's messages, without the wait for others.
std::vector<int64_t> own_transfers(Rendezvous& meeting,
                                   const std::vector<DeviceActivity>& activities) {
  const TracedMessages mine = messages_of(activities);
  const nlohmann::json text{{"kinds", mine.kinds}, {"nanoseconds", mine.nanoseconds}};
  std::vector<TracedMessages> ranks;
  for (const std::string& one : of_all_ranks(meeting, text.dump())) {
    const nlohmann::json in = nlohmann::json::parse(one);
    ranks.push_back({in["kinds"], in["nanoseconds"]});
  }
  return transfers_of(ranks, static_cast<size_t>(meeting.rank()));
}

std::string encoded_rank(const RankExplanation& e) {
  nlohmann::json gemms = nlohmann::json::array();
  for (const GemmAlone& g : e.gemms) gemms.push_back({g.call, g.calls, g.seconds});
  return nlohmann::json{{"steps", e.steps}, {"times", e.times}, {"lost", e.lost}, {"gemms", gemms}}
      .dump();
}

RankExplanation decoded_rank(const std::string& text) {
  const nlohmann::json in = nlohmann::json::parse(text);
  RankExplanation e{in["steps"], in["times"], in["lost"], {}};
  for (const nlohmann::json& g : in["gemms"]) e.gemms.push_back({g[0], g[1], g[2]});
  return e;
}

}  // namespace

std::unique_ptr<DeviceProfiler> open_explain_profiler(Stream& stream) {
  if (!stream.device().is_cuda())
    throw InputError(
        "--explain: reads what a GPU did from CUPTI, and this run is on the CPU: leave it out, or "
        "time the phases of a step with --time-phases");
  try {
    return DeviceProfiler::open(stream);
  } catch (const DeviceError& e) {
    throw InputError(fmt::format("--explain: {}", e.what()));
  }
}

Explanation explain(const ExplainParts& parts, std::string* why) {
  RankExplanation mine;
  parts.loop.rewind(explain_steps);
  parts.loop.repeat(explain_warm_up);
  parts.profiler.start();
  parts.loop.repeat(explain_traced + 1);
  StepTrace trace;
  trace.activities = parts.profiler.stop(&mine.lost);
  trace.ends = step_ends(trace.activities, static_cast<int64_t>(sizeof(StepState)));
  const std::vector<int64_t> transfers = own_transfers(parts.meeting, trace.activities);
  if (trace.ends.size() == explain_traced + 1) {
    mine.steps = explain_traced;
    mine.times = divide(trace, transfers);
  }
  for (const Listened& gemm : gemms_of_step(parts.loop))
    mine.gemms.push_back({gemm.call.name, gemm.calls, seconds_alone(parts, gemm.call)});
  Explanation ranks;
  for (const std::string& one : of_all_ranks(parts.meeting, encoded_rank(mine)))
    ranks.push_back(decoded_rank(one));
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].steps > 0) continue;
    *why = fmt::format(
        "--explain: CUPTI's records of rank {} do not show where its steps end ({} of them were "
        "lost): where the time goes is not known",
        rank, ranks[rank].lost);
    return {};
  }
  return ranks;
}

}  // namespace tally::train

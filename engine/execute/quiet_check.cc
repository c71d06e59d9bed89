#include "engine/execute/quiet_check.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace tally {
namespace {

bool wanted(const Benchmark& benchmark) {
  const char* given = std::getenv("TALLY_QUIET_CHECK");
  return !benchmark.as_jube && (given == nullptr || std::string_view(given) != "off");
}

}  // namespace

QuietCheck::QuietCheck(RunContext& context) : context_(context), on_(wanted(context.benchmark)) {}

void QuietCheck::sample() {
  const Clock::time_point before = Clock::now();
  latest_ = load_.sample();
  const Clock::time_point after = Clock::now();
  cost_ = after - before;
  constexpr int kShare = 50;  // of the time
  next_ = after + std::max<Clock::duration>(std::chrono::milliseconds(100), cost_ * kShare);
}

const std::optional<LoadSample>& QuietCheck::now() {
  if (Clock::now() >= next_) sample();
  return latest_;
}

void QuietCheck::started(int id) {
  if (!on_) return;
  if (const std::optional<LoadSample>& sample = now()) started_.emplace(id, *sample);
}

Status QuietCheck::ended(int id) {
  const auto from = started_.find(id);
  if (from == started_.end()) return Status::ok();
  const LoadSample begin = from->second;
  started_.erase(from);
  // One that took long enough to be judged is worth a sample of its own.
  constexpr int kShare = 10;
  const Clock::duration took = Clock::now() - begin.time;
  if (took >= std::chrono::milliseconds(200) && took >= cost_ * kShare) sample();
  const std::optional<LoadSample>& end = now();
  if (!end || !disturbs(begin, *end)) return Status::ok();
  return context_.journal.set_others(id, *cores_of_others(begin, *end));
}

}  // namespace tally

#include "engine/execute/quiet_check.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "engine/workflow/pattern_uses.h"

namespace tally {
namespace {

bool wanted(const Benchmark& benchmark) {
  const char* given = std::getenv("TALLY_QUIET_CHECK");
  return benchmark.rules.machine_is_watched &&
         (given == nullptr || std::string_view(given) != "off");
}

}  // namespace

bool is_watched(const Benchmark& benchmark, const Step& step) {
  if (!step.quiet_check) return false;
  if (!reuses_work(step.kind)) return true;
  const auto reads = [&](const Analyse& one) {
    return one.step.value == step.name.value ||
           std::ranges::any_of(one.files, [&](const AnalyseFile& file) {
             return steps_read(benchmark, one, file).count(step.name.value) != 0;
           });
  };
  return std::ranges::any_of(benchmark.analysers, [&](const Analyser& analyser) {
    return std::ranges::any_of(analyser.analyse, reads);
  });
}

QuietCheck::QuietCheck(RunContext& context)
    : context_(context), on_(wanted(context.run.benchmark())) {
  if (!on_ || context.parts.gpu_devices == nullptr) return;
  gpus_ = std::make_unique<GpuWatch>(*context.parts.gpu_devices,
                                     [this](int pid) { return owner_of(pid, context_.mark); });
}

void QuietCheck::sample() {
  const Clock::time_point before = Clock::now();
  latest_ = {load_.sample(), clocks_.sample()};
  const Clock::time_point after = Clock::now();
  cost_ = after - before;
  constexpr int kShare = 50;  // of the time
  next_ = after + std::max<Clock::duration>(std::chrono::milliseconds(100), cost_ * kShare);
}

const QuietCheck::Begin& QuietCheck::now() {
  if (Clock::now() >= next_) sample();
  return latest_;
}

void QuietCheck::started(int id, const Step& step) {
  if (!on_ || !is_watched(context_.run.benchmark(), step)) return;
  // The first look comes when the program has had time to open its GPUs.
  if (started_.empty()) look_next_ = Clock::now() + std::chrono::milliseconds(200);
  started_.insert_or_assign(id, now());
  if (gpus_) gpus_->started(id);
}

QuietCheck::Clock::time_point QuietCheck::next_look() const {
  return started_.empty() || !has_looks() ? Clock::time_point::max() : look_next_;
}

void QuietCheck::look() {
  const Clock::time_point before = Clock::now();
  if (before < next_look()) return;
  if (gpus_) gpus_->look();
  clocks_.look();
  const Clock::time_point after = Clock::now();
  constexpr int kShare = 100;  // of the time
  look_next_ =
      after + std::max<Clock::duration>(std::chrono::seconds(1), (after - before) * kShare);
}

Status QuietCheck::ended(int id) {
  const auto from = started_.find(id);
  if (from == started_.end()) return Status::ok();
  const Begin begin = from->second;
  started_.erase(from);
  Disturbance disturbance;
  if (gpus_) gpus_->ended(id, &disturbance);
  // One that took long enough to be judged is worth a sample of its own.
  constexpr int kShare = 10;
  if (begin.load) {
    const Clock::duration took = Clock::now() - begin.load->time;
    if (took >= std::chrono::milliseconds(200) && took >= cost_ * kShare) sample();
  }
  const Begin& end = now();
  if (begin.load && end.load && disturbs(*begin.load, *end.load))
    disturbance.cores = *cores_of_others(*begin.load, *end.load);
  if (const std::string cpu = cpu_throttling(begin.clocks, end.clocks); !cpu.empty()) {
    const std::string gpu = disturbance.throttling;
    disturbance.throttling = gpu.empty() ? cpu : gpu + "; " + cpu;
  }
  return disturbance.any() ? context_.run.journal().set_disturbance(id, disturbance) : Status::ok();
}

}  // namespace tally

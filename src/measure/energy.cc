#include "src/measure/energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace tally::train {
namespace {

// 17 minutes of them at first.
constexpr size_t most_samples = 10000;
// NVML's counter and sensor change some times a second.
constexpr double shortest_seconds = 1;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The value at `at` of a line through two samples.
double between(const PowerSample& a, const PowerSample& b, double at, double of_a, double of_b) {
  const double width = b.at - a.at;
  return width > 0 ? of_a + (of_b - of_a) * (at - a.at) / width : of_b;
}

// Adds what was used from `from` to `to`, which lie between two samples.
void add_piece(const PowerSample& a, const PowerSample& b, double from, double to,
               SpanEnergy* out) {
  const auto add = [&](const std::optional<double>& of_a, const std::optional<double>& of_b,
                       std::optional<double>* sum, auto piece) {
    if (of_a && of_b && *sum) {
      **sum += piece(between(a, b, from, *of_a, *of_b), between(a, b, to, *of_a, *of_b));
    } else {
      sum->reset();
    }
  };
  add(a.reading.joules, b.reading.joules, &out->joules,
      [](double begin, double end) { return end - begin; });
  add(a.reading.watts, b.reading.watts, &out->sampled_joules,
      [&](double begin, double end) { return (begin + end) / 2 * (to - from); });
  add(a.reading.sm_mhz, b.reading.sm_mhz, &out->sm_mhz,
      [&](double begin, double end) { return (begin + end) / 2 * (to - from); });
  out->throttle |= a.reading.throttle | b.reading.throttle;
  if (b.reading.celsius) out->celsius = std::max(out->celsius.value_or(0), *b.reading.celsius);
}

// `before` and `after` have the same names.
std::vector<GpuFaults> faults_of(const std::vector<GpuCounter>& before,
                                 const std::vector<GpuCounter>& after) {
  std::vector<GpuFaults> faults;
  for (size_t i = 0; i < after.size(); ++i) {
    GpuFaults& one = faults.emplace_back();
    one.name = after[i].name;
    one.count = after[i].value;
    // A counter that somebody reset meanwhile tells nothing.
    if (one.count && before[i].value && *one.count >= *before[i].value)
      one.in_run = *one.count - *before[i].value;
  }
  return faults;
}

}  // namespace

SpanEnergy energy_in(const std::vector<PowerSample>& samples, const std::vector<Span>& spans) {
  SpanEnergy out;
  for (const Span& span : spans) out.seconds += span.to - span.from;
  if (spans.empty() || samples.empty() || samples.front().at > spans.front().from ||
      samples.back().at < spans.back().to)
    return out;
  out.joules = out.sampled_joules = out.sm_mhz = 0;
  for (const Span& span : spans) {
    const auto after = std::upper_bound(samples.begin(), samples.end(), span.from,
                                        [](double at, const PowerSample& s) { return at < s.at; });
    for (auto b = after; b != samples.end() && (b - 1)->at < span.to; ++b) {
      const PowerSample& a = *(b - 1);
      add_piece(a, *b, std::max(a.at, span.from), std::min(b->at, span.to), &out);
    }
  }
  if (out.sm_mhz) *out.sm_mhz /= out.seconds;
  return out;
}

std::vector<Span> spans_of(const std::vector<Step>& steps, size_t first,
                           const std::vector<StepsDone>& done) {
  std::vector<Span> spans;
  size_t index = 0;
  for (const StepsDone& group : done) {
    double seconds = 0;
    for (; index < steps.size() && steps[index].iteration <= group.iteration; ++index)
      if (index >= first) seconds += steps[index].seconds;
    if (seconds <= 0) continue;
    // The two clocks differ a little: no moment counts twice.
    const double begin =
        spans.empty() ? group.at - seconds : std::max(group.at - seconds, spans.back().to);
    spans.push_back({begin, group.at});
  }
  return spans;
}

EnergySampler::EnergySampler(std::unique_ptr<GpuDevices> gpus, size_t gpu, double interval)
    : gpus_(std::move(gpus)), gpu_(gpu), before_(gpus_->counters(gpu)), interval_(interval) {
  sample();
  thread_ = std::thread([this] { read_until_stopped(); });
}

EnergySampler::~EnergySampler() {
  stop();
}

void EnergySampler::steps_done(int64_t iteration) {
  done_.push_back({iteration, now()});
}

void EnergySampler::read_until_stopped() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!stopped_.wait_for(lock, std::chrono::duration<double>(interval_),
                            [this] { return stop_; })) {
    lock.unlock();
    sample();
    lock.lock();
    if (samples_.size() < most_samples) continue;
    for (size_t k = 1; 2 * k < samples_.size(); ++k) {
      samples_[2 * k].reading.throttle |= samples_[2 * k - 1].reading.throttle;
      samples_[k] = samples_[2 * k];
    }
    samples_.resize((samples_.size() + 1) / 2);
    interval_ *= 2;
  }
}

void EnergySampler::sample() {
  PowerSample s;
  const double before = now();
  s.reading = gpus_->read(gpu_);
  s.at = (before + now()) / 2;
  const std::lock_guard<std::mutex> lock(mutex_);
  samples_.push_back(s);
}

void EnergySampler::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

GpuEnergyUse EnergySampler::finish(const std::vector<Step>& steps, size_t first) {
  stop();
  sample();
  GpuEnergyUse use;
  const GpuSettings settings = gpus_->settings(gpu_);
  use.uuid = gpus_->uuid(gpu_);
  use.limit_watts = settings.limit_watts;
  use.default_limit_watts = settings.default_limit_watts;
  use.max_sm_mhz = settings.max_sm_mhz;
  use.faults = faults_of(before_, gpus_->counters(gpu_));
  use.energy = energy_in(samples_, spans_of(steps, first, done_));
  if (use.energy.seconds < shortest_seconds) {
    use.not_available = fmt::format(
        "the steps after the warm-up took {:.3g} s: take more of them, for {:.0f} s or longer",
        use.energy.seconds, shortest_seconds);
  } else if (!use.energy.joules && !use.energy.sampled_joules) {
    use.not_available = "this GPU has no energy counter and no power sensor";
  }
  if (!use.not_available.empty()) use.energy.joules = use.energy.sampled_joules = std::nullopt;
  return use;
}

}  // namespace tally::train

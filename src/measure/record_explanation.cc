#include "src/measure/record_explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "engine/energy/gpu_devices.h"
#include "src/config/json_values.h"
#include "src/device/gpu_table.h"
#include "src/measure/flops.h"
#include "src/measure/peak_rates.h"
#include "src/measure/statistics.h"

namespace tally::train {

double RankExplanation::seconds(StepBar bar) const {
  return 1e-9 * static_cast<double>(times[static_cast<size_t>(bar)]) / static_cast<double>(steps);
}

double RankExplanation::step_seconds() const {
  const int64_t all = std::accumulate(times.begin(), times.end(), int64_t{0});
  return 1e-9 * static_cast<double>(all) / static_cast<double>(steps);
}

double RankExplanation::gemm_seconds_alone() const {
  double sum = 0;
  for (const GemmAlone& g : gemms) sum += g.seconds * static_cast<double>(g.calls);
  return sum;
}

namespace {

using json = nlohmann::ordered_json;

template <typename Value>
double mean_of(const Explanation& ranks, const Value& value) {
  double sum = 0;
  for (const RankExplanation& rank : ranks) sum += value(rank);
  return sum / static_cast<double>(ranks.size());
}

// The seconds that a GPU would need for the model's FLOPs of a step at its datasheet's rate.
struct Ideal {
  double gemms = 0, attention = 0;
};

std::optional<Ideal> ideal_of(const Record& r) {
  const auto peak = peak_rate(r.device_info.name, r.config.precision);
  const auto mfu = model_flops_utilisation(r), typed = typed_flops_utilisation(r);
  if (!peak || !mfu) return std::nullopt;
  const double at_peak = tokens_per_step(r) / (peak->tflops * 1e12 * r.config.world_size);
  const double all = at_peak * flops_per_token(r) * (typed ? *typed / *mfu : 1);
  const double attention = at_peak * attention_flops_per_token(r);
  return Ideal{all - attention, attention};
}

// The mean clock of all GPUs in the steps after the warm-up.
std::optional<double> mean_clock(const Record& r) {
  double sum = 0;
  for (const GpuEnergyUse& use : r.energy) {
    if (!use.energy.sm_mhz) return std::nullopt;
    sum += *use.energy.sm_mhz;
  }
  if (r.energy.empty()) return std::nullopt;
  return sum / static_cast<double>(r.energy.size());
}

std::string throttling_of(const Record& r) {
  uint64_t bits = 0;
  for (const GpuEnergyUse& use : r.energy) bits |= use.energy.throttle;
  return throttle_words(bits);
}

double median_steady_seconds(const Record& r) {
  std::vector<double> seconds;
  for (size_t i = first_steady_step(r); i < r.steps.size(); ++i)
    seconds.push_back(r.steps[i].seconds);
  return median(std::move(seconds));
}

double computing(const RankExplanation& rank) {
  return rank.seconds(StepBar::gemm) + rank.seconds(StepBar::attention) +
         rank.seconds(StepBar::other) + rank.seconds(StepBar::interrupted);
}

// The bars of GEMMs and attention. Their kernels take as many clocks at any clock: what they take
// at the datasheet's is the share `slowdown` of what they took, and clocks have the rest.
void add_computing(const Record& r, const std::optional<Ideal>& ideal, double slowdown,
                   std::vector<WaterfallBar>* bars) {
  const Explanation& ranks = r.explanation;
  const auto mean = [&](StepBar bar) {
    return mean_of(ranks, [bar](const RankExplanation& rank) { return rank.seconds(bar); });
  };
  const double gemms = mean(StepBar::gemm), attention = mean(StepBar::attention);
  const double alone =
      mean_of(ranks, [](const RankExplanation& rank) { return rank.gemm_seconds_alone(); });
  const Ideal least = ideal.value_or(Ideal{});
  if (ideal)
    bars->push_back(
        {"peak", "the model's FLOPs at the datasheet's rate", least.gemms + least.attention});
  bars->push_back(
      {"clocks", "clocks other than the datasheet's", (gemms + attention) * (1 - slowdown)});
  bars->push_back({"gemm_limit", "GEMMs, each alone", alone * slowdown - least.gemms});
  bars->push_back({"gemm", "GEMMs in the step", (gemms - alone) * slowdown});
  bars->push_back({"attention", "attention", attention * slowdown - least.attention});
}

}  // namespace

Waterfall waterfall_of(const Record& r) {
  const Explanation& ranks = r.explanation;
  Waterfall w;
  w.seconds = throughput_of(r).seconds_per_iteration_steady;
  w.traced_seconds =
      mean_of(ranks, [](const RankExplanation& rank) { return rank.step_seconds(); });
  const KnownGpu* gpu = find_gpu(r.device_info.name);
  w.mhz = mean_clock(r);
  if (w.mhz) w.throttling = throttling_of(r);
  if (gpu && gpu->tflops.mhz > 0) w.datasheet_mhz = gpu->tflops.mhz;
  const double slowdown = w.mhz && w.datasheet_mhz ? *w.mhz / *w.datasheet_mhz : 1;
  add_computing(r, ideal_of(r), slowdown, &w.bars);
  const auto add = [&](const char* name, const char* title, StepBar bar) {
    w.bars.push_back({name, title, mean_of(ranks, [bar](const RankExplanation& rank) {
                        return rank.seconds(bar);
                      })});
  };
  add("other_kernels", "other kernels, copies and fills", StepBar::other);
  add("interrupted", "kernels interrupted by others on the GPU", StepBar::interrupted);
  add("bubble", "pipeline bubble", StepBar::bubble);
  add("messages", "messages that computing does not hide", StepBar::messages);
  add("slowest_rank", "waiting for the slowest rank", StepBar::waiting);
  add("gaps", "gaps: nothing runs on the GPU", StepBar::gap);
  const double usual = median_steady_seconds(r);
  w.bars.push_back({"noise", "noise: the mean step over the median", w.seconds - usual});
  w.bars.push_back(
      {"remainder", "remainder: the median step over the traced", usual - w.traced_seconds});
  const auto slowest = std::max_element(ranks.begin(), ranks.end(),
                                        [](const RankExplanation& a, const RankExplanation& b) {
                                          return computing(a) < computing(b);
                                        });
  w.slowest_rank = static_cast<int>(slowest - ranks.begin());
  return w;
}

nlohmann::ordered_json explanation_json(const Record& r) {
  static constexpr std::array<const char*, step_bars> names{
      "gemm",     "attention", "other_kernels", "interrupted",
      "messages", "bubble",    "slowest_rank",  "gaps"};
  const Waterfall w = waterfall_of(r);
  json bars = json::array(), ranks = json::array(), gemms = json::array();
  for (const WaterfallBar& b : w.bars)
    bars.push_back({{"name", b.name},
                    {"title", b.title},
                    {"seconds", b.seconds},
                    {"share", b.seconds / w.seconds}});
  for (size_t rank = 0; rank < r.explanation.size(); ++rank) {
    const RankExplanation& e = r.explanation[rank];
    json seconds = json::object();
    for (size_t k = 0; k < step_bars; ++k) seconds[names[k]] = e.seconds(static_cast<StepBar>(k));
    ranks.push_back({{"rank", rank},
                     {"step_seconds", e.step_seconds()},
                     {"seconds", seconds},
                     {"gemm_seconds_alone", e.gemm_seconds_alone()},
                     {"lost_records", e.lost}});
  }
  for (const GemmAlone& g : r.explanation.front().gemms)
    gemms.push_back({{"call", g.call}, {"calls", g.calls}, {"seconds", g.seconds}});
  return {{"seconds", w.seconds},
          {"traced_steps", r.explanation.front().steps},
          {"traced_seconds", w.traced_seconds},
          {"clock_mhz", value_or_null(w.mhz)},
          {"datasheet_mhz", value_or_null(w.datasheet_mhz)},
          {"throttling", text_or_null(w.throttling)},
          {"slowest_rank", w.slowest_rank},
          {"bars", bars},
          {"gemms", gemms},
          {"ranks", ranks}};
}

std::string explanation_summary(const Record& r) {
  if (r.explanation.empty() || r.steps.empty()) return "";
  const Waterfall w = waterfall_of(r);
  std::string out = fmt::format(
      "where the time goes, ms and % of a step of {:.3f} ms (mean of steps {} to {}); {} steps "
      "traced after them, {:.3f} ms each:\n",
      1e3 * w.seconds, *throughput_of(r).steady_from, r.steps.back().iteration,
      r.explanation.front().steps, 1e3 * w.traced_seconds);
  for (const WaterfallBar& b : w.bars) {
    std::string title = b.title;
    if (b.name == "clocks")
      title += w.mhz && w.datasheet_mhz ? fmt::format(": {:.0f} MHz, {:.0f} there; throttling: {}",
                                                      *w.mhz, *w.datasheet_mhz, w.throttling)
                                        : ": not known";
    out += fmt::format("  {:10.3f}  {:6.2f} %  {}\n", 1e3 * b.seconds, 100 * b.seconds / w.seconds,
                       title);
  }
  int64_t lost = 0;
  for (const RankExplanation& rank : r.explanation) lost += rank.lost;
  if (lost > 0)
    out += fmt::format("  CUPTI could not keep {} records: their time counts as gaps\n", lost);
  if (r.explanation.size() > 1)
    out += fmt::format("  means over {} ranks; rank {} computed longest\n", r.explanation.size(),
                       w.slowest_rank);
  return out;
}

}  // namespace tally::train

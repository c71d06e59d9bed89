#include "src/train/run/summary.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "src/measure/build_info.h"
#include "src/measure/record_energy.h"
#include "src/measure/record_explanation.h"
#include "src/measure/statistics.h"

namespace tally::train {
namespace {

std::string bytes_text(size_t bytes) {
  const auto b = static_cast<double>(bytes);
  return bytes >= size_t{1} << 30 ? fmt::format("{:.2f} GiB", b / (1 << 30))
                                  : fmt::format("{:.1f} MiB", b / (1 << 20));
}

std::string device_text(const Record& r) {
  const DeviceInfo& d = r.device_info;
  if (!r.device.is_cuda())
    return fmt::format("{}, {} thread{}", d.name, r.threads, r.threads == 1 ? "" : "s");
  return fmt::format("{} (cuda:{}, compute capability {}.{}), {}, driver {}, {}", d.name,
                     r.device.index, d.capability / 10, d.capability % 10,
                     bytes_text(d.total_bytes), d.driver, d.runtime);
}

// The division of work among the processes.
std::string layout_text(const Config& c) {
  if (c.tensor_parallel * c.pipeline_parallel == 1) return "data parallel";
  return fmt::format("tensor {}{} x pipeline {} x data {}", c.tensor_parallel,
                     c.sequence_parallel ? " with sequence parallelism" : "", c.pipeline_parallel,
                     c.data_parallel);
}

std::string processes_text(const Record& r) {
  const std::set<std::string> hosts(r.hosts.begin(), r.hosts.end());
  std::string out = fmt::format(
      "  processes  {} on {} host{} ({}), started by {}, joined by {}{}{}\n", r.config.world_size,
      hosts.size(), hosts.size() == 1 ? "" : "s", layout_text(r.config), r.launcher, r.backend,
      r.backend_version.empty() ? "" : " ", r.backend_version);
  if (r.backend == "nccl")
    out += fmt::format(
        "  NCCL       {}, settings: {}\n", r.backend_version,
        r.nccl_settings.empty() ? "none" : fmt::format("{}", fmt::join(r.nccl_settings, " ")));
  return out;
}

std::string profile_summary(const Record& r) {
  constexpr size_t shown = 5, name_width = 60;
  const DeviceProfile& p = r.profile->profile;
  std::string out = fmt::format(
      "profile of iterations {} to {}: GPU busy {:.1f} % of {:.3f} s, {} kernels and copies{}; "
      "files in {}\n",
      r.config.profile_window.first, r.config.profile_window.second, 100 * p.busy_fraction(),
      p.seconds, p.calls,
      r.profile->lost > 0 ? fmt::format(" ({} more were lost)", r.profile->lost) : "",
      r.config.profile_dir);
  for (size_t k = 0; k < std::min(shown, p.kernels.size()); ++k)
    out += fmt::format("  {:5.1f} % {:9.3f} ms in {:6} calls  {}\n", 100 * p.kernels[k].share,
                       1e3 * p.kernels[k].seconds, p.kernels[k].calls,
                       p.kernels[k].name.substr(0, name_width));
  return out;
}

std::string percent_text(const PercentOfPeak& percent) {
  std::string out;
  for (size_t column = 0; column < counter_columns; ++column)
    if (percent[column])
      out += fmt::format("{}{} {:.1f}", out.empty() ? "" : ", ", counter_column_list()[column].name,
                         *percent[column]);
  return out;
}

std::string counters_summary(const Record& r) {
  constexpr size_t shown = 5, name_width = 60;
  const CounterProfile& p = r.counters->profile;
  std::string out = fmt::format(
      "counters of iterations {} to {}: {} kernels, {:.3f} ms; percent of peak, weighted with "
      "durations: {}; files in {}\n",
      r.config.profile_window.first, r.config.profile_window.second, p.all.calls,
      1e3 * p.all.seconds, percent_text(p.all.percent), r.config.profile_dir);
  for (size_t k = 0; k < std::min(shown, p.kernels.size()); ++k)
    out += fmt::format("  {:5.1f} % in {:6} calls  {}  {}\n", 100 * p.kernels[k].share,
                       p.kernels[k].calls, percent_text(p.kernels[k].percent),
                       p.kernels[k].name.substr(0, name_width));
  return out;
}

}  // namespace

std::string start_summary(const Record& r) {
  const Config& c = r.config;
  const ModelConfig& m = c.model;
  const BuildInfo b = build_info();
  std::string out = fmt::format("tally-train {} (commit {})\n", b.version, b.commit);
  out += fmt::format(
      "  model      {}{}: {} layers, hidden {}, {} heads{}, MLP {}, {} positions, vocabulary {} "
      "(padded {}), "
      "{:.2f} M parameters\n",
      m.kind(), m.preset.empty() ? "" : " " + m.preset, m.layers, m.hidden, m.heads,
      m.kv_heads() < m.heads ? fmt::format(" in {} query groups", m.kv_heads()) : "", m.ffn,
      m.positions == Positions::rotary ? "rotary" : "learned", m.vocabulary, m.padded_vocabulary,
      static_cast<double>(r.parameters) / 1e6);
  out += fmt::format("  device     {}\n", device_text(r));
  out += fmt::format("  precision  {}, attention: {}{}{}\n", precision_text(c), r.attention_backend,
                     c.reference ? ", autograd reference model" : "",
                     c.recompute == Recompute::none
                         ? ""
                         : fmt::format(", recompute: {}", recompute_name(c.recompute)));
  out += fmt::format("  batch      {} samples of {} tokens a step, {} x {} at a time{}; {} steps\n",
                     c.global_batch, c.sequence, c.micro_batches(), c.micro_batch,
                     c.data_parallel > 1 ? " in each replica" : "", c.train_iterations);
  if (c.rampup.start > 0)
    out +=
        fmt::format("  ramp-up    {} samples a step at first, {} more at a time until {} samples\n",
                    c.rampup.start, c.rampup.increment, c.rampup.samples);
  if (c.world_size > 1) out += processes_text(r);
  out += fmt::format("  data       {}\n", r.data);
  return out;
}

std::string measurements_summary(const Record& r) {
  std::string out = energy_summary(r) + explanation_summary(r);
  if (!r.witness.empty())
    out += fmt::format(
        "witness: the losses of the first {} steps differ by {:.2g} of the reference model's in "
        "float64 at most\n",
        std::min(r.witness.size(), r.steps.size()), witness_difference(r));
  if (!r.phases.empty() && r.phases.size() == r.steps.size()) {
    const size_t first = first_steady_step(r);
    const auto phases = phase_statistics(r.phases, first);
    out +=
        fmt::format("phases, ms of steps {} to {}, mean (least to most):", r.steps[first].iteration,
                    r.steps.back().iteration);
    for (size_t k = 0; k < step_phases; ++k) {
      std::string name = step_phase_names[k];
      std::replace(name.begin(), name.end(), '_', ' ');
      out += fmt::format("{} {} {:.3f} ({:.3f} to {:.3f})", k == 0 ? "" : ",", name,
                         phases[k].mean * 1e3, phases[k].min * 1e3, phases[k].max * 1e3);
    }
    out += "\n";
  }
  if (r.profile) out += profile_summary(r);
  if (r.counters) out += counters_summary(r);
  if (const auto w = window_throughput(r))
    out += fmt::format("throughput of iterations {} to {}: {:.1f} samples/s, {:.1f} tokens/s\n",
                       r.config.throughput_window.first, r.config.throughput_window.second,
                       w->samples_per_second, w->tokens_per_second);
  const auto unknown = [&](const char* what, const std::pair<int64_t, int64_t>& window) {
    out += fmt::format("{} of iterations {} to {}: unknown, this run did not do all of them\n",
                       what, window.first, window.second);
  };
  if (r.config.profile_window.first > 0 && !r.profile && !r.counters)
    unknown(r.config.profile_counters ? "counters" : "profile", r.config.profile_window);
  if (r.config.throughput_window.first > 0 && !window_throughput(r))
    unknown("throughput", r.config.throughput_window);
  return out;
}

std::string end_summary(const Record& r) {
  const Config& c = r.config;
  const Throughput t = throughput_of(r);
  std::string out = fmt::format("{}: {} steps", outcome_name(r.outcome), r.steps.size());
  if (r.first_iteration > 0) out += fmt::format(" after {} of an earlier run", r.first_iteration);
  if (r.steps.empty()) return out + ": no step was measured, so that there are no rates";
  const int64_t last = r.steps.back().iteration;
  if (!c.model.language_model())
    out += fmt::format(", {:.1f} samples/s",
                       static_cast<double>(c.global_batch) / t.seconds_per_iteration_steady);
  out += fmt::format(", {:.1f} tokens/s, {:.2f} ms/step (mean of {}", t.tokens_per_second_steady,
                     t.seconds_per_iteration_steady * 1e3,
                     *t.steady_from == last ? fmt::format("step {}", last)
                                            : fmt::format("steps {} to {}", *t.steady_from, last));
  out += fmt::format(" in {:.3g} s", t.steady.seconds);
  out += fmt::format(
      "; median of all {:.1f}, {:.2f}; with the first steps {:.1f}, {:.2f} in {:.3g} s)",
      t.tokens_per_second_median, t.seconds_per_iteration_median * 1e3, t.tokens_per_second,
      t.seconds_per_iteration * 1e3, t.logged.seconds);
  const auto with_loss = std::find_if(r.steps.rbegin(), r.steps.rend(),
                                      [](const Step& step) { return step.has_loss(); });
  out += with_loss == r.steps.rend() ? ", loss unknown"
                                     : fmt::format(", loss {:.4f}", with_loss->loss);
  out += ", memory " + bytes_text(r.device_bytes_peak);
  if (const auto mfu = model_flops_utilisation(r)) {
    out += fmt::format(", MFU {:.1f} %", *mfu * 100);
    if (const auto typed = typed_flops_utilisation(r))
      out += fmt::format(" of bf16's peak, {:.1f} % of each type's", *typed * 100);
  } else {
    out += ", MFU unknown";
  }
  const auto skipped =
      std::count_if(r.steps.begin(), r.steps.end(), [](const Step& step) { return step.skipped; });
  if (skipped > 0)
    out += fmt::format("; {} of {} updates skipped, because gradients overflowed", skipped,
                       r.steps.size());
  const auto unlabelled = std::count_if(r.steps.begin(), r.steps.end(),
                                        [](const Step& step) { return step.unlabelled; });
  if (unlabelled > 0)
    out +=
        fmt::format("; {} of {} steps have no loss, because their samples lack labels that count",
                    unlabelled, r.steps.size());
  if (c.profile_window.first > 0) out += "; not the headline: kernels were recorded";
  if (c.time_phases) out += "; not the headline: --time-phases waits between phases";
  return out;
}

}  // namespace tally::train

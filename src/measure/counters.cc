#include "src/measure/counters.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <utility>

#include "src/measure/csv.h"
#include "src/measure/profile.h"

namespace tally::train {
namespace {

constexpr const char* duration = "gpu__time_duration";
constexpr const char* duration_suffix = ".sum";
constexpr const char* percent_suffix = ".avg.pct_of_peak_sustained_elapsed";
constexpr const char* all_kernels = "[all kernels]";

std::string columns_header() {
  std::string out;
  for (const CounterColumn& column : counter_column_list()) out += fmt::format(",{}", column.name);
  return out + "\n";
}

std::string columns_text(const PercentOfPeak& percent) {
  std::string out;
  for (const std::optional<double>& p : percent)
    out += p ? fmt::format(",{:.3f}", *p) : std::string(",");
  return out + "\n";
}

// A column's mean over the kernels that `chosen` lists. All or none of them have the column.
PercentOfPeak mean_percent(const std::vector<const KernelCounters*>& chosen) {
  PercentOfPeak mean;
  for (size_t column = 0; column < counter_columns; ++column) {
    std::vector<std::pair<double, double>> values;
    for (const KernelCounters* k : chosen)
      if (k->percent[column]) values.emplace_back(*k->percent[column], k->seconds);
    if (!values.empty()) mean[column] = weighted_mean(values);
  }
  return mean;
}

KernelUse use_of(const std::string& name, const std::vector<const KernelCounters*>& chosen) {
  KernelUse use;
  use.name = name;
  use.calls = static_cast<int64_t>(chosen.size());
  for (const KernelCounters* k : chosen) use.seconds += k->seconds;
  use.percent = mean_percent(chosen);
  return use;
}

}  // namespace

const std::array<CounterColumn, counter_columns>& counter_column_list() {
  static const std::array<CounterColumn, counter_columns> list{{
      {"tensor",
       "tensor cores",
       {"sm__pipe_tensor_cycles_active", "sm__inst_executed_pipe_tensor"}},
      // tcgen05's pipe, which data centre GPUs have since Blackwell beside the one of mma.
      {"tensor_tc", "tensor cores of tcgen05", {"sm__pipe_tc_cycles_active"}, false},
      // Half precision shares the pipe of single precision since Ampere's GA102.
      {"fp16",
       "half precision",
       {"sm__inst_executed_pipe_fp16", "sm__inst_executed_pipe_fma_type_fp16"}},
      {"fma", "single precision", {"sm__inst_executed_pipe_fma", "sm__pipe_fma_cycles_active"}},
      {"xu", "special functions", {"sm__inst_executed_pipe_xu", "sm__pipe_xu_cycles_active"}},
      {"dram", "device memory", {"dram__throughput"}},
      {"sm_active", "SMs with work", {"sm__cycles_active"}},
  }};
  return list;
}

CounterSelection select_counters(const std::function<bool(const std::string&)>& has_metric) {
  if (!has_metric(duration))
    throw std::runtime_error(
        fmt::format("CUPTI has no metric {} for this GPU: take a CUPTI that knows it", duration));
  CounterSelection selection;
  selection.metrics.push_back(std::string(duration) + duration_suffix);
  for (size_t column = 0; column < counter_columns; ++column) {
    const auto& metrics = counter_column_list()[column].metrics;
    const auto found = std::find_if(metrics.begin(), metrics.end(), has_metric);
    if (found == metrics.end()) continue;
    selection.index[column] = selection.metrics.size();
    selection.metrics.push_back(*found + percent_suffix);
  }
  if (selection.metrics.size() == 1)
    throw std::runtime_error(
        "CUPTI has no metric of a pipe for this GPU: take a CUPTI that knows it");
  return selection;
}

std::string missing_counters_text(const CounterSelection& selection, const std::string& chip) {
  std::vector<std::string> missing;
  for (size_t column = 0; column < counter_columns; ++column) {
    const CounterColumn& c = counter_column_list()[column];
    if (c.expected && !selection.index[column])
      missing.push_back(fmt::format("{} ({})", c.name, c.what));
  }
  if (missing.empty()) return "";
  return fmt::format("--profile-counters: CUPTI has no counter on {} for {}: left empty", chip,
                     fmt::join(missing, ", "));
}

std::vector<KernelCounters> match_counters(const CounterReading& reading,
                                           const CounterSelection& selection, int64_t iteration) {
  if (reading.dropped > 0 || reading.launched.size() != reading.values.size())
    throw std::runtime_error(fmt::format(
        "--profile-counters: iteration {} launched {} kernels, and CUPTI gave the counters of {} "
        "and lost those of {}: the values cannot be told apart, and no file is written",
        iteration, reading.launched.size(), reading.values.size(), reading.dropped));
  std::vector<KernelCounters> kernels;
  for (size_t k = 0; k < reading.launched.size(); ++k) {
    const std::vector<double>& values = reading.values[k];
    const auto bad = std::find_if(values.begin(), values.end(),
                                  [](double v) { return !std::isfinite(v) || v < 0; });
    if (values.size() != selection.metrics.size() || bad != values.end())
      throw std::runtime_error(fmt::format(
          "--profile-counters: kernel {} of iteration {} ({}) has the values [{}] of [{}]: one is "
          "missing or not a number, and no file is written",
          k, iteration, reading.launched[k], fmt::join(values, ", "),
          fmt::join(selection.metrics, ", ")));
    KernelCounters kernel{iteration, reading.launched[k], values[0] * 1e-9, {}};
    for (size_t column = 0; column < counter_columns; ++column)
      if (selection.index[column]) kernel.percent[column] = values[*selection.index[column]];
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

CounterProfile counter_profile_of(const std::vector<KernelCounters>& kernels) {
  std::map<std::string, std::vector<const KernelCounters*>> by_name;
  std::vector<const KernelCounters*> all;
  for (const KernelCounters& k : kernels) {
    by_name[k.name].push_back(&k);
    all.push_back(&k);
  }
  CounterProfile profile;
  profile.all = use_of(all_kernels, all);
  profile.all.share = 1;
  for (const auto& [name, chosen] : by_name) {
    KernelUse use = use_of(name, chosen);
    use.share = profile.all.seconds > 0 ? use.seconds / profile.all.seconds : 0;
    profile.kernels.push_back(std::move(use));
  }
  std::stable_sort(profile.kernels.begin(), profile.kernels.end(),
                   [](const KernelUse& a, const KernelUse& b) { return a.seconds > b.seconds; });
  return profile;
}

std::string counters_csv_header() {
  return "iteration,order,name,nanoseconds" + columns_header();
}

std::string kernel_use_csv_header() {
  return "name,calls,nanoseconds,share" + columns_header();
}

std::string counters_csv(const std::vector<KernelCounters>& kernels) {
  std::string out = counters_csv_header();
  for (size_t k = 0; k < kernels.size(); ++k)
    out += fmt::format("{},{},{},{:.0f}{}", kernels[k].iteration, k, csv_quoted(kernels[k].name),
                       kernels[k].seconds * 1e9, columns_text(kernels[k].percent));
  return out;
}

std::string kernel_use_csv(const CounterProfile& profile) {
  std::string out = kernel_use_csv_header();
  const auto add = [&out](const KernelUse& use) {
    out += fmt::format("{},{},{:.0f},{:.6f}{}", csv_quoted(use.name), use.calls, use.seconds * 1e9,
                       use.share, columns_text(use.percent));
  };
  for (const KernelUse& use : profile.kernels) add(use);
  add(profile.all);
  return out;
}

}  // namespace tally::train

// The use of a GPU's pipes, kernel by kernel, from hardware counters (--profile-counters): which
// metrics are read, which kernel a value belongs to, means, and the files.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/device/counter_profiler.h"

namespace tally::train {

// The counters that are read of each kernel, in percent of the peak over the kernel's whole
// duration: an idle SM counts as one that does nothing.
struct CounterColumn {
  const char* name;  // in files and in the record
  const char* what;  // in messages
  // CUPTI's metrics; the first of them that the chip has is read.
  std::vector<std::string> metrics;
  bool expected = true;  // said where the chip has none of them; false: only some chips have it
};
constexpr size_t counter_columns = 7;
const std::array<CounterColumn, counter_columns>& counter_column_list();
// Percent of each column; empty: the chip does not count it.
using PercentOfPeak = std::array<std::optional<double>, counter_columns>;

// The metrics that are read on a chip.
struct CounterSelection {
  std::vector<std::string> metrics;  // the first is the duration in nanoseconds
  std::array<std::optional<size_t>, counter_columns> index;  // each column's index in `metrics`
};
// `has_metric`: CounterProfiler::has_metric(). Throws std::runtime_error where the chip has no
// duration, or none of the columns.
CounterSelection select_counters(const std::function<bool(const std::string&)>& has_metric);
// One sentence on the columns that stay empty on `chip`; empty where none does.
std::string missing_counters_text(const CounterSelection& selection, const std::string& chip);

// One invocation of a kernel.
struct KernelCounters {
  int64_t iteration = 0;
  std::string name;
  double seconds = 0;
  PercentOfPeak percent;
};
// Gives each value the name of its kernel. Throws std::runtime_error where the numbers of launched
// and of counted kernels differ, or a value is not a number: no row may have another kernel's
// values.
std::vector<KernelCounters> match_counters(const CounterReading& reading,
                                           const CounterSelection& selection, int64_t iteration);

// All invocations of one kernel, or of all kernels. Percentages are means weighted with durations.
struct KernelUse {
  std::string name;
  int64_t calls = 0;
  double seconds = 0;
  double share = 0;  // share of the time of all kernels
  PercentOfPeak percent;
};
struct CounterProfile {
  KernelUse all;
  std::vector<KernelUse> kernels;  // the longest first
};
CounterProfile counter_profile_of(const std::vector<KernelCounters>& kernels);

// A line for every invocation, with a header: iteration, order (from 0, over all iterations),
// kernel, nanoseconds, then the columns. Fields that the chip does not count are empty.
std::string counters_csv(const std::vector<KernelCounters>& kernels);
// A line for every kernel, the longest first, with a header; the last line, "[all kernels]", is the
// mean over all of them.
std::string kernel_use_csv(const CounterProfile& profile);
// The beginnings of these files.
std::string counters_csv_header();
std::string kernel_use_csv_header();

}  // namespace tally::train

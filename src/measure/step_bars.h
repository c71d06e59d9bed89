// The division of a GPU's time among what it did: each nanosecond of the traced steps goes to
// exactly one bar, so that the bars add up to the steps (--explain).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "src/device/profiler.h"

namespace tally::train {

// `collective`: a message in which all ranks of a group take part; `point_to_point`: of two ranks.
enum class KernelClass : uint8_t { gemm, attention, other, collective, point_to_point };
// By the table in kernel_classes.inc.
KernelClass class_of(const std::string& kernel);

// If several run at once, a nanosecond belongs to the first of these. Messages beside computing
// are hidden and count as computing.
enum class StepBar : uint8_t {
  gemm,
  attention,
  other,        // other kernels, copies and fills
  interrupted,  // a kernel that computes takes longer than in the other steps
  messages,     // the transfer
  bubble,       // a message of two ranks, before its transfer
  waiting,      // a message of a group, before its transfer
  gap           // the GPU does nothing
};
inline constexpr size_t step_bars = 8;
using BarTimes = std::array<int64_t, step_bars>;  // nanoseconds

// The work of a rank's GPU in some steps that follow each other, in the order of starts.
struct StepTrace {
  std::vector<DeviceActivity> activities;
  // The end of each step, on the activities' clock. Work before the first is not divided.
  std::vector<int64_t> ends;
};

// The ends of steps: each step ends with a copy of so many bytes to the host.
std::vector<int64_t> step_ends(const std::vector<DeviceActivity>& activities, int64_t bytes);

// A rank's messages in their order: 'c' for collective and 'p' for point_to_point, and how long
// each took.
struct TracedMessages {
  std::string kinds;
  std::vector<int64_t> nanoseconds;
};
TracedMessages messages_of(const std::vector<DeviceActivity>& activities);
// The transfer in each message of rank `mine`, without the wait for others. Who comes last waits
// least: of a collective it is the least time over the ranks that had the same sequence of messages.
// The messages of a pipeline are of one size: theirs is the least time of all.
std::vector<int64_t> transfers_of(const std::vector<TracedMessages>& ranks, size_t mine);

// The time that each activity took longer than usual: a kernel is compared with the same call in the
// other steps, and with three steps or more one that took half as long again as their median, and
// kInterruption longer, was interrupted. 0: it was not, or steps differ in such kernels.
inline constexpr int64_t kInterruption = 200'000;  // nanoseconds; a GPU's time slice is about 2 ms
std::vector<int64_t> interruptions_of(const StepTrace& trace);

// All steps between the first of `ends` and the last. `transfers`: of each message. The sum is the
// time between these two, exactly.
BarTimes divide(const StepTrace& trace, const std::vector<int64_t>& transfers);

// The time of the GEMMs in a trace of calls alone: each kernel's median, times how often it ran.
int64_t gemm_nanoseconds(const std::vector<DeviceActivity>& activities);

}  // namespace tally::train

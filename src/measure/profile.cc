#include "src/measure/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "src/measure/csv.h"

namespace tally::train {
namespace {

using Activities = std::vector<DeviceActivity>;

double seconds_of(const DeviceActivity& a) {
  return static_cast<double>(a.end - a.start) * 1e-9;
}

bool is_kernel(const DeviceActivity& a) {
  return !a.grid.empty();
}

int64_t first_start(const Activities& activities) {
  const auto first = std::min_element(
      activities.begin(), activities.end(),
      [](const DeviceActivity& a, const DeviceActivity& b) { return a.start < b.start; });
  return first == activities.end() ? 0 : first->start;
}

// The length of the union of all intervals.
double busy_seconds(const Activities& activities) {
  std::vector<std::pair<int64_t, int64_t>> intervals;
  for (const DeviceActivity& a : activities) intervals.emplace_back(a.start, a.end);
  std::sort(intervals.begin(), intervals.end());
  int64_t busy = 0, until = 0;
  bool any = false;
  for (const auto& [start, end] : intervals) {
    const int64_t from = any ? std::max(start, until) : start;
    if (end > from) busy += end - from;
    until = any ? std::max(until, end) : end;
    any = true;
  }
  return static_cast<double>(busy) * 1e-9;
}

}  // namespace

double weighted_mean(const std::vector<std::pair<double, double>>& values) {
  double sum = 0, weights = 0;
  for (const auto& [value, weight] : values) {
    sum += value * weight;
    weights += weight;
  }
  return weights > 0 ? sum / weights : 0;
}

DeviceProfile profile_of(const Activities& activities, double seconds) {
  DeviceProfile p;
  p.seconds = seconds;
  p.calls = static_cast<int64_t>(activities.size());
  p.busy_seconds = busy_seconds(activities);
  std::map<std::string, KernelTime> by_name;
  std::vector<std::pair<double, double>> registers, shared;
  for (const DeviceActivity& a : activities) {
    const double took = seconds_of(a);
    p.kernel_seconds += took;
    KernelTime& k = by_name[a.name];
    k.min_seconds = k.calls == 0 ? took : std::min(k.min_seconds, took);
    k.max_seconds = std::max(k.max_seconds, took);
    k.seconds += took;
    ++k.calls;
    if (!is_kernel(a)) continue;
    registers.emplace_back(static_cast<double>(a.registers), took);
    shared.emplace_back(static_cast<double>(a.shared_bytes), took);
  }
  p.mean_registers = weighted_mean(registers);
  p.mean_shared_bytes = weighted_mean(shared);
  for (auto& [name, k] : by_name) {
    k.name = name;
    k.share = p.kernel_seconds > 0 ? k.seconds / p.kernel_seconds : 0;
    p.kernels.push_back(k);
  }
  std::stable_sort(p.kernels.begin(), p.kernels.end(),
                   [](const KernelTime& a, const KernelTime& b) { return a.seconds > b.seconds; });
  return p;
}

std::string profile_csv_header() {
  return "name,start,end,stream,graph,grid,block,registers,shared,bytes\n";
}

std::string profile_csv(const Activities& activities) {
  std::string out = profile_csv_header();
  const int64_t first = first_start(activities);
  for (const DeviceActivity& a : activities)
    out += fmt::format("{},{},{},{},{},{},{},{},{},{}\n", csv_quoted(a.name), a.start - first,
                       a.end - first, a.stream, a.graph, a.grid, a.block, a.registers,
                       a.shared_bytes, a.bytes);
  return out;
}

std::string chrome_trace(const Activities& activities, const std::string& process) {
  using json = nlohmann::ordered_json;
  json events = json::array();
  events.push_back(
      {{"name", "process_name"}, {"ph", "M"}, {"pid", 0}, {"args", {{"name", process}}}});
  std::set<uint32_t> streams;
  for (const DeviceActivity& a : activities) streams.insert(a.stream);
  for (const uint32_t stream : streams)
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 0},
                      {"tid", stream},
                      {"args", {{"name", fmt::format("stream {}", stream)}}}});
  const int64_t first = first_start(activities);
  for (const DeviceActivity& a : activities) {
    json args = {{"graph", a.graph}};
    if (is_kernel(a)) {
      args["grid"] = a.grid;
      args["block"] = a.block;
      args["registers"] = a.registers;
      args["shared_bytes"] = a.shared_bytes;
    } else {
      args["bytes"] = a.bytes;
    }
    events.push_back({{"name", a.name},
                      {"ph", "X"},
                      {"ts", static_cast<double>(a.start - first) * 1e-3},
                      {"dur", static_cast<double>(a.end - a.start) * 1e-3},
                      {"pid", 0},
                      {"tid", a.stream},
                      {"args", args}});
  }
  return json{{"displayTimeUnit", "ns"}, {"traceEvents", events}}.dump(
      -1, ' ', false, json::error_handler_t::replace);
}

}  // namespace tally::train

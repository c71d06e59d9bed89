#include "src/measure/record_energy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "src/config/json_values.h"

namespace tally::train {
namespace {

using json = nlohmann::ordered_json;

// The counter where there is one, else the sensor.
std::optional<double> joules_of(const GpuEnergyUse& use) {
  return use.energy.joules ? use.energy.joules : use.energy.sampled_joules;
}

json gpu_json(const GpuEnergyUse& use) {
  const auto joules = joules_of(use);
  json faults = json::object(), in_run = json::object();
  for (const GpuFaults& one : use.faults) {
    faults[one.name] = value_or_null(one.count);
    in_run[one.name] = value_or_null(one.in_run);
  }
  return {{"rank", use.rank},
          {"local_rank", use.local_rank},
          {"host", use.host},
          {"gpu", use.gpu},
          {"uuid", text_or_null(use.uuid)},
          {"seconds", use.energy.seconds > 0 ? json(use.energy.seconds) : json(nullptr)},
          {"joules", value_or_null(use.energy.joules)},
          {"sampled_joules", value_or_null(use.energy.sampled_joules)},
          {"mean_watts", joules ? json(*joules / use.energy.seconds) : json(nullptr)},
          {"sm_mhz", value_or_null(use.energy.sm_mhz)},
          {"max_sm_mhz", value_or_null(use.max_sm_mhz)},
          {"celsius", value_or_null(use.energy.celsius)},
          {"limit_watts", value_or_null(use.limit_watts)},
          {"default_limit_watts", value_or_null(use.default_limit_watts)},
          {"throttling",
           use.not_available.empty() ? json(throttle_words(use.energy.throttle)) : json(nullptr)},
          {"not_available", text_or_null(use.not_available)},
          {"faults", faults},
          {"faults_in_run", in_run}};
}

// The reason why the run as a whole has no number; empty: it has one.
std::string reason(const Record& r) {
  if (r.energy.empty()) return "the run did not come to its end";
  const auto missing = std::find_if(r.energy.begin(), r.energy.end(), [](const GpuEnergyUse& use) {
    return !use.not_available.empty();
  });
  if (missing == r.energy.end()) return "";
  const bool all = std::all_of(r.energy.begin(), r.energy.end(), [&](const GpuEnergyUse& use) {
    return use.not_available == missing->not_available;
  });
  return all ? missing->not_available
             : fmt::format("rank {}: {}", missing->rank, missing->not_available);
}

// Whether the counter and the sensor disagree. The two readings of a short run differ by chance.
bool doubtful(const GpuEnergyUse& use) {
  constexpr double long_enough = 10, most = 0.05;
  const SpanEnergy& e = use.energy;
  return e.joules && e.sampled_joules && e.seconds >= long_enough &&
         std::fabs(*e.sampled_joules - *e.joules) > most * *e.joules;
}

}  // namespace

std::optional<EnergyTotals> energy_totals(const Record& r) {
  if (r.energy.empty() || r.steps.empty()) return {};
  EnergyTotals total;
  std::set<std::pair<std::string, std::string>> counted;
  for (const GpuEnergyUse& use : r.energy) {
    const auto joules = joules_of(use);
    if (!joules) return {};
    if (!counted.insert({use.host, use.gpu}).second) continue;
    total.joules += *joules;
    total.watts += *joules / use.energy.seconds;
  }
  if (total.watts <= 0) return {};
  total.tokens_per_watt_hour = throughput_of(r).tokens_per_second_steady * 3600 / total.watts;
  total.watt_hours_to_report = report_tokens / total.tokens_per_watt_hour;
  return total;
}

json energy_json(const Record& r) {
  const auto total = energy_totals(r);
  const std::string why = reason(r);
  json gpus = json::array();
  for (const GpuEnergyUse& use : r.energy) gpus.push_back(gpu_json(use));
  return {{"joules", total ? json(total->joules) : json(nullptr)},
          {"mean_watts", total ? json(total->watts) : json(nullptr)},
          {"tokens_per_watt_hour", total ? json(total->tokens_per_watt_hour) : json(nullptr)},
          {"report_tokens", static_cast<int64_t>(report_tokens)},
          {"watt_hours_to_report", total ? json(total->watt_hours_to_report) : json(nullptr)},
          {"not_available", text_or_null(why)},
          {"gpus", gpus}};
}

std::string energy_summary(const Record& r) {
  if (!r.device.is_cuda() || !r.config.energy || r.steps.empty()) return "";
  const auto total = energy_totals(r);
  if (!total) {
    return fmt::format("energy: not available: {}\n", reason(r));
  }
  std::string out =
      fmt::format("energy after the warm-up: {:.1f} J in {:.2f} s, {:.1f} W{}, {:.4g} tokens/Wh",
                  total->joules, r.energy.front().energy.seconds, total->watts,
                  r.energy.size() > 1 ? fmt::format(" on {} ranks", r.energy.size()) : "",
                  total->tokens_per_watt_hour);
  if (r.energy.size() == 1) {
    const GpuEnergyUse& use = r.energy.front();
    if (use.limit_watts) out += fmt::format(", limit {:.0f} W", *use.limit_watts);
    out += ", throttling: " + throttle_words(use.energy.throttle);
    if (!use.energy.joules) out += ", from sampled power: there is no energy counter";
  }
  out += "\n";
  for (const GpuEnergyUse& use : r.energy)
    if (doubtful(use))
      out += fmt::format(
          "energy: rank {}: warning: the counter gives {:.1f} J, sampled power {:.1f} J\n",
          use.rank, *use.energy.joules, *use.energy.sampled_joules);
  return out;
}

}  // namespace tally::train

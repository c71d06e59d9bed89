// tally-plan-validate: the time model of src/plan against published tables. Prints JSON: for each
// table its source, its fitted efficiency and its rows with predicted and published figures.
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/plan/published.h"
#include "src/checkpoint/stored_models.h"
#include "src/config/args.h"

namespace {

using namespace tally::train;
using nlohmann::json;

Config config_of(const std::string& flags) {
  std::istringstream in("tally-train --plan " + flags);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  return parse_args(static_cast<int>(argv.size()), argv.data(), stored_models());
}

double real(int64_t n) {
  return static_cast<double>(n);
}

// 96 B s l h^2 (1 + s / 6h + V / 16lh): with full recomputation (Narayanan et al. 2021, section
// 5.1).
double flops_of_step(const Config& c) {
  const double h = real(c.model.hidden), l = real(c.model.layers), s = real(c.sequence);
  return 96 * real(c.global_batch) * s * l * h * h *
         (1 + s / (6 * h) + real(c.model.padded_vocabulary) / (16 * l * h));
}

double predicted(const PublishedRow& row, const Config& c, const Machine& m,
                 const ProgramTraits& traits) {
  const double seconds = step_time(c, m, traits).seconds();
  switch (row.unit) {
    case Unit::step:
      return seconds;
    case Unit::tokens:
      return real(c.global_batch) * real(c.sequence) / seconds;
    case Unit::tflops:
      return flops_of_step(c) / seconds / real(c.world_size) / 1e12;
    case Unit::forward:
      return layer_time(c, m, traits).forward * 1e3;
    case Unit::backward:
      return layer_time(c, m, traits).backward * 1e3;
  }
  return 0;
}

const char* unit_name(Unit unit) {
  switch (unit) {
    case Unit::step:
      return "s";
    case Unit::tokens:
      return "tokens/s";
    case Unit::tflops:
      return "TFLOP/s";
    case Unit::forward:
    case Unit::backward:
      return "ms";
  }
  return "";
}

// The efficiency with which the fitted row's figure comes out.
double fitted(const PublishedTable& t) {
  const PublishedRow& row = t.rows[t.fitted];
  const Config c = config_of(row.flags);
  const bool rate = row.unit == Unit::tokens || row.unit == Unit::tflops;
  const auto seconds = [&](const Machine& m) {
    const double figure = predicted(row, c, m, t.traits);
    return rate ? 1 / figure : figure;
  };
  return fitted_efficiency(machine_of(c, gpu_kind(t.gpu)), rate ? 1 / row.figure : row.figure,
                           seconds);
}

json table_json(const PublishedTable& t) {
  json out = {{"name", t.name}, {"source", t.source}, {"gpu", t.gpu}, {"efficiency", fitted(t)}};
  for (size_t i = 0; i < t.rows.size(); ++i) {
    const PublishedRow& row = t.rows[i];
    const Config c = config_of(row.flags);
    Machine m = machine_of(c, gpu_kind(t.gpu));
    m.efficiency = out["efficiency"];
    out["rows"].push_back({{"name", row.name},
                           {"fitted", i == t.fitted},
                           {"unit", unit_name(row.unit)},
                           {"published", row.figure},
                           {"predicted", predicted(row, c, m, t.traits)}});
  }
  return out;
}

}  // namespace

int main() {
  json out = json::array();
  for (const PublishedTable& t : published_tables()) out.push_back(table_json(t));
  std::printf("%s\n", out.dump(1).c_str());
}

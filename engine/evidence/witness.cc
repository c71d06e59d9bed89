#include "engine/evidence/witness.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tally {
namespace {

// A number at a place of a list; not a number where there is none.
double loss_at(const nlohmann::json& list, size_t place) {
  if (!list.is_array() || place >= list.size() || !list[place].is_number()) return std::nan("");
  return list[place].get<double>();
}

bool are_equal(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

}  // namespace

std::optional<LossWitness> read_witness(const std::string& record, std::string* fault) {
  using Pointer = nlohmann::json::json_pointer;
  constexpr double kExact = 1e-9;
  // Most files have none.
  if (record.find("\"witness\"") == std::string::npos) return std::nullopt;
  const auto json = nlohmann::json::parse(record, nullptr, false);
  const Pointer at("/results/witness/losses");
  if (!json.is_object() || !json.contains(at) || !json[at].is_array()) return std::nullopt;
  LossWitness witness;
  witness.steps = json[at].size();
  const nlohmann::json none;
  const auto list = [&](const char* path) -> const nlohmann::json& {
    return json.contains(Pointer(path)) ? json[Pointer(path)] : none;
  };
  for (size_t step = 0; step < witness.steps; ++step) {
    const double exact = loss_at(json[at], step);
    const double own = loss_at(list("/steps/loss"), step);
    if (!are_equal(own, loss_at(list("/results/witness/own_losses"), step)))
      *fault = "its witness has other losses than its steps";
    const double off = std::fabs(own - exact) / std::fabs(exact);
    if (std::isfinite(off)) witness.difference = std::max(witness.difference, off);
  }
  const nlohmann::json& said = list("/results/witness/largest_relative_difference");
  const double difference = said.is_number() ? said.get<double>() : 0;
  if (fault->empty() && !(std::fabs(difference - witness.difference) <= kExact * difference))
    *fault = "the difference of its witness does not follow from its losses";
  return witness;
}

}  // namespace tally

// The parameters of a model put together from the parts of all ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "src/nn/parameters.h"

// Every rank's text, in the order of the ranks.
using Exchange = std::function<std::vector<std::string>(const std::string& mine)>;

struct WholeParameter {
  std::vector<double> values;
  std::vector<int> written;  // how often each element was found, not counting copies
};
using Gathered = std::map<std::string, WholeParameter>;

// From the flat buffer `flat` of every rank's table. The parts of replicas and copies must be equal
// bit for bit; what is missing or differs is a std::runtime_error.
Gathered gather(const tally::train::ParameterTable& table, const tally::train::Tensor& flat,
                tally::train::Stream& stream, const Exchange& exchange);

// The first parameter whose difference is larger than `tolerance` of its norm (or of a hundredth of
// the whole norm, where its own is small); "" where there is none.
std::string difference(const Gathered& got, const Gathered& expected, double tolerance);

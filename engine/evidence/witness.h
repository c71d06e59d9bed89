// The witness of a training's correctness in its record: the losses of the first steps, and those
// of a reference model in float64 (docs/record.md).
#pragma once

#include <optional>
#include <string>

namespace tally {

struct LossWitness {
  std::string member;  // the record
  size_t steps = 0;
  double difference = 0;  // the largest of a loss, as a share of it
};

// Reads it from a record in JSON. Empty: it has none. *fault says why it does not follow from the
// record's own numbers; empty: it does.
std::optional<LossWitness> read_witness(const std::string& record, std::string* fault);

}  // namespace tally

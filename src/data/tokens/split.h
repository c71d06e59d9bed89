// The division of documents into training, validation and test by --split.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace tally::train {

struct Range {
  int64_t begin = 0, end = 0;
};

// Weights separated by commas (or slashes), as "969,30,1"; missing ones are 0, they need not add up
// to anything. Boundaries are rounded as Megatron does: each weight's share to the nearest number
// of documents (halves to even), the total's error taken off the end of every part. Throws
// std::runtime_error with one sentence for anything else.
std::array<Range, 3> split_documents(const std::string& split, int64_t documents);

}  // namespace tally::train

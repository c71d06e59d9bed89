#include "src/data/encoders/encoder_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace tally::train {

void fill_batch(const EncoderSource& source, int64_t first, int64_t rows, int64_t sequence,
                int32_t pad, EncoderBatch* batch) {
  std::vector<EncoderSample> samples(static_cast<size_t>(rows));
  int64_t longest = 0;
  for (int64_t row = 0; row < rows; ++row) {
    EncoderSample& sample = samples[static_cast<size_t>(row)];
    source.sample(first + row, &sample);
    longest = std::max(longest, sample.length());
  }
  if (sequence == 0) sequence = (longest + 7) / 8 * 8;
  if (longest > sequence)
    throw std::runtime_error(
        fmt::format("a sample has {} tokens, and rows of the batch have {}: raise --seq-length",
                    longest, sequence));
  EncoderBatch& b = *batch;
  b.rows = rows;
  b.sequence = sequence;
  b.ids.assign(static_cast<size_t>(rows * sequence), pad);
  b.token_types.assign(static_cast<size_t>(rows * sequence), 0);
  for (auto* each : {&b.lengths, &b.masked_positions, &b.masked_labels, &b.next_sentence, &b.label,
                     &b.start, &b.end})
    each->clear();
  for (int64_t row = 0; row < rows; ++row) {
    const EncoderSample& s = samples[static_cast<size_t>(row)];
    std::copy(s.ids.begin(), s.ids.end(), b.ids.begin() + row * sequence);
    std::copy(s.token_types.begin(), s.token_types.end(), b.token_types.begin() + row * sequence);
    for (const int32_t position : s.masked_positions)
      b.masked_positions.push_back(static_cast<int32_t>(row * sequence) + position);
    b.masked_labels.insert(b.masked_labels.end(), s.masked_labels.begin(), s.masked_labels.end());
    b.lengths.push_back(static_cast<int32_t>(s.length()));
    b.next_sentence.push_back(s.next_sentence);
    b.label.push_back(s.label);
    b.start.push_back(s.start);
    b.end.push_back(s.end);
  }
}

}  // namespace tally::train

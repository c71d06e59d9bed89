#include "src/data/encoders/masking.h"

#include <algorithm>
#include <cmath>

namespace tally::train {

void mask_tokens(const MaskingOptions& options, PhiloxDraws* draws, EncoderSample* sample) {
  std::vector<int32_t>& ids = sample->ids;
  std::vector<int32_t> positions;
  positions.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != options.tokens.cls && ids[i] != options.tokens.sep)
      positions.push_back(static_cast<int32_t>(i));
  }
  draws->shuffle(&positions);
  // nearbyint rounds halves to even, as Python's round does.
  const auto share =
      static_cast<int64_t>(std::nearbyint(static_cast<double>(ids.size()) * options.probability));
  const int64_t wanted = std::min(options.max_predictions, std::max<int64_t>(1, share));
  if (static_cast<int64_t>(positions.size()) > wanted)
    positions.resize(static_cast<size_t>(wanted));
  std::vector<int32_t> labels(ids.size());  // one for each id, until they are sorted
  for (const int32_t position : positions) {
    int32_t& id = ids[static_cast<size_t>(position)];
    labels[static_cast<size_t>(position)] = id;
    if (draws->uniform() < 0.8) {
      id = options.tokens.mask;
    } else if (draws->uniform() >= 0.5) {
      id = static_cast<int32_t>(draws->below(static_cast<uint64_t>(options.vocabulary)));
    }
  }
  std::sort(positions.begin(), positions.end());
  sample->masked_positions = positions;
  sample->masked_labels.clear();
  for (const int32_t position : positions)
    sample->masked_labels.push_back(labels[static_cast<size_t>(position)]);
}

void unmask_tokens(EncoderSample* sample) {
  for (size_t i = 0; i < sample->masked_positions.size(); ++i)
    sample->ids[static_cast<size_t>(sample->masked_positions[i])] = sample->masked_labels[i];
  sample->masked_positions.clear();
  sample->masked_labels.clear();
}

}  // namespace tally::train

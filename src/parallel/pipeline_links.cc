#include "src/parallel/pipeline_links.h"

namespace tally::train {

// Link i joins stages i and i + 1. A stage has two links, and neighbouring links are made in
// different rounds; the last of an odd number needs a third round. In every communicator the sender
// is rank 0 and the receiver rank 1.
PipelineLinks::PipelineLinks(Communicator& pipeline) {
  const int stages = pipeline.size(), stage = pipeline.rank();
  if (stages == 1) return;
  const int before = (stage + stages - 1) % stages;
  const auto round_of = [&](int link) {
    return stages % 2 == 1 && link == stages - 1 ? 2 : link % 2;
  };
  for (int round = 0; round < (stages % 2 == 1 ? 3 : 2); ++round) {
    const bool next = round_of(stage) == round, back = round_of(before) == round;
    const int link = next ? stage : back ? before : -1;
    for (const bool gradient : {false, true}) {
      const bool sends = next != gradient;
      made_.push_back(pipeline.split(link, sends ? 0 : 1));
      if (link < 0) continue;
      Link& mine = next ? next_ : back_;
      (gradient ? mine.gradient : mine.input) = made_.back().get();
    }
  }
}

}  // namespace tally::train

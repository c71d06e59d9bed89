#include "src/parallel/collectives/pipeline_links.h"

namespace tally::train {

// Link i joins stages i and i + 1. A stage has two links, and neighbouring links are made in
// different rounds; the last of an odd number needs a third round. In every communicator the sender
// is rank 0 and the receiver rank 1.
PipelineLinks::PipelineLinks(Communicator& pipeline, Stream& s) {
  const int stages = pipeline.size(), stage = pipeline.rank();
  if (stages == 1) return;
  const Tensor word(s.allocate(sizeof(int32_t), "first message"), DType::i32, {1});
  s.fill_zero(word.data, word.bytes());
  const int before = (stage + stages - 1) % stages;
  const auto round_of = [&](int link) {
    return stages % 2 == 1 && link == stages - 1 ? 2 : link % 2;
  };
  for (int round = 0; round < (stages % 2 == 1 ? 3 : 2); ++round) {
    const bool next = round_of(stage) == round, back = round_of(before) == round;
    const int low = next ? stage : before, high = (low + 1) % stages;
    for (const bool gradient : {false, true}) {
      std::vector<int> ranks;
      if (next || back) ranks = gradient ? std::vector{high, low} : std::vector{low, high};
      made_.push_back(pipeline.subgroup(ranks, "pipeline"));
      if (ranks.empty()) continue;
      Link& mine = next ? next_ : back_;
      Communicator* const made = made_.back().get();
      (gradient ? mine.gradient : mine.input) = made;
      if (made->rank() == 0) {
        made->send(s, word, 1);
      } else {
        made->receive(s, word, 0);
      }
    }
  }
  s.synchronize();
  s.release(word.data);
}

}  // namespace tally::train

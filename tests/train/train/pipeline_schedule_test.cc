// The orders of a pipeline's passes: every process's schedule is played together with the others'.
#include "src/train/step/pipeline_schedule.h"

#include <doctest/doctest.h>

#include <deque>
#include <set>
#include <utility>

using namespace tally::train;

namespace {

// Messages between neighbours in the order in which they were sent.
using Link = std::deque<std::pair<int, int64_t>>;  // chunk and micro batch of the receiver

// Plays all processes until none can go on; returns the passes that were done.
size_t play(int stages, int chunks, int64_t micro_batches) {
  std::vector<std::vector<PipelineStep>> schedules;
  for (int s = 0; s < stages; ++s)
    schedules.push_back(pipeline_schedule(s, stages, chunks, micro_batches));
  const auto size = static_cast<size_t>(stages);
  std::vector<Link> inputs(size), gradients(size);  // that wait for stage s
  std::vector<size_t> at(size, 0);
  std::vector<std::set<std::pair<int, int64_t>>> forward(size);
  size_t done = 0;
  for (bool moved = true; moved;) {
    moved = false;
    for (int s = 0; s < stages; ++s) {
      const auto i = static_cast<size_t>(s);
      if (at[i] == schedules[i].size()) continue;
      const PipelineStep step = schedules[i][at[i]];
      const std::pair<int, int64_t> name{step.chunk, step.micro_batch};
      const bool first = s == 0 && step.chunk == 0;
      const bool last = s + 1 == stages && step.chunk + 1 == chunks;
      Link& link = step.forward ? inputs[i] : gradients[i];
      if (!(step.forward ? first : last)) {
        if (link.empty()) continue;   // it waits
        CHECK(link.front() == name);  // in the order in which it was sent
        link.pop_front();
      }
      if (step.forward) {
        CHECK(forward[i].insert(name).second);
        const int chunk = s + 1 == stages ? step.chunk + 1 : step.chunk;
        if (!last) inputs[(i + 1) % size].emplace_back(chunk, step.micro_batch);
      } else {
        CHECK(forward[i].count(name) == 1);  // its forward pass is done
        const int chunk = s == 0 ? step.chunk - 1 : step.chunk;
        if (!first) gradients[(i + size - 1) % size].emplace_back(chunk, step.micro_batch);
      }
      ++at[i];
      ++done;
      moved = true;
    }
  }
  return done;
}

}  // namespace

TEST_CASE("pipelines of every size end, and neighbours agree on the order of their messages") {
  for (int stages = 1; stages <= 8; ++stages)
    for (int chunks = 1; chunks <= 4; ++chunks)
      for (int64_t m = 1; m <= 24; ++m) {
        if (chunks > 1 && (stages < 3 || m % stages != 0)) continue;
        INFO(stages, " stages, ", chunks, " chunks, ", m, " micro batches");
        CHECK(play(stages, chunks, m) == static_cast<size_t>(2 * stages * chunks * m));
      }
}

TEST_CASE("1F1B holds as many micro batches as there are stages from here to the end") {
  for (int stages = 1; stages <= 8; ++stages)
    for (int stage = 0; stage < stages; ++stage)
      for (const int64_t m : {1, 3, 16}) {
        const auto schedule = pipeline_schedule(stage, stages, 1, m);
        CHECK(micro_batches_in_flight(schedule, 0) == std::min<int64_t>(m, stages - stage));
        CHECK(micro_batches_in_flight(schedule) == std::min<int64_t>(m, stages - stage));
      }
}

// Narayanan et al., arXiv:2104.04473, section 2.2: the first stage holds p (1 + (p - 1) / (p v)) / p
// as much as without interleaving, of chunks that are 1 / v as large.
TEST_CASE("interleaving holds more by 1 + (p - 1) / (p v)") {
  const int p = 4, v = 2;
  const auto schedule = pipeline_schedule(0, p, v, 16);
  int held = 0, most = 0;
  for (const PipelineStep& step : schedule) most = std::max(most, held += step.forward ? 1 : -1);
  CHECK(most == p * v + p - 1);
  // Chunks need not peak at the same time.
  CHECK(micro_batches_in_flight(schedule, 0) + micro_batches_in_flight(schedule, 1) >= most);
}

TEST_CASE("layers of stages and chunks") {
  Config c;
  c.model.layers = 16;
  c.pipeline_parallel = 4;
  c.virtual_pipeline_layers = 2;
  c.tensor_parallel = 2;
  const auto first = parts_of(c, {1, 0, 0}), last = parts_of(c, {0, 3, 0});
  REQUIRE(first.size() == 2);
  CHECK(first[0].first_layer == 0);
  CHECK(first[0].layers == 2);
  CHECK(first[0].first);
  CHECK_FALSE(first[0].last);
  CHECK(first[0].shard == 1);
  CHECK(first[0].shards == 2);
  CHECK(first[1].first_layer == 8);
  CHECK_FALSE(first[1].first);
  CHECK(last[0].first_layer == 6);
  CHECK(last[1].first_layer == 14);
  CHECK_FALSE(last[0].last);
  CHECK(last[1].last);
}

#include "src/train/step/pipeline_schedule.h"

#include <algorithm>
#include <map>

namespace tally::train {
namespace {

// The k-th pass of a process with several chunks: groups of `stages` micro batches go through all
// chunks.
PipelineStep pass(bool forward, int64_t k, int stages, int chunks) {
  const int64_t round = int64_t{stages} * chunks;
  const auto chunk = static_cast<int>(k % round / stages);
  return {forward, forward ? chunk : chunks - 1 - chunk, k / round * stages + k % stages};
}

// The largest number of keys at once that are begun by their first and done by their last of
// `passes` passes.
int64_t most_in_flight(const std::vector<PipelineStep>& schedule, int64_t passes) {
  std::map<int64_t, int64_t> done;  // passes of each micro batch that was begun
  int64_t open = 0, most = 0;
  for (const PipelineStep& step : schedule) {
    int64_t& count = done[step.micro_batch];
    if (count == 0) most = std::max(most, ++open);
    if (++count == passes) --open;
  }
  return most;
}

}  // namespace

std::vector<PipelineStep> pipeline_schedule(int stage, int stages, int chunks,
                                            int64_t micro_batches) {
  const int64_t total = micro_batches * chunks;
  int64_t ahead = stages - stage - 1;
  if (chunks > 1) {
    ahead = 2 * ahead + int64_t{chunks - 1} * stages;
    if (micro_batches == stages) ahead = total;
  }
  ahead = std::min(ahead, total);
  std::vector<PipelineStep> schedule;
  schedule.reserve(static_cast<size_t>(2 * total));
  for (int64_t k = 0; k < ahead; ++k) schedule.push_back(pass(true, k, stages, chunks));
  for (int64_t k = 0; k < total; ++k) {
    if (k + ahead < total) schedule.push_back(pass(true, k + ahead, stages, chunks));
    schedule.push_back(pass(false, k, stages, chunks));
  }
  return schedule;
}

int64_t micro_batches_in_flight(const std::vector<PipelineStep>& schedule, int chunk) {
  std::vector<PipelineStep> of_chunk;
  std::copy_if(schedule.begin(), schedule.end(), std::back_inserter(of_chunk),
               [&](const PipelineStep& step) { return step.chunk == chunk; });
  return most_in_flight(of_chunk, 2);
}

int64_t micro_batches_in_flight(const std::vector<PipelineStep>& schedule) {
  int chunks = 0;
  for (const PipelineStep& step : schedule) chunks = std::max(chunks, step.chunk + 1);
  return most_in_flight(schedule, 2 * chunks);
}

}  // namespace tally::train

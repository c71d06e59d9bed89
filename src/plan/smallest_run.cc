#include "src/plan/smallest_run.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "src/config/args.h"
#include "src/plan/stage_count.h"

namespace tally::train {
namespace {

constexpr int most_nodes = 4096;

bool possible(const Config& c) {
  try {
    check_parallel_layout(c);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

// The same run on `replicas` of a model that `tensor` x `pipeline` GPUs share, with as many micro
// batches as fill the pipeline.
Config with_layout(Config c, int tensor, int pipeline, int64_t replicas) {
  c.tensor_parallel = tensor;
  c.pipeline_parallel = pipeline;
  c.data_parallel = static_cast<int>(replicas);
  c.world_size = tensor * pipeline * c.data_parallel;
  c.sequence_parallel = c.sequence_parallel && tensor > 1;
  c.virtual_pipeline_layers = 0;
  c.global_batch = c.micro_batch * replicas * pipeline;
  return c;
}

// The division of the model over tensor x pipeline GPUs, on nodes of the run's size.
struct Shares {
  const Config& config;
  const GpuKind& kind;
  int gpus_per_node, tensor, pipeline;

  int64_t gpus() const { return int64_t{tensor} * pipeline; }
  // Only multiples of these many nodes hold whole replicas.
  int step() const { return static_cast<int>(gpus() / std::gcd(gpus(), int64_t{gpus_per_node})); }
  int64_t replicas(int nodes) const { return int64_t{nodes} * gpus_per_node / gpus(); }
  // The memory of the worst stage; no more than is needed to see that one does not fit. The stages
  // between the second and the last need less than the second.
  double bytes(int nodes) const {
    const Config c = with_layout(config, tensor, pipeline, replicas(nodes));
    double most = 0;
    for (const int stage : std::set<int>{0, std::min(1, pipeline - 1), pipeline - 1})
      if (most <= kind.memory)
        most = std::max(most, stage_memory(c, stage, target_of(kind)).total());
    return most;
  }
  bool fit(int nodes) const { return bytes(nodes) <= kind.memory; }
  // The fewest nodes up to `limit` that hold the model; 0: none. From one try to twice its nodes,
  // more replicas need no more memory each. (Thousands of them may: what they share is padded.)
  int fewest(int limit) const {
    const int most = limit / step();  // in steps, as `low`, which does not fit, and `high`
    int low = 0, high = std::min(1, most);
    while (low < high && !fit(high * step())) {
      low = high;
      high = std::min(2 * high, most);
    }
    if (low == high) return 0;
    while (high - low > 1) {
      const int middle = low + (high - low) / 2;
      (fit(middle * step()) ? high : low) = middle;
    }
    return high * step();
  }
};

std::vector<Shares> all_shares(const Config& config, const GpuKind& kind, int gpus_per_node) {
  std::vector<Shares> all;
  for (int tensor = 1; tensor <= gpus_per_node; ++tensor) {
    if (gpus_per_node % tensor != 0) continue;
    for (int pipeline = 1; pipeline <= config.model.layers; ++pipeline)
      if (config.model.layers % pipeline == 0 && possible(with_layout(config, tensor, pipeline, 1)))
        all.push_back({config, kind, gpus_per_node, tensor, pipeline});
  }
  return all;
}

}  // namespace

SmallestRun smallest_run(const Config& config, const GpuKind& kind, int gpus_per_node) {
  const std::vector<Shares> all = all_shares(config, kind, gpus_per_node);
  SmallestRun best;
  int limit = most_nodes;
  for (const Shares& shares : all)
    if (const int nodes = shares.fewest(limit); nodes > 0) best.nodes = limit = nodes;
  if (best.nodes == 0) return best;
  for (const Shares& shares : all) {
    if (best.nodes % shares.step() != 0) continue;
    const double bytes = shares.bytes(best.nodes);
    if (bytes > kind.memory || (best.bytes > 0 && bytes >= best.bytes)) continue;
    best.tensor = shares.tensor;
    best.pipeline = shares.pipeline;
    best.data = static_cast<int>(shares.replicas(best.nodes));
    best.bytes = bytes;
  }
  return best;
}

}  // namespace tally::train

#include "src/optim/sharding.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace tally::train {

namespace {

FlatRange range_of(const ParameterTable& table, int parameter) {
  if (parameter < 0) return {};
  const Parameter& p = table.all()[static_cast<size_t>(parameter)];
  return {p.offset, table.end_of(p)};
}

}  // namespace

TableMemory sharded_memory(int replicas, bool shard_gradients) {
  TableMemory memory;
  memory.alignment = std::lcm(memory.alignment, int64_t{16} * replicas);
  memory.share_block_gradients = shard_gradients;
  return memory;
}

TableMemory sharded_memory(const Config& c, int replicas) {
  TableMemory memory = sharded_memory(replicas, c.shard_gradients);
  // Only buckets are gathered in the forward pass that casts the weights.
  const bool buckets = c.shard_gradients || c.gradient_bucket.value_or(overlapped_bucket) > 0;
  const bool casts_when_gathered = c.policy.fusions.overwrite && buckets && replicas > 1;
  if (c.fp8.on() && c.fp8.recipe.weights == Fp8Scaling::tensor && casts_when_gathered)
    memory.fp8_blocks = {c.fp8.layers_at_start, c.model.layers - c.fp8.layers_at_end};
  return memory;
}

Sharding::Sharding(Communicator& replicas, const ParameterTable& table, Stream& stream,
                   const std::vector<int>& final_order, const Options& options)
    : replicas_(replicas),
      table_(table),
      alone_(range_of(table, options.alone)),
      shards_gradients_(options.shard_gradients),
      arena_(stream) {
  std::vector<GradientBucket> buckets =
      options.shard_gradients ? block_buckets(table, final_order)
                              : gradient_buckets(table, final_order, options.bucket_elements);
  std::sort(buckets.begin(), buckets.end(),
            [](const GradientBucket& a, const GradientBucket& b) { return a.begin < b.begin; });
  int64_t from = 0;
  for (GradientBucket& b : buckets) {
    add_rest({from, b.begin});
    add({b.begin, b.end}, std::move(b.parameters));
    from = b.end;
  }
  add_rest({from, table.elements()});
}

// Adds the range between buckets.
void Sharding::add_rest(const FlatRange& rest) {
  const bool inside = alone_.count() > 0 && rest.first <= alone_.first && alone_.last <= rest.last;
  if (!inside) return add(rest, {});
  add({rest.first, alone_.first}, {});
  add(alone_, {});
  add({alone_.last, rest.last}, {});
}

void Sharding::add(const FlatRange& whole, std::vector<int> parameters) {
  if (whole.count() == 0) return;
  const int64_t share = whole.count() / replicas_.size();
  if (share * replicas_.size() != whole.count())
    throw std::logic_error("a range of the parameters cannot be shared evenly");
  Range r;
  r.whole = whole;
  r.own.first = whole.first + replicas_.rank() * share;
  r.own.last = r.own.first + share;
  r.accumulates = shards_gradients_ && !parameters.empty();
  r.parameters = std::move(parameters);
  r.gradient = table_.gradients(whole);
  r.own_gradient = r.accumulates
                       ? arena_.make(r.gradient.dtype, {share}, "this process's gradients")
                       : r.gradient.rows(replicas_.rank() * share, share);
  ranges_.push_back(std::move(r));
}

Tensor Sharding::alone() const {
  for (const Range& r : ranges_)
    if (r.whole == alone_) return r.own_gradient;
  return Tensor();
}

std::vector<FlatRange> Sharding::owned() const {
  std::vector<FlatRange> owned;
  for (const Range& r : ranges_) owned.push_back(r.own);
  return owned;
}

}  // namespace tally::train

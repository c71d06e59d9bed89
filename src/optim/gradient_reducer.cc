#include "src/optim/gradient_reducer.h"

#include <algorithm>
#include <stdexcept>

#include "src/ops/optimizer/optimizer.h"

namespace tally::train {

std::vector<GradientReducer::Part> GradientReducer::parts_of(
    const ReductionGroups& groups, const ParameterTable& table,
    const std::vector<GradientBucket>& buckets) {
  std::vector<Part> parts;
  for (const GradientBucket& b : buckets) {
    const Parameter& any = table.all()[static_cast<size_t>(b.parameters.front())];
    parts.push_back({{b.begin, b.end}, &groups.of(any), b.parameters, nullptr});
  }
  return parts;
}

std::vector<GradientReducer::Part> GradientReducer::parts_of(const Sharding& sharding) {
  std::vector<Part> parts;
  for (const Sharding::Range& r : sharding.ranges())
    parts.push_back({r.whole, &sharding.replicas(), r.parameters, &r});
  return parts;
}

GradientReducer::GradientReducer(const ReductionGroups& groups, Stream& stream,
                                 const ParameterTable& table,
                                 const std::vector<GradientBucket>& buckets)
    : GradientReducer(groups, stream, table, parts_of(groups, table, buckets), false) {}

GradientReducer::GradientReducer(Stream& stream, const ParameterTable& table,
                                 const Sharding& sharding)
    : GradientReducer(ReductionGroups(sharding.replicas()), stream, table, parts_of(sharding),
                      sharding.shards_gradients()) {}

GradientReducer::GradientReducer(const ReductionGroups& groups, Stream& stream,
                                 const ParameterTable& table, std::vector<Part> parts,
                                 bool every_pass)
    : groups_(groups.all()),
      alone_(std::all_of(groups_.begin(), groups_.end(),
                         [](const Communicator* group) { return group->size() == 1; })),
      stream_(stream),
      table_(table),
      parts_(std::move(parts)),
      every_pass_(every_pass),
      part_of_(table.all().size(), -1) {
  std::sort(parts_.begin(), parts_.end(),
            [](const Part& a, const Part& b) { return a.whole.first < b.whole.first; });
  for (size_t i = 0; i < parts_.size(); ++i)
    for (const int id : parts_[i].parameters)
      part_of_[static_cast<size_t>(id)] = static_cast<int>(i);
  for (const Parameter& p : table.all()) {
    Communicator* group = &groups.of(p);
    if (runs_.empty() || runs_.back().group != group) runs_.push_back({0, group});
    runs_.back().end = table.end_of(p);
  }
}

void GradientReducer::begin(bool first, bool last) {
  first_ = first;
  armed_ = !alone_ && (last || every_pass_);
  for (Part& part : parts_) part.missing = part.parameters.size();
}

void GradientReducer::ready(int parameter) {
  const int i = part_of_[static_cast<size_t>(parameter)];
  if (!armed_ || i < 0) return;
  Part& part = parts_[static_cast<size_t>(i)];
  if (--part.missing > 0) return;
  start(&part);
  part.reduced = true;
}

void GradientReducer::start(Part* part) {
  if (!part->range) return part->group->start_all_reduce(stream_, table_.gradients(part->whole));
  const Sharding::Range& r = *part->range;
  if (r.accumulates) {
    // The next block but one overwrites the memory of the bucket before this one.
    part->group->wait(stream_);
    if (!first_)
      add_gradients(stream_, r.own_gradient,
                    Out(r.gradient.rows(r.own.first - r.whole.first, r.own.count())));
  }
  part->group->start_reduce_scatter(stream_, r.gradient, r.own_gradient);
}

// Reduces the gradients that no bucket has or no backward pass reported.
void GradientReducer::reduce_rest() {
  for (Communicator* group : groups_) group->begin_group();
  int64_t from = 0;
  for (const Part& part : parts_) {
    if (const Sharding::Range* r = part.range; r && !part.reduced) {
      if (r->accumulates) throw std::logic_error("the gradients of a block were not reported");
      part.group->reduce_scatter(stream_, r->gradient, r->own_gradient);
    } else if (!part.reduced) {
      continue;
    }
    reduce({from, part.whole.first});
    from = part.whole.last;
  }
  reduce({from, table_.elements()});
  for (Communicator* group : groups_) group->end_group();
}

void GradientReducer::reduce(const FlatRange& range) {
  int64_t first = range.first;
  for (const Run& run : runs_) {
    const int64_t last = std::min(run.end, range.last);
    if (first >= last) continue;
    run.group->all_reduce(stream_, table_.gradients({first, last}));
    first = last;
  }
}

void GradientReducer::wait() {
  for (Communicator* group : groups_) group->wait(stream_);
}

void GradientReducer::end() {
  if (armed_) wait();
  armed_ = false;
}

void GradientReducer::finish() {
  if (alone_) return;
  reduce_rest();
  wait();
  for (Part& part : parts_) part.reduced = false;
}

}  // namespace tally::train

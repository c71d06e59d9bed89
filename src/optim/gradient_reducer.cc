#include "src/optim/gradient_reducer.h"

#include <algorithm>
#include <stdexcept>

#include "src/ops/optimizer/optimizer.h"

namespace tally::train {

GradientReducer::GradientReducer(Communicator& communicator, Stream& stream,
                                 const ParameterTable& table,
                                 const std::vector<GradientBucket>& buckets)
    : GradientReducer(
          communicator, stream, table,
          [&] {
            std::vector<Part> parts;
            for (const GradientBucket& b : buckets)
              parts.push_back({{b.begin, b.end}, b.parameters, nullptr});
            return parts;
          }(),
          false) {}

GradientReducer::GradientReducer(Stream& stream, const ParameterTable& table,
                                 const Sharding& sharding)
    : GradientReducer(
          sharding.replicas(), stream, table,
          [&] {
            std::vector<Part> parts;
            for (const Sharding::Range& r : sharding.ranges())
              parts.push_back({r.whole, r.parameters, &r});
            return parts;
          }(),
          sharding.shards_gradients()) {}

GradientReducer::GradientReducer(Communicator& communicator, Stream& stream,
                                 const ParameterTable& table, std::vector<Part> parts,
                                 bool every_pass)
    : communicator_(communicator),
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
}

void GradientReducer::begin(bool first, bool last) {
  first_ = first;
  armed_ = communicator_.size() > 1 && (last || every_pass_);
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
  if (!part->range) return communicator_.start_all_reduce(stream_, table_.gradients(part->whole));
  const Sharding::Range& r = *part->range;
  if (r.accumulates) {
    // The next block but one overwrites the memory of the bucket before this one.
    communicator_.wait(stream_);
    if (!first_)
      add_gradients(stream_, r.own_gradient,
                    r.gradient.rows(r.own.first - r.whole.first, r.own.count()));
  }
  communicator_.start_reduce_scatter(stream_, r.gradient, r.own_gradient);
}

// What no bucket has or no backward pass reported.
void GradientReducer::reduce_rest() {
  communicator_.begin_group();
  int64_t from = 0;
  const auto reduce_up_to = [&](int64_t to) {
    if (from < to) communicator_.all_reduce(stream_, table_.gradients({from, to}));
  };
  for (const Part& part : parts_) {
    if (const Sharding::Range* r = part.range; r && !part.reduced) {
      if (r->accumulates) throw std::logic_error("the gradients of a block were not reported");
      communicator_.reduce_scatter(stream_, r->gradient, r->own_gradient);
    } else if (!part.reduced) {
      continue;
    }
    reduce_up_to(part.whole.first);
    from = part.whole.last;
  }
  reduce_up_to(table_.elements());
  communicator_.end_group();
}

void GradientReducer::end() {
  if (armed_) communicator_.wait(stream_);
  armed_ = false;
}

void GradientReducer::finish() {
  if (communicator_.size() == 1) return;
  reduce_rest();
  communicator_.wait(stream_);
  for (Part& part : parts_) part.reduced = false;
}

}  // namespace tally::train

#include "src/optim/weight_gather.h"

namespace tally::train {

WeightGather::WeightGather(Stream& stream, const ParameterTable& table, const Sharding& sharding,
                           Communicator* tensor)
    : stream_(stream),
      sharding_(sharding),
      weights_(table.weights()),
      fp8_(stream, table, sharding, tensor),
      range_of_(table.all().size(), -1),
      progress_(sharding.ranges().size(), Progress::missing) {
  for (size_t i = 0; i < sharding.ranges().size(); ++i)
    for (const int id : sharding.ranges()[i].parameters)
      range_of_[static_cast<size_t>(id)] = static_cast<int>(i);
}

Tensor WeightGather::read(const Sharding::Range& r, const FlatRange& elements) const {
  return fp8_.has(r) ? fp8_.bytes(elements) : weights_.rows(elements.first, elements.count());
}

void WeightGather::all() {
  Communicator& replicas = sharding_.replicas();
  const auto weights = [&](const FlatRange& e) { return weights_.rows(e.first, e.count()); };
  replicas.begin_group();
  for (const Sharding::Range& r : sharding_.ranges())
    replicas.all_gather(stream_, weights(r.own), weights(r.whole));
  replicas.end_group();
}

void WeightGather::begin() {
  Communicator& replicas = sharding_.replicas();
  fp8_.cast();
  replicas.begin_group();
  for (size_t i = 0; i < progress_.size(); ++i) {
    const Sharding::Range& r = sharding_.ranges()[i];
    progress_[i] = r.parameters.empty() ? Progress::here : Progress::missing;
    if (r.parameters.empty()) replicas.all_gather(stream_, read(r, r.own), read(r, r.whole));
  }
  replicas.end_group();
  start_next(0);
  active_ = true;
}

void WeightGather::start_next(size_t from) {
  while (from < progress_.size() && progress_[from] != Progress::missing) ++from;
  if (from == progress_.size()) return;
  const Sharding::Range& r = sharding_.ranges()[from];
  sharding_.replicas().start_all_gather(stream_, read(r, r.own), read(r, r.whole));
  progress_[from] = Progress::started;
}

void WeightGather::wait() {
  sharding_.replicas().wait(stream_);
  for (Progress& p : progress_)
    if (p == Progress::started) p = Progress::here;
}

void WeightGather::needs(int parameter) {
  const int i = range_of_[static_cast<size_t>(parameter)];
  if (!active_ || i < 0) return;
  const auto range = static_cast<size_t>(i);
  if (progress_[range] == Progress::here) return;
  if (progress_[range] == Progress::missing) start_next(range);
  wait();
  start_next(range);  // it arrives while this one is used
}

void WeightGather::finish() {
  if (!active_) return;
  for (const Progress& p : progress_)
    if (p == Progress::missing) start_next(0);
  wait();
  active_ = false;
}

}  // namespace tally::train

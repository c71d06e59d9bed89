#include "src/optim/fp8_shares.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "src/ops/fp8/fp8.h"

namespace tally::train {
namespace {

// Neighbours as the rows of a matrix; a kernel's threads take several of a row.
Tensor as_rows(const Tensor& flat, DType type) {
  constexpr int64_t widest = 1024;
  const int64_t n = flat.numel();
  const int64_t power = n == 0 ? widest : int64_t{1} << std::countr_zero(static_cast<uint64_t>(n));
  const int64_t width = std::min(widest, power);
  return Tensor(flat.data, type, {n / width, width});
}

}  // namespace

Fp8Shares::Fp8Shares(Stream& stream, const ParameterTable& table, const Sharding& sharding,
                     Communicator* tensor)
    : stream_(stream), table_(table), sharding_(sharding), tensor_(tensor), arena_(stream) {
  if (!table.fp8().defined()) return;
  scale_ = arena_.make(DType::f32, {1}, "scales of weights in FP8");
  for (const Sharding::Range& r : sharding.ranges()) {
    if (!has(r)) continue;
    for (const int id : r.parameters) {
      const Parameter& p = table.all()[static_cast<size_t>(id)];
      const int64_t first = std::max(p.offset, r.own.first);
      const int64_t last = std::max(first, std::min(p.offset + p.local_elements(), r.own.last));
      const int64_t count = last - first;
      // An empty share lies where nothing is read.
      const int64_t at = count == 0 ? r.own.first : first;
      shares_.push_back({as_rows(table.weights().rows(at, count), table.weights().dtype),
                         table.weight(p.id).fp8.amax,
                         as_rows(table.fp8({at, at + count}), DType::e4m3)});
    }
  }
  if (static_cast<int64_t>(shares_.size()) != table.fp8_amaxes().numel())
    throw std::logic_error("a matrix that is gathered in FP8 is in no bucket");
}

bool Fp8Shares::has(const Sharding::Range& r) const {
  return !r.parameters.empty() &&
         table_.gathered_in_fp8(table_.all()[static_cast<size_t>(r.parameters.front())]);
}

void Fp8Shares::cast() {
  if (shares_.empty()) return;
  for (const Share& s : shares_) fp8_amax(stream_, s.weights, Out(s.amax));
  sharding_.replicas().all_reduce(stream_, table_.fp8_amaxes(), Reduce::max);
  if (tensor_) tensor_->all_reduce(stream_, table_.fp8_amaxes(), Reduce::max);
  for (const Share& s : shares_)
    fp8_cast(stream_, s.weights, s.amax, {s.bytes, {}, scale_, {}, Fp8Scaling::tensor});
}

}  // namespace tally::train

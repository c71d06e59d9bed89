#include "src/optim/lamb.h"

#include <algorithm>

namespace tally::train {
namespace {

// The offset of the gradients of an element of the flat buffers, in the range of the optimizer's
// state that begins at `state`.
struct GradientRange {
  FlatRange range;
  int64_t state;
  Tensor gradient;
};

std::vector<GradientRange> gradient_ranges(const ParameterTable& table, const Sharding* sharding) {
  std::vector<GradientRange> ranges;
  int64_t state = 0;
  if (!sharding) return {{{0, table.elements()}, 0, table.gradients()}};
  for (const Sharding::Range& r : sharding->ranges()) {
    ranges.push_back({r.own, state, r.own_gradient});
    state += r.own.count();
  }
  return ranges;
}

// The elements of the flat buffers that are a matrix of a parameter, each with a norm of its own.
// The padding of the vocabulary has no gradient and must not count in the norms: it depends on the
// number of shards.
std::vector<FlatRange> matrices_of(const Parameter& p) {
  const int64_t end = p.offset + p.local_elements() - p.local_padding();
  const std::vector<int64_t> fused = p.fused();
  if (fused.empty()) return {{p.offset, end}};
  std::vector<FlatRange> matrices;
  int64_t at = p.offset;
  for (const int64_t rows : fused) {
    const int64_t count = p.local_elements() * rows / p.shape[0];
    matrices.push_back({at, at + count});
    at += count;
  }
  return matrices;
}

// The pieces of what `ranges` have of `matrix`.
void add_pieces(const FlatRange& matrix, const std::vector<GradientRange>& ranges, int norm,
                std::vector<LambPiece>* pieces) {
  for (const GradientRange& r : ranges) {
    const int64_t last = std::min(matrix.last, r.range.last);
    int64_t at = std::max(matrix.first, r.range.first);
    for (; at < last; at += lamb_piece_elements) {
      const int64_t count = std::min(lamb_piece_elements, last - at), in_range = at - r.range.first;
      pieces->push_back({r.gradient.rows(in_range, count).data, r.state + in_range, at,
                         static_cast<int32_t>(count), norm});
    }
  }
}

}  // namespace

Lamb::Lamb(const AdamW& hyper, const ParameterTable& table, const OptimizerBuffers& buffers,
           Stream& stream, const Mesh* mesh, const Sharding* sharding)
    : hyper_(hyper),
      stream_(stream),
      arena_(stream),
      buffers_{Out(buffers.master), Out(buffers.first_moment), Out(buffers.second_moment),
               Out(table.weights())} {
  const std::vector<GradientRange> ranges = gradient_ranges(table, sharding);
  std::vector<LambPiece> pieces;
  int rows = 0;
  // The tensor parallel ranks number the parameters alike, because all have a part of each. Where
  // all have the whole, both of its sums are multiplied, and the ratio stays.
  for (const Parameter& p : table.all())
    if (p.group == ParameterGroup::decayed)
      for (const FlatRange& matrix : matrices_of(p)) add_pieces(matrix, ranges, rows++, &pieces);
  for (const Parameter& p : table.all())
    if (p.group != ParameterGroup::decayed)
      add_pieces({p.offset, p.offset + p.local_elements() - p.local_padding()}, ranges, -1,
                 &pieces);
  make_tables(pieces, rows);
  if (mesh && mesh->tensor().size() > 1) sharers_.push_back(&mesh->tensor());
  if (sharding && sharding->replicas().size() > 1) sharers_.push_back(&sharding->replicas());
}

void Lamb::make_tables(const std::vector<LambPiece>& pieces, int64_t rows) {
  const auto count = static_cast<int64_t>(pieces.size());
  std::vector<int64_t> first(static_cast<size_t>(rows) + 1, 0);
  for (const LambPiece& p : pieces)
    if (p.norm >= 0) ++first[static_cast<size_t>(p.norm) + 1];
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) first[row + 1] += first[row];
  const auto put = [&](const void* from, size_t bytes, const char* what) {
    const Tensor t = arena_.make(DType::u8, {static_cast<int64_t>(bytes)}, what);
    stream_.copy(t.data, from, bytes);
    return t.data;
  };
  tables_.count = count;
  tables_.pieces = static_cast<LambPiece*>(
      put(pieces.data(), pieces.size() * sizeof(LambPiece), "the pieces of LAMB"));
  tables_.first_piece = static_cast<int64_t*>(
      put(first.data(), first.size() * sizeof(int64_t), "the parameters of LAMB"));
  tables_.piece_sums = arena_.make(DType::f64, {count, 2}, "sums of squares of LAMB");
  tables_.norms = arena_.make(DType::f64, {rows, 2}, "norms of LAMB");
  stream_.fill_zero(tables_.norms.data, tables_.norms.bytes());
  stream_.synchronize();  // before the vectors are gone
}

void Lamb::step(const StepState* state, bool zero_gradients) {
  lamb_direction(stream_, hyper_, state, buffers_, tables_);
  for (Communicator* sharers : sharers_) sharers->all_reduce(stream_, tables_.norms);
  lamb_step(stream_, state, buffers_, tables_, zero_gradients);
}

}  // namespace tally::train

// The parameters of a model: names and shapes, and their weights and gradients as ranges of two
// flat buffers. The optimizer's state is separate (src/optim/).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/device/stream.h"
#include "src/device/tensor.h"
#include "src/nn/weight_spec.h"

namespace tally::train {

// The part of a parameter that this process holds: an equal share of every section along
// `dimension`. An undivided parameter has count 1.
struct Shard {
  int dimension = 0;
  // Lengths of the sections along the dimension, which add up to it; empty: one section. The rows
  // of a QKV projection have three: each process holds its heads of Q, of K and of V.
  std::vector<int64_t> sections;
  int index = 0, count = 1;
};

// Elements that are neighbours both in a whole parameter and in a process's part of it.
struct ElementRun {
  int64_t global, local, count;
};
// The part of a parameter of this shape as runs, ascending in the whole and in the part.
std::vector<ElementRun> runs_of(const std::vector<int64_t>& shape, const Shard& shard);

// A weight of the model, and this process's part of it.
struct Parameter : WeightSpec {
  Shard shard;
  int64_t offset = 0;  // this process's part, in elements from the start of every flat buffer
  int64_t gradient_offset = 0;  // the same of the gradients

  // The shape of this process's part.
  std::vector<int64_t> local_shape() const;
  int64_t local_elements() const;
  int64_t local_padding() const;  // elements of this process's part that lie in padding_rows
  int64_t elements() const;       // the whole parameter's
};

// A matrix as replicas gather it in FP8 (TableMemory::fp8_blocks): its casts of one scale, e4m3[out,in],
// and the largest magnitude of all parts of it, f32[1].
struct GatheredFp8 {
  Tensor rows, amax;
};

// A parameter as a layer uses it: its weights and its gradient.
struct ParamGrad {
  Tensor value, gradient;
  GatheredFp8 fp8;  // undefined: its weights are gathered
  int id = -1;      // its index in ParameterTable::all()
  // Gradients of other parameters use the same memory: every backward pass overwrites them.
  bool overwrite = false;
};

// Elements [first, last) of the table's flat buffers, or blocks.
struct FlatRange {
  int64_t first = 0, last = 0;
  int64_t count() const { return last - first; }
  bool operator==(const FlatRange&) const = default;
};

// Consecutive elements of a parameter that lie in a buffer of some ranges of the flat buffers.
struct HeldElements {
  int64_t in_parameter, in_buffer, count;
};
// The elements of a parameter that such a buffer, which has one range after the other, holds.
std::vector<HeldElements> held_elements(const Parameter& parameter,
                                        const std::vector<FlatRange>& ranges);

struct TableMemory {
  int64_t alignment = 128;  // every parameter starts at a multiple of this, in elements
  // The blocks' matrices (Parameter::block) share the memory of two blocks' gradients: those of
  // every second block use the same. Else all have their own, at the offsets of the weights.
  bool share_block_gradients = false;
  // The matrices of these blocks (Parameter::block) have memory for GatheredFp8.
  FlatRange fp8_blocks;
};

// Decayed parameters come first, so that one range of the flat buffers decays; of the others those
// that are divided among processes come first. Each range starts at a multiple of
// TableMemory::alignment.
class ParameterTable {
 public:
  ParameterTable() = default;
  ~ParameterTable();
  ParameterTable(const ParameterTable&) = delete;
  ParameterTable& operator=(const ParameterTable&) = delete;

  // Adds a parameter; call allocate() when all are known.
  void add(Parameter parameter);
  // Orders, assigns offsets and allocates on the stream's device: weights (compute type) and
  // gradients (f32, or f64 for f64).
  void allocate(Stream& stream, DType compute, const TableMemory& how = {});

  const std::vector<Parameter>& all() const { return parameters_; }
  const Parameter& find(const std::string& name) const;  // throws std::out_of_range
  ParamGrad get(const std::string& name) const;          // throws std::out_of_range
  // The matrix of a linear layer, a table, or what a norm multiplies by.
  const Parameter& find(const WeightId& id) const;  // throws std::out_of_range
  ParamGrad weight(const WeightId& id) const;       // throws std::out_of_range
  ParamGrad bias(const WeightId& id) const;         // undefined where the model has none
  Tensor weights() const { return weights_; }       // flat, rank 1
  Tensor gradients() const { return gradients_; }
  // The gradients of elements [first, last) of the weights, which are neighbours in both buffers.
  Tensor gradients(const FlatRange& range) const;
  bool gathered_in_fp8(const Parameter& parameter) const;
  // GatheredFp8::rows of elements of such matrices, and the GatheredFp8::amax of all of them in the
  // order of the table; undefined: there are none.
  Tensor fp8(const FlatRange& range) const;
  Tensor fp8() const { return fp8_; }
  Tensor fp8_amaxes() const { return fp8_amaxes_; }
  int64_t decayed_elements() const { return decayed_; }
  int64_t elements() const { return elements_; }  // including alignment gaps, which stay zero
  // The end of a parameter's range, its gap included.
  int64_t end_of(const Parameter& parameter) const;
  int64_t count() const;  // true number of parameters of this process
  // The gradients that are reduced so, as few ranges of the flat buffers.
  std::vector<FlatRange> reduced(Reduction reduction) const;
  // The ranges of the flat buffers, first and last element, without copies (Parameter::copy).
  std::vector<std::pair<int64_t, int64_t>> counted_ranges() const;

  // Draws every parameter from its own random stream (seed, name), on the host in f32: the same
  // seed gives the same weights on every device and under every layout. `master`: another flat
  // buffer that gets the same numbers in its own type, or none; it has these ranges of the
  // elements, one after the other, or all elements where there are none. Without `others`, the
  // weights outside of `ranges` stay as they are.
  void initialize(uint64_t seed, const Tensor& master = Tensor(),
                  const std::vector<FlatRange>& ranges = {}, bool others = true);

 private:
  int64_t aligned(int64_t elements) const;
  ParamGrad use(const Parameter& parameter) const;
  int64_t assign_gradients(bool share_blocks);
  void allocate_fp8();
  GatheredFp8 fp8_of(const Parameter& parameter) const;

  Stream* stream_ = nullptr;
  std::vector<Parameter> parameters_;
  TableMemory how_;
  Tensor weights_, gradients_;
  FlatRange fp8_range_;  // the elements of fp8_
  Tensor fp8_, fp8_amaxes_;
  int64_t decayed_ = 0, elements_ = 0;
};

// A parameter's range of a flat buffer of any type, in this process's shape.
Tensor parameter_range(const Tensor& flat, const Parameter& parameter);

}  // namespace tally::train

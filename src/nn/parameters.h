// The parameters of a model as ranges of flat buffers: weights, gradients, and the optimizer's
// state.
#pragma once

#include <string>
#include <vector>

#include "src/device/stream.h"
#include "src/device/tensor.h"

namespace tally::train {

struct Parameter {
  std::string name;            // Hugging Face's name without prefix: "h.0.attn.c_attn.weight"
  std::vector<int64_t> shape;  // as we store it: Linear weights [out, in]
  int64_t offset = 0;          // in elements, from the start of every flat buffer
  bool decayed = false;        // weight decay: matrices yes, biases and norms no
  double init_std = 0;         // normal(0, std); 0 with init_value: constant
  double init_value = 0;
};

// Decayed parameters come first, so that one range of the flat buffers decays. Each range starts at
// a multiple of 128 elements.
class ParameterTable {
 public:
  // Adds a parameter; call layout() when all are known.
  void add(Parameter parameter);
  // Orders, assigns offsets and allocates on the stream's device: weights (compute type), gradients
  // and master weights and both moments (f32, or f64 for f64). In f32 and f64 master and weights
  // are one.
  void layout(Stream& stream, DType compute, bool with_optimizer);
  ~ParameterTable();

  const std::vector<Parameter>& all() const { return parameters_; }
  const Parameter& find(const std::string& name) const;  // throws std::out_of_range
  Tensor weight(const std::string& name) const;
  Tensor gradient(const std::string& name) const;
  Tensor weights() const { return weights_; }  // flat, rank 1
  Tensor gradients() const { return gradients_; }
  Tensor master() const { return master_; }
  Tensor first_moment() const { return m_; }
  Tensor second_moment() const { return v_; }
  int64_t decayed_elements() const { return decayed_; }
  int64_t elements() const { return elements_; }  // with alignment gaps, which stay zero
  int64_t count() const;                          // true number of parameters

  // Draws every parameter from its own stream of random numbers (seed, name), on the host in f32,
  // so that the same seed gives the same weights on every device and under every layout.
  void initialize(uint64_t seed);

 private:
  Stream* stream_ = nullptr;
  std::vector<Parameter> parameters_;
  Tensor weights_, gradients_, master_, m_, v_;
  int64_t decayed_ = 0, elements_ = 0;
};

}  // namespace tally::train

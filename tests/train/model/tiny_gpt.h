// Small GPTs with odd sizes, and comparisons of their gradients.
#pragma once

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "src/device/convert.h"
#include "src/model/stage.h"

namespace tally::train {

inline Fusions no_fusions() {
  Fusions none;
  for (const auto& [name, on] : fusion_names) none.*on = false;
  return none;
}

// Head dimension 20, 37 tokens, padded vocabulary: nothing divides anything.
inline Config tiny_config(DType type = DType::f64) {
  Config c;
  c.model.layers = 3;
  c.model.hidden = 60;
  c.model.heads = 3;
  c.model.ffn = 200;
  c.model.max_positions = 41;
  c.model.vocabulary = 89;
  c.model.padded_vocabulary = 96;
  c.model.init_std = 0.1;
  c.model.hidden_dropout = c.model.attention_dropout = 0;
  c.sequence = 37;
  c.micro_batch = 3;
  c.precision = type == DType::f64   ? Precision::f64
                : type == DType::f32 ? Precision::f32
                                     : Precision::bf16;
  return c;
}

// The same sizes with Llama's blocks: six heads of 12 dimensions in three groups, whose width is not
// `hidden`.
inline void make_llama(ModelConfig* m) {
  m->set_kind("llama");
  m->positions = Positions::rotary;
  m->heads = 6;
  m->query_groups = 3;
  m->kv_channels = 12;
}

// Parameters away from their special initial values: biases not 0, norms not 1.
inline void perturb(ParameterTable& table, Stream& s, uint64_t seed = 5) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, 0.1F);
  for (const Parameter& p : table.all()) {
    if ((p.group == ParameterGroup::decayed)) continue;
    const Tensor w = table.get(p.name).value;
    std::vector<float> values(static_cast<size_t>(w.numel()));
    for (float& v : values) v = static_cast<float>(p.init_value) + normal(random);
    std::vector<char> bytes(w.bytes());
    convert_elements(Tensor(values.data(), DType::f32, {w.numel()}),
                     Tensor(bytes.data(), w.dtype, {w.numel()}));
    s.copy(w.data, bytes.data(), bytes.size());
    s.synchronize();
  }
}

// A micro batch in device memory; with `holes` some targets do not count.
struct TinyBatch {
  TinyBatch(const Config& c, Stream& s, uint64_t seed, bool holes = false) : stream(s) {
    std::mt19937_64 random(seed);
    const int64_t n = c.micro_batch * c.sequence;
    std::vector<int32_t> ids(static_cast<size_t>(n)), targets(ids.size());
    batch.counted[0] = n;
    for (size_t i = 0; i < ids.size(); ++i) {
      ids[i] = static_cast<int32_t>(random() % static_cast<uint64_t>(c.model.vocabulary));
      targets[i] = static_cast<int32_t>(random() % static_cast<uint64_t>(c.model.vocabulary));
      if (holes && i % 5 == 2) {
        targets[i] = -1;
        --batch.counted[0];
      }
    }
    batch.ids = make(c, ids);
    batch.labels[0] = make(c, targets);
  }
  ~TinyBatch() {
    stream.release(batch.ids.data);
    stream.release(batch.labels[0].data);
  }
  TinyBatch(const TinyBatch&) = delete;
  TinyBatch& operator=(const TinyBatch&) = delete;

  Tensor make(const Config& c, const std::vector<int32_t>& values) {
    Tensor t(stream.allocate(values.size() * 4, "batch"), DType::i32, {c.micro_batch, c.sequence});
    stream.copy(t.data, values.data(), t.bytes());
    stream.synchronize();
    return t;
  }

  Stream& stream;
  Batch batch;
};

// A stage with one set of activations, as a schedule without a pipeline has it.
class OneSet {
 public:
  explicit OneSet(std::unique_ptr<Stage> stage)
      : stage_(std::move(stage)), set_(stage_->make_activations()) {}
  void forward_backward(const Batch& batch, double weight, DropoutSeed seed, StepState* state) {
    stage_->forward(batch, {weight, seed, state}, *set_);
    stage_->backward(*set_);
  }
  void evaluate(const Batch& batch, double weight, StepState* state) {
    stage_->evaluate(batch, {weight, {}, state}, *set_);
  }
  // All that the stage allocated.
  size_t bytes() const { return stage_->scratch_bytes() + set_->bytes(); }
  Stage& stage() { return *stage_; }

 private:
  std::unique_ptr<Stage> stage_;
  std::unique_ptr<ActivationSet> set_;
};

inline std::unique_ptr<OneSet> one_set(std::unique_ptr<Stage> stage) {
  return std::make_unique<OneSet>(std::move(stage));
}

// StepState in device memory.
struct TinyState {
  explicit TinyState(Stream& s, float loss_scale = 1) : stream(s) {
    state = static_cast<StepState*>(s.allocate(sizeof(StepState), "state"));
    StepState fresh{};
    fresh.loss_scale = loss_scale;
    s.copy(state, &fresh, sizeof(fresh));
    s.synchronize();
  }
  ~TinyState() { stream.release(state); }
  TinyState(const TinyState&) = delete;
  TinyState& operator=(const TinyState&) = delete;
  StepState read() const {
    StepState r{};
    stream.copy(&r, state, sizeof(r));
    stream.synchronize();
    return r;
  }
  Stream& stream;
  StepState* state;
};

inline std::vector<double> read_doubles(Stream& s, const Tensor& t) {
  std::vector<char> bytes(t.bytes());
  s.copy(bytes.data(), t.data, bytes.size());
  s.synchronize();
  std::vector<double> out(static_cast<size_t>(t.numel()));
  convert_elements(Tensor(bytes.data(), t.dtype, {t.numel()}),
                   Tensor(out.data(), DType::f64, {t.numel()}));
  return out;
}

// |a - b| / |b|
inline double relative_norm(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  if (norm == 0) return difference == 0 ? 0 : INFINITY;
  return std::sqrt(difference / norm);
}

}  // namespace tally::train

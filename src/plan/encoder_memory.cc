#include "src/plan/encoder_memory.h"

namespace tally::train {
namespace {

using Add = std::function<void(int64_t elements)>;

void add_linear(int64_t out, int64_t in, const Add& add) {
  add(out * in);
  add(out);
}

void add_norm(int64_t columns, const Add& add) {
  add(columns);
  add(columns);
}

void add_heads(const ModelConfig& m, const Add& add) {
  const int64_t h = m.hidden;
  if (m.task == Task::question_answering) return add_linear(2, h, add);
  add_linear(h, h, add);
  if (m.task == Task::classification) return add_linear(m.classes, h, add);
  add_norm(h, add);
  add(m.padded_vocabulary);
  if (!m.predicts_next_sentence()) return;
  add_linear(h, h, add);
  add_linear(2, h, add);
}

}  // namespace

void for_each_encoder_parameter(const ModelConfig& m, const Add& add) {
  const int64_t h = m.hidden;
  add(m.padded_vocabulary * h);
  add(m.max_positions * h);
  if (m.kind == "bert") add(m.token_types * h);
  add_norm(h, add);
  for (int64_t layer = 0; layer < m.layers; ++layer) {
    add_linear(3 * h, h, add);
    add_linear(h, h, add);
    add_norm(h, add);
    add_linear(m.ffn, h, add);
    add_linear(h, m.ffn, add);
    add_norm(h, add);
  }
  add_heads(m, add);
}

double encoder_head_bytes(const Config& c) {
  const ModelConfig& m = c.model;
  const auto type = static_cast<double>(size_of(c.compute_type()));
  const auto wide =
      static_cast<double>(size_of(c.compute_type() == DType::f64 ? DType::f64 : DType::f32));
  const auto sequences = static_cast<double>(c.micro_batch), h = static_cast<double>(m.hidden);
  const double tokens = sequences * static_cast<double>(c.sequence);
  // [M,C] states under dropout; [M,2] and [2,S,T] logits; losses.
  if (m.task == Task::question_answering)
    return (m.head_dropout().value_or(0) > 0 ? tokens * h * type : 0) + 4 * tokens * type +
           2 * sequences * wide;
  const double classes =
      m.task == Task::classification ? static_cast<double>(m.classes) : 2;  // or the next sentence
  const double first_tokens = sequences * ((3 * h + classes) * type + wide);
  if (m.task == Task::classification) return first_tokens;
  const double masked = tokens * (5 * h * type + 3 * wide);
  return masked + (m.predicts_next_sentence() ? first_tokens : 0);
}

}  // namespace tally::train

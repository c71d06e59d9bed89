#include "src/plan/encoder_memory.h"

namespace tally::train {

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

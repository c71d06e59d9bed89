#include "src/train/encoder_evaluation.h"

#include <algorithm>
#include <array>
#include <chrono>

#include "src/checkpoint/model_weights.h"
#include "src/data/squad_predictions.h"
#include "src/device/arena.h"
#include "src/device/convert.h"
#include "src/train/device.h"
#include "src/train/encoder_feed.h"

namespace tally::train {
namespace {

// The host's copy as f32.
std::vector<float> fetch(const Tensor& t, Stream& stream) {
  std::vector<char> bytes(t.bytes());
  stream.copy(bytes.data(), t.data, bytes.size());
  stream.synchronize();
  std::vector<float> values(static_cast<size_t>(t.numel()));
  convert_elements(Tensor(bytes.data(), t.dtype, {t.numel()}),
                   Tensor(values.data(), DType::f32, {t.numel()}));
  return values;
}

// What becomes of the logits of micro batch after micro batch.
class Answers {
 public:
  Answers(const Config& c, const EncoderExam& exam) : c_(c), exam_(exam) {}

  void take(const EncoderArrays& arrays, const std::vector<float>& logits) {
    if (c_.model.task == Task::classification) return count(arrays.labels[0], logits);
    const auto half = static_cast<std::ptrdiff_t>(logits.size() / 2);
    const auto row = static_cast<std::ptrdiff_t>(c_.sequence);
    for (size_t k = 0; k < arrays.lengths.size(); ++k) {
      const auto begin = logits.begin() + static_cast<std::ptrdiff_t>(k) * row;
      start_.emplace_back(begin, begin + arrays.lengths[k]);
      end_.emplace_back(begin + half, begin + half + arrays.lengths[k]);
    }
  }

  std::vector<std::pair<std::string, double>> metrics() const {
    if (c_.model.task == Task::pretraining) return {};
    if (c_.model.task == Task::classification)
      return {{"accuracy",
               static_cast<double>(right_) / static_cast<double>(std::max<int64_t>(1, counted_))}};
    return squad();
  }

 private:
  void count(const std::vector<int32_t>& labels, const std::vector<float>& logits) {
    const auto classes = static_cast<std::ptrdiff_t>(c_.model.classes);
    for (size_t k = 0; k < labels.size(); ++k) {
      if (labels[k] < 0) continue;
      const auto row = logits.begin() + static_cast<std::ptrdiff_t>(k) * classes;
      ++counted_;
      right_ += std::max_element(row, row + classes) - row == labels[k] ? 1 : 0;
    }
  }

  std::vector<std::pair<std::string, double>> squad() const {
    std::vector<SquadLogits> logits;
    for (size_t n = 0; n < start_.size(); ++n) logits.push_back({start_[n].data(), end_[n].data()});
    SquadPredictionOptions o;
    o.version_2 = c_.data.squad_2;
    const SquadScores s = squad_scores(
        exam_.examples,
        squad_predictions(exam_.examples, *exam_.features, logits, *exam_.tokenizer, o),
        c_.data.squad_2);
    std::vector<std::pair<std::string, double>> found{{"exact_match", s.exact}, {"f1", s.f1}};
    if (s.no_answer_total == 0) return found;
    found.insert(found.end(), {{"has_answer_exact_match", s.has_answer_exact},
                               {"has_answer_f1", s.has_answer_f1},
                               {"no_answer_exact_match", s.no_answer_exact},
                               {"no_answer_f1", s.no_answer_f1}});
    return found;
  }

  const Config& c_;
  const EncoderExam& exam_;
  int64_t right_ = 0, counted_ = 0;              // classes
  std::vector<std::vector<float>> start_, end_;  // of each feature
};

// The labels of both heads that count, in all samples of pre-training.
std::array<int64_t, 2> counted_labels(const EncoderSource& source) {
  std::array<int64_t, 2> counted{};
  EncoderSample sample;
  for (int64_t n = 0; n < source.samples_per_epoch(); ++n) {
    source.sample(n, &sample);
    counted[0] += static_cast<int64_t>(sample.masked_labels.size());
    counted[1] += sample.next_sentence >= 0 ? 1 : 0;
  }
  return counted;
}

}  // namespace

EncoderEvaluation evaluate_encoder(const Config& c, const EncoderExam& exam, Stream& stream) {
  ParameterTable table;
  register_model(c.model, &table);
  table.layout(stream, c.compute_type());
  load_model_weights(c.model_dir, c.model, ParameterState(table), stream);
  const Compute compute(stream, compute_options(c));
  const auto model =
      c.reference ? make_reference(c, table, compute) : make_model(c, table, compute);
  const auto set = model->make_activations();
  Arena arena(stream);
  auto* state = static_cast<StepState*>(
      arena.make(DType::u8, {sizeof(StepState)}, "result of an evaluation").data);
  stream.fill_zero(state, sizeof(StepState));
  EncoderUpload upload(c, stream, 1);
  const FeedOptions options = feed_options(c, stream);
  Answers answers(c, exam);
  EncoderEvaluation result;
  result.samples = exam.source->samples_per_epoch();
  const bool pretraining = c.model.task == Task::pretraining;
  const auto counted = pretraining ? counted_labels(*exam.source) : std::array<int64_t, 2>{};
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t first = 0; first < result.samples; first += c.micro_batch) {
    const int64_t rows = std::min(c.micro_batch, result.samples - first);
    EncoderBatch host;
    EncoderArrays arrays;
    Batch batch;
    fill_batch(*exam.source, first, rows, c.sequence, 0, &host);
    lay_out(host, c.model, options, &arrays);
    upload.put(arrays, &batch);
    double weight = static_cast<double>(rows) / static_cast<double>(result.samples);
    if (pretraining) {
      // Every label counts alike, in whichever micro batch it is.
      batch.counted = counted[0];
      batch.counted_second = counted[1];
      weight = 1;
    }
    model->evaluate(batch, {weight, {}, state}, *set);
    result.tokens += arrays.real_tokens;
    if (model->logits().defined()) answers.take(arrays, fetch(model->logits(), stream));
    stream.synchronize();
  }
  StepState end{};
  stream.copy(&end, state, sizeof end);
  stream.synchronize();
  result.loss = end.loss_sum;
  result.metrics = answers.metrics();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return result;
}

}  // namespace tally::train

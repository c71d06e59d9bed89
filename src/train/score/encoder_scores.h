// Scores of an encoder's answers: sums over samples, which add up over processes, and the metrics
// that follow from them.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "src/config/config.h"
#include "src/train/feed/encoder_data.h"

namespace tally::train {

// The scores by name: accuracy (a share); exact_match and f1 (percent) with those of the questions
// that have an answer and of those that have none.
using Metrics = std::vector<std::pair<std::string, double>>;

struct EvaluationSums {
  enum Field : size_t {
    samples,
    tokens,
    labels,  // classes that count
    right,   // right answers among them
    answered,
    answered_exact,
    answered_f1,
    unanswered,
    unanswered_exact,
    unanswered_f1,
    fields
  };
  std::array<double, fields> values{};

  double& operator[](Field field) { return values[field]; }
  double operator[](Field field) const { return values[field]; }
};

// Empty where the task has none, or where no label counts.
Metrics metrics_of(const EvaluationSums& sums, Task task);

// Samples [begin, end) of an evaluation.
struct SampleRange {
  int64_t begin = 0, end = 0;
  int64_t count() const { return end - begin; }
};

// The samples of process `rank` of `size`: whole micro batches, so that every micro batch is the
// same for any number of processes. `whole_questions`: a range begins and ends between two
// questions of SQuAD, whose windows are neighbours.
SampleRange samples_of_rank(const EncoderExam& exam, int64_t micro_batch, int rank, int size,
                            bool whole_questions);

// The answers to the samples of a range. Samples are taken in any order, each once.
class EncoderScores {
 public:
  // `config` and `exam` outlive it. The range of a task with questions begins and ends between two.
  EncoderScores(const Config& config, const EncoderExam& exam, const SampleRange& range);

  // Classification: the class that the model gives to a sample, and the right one (negative: none).
  // `scores`: the probability of each class, for the predictions; null: not asked for.
  void take_class(int64_t sample, int32_t prediction, int32_t label, const float* scores);
  // Question answering: the logits of all tokens of a window, as many as the sample has.
  void take_span(int64_t sample, const float* start, const float* end);

  // Adds what the answers are worth.
  void score(EvaluationSums* sums);
  // The predictions of this range, after score(). Classification: a JSON object a line, with the
  // scores by the classes' names, or in their order where they have none. SQuAD: one
  // JSON object of the answers by their questions' names.
  std::string predictions() const;

 private:
  void score_questions(EvaluationSums* sums);
  // A class, and the scores of a sample of the range, for predictions().
  nlohmann::ordered_json class_name(int32_t number) const;
  nlohmann::ordered_json class_scores(size_t at) const;

  const Config& config_;
  const EncoderExam& exam_;
  const SampleRange range_;
  std::vector<int32_t> classes_, labels_;        // [range]
  std::vector<float> probabilities_;             // [range, classes]; empty: not asked for
  std::vector<std::vector<float>> start_, end_;  // [range] of each window
  std::vector<std::pair<std::string, std::string>> answers_;
};

// One file of what predictions() gave in each process, in the order of their ranges.
std::string joined_predictions(const std::vector<std::string>& parts, Task task);

}  // namespace tally::train

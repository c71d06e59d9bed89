// Answers in SQuAD's paragraphs from a model's logits, as run_squad.py of google-research/bert
// makes them, and their scores, as SQuAD's evaluation scripts compute them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/data/encoders/squad.h"

namespace tally::train {

struct SquadPredictionOptions {
  int64_t n_best = 20;                 // --n-best-size
  int64_t longest_answer = 30;         // --max-answer-length, tokens
  bool version_2 = false;              // "no answer" is possible
  double null_score_difference = 0.0;  // --null-score-diff-threshold
};

// The logits of a feature's tokens, of which there are as many as feature.ids; padding may follow.
struct SquadLogits {
  const float* start = nullptr;
  const float* end = nullptr;
};

struct SquadAnswerScore {
  std::string text;  // empty: no answer
  double probability = 0, start_logit = 0, end_logit = 0;
};

// The answers to one question.
struct SquadPrediction {
  std::string text;                      // empty: no answer
  std::vector<SquadAnswerScore> n_best;  // the best first
  // 2.0: score of "no answer" less that of the best answer; infinite where no window has one.
  double null_score_difference = 0;
};

// Predictions of all examples, in order. logits[n] are those of features[n].
std::vector<SquadPrediction> squad_predictions(const std::vector<SquadExample>& examples,
                                               const std::vector<SquadFeature>& features,
                                               const std::vector<SquadLogits>& logits,
                                               const WordPieceTokenizer& tokenizer,
                                               const SquadPredictionOptions& options);

// The part of `original` (words of the paragraph, joined by blanks) that `predicted` (normalized
// text of pieces) is: characters are aligned one by one, without blanks, where both have as many.
// All of `original` where the alignment fails.
std::string squad_final_text(const std::string& predicted, const std::string& original,
                             const BertWordRules& rules);

// Lower case, without ASCII punctuation, without the words a, an and the, single blanks.
std::string normalize_squad_answer(const std::string& text);

struct SquadScores {
  double exact = 0, f1 = 0;  // percent of all questions
  int64_t total = 0;
  // 2.0: the same of the questions that have an answer, and of those that have none.
  double has_answer_exact = 0, has_answer_f1 = 0, no_answer_exact = 0, no_answer_f1 = 0;
  int64_t has_answer_total = 0, no_answer_total = 0;
  // 2.0: the best that any threshold for null_score_difference gives, and that threshold.
  double best_exact = 0, best_exact_threshold = 0, best_f1 = 0, best_f1_threshold = 0;
};

// A prediction's score is the highest over the question's answers. F1 is that of the bags of words
// of normalized texts. Rules of version 1.1 or 2.0: in 2.0 an answer that normalization leaves
// empty does not count, and "no answer" is right where none is left.
SquadScores squad_scores(const std::vector<SquadExample>& examples,
                         const std::vector<SquadPrediction>& predictions, bool version_2);

}  // namespace tally::train

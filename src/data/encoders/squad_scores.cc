// Exact match and F1 as SQuAD's evaluation scripts compute them.
#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <unordered_map>

#include "src/data/encoders/squad_predictions.h"
#include "src/data/text/unicode_text.h"

namespace tally::train {
namespace {

struct Score {
  double exact = 0, f1 = 0;
};

bool is_punctuation(char32_t c) {  // Python's string.punctuation
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
         (c >= 123 && c <= 126);
}

double f1_of(const std::vector<std::string>& predicted, const std::vector<std::string>& answer,
             bool version_2) {
  if (version_2 && (predicted.empty() || answer.empty()))
    return predicted.empty() && answer.empty() ? 1 : 0;
  std::unordered_map<std::string, int64_t> left;
  for (const std::string& word : answer) ++left[word];
  int64_t same = 0;
  for (const std::string& word : predicted) {
    const auto found = left.find(word);
    if (found == left.end() || found->second == 0) continue;
    --found->second;
    ++same;
  }
  if (same == 0) return 0;
  const double precision = static_cast<double>(same) / static_cast<double>(predicted.size());
  const double recall = static_cast<double>(same) / static_cast<double>(answer.size());
  return 2 * precision * recall / (precision + recall);
}

bool has_answer(const SquadExample& example) {
  return !example.answers.empty();
}

Score score_of(const SquadExample& example, const std::string& prediction, bool version_2) {
  std::vector<std::string> answers;
  for (const SquadAnswer& answer : example.answers) {
    std::string text = normalize_squad_answer(answer.text);
    if (!version_2 || !text.empty()) answers.push_back(std::move(text));
  }
  if (version_2 && answers.empty()) answers.emplace_back();
  const std::string predicted = normalize_squad_answer(prediction);
  Score best;
  for (const std::string& answer : answers) {
    best.exact = std::max(best.exact, predicted == answer ? 1.0 : 0.0);
    best.f1 =
        std::max(best.f1, f1_of(split_at_space(predicted), split_at_space(answer), version_2));
  }
  return best;
}

// Best score over the thresholds above which "no answer" is taken, by the evaluation of 2.0: from
// "no answer" for all questions, answers are taken one after the other, the surest first.
void best_threshold(const std::vector<SquadExample>& examples,
                    const std::vector<SquadPrediction>& predictions,
                    const std::vector<double>& scores, double* best, double* threshold) {
  std::vector<size_t> order(examples.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return predictions[a].null_score_difference < predictions[b].null_score_difference;
  });
  double current = 0;
  for (const SquadExample& example : examples) current += has_answer(example) ? 0 : 1;
  *best = current;
  *threshold = 0;
  for (const size_t i : order) {
    if (has_answer(examples[i])) {
      current += scores[i];
    } else if (!predictions[i].text.empty()) {
      current -= 1;
    }
    if (current <= *best) continue;
    *best = current;
    *threshold = predictions[i].null_score_difference;
  }
  *best *= 100.0 / static_cast<double>(examples.size());
}

}  // namespace

std::string normalize_squad_answer(const std::string& text) {
  std::u32string kept;
  for (const char32_t c : to_characters(lower_of(text))) {
    if (!is_punctuation(c)) kept.push_back(c);
  }
  // Articles are whole runs of characters of words.
  std::u32string rest;
  for (size_t begin = 0; begin < kept.size();) {
    size_t end = begin;
    while (end < kept.size() && is_word_character(kept[end])) ++end;
    const std::u32string run = kept.substr(begin, end - begin);
    rest += run == U"a" || run == U"an" || run == U"the" ? U" " : run;
    if (end < kept.size()) rest.push_back(kept[end++]);
    begin = end;
  }
  std::string out;
  for (const std::string& word : split_at_space(to_utf8(rest)))
    out += (out.empty() ? "" : " ") + word;
  return out;
}

SquadScores squad_scores(const std::vector<SquadExample>& examples,
                         const std::vector<SquadPrediction>& predictions, bool version_2) {
  if (predictions.size() != examples.size() || examples.empty())
    throw std::invalid_argument("squad_scores: every example needs a prediction");
  SquadScores s;
  std::vector<double> exact, f1;
  for (size_t i = 0; i < examples.size(); ++i) {
    const Score score = score_of(examples[i], predictions[i].text, version_2);
    exact.push_back(score.exact);
    f1.push_back(score.f1);
    const bool has = has_answer(examples[i]);
    (has ? s.has_answer_exact : s.no_answer_exact) += score.exact;
    (has ? s.has_answer_f1 : s.no_answer_f1) += score.f1;
    ++(has ? s.has_answer_total : s.no_answer_total);
  }
  s.total = static_cast<int64_t>(examples.size());
  const auto percent = [](double sum, int64_t count) {
    return count > 0 ? 100.0 * sum / static_cast<double>(count) : 0.0;
  };
  s.exact = percent(s.has_answer_exact + s.no_answer_exact, s.total);
  s.f1 = percent(s.has_answer_f1 + s.no_answer_f1, s.total);
  s.has_answer_exact = percent(s.has_answer_exact, s.has_answer_total);
  s.has_answer_f1 = percent(s.has_answer_f1, s.has_answer_total);
  s.no_answer_exact = percent(s.no_answer_exact, s.no_answer_total);
  s.no_answer_f1 = percent(s.no_answer_f1, s.no_answer_total);
  if (!version_2) return s;
  best_threshold(examples, predictions, exact, &s.best_exact, &s.best_exact_threshold);
  best_threshold(examples, predictions, f1, &s.best_f1, &s.best_f1_threshold);
  return s;
}

}  // namespace tally::train

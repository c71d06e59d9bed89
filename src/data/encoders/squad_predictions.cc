#include "src/data/encoders/squad_predictions.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <unordered_set>

#include "src/data/text/unicode_text.h"

namespace tally::train {
namespace {

// A span of tokens of a feature; begin 0: no answer.
struct Span {
  size_t feature = 0, begin = 0, end = 0;
  double start_logit = 0, end_logit = 0;
  double score() const { return start_logit + end_logit; }
};

std::vector<size_t> best_positions(const float* logits, size_t count, int64_t n_best) {
  std::vector<size_t> positions(count);
  std::iota(positions.begin(), positions.end(), size_t{0});
  const size_t kept = std::min(count, static_cast<size_t>(n_best));
  // The first of equals first, as a stable sort has them.
  std::partial_sort(
      positions.begin(), positions.begin() + static_cast<std::ptrdiff_t>(kept), positions.end(),
      [&](size_t a, size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  positions.resize(kept);
  return positions;
}

class Predictor {
 public:
  Predictor(const std::vector<SquadFeature>& features, const std::vector<SquadLogits>& logits,
            const WordPieceTokenizer& tokenizer, const SquadPredictionOptions& options)
      : features_(features), logits_(logits), tokenizer_(tokenizer), options_(options) {}

  // `begin`, `end`: the features of the example.
  SquadPrediction predict(const SquadExample& example, size_t begin, size_t end) {
    spans_.clear();
    null_ = Span{};
    double null_score = 1e6;  // more than any
    for (size_t f = begin; f < end; ++f) {
      const double score = static_cast<double>(logits_[f].start[0]) + logits_[f].end[0];
      if (score < null_score) {
        null_score = score;
        null_ = {f, 0, 0, logits_[f].start[0], logits_[f].end[0]};
      }
      add_spans(f);
    }
    if (options_.version_2) spans_.push_back(null_);
    std::stable_sort(spans_.begin(), spans_.end(),
                     [](const Span& a, const Span& b) { return a.score() > b.score(); });
    SquadPrediction prediction;
    choose(example, &prediction.n_best);
    weigh(&prediction.n_best);
    decide(null_score, &prediction);
    return prediction;
  }

 private:
  void add_spans(size_t f) {
    const SquadFeature& feature = features_[f];
    const SquadLogits& logits = logits_[f];
    const size_t count = feature.ids.size(), window = static_cast<size_t>(feature.window_begin);
    const auto inside = [&](size_t position) {
      return position >= window && position < window + feature.word_of.size();
    };
    const std::vector<size_t> starts = best_positions(logits.start, count, options_.n_best);
    const std::vector<size_t> ends = best_positions(logits.end, count, options_.n_best);
    for (const size_t start : starts) {
      if (!inside(start) || feature.most_context[start - window] == 0) continue;
      for (const size_t end : ends) {
        if (!inside(end) || end < start ||
            static_cast<int64_t>(end - start + 1) > options_.longest_answer)
          continue;
        spans_.push_back({f, start, end, logits.start[start], logits.end[end]});
      }
    }
  }

  void choose(const SquadExample& example, std::vector<SquadAnswerScore>* n_best) const {
    std::unordered_set<std::string> seen;
    for (const Span& span : spans_) {
      if (static_cast<int64_t>(n_best->size()) >= options_.n_best) break;
      const std::string text = span.begin > 0 ? text_of(example, span) : "";
      if (!seen.insert(text).second && span.begin > 0) continue;
      n_best->push_back({text, 0, span.start_logit, span.end_logit});
    }
    if (options_.version_2 && seen.count("") == 0)
      n_best->push_back({"", 0, null_.start_logit, null_.end_logit});
    if (n_best->empty()) n_best->push_back({"empty", 0, 0, 0});
  }

  std::string text_of(const SquadExample& example, const Span& span) const {
    const SquadFeature& feature = features_[span.feature];
    std::string pieces;
    for (size_t i = span.begin; i <= span.end; ++i) {
      if (i > span.begin) pieces += ' ';
      pieces += tokenizer_.piece(feature.ids[i]);
    }
    for (const char* mark : {" ##", "##"}) {
      const std::string part = mark;
      for (size_t at = 0; (at = pieces.find(part, at)) != std::string::npos;)
        pieces.erase(at, part.size());
    }
    std::string predicted, original;
    for (const std::string& word : split_at_space(pieces))
      predicted += (predicted.empty() ? "" : " ") + word;
    const auto window = static_cast<size_t>(feature.window_begin);
    const auto first = static_cast<size_t>(feature.word_of[span.begin - window]);
    const auto last = static_cast<size_t>(feature.word_of[span.end - window]);
    for (size_t word = first; word <= last; ++word)
      original += (word == first ? "" : " ") + example.paragraph->words[word];
    return squad_final_text(predicted, original, tokenizer_.rules());
  }

  static void weigh(std::vector<SquadAnswerScore>* n_best) {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (const SquadAnswerScore& a : *n_best) most = std::max(most, a.start_logit + a.end_logit);
    for (SquadAnswerScore& a : *n_best)
      sum += a.probability = std::exp(a.start_logit + a.end_logit - most);
    for (SquadAnswerScore& a : *n_best) a.probability /= sum;
  }

  void decide(double null_score, SquadPrediction* prediction) const {
    if (!options_.version_2) {
      prediction->text = prediction->n_best[0].text;
      return;
    }
    const auto best = std::find_if(prediction->n_best.begin(), prediction->n_best.end(),
                                   [](const SquadAnswerScore& a) { return !a.text.empty(); });
    if (best == prediction->n_best.end()) {
      prediction->null_score_difference = std::numeric_limits<double>::infinity();
      return;
    }
    prediction->null_score_difference = null_score - best->start_logit - best->end_logit;
    if (prediction->null_score_difference <= options_.null_score_difference)
      prediction->text = best->text;
  }

  const std::vector<SquadFeature>& features_;
  const std::vector<SquadLogits>& logits_;
  const WordPieceTokenizer& tokenizer_;
  const SquadPredictionOptions& options_;
  std::vector<Span> spans_;
  Span null_;
};

// The positions of the characters that are no blanks.
std::vector<size_t> solid_positions(const std::u32string& text) {
  std::vector<size_t> positions;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != ' ') positions.push_back(i);
  }
  return positions;
}

}  // namespace

std::string squad_final_text(const std::string& predicted, const std::string& original,
                             const BertWordRules& rules) {
  std::string joined;
  for (const std::string& word : bert_words(original, rules))
    joined += (joined.empty() ? "" : " ") + word;
  const std::u32string text = to_characters(joined), wanted = to_characters(predicted);
  const std::u32string source = to_characters(original);
  const size_t at = text.find(wanted);
  if (at == std::u32string::npos || wanted.empty()) return original;
  const std::vector<size_t> positions = solid_positions(text), sources = solid_positions(source);
  if (positions.size() != sources.size()) return original;
  const auto source_of = [&](size_t position) {
    const auto found = std::lower_bound(positions.begin(), positions.end(), position);
    return found == positions.end() || *found != position
               ? std::u32string::npos
               : sources[static_cast<size_t>(found - positions.begin())];
  };
  const size_t begin = source_of(at), end = source_of(at + wanted.size() - 1);
  if (begin == std::u32string::npos || end == std::u32string::npos) return original;
  return to_utf8(std::u32string_view(source).substr(begin, end - begin + 1));
}

std::vector<SquadPrediction> squad_predictions(const std::vector<SquadExample>& examples,
                                               const std::vector<SquadFeature>& features,
                                               const std::vector<SquadLogits>& logits,
                                               const WordPieceTokenizer& tokenizer,
                                               const SquadPredictionOptions& options) {
  if (logits.size() != features.size() || options.n_best < 1)
    throw std::invalid_argument("squad_predictions: every feature needs logits");
  Predictor predictor(features, logits, tokenizer, options);
  std::vector<SquadPrediction> predictions;
  size_t begin = 0;
  for (size_t i = 0; i < examples.size(); ++i) {
    size_t end = begin;
    while (end < features.size() && features[end].example == static_cast<int64_t>(i)) ++end;
    predictions.push_back(predictor.predict(examples[i], begin, end));
    begin = end;
  }
  return predictions;
}

}  // namespace tally::train

#include "src/train/score/encoder_scores.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/data/encoders/squad_predictions.h"

namespace tally::train {
namespace {

using Json = nlohmann::ordered_json;
using Sums = EvaluationSums;

// Names may hold bytes that are not UTF-8.
std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', false, Json::error_handler_t::replace);
}

double share(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

Metrics squad_metrics(const Sums& s) {
  const double questions = s[Sums::answered] + s[Sums::unanswered];
  if (questions == 0) return {};
  const auto percent = [](double part, double whole) { return 100 * share(part, whole); };
  Metrics found{
      {"exact_match", percent(s[Sums::answered_exact] + s[Sums::unanswered_exact], questions)},
      {"f1", percent(s[Sums::answered_f1] + s[Sums::unanswered_f1], questions)}};
  if (s[Sums::unanswered] == 0) return found;
  if (s[Sums::answered] > 0)
    found.insert(found.end(),
                 {{"has_answer_exact_match", percent(s[Sums::answered_exact], s[Sums::answered])},
                  {"has_answer_f1", percent(s[Sums::answered_f1], s[Sums::answered])}});
  found.insert(found.end(),
               {{"no_answer_exact_match", percent(s[Sums::unanswered_exact], s[Sums::unanswered])},
                {"no_answer_f1", percent(s[Sums::unanswered_f1], s[Sums::unanswered])}});
  return found;
}

}  // namespace

Metrics metrics_of(const EvaluationSums& sums, Task task) {
  if (task == Task::question_answering) return squad_metrics(sums);
  if (task != Task::classification || sums[Sums::labels] == 0) return {};
  return {{"accuracy", sums[Sums::right] / sums[Sums::labels]}};
}

SampleRange samples_of_rank(const EncoderExam& exam, int64_t micro_batch, int rank, int size,
                            bool whole_questions) {
  const int64_t samples = exam.source->samples_per_epoch();
  const int64_t micro_batches = (samples + micro_batch - 1) / micro_batch;
  const auto border = [&](int64_t number) {
    int64_t at = std::min(samples, micro_batches * number / size * micro_batch);
    if (!whole_questions) return at;
    const std::vector<SquadFeature>& windows = *exam.features;
    const auto question = [&](int64_t n) { return windows[static_cast<size_t>(n)].example; };
    while (at > 0 && at < samples && question(at) == question(at - 1)) ++at;
    return at;
  };
  return {border(rank), border(rank + 1)};
}

EncoderScores::EncoderScores(const Config& config, const EncoderExam& exam,
                             const SampleRange& range)
    : config_(config), exam_(exam), range_(range) {
  const auto count = static_cast<size_t>(range.count());
  if (config.model.task == Task::classification) {
    classes_.resize(count, -1);
    labels_.resize(count, -1);
    if (!config.predictions_path.empty())
      probabilities_.resize(count * static_cast<size_t>(config.model.classes));
  } else if (config.model.task == Task::question_answering) {
    start_.resize(count);
    end_.resize(count);
  }
}

void EncoderScores::take_class(int64_t sample, int32_t prediction, int32_t label,
                               const float* scores) {
  const auto at = static_cast<size_t>(sample - range_.begin);
  classes_[at] = prediction;
  labels_[at] = label;
  if (!scores) return;
  const int64_t classes = config_.model.classes;
  std::copy(scores, scores + classes,
            probabilities_.begin() + static_cast<std::ptrdiff_t>(at) * classes);
}

void EncoderScores::take_span(int64_t sample, const float* start, const float* end) {
  const auto at = static_cast<size_t>(sample - range_.begin);
  const auto tokens =
      static_cast<std::ptrdiff_t>((*exam_.features)[static_cast<size_t>(sample)].ids.size());
  start_[at].assign(start, start + tokens);
  end_[at].assign(end, end + tokens);
}

void EncoderScores::score(EvaluationSums* sums) {
  if (config_.model.task == Task::question_answering) return score_questions(sums);
  for (size_t n = 0; n < labels_.size(); ++n) {
    if (labels_[n] < 0) continue;
    (*sums)[Sums::labels] += 1;
    (*sums)[Sums::right] += classes_[n] == labels_[n] ? 1 : 0;
  }
}

void EncoderScores::score_questions(EvaluationSums* sums) {
  if (range_.count() == 0) return;
  // A question without a window, of an empty paragraph, goes with the one before.
  const std::vector<SquadFeature>& all = *exam_.features;
  const auto window = [&](int64_t n) { return all.begin() + n; };
  const int64_t first = range_.begin == 0 ? 0 : window(range_.begin)->example;
  const int64_t last = range_.end == static_cast<int64_t>(all.size())
                           ? static_cast<int64_t>(exam_.examples.size())
                           : window(range_.end)->example;
  std::vector<SquadFeature> features(window(range_.begin), window(range_.end));
  const std::vector<SquadExample> examples(exam_.examples.begin() + first,
                                           exam_.examples.begin() + last);
  std::vector<SquadLogits> logits;
  for (size_t n = 0; n < features.size(); ++n) {
    features[n].example -= first;
    logits.push_back({start_[n].data(), end_[n].data()});
  }
  SquadPredictionOptions o;
  o.version_2 = config_.data.squad_2;
  const auto predictions = squad_predictions(examples, features, logits, *exam_.tokenizer, o);
  const SquadScores s = squad_scores(examples, predictions, config_.data.squad_2);
  const auto add = [&](Sums::Field field, double value) { (*sums)[field] += value; };
  const auto has = static_cast<double>(s.has_answer_total);
  const auto none = static_cast<double>(s.no_answer_total);
  // Whole questions are right or wrong: the percentages lead back to their number.
  add(Sums::answered, has);
  add(Sums::answered_exact, std::round(s.has_answer_exact * has / 100));
  add(Sums::answered_f1, s.has_answer_f1 * has / 100);
  add(Sums::unanswered, none);
  add(Sums::unanswered_exact, std::round(s.no_answer_exact * none / 100));
  add(Sums::unanswered_f1, s.no_answer_f1 * none / 100);
  for (size_t n = 0; n < examples.size(); ++n)
    answers_.emplace_back(examples[n].id, predictions[n].text);
}

Json EncoderScores::class_name(int32_t number) const {
  const auto at = static_cast<size_t>(number);
  return at < exam_.classes.size() ? Json(exam_.classes[at]) : Json(number);
}

Json EncoderScores::class_scores(size_t at) const {
  const auto classes = static_cast<size_t>(config_.model.classes);
  const bool named = exam_.classes.size() == classes;
  Json scores = named ? Json::object() : Json::array();
  for (size_t k = 0; k < classes; ++k) {
    // An f32 has 7 digits.
    const double score = std::round(1e7 * probabilities_[at * classes + k]) / 1e7;
    if (named) {
      scores[exam_.classes[k]] = score;
    } else {
      scores.push_back(score);
    }
  }
  return scores;
}

std::string EncoderScores::predictions() const {
  if (config_.model.task == Task::question_answering) {
    Json all = Json::object();
    for (const auto& [id, text] : answers_) all[id] = text;
    return json_text(all, -1);
  }
  std::string lines;
  for (size_t n = 0; n < classes_.size(); ++n)
    lines += json_text({{"sample", range_.begin + static_cast<int64_t>(n)},
                        {"prediction", class_name(classes_[n])},
                        {"label", labels_[n] < 0 ? Json(nullptr) : class_name(labels_[n])},
                        {"scores", class_scores(n)}},
                       -1) +
             "\n";
  return lines;
}

std::string joined_predictions(const std::vector<std::string>& parts, Task task) {
  std::string lines;
  Json all = Json::object();
  for (const std::string& part : parts) {
    if (task != Task::question_answering) {
      lines += part;
    } else if (!part.empty()) {
      const Json answers = Json::parse(part);
      for (const auto& [id, text] : answers.items()) all[id] = text;
    }
  }
  return task == Task::question_answering ? json_text(all, 4) + "\n" : lines;
}

}  // namespace tally::train

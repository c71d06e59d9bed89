// The program of the Python tests of encoders' data. Prints one JSON object a line; an error is one
// line on standard error and exit code 2.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/data/commands/prepare.h"
#include "src/data/encoders/bert_shards.h"
#include "src/data/encoders/classification.h"
#include "src/data/encoders/squad_predictions.h"
#include "src/data/tokenizers/wordpiece.h"

using namespace tally::train;
using Json = nlohmann::json;

namespace {

Json json_of(const EncoderSample& s) {
  return {{"ids", s.ids},
          {"types", s.token_types},
          {"positions", s.masked_positions},
          {"labels", s.masked_labels},
          {"next", s.next_sentence},
          {"label", s.label},
          {"start", s.start},
          {"end", s.end}};
}

void print(const Json& json) {
  fmt::print("{}\n", json.dump());
}

void print_samples(const EncoderSource& source, int64_t first, int64_t count) {
  print({{"samples", source.samples_per_epoch()},
         {"sequence", source.sequence()},
         {"max_predictions", source.max_predictions()}});
  EncoderSample sample;
  for (int64_t i = first; i < first + count; ++i) {
    source.sample(i, &sample);
    print(json_of(sample));
  }
}

// shards VOCAB fixed|dynamic shuffled|ordered SEED FIRST COUNT PATH...: COUNT -1: an epoch
void shards(const std::vector<std::string>& a) {
  const auto bert = make_wordpiece_tokenizer(a[0], true);
  BertShardOptions options;
  options.masking.vocabulary = bert->vocabulary();
  options.masking.tokens = bert->tokens();
  options.mode = a[1] == "dynamic" ? Masking::dynamic : Masking::fixed;
  options.shuffle = a[2] == "shuffled";
  options.seed = std::stoull(a[3]);
  std::vector<std::string> files;
  for (size_t i = 6; i < a.size(); ++i) {
    for (const std::string& file : bert_shard_files(a[i], true)) files.push_back(file);
  }
  const auto source = open_bert_shards(files, options);
  const int64_t count = std::stoll(a[5]);
  print_samples(*source, std::stoll(a[4]), count < 0 ? source->samples_per_epoch() : count);
}

struct Squad {
  // VOCAB FILE training|evaluation 1|2 SEQUENCE STRIDE QUESTION
  explicit Squad(const std::vector<std::string>& a)
      : bert(make_wordpiece_tokenizer(a[0], true)),
        version_2(a[3] == "2"),
        file(read_squad(a[1], a[2] == "training", version_2)),
        features(make_squad_features(file.examples, *bert,
                                     {std::stoll(a[4]), std::stoll(a[5]), std::stoll(a[6])},
                                     a[2] == "training")) {}
  std::unique_ptr<WordPieceTokenizer> bert;
  bool version_2;
  SquadFile file;
  std::vector<SquadFeature> features;
};

void squad_features(const std::vector<std::string>& a) {
  const Squad squad(a);
  Json ids = Json::array();
  for (const SquadExample& example : squad.file.examples) ids.push_back(example.id);
  print({{"examples", ids}, {"left_out", squad.file.left_out}});
  for (const SquadFeature& f : squad.features) {
    print({{"example", f.example},
           {"ids", f.ids},
           {"types", f.token_types},
           {"window", f.window_begin},
           {"words", f.word_of},
           {"most_context", f.most_context},
           {"start", f.start},
           {"end", f.end}});
  }
}

Json scores_of(const SquadScores& s) {
  return {{"exact", s.exact},
          {"f1", s.f1},
          {"total", s.total},
          {"HasAns_exact", s.has_answer_exact},
          {"HasAns_f1", s.has_answer_f1},
          {"HasAns_total", s.has_answer_total},
          {"NoAns_exact", s.no_answer_exact},
          {"NoAns_f1", s.no_answer_f1},
          {"NoAns_total", s.no_answer_total},
          {"best_exact", s.best_exact},
          {"best_exact_thresh", s.best_exact_threshold},
          {"best_f1", s.best_f1},
          {"best_f1_thresh", s.best_f1_threshold}};
}

// As squad-features, then N_BEST LONGEST THRESHOLD LOGITS (a file: [[starts, ends], ...])
void squad_predict(const std::vector<std::string>& a) {
  const Squad squad(a);
  std::ifstream in(a[10]);
  const auto numbers = Json::parse(in).get<std::vector<std::array<std::vector<float>, 2>>>();
  std::vector<SquadLogits> logits;
  for (const auto& pair : numbers) logits.push_back({pair[0].data(), pair[1].data()});
  SquadPredictionOptions options;
  options.version_2 = squad.version_2;
  options.n_best = std::stoll(a[7]);
  options.longest_answer = std::stoll(a[8]);
  options.null_score_difference = std::stod(a[9]);
  const auto all =
      squad_predictions(squad.file.examples, squad.features, logits, *squad.bert, options);
  for (size_t i = 0; i < all.size(); ++i) {
    Json n_best = Json::array();
    for (const SquadAnswerScore& n : all[i].n_best) {
      n_best.push_back({{"text", n.text},
                        {"probability", n.probability},
                        {"start_logit", n.start_logit},
                        {"end_logit", n.end_logit}});
    }
    print({{"id", squad.file.examples[i].id},
           {"text", all[i].text},
           {"n_best", n_best},
           {"null", all[i].null_score_difference}});
  }
  print(scores_of(squad_scores(squad.file.examples, all, squad.version_2)));
}

// FILE 1|2 PREDICTIONS NULL_DIFFERENCES: files of {id: text} and {id: number}
void squad_score(const std::vector<std::string>& a) {
  const bool version_2 = a[1] == "2";
  const SquadFile file = read_squad(a[0], false, version_2);
  std::ifstream texts_in(a[2]), differences_in(a[3]);
  const Json texts = Json::parse(texts_in), differences = Json::parse(differences_in);
  std::vector<SquadPrediction> predictions;
  for (const SquadExample& example : file.examples) {
    SquadPrediction p;
    p.text = texts[example.id];
    p.null_score_difference = differences[example.id];
    predictions.push_back(p);
  }
  print(scores_of(squad_scores(file.examples, predictions, version_2)));
}

// FILE csv|tsv|jsonl|auto COLUMN...: [[text, line, column], ...] a row
void table(const std::vector<std::string>& a) {
  const TableFormat format = a[1] == "csv"     ? TableFormat::csv
                             : a[1] == "tsv"   ? TableFormat::tsv
                             : a[1] == "jsonl" ? TableFormat::jsonl
                                               : TableFormat::automatic;
  for (const auto& row : read_table(a[0], format, {a.begin() + 2, a.end()})) {
    Json cells = Json::array();
    for (const TableCell& cell : row) cells.push_back({cell.text, cell.line, cell.column});
    print(cells);
  }
}

// VOCAB TRAINING EVALUATION SEQUENCE PAIR_COLUMN NAME...: the samples of EVALUATION, for a model that
// names its classes NAME...
void classify(const std::vector<std::string>& a) {
  const auto bert = make_wordpiece_tokenizer(a[0], true);
  LabelledTextOptions options;
  options.pair_column = a[4];
  const std::vector<std::string> names(a.begin() + 5, a.end());
  const LabelledTexts texts = read_labelled_texts(a[1], options);
  const std::vector<std::string> classes =
      names.empty() ? class_names(texts) : class_names(texts, names);
  print(classes);
  const auto source = make_classification_samples(read_labelled_texts(a[2], options), classes,
                                                  *bert, std::stoll(a[3]), false, 1);
  print_samples(*source, 0, source->samples_per_epoch());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "prepare") return prepare_main(argc - 1, argv + 1);
  const std::vector<std::string> arguments(argv + std::min(argc, 2), argv + argc);
  try {
    if (command == "shards") {
      shards(arguments);
    } else if (command == "squad-features") {
      squad_features(arguments);
    } else if (command == "squad-predict") {
      squad_predict(arguments);
    } else if (command == "table") {
      table(arguments);
    } else if (command == "classify") {
      classify(arguments);
    } else if (command == "squad-score") {
      squad_score(arguments);
    } else {
      return 3;
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
  return 0;
}

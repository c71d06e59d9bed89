#include "src/train/feed/encoder_data.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "src/checkpoint/model_config_file.h"
#include "src/config/reader_options.h"
#include "src/data/encoders/bert_shards.h"
#include "src/data/encoders/classification.h"
#include "src/data/encoders/squad.h"
#include "src/data/encoders/synthetic_samples.h"
#include "src/data/tokenizers/wordpiece.h"

namespace tally::train {
namespace {

using Source = std::shared_ptr<const EncoderSource>;

// The purpose of a split: training is shuffled.
struct Use {
  const char* name;
  const char* flag;
  bool training;
};
constexpr Use training{"training", "--data-path", true};
constexpr Use validation{"validation", "--valid-data-path", false};
constexpr Use test{"test", "--test-data-path", false};

// Opens one split's files.
class Opener {
 public:
  // `model`: the folder of the model that the run starts from; empty: none.
  Opener(const Config& c, const std::string& model) : c_(c) {
    if (!model.empty() && c.model.task == Task::classification) names_ = read_class_names(model);
    // --num-classes makes a new head.
    if (static_cast<int64_t>(names_.size()) != c.model.classes) names_.clear();
    if (c.data.mock || c.model.task == Task::pretraining) {
      if (!c.data.vocab_file.empty()) make_tokenizer();
      return;
    }
    if (c.data.vocab_file.empty())
      throw std::runtime_error(
          "--vocab-file: is missing: the text is tokenized with the model's vocab.txt");
    make_tokenizer();
  }

  Source open(const std::vector<std::string>& paths, const Use& use) {
    if (c_.data.mock) return random_tokens(use);
    if (c_.model.task == Task::pretraining) return shards(paths, use);
    if (paths.size() > 1)
      throw std::runtime_error(
          fmt::format("{}: names {} files, and this task reads one", use.flag, paths.size()));
    return c_.model.task == Task::classification ? texts(paths.front(), use)
                                                 : questions(paths.front(), use);
  }

  // Empty where classes are numbers.
  std::vector<std::string> classes() const {
    return classes_.empty() || classes_.front() == "0" ? std::vector<std::string>() : classes_;
  }
  const std::vector<std::string>& notes() const { return notes_; }
  // Rows of a new model's embedding that no token of --vocab-file has; empty: none. A stored
  // model's vocabulary is what it is.
  std::string unused_rows() const {
    const bool stored = !c_.load_hf_dir.empty() || !c_.load_dir.empty();
    if (stored || !tokenizer_ || tokenizer_->vocabulary() == c_.model.vocabulary) return "";
    return fmt::format(
        "--vocab-file: {} has {} tokens, and the model's vocabulary {}: --vocab-size {} makes "
        "them equal",
        c_.data.vocab_file, tokenizer_->vocabulary(), c_.model.vocabulary,
        tokenizer_->vocabulary());
  }

  // Questions may have several answers, or none.
  EncoderExam open_questions(const std::string& path) const {
    EncoderExam exam;
    exam.tokenizer = tokenizer_;
    exam.name = path;
    check_squad(path);
    exam.examples = read_squad(path, false, c_.data.squad_2).examples;
    for (const SquadExample& example : exam.examples)
      if (!c_.data.squad_2 && example.answers.empty())
        throw std::runtime_error(
            fmt::format("{}: the question \"{}\" has no answer, which those of SQuAD 2.0 alone may "
                        "have: give --version-2-with-negative",
                        path, example.id));
    exam.features = std::make_shared<const std::vector<SquadFeature>>(
        make_squad_features(exam.examples, *tokenizer_, squad_options(c_), false));
    if (exam.features->empty())
      throw std::runtime_error(fmt::format("{} has no question to evaluate on", path));
    exam.source = make_squad_samples(exam.features, c_.sequence, false, c_.seed);
    return exam;
  }

 private:
  void make_tokenizer() {
    tokenizer_ =
        make_wordpiece_tokenizer(c_.data.vocab_file, c_.data.tokenizer == "BertWordPieceLowerCase");
    if (tokenizer_->vocabulary() > c_.model.vocabulary)
      throw std::runtime_error(
          fmt::format("--vocab-file: {} has {} tokens, and the model's vocabulary {}: give "
                      "--vocab-size {}",
                      c_.data.vocab_file, tokenizer_->vocabulary(), c_.model.vocabulary,
                      tokenizer_->vocabulary()));
  }
  // The vocabulary's special tokens, else those of the published BERT models.
  BertTokens tokens() const {
    return tokenizer_ ? tokenizer_->tokens() : SyntheticOptions().tokens;
  }

  Source random_tokens(const Use& use) const {
    SyntheticOptions o;
    o.task = c_.model.task == Task::pretraining      ? SyntheticTask::pretraining
             : c_.model.task == Task::classification ? SyntheticTask::classification
                                                     : SyntheticTask::question_answering;
    o.lengths = LengthDistribution(c_.data.mock_lengths.empty() ? std::to_string(c_.sequence)
                                                                : c_.data.mock_lengths);
    if (o.lengths.greatest() > c_.sequence)
      throw std::runtime_error(
          fmt::format("--mock-lengths: has samples of {} tokens, more than --seq-length {}",
                      o.lengths.greatest(), c_.sequence));
    o.vocabulary = c_.model.vocabulary;
    if (o.vocabulary <= o.tokens.mask) o.tokens = {0, 1, 2, 3, 4};
    o.classes = c_.model.classes;
    o.samples = c_.data.mock_samples;
    o.masked_probability = c_.data.mask_probability;
    o.max_predictions = c_.data.max_predictions;
    o.seed = use.training ? c_.seed : c_.seed + 1;
    return make_synthetic_samples(o);
  }

  Source shards(const std::vector<std::string>& paths, const Use& use) const {
    std::vector<std::string> files;
    for (const std::string& path : paths)
      for (const std::string& file : bert_shard_files(path, use.training)) files.push_back(file);
    BertShardOptions o;
    o.masking.probability = c_.data.mask_probability;
    o.masking.max_predictions = c_.data.max_predictions;
    o.masking.vocabulary = c_.model.vocabulary;
    o.masking.tokens = tokens();
    o.mode = c_.data.dynamic_masking && use.training ? Masking::dynamic : Masking::fixed;
    o.shuffle = use.training;
    o.seed = c_.seed;
    return open_bert_shards(files, o);
  }

  // Classes are numbered as the model has them, else as in the training texts.
  Source texts(const std::string& path, const Use& use) {
    const LabelledTexts rows = read_labelled_texts(path, labelled_text_options(c_));
    if (!names_.empty()) {
      classes_ = class_names(rows, names_);
      if (classes_ != names_)
        notes_.push_back(
            fmt::format("the labels of {} are the numbers of the model's classes, which begin at "
                        "0 = \"{}\"",
                        path, names_.front()));
    } else if (use.training || classes_.empty()) {
      number_classes(rows, path, use);
    }
    int64_t cut = 0;
    Source samples = make_classification_samples(rows, classes_, *tokenizer_, c_.sequence,
                                                 use.training, c_.seed, &cut);
    if (cut > 0)
      notes_.push_back(fmt::format("{} of the {} texts of {} were cut at --seq-length {}", cut,
                                   rows.rows.size(), path, c_.sequence));
    return samples;
  }
  void number_classes(const LabelledTexts& rows, const std::string& path, const Use& use) {
    classes_ = class_names(rows);
    const auto count = static_cast<int64_t>(classes_.size());
    if (count > c_.model.classes) refuse_last_class(rows, use);
    if (classes().empty()) return;
    if (!use.training && count < c_.model.classes)
      throw std::runtime_error(fmt::format(
          "{}: {} has {} of the model's {} classes, and their numbers are not known: add the "
          "others, or number the labels from 0",
          use.flag, path, count, c_.model.classes));
    std::string list;
    for (size_t k = 0; k < std::min<size_t>(classes_.size(), 20); ++k)
      list += fmt::format("{}{} = \"{}\"", k == 0 ? "" : ", ", k, classes_[k]);
    notes_.push_back(fmt::format("the labels of {} are numbered in alphabetical order: {}{}", path,
                                 list, classes_.size() > 20 ? ", ..." : ""));
  }
  [[noreturn]] void refuse_last_class(const LabelledTexts& rows, const Use& use) const {
    const std::string& last = classes_.back();
    const ClassNumbers numbers(classes_);
    const auto row = std::find_if(rows.rows.begin(), rows.rows.end(), [&](const LabelledText& r) {
      return numbers.of(r.label) + 1 == static_cast<int64_t>(classes_.size());
    });
    throw std::runtime_error(fmt::format(
        "{}: the label \"{}\" makes {} classes, which count from 0, and the model has {}: {}",
        row->location, last, classes_.size(), c_.model.classes,
        use.training && c_.load_hf_dir.empty()
            ? fmt::format("give --num-classes {}", classes_.size())
            : "leave out the rows of other classes, or take a model that has them"));
  }

  // Throws for a table's name.
  static void check_squad(const std::string& path) {
    for (const char* ending : {".csv", ".tsv", ".csv.gz", ".tsv.gz"})
      if (path.ends_with(ending))
        throw std::runtime_error(fmt::format(
            "{} is a table, which --task classify reads: this task reads SQuAD's JSON", path));
  }
  Source questions(const std::string& path, const Use& use) {
    check_squad(path);
    const SquadFile file = read_squad(path, true, c_.data.squad_2);
    if (file.left_out > 0)
      notes_.push_back(fmt::format(
          "{} of the {} questions of {} were left out: their answer's text is not where "
          "the file says",
          file.left_out, file.left_out + static_cast<int64_t>(file.examples.size()), path));
    auto features = std::make_shared<const std::vector<SquadFeature>>(
        make_squad_features(file.examples, *tokenizer_, squad_options(c_), true));
    if (features->empty())
      throw std::runtime_error(fmt::format("{}: {} has no question", use.flag, path));
    return make_squad_samples(features, c_.sequence, use.training, c_.seed);
  }

  const Config& c_;
  std::shared_ptr<const WordPieceTokenizer> tokenizer_;
  std::vector<std::string> names_;    // the model's classes; empty: not known
  std::vector<std::string> classes_;  // the labels in the order of their numbers
  std::vector<std::string> notes_;
};

uint64_t hash_of_first_encoder_samples(const EncoderSource& source) {
  EncoderSample s;
  uint64_t hash = 0;
  for (int64_t k = 0; k < std::min<int64_t>(source.samples_per_epoch(), 32); ++k) {
    source.sample(k, &s);
    std::vector<int32_t> numbers{s.next_sentence, s.label, s.start, s.end};
    for (auto* part : {&s.ids, &s.masked_positions, &s.masked_labels, &numbers})
      hash = XXH3_64bits_withSeed(part->data(), part->size() * sizeof(int32_t), hash);
  }
  return hash;
}

void check_sample_length(const EncoderSource& source, const Config& c,
                         const std::vector<std::string>& paths, const Use& use) {
  if (source.sequence() <= c.sequence) return;
  throw std::runtime_error(fmt::format("{}: {} has samples of {} tokens: give --seq-length {}",
                                       use.flag, paths.empty() ? "--mock-data" : paths.front(),
                                       source.sequence(), source.sequence()));
}

Samples open_encoder_split(Opener* opener, const Config& c, const std::vector<std::string>& paths,
                           const Use& use, DataSources* data) {
  const Source source = opener->open(paths, use);
  check_sample_length(*source, c, paths, use);
  const std::string what =
      fmt::format("{} samples an epoch, first samples {:016x}", source->samples_per_epoch(),
                  hash_of_first_encoder_samples(*source));
  data->content += fmt::format("{}{}: {}", data->content.empty() ? "" : "; ", use.name, what);
  const std::string from = c.data.mock ? "random tokens (--mock-data)" : paths.front();
  data->description += fmt::format("{}{}{}: {} samples", data->description.empty() ? "" : "; ",
                                   use.training ? "" : fmt::format("{}: ", use.name), from,
                                   source->samples_per_epoch());
  return Samples(source);
}

// Opens the held-out samples of the run.
void open_held_out(Opener* opener, const Config& c, DataSources* data) {
  // A folder of shards may have files for evaluation.
  const bool same = !c.data.separate && (c.data.mock || c.model.task == Task::pretraining);
  const std::vector<std::string>& paths = same ? c.data.paths : c.data.validation.paths;
  if (!same && paths.empty() && c.data.test.paths.empty())
    throw std::runtime_error(
        "--valid-data-path: is missing: --eval-interval evaluates on it, with --train-data-path "
        "for training");
  if (same || !paths.empty())
    data->validation = open_encoder_split(opener, c, paths, validation, data);
  if (!c.data.test.paths.empty())
    data->test = open_encoder_split(opener, c, c.data.test.paths, test, data);
  // Exact match and F1 need all windows of a question, which whole files have.
  if (c.epochs == 0 || c.model.task != Task::question_answering) return;
  for (const auto& [samples, from] : {std::pair{&data->validation, &c.data.validation.paths},
                                      std::pair{&data->test, &c.data.test.paths}})
    if (*samples)
      samples->questions =
          std::make_shared<const EncoderExam>(opener->open_questions(from->front()));
}

}  // namespace

EncoderExam open_encoder_exam(const Config& c) {
  Opener opener(c, c.model_dir);
  if (c.model.task == Task::question_answering) return opener.open_questions(c.data.paths.front());
  EncoderExam exam;
  const Use all{"evaluation", "--data-path", false};
  exam.source = opener.open(c.data.paths, all);
  check_sample_length(*exam.source, c, c.data.paths, all);
  exam.name = c.data.mock ? "--mock-data" : c.data.paths.front();
  exam.classes = opener.classes();
  exam.notes = opener.notes();
  return exam;
}

DataSources open_encoder_data(const Config& c, const std::string& model) {
  DataSources data;
  Opener opener(c, model);
  if (!c.skip_train) data.train = open_encoder_split(&opener, c, c.data.paths, training, &data);
  if (!c.skip_train) data.classes = opener.classes();
  data.training_content = data.content;
  const bool files = !c.data.validation.paths.empty() || !c.data.test.paths.empty();
  if (c.evaluates() || (c.epochs > 0 && files)) open_held_out(&opener, c, &data);
  data.notes = opener.notes();
  if (const std::string unused = opener.unused_rows(); !unused.empty())
    data.notes.push_back(unused);
  return data;
}

}  // namespace tally::train

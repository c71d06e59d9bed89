#include "src/data/encoders/classification.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <stdexcept>
#include <string_view>

#include "src/data/text/text_input.h"
#include "src/data/text/unicode_text.h"
#include "src/data/tokens/order.h"

namespace tally::train {
namespace {

constexpr int64_t kMostClasses = 100000;

// The number that `label` writes, -1 where it is none.
int64_t whole_number(const std::string& label) {
  if (label.empty() || label.size() > 9 || label.find_first_not_of("0123456789") != label.npos ||
      (label.size() > 1 && label[0] == '0'))
    return -1;
  return std::stoll(label);
}

// A fraction with a point or a comma, a number with a sign or leading zeros, NaN: no name of a
// class.
bool looks_like_number(std::string label) {
  if (label.find_first_of("xXpP") != label.npos)
    return false;  // strtod() reads hexadecimal numbers
  std::replace(label.begin(), label.end(), ',', '.');
  char* end = nullptr;
  std::strtod(label.c_str(), &end);
  return end != label.c_str() && *end == 0;
}

bool has_blank_at_end(const std::string& label) {
  const std::u32string characters = to_characters(label);
  return is_python_space(characters.front()) || is_python_space(characters.back());
}

// The number of a class that a label writes where the class has no name, -1 where it writes none:
// transformers calls class 7 LABEL_7 then.
int64_t class_number(const std::string& label) {
  constexpr std::string_view prefix = "LABEL_";
  return whole_number(label.starts_with(prefix) ? label.substr(prefix.size()) : label);
}

// Throws where the row's label can be no class.
void check_label(const LabelledText& row) {
  if (row.label.empty()) throw BadInput(fmt::format("{}: this row has no label", row.location));
  if (has_blank_at_end(row.label))
    throw BadInput(fmt::format("{}: the label \"{}\" begins or ends with white space: remove it",
                               row.location, row.label));
  const int64_t number = class_number(row.label);
  if (number >= kMostClasses)
    throw BadInput(fmt::format(
        "{}: the label {} is too great for the number of a class: they begin at 0, and there are "
        "at most {}",
        row.location, row.label, kMostClasses));
  if (number < 0 && looks_like_number(row.label))
    throw BadInput(
        fmt::format("{}: the label {} is not the number of a class: classes count from 0, or have "
                    "words as names",
                    row.location, row.label));
}

std::vector<std::string> numbers_below(int64_t count) {
  std::vector<std::string> all;
  for (int64_t i = 0; i < count; ++i) all.push_back(std::to_string(i));
  return all;
}

// Cuts the longer of two texts until both have at most `room` tokens together.
// Returns whether it had to.
bool truncate_pair(size_t room, std::vector<int32_t>* a, std::vector<int32_t>* b) {
  if (a->size() + b->size() <= room) return false;
  while (a->size() + b->size() > room) (a->size() > b->size() ? a : b)->pop_back();
  return true;
}

class ClassificationSamples final : public EncoderSource {
 public:
  ClassificationSamples(int64_t rows, int64_t sequence, bool shuffle, uint64_t seed)
      : order_(rows, shuffle, seed), sequence_(sequence) {}

  void add(const std::vector<int32_t>& ids, size_t a_length, int32_t label) {
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    rows_.push_back({ids_.size(), a_length, label});
  }

  int64_t samples_per_epoch() const override { return order_.size(); }
  int64_t sequence() const override { return sequence_; }
  void sample(int64_t index, EncoderSample* out) const override {
    const auto at = static_cast<size_t>(order_(index));
    const size_t begin = at == 0 ? 0 : rows_[at - 1].end;
    const Row& row = rows_[at];
    out->ids.assign(ids_.begin() + static_cast<std::ptrdiff_t>(begin),
                    ids_.begin() + static_cast<std::ptrdiff_t>(row.end));
    out->token_types.assign(out->ids.size(), 1);
    std::fill_n(out->token_types.begin(), row.a_length, 0);
    out->masked_positions.clear();
    out->masked_labels.clear();
    out->next_sentence = out->start = out->end = -1;
    out->label = row.label;
  }

 private:
  struct Row {
    size_t end, a_length;  // in ids_; tokens of [CLS] text [SEP]
    int32_t label;
  };
  EpochOrder order_;
  int64_t sequence_;
  std::vector<int32_t> ids_;
  std::vector<Row> rows_;
};

}  // namespace

LabelledTexts read_labelled_texts(const std::string& path, const LabelledTextOptions& options) {
  LabelledTexts texts;
  texts.pairs = !options.pair_column.empty();
  texts.labels = !options.label_column.empty();
  std::vector<std::string> columns{options.text_column};
  if (texts.pairs) columns.push_back(options.pair_column);
  if (texts.labels) columns.push_back(options.label_column);
  for (auto& cells : read_table(path, options.format, columns)) {
    const TableCell& last = cells.back();
    LabelledText row;
    row.location =
        fmt::format("{}:{}:{}", path == "-" ? "standard input" : path, last.line, last.column);
    if (texts.labels) row.label = last.text;
    if (texts.pairs) row.pair = std::move(cells[1].text);
    row.text = std::move(cells[0].text);
    texts.rows.push_back(std::move(row));
  }
  if (texts.rows.empty()) throw BadInput(fmt::format("{}:1:1: the file has no rows", path));
  return texts;
}

std::vector<std::string> class_names(const LabelledTexts& texts) {
  std::set<std::string> names;
  int64_t greatest = -1;
  for (const LabelledText& row : texts.rows) {
    check_label(row);
    const int64_t number = class_number(row.label);
    const bool numbers = number >= 0;
    if (!names.empty() && numbers != (greatest >= 0))
      throw BadInput(fmt::format(
          "{}: the label \"{}\" is {}, and those before it are {}: give all classes numbers from 0 "
          "on, or all of them words",
          row.location, row.label, numbers ? "a number" : "a word", numbers ? "words" : "numbers"));
    names.insert(row.label);
    greatest = std::max(greatest, number);
  }
  if (greatest < 0) return {names.begin(), names.end()};
  return numbers_below(greatest + 1);
}

std::vector<std::string> class_names(const LabelledTexts& texts,
                                     const std::vector<std::string>& names) {
  const std::set<std::string> known(names.begin(), names.end());
  const auto count = static_cast<int64_t>(names.size());
  bool named = true, numbered = true;
  for (const LabelledText& row : texts.rows) {
    const int64_t number = class_number(row.label);
    named = named && known.count(row.label) > 0;
    numbered = numbered && number >= 0 && number < count;
    if (named || numbered) continue;
    check_label(row);
    throw BadInput(fmt::format(
        "{}: the label \"{}\" is not one of the model's classes: {}{}", row.location, row.label,
        fmt::join(names.begin(), names.begin() + std::min<int64_t>(count, 20), ", "),
        count > 20 ? ", ..." : ""));
  }
  return named ? names : numbers_below(count);
}

ClassNumbers::ClassNumbers(const std::vector<std::string>& classes)
    : count_(static_cast<int64_t>(classes.size())),
      without_names_(classes == numbers_below(count_)) {
  for (size_t i = 0; i < classes.size(); ++i) numbers_[classes[i]] = static_cast<int32_t>(i);
}

int32_t ClassNumbers::of(const std::string& label) const {
  const auto found = numbers_.find(label);
  if (found != numbers_.end()) return found->second;
  const int64_t number = without_names_ ? class_number(label) : -1;
  return number < count_ ? static_cast<int32_t>(number) : -1;
}

std::unique_ptr<EncoderSource> make_classification_samples(const LabelledTexts& texts,
                                                           const std::vector<std::string>& classes,
                                                           const WordPieceTokenizer& tokenizer,
                                                           int64_t sequence, bool shuffle,
                                                           uint64_t seed, int64_t* cut) {
  const size_t special = texts.pairs ? 3 : 2;
  if (sequence < static_cast<int64_t>(special) || texts.rows.empty())
    throw std::invalid_argument("make_classification_samples: no room for a token, or no texts");
  const size_t room = static_cast<size_t>(sequence) - special;
  const ClassNumbers numbers(classes);
  auto samples = std::make_unique<ClassificationSamples>(static_cast<int64_t>(texts.rows.size()),
                                                         sequence, shuffle, seed);
  const auto encoder = tokenizer.make_encoder();
  const BertTokens& tokens = tokenizer.tokens();
  std::vector<int32_t> a, b, ids;
  int64_t shortened = 0;
  for (const LabelledText& row : texts.rows) {
    a.clear();
    b.clear();
    encoder->encode(row.text, &a);
    encoder->encode(row.pair, &b);
    if (truncate_pair(room, &a, &b)) ++shortened;
    ids.assign(1, tokens.cls);
    ids.insert(ids.end(), a.begin(), a.end());
    ids.push_back(tokens.sep);
    const size_t a_length = ids.size();
    if (texts.pairs) {
      ids.insert(ids.end(), b.begin(), b.end());
      ids.push_back(tokens.sep);
    }
    const int32_t label = texts.labels ? numbers.of(row.label) : -1;
    if (texts.labels && label < 0)
      throw BadInput(fmt::format("{}: the label \"{}\" is not one of the {} classes", row.location,
                                 row.label, classes.size()));
    samples->add(ids, a_length, label);
  }
  if (cut) *cut = shortened;
  return samples;
}

}  // namespace tally::train

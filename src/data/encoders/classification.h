// Texts, or pairs of texts, and their classes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/data/encoders/encoder_samples.h"
#include "src/data/text/table_reader.h"
#include "src/data/tokenizers/wordpiece.h"

namespace tally::train {

struct LabelledText {
  std::string text, pair;  // pair: empty where the file has single texts
  std::string label;
  std::string location;  // FILE:LINE:COLUMN of the label
};

struct LabelledTextOptions {
  TableFormat format = TableFormat::automatic;
  std::string text_column = "text";
  std::string pair_column;             // empty: single texts
  std::string label_column = "label";  // empty: no labels
};

struct LabelledTexts {
  std::vector<LabelledText> rows;
  bool pairs = false, labels = true;
};

// Reads a table of texts. Throws BadInput with one sentence that begins with FILE:LINE:COLUMN.
LabelledTexts read_labelled_texts(const std::string& path, const LabelledTextOptions& options);

// The classes of the rows, in the order of their numbers: where all labels are whole numbers from 0
// on (7, or LABEL_7), "0" to the greatest one; else the different labels in the order of their
// bytes. Throws BadInput where a row has no label or one that white space begins or ends, where
// words and numbers are mixed, or where a number is negative, broken, not a number, or 100,000 or
// more.
std::vector<std::string> class_names(const LabelledTexts& texts);

// The same for a model that names its classes: `names` where all labels are among them, else "0" to
// the last one's number where all labels are such numbers. Throws BadInput with the location of a
// label that is neither.
std::vector<std::string> class_names(const LabelledTexts& texts,
                                     const std::vector<std::string>& names);

// The numbers of labels in the order of `classes`. Where these are "0" and so on, LABEL_7 is 7.
class ClassNumbers {
 public:
  explicit ClassNumbers(const std::vector<std::string>& classes);
  // -1 where it is none of them.
  int32_t of(const std::string& label) const;

 private:
  int64_t count_;
  bool without_names_;
  std::unordered_map<std::string, int32_t> numbers_;
};

// Samples [CLS] text [SEP] or [CLS] text [SEP] pair [SEP] with the number of the label in `classes`
// (-1 where the texts have no labels). A text longer than `sequence` loses tokens at the end; of a
// pair, one after the other from the longer text, from the second of equals (run_classifier.py of
// google-research/bert). In the rows' order, or with `shuffle` in an order of every epoch. Throws
// BadInput with the location of a label that is not in `classes`. `cut`, unless null, becomes how
// many rows lost tokens.
std::unique_ptr<EncoderSource> make_classification_samples(const LabelledTexts& texts,
                                                           const std::vector<std::string>& classes,
                                                           const WordPieceTokenizer& tokenizer,
                                                           int64_t sequence, bool shuffle,
                                                           uint64_t seed, int64_t* cut = nullptr);

}  // namespace tally::train

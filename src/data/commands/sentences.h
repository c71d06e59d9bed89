// The sentences of a document.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "src/data/tokenizers/tokenizer.h"

namespace tally::train {

// The way in which a document is divided into sentences.
enum class SentenceRule {
  lines,    // every line is a sentence
  unicode,  // --split-sentences: by Unicode's rules for sentences (UAX 29) as ICU applies them to
            // English; line ends are blanks
};

// Belongs to one thread.
class SentenceSplitter {
 public:
  explicit SentenceSplitter(SentenceRule rule);
  ~SentenceSplitter();
  SentenceSplitter(const SentenceSplitter&) = delete;
  SentenceSplitter& operator=(const SentenceSplitter&) = delete;

  // Gives the sentences of `text` (valid UTF-8), each once, until it returns an empty view. They
  // may begin and end with blanks.
  void start(std::string_view text);
  std::string_view next();

 private:
  struct Breaks;
  std::unique_ptr<Breaks> breaks_;  // null: lines
  std::string text_;
  size_t at_ = 0;
};

}  // namespace tally::train

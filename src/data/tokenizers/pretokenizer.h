// Splits text into the words that byte pairs are joined in.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "src/data/tokenizers/byte_level_rules.h"

namespace tally::train {

// Steps that split one after the other, their patterns compiled by PCRE2 with JIT. Immutable; a
// Scanner belongs to one thread.
class Pretokenizer {
 public:
  // `only_before_spaces`: the text is normalized before, so that safe_cut() takes only positions
  // that a normalization lets be. Throws std::runtime_error with one sentence where PCRE2 refuses a
  // pattern, or one matches an empty text.
  explicit Pretokenizer(std::vector<SplitStep> steps, bool only_before_spaces = false);
  ~Pretokenizer();
  Pretokenizer(const Pretokenizer&) = delete;
  Pretokenizer& operator=(const Pretokenizer&) = delete;

  // Walks over the words of a text of valid UTF-8.
  class Scanner {
   public:
    explicit Scanner(const Pretokenizer& owner);
    ~Scanner();
    Scanner(const Scanner&) = delete;
    Scanner& operator=(const Scanner&) = delete;
    void start(std::string_view text);
    // The next word, or an empty view at the end. Valid until the next call.
    std::string_view next();

   private:
    friend class Pretokenizer;
    struct Match;
    class Step;
    std::vector<std::unique_ptr<Step>> steps_;
    size_t level_ = 0;
  };

  // See Tokenizer::safe_cut. `text` is valid UTF-8.
  size_t safe_cut(std::string_view text) const;

 private:
  struct Patterns;
  enum class Cuts { none, before_spaces, between_classes };
  static Cuts cuts_of(const std::vector<SplitStep>& steps, bool only_before_spaces);

  std::vector<SplitStep> steps_;
  Cuts cuts_;
  std::unique_ptr<Patterns> patterns_;
};

}  // namespace tally::train

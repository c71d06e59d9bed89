// Splits text into the words that byte pairs are joined in.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

namespace tally::train {

// GPT-2's pattern, compiled by PCRE2 with JIT. Immutable; a Scanner belongs to one thread.
class Pretokenizer {
 public:
  Pretokenizer();
  ~Pretokenizer();
  Pretokenizer(const Pretokenizer&) = delete;
  Pretokenizer& operator=(const Pretokenizer&) = delete;

  // Walks over the words of a text of valid UTF-8. They cover the text without gaps.
  class Scanner {
   public:
    explicit Scanner(const Pretokenizer& owner);
    ~Scanner();
    Scanner(const Scanner&) = delete;
    Scanner& operator=(const Scanner&) = delete;
    void start(std::string_view text);
    // The next word, or an empty view at the end.
    std::string_view next();

   private:
    friend class Pretokenizer;
    struct Match;
    std::unique_ptr<Match> match_;
    const Pretokenizer& owner_;
    std::string_view text_;
    size_t at_ = 0;
  };

  // See Tokenizer::safe_cut. `text` is valid UTF-8.
  size_t safe_cut(std::string_view text) const;

 private:
  struct Patterns;
  std::unique_ptr<Patterns> patterns_;
};

}  // namespace tally::train

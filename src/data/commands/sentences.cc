#include "src/data/commands/sentences.h"

#include <fmt/format.h>
#include <unicode/brkiter.h>
#include <unicode/utext.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace tally::train {

struct SentenceSplitter::Breaks {
  Breaks() {
    UErrorCode error = U_ZERO_ERROR;
    iterator.reset(icu::BreakIterator::createSentenceInstance(icu::Locale::getEnglish(), error));
    check(error);
  }
  ~Breaks() { utext_close(text); }
  Breaks(const Breaks&) = delete;
  Breaks& operator=(const Breaks&) = delete;

  void start(const std::string& bytes) {
    UErrorCode error = U_ZERO_ERROR;
    text = utext_openUTF8(text, bytes.data(), static_cast<int64_t>(bytes.size()), &error);
    iterator->setText(text, error);
    check(error);
    iterator->first();
  }
  static void check(UErrorCode error) {
    if (U_FAILURE(error))
      throw std::runtime_error(fmt::format("ICU cannot find sentences: {}", u_errorName(error)));
  }

  std::unique_ptr<icu::BreakIterator> iterator;
  UText* text = nullptr;
};

SentenceSplitter::SentenceSplitter(SentenceRule rule)
    : breaks_(rule == SentenceRule::unicode ? std::make_unique<Breaks>() : nullptr) {}
SentenceSplitter::~SentenceSplitter() = default;

void SentenceSplitter::start(std::string_view text) {
  if (text.size() > std::numeric_limits<int32_t>::max())
    throw std::runtime_error("a document of more than 2 GiB cannot be split into sentences");
  text_ = text;
  at_ = 0;
  if (!breaks_) return;
  std::replace_if(
      text_.begin(), text_.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  breaks_->start(text_);
}

std::string_view SentenceSplitter::next() {
  while (at_ < text_.size()) {
    const size_t begin = at_;
    size_t end = std::min(text_.find('\n', begin), text_.size());
    at_ = end + 1;
    if (breaks_) {
      const int32_t found = breaks_->iterator->next();
      end = found == icu::BreakIterator::DONE ? text_.size() : static_cast<size_t>(found);
      at_ = end;
    }
    if (end > begin) return std::string_view(text_).substr(begin, end - begin);
  }
  return {};
}

}  // namespace tally::train

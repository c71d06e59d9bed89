#include "src/data/tokenizers/bert_words.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <stdexcept>

namespace tally::train {
namespace {

bool is_ideograph(UChar32 c) {
  // The blocks that the original names; Hangul, Hiragana and Katakana are written with spaces or
  // are not, as other scripts.
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B73F) ||
         (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B820 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_removed(UChar32 c) {
  if (c == '\t' || c == '\n' || c == '\r') return false;
  if (c == 0 || c == 0xFFFD) return true;
  switch (u_charType(c)) {
    case U_CONTROL_CHAR:
    case U_FORMAT_CHAR:
    case U_PRIVATE_USE_CHAR:
    case U_SURROGATE:
      return true;
    default:
      return false;
  }
}

bool is_ascii_punctuation(UChar32 c) {
  return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
         (c >= 123 && c <= 126);
}

const icu::Normalizer2& nfd() {
  UErrorCode error = U_ZERO_ERROR;
  const icu::Normalizer2* instance = icu::Normalizer2::getNFDInstance(error);
  if (U_FAILURE(error))
    throw std::runtime_error(std::string("ICU cannot normalize text: ") + u_errorName(error));
  return *instance;
}

icu::UnicodeString decomposed(const icu::UnicodeString& text) {
  UErrorCode error = U_ZERO_ERROR;
  icu::UnicodeString out = nfd().normalize(text, error);
  if (U_FAILURE(error))
    throw std::runtime_error(std::string("ICU cannot normalize text: ") + u_errorName(error));
  return out;
}

// Steps 1 to 4.
icu::UnicodeString normalized(std::string_view text, const BertWordRules& rules) {
  icu::UnicodeString out;
  const auto size = static_cast<int32_t>(text.size());
  for (int32_t at = 0; at < size;) {
    UChar32 c = 0;
    U8_NEXT(text.data(), at, size, c);
    if (c < 0) throw std::invalid_argument("bert_words: the text is not valid UTF-8");
    if (rules.clean_text) {
      if (is_removed(c)) continue;
      if (u_isUWhiteSpace(c)) c = ' ';
    }
    const bool alone = rules.space_cjk && is_ideograph(c);
    if (alone) out.append(UChar32{' '});
    out.append(c);
    if (alone) out.append(UChar32{' '});
  }
  if (rules.strip_accents) out = decomposed(out);
  return out;
}

void append_utf8(UChar32 c, std::string* out) {
  char bytes[U8_MAX_LENGTH];
  int32_t count = 0;
  U8_APPEND_UNSAFE(bytes, count, c);
  out->append(bytes, static_cast<size_t>(count));
}

void append_lower(UChar32 c, std::string* out) {
  if (c == 0x130) {  // the one character whose lower case is two, wherever it stands
    out->append("i\xCC\x87");
  } else {
    append_utf8(u_tolower(c), out);
  }
}

}  // namespace

// Most of most texts is ASCII, for which no table is needed. False: it is not.
bool BertWordSplitter::split_ascii(std::string_view text) {
  bool open = false;  // a word has been begun
  for (const char character : text) {
    const auto c = static_cast<unsigned char>(character);
    if (c >= 0x80) return false;
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    const bool control = (c < 0x20 || c == 0x7F) && c != '\t' && c != '\n' && c != '\r';
    if (control && rules_.clean_text) continue;
    const bool punctuation = is_ascii_punctuation(c);
    if ((space || punctuation) && open) {
      words_ += kEnd;
      open = false;
    }
    if (space) continue;
    words_ += static_cast<char>(rules_.lower_case && c >= 'A' && c <= 'Z' ? c + 32 : c);
    open = !punctuation;
    if (punctuation) words_ += kEnd;
  }
  if (open) words_ += kEnd;
  return true;
}

const std::string& BertWordSplitter::normalize_and_split(std::string_view text) {
  words_.clear();
  if (split_ascii(text)) return words_;
  words_.clear();
  const icu::UnicodeString clean = normalized(text, rules_);
  bool open = false;
  for (int32_t at = 0; at < clean.length();) {
    const UChar32 c = clean.char32At(at);
    at += U16_LENGTH(c);
    if (rules_.strip_accents && u_charType(c) == U_NON_SPACING_MARK) continue;
    const bool space = u_isUWhiteSpace(c) != 0;
    const bool punctuation = is_ascii_punctuation(c) || u_ispunct(c) != 0;
    if ((space || punctuation) && open) {
      words_ += kEnd;
      open = false;
    }
    if (space) continue;
    if (rules_.lower_case) {
      append_lower(c, &words_);
    } else {
      append_utf8(c, &words_);
    }
    open = !punctuation;
    if (punctuation) words_ += kEnd;
  }
  if (open) words_ += kEnd;
  return words_;
}

std::vector<std::string> bert_words(std::string_view text, const BertWordRules& rules) {
  std::vector<std::string> out;
  BertWordSplitter splitter(rules);
  splitter.split(text, [&](std::string_view word) { out.emplace_back(word); });
  return out;
}

}  // namespace tally::train

#include "src/data/text/unicode_text.h"

#include <unicode/bytestream.h>
#include <unicode/locid.h>
#include <unicode/normalizer2.h>
#include <unicode/stringpiece.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <limits>
#include <stdexcept>

namespace tally::train {

std::u32string to_characters(std::string_view text) {
  std::u32string out;
  const size_t size = text.size();
  for (size_t at = 0; at < size;) {
    UChar32 c = 0;
    U8_NEXT(text.data(), at, size, c);
    if (c < 0) throw std::invalid_argument("to_characters: the text is not valid UTF-8");
    out.push_back(static_cast<char32_t>(c));
  }
  return out;
}

std::string to_utf8(std::u32string_view characters) {
  std::string out;
  for (const char32_t c : characters) {
    char bytes[U8_MAX_LENGTH];
    int32_t count = 0;
    U8_APPEND_UNSAFE(bytes, count, static_cast<UChar32>(c));
    out.append(bytes, static_cast<size_t>(count));
  }
  return out;
}

std::string lower_of(const std::string& text) {
  std::string out;
  icu::UnicodeString::fromUTF8(text).toLower(icu::Locale::getRoot()).toUTF8String(out);
  return out;
}

bool is_python_space(char32_t c) {
  // The separators 1C to 1F are white space for Python but not for Unicode.
  return (c >= 0x1C && c <= 0x1F) || u_isUWhiteSpace(static_cast<UChar32>(c)) != 0;
}

std::vector<std::string> split_at_space(std::string_view text) {
  std::vector<std::string> words;
  std::u32string word;
  for (const char32_t c : to_characters(text)) {
    if (!is_python_space(c)) {
      word.push_back(c);
    } else if (!word.empty()) {
      words.push_back(to_utf8(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(to_utf8(word));
  return words;
}

namespace {

// FilteredNormalizer2 lets other characters be, and they end a run of marks: what a library does
// with characters that it does not know.
const icu::Normalizer2& nfc() {
  static const icu::FilteredNormalizer2 form = [] {
    UErrorCode error = U_ZERO_ERROR;
    const icu::Normalizer2* whole = icu::Normalizer2::getNFCInstance(error);
    static const icu::UnicodeSet known(UNICODE_STRING_SIMPLE("[:age=9.0:]"), error);
    if (U_FAILURE(error)) throw std::runtime_error("ICU has no data for the normalization of text");
    return icu::FilteredNormalizer2(*whole, known);
  }();
  return form;
}

icu::StringPiece string_piece(std::string_view text) {
  if (text.size() > std::numeric_limits<int32_t>::max())
    throw std::runtime_error("a text of more than 2 GiB in one piece cannot be normalized");
  return {text.data(), static_cast<int32_t>(text.size())};
}

}  // namespace

std::string nfc_of(std::string_view text) {
  std::string out;
  icu::StringByteSink<std::string> sink(&out);
  UErrorCode error = U_ZERO_ERROR;
  nfc().normalizeUTF8(0, string_piece(text), sink, nullptr, error);
  if (U_FAILURE(error)) throw std::runtime_error("a text cannot be normalized");
  return out;
}

bool is_nfc(std::string_view text) {
  UErrorCode error = U_ZERO_ERROR;
  return nfc().isNormalizedUTF8(string_piece(text), error) != 0 && U_SUCCESS(error);
}

bool is_word_character(char32_t c) {
  return c == '_' || (U_GET_GC_MASK(static_cast<UChar32>(c)) & (U_GC_L_MASK | U_GC_N_MASK)) != 0;
}

}  // namespace tally::train

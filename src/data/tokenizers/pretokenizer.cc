#define PCRE2_CODE_UNIT_WIDTH 8
#include "src/data/tokenizers/pretokenizer.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <stdexcept>
#include <string>

namespace tally::train {
namespace {

// White space is Unicode's White_Space property, as in Hugging Face's tokenizers. PCRE2's own \s
// differs: it takes U+180E, which is a format character since Unicode 6.3.
#define TALLY_SPACE                                                                    \
  "\\x{09}-\\x{0d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}" \
  "\\x{202f}\\x{205f}\\x{3000}"
constexpr const char* kWords =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" TALLY_SPACE "\\p{L}\\p{N}]+|[" TALLY_SPACE
    "]+(?![^" TALLY_SPACE "])|[" TALLY_SPACE "]+";
// No word goes on from a letter to anything but a letter, from a number to anything but a number,
// or from what is not white space to white space; and no alternative looks further back than its
// own start. So the end of each match is the end of a word, whatever stands before and after these
// two characters. (From other characters to letters there is no such certainty: 's is one word.)
constexpr const char* kCuts =
    "\\p{L}(?=\\P{L})|\\p{N}(?=\\P{N})|[^" TALLY_SPACE "](?=[" TALLY_SPACE "])";
#undef TALLY_SPACE

constexpr size_t kJitStack = size_t{1} << 20;

pcre2_code* compile(const char* pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern), PCRE2_ZERO_TERMINATED,
                    PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &offset, nullptr);
  if (code == nullptr) {
    throw std::logic_error(
        fmt::format("pre-tokenizer pattern: PCRE2 error {} at {}", error, offset));
  }
  // Without JIT (on an unusual processor) matching is slower and has the same result.
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  return code;
}

}  // namespace

struct Pretokenizer::Patterns {
  pcre2_code* words = compile(kWords);
  pcre2_code* cuts = compile(kCuts);
  ~Patterns() {
    pcre2_code_free(words);
    pcre2_code_free(cuts);
  }
};

Pretokenizer::Pretokenizer() : patterns_(std::make_unique<Patterns>()) {}
Pretokenizer::~Pretokenizer() = default;

struct Pretokenizer::Scanner::Match {
  explicit Match(const pcre2_code* code)
      : data(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(32 * 1024, kJitStack, nullptr)) {
    pcre2_jit_stack_assign(context, nullptr, stack);
    size_t jit_size = 0;
    pcre2_pattern_info(code, PCRE2_INFO_JITSIZE, &jit_size);
    jit = jit_size > 0;
  }
  ~Match() {
    pcre2_jit_stack_free(stack);
    pcre2_match_context_free(context);
    pcre2_match_data_free(data);
  }
  Match(const Match&) = delete;
  Match& operator=(const Match&) = delete;

  // The end of the match that starts at or after `at` (its start in *begin); npos when there is
  // none.
  size_t run(const pcre2_code* code, std::string_view text, size_t at, size_t* begin) const {
    const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    const int rc =
        jit ? pcre2_jit_match(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK, data, context)
            : pcre2_match(code, subject, text.size(), at, PCRE2_NO_UTF_CHECK, data, context);
    if (rc == PCRE2_ERROR_NOMATCH) return std::string_view::npos;
    if (rc < 0)
      throw std::runtime_error(fmt::format("pre-tokenizer: PCRE2 failed with error {}", rc));
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(data);
    *begin = range[0];
    return range[1];
  }

  pcre2_match_data* data;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
  bool jit = false;
};

Pretokenizer::Scanner::Scanner(const Pretokenizer& owner)
    : match_(std::make_unique<Match>(owner.patterns_->words)), owner_(owner) {}
Pretokenizer::Scanner::~Scanner() = default;

void Pretokenizer::Scanner::start(std::string_view text) {
  text_ = text;
  at_ = 0;
}

std::string_view Pretokenizer::Scanner::next() {
  if (at_ >= text_.size()) return {};
  size_t begin = 0;
  const size_t end = match_->run(owner_.patterns_->words, text_, at_, &begin);
  if (end == std::string_view::npos || begin != at_ || end <= at_) {
    throw std::logic_error("pre-tokenizer: the pattern left a gap in the text");
  }
  at_ = end;
  return text_.substr(begin, end - begin);
}

size_t Pretokenizer::safe_cut(std::string_view text) const {
  const auto is_space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  const auto is_word = [](char c) { return c > ' ' && c < 0x7f; };
  // Nearly all text has a blank between ASCII characters near its end.
  const size_t window = text.size() > 4096 ? text.size() - 4096 : 0;
  for (size_t at = text.size(); at-- > window + 1;) {
    if (is_space(text[at]) && is_word(text[at - 1])) return at;
  }
  const Scanner::Match match(patterns_->cuts);
  for (size_t from : {window, size_t{0}}) {
    while (from > 0 && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) --from;
    size_t last = 0;
    size_t begin = 0;
    for (size_t at = from;;) {
      const size_t end = match.run(patterns_->cuts, text, at, &begin);
      if (end == std::string_view::npos) break;
      last = at = end;
    }
    if (last > 0) return last;
  }
  return 0;
}

}  // namespace tally::train

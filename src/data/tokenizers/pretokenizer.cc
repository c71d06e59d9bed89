#define PCRE2_CODE_UNIT_WIDTH 8
#include "src/data/tokenizers/pretokenizer.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "src/data/tokenizers/pattern_syntax.h"

namespace tally::train {
namespace {

// The positions where no word goes on, whatever stands before and after: from a letter to anything
// but a letter, from a number to anything but a number, and from what is not white space to white
// space (not to a line end, which Llama 3's pattern takes after punctuation). No alternative of the
// patterns with SplitStep::Cuts::between_classes looks further back than its own start, so the end
// of each match is the end of a word. (From other characters to letters there is no such certainty:
// 's is one word.)
std::string cuts_between_classes() {
  std::string blanks(white_space);
  blanks.replace(0, std::string_view("\\x{09}-\\x{0d}").size(), "\\x{09}\\x{0b}\\x{0c}");
  return fmt::format("\\p{{L}}(?=\\P{{L}})|\\p{{N}}(?=\\P{{N}})|[^{}](?=[{}])", white_space,
                     blanks);
}
// A text after such a position begins with a space, so that none is put before it, and no
// normalization joins a space to what is before it.
std::string cuts_before_spaces() {
  return fmt::format("[^{}](?=\\x{{20}})", white_space);
}

constexpr size_t kJitStack = size_t{1} << 20;

using Code = std::unique_ptr<pcre2_code, decltype(&pcre2_code_free)>;

Code compile(const std::string& pattern) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  Code code(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                          PCRE2_UTF | PCRE2_UCP | PCRE2_NO_UTF_CHECK, &error, &offset, nullptr),
            &pcre2_code_free);
  if (!code)
    throw std::runtime_error(
        fmt::format("pre-tokenizer pattern '{}': PCRE2 error {} at {}", pattern, error, offset));
  // Matching without JIT (on an unusual processor) is slower and has the same result.
  pcre2_jit_compile(code.get(), PCRE2_JIT_COMPLETE);
  return code;
}

}  // namespace

struct Pretokenizer::Patterns {
  std::vector<Code> steps;  // null: the step does not split
  Code cuts{nullptr, &pcre2_code_free};
};

Pretokenizer::Pretokenizer(std::vector<SplitStep> steps, bool only_before_spaces)
    : steps_(std::move(steps)),
      cuts_(cuts_of(steps_, only_before_spaces)),
      patterns_(std::make_unique<Patterns>()) {
  for (const SplitStep& step : steps_) {
    Code code = step.pattern.empty() ? Code(nullptr, &pcre2_code_free) : compile(step.pattern);
    uint32_t matches_empty = 0;
    if (code) pcre2_pattern_info(code.get(), PCRE2_INFO_MATCHEMPTY, &matches_empty);
    if (matches_empty != 0)
      throw std::runtime_error(fmt::format(
          "pre-tokenizer pattern '{}': it matches an empty text, which is not supported",
          step.pattern));
    patterns_->steps.push_back(std::move(code));
  }
  if (cuts_ != Cuts::none)
    patterns_->cuts =
        compile(cuts_ == Cuts::before_spaces ? cuts_before_spaces() : cuts_between_classes());
}
Pretokenizer::~Pretokenizer() = default;

Pretokenizer::Cuts Pretokenizer::cuts_of(const std::vector<SplitStep>& steps,
                                         bool only_before_spaces) {
  for (const SplitStep& step : steps) {
    // The text after a cut would be given a space.
    if (step.prefix_space) only_before_spaces = true;
    if (step.cuts == SplitStep::Cuts::none) return Cuts::none;
    if (step.cuts == SplitStep::Cuts::between_classes)
      return only_before_spaces ? Cuts::before_spaces : Cuts::between_classes;
  }
  return Cuts::none;
}

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

// The pieces that one step makes of a piece of the step before it.
class Pretokenizer::Scanner::Step {
 public:
  Step(const SplitStep& rule, const pcre2_code* code) : rule_(rule), code_(code) {
    if (code_ != nullptr) match_.emplace(code_);
  }

  void start(std::string_view text) {
    text_ = text;
    if (rule_.prefix_space && !text.empty() && text.front() != ' ') {
      spaced_.assign(1, ' ');
      spaced_ += text;
      text_ = spaced_;
    }
    at_ = begin_ = end_ = 0;
    held_ = {};
  }

  // Empty at the end.
  std::string_view next() {
    for (;;) {
      Part part = take();
      if (part.text.empty() || rule_.behavior == SplitBehavior::isolated) return part.text;
      if (rule_.behavior != SplitBehavior::removed) return joined(part);
      if (!part.match) return part.text;
    }
  }

 private:
  struct Part {
    std::string_view text;
    bool match = false;
  };

  // A match, or what lies between two.
  Part take() {
    if (!held_.text.empty()) return std::exchange(held_, {});
    if (at_ >= text_.size()) return {};
    if (at_ >= end_) {
      end_ = code_ == nullptr ? kNone : match_->run(code_, text_, at_, &begin_);
      if (end_ == kNone) begin_ = end_ = text_.size();
      if (end_ <= at_) throw std::logic_error("pre-tokenizer: a pattern matched an empty text");
    }
    const bool match = at_ >= begin_;
    const size_t from = std::exchange(at_, match ? end_ : begin_);
    return {text_.substr(from, at_ - from), match != rule_.invert};
  }

  // The part, with the parts after it that the behavior puts to it.
  std::string_view joined(Part part) {
    for (;;) {
      held_ = take();
      const bool one =
          rule_.behavior == SplitBehavior::merged_with_previous ? !part.match && held_.match
          : rule_.behavior == SplitBehavior::merged_with_next   ? part.match && !held_.match
                                                                : part.match == held_.match;
      if (held_.text.empty() || !one) return part.text;
      part = {{part.text.data(), part.text.size() + held_.text.size()}, held_.match};
      held_ = {};
    }
  }

  static constexpr size_t kNone = std::string_view::npos;
  const SplitStep& rule_;
  const pcre2_code* code_;
  std::optional<Match> match_;
  std::string_view text_;
  std::string spaced_;                   // the text where a space was put before it
  size_t at_ = 0, begin_ = 0, end_ = 0;  // the next match
  Part held_;
};

Pretokenizer::Scanner::Scanner(const Pretokenizer& owner) {
  for (size_t n = 0; n < owner.steps_.size(); ++n)
    steps_.push_back(std::make_unique<Step>(owner.steps_[n], owner.patterns_->steps[n].get()));
}
Pretokenizer::Scanner::~Scanner() = default;

void Pretokenizer::Scanner::start(std::string_view text) {
  level_ = 0;
  steps_[0]->start(text);
}

std::string_view Pretokenizer::Scanner::next() {
  for (;;) {
    const std::string_view piece = steps_[level_]->next();
    if (!piece.empty()) {
      if (level_ + 1 == steps_.size()) return piece;
      steps_[++level_]->start(piece);
    } else if (level_ == 0) {
      return {};
    } else {
      --level_;
    }
  }
}

size_t Pretokenizer::safe_cut(std::string_view text) const {
  if (cuts_ == Cuts::none) return 0;
  const auto is_word = [](char c) { return c > ' ' && c < 0x7f; };
  // Nearly all text has a space after an ASCII character near its end.
  const size_t window = text.size() > 4096 ? text.size() - 4096 : 0;
  for (size_t at = text.size(); at-- > window + 1;) {
    if (text[at] == ' ' && is_word(text[at - 1])) return at;
  }
  const pcre2_code* cuts = patterns_->cuts.get();
  const Scanner::Match match(cuts);
  for (size_t from : {window, size_t{0}}) {
    while (from > 0 && (static_cast<unsigned char>(text[from]) & 0xC0) == 0x80) --from;
    size_t last = 0;
    size_t begin = 0;
    for (size_t at = from;;) {
      const size_t end = match.run(cuts, text, at, &begin);
      if (end == std::string_view::npos) break;
      last = at = end;
    }
    if (last > 0) return last;
  }
  return 0;
}

}  // namespace tally::train

// Compiling and running patterns with PCRE2 (see python_regex.h for the dialect).
#define PCRE2_CODE_UNIT_WIDTH 8
#include <fmt/format.h>
#include <pcre2.h>

#include <array>
#include <cstdint>

#include "engine/python/python_regex.h"

namespace tally {
namespace {

constexpr size_t kStackStart = size_t{64} << 10;
constexpr size_t kStackMost = size_t{512} << 20;  // reserved; used only by patterns like (.|\n)*?
constexpr uint32_t kMatchLimit = 2'000'000'000;

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

}  // namespace

struct Regex::Impl {
  struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  struct FreeData {
    void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  };
  struct FreeMatchContext {
    void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
  };
  struct FreeStack {
    void operator()(pcre2_jit_stack* stack) const { pcre2_jit_stack_free(stack); }
  };

  // A pattern compiled for one kind of text: Unicode, or pure ASCII. For ASCII the character classes
  // are tables and nothing needs to be decoded.
  struct Program {
    std::unique_ptr<pcre2_code, FreeCode> code;
    std::unique_ptr<pcre2_match_data, FreeData> data;
    bool jit = false;
  };

  TranslatedRegex translated;
  std::vector<GroupEdges> edges;
  bool dot_all = false;
  Program unicode, ascii;
  std::unique_ptr<pcre2_match_context, FreeMatchContext> context;
  std::unique_ptr<pcre2_jit_stack, FreeStack> stack;

  bool build(Program& program, bool utf, std::string* error) const {
    uint32_t options = PCRE2_MULTILINE | PCRE2_ALT_CIRCUMFLEX | PCRE2_NEVER_BACKSLASH_C;
    if (utf) options |= PCRE2_UTF | PCRE2_MATCH_INVALID_UTF;
    if (utf && !translated.ascii_classes) options |= PCRE2_UCP;
    if (dot_all || translated.dot_all) options |= PCRE2_DOTALL;
    if (translated.ignore_case) options |= PCRE2_CASELESS;
    if (translated.verbose) options |= PCRE2_EXTENDED;
    int code = 0;
    PCRE2_SIZE offset = 0;
    pcre2_compile_context* settings = pcre2_compile_context_create(nullptr);
    pcre2_set_newline(settings, PCRE2_NEWLINE_LF);
    program.code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.pcre.data()),
                                     translated.pcre.size(), options, &code, &offset, settings));
    pcre2_compile_context_free(settings);
    if (!program.code) {
      *error = fmt::format("{} at position {}", message_of(code), offset);
      return false;
    }
    program.jit = pcre2_jit_compile(program.code.get(), PCRE2_JIT_COMPLETE) == 0;
    program.data.reset(pcre2_match_data_create_from_pattern(program.code.get(), nullptr));
    return true;
  }

  int match(Program& program, std::string_view text, size_t start, uint32_t options) {
    auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
    if (program.jit) {
      int found = pcre2_jit_match(program.code.get(), subject, text.size(), start, options,
                                  program.data.get(), context.get());
      if (found != PCRE2_ERROR_JIT_STACKLIMIT && found != PCRE2_ERROR_JIT_BADOPTION) return found;
    }
    return pcre2_match(program.code.get(), subject, text.size(), start, options | PCRE2_NO_JIT,
                       program.data.get(), context.get());
  }
};

Regex::Regex(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Regex::~Regex() = default;

std::unique_ptr<Regex> Regex::compile(std::string_view pattern, bool dot_all, std::string* error) {
  auto impl = std::make_unique<Impl>();
  impl->translated = translate_python_regex(pattern);
  impl->dot_all = dot_all;
  if (!impl->translated.error.empty()) {
    *error = fmt::format("{} at position {}", impl->translated.error, impl->translated.error_at);
    return nullptr;
  }
  if (!impl->build(impl->unicode, true, error)) return nullptr;
  impl->edges = group_edges(pattern);
  impl->context.reset(pcre2_match_context_create(nullptr));
  impl->stack.reset(pcre2_jit_stack_create(kStackStart, kStackMost, nullptr));
  pcre2_jit_stack_assign(impl->context.get(), nullptr, impl->stack.get());
  pcre2_set_match_limit(impl->context.get(), kMatchLimit);
  // A search that does not fit there is made without it, within as much memory.
  pcre2_set_heap_limit(impl->context.get(), static_cast<uint32_t>(kStackMost >> 10));
  return std::unique_ptr<Regex>(new Regex(std::move(impl)));
}

const std::vector<GroupEdges>& Regex::edges() const {
  return impl_->edges;
}

int Regex::groups() const {
  uint32_t count = 0;
  pcre2_pattern_info(impl_->unicode.code.get(), PCRE2_INFO_CAPTURECOUNT, &count);
  return static_cast<int>(count);
}

bool Regex::find_all(std::string_view text, bool ascii,
                     const std::function<void(std::string_view, int)>& sink, std::string* error) {
  Impl::Program* program = &impl_->unicode;
  if (ascii && !impl_->translated.non_ascii) {
    if (!impl_->ascii.code && !impl_->build(impl_->ascii, false, error)) return false;
    program = &impl_->ascii;
  }
  if (text.data() == nullptr) text = "";
  const int group_count = groups();
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(program->data.get());
  size_t start = 0;
  uint32_t options = 0;
  while (start <= text.size()) {
    int found = impl_->match(*program, text, start, options);
    if (found == PCRE2_ERROR_NOMATCH) return true;
    if (found < 0) {
      *error = message_of(found);
      return false;
    }
    int first = group_count == 0 ? 0 : 1;
    for (int group = first; group <= group_count; ++group) {
      PCRE2_SIZE from = bounds[2 * group];
      PCRE2_SIZE to = bounds[2 * group + 1];
      const bool empty = group >= found || from == PCRE2_UNSET || from >= to;
      if (empty && bounds[0] >= bounds[1]) continue;
      sink(empty ? text.substr(bounds[0], 0) : text.substr(from, to - from), group);
    }
    // After an empty match, Python tries the same position again for a match that is not empty.
    options = bounds[0] == bounds[1] ? PCRE2_NOTEMPTY_ATSTART : 0;
    start = std::max(bounds[1], start);  // must not move backwards; \K in a lookbehind is rejected
  }
  return true;
}

}  // namespace tally

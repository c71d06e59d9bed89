#include "engine/base/terminal.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <iostream>
#include <streambuf>

#include "engine/base/text.h"

namespace tally {
namespace {

constexpr char escape = '\x1b';

bool is_shown_as_number(uint32_t c) {
  if (c == '\n' || c == '\t') return false;
  if (c < 0x20 || (c >= 0x7f && c < 0xa0)) return true;
  // Soft hyphen; grapheme joiner; Arabic letter mark; Hangul fillers; inherent vowels of Khmer;
  // Mongolian selectors; zero width space; marks of direction; separators of lines and paragraphs,
  // embeddings and overrides; word joiner, invisible operators and isolates; byte order mark;
  // annotations; controls of shorthand and of music; tags. Not the joiners, variation selectors and
  // the blank of Braille, which texts, emoji and charts need.
  struct Range {
    uint32_t first, last;
  };
  static constexpr Range unseen[] = {
      {0xad, 0xad},       {0x34f, 0x34f},    {0x61c, 0x61c},   {0x115f, 0x1160}, {0x17b4, 0x17b5},
      {0x180b, 0x180f},   {0x200b, 0x200b},  {0x200e, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
      {0x3164, 0x3164},   {0xfeff, 0xfeff},  {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0x1bca0, 0x1bca3},
      {0x1d173, 0x1d17a}, {0xe0000, 0xe007f}};
  for (const Range& range : unseen) {
    if (c >= range.first && c <= range.last) return true;
  }
  return false;
}

// How many bytes at the end of `text` may be the start of a character that is not yet there.
size_t incomplete(std::string_view text) {
  if (!text.empty() && text.back() == '\r') return 1;
  for (size_t n = 1; n <= 3 && n <= text.size(); ++n) {
    const auto c = static_cast<unsigned char>(text[text.size() - n]);
    if (c < 0x80) return 0;
    if (c < 0xc0) continue;
    const size_t whole = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    return whole > n ? n : 0;
  }
  return 0;
}

// Returns false and sets errno when not all was written.
bool write_whole(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(fd, bytes.data(), bytes.size());
    if (put >= 0) {
      bytes.remove_prefix(static_cast<size_t>(put));
      continue;
    }
    // Another process that shares the stream may have made it non-blocking.
    pollfd wait{fd, POLLOUT, 0};
    if (errno == EAGAIN) poll(&wait, 1, -1);
    if (errno != EAGAIN && errno != EINTR) return false;
  }
  return true;
}

// A stream of stdio over a descriptor.
class Output {
 public:
  explicit Output(int fd) : fd_(fd), terminal_(::isatty(fd) == 1) {}

  bool is_terminal() const { return terminal_; }

  bool write(std::string_view bytes) {
    if (!terminal_) return write_whole(fd_, bytes);
    const std::string text = held_ + std::string(bytes);
    const size_t whole = text.size() - incomplete(text);
    held_ = text.substr(whole);
    return write_whole(fd_, without_controls(std::string_view(text).substr(0, whole)));
  }
  // Past the filter.
  bool write_own(std::string_view sequence) { return flush() && write_whole(fd_, sequence); }
  bool flush() {
    const std::string rest = std::move(held_);
    held_.clear();
    return write_whole(fd_, without_controls(rest));
  }
  // Puts the stream in the place of `stream`.
  void take(FILE** stream, int mode) {
    cookie_io_functions_t functions{};
    functions.write = fd_ == STDERR_FILENO ? put_or_drop : put;
    FILE* own = fopencookie(this, "w", functions);
    if (own == nullptr) return;
    std::setvbuf(own, nullptr, mode, BUFSIZ);
    stream_ = *stream = own;
  }
  bool is(const FILE* stream) const { return stream_ == stream && stream_ != nullptr; }

 private:
  static ssize_t put(void* self, const char* bytes, size_t count) {
    return static_cast<Output*>(self)->write({bytes, count}) ? static_cast<ssize_t>(count) : 0;
  }
  static ssize_t put_or_drop(void* self, const char* bytes, size_t count) {
    [[maybe_unused]] const bool put = static_cast<Output*>(self)->write({bytes, count});
    return static_cast<ssize_t>(count);
  }

  int fd_;
  bool terminal_;
  FILE* stream_ = nullptr;
  std::string held_;
};

Output& standard_output() {
  static Output output(STDOUT_FILENO);
  return output;
}
Output& standard_error() {
  static Output output(STDERR_FILENO);
  return output;
}

// std::cout writes to stdout, whatever that is.
class ToStdout final : public std::streambuf {
 protected:
  int_type overflow(int_type c) override {
    return traits_type::eq_int_type(c, traits_type::eof()) ? traits_type::not_eof(c)
                                                           : std::putc(c, stdout);
  }
  std::streamsize xsputn(const char* bytes, std::streamsize count) override {
    return static_cast<std::streamsize>(std::fwrite(bytes, 1, static_cast<size_t>(count), stdout));
  }
  int sync() override { return std::fflush(stdout) == 0 ? 0 : -1; }
};

void open_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) >= 0) continue;
    // It takes the lowest free number, which is fd.
    const int opened = open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
    if (opened > fd) close(opened);
  }
}

void no_signal(int) {}

}  // namespace

void prepare_standard_streams() {
  open_descriptors();
  // A handler, unlike SIG_IGN, is not inherited by the programs that are started.
  for (const int number : {SIGPIPE, SIGXFSZ}) {
    struct sigaction action {};
    action.sa_handler = no_signal;
    action.sa_flags = SA_RESTART;
    sigaction(number, &action, nullptr);
  }
  if (standard_output().is_terminal()) standard_output().take(&stdout, _IOLBF);
  standard_error().take(&stderr, _IONBF);
  static ToStdout buffer;
  std::cout.rdbuf(&buffer);
}

void finish_standard_streams() {
  std::fflush(stdout);
  for (Output* output : {&standard_output(), &standard_error()}) {
    [[maybe_unused]] const bool put = output->flush();
  }
}

std::string without_controls(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    uint32_t c = 0;
    const size_t length = utf8_length(text.substr(at), &c);
    const bool line_end = text.compare(at, 2, "\r\n") == 0;
    if (length == 0) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    } else if (is_shown_as_number(c) && !line_end) {
      out += c < 0x100 ? fmt::format("\\x{:02x}", c) : fmt::format("\\u{:04x}", c);
    } else {
      out += text.substr(at, length);
    }
    at += length == 0 ? 1 : length;
  }
  return out;
}

std::string literal(std::string_view text) {
  std::string doubled;
  for (const char c : text) doubled.append(c == escape ? 2 : 1, c);
  return doubled;
}

void print_styled(FILE* stream, std::string_view styled) {
  Output& output = standard_error().is(stream) ? standard_error() : standard_output();
  const bool filtered = output.is(stream) && output.is_terminal();
  const auto print = [&](std::string_view text) {
    std::fwrite(text.data(), 1, text.size(), stream);
  };
  while (!styled.empty()) {
    const size_t at = std::min(styled.find(escape), styled.size());
    const bool doubled = styled.substr(at, 2) == std::string{escape, escape};
    print(styled.substr(0, at + (doubled ? 1 : 0)));
    styled.remove_prefix(std::min(at + (doubled ? 2 : 0), styled.size()));
    if (doubled || styled.empty()) continue;
    const std::string_view own = styled.substr(0, styled.find('m') + 1);
    if (filtered) {
      std::fflush(stream);
      [[maybe_unused]] const bool put = output.write_own(own);
    } else {
      print(own);
    }
    styled.remove_prefix(own.size());
  }
}

}  // namespace tally

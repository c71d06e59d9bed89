#include "engine/base/shell_words.h"

#include <algorithm>
#include <cctype>

#include "engine/base/text.h"

namespace tally {
namespace {

class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  std::vector<ShellWord> split() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\'' || c == '"') {
        quoted(c);
      } else if (c == '#' && !open_) {
        at_ = std::min(text_.find('\n', at_), text_.size());  // a comment
      } else if (c == '\\' && at_ + 1 < text_.size()) {
        if (text_[at_ + 1] != '\n') {
          append(text_[at_ + 1]);
          word_.quoted = true;
        }
        at_ += 2;
      } else if (std::string_view(" \t\n\r;|&<>()`").find(c) != std::string_view::npos) {
        end_word();
        if (c == '>') written_ = true;
        if (c != '>' && c != ' ' && c != '\t' && c != '&' && c != '|') written_ = false;
        ++at_;
      } else {
        append(c);
        ++at_;
      }
    }
    end_word();
    return std::move(words_);
  }

 private:
  void append(char c) {
    word_.text += c;
    open_ = true;
  }

  void quoted(char quote) {
    open_ = word_.quoted = true;
    const size_t begin = ++at_;
    for (; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (quote == '"' && text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      word_.text += text_[at_];
    }
    const std::string_view inside = text_.substr(begin, at_ - begin);
    const bool runs =
        inside.find("$(") != std::string_view::npos || inside.find('`') != std::string_view::npos;
    if (quote == '"' && runs) commands_.push_back(inside);
    ++at_;
  }

  void end_word() {
    if (open_) {
      word_.written = written_;
      words_.push_back(std::move(word_));
      written_ = false;
    }
    word_ = {};
    open_ = false;
    for (const std::string_view inside : commands_) {
      for (ShellWord& word : Words(inside).split()) words_.push_back(std::move(word));
    }
    commands_.clear();
  }

  std::string_view text_;
  size_t at_ = 0;
  ShellWord word_;
  bool open_ = false;
  bool written_ = false;                    // the next word is the target of a redirection
  std::vector<std::string_view> commands_;  // texts in double quotes that run something
  std::vector<ShellWord> words_;
};

}  // namespace

std::vector<ShellWord> shell_words(std::string_view text) {
  return Words(text).split();
}

std::set<std::string> shell_variables(std::string_view text) {
  std::set<std::string> names;
  for (size_t at = text.find('$'); at != std::string_view::npos; at = text.find('$', at + 1)) {
    size_t begin = at + 1;
    if (begin < text.size() && text[begin] == '{') ++begin;
    size_t end = begin;
    while (end < text.size() && is_name_char(text[end])) ++end;
    if (end > begin && std::isdigit(static_cast<unsigned char>(text[begin])) == 0) {
      names.emplace(text.substr(begin, end - begin));
    }
  }
  return names;
}

}  // namespace tally

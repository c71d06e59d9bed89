// The help of a command, wrapped at words to fit the terminal.
#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>

namespace tally::train {

// Columns to format for, between 80 and 120: COLUMNS where it is set, else those of the terminal on
// standard output, else 100.
size_t help_width();

// `text` in lines of at most `width` bytes, unless a word is longer; all but the first begin with
// `indent` blanks, for which the first has room already. Line feeds in `text` stay.
std::string wrap_words(const std::string& text, size_t width, size_t indent);

class HelpFormatter final : public CLI::Formatter {
 public:
  explicit HelpFormatter(size_t width = help_width()) : width_(width) {}
  std::string make_description(const CLI::App* app) const override;
  std::string make_option(const CLI::Option* option, bool is_positional) const override;
  std::string make_footer(const CLI::App* app) const override;

 private:
  size_t width_;
};

}  // namespace tally::train

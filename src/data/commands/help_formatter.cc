#include "src/data/commands/help_formatter.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

namespace tally::train {
namespace {

constexpr size_t least_width = 80, most_width = 120, usual_width = 100;
constexpr size_t description_column = 32;

}  // namespace

size_t help_width() {
  size_t columns = 0;
  if (const char* given = std::getenv("COLUMNS")) columns = std::strtoul(given, nullptr, 10);
  winsize size{};
  if (columns == 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) columns = size.ws_col;
  if (columns == 0) columns = usual_width;
  return std::clamp(columns, least_width, most_width);
}

std::string wrap_words(const std::string& text, size_t width, size_t indent) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!out.empty()) out += "\n" + std::string(indent, ' ');
    size_t column = indent;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (column > indent && column + 1 + word.size() > width) {
        out += "\n" + std::string(indent, ' ');
        column = indent;
      }
      if (column > indent) {
        out += " ";
        ++column;
      }
      out += word;
      column += word.size();
    }
  }
  return out;
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return wrap_words(app->get_description(), width_, 0) + "\n";
}

std::string HelpFormatter::make_option(const CLI::Option* option, bool is_positional) const {
  std::string out = "  " + make_option_name(option, is_positional) + make_option_opts(option);
  const std::string description = make_option_desc(option);
  if (description.empty()) return out + "\n";
  if (out.size() + 2 > description_column) {
    out += "\n" + std::string(description_column, ' ');
  } else {
    out.resize(description_column, ' ');
  }
  return out + wrap_words(description, width_, description_column) + "\n";
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  if (app->get_footer().empty()) return {};
  return wrap_words(app->get_footer(), width_, 0) + "\n";
}

}  // namespace tally::train

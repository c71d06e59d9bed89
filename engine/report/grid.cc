#include "engine/report/grid.h"

#include <unistd.h>

#include <algorithm>

#include "engine/base/terminal.h"
#include "engine/python/python_format.h"

namespace tally {
namespace {

// Splits at newlines like Python's splitlines(): "a\nb\n" gives two lines. Unlike there, "" gives
// one empty line.
std::vector<std::string> lines_of(const std::string& cell) {
  std::vector<std::string> lines;
  size_t start = 0;
  while (start < cell.size()) {
    size_t end = std::min(cell.find('\n', start), cell.size());
    lines.push_back(cell.substr(start, end - start));
    start = end + 1;
  }
  if (lines.empty()) lines.emplace_back();
  return lines;
}

void append_right(const std::string& text, size_t width, std::string& out) {
  const size_t length = width == 0 ? 0 : code_points(text);
  if (length < width) out.append(width - length, ' ');
  out += text;
}
void append_left(const std::string& text, size_t width, std::string& out) {
  out += text;
  const size_t length = code_points(text);
  if (length < width) out.append(width - length, ' ');
}

using Row = std::vector<std::string>;
// The header and the rows, or with `transpose` the columns. Rows are not copied: there may be many.
class Rows {
 public:
  Rows(const Grid& grid, bool transpose) {
    if (!transpose) {
      rows_.reserve(grid.rows.size() + 1);
      rows_.push_back(&grid.header);
      for (const Row& row : grid.rows) rows_.push_back(&row);
      return;
    }
    turned_.reserve(grid.header.size());
    for (size_t column = 0; column < grid.header.size(); ++column) {
      Row& line = turned_.emplace_back(Row{grid.header[column]});
      for (const Row& row : grid.rows) line.push_back(row[column]);
      rows_.push_back(&line);
    }
  }
  Rows(const Rows&) = delete;
  Rows& operator=(const Rows&) = delete;

  size_t size() const { return rows_.size(); }
  const Row& operator[](size_t index) const { return *rows_[index]; }

 private:
  std::vector<Row> turned_;
  std::vector<const Row*> rows_;
};

bool has_lines(const std::string& cell) {
  return cell.find('\n') != std::string::npos;
}

std::vector<size_t> column_widths(const Rows& rows, const std::vector<size_t>& least,
                                  bool content) {
  std::vector<size_t> widths;
  for (size_t at = 0; at < rows.size(); ++at) {
    const Row& row = rows[at];
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; content && i < row.size(); ++i) {
      if (!has_lines(row[i])) {
        widths[i] = std::max(widths[i], code_points(row[i]));
        continue;
      }
      for (const std::string& line : lines_of(row[i])) {
        widths[i] = std::max(widths[i], code_points(line));
      }
    }
  }
  for (size_t i = 0; i < widths.size() && i < least.size(); ++i) {
    widths[i] = std::max(widths[i], least[i]);
  }
  return widths;
}

void add_pretty_lines(const Row& row, const std::vector<size_t>& widths, std::string& out) {
  std::vector<std::vector<std::string>> cells;
  size_t height = 1;
  for (const std::string& cell : row) {
    cells.push_back(lines_of(cell));
    height = std::max(height, cells.back().size());
  }
  for (size_t line = 0; line < height; ++line) {
    out += '|';
    for (size_t i = 0; i < cells.size(); ++i) {
      const std::string& text = line < cells[i].size() ? cells[i][line] : std::string();
      out += ' ';
      if (line == 0) {
        append_right(text, widths[i], out);
      } else {
        append_left(text, widths[i], out);
      }
      out += " |";
    }
    out += '\n';
  }
}

void add_pretty_row(const Row& row, const std::vector<size_t>& widths, std::string& out) {
  if (std::ranges::any_of(row, has_lines)) return add_pretty_lines(row, widths, out);
  out += '|';
  for (size_t i = 0; i < row.size(); ++i) {
    out += ' ';
    append_right(row[i], widths[i], out);
    out += " |";
  }
  out += '\n';
}

std::string pretty(const Rows& rows, const std::vector<size_t>& widths, bool rule,
                   const std::string& name) {
  std::string out = name + ":\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    add_pretty_row(rows[i], widths, out);
    if (i != 0 || !rule) continue;
    out += '|';
    for (size_t width : widths) out += std::string(width + 2, '-') + '|';
    out += '\n';
  }
  return out;
}

std::string field(std::string cell, const std::string& separator, Quoting quoting) {
  std::replace(cell.begin(), cell.end(), '\n', ' ');
  if (quoting == Quoting::raw) return cell;
  bool special = cell.find_first_of("\"\r") != std::string::npos ||
                 (!separator.empty() && cell.find(separator) != std::string::npos);
  if (!special) return cell;
  std::string out = "\"";
  for (char c : cell) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string separated(const Rows& rows, const std::vector<size_t>& widths,
                      const std::string& separator, Quoting quoting) {
  std::string out;
  for (size_t at = 0; at < rows.size(); ++at) {
    const Row& row = rows[at];
    for (size_t i = 0; i < row.size(); ++i) {
      if (i != 0) out += separator;
      append_right(field(row[i], separator, quoting), widths[i], out);
    }
    out += '\n';
  }
  return out;
}

std::string markdown_cell(const std::string& cell) {
  std::string out;
  for (const char c : xml_escaped(cell, "&<")) {
    switch (c) {
      case '\n':
        out += "<br>";
        break;
      case '|':
      case '*':
      case '`':
      case '\\':
        out += '\\';
        [[fallthrough]];
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

std::string markdown(const Grid& grid, bool transpose, const std::string& name) {
  std::string out = "**" + markdown_cell(name) + "**\n\n";
  const Rows rows(grid, transpose);
  for (size_t i = 0; i < rows.size(); ++i) {
    out += '|';
    for (const std::string& cell : rows[i]) out += ' ' + markdown_cell(cell) + " |";
    out += '\n';
    if (i != 0) continue;
    out += '|';
    for (size_t column = 0; column < rows[i].size(); ++column) out += "---|";
    out += '\n';
  }
  return out;
}

std::string layout(const Grid& grid, const std::string& name, const GridLayout& how) {
  const auto& [style, separator, transpose, quoting] = how;
  const Rows rows(grid, transpose);
  std::vector<size_t> widths = column_widths(rows, grid.widths, style != TableStyle::csv);
  if (style == TableStyle::pretty) return pretty(rows, widths, !transpose, name);
  return separated(rows, widths, separator, quoting);
}

Grid for_stdout(Grid grid) {
  if (isatty(STDOUT_FILENO) != 1) return grid;
  for (std::string& cell : grid.header) cell = without_controls(cell);
  for (std::vector<std::string>& row : grid.rows) {
    for (std::string& cell : row) cell = without_controls(cell);
  }
  return grid;
}

}  // namespace tally

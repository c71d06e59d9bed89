#include "engine/report/grid.h"

#include <algorithm>

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

std::string right(const std::string& text, size_t width) {
  size_t length = code_points(text);
  return length >= width ? text : std::string(width - length, ' ') + text;
}
std::string left(const std::string& text, size_t width) {
  size_t length = code_points(text);
  return length >= width ? text : text + std::string(width - length, ' ');
}

using Rows = std::vector<std::vector<std::string>>;

Rows arrange(const Grid& grid, bool transpose) {
  Rows rows;
  if (!transpose) {
    rows.push_back(grid.header);
    rows.insert(rows.end(), grid.rows.begin(), grid.rows.end());
    return rows;
  }
  for (size_t column = 0; column < grid.header.size(); ++column) {
    std::vector<std::string> line = {grid.header[column]};
    for (const auto& row : grid.rows) line.push_back(row[column]);
    rows.push_back(std::move(line));
  }
  return rows;
}

std::vector<size_t> column_widths(const Rows& rows, const std::vector<size_t>& least,
                                  bool content) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; content && i < row.size(); ++i) {
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

void add_pretty_row(const std::vector<std::string>& row, const std::vector<size_t>& widths,
                    std::string& out) {
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
      out += line == 0 ? right(text, widths[i]) : left(text, widths[i]);
      out += " |";
    }
    out += '\n';
  }
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
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (i != 0) out += separator;
      out += right(field(row[i], separator, quoting), widths[i]);
    }
    out += '\n';
  }
  return out;
}

std::string escaped(const std::string& cell) {
  std::string out;
  for (const char c : cell) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
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
  std::string out = "**" + escaped(name) + "**\n\n";
  const Rows rows = arrange(grid, transpose);
  for (size_t i = 0; i < rows.size(); ++i) {
    out += '|';
    for (const std::string& cell : rows[i]) out += ' ' + escaped(cell) + " |";
    out += '\n';
    if (i != 0) continue;
    out += '|';
    for (size_t column = 0; column < rows[i].size(); ++column) out += "---|";
    out += '\n';
  }
  return out;
}

std::string layout(const Grid& grid, TableStyle style, const std::string& separator, bool transpose,
                   const std::string& name, Quoting quoting) {
  Rows rows = arrange(grid, transpose);
  std::vector<size_t> widths = column_widths(rows, grid.widths, style != TableStyle::csv);
  if (style == TableStyle::pretty) return pretty(rows, widths, !transpose, name);
  return separated(rows, widths, separator, quoting);
}

}  // namespace tally

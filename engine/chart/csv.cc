#include "engine/chart/from_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "engine/base/text.h"

namespace tally {
namespace {

struct Line {
  size_t number = 0;
  std::vector<std::string> cells;
};

char separator_of(const std::string& text) {
  const std::string_view first = std::string_view(text).substr(0, text.find('\n'));
  char best = ',';
  for (char candidate : {';', '\t'}) {
    if (std::ranges::count(first, candidate) > std::ranges::count(first, best)) {
      best = candidate;
    }
  }
  return best;
}

Status split(const std::string& text, char separator, std::vector<Line>* lines) {
  Line line{1, {}};
  std::string cell;
  size_t number = 1;
  bool quoted = false;
  const auto end_line = [&] {
    line.cells.push_back(std::move(cell));
    cell.clear();
    // A blank line is not a row.
    if (line.cells.size() > 1 || !strip(line.cells[0]).empty()) lines->push_back(std::move(line));
    line = {number, {}};
  };
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n') ++number;
    if (quoted) {
      if (c != '"') {
        cell += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        cell += text[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && strip(cell).empty()) {
      cell.clear();
      quoted = true;
    } else if (c == separator) {
      line.cells.push_back(std::move(cell));
      cell.clear();
    } else if (c == '\n') {
      end_line();
    } else if (c != '\r' || (i + 1 < text.size() && text[i + 1] != '\n')) {
      cell += c;
    }
  }
  if (quoted)
    return Status::error(fmt::format("line {}: a quote is opened and not closed", line.number));
  if (!cell.empty() || !line.cells.empty()) end_line();
  return Status::ok();
}

// "tps[tokens/s]" gives "tps" and its unit.
TableColumn column_of(const std::string& heading) {
  Column column;
  std::string unit;
  std::string name(strip(heading));
  const size_t open = name.find('[');
  if (open != std::string::npos && open > 0 && name.back() == ']') {
    unit = name.substr(open + 1, name.size() - open - 2);
    name = strip(name.substr(0, open));
  }
  column.name.value = name;
  TableColumn made(std::move(column));
  made.info.unit = unit;
  return made;
}

// A number as CSV has it. Words such as "nan" and "infinity" are numbers, too, as in Python.
Value value_of(const std::string& cell) {
  const std::string text(strip(cell));
  if (text.empty()) return {};
  if (text.find('_') == std::string::npos) {  // Python reads 1_000 as a number; CSV does not
    if (auto integer = make_value(text, ValueType::integer, true);
        integer && text.find_first_of(".eEnN") == std::string::npos) {
      return *integer;
    }
    if (auto number = make_value(text, ValueType::floating)) return *number;
  }
  return Value{text};
}

}  // namespace

Status read_csv(const std::string& text, ResultTable* table) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  const bool marked = starts_with(text, kMark);
  const std::string content = marked ? text.substr(kMark.size()) : text;
  *table = {};
  std::vector<Line> lines;
  TRY(split(content, separator_of(content), &lines));
  if (lines.empty())
    return Status::error("the file is empty; the first line must name the columns");
  std::set<std::string> names;
  for (const std::string& heading : lines[0].cells) {
    table->columns.push_back(column_of(heading));
    const std::string& name = table->columns.back().name.value;
    if (!name.empty() && !names.insert(name).second)
      return Status::error(fmt::format("line 1: two columns are called '{}'", name));
  }
  const auto columns = std::make_shared<RowColumns>();
  for (size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string>& cells = lines[i].cells;
    if (cells.size() != table->columns.size()) {
      return Status::error(fmt::format("line {}: it has {} cells, and the first line has {}",
                                       lines[i].number, cells.size(), table->columns.size()));
    }
    Record row;
    row.values = Cells(columns);
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string& name = table->columns[c].name.value;
      row.values.set(name, value_of(cells[c]));
      // "FAILED", "pending"; "reused" is done.
      if (name == kStatusColumn) row.state = state_named(to_lower(cells[c])).value_or(State::done);
    }
    table->rows.push_back(std::move(row));
  }
  find_types(table->rows, table->columns);
  return Status::ok();
}

}  // namespace tally

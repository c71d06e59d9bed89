#include "src/data/text/table_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "src/data/text/json_fault.h"
#include "src/data/text/text_input.h"
#include "src/data/text/utf8.h"

namespace tally::train {
namespace {

using Row = std::vector<TableCell>;

std::string whole_text(const std::string& path) {
  if (const std::string why = path == "-" ? "" : why_no_file(path); !why.empty())
    throw BadInput(fmt::format("'{}' cannot be read: {}", path, why));
  TextInput input(path);
  std::string text, block;
  while (input.read(size_t{1} << 20, &block)) text += block;
  return text;
}

TableFormat format_of(const std::string& path) {
  std::string_view name = path;
  if (name.ends_with(".gz")) name.remove_suffix(3);
  if (name.ends_with(".csv")) return TableFormat::csv;
  if (name.ends_with(".tsv")) return TableFormat::tsv;
  if (is_json_name(path)) return TableFormat::jsonl;
  throw BadInput(fmt::format("'{}' does not say what it is: name it .csv, .tsv or .jsonl", path));
}

// A list of names for a message, not longer than a line or two.
std::string quoted(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) {
    if (list.size() > 200) return list + ", ...";
    const bool cut = name.size() > 50;
    list += fmt::format("{}\"{}{}\"", list.empty() ? "" : ", ",
                        clean_utf8(std::string_view(name).substr(0, 50)), cut ? "..." : "");
  }
  return list;
}

// The name of a character that separates fields somewhere; null: `c` does not.
const char* separators_name(char c) {
  for (const auto& [separator, name] : {std::pair(',', "commas"), std::pair('\t', "tabs"),
                                        std::pair(';', "semicolons"), std::pair('|', "bars")})
    if (c == separator) return name;
  return nullptr;
}
constexpr const char* kSeparators = "a .csv is separated by commas, a .tsv by tabs";

// The columns that a first row has, and what it may be where it is no header of this separator.
std::string columns_of(const Row& names, char separator) {
  std::vector<std::string> texts;
  for (const TableCell& name : names) texts.push_back(name.text);
  if (std::any_of(texts.begin(), texts.end(),
                  [](const std::string& text) { return text.find('\r') != text.npos; }))
    return "the file's lines end with a carriage return alone: convert it with tr '\\r' '\\n'";
  const std::string list = quoted(texts);
  if (names.size() == 1)
    for (const char other : {',', '\t', ';', '|'})
      if (other != separator && names[0].text.find(other) != std::string::npos)
        return fmt::format("the first row is {}, which {} separate: {}", list,
                           separators_name(other), kSeparators);
  return fmt::format(
      "the columns are {}: the first row has the columns' names, and --text-column, --pair-column "
      "and --label-column say which ones are read",
      list);
}

class TableReader {
 public:
  TableReader(const std::string& path, const std::vector<std::string>& wanted)
      : path_(path == "-" ? "standard input" : path), wanted_(wanted), text_(whole_text(path)) {
    if (text_.rfind("\xEF\xBB\xBF", 0) == 0) at_ = line_begin_ = 3;  // a byte order mark
    const size_t valid = valid_utf8_prefix(text_);
    if (valid == text_.size()) return;
    const auto before = text_.begin() + static_cast<std::ptrdiff_t>(valid);
    const size_t end = valid == 0 ? std::string::npos : text_.rfind('\n', valid - 1);
    throw fault(1 + std::count(text_.begin(), before, '\n'),
                static_cast<int64_t>(end == std::string::npos ? valid + 1 : valid - end),
                "this byte is not valid UTF-8: convert the file with iconv");
  }

  std::vector<Row> read_delimited(char separator, bool quotes) {
    Row names;
    if (!next_row(separator, quotes, &names))
      throw fault(1, 1, "the file is empty: its first row should have the columns' names");
    const std::vector<size_t> columns = indices_of(names, separator);
    std::vector<Row> rows;
    for (Row cells; next_row(separator, quotes, &cells);) {
      if (cells.size() != names.size())
        throw fault(cells.back().line, cells.back().column,
                    fmt::format("this row has {} field{}, and the first row has {}", cells.size(),
                                cells.size() == 1 ? "" : "s", names.size()));
      Row row;
      for (const size_t column : columns) row.push_back(cells[column]);
      rows.push_back(std::move(row));
    }
    return rows;
  }

  std::vector<Row> read_json_lines() {
    std::vector<Row> rows;
    for (; at_ < text_.size(); ++line_) {
      const size_t end = std::min(text_.find('\n', at_), text_.size());
      const std::string_view line = std::string_view(text_).substr(at_, end - at_);
      if (line.find_first_not_of(" \t\r") != std::string_view::npos) rows.push_back(json_row(line));
      at_ = end + 1;
    }
    return rows;
  }

 private:
  BadInput fault(int64_t line, int64_t column, const std::string& why) const {
    return BadInput(fmt::format("{}:{}:{}: {}", path_, line, column, why));
  }
  BadInput fault_here(const std::string& why) const { return fault(line_, column(), why); }
  int64_t column() const { return static_cast<int64_t>(at_ - line_begin_) + 1; }

  void new_line() {
    ++line_;
    line_begin_ = at_;
  }

  // The end of a row has a length: LF or CR LF; 0: there is none.
  size_t row_end() const {
    if (text_[at_] == '\n') return 1;
    return text_.compare(at_, 2, "\r\n") == 0 ? 2 : 0;
  }

  bool next_row(char separator, bool quotes, Row* cells) {
    cells->clear();
    while (at_ < text_.size() && row_end() > 0) {  // blank lines
      at_ += row_end();
      new_line();
    }
    if (at_ >= text_.size()) return false;
    for (;;) {
      cells->push_back({"", line_, column()});
      if (quotes && at_ < text_.size() && text_[at_] == '"') {
        read_quoted(separator, &cells->back().text);
      } else {
        read_plain(separator, quotes, &cells->back().text);
      }
      if (at_ >= text_.size()) return true;
      if (const size_t end = row_end(); end > 0) {
        at_ += end;
        new_line();
        return true;
      }
      ++at_;  // the separator
    }
  }

  void read_plain(char separator, bool quotes, std::string* out) {
    while (at_ < text_.size() && text_[at_] != separator && row_end() == 0) {
      if (quotes && text_[at_] == '"')
        throw fault_here(
            "a quote within a field: put the whole field into quotes, and write it twice there");
      *out += text_[at_++];
    }
  }

  void read_quoted(char separator, std::string* out) {
    const int64_t line = line_, begin = column();
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] != '"') {
        *out += text_[at_];
        if (text_[at_] != '\n') continue;
        ++line_;
        line_begin_ = at_ + 1;
      } else if (text_.compare(at_, 2, "\"\"") == 0) {
        *out += text_[at_++];
      } else {
        ++at_;
        if (at_ < text_.size() && text_[at_] != separator && row_end() == 0)
          throw fault_here(after_quoted(text_[at_]));
        return;
      }
    }
    throw fault(line, begin, "this quote is not closed before the file's end");
  }

  static std::string after_quoted(char c) {
    const char* name = separators_name(c);
    return name != nullptr
               ? fmt::format("{} separate quoted fields here: {}", name, kSeparators)
               : "text after the end of a quoted field: a quote within it is written twice";
  }

  std::vector<size_t> indices_of(const Row& names, char separator) const {
    std::vector<size_t> columns;
    for (const std::string& name : wanted_) {
      const auto same = [&](const TableCell& cell) { return cell.text == name; };
      const auto found = std::find_if(names.begin(), names.end(), same);
      if (found == names.end())
        throw fault(
            names[0].line, names[0].column,
            fmt::format("no column is named \"{}\": {}", name, columns_of(names, separator)));
      if (const auto again = std::find_if(found + 1, names.end(), same); again != names.end())
        throw fault(again->line, again->column,
                    fmt::format("a second column is named \"{}\"", name));
      columns.push_back(static_cast<size_t>(found - names.begin()));
    }
    return columns;
  }

  BadInput no_object() const {
    return fault(line_, 1,
                 "this line is not a JSON object: each line should be one, without a list around "
                 "them (pandas: to_json(orient='records', lines=True))");
  }

  Row json_row(std::string_view line) const {
    // A list may go on for lines.
    if (line[line.find_first_not_of(" \t\r")] == '[') throw no_object();
    nlohmann::json object;
    try {
      object = nlohmann::json::parse(line.begin(), line.end());
    } catch (const nlohmann::json::parse_error& error) {
      std::string why = json_fault(error);
      if (const size_t colon = why.find(": "); why.rfind("line ", 0) == 0 && colon != why.npos)
        why.erase(0, colon + 2);
      throw fault(line_, static_cast<int64_t>(std::max<size_t>(error.byte, 1)), why);
    }
    if (!object.is_object()) throw no_object();
    Row row;
    for (const std::string& name : wanted_) {
      const auto value = object.find(name);
      if (value == object.end()) {
        std::vector<std::string> keys;
        for (const auto& [key, ignored] : object.items()) keys.push_back(key);
        throw fault(
            line_, 1,
            fmt::format("the object has no key \"{}\": its keys are {}", name, quoted(keys)));
      }
      if (value->is_structured() || value->is_null())
        throw fault(line_, 1,
                    fmt::format("the value of \"{}\" is {}, and a text or a number is expected",
                                name, with_article(value->type_name())));
      row.push_back({value->is_string() ? value->get<std::string>() : value->dump(), line_, 1});
    }
    return row;
  }

  std::string path_;
  const std::vector<std::string>& wanted_;
  std::string text_;
  size_t at_ = 0, line_begin_ = 0;
  int64_t line_ = 1;
};

}  // namespace

std::vector<Row> read_table(const std::string& path, TableFormat format,
                            const std::vector<std::string>& columns) {
  if (format == TableFormat::automatic) format = format_of(path);
  TableReader reader(path, columns);
  if (format == TableFormat::jsonl) return reader.read_json_lines();
  const bool csv = format == TableFormat::csv;
  return reader.read_delimited(csv ? ',' : '\t', csv);
}

}  // namespace tally::train

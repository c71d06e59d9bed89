#include "engine/base/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "engine/base/terminal.h"
#include "engine/base/text.h"

namespace tally {

uint32_t Sources::add(std::string name, std::string text) {
  files_.push_back({std::move(name), std::move(text)});
  return static_cast<uint32_t>(files_.size() - 1);
}

std::string_view Sources::line(const Mark& mark) const {
  if (!mark.known() || mark.file >= files_.size()) return {};
  std::string_view rest = files_[mark.file].text;
  for (uint32_t line = 1; line < mark.line; ++line) {
    size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
  rest = rest.substr(0, rest.find('\n'));
  if (!rest.empty() && rest.back() == '\r') rest.remove_suffix(1);
  return rest;
}

namespace {

struct Style {
  const char* name;
  const char* color;
};

Style style_of(Severity severity) {
  switch (severity) {
    case Severity::error:
      return {"error", "\033[1;31m"};
    case Severity::warning:
      return {"warning", "\033[1;35m"};
    case Severity::note:
      break;
  }
  return {"note", "\033[1;36m"};
}

// The byte at which code point number `column` of `line` starts. Each byte that is not UTF-8 counts
// as one code point.
size_t byte_of_column(std::string_view line, uint32_t column) {
  size_t at = 0;
  for (uint32_t i = 1; i < column && at < line.size(); ++i) {
    at += std::max<size_t>(1, utf8_length(line.substr(at)));
  }
  return at;
}

// The token at the start of `rest`, for underlining. It is a whole quoted text, or everything up to
// white space or a character that ends a word in YAML or XML. A colon ends a token only before a
// blank, as in YAML.
std::string_view token(std::string_view rest) {
  constexpr std::string_view kEnds = " \t,=<>[]{}\"'";
  if (rest.empty()) return rest;
  if (rest[0] == '"' || rest[0] == '\'') {
    size_t quote = rest.find(rest[0], 1);
    if (quote != std::string_view::npos) return rest.substr(0, quote + 1);
  }
  if (kEnds.find(rest[0]) != std::string_view::npos) return rest.substr(0, 1);
  size_t end = std::min(rest.find_first_of(kEnds), rest.size());
  while (end > 1 && rest[end - 1] == ':') --end;
  return rest.substr(0, end);
}

// The source line with the caret below it. Tabs are kept, so that both lines are indented alike.
std::string excerpt(std::string_view line, uint32_t column, bool color) {
  constexpr size_t kWidest = 400;  // longer lines are not shown; the caret would be lost
  if (strip(line).empty() || line.size() > kWidest) return {};
  size_t start = byte_of_column(line, column);
  // Characters that are shown as numbers take more columns.
  const std::string before = without_controls(line.substr(0, start));
  std::string pad;
  for (size_t at = 0; at < before.size();) {
    pad += before[at] == '\t' ? '\t' : ' ';
    at += std::max<size_t>(1, utf8_length(before.substr(at)));
  }
  std::string caret = "^";
  size_t width = code_points(without_controls(token(line.substr(start))));
  if (width > 1) caret.append(width - 1, '~');
  if (color) caret = "\033[1;32m" + caret + "\033[0m";
  return fmt::format("    {}\n    {}{}\n", without_controls(line), pad, caret);
}

std::string block(const Diagnostic& d, const Sources& sources, bool color) {
  Style style = style_of(d.severity);
  std::string text;
  if (color) {
    text =
        fmt::format("\033[1m{}:\033[0m {}{}:\033[0m {}\n", literal(position_text(sources, d.mark)),
                    style.color, style.name, literal(d.message));
  } else {
    text = fmt::format("{}: {}: {}\n", position_text(sources, d.mark), style.name, d.message);
  }
  if (d.mark.known()) text += excerpt(sources.line(d.mark), d.mark.column, color);
  if (!d.hint.empty()) text += fmt::format("hint: {}\n", color ? literal(d.hint) : d.hint);
  return text;
}

// "3 more of this kind: 'a' (12:5), 'b' (13:5), ...": the diagnostics after the first.
std::string others(const std::vector<const Diagnostic*>& all, const Sources& sources) {
  constexpr size_t kMost = 10;
  if (all.size() < 2) return {};
  std::vector<std::string> list;
  for (size_t i = 1; i < all.size() && i <= kMost; ++i) {
    const Mark& mark = all[i]->mark;
    const std::string where = mark.file == all.front()->mark.file
                                  ? fmt::format("{}:{}", mark.line, mark.column)
                                  : position_text(sources, mark);
    list.push_back(all[i]->name.empty() ? where : fmt::format("'{}' ({})", all[i]->name, where));
  }
  if (all.size() - 1 > kMost) list.emplace_back("...");
  return fmt::format("note: {} more of this kind: {}\n", all.size() - 1, join(list, ", "));
}

}  // namespace

std::string position_text(const Sources& sources, const Mark& mark) {
  if (mark.file >= sources.size()) return "tally";
  if (!mark.known()) return "tally";
  return fmt::format("{}:{}:{}", sources.name(mark.file), mark.line, mark.column);
}

void Diagnostics::error(const Mark& mark, std::string message, std::string hint) {
  add(Severity::error, mark, std::move(message), std::move(hint));
}

void Diagnostics::warning(const Mark& mark, std::string message, std::string hint,
                          WarningKind kind) {
  add(strict_ ? Severity::error : Severity::warning, mark, std::move(message), std::move(hint),
      std::move(kind));
}

void Diagnostics::note(const Mark& mark, std::string message, std::string hint) {
  add(Severity::note, mark, std::move(message), std::move(hint));
}

void Diagnostics::remark(const Mark& mark, std::string message, std::string hint,
                         WarningKind kind) {
  add(Severity::note, mark, std::move(message), std::move(hint), std::move(kind));
  all_.back().alone = true;
}

void Diagnostics::make_warnings_errors() {
  strict_ = true;
  for (Diagnostic& d : all_) {
    if (d.severity == Severity::warning) d.severity = Severity::error;
  }
  errors_ += warnings_;
  warnings_ = 0;
}

void Diagnostics::append(const Diagnostics& other) {
  for (const Diagnostic& d : other.all_) {
    Severity severity = strict_ && d.severity == Severity::warning ? Severity::error : d.severity;
    add(severity, d.mark, d.message, d.hint, {d.kind, d.name});
    all_.back().alone = d.alone;
  }
}

void Diagnostics::add(Severity severity, const Mark& mark, std::string message, std::string hint,
                      WarningKind kind) {
  if (severity == Severity::error) ++errors_;
  if (severity == Severity::warning) ++warnings_;
  all_.push_back({severity, mark, std::move(message), std::move(hint), std::move(kind.kind),
                  std::move(kind.name)});
}

std::string Diagnostics::format(const Sources& sources, bool color) const {
  // Notes must follow the diagnostic that they belong to. So groups are sorted, not single
  // diagnostics.
  std::vector<std::pair<const Diagnostic*, std::string>> groups;
  for (const Diagnostic& d : all_) {
    std::string text = block(d, sources, color);
    if (d.severity == Severity::note && !d.alone && !groups.empty()) {
      groups.back().second += text;
    } else {
      groups.emplace_back(&d, std::move(text));
    }
  }
  std::ranges::stable_sort(groups, [](const auto& a, const auto& b) {
    const Mark& x = a.first->mark;
    const Mark& y = b.first->mark;
    if (x.known() != y.known()) return !x.known();
    if (!x.known()) return false;
    return std::tie(x.file, x.line, x.column) < std::tie(y.file, y.line, y.column);
  });
  std::set<std::string> seen;
  std::map<std::string, std::vector<const Diagnostic*>> of_kind;
  const auto is_kind = [](const Diagnostic& d) {
    return d.severity != Severity::error && !d.kind.empty();
  };
  std::vector<const std::pair<const Diagnostic*, std::string>*> shown;
  for (const auto& group : groups) {
    if (!seen.insert(group.second).second) continue;
    if (is_kind(*group.first)) {
      std::vector<const Diagnostic*>& all = of_kind[group.first->kind];
      all.push_back(group.first);
      if (all.size() > 1) continue;
    }
    shown.push_back(&group);
  }
  std::string text;
  for (const auto* group : shown) {
    text += group->second;
    if (!is_kind(*group->first)) continue;
    const std::string more = others(of_kind[group->first->kind], sources);
    text += color ? literal(more) : more;
  }
  return text;
}

namespace {

std::string with_hint(const Problem& problem) {
  return problem.hint.empty() ? problem.message : problem.message + "; " + problem.hint;
}

// The characters that would end a message or a property of GitHub's commands.
std::string github_text(const std::string& text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    out += special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

}  // namespace

const char* severity_word(Severity severity, const char* note) {
  if (severity == Severity::error) return "error";
  return severity == Severity::warning ? "warning" : note;
}

void add_problems(const Diagnostics& diagnostics, const Sources& sources,
                  std::vector<Problem>* problems) {
  for (const Diagnostic& d : diagnostics.all()) {
    Problem problem{{}, 0, 0, d.severity, d.message, d.hint};
    if (d.mark.known() && d.mark.file < sources.size()) {
      problem.file = sources.name(d.mark.file);
      problem.line = d.mark.line;
      problem.column = d.mark.column;
    }
    if (std::find(problems->begin(), problems->end(), problem) == problems->end())
      problems->push_back(std::move(problem));
  }
}

std::string problems_for_gcc(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& p : problems) {
    const std::string where =
        p.file.empty() ? "tally" : fmt::format("{}:{}:{}", p.file, p.line, p.column);
    out += fmt::format("{}: {}: {}\n", where, severity_word(p.severity), one_line(with_hint(p)));
  }
  return out;
}

std::string problems_for_github(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& p : problems) {
    out += fmt::format("::{}", severity_word(p.severity, "notice"));
    if (!p.file.empty()) {
      out += fmt::format(" file={},line={},col={}", github_text(p.file, true), p.line, p.column);
    }
    out += fmt::format("::{}\n", github_text(with_hint(p), false));
  }
  return out;
}

}  // namespace tally

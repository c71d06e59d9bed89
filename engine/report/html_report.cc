#include "engine/report/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "engine/base/text.h"
#include "engine/chart/markup.h"
#include "engine/python/python_format.h"
#include "engine/results/rows/records.h"

namespace tally {
namespace {

constexpr size_t kMostBytes = 195000;  // of the page

// A path as the address of a link.
std::string address(const std::string& path) {
  std::string out;
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '.' || c == '-' || c == '_' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return out;
}

// A relative path with a colon in its first part would be read as the name of a protocol.
std::string link(const std::string& path, const std::string& text) {
  if (path.empty()) return escaped(text);
  return fmt::format("<a href=\"{}{}\">{}</a>", path[0] == '/' ? "file://" : "./", address(path),
                     escaped(text));
}

std::string items(const std::vector<std::string>& texts, const char* attributes = "") {
  constexpr size_t kMost = 100;
  if (texts.empty()) return {};
  std::string out = fmt::format("<ul{}>\n", attributes);
  for (size_t i = 0; i < std::min(texts.size(), kMost); ++i)
    out += "<li>" + escaped(texts[i]) + "</li>\n";
  if (texts.size() > kMost) out += fmt::format("<li>and {} more</li>\n", texts.size() - kMost);
  return out + "</ul>\n";
}

std::string plural(size_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// A long list is folded; a browser opens it without a script.
std::string note_list(const std::vector<std::string>& notes) {
  constexpr size_t kMostOpen = 5;
  std::string list = items(notes, " class=\"soft\"");
  if (notes.size() <= kMostOpen) return list;
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", plural(notes.size(), "note"),
                     list);
}

// The provenance of one run.
std::string run_section(const ReportRun& run) {
  std::string out = fmt::format("<h3>{}</h3>\n<dl class=\"facts\">\n", escaped(run.title));
  out += fmt::format("<dt>Folder</dt><dd>{}</dd>\n", link(run.link, run.link));
  for (const auto& [name, value] : run.facts)
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value));
  return out + "</dl>\n";
}

std::string fact_of(const ReportRun& run, const std::string& name) {
  for (const auto& [known, value] : run.facts)
    if (known == name) return value;
  return {};
}

// The provenance of several runs side by side. Lines that differ are marked.
std::string runs_section(const std::vector<ReportRun>& runs) {
  std::string out =
      "<div class=\"wide\" role=\"region\" aria-label=\"runs\" tabindex=\"0\"><table "
      "class=\"runs\">\n<thead><tr><td></td>";
  for (const ReportRun& run : runs)
    out += fmt::format("<th scope=\"col\">{}</th>", link(run.link, run.title));
  out += "</tr></thead>\n<tbody>\n";
  std::vector<std::string> names;
  for (const ReportRun& run : runs)
    for (const auto& [name, value] : run.facts)
      if (!contains(names, name)) names.push_back(name);
  for (const std::string& name : names) {
    const bool differs = std::ranges::any_of(runs, [&](const ReportRun& run) {
      return fact_of(run, name) != fact_of(runs.front(), name);
    });
    out += fmt::format("<tr{}><th scope=\"row\">{}</th>", differs ? " class=\"d\"" : "",
                       escaped(name));
    for (const ReportRun& run : runs) out += "<td>" + escaped(fact_of(run, name)) + "</td>";
    out += "</tr>\n";
  }
  return out + "</tbody></table></div>\n";
}

std::string failure_section(const ReportFailure& failure) {
  constexpr size_t kMost = 3000;
  constexpr size_t kMostMembers = 50;
  std::string message = failure.message;
  if (message.size() > kMost) message = "...\n" + message.substr(message.size() - kMost);
  std::string out =
      fmt::format("<div class=\"failure\"><h3>{}</h3>\n", link(failure.link, failure.name));
  if (!failure.values.empty())
    out += fmt::format("<p class=\"soft\">{}</p>\n", escaped(failure.values));
  out += fmt::format("<pre>{}</pre>\n", escaped(message));
  if (!failure.members.empty()) {
    out += fmt::format("<details><summary>all {}</summary>\n<ul>\n", failure.members.size());
    for (size_t i = 0; i < std::min(kMostMembers, failure.members.size()); ++i)
      out +=
          fmt::format("<li>{}</li>\n", link(failure.members[i].second, failure.members[i].first));
    if (failure.members.size() > kMostMembers)
      out += fmt::format("<li>and {} more</li>\n", failure.members.size() - kMostMembers);
    out += "</ul></details>\n";
  }
  return out + "</div>\n";
}

// A list that the verdict has, too, is folded.
std::string folded(const std::string& head, const std::string& list, bool open) {
  return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n", open ? " open" : "", head,
                     list);
}

std::string references_of(const ReportTable& table, bool is_listed) {
  std::string out;
  const size_t passed = static_cast<size_t>(std::max(0, table.references_passed));
  const size_t all = passed + table.missed.size();
  if (all > 0 && table.missed.empty())
    out += fmt::format("<p class=\"good\">✓ {} held.</p>\n", plural(all, "reference"));
  if (!table.missed.empty())
    out += folded(fmt::format("<span class=\"bad\">✗ {} of {} missed</span>", table.missed.size(),
                              plural(all, "reference")),
                  items(table.missed, " class=\"bad\""), !is_listed);
  if (!table.warned.empty())
    out += fmt::format("<p class=\"doubt\">! {} with <code>action: warn</code> missed:</p>\n",
                       plural(table.warned.size(), "reference")) +
           items(table.warned, " class=\"doubt\"");
  return out;
}

// Whether a cell of the column is too long for one line. A page shows no more than some thousand
// rows.
bool is_long(const Grid& grid, size_t column) {
  constexpr size_t kMostRows = 10000;
  constexpr size_t kLongest = 40;
  for (size_t row = 0; row < std::min(kMostRows, grid.rows.size()); ++row) {
    std::string_view rest = grid.rows[row][column];
    for (size_t end = 0; !rest.empty(); rest.remove_prefix(std::min(end + 1, rest.size()))) {
      end = std::min(rest.find('\n'), rest.size());
      if (end > kLongest && code_points(rest.substr(0, end)) > kLongest) return true;
    }
  }
  return false;
}

// Numbers stand at the right. A table as wide as its page would break every word of a text that it
// can: only long texts are broken, in a column of some width, and a wider table scrolls.
std::string table_head(const Grid& grid, const std::vector<bool>& numeric, const std::string& id) {
  std::string right;
  std::string broken;
  for (size_t i = 0; i < numeric.size(); ++i) {
    if (numeric[i])
      right += fmt::format("{}#{} :is(th,td):nth-child({})", right.empty() ? "" : ",", id, i + 1);
    if (!numeric[i] && is_long(grid, i))
      broken += fmt::format("{}#{} td:nth-child({})", broken.empty() ? "" : ",", id, i + 1);
  }
  if (!right.empty()) right += "{text-align:right}";
  if (!broken.empty()) broken += "{white-space:pre-wrap;overflow-wrap:anywhere;min-width:20rem}";
  if (right.empty() && broken.empty()) return {};
  return "<style>" + right + broken + "</style>\n";
}

// How a mark of rows is shown; null for any other word.
const char* badge_class(std::string_view word) {
  for (const char* bad : {"FAILED", "LOST"})
    if (word == bad) return "badge bad";
  for (const char* doubtful : {kBusy, kThrottled, kShort})
    if (word == doubtful) return "badge doubt";
  for (const char* other : {"EXPECTED", "PENDING", "RUNNING", "WAITING", "CHANGED", "REUSED"})
    if (word == other) return "badge";
  return nullptr;
}

// "BUSY, THROTTLED" with a badge for each mark.
std::string badges(const std::string& cell) {
  std::string out;
  size_t plain = 0;  // where text without a mark begins
  const auto is_capital = [&](size_t at) { return cell[at] >= 'A' && cell[at] <= 'Z'; };
  for (size_t i = 0; i < cell.size();) {
    size_t end = i;
    while (end < cell.size() && is_capital(end)) ++end;
    const std::string word = cell.substr(i, end - i);
    if (const char* shown = badge_class(word); shown != nullptr) {
      out += escaped(cell.substr(plain, i - plain)) +
             fmt::format("<b class=\"{}\">{}</b>", shown, word);
      plain = end;
    }
    i = std::max(end, i + 1);
  }
  return out + escaped(cell.substr(plain));
}

// The rows of one table.
class PageRows {
 public:
  explicit PageRows(const ReportTable& table) : table_(table) {
    for (const ReportMiss& miss : table.misses) misses_[miss.row].push_back(&miss);
  }

  std::string row(size_t row) const {
    const auto found = misses_.find(row);
    const bool missed =
        found != misses_.end() &&
        std::ranges::any_of(found->second, [](const ReportMiss* one) { return !one->warned; });
    std::string out = table_.failed[row] ? "<tr class=\"f\">"
                      : missed           ? "<tr class=\"m\">"
                                         : "<tr>";
    const std::vector<std::string>& cells = table_.grid.rows[row];
    for (size_t i = 0; i < cells.size(); ++i) {
      const bool marks = i < table_.marks.size() && table_.marks[i];
      const std::string text = marks ? badges(cells[i]) : escaped(cells[i]);
      out += (found == misses_.end() ? "<td>" : begin(found->second, i)) + text + "</td>";
    }
    return out + "</tr>\n";
  }

 private:
  // The cell's tag, with a sign if its value misses a reference. A value that no column shows puts
  // the sign into the first cell.
  std::string begin(const std::vector<const ReportMiss*>& misses, size_t column) const {
    std::vector<std::string> texts;
    bool warned = true;
    for (const ReportMiss* one : misses) {
      const size_t at = one->column < table_.grid.header.size() ? one->column : 0;
      if (at != column) continue;
      texts.push_back(one->text);
      warned = warned && one->warned;
    }
    if (texts.empty()) return "<td>";
    return fmt::format("<td class=\"{}\" title=\"{}\">", warned ? "w" : "x",
                       escaped(join(texts, "\n")));
  }

  const ReportTable& table_;
  std::map<size_t, std::vector<const ReportMiss*>> misses_;
};

std::string table_begin(const Grid& grid, const std::string& label, const std::string& id) {
  std::string out = fmt::format(
      "<div class=\"wide\" role=\"region\" aria-label=\"{}\" tabindex=\"0\">"
      "<table class=\"data\" id=\"{}\">\n<thead><tr>",
      escaped(label), id);
  for (const std::string& heading : grid.header)
    out += "<th scope=\"col\">" + escaped(heading) + "</th>";
  return out + "</tr></thead>\n<tbody>\n";
}

// Several runs side by side, where that is short.
std::string beside_section(const ReportTable& table, size_t number) {
  constexpr size_t kMostRows = 200;
  if (table.beside.rows.empty() || table.beside.rows.size() > kMostRows) return {};
  std::string out =
      table_begin(table.beside, "runs side by side: " + table.name, fmt::format("b{}", number));
  for (const std::vector<std::string>& row : table.beside.rows) {
    out += "<tr>";
    for (const std::string& cell : row) out += "<td>" + badges(cell) + "</td>";
    out += "</tr>\n";
  }
  return "<h3>The runs side by side</h3>\n" + out + "</tbody></table></div>\n<h3>All rows</h3>\n";
}

// The table with as many rows as fit into `most_bytes`.
std::string table_section(const ReportTable& table, size_t number, bool is_listed,
                          size_t most_bytes) {
  std::string out = references_of(table, is_listed) + beside_section(table, number);
  std::string after = note_list(table.notes);
  if (table.grid.rows.empty())
    return out + "<p class=\"soft\">The table has no rows.</p>\n" + after;
  out += table_begin(table.grid, "table " + table.name, fmt::format("t{}", number));
  const PageRows rows(table);
  size_t shown = 0;
  for (; shown < table.grid.rows.size() && out.size() + after.size() < most_bytes; ++shown)
    out += rows.row(shown);
  out += "</tbody></table></div>\n";
  if (shown < table.grid.rows.size()) {
    out += fmt::format("<p class=\"bad\">The first {} of {} rows are shown{}.</p>\n", shown,
                       table.grid.rows.size(),
                       table.link.empty() ? "" : "; all are in " + link(table.link, table.link));
  } else if (!table.link.empty()) {
    out += fmt::format("<p class=\"soft\">{}, also in {}</p>\n", plural(shown, "row"),
                       link(table.link, table.link));
  }
  return out + after;
}

class Page {
 public:
  explicit Page(const Report& report) : report_(report) {}

  std::string write() {
    const std::string head = begin();
    const std::string failures = failed();
    const std::string run = what_was_run();
    const std::string tail =
        std::string("<script>") + kReportScript + "</script>\n</body>\n</html>\n";
    size_t used = head.size() + failures.size() + run.size() + tail.size() + 2000;
    // Charts have the first half of the room, tables share the rest.
    const size_t room = kMostBytes > used ? kMostBytes - used : 0;
    const std::vector<std::string> charts = drawn(report_.tables.empty() ? room : room * 6 / 10);
    for (const std::string& chart : charts) used += chart.size();
    return head + tables(charts, kMostBytes > used ? kMostBytes - used : 0) + failures + run + tail;
  }

 private:
  std::string begin() const {
    std::string out = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
        "style-src 'unsafe-inline'; script-src 'unsafe-inline'\">\n"
        "<title>{}</title>\n<style>{}</style>\n",
        escaped(report_.title), kReportStyle);
    for (size_t i = 0; i < report_.tables.size(); ++i) {
      const ReportTable& table = report_.tables[i];
      out += table_head(table.grid, table.numeric, fmt::format("t{}", i)) +
             table_head(table.beside, table.beside_numeric, fmt::format("b{}", i));
    }
    out += fmt::format("</head>\n<body>\n<h1>{}</h1>\n<p class=\"soft\">{}</p>\n",
                       escaped(report_.title), escaped(report_.made));
    return out + verdict() + contents();
  }

  // A sentence and a sign, and what missed.
  std::string verdict() const {
    const ReportVerdict said = verdict_of(report_);
    static constexpr const char* kClasses[] = {"good", "doubt", "bad"};
    std::string out = fmt::format("<div class=\"verdict {}\"><p><b>{}</b> {}</p>\n",
                                  kClasses[static_cast<size_t>(said.verdict)], said.sign(),
                                  escaped(said.sentence));
    const std::vector<std::string> lines = verdict_lines();
    if (!lines.empty()) out += "<ul>\n";
    for (size_t i = 0; i < std::min(kMostInVerdict, lines.size()); ++i) out += lines[i];
    if (lines.size() > kMostInVerdict)
      out += fmt::format("<li>and {} more, below</li>\n", lines.size() - kMostInVerdict);
    if (!lines.empty()) out += "</ul>\n";
    return out + "</div>\n";
  }

  static constexpr size_t kMostInVerdict = 5;
  std::vector<std::string> verdict_lines() const {
    std::vector<std::string> lines;
    for (size_t i = 0; i < report_.tables.size(); ++i)
      for (const std::string& missed : report_.tables[i].missed)
        lines.push_back(fmt::format("<li><a href=\"#s{}\">{}</a>: {}</li>\n", i,
                                    escaped(report_.tables[i].name), escaped(missed)));
    for (const ReportRun& run : report_.runs)
      for (const ReportFailure& failure : run.failures)
        lines.push_back(fmt::format("<li><a href=\"#failed\">{}</a>{}</li>\n",
                                    escaped(failure.name),
                                    failure.cause.empty() ? "" : ": " + escaped(failure.cause)));
    return lines;
  }

  // A list of what the page has, where it has three tables or more.
  std::string contents() const {
    constexpr size_t kFewest = 3;
    if (report_.tables.size() < kFewest) return {};
    std::string out = "<nav aria-label=\"contents\"><ul class=\"contents\">\n";
    for (size_t i = 0; i < report_.tables.size(); ++i)
      out += fmt::format("<li><a href=\"#s{}\">{}</a></li>\n", i, escaped(report_.tables[i].name));
    const bool any = std::ranges::any_of(
        report_.runs, [](const ReportRun& run) { return !run.failures.empty(); });
    if (any) out += "<li><a href=\"#failed\">Workpackages that failed</a></li>\n";
    if (!report_.runs.empty()) out += "<li><a href=\"#run\">What was run</a></li>\n";
    return out + "</ul></nav>\n";
  }

  // Folded: a reader looks for it after the results.
  std::string what_was_run() const {
    if (report_.runs.empty()) return {};
    std::string out = "<details id=\"run\"><summary><h2>What was run</h2></summary>\n";
    out += report_.runs.size() > 1 ? runs_section(report_.runs) : run_section(report_.runs.front());
    return out + "</details>\n";
  }

  std::string failed() const {
    std::string out;
    size_t left_out = 0;
    for (const ReportRun& run : report_.runs) {
      for (const ReportFailure& failure : run.failures) {
        if (out.size() > kMostBytes / 5) {
          ++left_out;
        } else {
          out += failure_section(failure);
        }
      }
    }
    if (left_out > 0) out += fmt::format("<p class=\"bad\">And {} more.</p>\n", left_out);
    return out.empty() ? out : "<h2 id=\"failed\">Workpackages that failed</h2>\n" + out;
  }

  // Each table below its charts.
  std::string tables(const std::vector<std::string>& charts, size_t room) const {
    std::string out;
    if (report_.tables.empty()) {
      out = "<h2>Results</h2>\n<p>The input defines no table.</p>\n" + charts_of(charts, 0);
    }
    size_t used = 0;
    for (size_t i = 0; i < report_.tables.size(); ++i) {
      const size_t left = room > used ? room - used : 0;
      const std::string section =
          table_section(report_.tables[i], i, verdict_lines().size() <= kMostInVerdict,
                        left / (report_.tables.size() - i));
      used += section.size();
      out += fmt::format("<h2 id=\"s{}\">{}</h2>\n", i, escaped(report_.tables[i].name)) +
             charts_of(charts, i) + section;
    }
    return out;
  }

  std::string charts_of(const std::vector<std::string>& charts, size_t table) const {
    std::string out;
    size_t count = 0;
    std::vector<std::pair<std::string, size_t>> notes;  // and how many charts have it
    for (size_t i = 0; i < charts.size(); ++i) {
      if (report_.charts[i].table != table) continue;
      out += charts[i];
      ++count;
      for (const std::string& note : report_.charts[i].notes) {
        auto known =
            std::ranges::find_if(notes, [&](const auto& one) { return one.first == note; });
        if (known == notes.end()) known = notes.insert(known, {note, 0});
        ++known->second;
      }
    }
    if (out.empty()) return out;
    std::vector<std::string> texts;
    for (const auto& [note, charts_with] : notes)
      texts.push_back(count == 1 ? note
                                 : fmt::format("{} of {} charts: {}", charts_with, count, note));
    return "<div class=\"charts\">\n" + out + "</div>\n" + items(texts, " class=\"soft\"");
  }

  // The drawings. The drawings for narrow screens come last: without one, a narrow screen shows the
  // other.
  std::vector<std::string> drawn(size_t room) const {
    std::vector<std::string> out;
    size_t used = 0;
    std::vector<bool> fits;
    for (const ReportChart& chart : report_.charts) {
      fits.push_back(!chart.svg.empty() && used + chart.svg.size() <= room);
      if (fits.back()) used += chart.svg.size();
    }
    for (size_t i = 0; i < report_.charts.size(); ++i) {
      const ReportChart& chart = report_.charts[i];
      const bool narrow = fits[i] && !chart.narrow.empty() && used + chart.narrow.size() <= room;
      if (narrow) used += chart.narrow.size();
      out.push_back(drawing(chart, fits[i], narrow));
    }
    return out;
  }

  static std::string drawing(const ReportChart& chart, bool fits, bool narrow) {
    if (chart.svg.empty())
      return fmt::format("<p class=\"bad\">Chart {} cannot be drawn: {}</p>\n", escaped(chart.name),
                         escaped(chart.problem));
    if (!fits)
      return fmt::format(
          "<p class=\"bad\">Chart {} is left out: it is too large for this page.</p>\n",
          escaped(chart.name));
    if (!narrow) return "<div class=\"chart\">\n" + chart.svg + "</div>\n";
    return "<div class=\"chart both\">\n" + chart.svg + chart.narrow + "</div>\n";
  }

  const Report& report_;
};

}  // namespace

std::string html_report(const Report& report) {
  return Page(report).write();
}

}  // namespace tally

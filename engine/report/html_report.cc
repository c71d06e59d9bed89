#include "engine/report/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "engine/chart/markup.h"
#include "engine/python/python_format.h"
#include "engine/report/html_assets.h"

namespace tally {
namespace {

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

std::string run_section(const ReportRun& run) {
  std::string out = fmt::format("<h3>{}</h3>\n<dl class=\"facts\">\n", escaped(run.title));
  out += fmt::format("<dt>Folder</dt><dd>{}</dd>\n", link(run.link, run.link));
  for (const auto& [name, value] : run.facts)
    out += fmt::format("<dt>{}</dt><dd>{}</dd>\n", escaped(name), escaped(value));
  return out + "</dl>\n";
}

std::string failure_section(const ReportFailure& failure) {
  constexpr size_t kMost = 3000;
  std::string message = failure.message;
  if (message.size() > kMost) message = "...\n" + message.substr(message.size() - kMost);
  std::string out =
      fmt::format("<div class=\"failure\"><h3>{}</h3>\n", link(failure.link, failure.name));
  if (!failure.values.empty())
    out += fmt::format("<p class=\"soft\">{}</p>\n", escaped(failure.values));
  return out + fmt::format("<pre>{}</pre></div>\n", escaped(message));
}

std::string verdict(const ReportTable& table) {
  const size_t passed = static_cast<size_t>(std::max(0, table.references_passed));
  const size_t all = passed + table.missed.size();
  if (all == 0) return {};
  if (table.missed.empty()) {
    return fmt::format("<p class=\"good\">✓ {} held.</p>\n", plural(all, "reference"));
  }
  return fmt::format("<p class=\"bad\">✗ {} of {} missed:</p>\n", table.missed.size(),
                     plural(all, "reference")) +
         items(table.missed, " class=\"bad\"");
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
std::string table_head(const ReportTable& table, size_t number) {
  std::string right;
  std::string broken;
  for (size_t i = 0; i < table.numeric.size(); ++i) {
    if (table.numeric[i])
      right +=
          fmt::format("{}#t{} :is(th,td):nth-child({})", right.empty() ? "" : ",", number, i + 1);
    if (!table.numeric[i] && is_long(table.grid, i))
      broken += fmt::format("{}#t{} td:nth-child({})", broken.empty() ? "" : ",", number, i + 1);
  }
  if (!right.empty()) right += "{text-align:right}";
  if (!broken.empty()) broken += "{white-space:pre-wrap;overflow-wrap:anywhere;min-width:20rem}";
  if (right.empty() && broken.empty()) return {};
  return "<style>" + right + broken + "</style>\n";
}

// The table with as many rows as fit into `most_bytes`.
std::string table_section(const ReportTable& table, size_t number, size_t most_bytes) {
  std::string out = fmt::format("<h3>{}</h3>\n", escaped(table.name)) + verdict(table);
  std::string after = note_list(table.notes);
  if (table.grid.rows.empty())
    return out + "<p class=\"soft\">The table has no rows.</p>\n" + after;
  out += fmt::format(
      "<div class=\"wide\" role=\"region\" aria-label=\"{}\" tabindex=\"0\">"
      "<table class=\"data\" id=\"t{}\">\n<thead><tr>",
      escaped("table " + table.name), number);
  for (const std::string& heading : table.grid.header)
    out += "<th scope=\"col\">" + escaped(heading) + "</th>";
  out += "</tr></thead>\n<tbody>\n";
  size_t shown = 0;
  for (; shown < table.grid.rows.size() && out.size() + after.size() < most_bytes; ++shown) {
    out += table.failed[shown] ? "<tr class=\"f\">" : "<tr>";
    for (const std::string& cell : table.grid.rows[shown]) out += "<td>" + escaped(cell) + "</td>";
    out += "</tr>\n";
  }
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
  Page(const Report& report, size_t most_bytes) : report_(report), most_(most_bytes) {}

  std::string write() {
    const std::string head = begin();
    const std::string failures = failed();
    const std::string tail =
        std::string("<script>") + kReportScript + "</script>\n</body>\n</html>\n";
    size_t used = head.size() + failures.size() + tail.size() + 2000;
    // Charts have the first half of the room, tables share the rest.
    const size_t room = most_ > used ? most_ - used : 0;
    const std::string charts = drawn(report_.tables.empty() ? room : room * 6 / 10);
    used += charts.size();
    return head + tables(most_ > used ? most_ - used : 0) + charts + failures + tail;
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
    for (size_t i = 0; i < report_.tables.size(); ++i) out += table_head(report_.tables[i], i);
    out += fmt::format("</head>\n<body>\n<h1>{}</h1>\n<p class=\"soft\">{}</p>\n",
                       escaped(report_.title), escaped(report_.made));
    size_t missed = 0;
    size_t failures = 0;
    for (const ReportTable& table : report_.tables) missed += table.missed.size();
    for (const ReportRun& run : report_.runs) failures += run.failures.size();
    if (missed > 0)
      out += fmt::format("<p class=\"bad\">✗ {} missed</p>\n", plural(missed, "reference"));
    if (failures > 0)
      out += fmt::format("<p class=\"bad\">✗ {} failed</p>\n", plural(failures, "workpackage"));
    out += "<h2>What was run</h2>\n";
    for (const ReportRun& run : report_.runs) out += run_section(run);
    return out;
  }

  std::string failed() const {
    std::string out;
    size_t left_out = 0;
    for (const ReportRun& run : report_.runs) {
      for (const ReportFailure& failure : run.failures) {
        if (out.size() > most_ / 5) {
          ++left_out;
        } else {
          out += failure_section(failure);
        }
      }
    }
    if (left_out > 0) out += fmt::format("<p class=\"bad\">And {} more.</p>\n", left_out);
    return out.empty() ? out : "<h2>Workpackages that failed</h2>\n" + out;
  }

  std::string tables(size_t room) const {
    if (report_.tables.empty()) return "<h2>Results</h2>\n<p>The input defines no table.</p>\n";
    std::string out = "<h2>Results</h2>\n";
    for (size_t i = 0; i < report_.tables.size(); ++i) {
      const size_t left = room > out.size() ? room - out.size() : 0;
      out += table_section(report_.tables[i], i, left / (report_.tables.size() - i));
    }
    return out;
  }

  std::string drawn(size_t room) const {
    std::string out;
    for (const ReportChart& chart : report_.charts) {
      if (chart.svg.empty()) {
        out += fmt::format("<p class=\"bad\">Chart {} cannot be drawn: {}</p>\n",
                           escaped(chart.name), escaped(chart.problem));
      } else if (out.size() + chart.svg.size() > room) {
        out += fmt::format(
            "<p class=\"bad\">Chart {} is left out: it is too large for this page."
            "</p>\n",
            escaped(chart.name));
      } else {
        out += "<div class=\"chart wide\">\n" + chart.svg + "</div>\n";
      }
    }
    return out.empty() ? out : "<h2>Charts</h2>\n" + out;
  }

  const Report& report_;
  size_t most_;
};

}  // namespace

std::string html_report(const Report& report, size_t most_bytes) {
  return Page(report, most_bytes).write();
}

}  // namespace tally

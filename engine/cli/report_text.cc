#include "engine/cli/report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "engine/base/text.h"
#include "engine/cli/junit_cases.h"
#include "engine/cli/runs.h"
#include "engine/cli/version.h"

namespace tally {
namespace {

// Text that Markdown takes literally.
std::string literal_text(const std::string& text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (std::string_view("\\`*_[]<>&#|~$").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

// Programs may print bytes that are not UTF-8, and control characters.
std::string printable(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    uint32_t code = 0;
    const size_t length = utf8_length(std::string_view(text).substr(i), &code);
    const bool shown = length > 0 && (code >= 0x20 || code == '\n' || code == '\t');
    out += shown ? text.substr(i, length) : "\xEF\xBF\xBD";
    i += std::max<size_t>(length, 1);
  }
  return out;
}

// A block that shows text as it is. The fence is longer than any in the text.
std::string code_block(const std::string& text) {
  std::string fence = "```";
  while (text.find(fence) != std::string::npos) fence += '`';
  return fence + "\n" + text + "\n" + fence + "\n";
}

Status junit_report(std::span<const Run> runs, const std::vector<RenderedResult>& tables,
                    std::string* out) {
  if (runs.size() > 1) return Status::error("a JUnit report is of one run: choose it with --id");
  std::vector<JunitSuite> suites(1);
  const Run& run = runs.front();
  TRY(junit_suite(run.definitions(), run.journal(), tables, suites.data()));
  *out = junit_document(suites);
  return Status::ok();
}

Status csv_report(const std::vector<RenderedResult>& tables, std::string* out) {
  if (tables.size() != 1)
    return Status::error(
        fmt::format("a CSV file has one table, and there are {}; use `tally result -s csv -o "
                    "NAME`, or --format "
                    "json",
                    tables.size()));
  *out = layout(tables.front().grid, "", {});
  return Status::ok();
}

Status json_report(std::span<const Run> runs, const std::vector<RenderedResult>& tables,
                   std::string* out) {
  std::vector<ReportedRun> reported;
  for (const Run& run : runs) TRY(reported_run(run, &reported.emplace_back()));
  *out = json_document(reported, tables, runs.back().sources(), kVersion);
  return Status::ok();
}

}  // namespace

std::string report_format(const std::string& given, const std::string& path) {
  if (!given.empty()) return given;
  const std::string ending = to_lower(path.substr(std::min(path.rfind('.'), path.size())));
  if (ending == ".md") return "md";
  if (ending == ".json") return "json";
  if (ending == ".xml") return "junit";
  return ending == ".csv" ? "csv" : "html";
}

std::string markdown_report(const Report& report) {
  std::string out =
      fmt::format("# {}\n\n{}\n", literal_text(report.title), literal_text(report.made));
  const ReportVerdict said = verdict_of(report);
  out += fmt::format("\n**{} {}**\n", said.sign(), literal_text(said.sentence));
  for (const ReportTable& table : report.tables) {
    if (!table.beside.rows.empty())
      out += "\n" + markdown(table.beside, false, table.name + ", the runs side by side");
    out += "\n" + markdown(table.grid, false, table.name);
    for (const std::string& note : table.notes) out += "\n- " + literal_text(note);
    if (!table.notes.empty()) out += "\n";
    if (table.references_passed > 0 || !table.missed.empty())
      out += fmt::format("\nReferences: {} met, {} missed.\n", table.references_passed,
                         table.missed.size());
    for (const std::string& missed : table.missed) out += "\n- **missed**: " + literal_text(missed);
    if (!table.missed.empty()) out += "\n";
    for (const std::string& warned : table.warned)
      out += "\n- missed, with `action: warn`: " + literal_text(warned);
    if (!table.warned.empty()) out += "\n";
  }
  for (const ReportRun& run : report.runs) {
    out += fmt::format("\n## {}\n\n| | |\n|---|---|\n", literal_text(run.title));
    for (const auto& [name, value] : run.facts)
      out += fmt::format("| {} | {} |\n", literal_text(name), literal_text(value));
    for (const ReportFailure& failure : run.failures) {
      out += fmt::format("\n### {}\n\n{}\n\n{}", literal_text(failure.name),
                         literal_text(failure.values), code_block(failure.message));
    }
  }
  return printable(out);
}

Status report_text(const std::string& format, std::span<const Run> runs,
                   const std::vector<RenderedResult>& tables, std::string* out) {
  if (format == "junit") return junit_report(runs, tables, out);
  if (format == "csv") return csv_report(tables, out);
  return json_report(runs, tables, out);
}

}  // namespace tally

// `tally report` in forms other than HTML.
#pragma once

#include <string>
#include <vector>

#include "engine/cli/run_tables.h"
#include "engine/report/html_report.h"

namespace tally {

// html, md, json, junit or csv: the given one, or else what the file's ending says, or else html.
std::string report_format(const std::string& given, const std::string& path);

// The report in Markdown. It has what the page has, but for the charts.
std::string markdown_report(const Report& report);

// Adds the text in the format json, junit or csv. `tables` are moved from.
Status report_text(const std::string& format, std::span<const Run> runs,
                   std::vector<RunTable>& tables, std::string* out);

}  // namespace tally

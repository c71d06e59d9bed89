// `tally report` in forms other than HTML.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/report/html_report.h"
#include "engine/report/report.h"
#include "engine/run/run.h"

namespace tally {

// html, md, json, junit or csv: the given one, or else what the file's ending says, or else html.
std::string report_format(const std::string& given, const std::string& path);

// The report in Markdown. It has what the page has, but for the charts.
std::string markdown_report(const Report& report);

// Makes the text in the format json, junit or csv.
Status report_text(const std::string& format, std::span<const Run> runs,
                   const std::vector<RenderedResult>& tables, std::string* out);

}  // namespace tally

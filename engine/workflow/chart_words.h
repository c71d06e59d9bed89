// The words that stand for kinds, ideal lines, intervals and axes in files and on command lines.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/status.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Each takes one of the schema's words for its key of `chart`; another word changes nothing.
void set_chart_kind(const std::string& word, Chart* chart);
void set_chart_ideal(const std::string& word, Chart* chart);
void set_chart_error(const std::string& word, Chart* chart);
void set_chart_log(const std::string& word, Chart* chart);

// The columns that `y` names: one, whose title may have commas, or several, separated by commas.
std::vector<Text> drawn_columns(const Text& y,
                                const std::function<bool(const std::string&)>& is_column);

// The points of a published series, written as "1: 60.5, 2: 29.9". The last colon ends x.
Status read_published_points(std::string_view text, std::vector<PublishedPoint>* points);

}  // namespace tally

// The words that stand for kinds, ideal lines, intervals and axes in files and on command lines.
#pragma once

#include <string>

#include "engine/workflow/workflow.h"

namespace tally {

// Each takes one of the schema's words for its key of `chart`; another word changes nothing.
void set_chart_kind(const std::string& word, Chart* chart);
void set_chart_ideal(const std::string& word, Chart* chart);
void set_chart_error(const std::string& word, Chart* chart);
void set_chart_log(const std::string& word, Chart* chart);

}  // namespace tally

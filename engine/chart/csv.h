// Reads a CSV file as a table, so that it can be drawn.
#pragma once

#include <string>

#include "engine/base/status.h"
#include "engine/results/table/result_table.h"

namespace tally {

// Reads CSV after RFC 4180: the first line holds the names, quotes may enclose a cell. The
// separator is a comma, a semicolon or a tab: the one of which the first line has most. A column is
// numeric if all its cells are numbers or empty. A name "tps[tokens/s]" gives the column tps the
// unit tokens/s. A row whose column `status` says FAILED or LOST has failed.
Status read_csv(const std::string& text, ResultTable* table);

}  // namespace tally

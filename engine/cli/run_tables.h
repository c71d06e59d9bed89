// The typed tables of one or several runs, for commands that show them in forms of their own.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/cli/results.h"

namespace tally {

// A table of the workflow, and its rows. Those of several runs are joined and have the column "id".
struct RunTable {
  const Result* result = nullptr;
  const Table* table = nullptr;
  RenderedResult rendered;
};

// Opens the runs with these ids in each of the folders, as `result` finds them. Returns false, after
// printing why, if one cannot be opened.
bool open_runs(const Settings& settings, const std::vector<std::string>& folders,
               const std::vector<std::string>& ids, std::vector<Run>* runs);

// The table of a result that was rendered. Null: it is none.
const Table* table_of(const Result& result, const RenderedResult& rendered);

// Joins the tables of several runs, each computed by its own definitions. Tables of one name are
// joined if they are of the same benchmark. Those of the last run come first. Returns false, after
// printing why, if one cannot be joined; the others are in *joined.
bool join_tables(const Settings& settings, std::span<const Run> runs,
                 std::vector<std::vector<RunTable>> of_runs, const RenderOptions& options,
                 std::vector<RunTable>* joined);

// Reads all tables of the runs. Prints problems. Returns false if the output of a run cannot be
// read, or if tables cannot be joined.
bool tables_of_runs(const Settings& settings, std::span<const Run> runs,
                    std::vector<RunTable>* tables);

// Prints diagnostics, unless the same ones were printed for another run.
void print_once(const Settings& settings, const Diagnostics& diagnostics, const Sources& sources,
                std::set<std::string>* said);

}  // namespace tally

// Reads a scheduler's table from its file.
#pragma once

#include <memory>
#include <string>

#include "engine/base/diagnostics.h"
#include "engine/workflow/scheduler_table.h"

namespace tally {

// The folder of tables in an include path or among the shipped templates, and the file of one.
constexpr const char* scheduler_folder = "schedulers/";
std::string scheduler_file(const std::string& name);
// The name of the table that the file is, by its path; empty if it is none.
std::string table_of_file(const std::string& path);

// Reads the table that `text`, number `file` of the sources, has. Problems go to `diagnostics` with
// their places. Null if there are any.
std::shared_ptr<const SchedulerTable> read_scheduler_table(const std::string& path, uint32_t file,
                                                           const std::string& text,
                                                           Diagnostics& diagnostics);

}  // namespace tally

// Results that are not text files: SQLite databases and syslog messages.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/results/rows/records.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Writes the rows into table `database.name` of the SQLite file `path`, which is created if
// missing, in one transaction.
//
// `run_key` names the run (and result) of the rows, in Tally's own files. The rows that it wrote
// before are replaced: those with equal primary keys, or without such keys all of its rows, which
// have the key in the column `tally_run`. Nothing else in the table is changed or dropped.
//
// Null: as JUBE does. It uses REPLACE INTO, so a row replaces an older one with the same primary
// key. Columns are named as the keys and have the types (int, float, text, NoneType) of the first
// row. In an existing table, new keys are added and columns that are no longer listed are dropped.
Status write_database(const Database& database, const std::vector<Record>& rows,
                      const std::string& path, const std::string* run_key = nullptr);

// Returns one line for each row: "a=1 t=1.0 d=None".
std::vector<std::string> syslog_lines(const Syslog& syslog, const std::vector<Record>& rows,
                                      bool exact);

// Sends the lines to the socket `address` (such as /dev/log), or by UDP to host:port (default 514).
// They are user-level informational messages in `syslog.format` ("jube[%(process)s]: %(message)s").
Status send_syslog(const Syslog& syslog, const std::vector<std::string>& lines);

}  // namespace tally

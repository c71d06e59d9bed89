// Results that are not text files: SQLite databases and syslog messages.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/results/records.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Writes the rows into table `database.name` of the SQLite file `path`, which is created if
// missing. It uses REPLACE INTO, so a row replaces an older one with the same primary key. Columns
// are named as the keys and have the types (int, float, text, NoneType) of the first row. In an
// existing table, new keys are added and columns that are no longer listed are dropped. All this is
// one transaction.
Status write_database(const Database& database, const std::vector<Record>& rows,
                      const std::string& path);

// Returns one line for each row: "a=1 t=1.0 d=None".
std::vector<std::string> syslog_lines(const Syslog& syslog, const std::vector<Record>& rows,
                                      bool exact);

// Sends the lines to the socket `address` (such as /dev/log), or by UDP to host:port (default 514).
// They are user-level informational messages in `syslog.format` ("jube[%(process)s]: %(message)s").
Status send_syslog(const Syslog& syslog, const std::vector<std::string>& lines);

}  // namespace tally

// Results that are no text files: SQLite databases and syslog messages.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/results/records.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Writes the rows into table `database.name` of the SQLite file `path`, made when missing:
// REPLACE INTO, so that rows with the same primary key take the place of older ones. Columns are
// named as the keys, with the types (int, float, text, NoneType) of the first row; new keys are
// added to a table that exists, columns that are no longer listed are dropped. One transaction.
Status write_database(const Database& database, const std::vector<Record>& rows,
                      const std::string& path);

// "a=1 t=1.0 d=None", one line a row.
std::vector<std::string> syslog_lines(const Syslog& syslog, const std::vector<Record>& rows,
                                      bool exact);

// Sends the lines to the socket `address` (as /dev/log) or to host:port (514) by UDP, as user-level
// informational messages in `syslog.format` ("jube[%(process)s]: %(message)s").
Status send_syslog(const Syslog& syslog, const std::vector<std::string>& lines);

}  // namespace tally

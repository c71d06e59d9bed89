// Checksums of the pages of a database file. They show a page whose bytes have changed on the disk,
// which SQLite would otherwise take for data.
//
// The sum is in the last eight bytes of each page, which SQLite leaves free when it is asked to
// (reserve_page_sums). Any SQLite can read such a file. Files without sums are read as before.
//
// SQLite's own cksumvfs (ext/misc/cksumvfs.c) does the same with the same eight bytes, and would not
// replace this file. No distribution's library has it, so that its 800 lines of C would stand here.
// Its sum does not know the page's place: a page written to another place is not found. It takes
// every file with eight free bytes for its own, and would call each journal written so far damaged.
// It passes everything else through, and four things have their place here: the reason of a failed
// call, an EIO that is no damage, a lock that SqliteDatabase took, names beyond 512 bytes.
#pragma once

#include <sqlite3.h>

namespace tally {

// The name of SQLite's virtual file system that writes and checks the sums, for sqlite3_open_v2().
// A page with a wrong sum is SQLITE_IOERR_DATA. Null: it cannot be registered, for lack of memory.
const char* page_sum_vfs();
// That file system takes names as "/proc/self/fd/5/journal.sqlite" without a look at what the
// descriptor stands for. A database in a folder with a long name can be opened by them only.
inline constexpr const char* descriptor_folder = "/proc/self/fd/";
// The errno value of the last call on the database's files that failed. 0: none is known.
int last_system_error(sqlite3* database);
// Makes a new, still empty database one with sums. Returns SQLite's result code.
int reserve_page_sums(sqlite3* database);

}  // namespace tally

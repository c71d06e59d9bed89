#include "engine/journal/journal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/journal/parts.h"
#include "engine/journal/sqlite_journal.h"

namespace tally {
namespace {

constexpr const char* schema = R"(
CREATE TABLE run(key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
CREATE TABLE source(position INTEGER PRIMARY KEY, path TEXT, text BLOB);
CREATE TABLE package(
  id INTEGER PRIMARY KEY, step_index INTEGER, step TEXT, directory TEXT, work_dir TEXT,
  iteration INTEGER, cycle INTEGER, parents TEXT, state INTEGER, note TEXT,
  parameters BLOB, indices BLOB, prepared INTEGER DEFAULT 0, operations_done INTEGER DEFAULT 0,
  environment BLOB, outputs BLOB, job_name TEXT, job_id TEXT, started REAL DEFAULT 0, ended REAL DEFAULT 0);
CREATE TABLE shared(key TEXT PRIMARY KEY, value BLOB) WITHOUT ROWID;
PRAGMA user_version=1;
)";
constexpr int schema_version = 1;

}  // namespace

Status SqliteJournal::lock_and_configure(const std::string& run_dir) {
  run_dir_ = run_dir;
  // The lease before the database: some file systems lock nothing, and opening a database that
  // another host writes would recover it under the writer's hands.
  if (Status taken = lease_.take(lease_file(run_dir), run_name(run_dir)); !taken) return taken;
  // The exclusive lock has to be asked for before the first access: only then does WAL need no
  // shared memory. Checkpoints are ours (see write_snapshot): the main file stays still between
  // them.
  for (const char* setting :
       {"PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL",
        "PRAGMA wal_autocheckpoint=0", "PRAGMA cache_size=-16000", "BEGIN EXCLUSIVE", "COMMIT"}) {
    if (Status status = database_.run(setting); !status) {
      const int code = database_.code();
      lease_.release();
      if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
        return Status::error(in_use_message(run_name(run_dir), Lease::read(lease_file(run_dir))));
      }
      return status;
    }
  }
  writable_ = true;
  return Status::ok();
}

Status SqliteJournal::start_create(const std::string& run_dir, const RunRecord& run,
                                   const Sources& sources) {
  const std::string path = main_file(run_dir);
  if (access(path.c_str(), F_OK) == 0) {
    return Status::error(path +
                         ": there is a run in this directory already; continue it, or choose "
                         "another directory");
  }
  if (Status s = database_.open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, path); !s)
    return s;
  if (Status s = lock_and_configure(run_dir); !s) return s;
  if (Status s = database_.run("BEGIN"); !s) return s;
  if (Status s = database_.run(schema); !s) return s;
  if (Status s = write_run(run); !s) return s;
  Statement insert;
  if (Status s = insert.prepare(database_, "INSERT INTO source VALUES(?,?,?)"); !s) return s;
  for (uint32_t i = 0; i < sources.size(); ++i) {
    insert.bind(1, static_cast<long long>(i))
        .bind(2, sources.name(i))
        .bind_blob(3, sources.text(i));
    if (Status s = insert.run(); !s) return s;
  }
  insert.finish();
  if (Status s = database_.run("COMMIT"); !s) return s;
  // From here on the main file alone is a complete run for a reader.
  if (Status s = database_.run("PRAGMA wal_checkpoint(TRUNCATE)"); !s) return s;
  run_ = run;
  return prepare_statements();
}

Status SqliteJournal::start_open(const std::string& run_dir) {
  const std::string path = main_file(run_dir);
  if (access(path.c_str(), F_OK) != 0) {
    return Status::error(run_dir + ": no run of tally here (journal.sqlite is missing)");
  }
  // Asked first: SQLite would open the file to read, and the lease would fail with a riddle.
  for (const std::string& needed : {path, run_dir}) {
    if (access(needed.c_str(), W_OK) == 0) continue;
    return Status::error(needed + ": cannot be written: " + strerror(errno) +
                         "; only who may write to a run can continue or change it");
  }
  if (Status s = database_.open(path, SQLITE_OPEN_READWRITE, path); !s) return s;
  if (Status s = lock_and_configure(run_dir); !s) return s;
  Statement check;
  if (Status s = check.prepare(database_, "PRAGMA quick_check(1)"); !s) return s;
  const bool good = check.row() && check.text(0) == "ok";
  const std::string found = good ? "" : check.text(0);
  check.finish();
  if (!good) {
    return Status::error(path + ": is damaged (" + found +
                         "); start the run again, or restore the file from a copy");
  }
  if (Status s = read_run(); !s) return s;
  return prepare_statements();
}

Status SqliteJournal::open_snapshot_or_main(const std::string& run_dir) {
  const std::string path = main_file(run_dir);
  const auto open_still = [&](const std::string& file) {
    return database_.open("file:" + percent_encoded(file) + "?immutable=1",
                          SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, file);
  };
  if (Lease::live_holder(lease_file(run_dir))) {
    const std::string snapshot = snapshot_file(run_dir);
    return open_still(access(snapshot.c_str(), R_OK) == 0 ? snapshot : path);
  }
  struct stat wal {};
  if (stat((path + "-wal").c_str(), &wal) != 0 || wal.st_size == 0) return open_still(path);
  // The engine was killed: what it committed last stands in the log, and reading that would write
  // to the directory. Our own copy may be written.
  const char* temporary = getenv("TMPDIR");
  std::string folder = std::string(temporary != nullptr && *temporary ? temporary : "/tmp") +
                       "/tally-journal-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    return Status::error(folder + ": cannot make a temporary folder: " + strerror(errno));
  }
  private_copy_ = folder;
  const std::string copy = main_file(folder);
  if (Status s = copy_file(path, copy); !s) return s;
  if (Status s = copy_file(path + "-wal", copy + "-wal"); !s) return s;
  if (Status s = database_.open(copy, SQLITE_OPEN_READWRITE, path); !s) return s;
  return database_.run("PRAGMA locking_mode=EXCLUSIVE");
}

Status SqliteJournal::start_read(const std::string& run_dir) {
  run_dir_ = run_dir;
  if (access(main_file(run_dir).c_str(), R_OK) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) {
      return Status::error(run_dir + ": no run of tally here (journal.sqlite is missing)");
    }
    return Status::error(main_file(run_dir) + ": " + strerror(errno));
  }
  // An engine may start, end or replace its snapshot between two of our steps: then look again.
  Status status;
  for (int attempt = 0; attempt < 3; ++attempt) {
    status = open_snapshot_or_main(run_dir);
    if (status) status = read_run();
    if (status) return get_shared_.prepare(database_, "SELECT value FROM shared WHERE key=?");
    database_.close();
  }
  return status;
}

Status SqliteJournal::prepare_statements() {
  const std::pair<Statement*, const char*> all[] = {
      {&begin_, "BEGIN"},
      {&commit_, "COMMIT"},
      {&add_,
       "INSERT INTO "
       "package(id,step_index,step,directory,work_dir,iteration,cycle,parents,state,note,"
       "parameters,indices) VALUES(?,?,?,?,?,?,?,?,?,?,?,?)"},
      {&state_,
       "UPDATE package SET state=?2, note=?3, started=CASE WHEN ?4 AND started=0 THEN ?5 ELSE "
       "started "
       "END, ended=CASE WHEN ?4 THEN 0 ELSE ?5 END WHERE id=?1"},
      {&parameters_, "UPDATE package SET parameters=?2, indices=?3 WHERE id=?1"},
      {&operation_,
       "UPDATE package SET prepared=1, cycle=?2, operations_done=?3, environment=?4, outputs=?5 "
       "WHERE id=?1"},
      {&reset_,
       "UPDATE package SET state=0, note='', prepared=0, operations_done=0, cycle=0, "
       "environment=NULL, outputs=NULL, "
       "job_name=NULL, job_id=NULL, started=0, ended=0 WHERE id=?1"},
      {&remove_, "DELETE FROM package WHERE id=?1"},
      {&job_name_, "UPDATE package SET job_name=?2, job_id=NULL WHERE id=?1"},
      {&job_id_, "UPDATE package SET job_id=?2 WHERE id=?1"},
      {&set_shared_, "INSERT OR REPLACE INTO shared VALUES(?,?)"},
      {&set_run_, "INSERT OR REPLACE INTO run VALUES(?,?)"},
      {&get_shared_, "SELECT value FROM shared WHERE key=?"},
  };
  for (const auto& [statement, sql] : all) {
    if (Status s = statement->prepare(database_, sql); !s) return s;
  }
  return Status::ok();
}

Status SqliteJournal::write_run(const RunRecord& run) {
  if (Status s = set_run_.prepare(database_, "INSERT OR REPLACE INTO run VALUES(?,?)"); !s)
    return s;
  std::vector<std::string> set;
  for (const auto& [name, value] : run.set) set.push_back(name + "=" + value);
  const std::pair<const char*, std::string> entries[] = {{"id", std::to_string(run.id)},
                                                         {"benchmark", run.benchmark},
                                                         {"comment", run.comment},
                                                         {"tags", pack(run.tags)},
                                                         {"input_file", run.input_file},
                                                         {"start", run.start},
                                                         {"change", run.change},
                                                         {"version", run.version},
                                                         {"home", run.home},
                                                         {"set", pack(set)}};
  for (const auto& [key, value] : entries) {
    set_run_.bind(1, std::string_view(key)).bind_blob(2, value);
    if (Status s = set_run_.run(); !s) return s;
  }
  return Status::ok();
}

Status SqliteJournal::read_run() {
  Statement version;
  if (Status s = version.prepare(database_, "PRAGMA user_version"); !s) return s;
  const bool any = version.row();
  const long long found = any ? version.integer(0) : 0;
  if (!any && database_.code() != SQLITE_DONE) return database_.failure();
  version.finish();
  if (found != schema_version) {
    return Status::error(main_file(run_dir_) + ": " +
                         (found > schema_version
                              ? "was written by a newer tally; use that one"
                              : "is not a complete journal; start the run again"));
  }
  Statement all;
  if (Status s = all.prepare(database_, "SELECT key, value FROM run"); !s) return s;
  while (all.row()) {
    const std::string key = all.text(0);
    const std::string value = all.text(1);
    if (key == "id") run_.id = static_cast<int>(strtol(value.c_str(), nullptr, 10));
    if (key == "benchmark") run_.benchmark = value;
    if (key == "comment") run_.comment = value;
    if (key == "tags") run_.tags = unpack(value);
    if (key == "input_file") run_.input_file = value;
    if (key == "start") run_.start = value;
    if (key == "change") run_.change = value;
    if (key == "version") run_.version = value;
    if (key == "home") run_.home = value;
    if (key == "set") {
      run_.set.clear();
      for (const std::string& entry : unpack(value)) {
        const size_t equals = entry.find('=');
        run_.set.emplace_back(entry.substr(0, equals), entry.substr(equals + 1));
      }
    }
  }
  return Status::ok();
}

void SqliteJournal::close() {
  for (Statement* s : {&begin_, &commit_, &add_, &state_, &parameters_, &operation_, &reset_,
                       &remove_, &job_name_, &job_id_, &set_shared_, &set_run_, &get_shared_}) {
    s->finish();
  }
  // Closing the last connection brings the log into the main file and removes it.
  database_.close();
  if (writable_) unlink(snapshot_file(run_dir_).c_str());
  lease_.release();
  if (!private_copy_.empty()) {
    for (const char* suffix : {"", "-wal", "-shm"}) {
      unlink((main_file(private_copy_) + suffix).c_str());
    }
    rmdir(private_copy_.c_str());
  }
}

Status Journal::create(const std::string& run_dir, const RunRecord& run, const Sources& sources,
                       std::unique_ptr<Journal>* out) {
  auto journal = std::make_unique<SqliteJournal>();
  if (Status s = journal->start_create(run_dir, run, sources); !s) return s;
  *out = std::move(journal);
  return Status::ok();
}

Status Journal::open(const std::string& run_dir, std::unique_ptr<Journal>* out) {
  auto journal = std::make_unique<SqliteJournal>();
  if (Status s = journal->start_open(run_dir); !s) return s;
  *out = std::move(journal);
  return Status::ok();
}

Status Journal::open_read_only(const std::string& run_dir, std::unique_ptr<Journal>* out) {
  auto journal = std::make_unique<SqliteJournal>();
  if (Status s = journal->start_read(run_dir); !s) return s;
  *out = std::move(journal);
  return Status::ok();
}

std::optional<std::string> run_holder(const std::string& run_dir) {
  const auto holder = Lease::live_holder(lease_file(run_dir));
  if (!holder) return std::nullopt;
  const std::string message = in_use_message(run_name(run_dir), holder);
  return message.substr(0, message.find(';'));
}

bool has_journal(const std::string& run_dir) {
  return access(main_file(run_dir).c_str(), F_OK) == 0;
}

}  // namespace tally

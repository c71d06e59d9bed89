#include "engine/journal/journal.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "engine/base/presence.h"
#include "engine/journal/journal_files.h"
#include "engine/journal/page_sums.h"
#include "engine/journal/tables.h"

namespace tally {
namespace {

// SQLite follows a link in the place of a database.
Status refuse_link(const std::string& path) {
  std::optional<struct stat> found;
  TRY(look_at(path, &found, Links::keep));
  if (!found || !S_ISLNK(found->st_mode)) return Status::ok();
  return Status::error(path + ": is a link, which the run did not make; remove it");
}

}  // namespace

// A journal that cannot be looked at is not one that is missing.
Status Journal::is_there(const std::string& run_dir, int mode) {
  const std::string path = main_file(run_dir);
  if (access(path.c_str(), mode) == 0) return Status::ok();
  if (errno == ENOENT || errno == ENOTDIR) {
    return Status::error(run_dir + ": no run of tally here (journal.sqlite is missing)");
  }
  return Status::error(path + ": " + strerror(errno), errno);
}

Status Journal::lock_and_configure(const std::string& run_dir) {
  run_dir_ = run_dir;
  // The lock comes before the lease: an engine that only stands still keeps its lock, and must find
  // its lease when it goes on. The lease comes before the first look into the database, which may
  // write: some file systems do not lock, or have given up the lock of a suspended machine.
  bool busy = false;
  if (Status locked = database_.lock(&busy); !locked) {
    if (!busy) return locked;
    double silent = 0;
    const auto holder = Lease::possible_holder(lease_file(run_dir), &silent);
    return Status::error(in_use_message(run_name(run_dir), holder, silent));
  }
  TRY(lease_.take(lease_file(run_dir), run_name(run_dir)));
  // If this fails before it has written anything, all stays as it was.
  database_.keep_log(true);
  // The exclusive mode must be set before the first access, because only then does WAL need no
  // shared memory. Automatic checkpoints are off (see write_snapshot), so the main file does not
  // change between checkpoints.
  for (const char* setting :
       {"PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL",
        "PRAGMA wal_autocheckpoint=0", "PRAGMA cache_size=-16000", "BEGIN EXCLUSIVE", "COMMIT"}) {
    TRY(database_.run(setting));
  }
  return Status::ok();
}

// From now on this process changes the run.
void Journal::begin_to_write() {
  database_.keep_log(false);
  writable_ = true;
  struct stat info {};
  private_ = stat(main_file(run_dir_).c_str(), &info) == 0 && (info.st_mode & 077) == 0;
}

Status Journal::check_pages() {
  Statement check;
  TRY(check.prepare(database_, "PRAGMA quick_check(1)"));
  const bool good = check.row() && check.text(0) == "ok";
  if (!check.status()) return check.status();
  const std::string found = good ? "" : check.text(0);
  check.finish();
  return good ? Status::ok() : database_.damaged(found);
}

Status Journal::start_create(const std::string& run_dir, const RunRecord& run,
                             const Sources& sources) {
  const std::string path = main_file(run_dir);
  bool there = false;
  TRY(path_exists(path, &there));
  if (there) {
    return Status::error(path +
                         ": there is a run in this directory already; continue it, or choose "
                         "another directory");
  }
  TRY(database_.open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, path));
  if (reserve_page_sums(database_.handle()) != SQLITE_OK) return database_.failure();
  TRY(lock_and_configure(run_dir));
  begin_to_write();
  TRY(database_.run("BEGIN"));
  TRY(make_tables(database_));
  TRY(make_machine_tables(database_));
  TRY(write_run(database_, run));
  Statement insert;
  TRY(insert.prepare(database_, "INSERT INTO source VALUES(?,?,?)"));
  for (uint32_t i = 0; i < sources.size(); ++i) {
    insert.bind(1, static_cast<long long>(i))
        .bind(2, sources.name(i))
        .bind_blob(3, sources.text(i));
    TRY(insert.run());
  }
  insert.finish();
  TRY(database_.run("COMMIT"));
  // From now on the main file alone is a complete run for a reader.
  TRY(database_.run("PRAGMA wal_checkpoint(TRUNCATE)"));
  run_ = run;
  return prepare_statements();
}

Status Journal::start_open(const std::string& run_dir) {
  const std::string path = main_file(run_dir);
  TRY(is_there(run_dir, F_OK));
  // Write access is checked first. Otherwise SQLite would open the file read-only, and the lease
  // would fail with an unclear message.
  for (const std::string& needed : {path, run_dir}) {
    if (access(needed.c_str(), W_OK) == 0) continue;
    return Status::error(needed + ": cannot be written: " + strerror(errno) +
                         "; only who may write to a run can continue or change it");
  }
  TRY(refuse_link(path));
  TRY(database_.open(path, SQLITE_OPEN_READWRITE, path));
  Status status = lock_and_configure(run_dir);
  if (status) status = check_pages();
  if (status) status = check_version();
  if (!status) {
    lease_.give_back();
    return status;
  }
  begin_to_write();
  TRY(make_machine_tables(database_));
  TRY(read_run(database_, &run_));
  return prepare_statements();
}

Status Journal::open_snapshot_or_main(const std::string& run_dir) {
  const std::string path = main_file(run_dir);
  const auto open_still = [&](const std::string& file) {
    TRY(refuse_link(file));
    return database_.open(file, SQLITE_OPEN_READONLY, file, true);
  };
  if (Lease::live_holder(lease_file(run_dir))) {
    const std::string snapshot = snapshot_file(run_dir);
    bool there = false;
    TRY(path_exists(snapshot, &there));
    return open_still(there ? snapshot : path);
  }
  std::optional<struct stat> log;
  TRY(look_at(path + "-wal", &log));
  if (!log || log->st_size == 0) return open_still(path);
  // The engine was killed. Its last commits are in the log, and reading the log would write to the
  // directory. A private copy may be written.
  const char* temporary = getenv("TMPDIR");
  std::string folder = std::string(temporary != nullptr && *temporary ? temporary : "/tmp") +
                       "/tally-journal-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    return Status::error(folder + ": cannot make a temporary folder: " + strerror(errno));
  }
  private_copy_ = folder;
  const std::string copy = main_file(folder);
  TRY(copy_file(path, copy));
  TRY(copy_file(path + "-wal", copy + "-wal"));
  TRY(database_.open(copy, SQLITE_OPEN_READWRITE, path));
  return database_.run("PRAGMA locking_mode=EXCLUSIVE");
}

Status Journal::start_read(const std::string& run_dir) {
  run_dir_ = run_dir;
  TRY(is_there(run_dir, R_OK));
  // An engine may start, end or replace its snapshot between two of these steps. Then they are
  // repeated.
  Status status;
  for (int attempt = 0; attempt < 3; ++attempt) {
    status = open_snapshot_or_main(run_dir);
    if (status) status = check_version();
    if (status) status = read_run(database_, &run_);
    if (status) return status;
    database_.close();
  }
  return status;
}

Status Journal::prepare_statements() {
  std::string add =
      "INSERT INTO package(id,step_index,step,directory,work_dir,iteration,cycle,parents,state,"
      "parameters,indices," +
      std::string(outcome_columns) + ") VALUES(?,?,?,?,?,?,?,?,?,?,?";
  for (int i = 0; i < outcome_column_count; ++i) add += ",?";
  add += ")";
  const std::string outcome =
      "UPDATE package SET state=?2, started=CASE WHEN ?3 AND started=0 THEN ?4 ELSE started END, "
      "ended=CASE WHEN ?3 THEN 0 ELSE ?4 END, " +
      outcome_assignments(5) + " WHERE id=?1";
  const std::string reset =
      "UPDATE package SET state=0, prepared=0, operations_done=0, cycle=0, environment=NULL, "
      "outputs=NULL, job_name=NULL, job_id=NULL, started=0, ended=0, " +
      outcome_assignments(2) + " WHERE id=?1";
  const std::pair<Statement*, const char*> all[] = {
      {&begin_, "BEGIN"},
      {&commit_, "COMMIT"},
      {&add_, add.c_str()},
      {&outcome_, outcome.c_str()},
      {&parameters_, "UPDATE package SET parameters=?2, indices=?3 WHERE id=?1"},
      {&operation_,
       "UPDATE package SET prepared=1, cycle=?2, operations_done=?3, environment=?4, outputs=?5 "
       "WHERE id=?1"},
      {&outputs_, "UPDATE package SET outputs=?2 WHERE id=?1"},
      {&reset_, reset.c_str()},
      {&remove_, "DELETE FROM package WHERE id=?1"},
      {&job_name_, "UPDATE package SET job_name=?2, job_id=NULL WHERE id=?1"},
      {&job_id_, "UPDATE package SET job_id=?2 WHERE id=?1"},
      {&set_setup_, "INSERT OR REPLACE INTO setup(package,hash,instance) VALUES(?,?,?)"},
      {&ended_, "INSERT OR REPLACE INTO ended_files(package,packed) VALUES(?,?)"},
      {&process_, "INSERT INTO process(package,pid,start) VALUES(?,?,?)"},
  };
  for (const auto& [statement, sql] : all) {
    TRY(statement->prepare(database_, sql));
  }
  return Status::ok();
}

Status Journal::check_version() {
  int found = 0;
  TRY(read_version(database_, &found));
  const std::string file = main_file(run_dir_);
  if (found > journal_version) {
    return Status::error(file + ": is a journal of version " + std::to_string(found) +
                         ", and this tally knows versions up to " +
                         std::to_string(journal_version) +
                         "; use the tally that wrote it, or a newer one");
  }
  if (found < 1) {
    return Status::error(file + ": is not a complete journal; start the run again");
  }
  if (found < journal_version) {
    return Status::error(file + ": is a journal of version " + std::to_string(found) +
                         ", which tally 0.1.0 wrote; `tally continue` of tally 0.2.0 converts it");
  }
  return Status::ok();
}

void Journal::close() {
  for (Statement* s : {&begin_, &commit_, &add_, &outcome_, &parameters_, &operation_, &outputs_,
                       &reset_, &remove_, &job_name_, &job_id_, &set_setup_, &process_, &ended_}) {
    s->finish();
  }
  // Closing the last connection moves the log into the main file and removes the log.
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
  std::unique_ptr<Journal> journal(new Journal());
  TRY(journal->start_create(run_dir, run, sources));
  *out = std::move(journal);
  return Status::ok();
}

Status Journal::open(const std::string& run_dir, std::unique_ptr<Journal>* out) {
  std::unique_ptr<Journal> journal(new Journal());
  TRY(journal->start_open(run_dir));
  *out = std::move(journal);
  return Status::ok();
}

Status Journal::open_read_only(const std::string& run_dir, std::unique_ptr<Journal>* out) {
  std::unique_ptr<Journal> journal(new Journal());
  TRY(journal->start_read(run_dir));
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
  return access(main_file(run_dir).c_str(), F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

}  // namespace tally

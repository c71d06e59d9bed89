#include "engine/journal/journal.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "engine/journal/database.h"
#include "engine/journal/lease.h"

namespace tally {
namespace {

using Clock = std::chrono::steady_clock;

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

std::string file_of(const std::string& run_dir, const char* name) {
  return run_dir + "/" + name;
}
std::string main_file(const std::string& run_dir) {
  return file_of(run_dir, "journal.sqlite");
}
std::string snapshot_file(const std::string& run_dir) {
  return file_of(run_dir, "journal.snapshot");
}
std::string lease_file(const std::string& run_dir) {
  return file_of(run_dir, "journal.lease");
}

// Lists are kept as bytes, each entry ended by a NUL, which neither a parameter nor a variable can
// hold.
std::string pack(const std::vector<std::string>& list) {
  std::string bytes;
  for (const std::string& entry : list) bytes.append(entry).push_back('\0');
  return bytes;
}

std::vector<std::string> unpack(const std::string& bytes) {
  std::vector<std::string> list;
  for (size_t at = 0; at < bytes.size();) {
    const size_t end = bytes.find('\0', at);
    list.push_back(bytes.substr(at, end - at));
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return list;
}

std::string join_ids(const std::vector<int>& ids) {
  std::string text;
  for (const int id : ids) {
    if (!text.empty()) text += ',';
    text += std::to_string(id);
  }
  return text;
}

std::vector<int> split_ids(const std::string& text) {
  std::vector<int> ids;
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    ids.push_back(static_cast<int>(strtol(at, &end, 10)));
    if (end == at) break;
    at = *end == ',' ? end + 1 : end;
  }
  return ids;
}

double now_seconds() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

std::string percent_encoded(const std::string& path) {
  std::string uri;
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      static constexpr char digits[] = "0123456789ABCDEF";
      uri += '%';
      uri += digits[(static_cast<unsigned char>(c) >> 4) & 15];
      uri += digits[static_cast<unsigned char>(c) & 15];
    } else {
      uri += c;
    }
  }
  return uri;
}

std::string run_name(const std::string& run_dir) {
  std::string path = run_dir;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return "run " + path.substr(path.rfind('/') + 1);
}

// Copies a file's bytes; `to` is replaced in one step.
Status copy_file(const std::string& from, const std::string& to) {
  const int in = ::open(from.c_str(), O_RDONLY | O_CLOEXEC);
  if (in < 0) return Status::error(from + ": " + strerror(errno));
  const std::string aside = to + ".new";
  const int out = ::open(aside.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0644);
  if (out < 0) {
    const int reason = errno;
    close(in);
    return Status::error(aside + ": " + strerror(reason));
  }
  std::vector<char> buffer(1 << 18);
  bool good = true;
  for (;;) {
    const ssize_t got = read(in, buffer.data(), buffer.size());
    if (got <= 0) {
      good = got == 0;
      break;
    }
    if (write(out, buffer.data(), static_cast<size_t>(got)) != got) {
      good = false;
      break;
    }
  }
  const int reason = errno;
  close(in);
  good = close(out) == 0 && good;
  if (good && rename(aside.c_str(), to.c_str()) == 0) return Status::ok();
  unlink(aside.c_str());
  return Status::error(to + ": cannot write: " + strerror(reason));
}

class SqliteJournal final : public Journal {
 public:
  ~SqliteJournal() override { close(); }

  Status start_create(const std::string& run_dir, const RunRecord& run, const Sources& sources);
  Status start_open(const std::string& run_dir);
  Status start_read(const std::string& run_dir);

  const RunRecord& run() const override { return run_; }
  std::vector<std::pair<std::string, std::string>> sources() const override;
  Status set_run(const RunRecord& run) override;
  Status begin() override;
  Status commit() override;
  Status add(const WorkPackage& package, const TextPool& pool,
             const std::vector<std::string>& definitions, const std::string& step,
             const std::string& directory, const std::string& work_dir) override;
  Status set_state(int package, State state, const std::string& note) override;
  Status set_parameters(const WorkPackage& package, const TextPool& pool,
                        const std::vector<std::string>& definitions) override;
  Status operation_done(int package, int cycle, int operation,
                        const std::vector<std::string>& environment,
                        const OutputSizes& outputs) override;
  Status reset(int package) override;
  Status remove(int package) override;
  Status job_named(int package, const std::string& job_name) override;
  Status job_submitted(int package, const std::string& job_id) override;
  Status set_shared(const std::string& key, const std::string& value) override;
  std::optional<std::string> shared(const std::string& key) const override;
  void heartbeat() override;
  void on_commit(std::function<void(int, bool)> hook) override { hook_ = std::move(hook); }
  std::vector<Stored> packages() const override;
  std::vector<Tally> states() const override;

 private:
  Status lock_and_configure(const std::string& run_dir);
  Status open_snapshot_or_main(const std::string& run_dir);
  Status prepare_statements();
  Status read_run();
  Status write_run(const RunRecord& run);
  Status change(Statement& statement);
  Status durable(Statement& statement);
  Status committed();
  void write_snapshot();
  void close();

  std::string run_dir_;
  std::string private_copy_;  // folder of a reader's own copy, removed at the end
  bool writable_ = false;
  mutable SqliteDatabase database_;
  Lease lease_;
  RunRecord run_;
  Statement begin_, commit_, add_, state_, parameters_, operation_, reset_, remove_, job_name_,
      job_id_, set_shared_, set_run_;
  mutable Statement get_shared_;
  bool in_transaction_ = false;
  int commits_ = 0;
  std::function<void(int, bool)> hook_;
  Clock::time_point next_snapshot_ = Clock::now() + std::chrono::milliseconds(500);
  Clock::time_point next_renewal_ = Clock::now() + std::chrono::seconds(15);
};

Status SqliteJournal::lock_and_configure(const std::string& run_dir) {
  run_dir_ = run_dir;
  // The exclusive lock has to be asked for before the first access: only then does WAL need no
  // shared memory. Checkpoints are ours (see write_snapshot): the main file stays still between
  // them.
  for (const char* setting :
       {"PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=NORMAL",
        "PRAGMA wal_autocheckpoint=0", "PRAGMA cache_size=-16000", "BEGIN EXCLUSIVE", "COMMIT"}) {
    if (Status status = database_.run(setting); !status) {
      const int code = database_.code();
      if (code == SQLITE_BUSY || code == SQLITE_LOCKED) {
        return Status::error(in_use_message(run_name(run_dir), Lease::read(lease_file(run_dir))));
      }
      return status;
    }
  }
  Status taken = lease_.take(lease_file(run_dir), run_name(run_dir));
  writable_ = static_cast<bool>(taken);
  return taken;
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

std::vector<std::pair<std::string, std::string>> SqliteJournal::sources() const {
  std::vector<std::pair<std::string, std::string>> list;
  Statement all;
  if (!all.prepare(database_, "SELECT path, text FROM source ORDER BY position")) return list;
  while (all.row()) list.emplace_back(all.text(0), all.text(1));
  return list;
}

Status SqliteJournal::set_run(const RunRecord& run) {
  if (Status s = begin(); !s) return s;
  if (Status s = write_run(run); !s) return s;
  run_ = run;
  return commit();
}

Status SqliteJournal::begin() {
  if (in_transaction_) return Status::ok();
  if (Status s = begin_.run(); !s) return s;
  in_transaction_ = true;
  return Status::ok();
}

Status SqliteJournal::commit() {
  if (!in_transaction_) return Status::ok();
  if (hook_) hook_(commits_, false);
  if (Status s = commit_.run(); !s) {
    Status ignored = database_.run("ROLLBACK");
    (void)static_cast<bool>(ignored);
    in_transaction_ = false;
    return s;
  }
  in_transaction_ = false;
  return committed();
}

// One change: inside begin() and commit() a part of that, else a transaction of its own.
Status SqliteJournal::change(Statement& statement) {
  if (in_transaction_) {
    Status status = statement.run();
    // A full disk ends the whole transaction in SQLite; know it.
    if (!status && sqlite3_get_autocommit(database_.handle()) != 0) in_transaction_ = false;
    return status;
  }
  if (hook_) hook_(commits_, false);
  if (Status s = statement.run(); !s) return s;
  return committed();
}

Status SqliteJournal::committed() {
  if (hook_) hook_(commits_, true);
  ++commits_;
  const auto now = Clock::now();
  if (now >= next_snapshot_) write_snapshot();
  if (now >= next_renewal_) heartbeat();
  return Status::ok();
}

// Brings the log into the main file and leaves a copy of that for readers. A failure here loses
// nothing: the log still holds everything, and the next one tries again.
void SqliteJournal::write_snapshot() {
  const auto start = Clock::now();
  if (database_.run("PRAGMA wal_checkpoint(TRUNCATE)")) {
    const Status copied = copy_file(main_file(run_dir_), snapshot_file(run_dir_));
    (void)static_cast<bool>(copied);
  }
  // Never more than a fiftieth of the time goes into snapshots, however large the run.
  const auto cost = Clock::now() - start;
  next_snapshot_ = Clock::now() + std::max<Clock::duration>(std::chrono::seconds(1), cost * 50);
}

void SqliteJournal::heartbeat() {
  const auto now = Clock::now();
  if (now >= next_renewal_) {
    lease_.renew();
    next_renewal_ = now + std::chrono::seconds(15);
  }
  if (!in_transaction_ && writable_ && now >= next_snapshot_ && commits_ > 0) write_snapshot();
}

Status SqliteJournal::durable(Statement& statement) {
  if (in_transaction_) return change(statement);
  if (Status s = database_.run("PRAGMA synchronous=FULL"); !s) return s;
  Status status = change(statement);
  if (Status s = database_.run("PRAGMA synchronous=NORMAL"); !s) return s;
  return status;
}

struct PackedPoint {
  std::string parameters, indices;
};

PackedPoint pack_point(const Point& point, const TextPool& pool,
                       const std::vector<std::string>& definitions) {
  PackedPoint packed;
  for (size_t i = 0; i < point.bindings.size(); ++i) {
    const Binding& binding = point.bindings[i];
    packed.parameters.append(pool[binding.name]).push_back('\0');
    packed.parameters.append(pool[binding.value]).push_back('\0');
    packed.parameters.append(i < definitions.size() ? definitions[i] : "").push_back('\0');
    const uint32_t index = binding.index;
    packed.indices.append(reinterpret_cast<const char*>(&index), sizeof index);
  }
  return packed;
}

Status SqliteJournal::add(const WorkPackage& package, const TextPool& pool,
                          const std::vector<std::string>& definitions, const std::string& step,
                          const std::string& directory, const std::string& work_dir) {
  const PackedPoint point = pack_point(package.point, pool, definitions);
  const std::string parents = join_ids(package.parents);
  add_.bind(1, static_cast<long long>(package.id))
      .bind(2, static_cast<long long>(package.step))
      .bind(3, step)
      .bind(4, directory)
      .bind(5, work_dir)
      .bind(6, static_cast<long long>(package.iteration))
      .bind(7, static_cast<long long>(package.cycle))
      .bind(8, parents)
      .bind(9, static_cast<long long>(package.state))
      .bind(10, package.note)
      .bind_blob(11, point.parameters)
      .bind_blob(12, point.indices);
  return change(add_);
}

Status SqliteJournal::set_state(int package, State state, const std::string& note) {
  const bool starts = state == State::running || state == State::pending;
  state_.bind(1, static_cast<long long>(package))
      .bind(2, static_cast<long long>(state))
      .bind(3, note)
      .bind(4, static_cast<long long>(starts ? 1 : 0))
      .bind(5, state == State::pending ? 0.0 : now_seconds());
  return change(state_);
}

Status SqliteJournal::set_parameters(const WorkPackage& package, const TextPool& pool,
                                     const std::vector<std::string>& definitions) {
  const PackedPoint point = pack_point(package.point, pool, definitions);
  parameters_.bind(1, static_cast<long long>(package.id))
      .bind_blob(2, point.parameters)
      .bind_blob(3, point.indices);
  return change(parameters_);
}

Status SqliteJournal::operation_done(int package, int cycle, int operation,
                                     const std::vector<std::string>& environment,
                                     const OutputSizes& outputs) {
  const std::string packed = pack(environment);
  std::vector<std::string> sizes;
  for (const auto& [path, size] : outputs) {
    sizes.push_back(path);
    sizes.push_back(std::to_string(size));
  }
  const std::string packed_sizes = pack(sizes);
  operation_.bind(1, static_cast<long long>(package))
      .bind(2, static_cast<long long>(cycle))
      .bind(3, static_cast<long long>(operation) + 1)
      .bind_blob(4, packed)
      .bind_blob(5, packed_sizes);
  return change(operation_);
}

Status SqliteJournal::reset(int package) {
  reset_.bind(1, static_cast<long long>(package));
  return change(reset_);
}

Status SqliteJournal::remove(int package) {
  remove_.bind(1, static_cast<long long>(package));
  return change(remove_);
}

Status SqliteJournal::job_named(int package, const std::string& job_name) {
  job_name_.bind(1, static_cast<long long>(package)).bind(2, job_name);
  return durable(job_name_);
}

Status SqliteJournal::job_submitted(int package, const std::string& job_id) {
  job_id_.bind(1, static_cast<long long>(package)).bind(2, job_id);
  return durable(job_id_);
}

Status SqliteJournal::set_shared(const std::string& key, const std::string& value) {
  set_shared_.bind(1, key).bind_blob(2, value);
  return change(set_shared_);
}

std::optional<std::string> SqliteJournal::shared(const std::string& key) const {
  get_shared_.bind(1, key);
  std::optional<std::string> value;
  if (get_shared_.row()) {
    value = get_shared_.text(0);
    while (get_shared_.row()) {
    }
  }
  return value;
}

std::vector<Journal::Stored> SqliteJournal::packages() const {
  std::vector<Stored> list;
  Statement all;
  if (!all.prepare(
          database_,
          "SELECT id,step_index,step,directory,work_dir,iteration,cycle,parents,state,note,"
          "parameters,indices,prepared,operations_done,environment,outputs,job_name,job_id,started,"
          "ended FROM package ORDER BY id")) {
    return list;
  }
  while (all.row()) {
    Stored stored;
    stored.package.id = static_cast<int>(all.integer(0));
    stored.package.step = static_cast<int>(all.integer(1));
    stored.step = all.text(2);
    stored.directory = all.text(3);
    stored.work_dir = all.text(4);
    stored.package.iteration = static_cast<int>(all.integer(5));
    stored.package.cycle = static_cast<int>(all.integer(6));
    stored.package.parents = split_ids(all.text(7));
    stored.package.state = static_cast<State>(all.integer(8));
    stored.package.note = all.text(9);
    const std::vector<std::string> words = unpack(all.text(10));
    for (size_t i = 0; i + 2 < words.size(); i += 3) {
      stored.parameters.emplace_back(words[i], words[i + 1]);
      stored.definitions.push_back(words[i + 2]);
    }
    const std::string numbers = all.text(11);
    stored.index.resize(stored.parameters.size());
    if (!stored.index.empty()) {
      memcpy(stored.index.data(), numbers.data(),
             std::min(numbers.size(), stored.index.size() * sizeof(uint32_t)));
    }
    stored.prepared = all.integer(12) != 0;
    stored.operations_done = static_cast<int>(all.integer(13));
    stored.environment = unpack(all.text(14));
    const std::vector<std::string> sizes = unpack(all.text(15));
    for (size_t i = 0; i + 1 < sizes.size(); i += 2) {
      stored.outputs.emplace_back(sizes[i], strtoll(sizes[i + 1].c_str(), nullptr, 10));
    }
    stored.job_name = all.text(16);
    stored.job_id = all.text(17);
    stored.started = all.real(18);
    stored.ended = all.real(19);
    list.push_back(std::move(stored));
  }
  return list;
}

std::vector<Journal::Tally> SqliteJournal::states() const {
  std::vector<Tally> list;
  Statement all;
  if (!all.prepare(database_,
                   "SELECT step, state, count(*) FROM package GROUP BY step_index, state "
                   "ORDER BY step_index, state")) {
    return list;
  }
  while (all.row()) {
    list.push_back(
        {all.text(0), static_cast<State>(all.integer(1)), static_cast<int>(all.integer(2))});
  }
  return list;
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

}  // namespace

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

bool has_journal(const std::string& run_dir) {
  return access(main_file(run_dir).c_str(), F_OK) == 0;
}

}  // namespace tally

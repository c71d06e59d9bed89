// Functions that change the journal.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/secrets.h"
#include "engine/journal/journal.h"
#include "engine/journal/journal_files.h"
#include "engine/journal/page_sums.h"
#include "engine/journal/tables.h"

namespace tally {
namespace {

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

std::string pack_sizes(const OutputSizes& outputs) {
  std::vector<std::string> sizes;
  for (const auto& [path, size] : outputs) {
    sizes.push_back(path);
    sizes.push_back(std::to_string(size));
  }
  return pack(sizes);
}

}  // namespace

Status Journal::set_run(const RunRecord& run) {
  TRY(transaction([&] { return write_run(database_, run); }));
  run_ = run;
  return Status::ok();
}

Status Journal::set_update(const Update& update) {
  return transaction([&] { return write_update(database_, update); });
}

Status Journal::begin() {
  if (in_transaction_) return Status::ok();
  TRY(begin_.run());
  in_transaction_ = true;
  return Status::ok();
}

Status Journal::commit() {
  if (!in_transaction_) return Status::ok();
  if (hook_) hook_(commits_, false);
  if (Status s = holds_run() ? commit_.run() : taken_over(); !s) {
    Status ignored = database_.run("ROLLBACK");
    (void)static_cast<bool>(ignored);
    in_transaction_ = false;
    return s;
  }
  in_transaction_ = false;
  return committed();
}

Status Journal::transaction(const std::function<Status()>& changes) {
  if (in_transaction_) return changes();
  TRY(begin());
  Status status = changes();
  if (status) return commit();
  if (in_transaction_) {
    Status ignored = database_.run("ROLLBACK");
    (void)static_cast<bool>(ignored);
    in_transaction_ = false;
  }
  return status;
}

// A process that stood still asks before it writes.
bool Journal::holds_run() {
  if (lease_.stale()) renew_lease();
  return !lost_;
}

Status Journal::taken_over() const {
  const auto holder = Lease::read(lease_file(run_dir_));
  if (holder && !holder->host.empty() && !lease_.is_own()) {
    return Status::error(run_dir_ +
                         ": another engine has taken this run over while this one stood "
                         "still (on host " +
                         holder->host + ", process " + std::to_string(holder->pid) +
                         "); it goes on there");
  }
  return Status::error(run_dir_ +
                       ": the lease of this run was lost or could not be renewed for two "
                       "minutes, so that another engine may have taken it; continue the run: "
                       "nothing that finished is lost");
}

// Runs one change. Between begin() and commit() it joins that transaction; otherwise it is a
// transaction of its own.
Status Journal::change(Statement& statement) {
  if (!holds_run()) return taken_over();
  if (in_transaction_) {
    Status status = statement.run();
    // A full disk ends the whole transaction in SQLite, so the flag must follow.
    if (!status && sqlite3_get_autocommit(database_.handle()) != 0) in_transaction_ = false;
    return status;
  }
  if (hook_) hook_(commits_, false);
  TRY(statement.run());
  return committed();
}

Status Journal::committed() {
  if (hook_) hook_(commits_, true);
  ++commits_;
  const auto now = Clock::now();
  if (now >= next_snapshot_) write_snapshot();
  if (now >= next_renewal_) heartbeat();
  return Status::ok();
}

// Moves the write-ahead log into the main file and makes a copy of that for readers. A failure
// loses nothing: the log still holds everything, and the next call tries again.
void Journal::write_snapshot() {
  const auto start = Clock::now();
  if (database_.run("PRAGMA wal_checkpoint(TRUNCATE)")) {
    const Status copied =
        database_.copy_file_to(snapshot_file(run_dir_), private_ ? private_mode : 0644);
    if (copied) commits_of_snapshot_ = commits_;
  }
  // Snapshots take at most a fiftieth of the time, however large the run.
  const auto cost = Clock::now() - start;
  next_snapshot_ = Clock::now() + std::max<Clock::duration>(std::chrono::seconds(1), cost * 50);
}

void Journal::heartbeat() {
  const auto now = Clock::now();
  if (now >= next_renewal_) {
    renew_lease();
    next_renewal_ = now + std::chrono::seconds(15);
  }
  if (const auto due = next_snapshot(); due && now >= *due) write_snapshot();
}

void Journal::publish() {
  if (next_snapshot()) write_snapshot();
}

std::optional<Journal::Clock::time_point> Journal::next_snapshot() const {
  if (in_transaction_ || !writable_ || commits_ == commits_of_snapshot_) return std::nullopt;
  return next_snapshot_;
}

Status Journal::add(const Workpackage& workpackage, const TextPool& pool,
                    const NewWorkpackage& with) {
  const PackedPoint point = pack_point(workpackage.point, pool, with.definitions);
  const std::string parents = join_ids(workpackage.parents);
  add_.bind(1, workpackage.id)
      .bind(2, workpackage.step)
      .bind(3, with.step)
      .bind(4, with.directory)
      .bind(5, with.work_dir)
      .bind(6, workpackage.iteration)
      .bind(7, workpackage.cycle)
      .bind(8, parents)
      .bind(9, static_cast<long long>(workpackage.outcome.state))
      .bind_blob(10, point.parameters)
      .bind_blob(11, point.indices);
  const FilePlace place = place_of(workpackage.outcome.place);
  bind_outcome(add_, 12, workpackage.outcome, place);
  return change(add_);
}

FilePlace Journal::place_of(const Mark& mark) const {
  if (places_ == nullptr || !mark.known() || mark.file >= places_->size()) return {};
  return {places_->name(mark.file), mark.line, mark.column};
}

Status Journal::set_outcome(int workpackage, const Outcome& outcome) {
  const bool starts = outcome.state == State::running || outcome.state == State::pending;
  outcome_.bind(1, workpackage)
      .bind(2, static_cast<long long>(outcome.state))
      .bind(3, static_cast<long long>(starts ? 1 : 0))
      .bind(4, outcome.state == State::pending ? 0.0 : now_seconds());
  const FilePlace place = place_of(outcome.place);
  bind_outcome(outcome_, 5, outcome, place);
  return change(outcome_);
}

Status Journal::set_parameters(const Workpackage& workpackage, const TextPool& pool,
                               const std::vector<std::string>& definitions) {
  const PackedPoint point = pack_point(workpackage.point, pool, definitions);
  parameters_.bind(1, workpackage.id).bind_blob(2, point.parameters).bind_blob(3, point.indices);
  return change(parameters_);
}

Status Journal::outputs_before(int workpackage, const OutputSizes& outputs) {
  const std::string packed = pack_sizes(outputs);
  outputs_.bind(1, workpackage).bind_blob(2, packed);
  return change(outputs_);
}

Status Journal::operation_done(int workpackage, int cycle, int operation,
                               const std::vector<std::string>& environment,
                               const OutputSizes& outputs) {
  if (std::ranges::any_of(environment, keeps_secret)) {
    TRY(keep_private());
  }
  const std::string packed = pack(environment);
  const std::string packed_sizes = pack_sizes(outputs);
  operation_.bind(1, workpackage)
      .bind(2, cycle)
      .bind(3, static_cast<long long>(operation) + 1)
      .bind_blob(4, packed)
      .bind_blob(5, packed_sizes);
  return change(operation_);
}

Status Journal::keep_private() {
  if (private_) return Status::ok();
  for (const std::string& path :
       {main_file(run_dir_), main_file(run_dir_) + "-wal", snapshot_file(run_dir_)}) {
    // O_WRONLY would drop SQLite's lock when it is closed; O_PATH is no open file.
    const int fd = open_own(run_dir_, path, O_PATH);
    if (fd < 0 && errno == ENOENT) continue;
    const std::string itself = descriptor_folder + std::to_string(fd);
    const bool done = fd >= 0 && chmod(itself.c_str(), private_mode) == 0;
    const int reason = errno;
    if (fd >= 0) ::close(fd);
    if (!done) return file_error(path, "cannot be made private, and it holds a secret", reason);
  }
  private_ = true;
  return Status::ok();
}

Status Journal::reset(int workpackage) {
  return change_and_forget(reset_, workpackage);
}

Status Journal::remove(int workpackage) {
  return change_and_forget(remove_, workpackage);
}

// The records of an earlier attempt say nothing about the next one.
Status Journal::change_and_forget(Statement& statement, int workpackage) {
  return transaction([&] {
    TRY(change(statement.bind(1, workpackage)));
    for (const char* table : {"others", "slowed", "job_use", "sample", "outside", "ended_files"}) {
      TRY(forget(table, workpackage));
    }
    return Status::ok();
  });
}

Status Journal::forget(const char* table, int workpackage) {
  Statement forget;
  const std::string sql = std::string("DELETE FROM ") + table + " WHERE package=?";
  TRY(forget.prepare(database_, sql.c_str()));
  return change(forget.bind(1, workpackage));
}

Status Journal::jobs_named(const std::vector<std::pair<int, std::string>>& names) {
  if (names.empty()) return Status::ok();
  const bool own = !in_transaction_;
  // This setting cannot be changed inside a transaction.
  if (own) {
    TRY(database_.run("PRAGMA synchronous=FULL"));
  }
  Status status = transaction([&] {
    for (const auto& [workpackage, name] : names) {
      job_name_.bind(1, workpackage).bind(2, name);
      TRY(change(job_name_));
    }
    return Status::ok();
  });
  if (!own) return status;
  const Status back = database_.run("PRAGMA synchronous=NORMAL");
  return status ? back : status;
}

Status Journal::job_submitted(int workpackage, const std::string& job_id) {
  job_id_.bind(1, workpackage).bind(2, job_id);
  return change(job_id_);
}

Status Journal::set_setup(const Setup& setup) {
  set_setup_.bind(1, setup.workpackage).bind(2, setup.hash).bind(3, setup.instance);
  return change(set_setup_);
}

}  // namespace tally

// The journal on SQLite. journal.cc opens and closes it, changes.cc writes, stored.cc reads.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/journal/database.h"
#include "engine/journal/journal.h"
#include "engine/journal/lease.h"

namespace tally {

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
  Status jobs_named(const std::vector<std::pair<int, std::string>>& names) override;
  Status job_submitted(int package, const std::string& job_id) override;
  Status set_shared(const std::string& key, const std::string& value) override;
  std::optional<std::string> shared(const std::string& key) const override;
  void heartbeat() override;
  // What a heartbeat does four times a minute. A lease that is another's ends all writing.
  void renew_lease() { lost_ = lost_ || !lease_.renew(); }
  void on_commit(std::function<void(int, bool)> hook) override { hook_ = std::move(hook); }
  std::vector<Stored> packages() const override;
  std::vector<Tally> states() const override;

 private:
  using Clock = std::chrono::steady_clock;
  Status lock_and_configure(const std::string& run_dir);
  Status open_snapshot_or_main(const std::string& run_dir);
  Status prepare_statements();
  Status read_run();
  Status write_run(const RunRecord& run);
  Status change(Statement& statement);
  Status committed();
  void write_snapshot();
  void close();

  std::string run_dir_;
  std::string private_copy_;  // folder of a reader's own copy, removed at the end
  bool writable_ = false;
  mutable SqliteDatabase database_;
  Lease lease_;
  bool lost_ = false;  // the lease is another's
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

}  // namespace tally

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
#include "engine/journal/outcome_columns.h"
#include "engine/journal/outside_files.h"
#include "engine/journal/samples.h"

namespace tally {

class SqliteJournal final : public Journal, public SampleTable, public OutsideFileTable {
 public:
  using Clock = std::chrono::steady_clock;

  ~SqliteJournal() override { close(); }

  Status start_create(const std::string& run_dir, const RunRecord& run, const Sources& sources);
  Status start_open(const std::string& run_dir);
  Status start_read(const std::string& run_dir);

  const RunRecord& run() const override { return run_; }
  Status sources(Texts* out) const override;
  Status set_run(const RunRecord& run) override;
  Status set_update(const Update& update) override;
  Status update(Update* out) const override;
  Status begin() override;
  Status commit() override;
  Status add(const Workpackage& workpackage, const TextPool& pool,
             const std::vector<std::string>& definitions, const std::string& step,
             const std::string& directory, const std::string& work_dir) override;
  Status set_outcome(int workpackage, const Outcome& outcome) override;
  void name_places(const Sources* sources) override { places_ = sources; }
  Status set_parameters(const Workpackage& workpackage, const TextPool& pool,
                        const std::vector<std::string>& definitions) override;
  Status operation_done(int workpackage, int cycle, int operation,
                        const std::vector<std::string>& environment,
                        const OutputSizes& outputs) override;
  Status outputs_before(int workpackage, const OutputSizes& outputs) override;
  Status keep_private() override;
  Status process_started(const Process& process) override;
  Status processes(std::vector<Process>* out) const override;
  Status reset(int workpackage) override;
  Status remove(int workpackage) override;
  Status jobs_named(const std::vector<std::pair<int, std::string>>& names) override;
  Status job_submitted(int workpackage, const std::string& job_id) override;
  Status set_setup(const Setup& setup) override;
  Status setups(std::vector<Setup>* out) const override;
  Status set_disturbance(int workpackage, const Disturbance& disturbance) override;
  Status disturbances(std::map<int, Disturbance>* all) const override;
  Status set_job_use(int workpackage, const JobUse& use) override;
  Status job_uses(std::map<int, JobUse>* all) const override;
  Status set_samples(const std::vector<Sample>& samples) override;
  Status each_sample(const std::function<void(const Sample& sample)>& take) const override;
  Status has_samples(bool* has) const override;
  Status set_outside(int workpackage, const OutsideFiles& files) override;
  Status outside_of(int workpackage, OutsideFiles* files) const override;
  Status each_outside(
      const std::function<void(int workpackage, const OutsideFile& file)>& take) const override;
  Status set_ended(int workpackage, const EndedFiles& ended) override;
  Status first_start(double* seconds) const override;
  Status add_session(const Facts& facts) override;
  Status add_fact(const std::string& name, const std::string& value) override;
  Status sessions(std::vector<Facts>* out) const override;
  void heartbeat() override;
  std::optional<Clock::time_point> next_snapshot() const override;
  // Called by heartbeat() four times a minute. If another process has taken the lease, all writing
  // ends.
  void renew_lease() { lost_ = lost_ || !lease_.renew(); }
  void on_commit(std::function<void(int, bool)> hook) override { hook_ = std::move(hook); }
  Status workpackages(std::vector<Stored>* out) const override;
  Status each_workpackage(const std::function<void(Stored& stored)>& take) const override;
  Status with_jobs(std::vector<Stored>* out) const override;
  Status states(std::vector<Tally>* out) const override;
  Status count(size_t* workpackages) const override;

 private:
  Status lock_and_configure(const std::string& run_dir);
  static Status is_there(const std::string& run_dir, int mode);
  void begin_to_write();
  Status check_pages();
  Status open_snapshot_or_main(const std::string& run_dir);
  Status known_version(int* found);
  Status take_version();
  FilePlace place_of(const Mark& mark) const;
  Status prepare_statements();
  enum class For { work, results };  // what Stored has of each: see there
  Status select(const std::string& where, For purpose,
                const std::function<void(Stored&)>& take) const;
  bool holds_run();
  Status taken_over() const;
  Status change_and_forget(Statement& statement, int workpackage);
  Status forget_disturbance(int workpackage);
  Status forget_job_use(int workpackage);
  Status forget_samples(int workpackage);
  Status forget_outside(int workpackage);
  Status forget_ended(int workpackage);
  Status select_outside(
      const std::string& where,
      const std::function<void(int workpackage, const OutsideFile& file)>& take) const;
  Status change(Statement& statement);
  Status committed();
  void write_snapshot();
  void close();

  std::string run_dir_;
  std::string private_copy_;  // folder of a reader's private copy, removed at the end
  bool writable_ = false;
  mutable SqliteDatabase database_;
  Lease lease_;
  bool private_ = false;
  bool lost_ = false;  // another process has taken the lease
  RunRecord run_;
  const Sources* places_ = nullptr;  // the files that marks number
  Statement begin_, commit_, add_, outcome_, parameters_, operation_, outputs_, reset_, remove_,
      job_name_, job_id_, set_setup_, process_, ended_;
  bool in_transaction_ = false;
  int commits_ = 0;
  int commits_of_snapshot_ = 0;  // that the last snapshot has
  std::function<void(int, bool)> hook_;
  Clock::time_point next_snapshot_ = Clock::now() + std::chrono::milliseconds(500);
  Clock::time_point next_renewal_ = Clock::now() + std::chrono::seconds(15);
};

}  // namespace tally

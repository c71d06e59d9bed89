// Functions that read the journal.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/journal/journal.h"
#include "engine/journal/journal_files.h"
#include "engine/journal/tables.h"

namespace tally {
namespace {

// Folders are removed by these names, and none may lead out of the run.
bool is_folder_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

// The journal names output files by their whole paths. Files in the run's folder are where that
// folder is now: the run may have been moved, or copied, since they were written.
void find_moved_outputs(const std::string& now, Journal::Stored* stored) {
  const auto is_there = [&](const auto& output) {
    const std::string& path = output.first;
    return path.size() > now.size() && path[now.size()] == '/' && starts_with(path, now);
  };
  if (std::ranges::all_of(stored->outputs, is_there)) return;
  const std::string own = "/" + stored->directory + "/";
  std::string then;
  for (const auto& [path, size] : stored->outputs) {
    if (const size_t at = path.rfind(own); at != std::string::npos) then = path.substr(0, at);
  }
  if (then.empty() || then == now) return;
  for (auto& [path, size] : stored->outputs) {
    if (starts_with(path, then + "/")) path = now + path.substr(then.size());
  }
}

// Path and size of each.
void read_sizes(std::string_view packed, Journal::Stored* stored) {
  stored->outputs.reserve(static_cast<size_t>(std::ranges::count(packed, '\0') + 1) / 2);
  while (!packed.empty()) {
    const std::string_view path = next_packed(&packed);
    if (packed.empty()) return;
    const std::string_view number = next_packed(&packed);
    long long size = 0;
    std::from_chars(number.data(), number.data() + number.size(), size);
    stored->outputs.emplace_back(path, size);
  }
}

// Name, value and definition of each.
void read_parameters(std::string_view packed, Journal::Stored* stored) {
  const auto count = std::ranges::count(packed, '\0') / 3;
  stored->parameters.reserve(static_cast<size_t>(count));
  stored->definitions.reserve(static_cast<size_t>(count));
  while (!packed.empty()) {
    const std::string_view name = next_packed(&packed);
    if (packed.empty()) return;
    const std::string_view value = next_packed(&packed);
    if (packed.empty()) return;
    stored->parameters.emplace_back(name, value);
    stored->definitions.emplace_back(next_packed(&packed));
  }
}

// The columns from `first` on, which a run needs and results do not.
void read_for_work(const Statement& row, int first, Journal::Stored* stored) {
  stored->workpackage.step = static_cast<int>(row.integer(first));
  const std::string_view numbers = row.bytes(first + 1);
  stored->index.resize(stored->parameters.size());
  if (!stored->index.empty()) {
    memcpy(stored->index.data(), numbers.data(),
           std::min(numbers.size(), stored->index.size() * sizeof(uint32_t)));
  }
  stored->prepared = row.integer(first + 2) != 0;
  stored->environment = unpack(row.bytes(first + 3));
  read_sizes(row.bytes(first + 4), stored);
  stored->job_name = row.text(first + 5);
  stored->ended = row.real(first + 6);
}

}  // namespace

Status Journal::sources(Texts* out) const {
  return read_pairs(database_, "SELECT path, text FROM source ORDER BY position", out);
}

Status Journal::copy_to(const std::string& path) const {
  Statement copy;
  TRY(copy.prepare(database_, "VACUUM INTO ?"));
  return copy.bind(1, std::string_view(path)).run();
}

Status Journal::archived_from(std::string* run_dir) const {
  run_dir->clear();
  bool has = false;
  if (Status s = has_table(database_, "archived", &has); !s || !has) return s;
  Statement origin;
  TRY(origin.prepare(database_, "SELECT run_dir FROM archived"));
  while (origin.row()) *run_dir = origin.text(0);
  return origin.status();
}

Status Journal::update(Update* out) const {
  out->tags = run_.tags;
  return read_update(database_, out);
}

Status Journal::setups(std::vector<Setup>* out) const {
  out->clear();
  Statement all;
  TRY(all.prepare(database_, "SELECT package, hash, instance FROM setup ORDER BY package"));
  while (all.row()) {
    out->push_back({static_cast<int>(all.integer(0)), all.text(1), all.text(2)});
  }
  return all.status();
}

Status Journal::workpackages(std::vector<Stored>* out) const {
  out->clear();
  return select("", For::work, [&](Stored& stored) { out->push_back(std::move(stored)); });
}

Status Journal::each_workpackage(const std::function<void(Stored& stored)>& take) const {
  return select("", For::results, take);
}

Status Journal::with_jobs(std::vector<Stored>* out) const {
  out->clear();
  return select(" WHERE coalesce(job_name,'')<>''", For::work,
                [&](Stored& stored) { out->push_back(std::move(stored)); });
}

Status Journal::select(const std::string& where, For purpose,
                       const std::function<void(Stored&)>& take) const {
  constexpr int kOutcome = 12;
  constexpr int kOthers = kOutcome + outcome_column_count;  // those of one purpose alone
  const std::string run_dir = absolute_path(run_dir_);
  bool has_files = false;  // not in the journal of an earlier version
  if (purpose == For::results) {
    TRY(has_table(database_, "ended_files", &has_files));
  }
  Statement all;
  const std::string sql =
      "SELECT id,step,directory,work_dir,iteration,cycle,parents,state,parameters,operations_done,"
      "job_id,started," +
      std::string(outcome_columns) +
      (purpose == For::work
           ? ",step_index,indices,prepared,environment,outputs,job_name,ended FROM package"
       : has_files ? ",packed FROM package LEFT JOIN ended_files ON ended_files.package=id"
                   : " FROM package") +
      where + " ORDER BY id";
  TRY(all.prepare(database_, sql.c_str()));
  while (all.row()) {
    Stored stored;
    stored.workpackage.id = static_cast<int>(all.integer(0));
    stored.step = all.text(1);
    stored.directory = all.text(2);
    if (!is_folder_name(stored.directory)) {
      return database_.damaged("\"" + stored.directory +
                               "\" is not the name of a workpackage's folder");
    }
    stored.work_dir = all.text(3);
    stored.workpackage.iteration = static_cast<int>(all.integer(4));
    stored.workpackage.cycle = static_cast<int>(all.integer(5));
    stored.workpackage.parents = split_ids(all.text(6));
    FilePlace place;
    stored.workpackage.outcome =
        read_outcome(all, kOutcome, static_cast<State>(all.integer(7)), &place);
    if (!place.file.empty()) {
      stored.place =
          place.file + ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
    }
    read_parameters(all.bytes(8), &stored);
    stored.operations_done = static_cast<int>(all.integer(9));
    stored.job_id = all.text(10);
    stored.started = all.real(11);
    if (purpose == For::work) {
      read_for_work(all, kOthers, &stored);
      find_moved_outputs(run_dir, &stored);
    } else if (has_files) {
      stored.ended_files = all.bytes(kOthers);
    }
    take(stored);
  }
  return all.status();
}

Status Journal::states(std::vector<Tally>* out) const {
  out->clear();
  Statement all;
  TRY(all.prepare(database_,
                  "SELECT step, state, count(*) FROM package GROUP BY step_index, state "
                  "ORDER BY step_index, state"));
  while (all.row()) {
    out->push_back(
        {all.text(0), static_cast<State>(all.integer(1)), static_cast<int>(all.integer(2))});
  }
  return all.status();
}

Status Journal::count(size_t* workpackages) const {
  Statement all;
  TRY(all.prepare(database_, "SELECT count(*) FROM package"));
  *workpackages = all.row() ? static_cast<size_t>(all.integer(0)) : 0;
  return all.status();
}

}  // namespace tally

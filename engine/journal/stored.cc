// What the journal knows, read back.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "engine/journal/parts.h"
#include "engine/journal/sqlite_journal.h"

namespace tally {

std::vector<std::pair<std::string, std::string>> SqliteJournal::sources() const {
  std::vector<std::pair<std::string, std::string>> list;
  Statement all;
  if (!all.prepare(database_, "SELECT path, text FROM source ORDER BY position")) return list;
  while (all.row()) list.emplace_back(all.text(0), all.text(1));
  return list;
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

}  // namespace tally

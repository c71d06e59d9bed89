// The tables about the machine. They were added after version 2 of the journal; readers of that
// version do not look for them, and a journal without them has none of this.
#include "engine/journal/machine.h"

#include "engine/journal/sqlite_journal.h"

namespace tally {
namespace {

Status has_table(SqliteDatabase& database, const char* table, bool* has) {
  Statement found;
  if (Status s =
          found.prepare(database, "SELECT 1 FROM sqlite_master WHERE type='table' AND name=?");
      !s)
    return s;
  found.bind(1, std::string_view(table));
  *has = found.row();
  if (!*has) return found.status();
  while (found.row()) {
  }
  return found.status();
}

}  // namespace

Status make_machine_tables(SqliteDatabase& database) {
  return database.run(
      "CREATE TABLE IF NOT EXISTS others(package INTEGER PRIMARY KEY, cores REAL);"
      "CREATE TABLE IF NOT EXISTS fact(session INTEGER, position INTEGER, name TEXT, value TEXT,"
      " PRIMARY KEY(session, position));");
}

Status SqliteJournal::set_others(int workpackage, double cores) {
  Statement put;
  if (Status s = put.prepare(database_, "INSERT OR REPLACE INTO others VALUES(?,?)"); !s) return s;
  put.bind(1, static_cast<long long>(workpackage)).bind(2, cores);
  return change(put);
}

Status SqliteJournal::others(std::map<int, double>* cores) const {
  cores->clear();
  bool has = false;
  if (Status s = has_table(database_, "others", &has); !s || !has) return s;
  Statement all;
  if (Status s = all.prepare(database_, "SELECT package, cores FROM others"); !s) return s;
  while (all.row()) cores->emplace(static_cast<int>(all.integer(0)), all.real(1));
  return all.status();
}

Status SqliteJournal::add_session(const Facts& facts) {
  Statement last;
  if (Status s = last.prepare(database_, "SELECT coalesce(max(session) + 1, 0) FROM fact"); !s)
    return s;
  const long long session = last.row() ? last.integer(0) : 0;
  last.finish();
  Statement put;
  if (Status s = put.prepare(database_, "INSERT INTO fact VALUES(?,?,?,?)"); !s) return s;
  const bool own = !in_transaction_;
  Status status = own ? begin() : Status::ok();
  for (size_t i = 0; status && i < facts.size(); ++i) {
    put.bind(1, session)
        .bind(2, static_cast<long long>(i))
        .bind(3, facts[i].first)
        .bind(4, facts[i].second);
    status = change(put);
  }
  return status && own ? commit() : status;
}

Status SqliteJournal::add_fact(const std::string& name, const std::string& value) {
  Statement put;
  if (Status s = put.prepare(
          database_,
          "INSERT INTO fact SELECT session, max(position) + 1, ?1, ?2 FROM fact WHERE session="
          "(SELECT max(session) FROM fact) GROUP BY session");
      !s)
    return s;
  put.bind(1, name).bind(2, value);
  return change(put);
}

Status SqliteJournal::sessions(std::vector<Facts>* out) const {
  out->clear();
  bool has = false;
  if (Status s = has_table(database_, "fact", &has); !s || !has) return s;
  Statement all;
  if (Status s = all.prepare(database_,
                             "SELECT session, name, value FROM fact ORDER BY session, position");
      !s)
    return s;
  while (all.row()) {
    const auto session = static_cast<size_t>(all.integer(0));
    if (out->size() <= session) out->resize(session + 1);
    (*out)[session].emplace_back(all.text(1), all.text(2));
  }
  return all.status();
}

}  // namespace tally

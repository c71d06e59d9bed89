// The tables about the machine, and those of analysed files. They were added after version 2 of the
// journal; readers of that version do not look for them, and a journal without them has none of
// this.
#include <utility>

#include "engine/journal/journal.h"
#include "engine/journal/journal_files.h"
#include "engine/journal/tables.h"

namespace tally {
Status has_table(SqliteDatabase& database, const char* table, bool* has) {
  Statement found;
  TRY(found.prepare(database, "SELECT 1 FROM sqlite_master WHERE type='table' AND name=?"));
  found.bind(1, std::string_view(table));
  *has = found.row();
  if (!*has) return found.status();
  while (found.row()) {
  }
  return found.status();
}

Status make_machine_tables(SqliteDatabase& database) {
  return database.run(
      "CREATE TABLE IF NOT EXISTS others(package INTEGER PRIMARY KEY, cores REAL);"
      "CREATE TABLE IF NOT EXISTS slowed(package INTEGER PRIMARY KEY, gpu_users TEXT,"
      " throttling TEXT);"
      "CREATE TABLE IF NOT EXISTS job_use(package INTEGER PRIMARY KEY, nodes TEXT, seconds REAL,"
      " joules REAL, max_rss REAL, why TEXT);"
      "CREATE TABLE IF NOT EXISTS sample(package INTEGER, analyser TEXT, pattern TEXT,"
      " definition TEXT, value TEXT, packed BLOB,"
      " PRIMARY KEY(package, analyser, pattern, definition)) WITHOUT ROWID;"
      "CREATE TABLE IF NOT EXISTS outside(package INTEGER, path TEXT, before_inode INTEGER,"
      " before_size INTEGER, before_ns INTEGER, before_digest TEXT, ended INTEGER, inode INTEGER,"
      " size INTEGER, ns INTEGER, first_byte INTEGER, digest TEXT, PRIMARY KEY(package, path))"
      " WITHOUT ROWID;"
      "CREATE TABLE IF NOT EXISTS ended_files(package INTEGER PRIMARY KEY, packed BLOB);"
      "CREATE TABLE IF NOT EXISTS fact(session INTEGER, position INTEGER, name TEXT, value TEXT,"
      " PRIMARY KEY(session, position));"
      "CREATE TABLE IF NOT EXISTS process(package INTEGER, pid INTEGER, start TEXT);"
      "CREATE TABLE IF NOT EXISTS engine_end(seconds REAL);");
}

Status Journal::note_end() {
  Statement put;
  TRY(put.prepare(database_, "INSERT INTO engine_end VALUES(?)"));
  return change(put.bind(1, now_seconds()));
}

// A run of an earlier tally has the machine's load at the end of its last session.
Status Journal::has_end(bool* has) const {
  *has = false;
  for (const auto& [table, sql] :
       {std::pair{"engine_end", "SELECT count(*) FROM engine_end"},
        std::pair{"fact", "SELECT count(*) FROM fact WHERE name='Load at end'"}}) {
    bool there = false;
    TRY(has_table(database_, table, &there));
    if (!there) continue;
    Statement found;
    TRY(found.prepare(database_, sql));
    *has = *has || (found.row() && found.integer(0) > 0);
    if (!found.status()) return found.status();
  }
  return Status::ok();
}

Status Journal::process_started(const Process& process) {
  process_.bind(1, process.workpackage).bind(2, process.pid).bind(3, process.start);
  return change(process_);
}

Status Journal::processes(std::vector<Process>* out) const {
  out->clear();
  Statement all;
  TRY(all.prepare(database_,
                  "SELECT package, pid, start FROM process WHERE package IN "
                  "(SELECT id FROM package WHERE state=?)"));
  all.bind(1, static_cast<long long>(State::running));
  while (all.row()) {
    out->push_back(
        {static_cast<int>(all.integer(0)), static_cast<int>(all.integer(1)), all.text(2)});
  }
  return all.status();
}

Status Journal::set_disturbance(int workpackage, const Disturbance& disturbance) {
  const auto id = static_cast<long long>(workpackage);
  return transaction([&] {
    TRY(forget("others", workpackage));
    TRY(forget("slowed", workpackage));
    if (disturbance.cores > 0) {
      Statement put;
      TRY(put.prepare(database_, "INSERT INTO others VALUES(?,?)"));
      TRY(change(put.bind(1, id).bind(2, disturbance.cores)));
    }
    if (disturbance.gpu_users.empty() && !disturbance.throttled()) return Status::ok();
    Statement put;
    TRY(put.prepare(database_, "INSERT INTO slowed VALUES(?,?,?)"));
    return change(put.bind(1, id)
                      .bind(2, std::string_view(disturbance.gpu_users))
                      .bind(3, std::string_view(disturbance.throttling)));
  });
}

Status Journal::disturbances(std::map<int, Disturbance>* all) const {
  all->clear();
  bool has = false;
  TRY(has_table(database_, "others", &has));
  if (has) {
    Statement rows;
    TRY(rows.prepare(database_, "SELECT package, cores FROM others"));
    while (rows.row()) (*all)[static_cast<int>(rows.integer(0))].cores = rows.real(1);
    if (!rows.status()) return rows.status();
  }
  if (Status s = has_table(database_, "slowed", &has); !s || !has) return s;
  Statement rows;
  TRY(rows.prepare(database_, "SELECT package, gpu_users, throttling FROM slowed"));
  while (rows.row()) {
    Disturbance& one = (*all)[static_cast<int>(rows.integer(0))];
    one.gpu_users = rows.text(1);
    one.throttling = rows.text(2);
  }
  return rows.status();
}

// A number that is not known is stored as NULL.
Status Journal::set_job_use(int workpackage, const JobUse& use) {
  Statement put;
  TRY(put.prepare(
      database_,
      "INSERT INTO job_use VALUES(?1,?2,nullif(?3,-1.0),nullif(?4,-1.0),nullif(?5,-1.0),?6) "
      "ON CONFLICT(package) DO UPDATE SET "
      "nodes=CASE WHEN excluded.nodes='' THEN nodes ELSE excluded.nodes END, "
      "seconds=coalesce(excluded.seconds, seconds), joules=coalesce(excluded.joules, joules), "
      "max_rss=coalesce(excluded.max_rss, max_rss), why=excluded.why"));
  constexpr double kUnknown = -1;
  put.bind(1, workpackage)
      .bind(2, use.nodes)
      .bind(3, use.seconds.value_or(kUnknown))
      .bind(4, use.joules.value_or(kUnknown))
      .bind(5, use.max_rss.value_or(kUnknown))
      .bind(6, use.why);
  return change(put);
}

Status Journal::job_uses(std::map<int, JobUse>* all) const {
  all->clear();
  bool has = false;
  if (Status s = has_table(database_, "job_use", &has); !s || !has) return s;
  Statement rows;
  TRY(rows.prepare(database_, "SELECT package, nodes, seconds, joules, max_rss, why FROM job_use"));
  const auto number = [&](int column) {
    return rows.is_null(column) ? std::optional<double>() : rows.real(column);
  };
  while (rows.row()) {
    JobUse& use = (*all)[static_cast<int>(rows.integer(0))];
    use.nodes = rows.text(1);
    use.seconds = number(2);
    use.joules = number(3);
    use.max_rss = number(4);
    use.why = rows.text(5);
  }
  return rows.status();
}

Status Journal::add_session(const Facts& facts) {
  Statement last;
  TRY(last.prepare(database_, "SELECT coalesce(max(session) + 1, 0) FROM fact"));
  const long long session = last.row() ? last.integer(0) : 0;
  last.finish();
  Statement put;
  TRY(put.prepare(database_, "INSERT INTO fact VALUES(?,?,?,?)"));
  return transaction([&] {
    for (size_t i = 0; i < facts.size(); ++i) {
      put.bind(1, session)
          .bind(2, static_cast<long long>(i))
          .bind(3, facts[i].first)
          .bind(4, facts[i].second);
      TRY(change(put));
    }
    return Status::ok();
  });
}

Status Journal::add_fact(const std::string& name, const std::string& value) {
  Statement put;
  TRY(put.prepare(
      database_,
      "INSERT INTO fact SELECT session, max(position) + 1, ?1, ?2 FROM fact WHERE session="
      "(SELECT max(session) FROM fact) GROUP BY session"));
  put.bind(1, name).bind(2, value);
  return change(put);
}

Status Journal::sessions(std::vector<Facts>* out) const {
  out->clear();
  bool has = false;
  if (Status s = has_table(database_, "fact", &has); !s || !has) return s;
  Statement all;
  TRY(all.prepare(database_, "SELECT session, name, value FROM fact ORDER BY session, position"));
  while (all.row()) {
    const auto session = static_cast<size_t>(all.integer(0));
    if (out->size() <= session) out->resize(session + 1);
    (*out)[session].emplace_back(all.text(1), all.text(2));
  }
  return all.status();
}

}  // namespace tally

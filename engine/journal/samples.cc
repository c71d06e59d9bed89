#include "engine/journal/journal.h"

#include "engine/journal/tables.h"

namespace tally {

Status Journal::set_samples(const std::vector<Sample>& samples) {
  Statement put;
  if (Status s = put.prepare(database_, "INSERT OR REPLACE INTO sample VALUES(?,?,?,?,?,?)"); !s)
    return s;
  const bool own = !in_transaction_;
  Status status = own ? begin() : Status::ok();
  for (size_t i = 0; status && i < samples.size(); ++i) {
    const Sample& sample = samples[i];
    put.bind(1, static_cast<long long>(sample.workpackage))
        .bind(2, sample.analyser)
        .bind(3, sample.pattern)
        .bind(4, sample.definition)
        .bind(5, sample.value)
        .bind_blob(6, sample.packed);
    status = change(put);
  }
  return status && own ? commit() : status;
}

Status Journal::forget_samples(int workpackage) {
  Statement forget;
  if (Status s = forget.prepare(database_, "DELETE FROM sample WHERE package=?"); !s) return s;
  return change(forget.bind(1, static_cast<long long>(workpackage)));
}

Status Journal::each_sample(const std::function<void(const Sample& sample)>& take) const {
  bool has = false;
  if (Status s = has_table(database_, "sample", &has); !s || !has) return s;
  Statement rows;
  if (Status s =
          rows.prepare(database_,
                       "SELECT package, analyser, pattern, definition, value, packed FROM sample "
                       "ORDER BY package");
      !s)
    return s;
  while (rows.row())
    take({static_cast<int>(rows.integer(0)), rows.text(1), rows.text(2), rows.text(3), rows.text(4),
          rows.text(5)});
  return rows.status();
}

Status Journal::has_samples(bool* has) const {
  if (Status s = has_table(database_, "sample", has); !s || !*has) return s;
  Statement any;
  if (Status s = any.prepare(database_, "SELECT 1 FROM sample LIMIT 1"); !s) return s;
  *has = any.row();
  return any.status();
}

}  // namespace tally

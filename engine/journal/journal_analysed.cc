// The data of a run that results have read: the files outside its folder before and after each
// workpackage, its own files at the end of each, and samples of repeats.
#include "engine/journal/journal.h"

#include "engine/journal/tables.h"

namespace tally {
namespace {

constexpr const char* kColumns =
    "package, path, before_inode, before_size, before_ns, before_digest, ended, inode, size, ns, "
    "first_byte, digest";

FileStamp stamp_in(const Statement& row, int column) {
  return {static_cast<uint64_t>(row.integer(column)), row.integer(column + 1),
          row.integer(column + 2)};
}

void bind_stamp(Statement& statement, int column, const FileStamp& stamp) {
  statement.bind(column, static_cast<long long>(stamp.inode))
      .bind(column + 1, stamp.size)
      .bind(column + 2, stamp.written_ns);
}

}  // namespace

Status Journal::set_outside(int workpackage, const OutsideFiles& files) {
  Statement put;
  const std::string insert =
      std::string("INSERT INTO outside(") + kColumns + ") VALUES(?,?,?,?,?,?,?,?,?,?,?,?)";
  TRY(put.prepare(database_, insert.c_str()));
  return transaction([&] {
    TRY(forget("outside", workpackage));
    for (const OutsideFile& file : files) {
      put.bind(1, workpackage).bind(2, file.path);
      bind_stamp(put, 3, file.before);
      put.bind(6, file.before_digest).bind(7, file.ended);
      bind_stamp(put, 8, file.after);
      put.bind(11, file.from).bind(12, file.digest);
      TRY(change(put));
    }
    return Status::ok();
  });
}

Status Journal::outside_of(int workpackage, OutsideFiles* files) const {
  files->clear();
  return select_outside(" WHERE package=" + std::to_string(workpackage),
                        [&](int, const OutsideFile& file) { files->push_back(file); });
}

Status Journal::each_outside(
    const std::function<void(int workpackage, const OutsideFile& file)>& take) const {
  return select_outside(" ORDER BY package", take);
}

Status Journal::select_outside(
    const std::string& where,
    const std::function<void(int workpackage, const OutsideFile& file)>& take) const {
  bool has = false;  // not in the journal of an earlier version
  if (Status s = has_table(database_, "outside", &has); !s || !has) return s;
  Statement rows;
  const std::string select = std::string("SELECT ") + kColumns + " FROM outside" + where;
  TRY(rows.prepare(database_, select.c_str()));
  while (rows.row()) {
    OutsideFile file;
    file.path = rows.text(1);
    file.before = stamp_in(rows, 2);
    file.before_digest = rows.text(5);
    file.ended = rows.integer(6) != 0;
    file.after = stamp_in(rows, 7);
    file.from = rows.integer(10);
    file.digest = rows.text(11);
    take(static_cast<int>(rows.integer(0)), file);
  }
  return rows.status();
}

Status Journal::set_ended(int workpackage, const EndedFiles& ended) {
  const std::string packed = ended.packed();
  ended_.bind(1, workpackage).bind_blob(2, packed);
  return change(ended_);
}

Status Journal::first_start(double* seconds) const {
  *seconds = 0;
  Statement first;
  TRY(first.prepare(database_, "SELECT MIN(started) FROM package WHERE started>0"));
  if (first.row()) *seconds = first.real(0);
  return first.status();
}

Status Journal::set_samples(const std::vector<Sample>& samples) {
  Statement put;
  TRY(put.prepare(database_, "INSERT OR REPLACE INTO sample VALUES(?,?,?,?,?,?)"));
  return transaction([&] {
    for (const Sample& sample : samples) {
      put.bind(1, sample.workpackage)
          .bind(2, sample.analyser)
          .bind(3, sample.pattern)
          .bind(4, sample.definition)
          .bind(5, sample.value)
          .bind_blob(6, sample.packed);
      TRY(change(put));
    }
    return Status::ok();
  });
}

Status Journal::each_sample(const std::function<void(const Sample& sample)>& take) const {
  bool has = false;
  if (Status s = has_table(database_, "sample", &has); !s || !has) return s;
  Statement rows;
  TRY(rows.prepare(database_,
                   "SELECT package, analyser, pattern, definition, value, packed FROM sample "
                   "ORDER BY package"));
  while (rows.row())
    take({static_cast<int>(rows.integer(0)), rows.text(1), rows.text(2), rows.text(3), rows.text(4),
          rows.text(5)});
  return rows.status();
}

Status Journal::has_samples(bool* has) const {
  if (Status s = has_table(database_, "sample", has); !s || !*has) return s;
  Statement any;
  TRY(any.prepare(database_, "SELECT 1 FROM sample LIMIT 1"));
  *has = any.row();
  return any.status();
}

}  // namespace tally

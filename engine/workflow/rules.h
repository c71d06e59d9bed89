// The differences between JUBE's rules and Tally's. check/ chooses them once for each benchmark, by
// the keys of its file and the program's name. Code asks for one difference by its name and never
// for the kind of file.
#pragma once

#include <array>
#include <bit>

namespace tally {

// Each field is a bool, false by JUBE's rule and true by Tally's. Its comment begins with the title
// of the section of docs/jube-compatibility.md that states it. A test compares the page with both.
struct Rules {
  // Files of our own: a plain YAML value (12.10, true, 010) is the text as it is written.
  bool plain_values_as_written = false;
  // Files of our own: a list under `_` has a parameter's values. JUBE's: its last is the value.
  bool lists_are_values = false;
  // Unknown keys: they are errors. JUBE's: warnings.
  bool unknown_keys_are_errors = false;
  // Files of our own: so are a ${name}, a tag and a set of a `use` that nothing defines.
  bool unknown_names_are_errors = false;
  // Files of our own: a parameter and one of the platform may have the same name.
  bool names_are_the_users = false;
  // Mistakes that are found before the run: a circle of parameters, and an invalid pattern that
  // nobody uses, are errors. JUBE's: warnings.
  bool harmless_mistakes_are_errors = false;

  // A value error: the message names a KeyError and shortens a long expression.
  bool value_errors_are_explained = false;
  // Whole numbers: a fraction is refused or kept where an int is asked for. JUBE's: cut off.
  bool fractions_are_kept = false;
  // Numbers in outputs: $jube_pat_fp and conversions know the numbers that Fortran prints.
  bool fortran_numbers = false;
  // Numbers in outputs: tables for people show the digits that a program printed (12, 0.040).
  // JUBE's: those of Python's str() (12.0, 0.04).
  bool digits_as_printed = false;

  // Exit codes: a benchmark without workpackages is an error. JUBE's: a warning.
  bool empty_run_is_error = false;
  // Commands: result files are written at a run's end without -r, too.
  bool results_without_option = false;
  // The machine: its facts, other users of it and the jobs' use are recorded.
  bool machine_is_watched = false;
  // Files outside the run: what was there before is neither trusted nor overwritten.
  bool outside_files_are_guarded = false;
  // Output that changed after the end: the values of the end are kept and used.
  bool values_are_kept = false;

  // Failed workpackages: their values count in no statistics, reference or baseline.
  bool only_done_counts = false;
  // Failed workpackages: rows are marked, if anything is wrong with their numbers.
  bool rows_are_marked = false;
  // Names of our own: a table may show `status`, `job_energy`, `NAME_median` and the like.
  bool own_columns = false;
  // Reduced lines: all iterations make one row. JUBE's: not if a parameter follows from their
  // number.
  bool iterations_make_one_row = false;
  // Values that are missing: all are reported, and nan is shown as one.
  bool missing_values_are_reported = false;
  // Values that are missing: a filter drops no failed row because that has nothing to compare.
  bool filters_keep_failed_rows = false;
  // Output that cannot be read: results fail. JUBE's: a warning.
  bool unreadable_output_is_error = false;

  // Units: values in different units do not make a column.
  bool units_must_agree = false;
  // Units: a title is shown as it is. JUBE's: the unit follows it.
  bool titles_as_written = false;
  // CSV: fields are quoted where they must be.
  bool csv_is_quoted = false;
  // Several runs in one table: runs of one benchmark make a table, with a note where their
  // definitions differ. JUBE's: runs of any benchmark.
  bool tables_join_one_benchmark = false;
  // Databases: rows of the run are replaced, and the table's own columns stay.
  bool database_knows_runs = false;
  // Charts: they are drawn beside the tables.
  bool charts_are_drawn = false;

  // The rules of JUBE's files, and of every file if the program was called by the name jube.
  static Rules jube() { return {}; }
  // The rules of files that use a key of Tally's own: every field is true.
  static constexpr Rules tally();

  bool operator==(const Rules&) const = default;
};

constexpr Rules Rules::tally() {
  std::array<bool, sizeof(Rules)> all{};
  all.fill(true);
  return std::bit_cast<Rules>(all);
}

}  // namespace tally

#include "engine/workflow/rules.h"

#include <array>

namespace tally {
namespace {

#define TALLY_RULE(field, section) \
  NamedRule {                      \
#field, &Rules::field, section \
  }
constexpr std::array kRules = {
    TALLY_RULE(plain_values_as_written, "Files of our own"),
    TALLY_RULE(lists_are_values, "Files of our own"),
    TALLY_RULE(unknown_keys_are_errors, "Unknown keys"),
    TALLY_RULE(unknown_names_are_errors, "Files of our own"),
    TALLY_RULE(names_are_the_users, "Files of our own"),
    TALLY_RULE(harmless_mistakes_are_errors, "Mistakes that are found before the run"),
    TALLY_RULE(value_errors_are_explained, "A value error"),
    TALLY_RULE(fractions_are_kept, "Whole numbers"),
    TALLY_RULE(fortran_numbers, "Numbers in outputs"),
    TALLY_RULE(empty_run_is_error, "Exit codes"),
    TALLY_RULE(results_without_option, "Commands"),
    TALLY_RULE(machine_is_watched, "The machine"),
    TALLY_RULE(outside_files_are_guarded, "Files outside the run"),
    TALLY_RULE(values_are_kept, "Output that changed after the end"),
    TALLY_RULE(only_done_counts, "Failed workpackages"),
    TALLY_RULE(rows_are_marked, "Failed workpackages"),
    TALLY_RULE(own_columns, "Names of our own"),
    TALLY_RULE(iterations_make_one_row, "Reduced lines"),
    TALLY_RULE(missing_values_are_reported, "Values that are missing"),
    TALLY_RULE(filters_keep_failed_rows, "Values that are missing"),
    TALLY_RULE(unreadable_output_is_error, "Output that cannot be read"),
    TALLY_RULE(units_must_agree, "Units"),
    TALLY_RULE(titles_as_written, "Units"),
    TALLY_RULE(csv_is_quoted, "CSV"),
    TALLY_RULE(tables_join_one_benchmark, "Several runs in one table"),
    TALLY_RULE(database_knows_runs, "Databases"),
    TALLY_RULE(charts_are_drawn, "Charts"),
};
#undef TALLY_RULE

}  // namespace

Rules Rules::tally() {
  Rules rules;
  for (const NamedRule& rule : kRules) rules.*rule.field = true;
  return rules;
}

std::span<const NamedRule> named_rules() {
  return kRules;
}

}  // namespace tally

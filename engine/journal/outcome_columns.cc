#include "engine/journal/outcome_columns.h"

namespace tally {

std::string outcome_assignments(int first) {
  std::string assignments;
  std::string_view left = outcome_columns;
  for (int parameter = first; !left.empty(); ++parameter) {
    const std::string_view column = left.substr(0, left.find(','));
    left.remove_prefix(column.size() == left.size() ? column.size() : column.size() + 1);
    if (!assignments.empty()) assignments += ',';
    assignments += std::string(column) + "=?" + std::to_string(parameter);
  }
  return assignments;
}

void bind_outcome(Statement& statement, int first, const Outcome& outcome, const FilePlace& place) {
  const auto number = [&](int column, int value, int unset) {
    if (value != unset) statement.bind(first + column, value);
  };
  const auto text = [&](int column, std::string_view value) {
    if (!value.empty()) statement.bind(first + column, value);
  };
  text(0, reason_name(outcome.reason));
  number(1, outcome.exit_code, 0);
  number(2, outcome.signal, 0);
  number(3, outcome.workpackage, -1);
  text(4, outcome.command);
  text(5, outcome.directory);
  text(6, outcome.file);
  text(7, outcome.detail);
  text(8, place.file);
  number(9, static_cast<int>(place.line), 0);
  number(10, static_cast<int>(place.column), 0);
}

Outcome read_outcome(const Statement& statement, int first, State state, FilePlace* place) {
  Outcome outcome;
  outcome.state = state;
  if (!statement.is_null(first)) outcome.reason = reason_of(statement.text(first));
  if (outcome.reason != Reason::none) {
    outcome.exit_code = static_cast<int>(statement.integer(first + 1));
    outcome.signal = static_cast<int>(statement.integer(first + 2));
    if (!statement.is_null(first + 3)) {
      outcome.workpackage = static_cast<int>(statement.integer(first + 3));
    }
    outcome.command = statement.text(first + 4);
    outcome.directory = statement.text(first + 5);
    outcome.file = statement.text(first + 6);
    outcome.detail = statement.text(first + 7);
  }
  if (!statement.is_null(first + 8)) {
    place->file = statement.text(first + 8);
    place->line = static_cast<uint32_t>(statement.integer(first + 9));
    place->column = static_cast<uint32_t>(statement.integer(first + 10));
  }
  return outcome;
}

}  // namespace tally

#include "engine/report/note_groups.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace tally {

std::string numbers_in_words(const std::vector<int>& numbers) {
  constexpr size_t kMostParts = 6;
  std::string text;
  size_t parts = 0;
  for (size_t i = 0; i < numbers.size();) {
    if (parts++ == kMostParts) return text + fmt::format(" and {} more", numbers.size() - i);
    size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", numbers[i]);
    if (last > i) text += fmt::format("{}{}", last == i + 1 ? ", " : " to ", numbers[last]);
    i = last + 1;
  }
  return text;
}

namespace {

// Notes about rows and workpackages that are equal but for their numbers: said once.
struct NoteGroup {
  std::string mark, rest;        // "FAILED", "(s) failed: exit code 3"
  std::vector<int> rows, works;  // empty: `rest` is the whole note
  std::string text() const {
    if (works.empty()) return rest;
    const char* rows_word = rows.size() == 1 ? "row" : "rows";
    const std::string where =
        rows.empty() ? "" : fmt::format("{} {}{}: ", rows_word, numbers_in_words(rows), mark);
    return fmt::format("{}workpackage{} {} {}", where, works.size() == 1 ? "" : "s",
                       numbers_in_words(works), rest);
  }
};

void add_note(const Note& note, std::vector<NoteGroup>* groups) {
  int row = 0, work = 0, row_end = 0, work_end = 0;
  const bool of_row = std::sscanf(note.row.c_str(), "row %d%n", &row, &row_end) == 1;
  const bool of_work = note.of_workpackage &&
                       std::sscanf(note.text.c_str(), "workpackage %d (%n", &work, &work_end) == 1;
  if (!of_work || work_end == 0 || (!of_row && !note.row.empty()))
    return groups->push_back({"", note.str(), {}, {}});
  NoteGroup one{of_row ? note.row.substr(static_cast<size_t>(row_end)) : "",
                note.text.substr(static_cast<size_t>(work_end) - 1),
                {},
                {}};
  auto same = std::find_if(groups->begin(), groups->end(), [&](const NoteGroup& other) {
    return !other.works.empty() && other.mark == one.mark && other.rest == one.rest &&
           other.rows.empty() == !of_row;
  });
  if (same == groups->end()) same = groups->insert(same, std::move(one));
  // A row has a note for each of its repeats.
  if (of_row && (same->rows.empty() || same->rows.back() != row)) same->rows.push_back(row);
  if (same->works.empty() || same->works.back() != work) same->works.push_back(work);
}

}  // namespace

std::vector<std::string> grouped_notes(std::span<const Note> notes) {
  std::vector<NoteGroup> groups;
  for (const Note& note : notes) add_note(note, &groups);
  std::vector<std::string> texts;
  for (const NoteGroup& group : groups) texts.push_back(group.text());
  return texts;
}

}  // namespace tally

#include "engine/results/read/used_names.h"

#include "engine/base/text.h"
#include "engine/python/tokens.h"

namespace tally {
namespace {

void add_column_words(const std::vector<Column>& columns, std::set<std::string>& out) {
  for (const Column& column : columns) {
    add_words(column.name.value + " " + column.expression.value, out);
    for (const auto& [name, value] : column.relative_to) out.insert(name.value);
  }
}

}  // namespace

void add_words(const std::string& text, std::set<std::string>& out) {
  std::string word;
  for (char c : text + " ") {
    if (is_word_char(c)) {
      word += c;
    } else if (!word.empty()) {
      out.insert(word);
      word.clear();
    }
  }
}

std::set<std::string> names_shown(const std::vector<Column>& columns,
                                  const std::vector<Reference>& references) {
  std::set<std::string> names;
  add_column_words(columns, names);
  for (const Reference& r : references) {
    add_words(r.column.value + " " + r.condition.value + " " + r.where.value, names);
    if (!r.of.empty()) names.insert(r.column.value + "_" + r.of);
  }
  return names;
}

std::set<std::string> names_in(const Table& table) {
  std::set<std::string> names = names_shown(table.columns, table.references);
  add_words(join(table.sort, " ") + " " + table.filter.value, names);
  return names;
}

std::set<std::string> names_in(const Database& database) {
  std::set<std::string> names;
  add_column_words(database.keys, names);
  add_words(join(database.primary_keys, " ") + " " + database.filter.value, names);
  return names;
}

std::set<std::string> names_in(const Syslog& syslog) {
  std::set<std::string> names;
  add_column_words(syslog.keys, names);
  add_words(join(syslog.sort, " ") + " " + syslog.filter.value, names);
  return names;
}

std::vector<SampleNameUse> sample_names(const Benchmark& benchmark,
                                        const std::set<std::string>& names) {
  std::vector<SampleNameUse> found;
  for (const std::string& name : names) {
    if (std::optional<SampleName> parts = sample_name(benchmark, name))
      found.push_back({name, *std::move(parts)});
  }
  return found;
}

bool shows_repeats(const Column& column) {
  return column.statistic != Statistic::none || column.better != Better::unknown;
}

}  // namespace tally

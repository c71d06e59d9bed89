#include "engine/results/wanted.h"

#include <variant>

#include "engine/base/text.h"

namespace tally {
namespace {

// Adds every word of `text` that could be a name.
void add_words(const std::string& text, std::set<std::string>& out) {
  std::string word;
  for (char c : text + " ") {
    bool part = c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 128;
    if (part) {
      word += c;
    } else if (!word.empty()) {
      out.insert(word);
      word.clear();
    }
  }
}

}  // namespace

Wanted::Wanted(const Benchmark& benchmark) {
  for (const Result& result : benchmark.results) {
    for (const auto& output : result.outputs) {
      if (const auto* shown = std::get_if<Table>(&output)) {
        table(*shown);
      } else if (const auto* database = std::get_if<Database>(&output)) {
        columns(database->keys);
        add_words(join(database->primary_keys, " ") + " " + database->filter.value, names_);
      } else if (const auto* syslog = std::get_if<Syslog>(&output)) {
        columns(syslog->keys);
        add_words(join(syslog->sort, " ") + " " + syslog->filter.value, names_);
      }
    }
  }
}

void Wanted::table(const Table& table) {
  columns(table.columns);
  add_words(join(table.sort, " ") + " " + table.filter.value, names_);
  for (const Reference& r : table.references) {
    add_words(r.column.value + " " + r.condition.value + " " + r.where.value, names_);
  }
}

void Wanted::columns(const std::vector<Column>& list) {
  for (const Column& column : list) {
    add_words(column.name.value + " " + column.expression.value, names_);
    if (!column.relative_to.empty()) all_ = true;
  }
}

}  // namespace tally

#include "engine/read/short_metrics.h"

#include <fmt/format.h>

#include "engine/read/schema.h"
#include "engine/read/yaml_nodes.h"

namespace tally {
namespace {

// A computed column has no pattern, so that its unit stands in the title.
void move_unit(const YamlNode& pattern, YamlNode* column) {
  const YamlNode* unit = pattern.find("unit");
  if (unit == nullptr || column->find("title") != nullptr) return;
  const std::string& name = column->find("_")->value;
  add_text(column, "title", fmt::format("{}[{}]", name, written_text(*unit)), unit->mark);
}

}  // namespace

Metric metric_of(const YamlNode& key, const YamlNode& definition, bool repeated) {
  Metric metric;
  metric.file = "stdout";
  metric.column = make_mapping(key.mark);
  add_text(metric.column.get(), "_", written_text(key), key.mark);
  YamlPtr pattern = make_mapping(key.mark);
  bool has_value = false, has_type = false;
  for (const auto& entry : definition.entries) {
    const std::string& name = entry.first->value;
    const bool of_column = find_key("column", name) != nullptr || find_child("column", name);
    if (name == "file" && is_text(*entry.second)) {
      metric.file = written_text(*entry.second);
    } else if (name != "_" && of_column && find_key("pattern", name) == nullptr) {
      metric.column->entries.push_back(entry);
    } else {
      pattern->entries.push_back(entry);
      has_value = has_value || name == "_";
      has_type = has_type || name == "type";
    }
  }
  if (!has_value && metric.column->find("expression") != nullptr) {
    move_unit(*pattern, metric.column.get());
    pattern = nullptr;
  }
  if (pattern != nullptr && !has_type)
    pattern->entries.insert(pattern->entries.begin() + 1,
                            {make_scalar("type", key.mark), make_scalar("float", key.mark)});
  const YamlNode* type = pattern != nullptr ? pattern->find("type") : nullptr;
  const bool number = type == nullptr || type->value == "float" || type->value == "int";
  const bool said = metric.column->find("statistic") || metric.column->find("uncertainty") ||
                    metric.column->find("relative_to");
  if (repeated && number && !said) add_text(metric.column.get(), "uncertainty", "ci", key.mark);
  metric.pattern = std::move(pattern);
  return metric;
}

}  // namespace tally

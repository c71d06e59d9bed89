#include "engine/results/rows/point_key.h"

#include <algorithm>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"
#include "engine/workflow/builtin_names.h"

namespace tally {
namespace {

const std::string& own_value(const WorkpackageView& view, size_t i) {
  const auto& [name, shown] = view.values[i];
  for (const auto& [hidden, own] : view.hidden) {
    if (hidden == name) return own;
  }
  return shown;
}

// An integer that is shown as it is written: without a sign, zeros before it or spaces.
bool is_plain_integer(std::string_view text) {
  return text.size() < 19 && !text.empty() && (text[0] != '0' || text.size() == 1) &&
         text.find_first_not_of("0123456789") == text.npos;
}

std::string shown_text(const WorkpackageView& view, const std::string& name,
                       const std::string& written, bool exact) {
  for (const auto& [typed, type] : view.types) {
    if (typed != name) continue;
    if (type == ValueType::integer && is_plain_integer(written)) break;
    const std::optional<Value> value = make_value(written, type, exact);
    return value ? value->str() : written;
  }
  return written;
}

void add_value(const std::string& name, const std::string& value, std::string& text) {
  text.append(name).append(1, '=').append(value).append(1, '\0');
}

}  // namespace

Points::Points(const std::vector<WorkpackageView>& workpackages, bool exact) {
  keys_.reserve(workpackages.size());
  for (const WorkpackageView& one : workpackages) add(one, exact);
}

void Points::add(const WorkpackageView& workpackage, bool exact) {
  if (workpackage.id < 0) return;
  const auto id = static_cast<size_t>(workpackage.id);
  if (id >= keys_.size()) keys_.resize(id + 1);
  const Order* before = orders_.empty() ? nullptr : &orders_[last_order_];
  const auto begin = static_cast<uint32_t>(values_.size());
  list_.clear();
  for (size_t i = 0; i < workpackage.parameters; ++i) {
    const std::string& name = workpackage.values[i].first;
    const bool same = before != nullptr && i < before->parameters.size() &&
                      at(before->parameters[i]).name == name;
    const int number = same ? before->parameters[i] : number_of(name);
    list_.push_back(number);
    values_.push_back(value_of(parameters_[static_cast<size_t>(number)], own_value(workpackage, i),
                               workpackage, exact));
  }
  if (before == nullptr || before->parameters != list_) last_order_ = order_of(list_);
  keys_[id] = {static_cast<uint32_t>(last_order_ + 1), begin};
}

int Points::number_of(const std::string& name) {
  const auto [entry, is_new] = numbers_.try_emplace(name, static_cast<int>(parameters_.size()));
  if (is_new) parameters_.emplace_back().name = name;
  return entry->second;
}

size_t Points::order_of(const std::vector<int>& parameters) {
  for (size_t i = 0; i < orders_.size(); ++i) {
    if (orders_[i].parameters == parameters) return i;
  }
  Order& order = orders_.emplace_back();
  order.parameters = parameters;
  order.positions.assign(parameters_.size(), -1);
  for (size_t i = 0; i < parameters.size(); ++i)
    order.positions[static_cast<size_t>(parameters[i])] = static_cast<int>(i);
  return orders_.size() - 1;
}

// Most values are those of the workpackage before, or follow them in a list.
uint32_t Points::value_of(Parameter& parameter, const std::string& text,
                          const WorkpackageView& view, bool exact) {
  std::vector<std::string>& written = parameter.written;
  const size_t next = parameter.last + 1 < written.size() ? parameter.last + 1 : 0;
  for (const size_t known : {static_cast<size_t>(parameter.last), next}) {
    if (known < written.size() && written[known] == text)
      return parameter.last = static_cast<uint32_t>(known);
  }
  parameter.last = static_cast<uint32_t>(written.size());
  written.push_back(text);
  std::string shown = shown_text(view, parameter.name, text, exact);
  if (shown != text) parameter.shown.emplace(parameter.last, std::move(shown));
  return parameter.last;
}

int Points::find(std::string_view name) const {
  const auto found = numbers_.find(std::string(name));
  return found == numbers_.end() ? -1 : found->second;
}

const std::vector<int>& Points::of(int workpackage) const {
  static const std::vector<int> none;
  const Key key = key_of(workpackage);
  return key.order == 0 ? none : orders_[key.order - 1].parameters;
}

Points::Key Points::key_of(int workpackage) const {
  const auto id = static_cast<size_t>(workpackage);  // -1 is beyond all
  return id < keys_.size() ? keys_[id] : Key{};
}

const uint32_t* Points::value(int workpackage, int parameter) const {
  const Key key = key_of(workpackage);
  if (key.order == 0 || parameter < 0) return nullptr;
  const std::vector<int>& positions = orders_[key.order - 1].positions;
  const auto at = static_cast<size_t>(parameter);
  if (at >= positions.size() || positions[at] < 0) return nullptr;
  return &values_[key.begin + static_cast<size_t>(positions[at])];
}

const std::string* Points::written(int workpackage, int parameter) const {
  const uint32_t* number = value(workpackage, parameter);
  return number == nullptr ? nullptr : &at(parameter).written[*number];
}

const std::string* Points::shown(int workpackage, int parameter) const {
  const uint32_t* number = value(workpackage, parameter);
  if (number == nullptr) return nullptr;
  const auto other = at(parameter).shown.find(*number);
  return other == at(parameter).shown.end() ? &at(parameter).written[*number] : &other->second;
}

int Points::place(int workpackage, int parameter) const {
  const std::string* text = written(workpackage, parameter);
  if (text == nullptr) return -1;
  const std::vector<std::string>& all = at(parameter).written;
  return static_cast<int>(std::ranges::find(all, *text) - all.begin());
}

int PointKey::place(std::string_view name) const {
  return points_ == nullptr ? -1 : points_->place(workpackage_, points_->find(name));
}

const std::string* PointKey::value(std::string_view name) const {
  if (!match_.empty()) {
    const auto found = match_->values.find(std::string(name));
    if (found != match_->values.end()) return &found->second;
  }
  return points_ == nullptr ? nullptr : points_->shown(workpackage_, points_->find(name));
}

std::string PointKey::text(const std::set<std::string>& names) const {
  std::string text;
  for (const std::string& name : names) {
    if (const std::string* shown = value(name)) add_value(name, *shown, text);
  }
  return text;
}

std::string PointKey::key(const std::set<std::string>& names) const {
  return std::to_string(match_->occurrence) + '\1' + text(names);
}

std::vector<std::pair<std::string_view, std::string_view>> PointKey::differing(
    const std::set<std::string>& names) const {
  std::vector<std::pair<std::string_view, std::string_view>> found;
  const std::vector<int> none;
  for (const int parameter : points_ == nullptr ? none : points_->of(workpackage_)) {
    const std::string& name = points_->name(parameter);
    if (names.count(name) != 0 && points_->differs(parameter))
      found.emplace_back(name, *points_->written(workpackage_, parameter));
  }
  found.insert(found.end(), match_->values.begin(), match_->values.end());
  return found;
}

std::string PointKey::text_without(const std::set<std::string>& names) const {
  std::string text;
  if (points_ == nullptr) return text;
  for (const int parameter : points_->of(workpackage_)) {
    const std::string& name = points_->name(parameter);
    if (starts_with(name, "jube_") || names.count(name) != 0) continue;
    add_value(name, *points_->written(workpackage_, parameter), text);
  }
  return text;
}

std::set<std::string> free_parameters(const Benchmark& benchmark) {
  std::set<std::string> names;
  for (const Parameter& parameter : all_parameters(benchmark)) {
    if (!has_dollar_name(parameter.value.value)) names.insert(parameter.name.value);
  }
  // A platform's default for what a step asks for is not a parameter where the step computes it.
  for (const Step& step : benchmark.steps) {
    for (const ResourceKey& one : resource_keys())
      if (has_dollar_name((step.resources.*one.text).value) && !has_users(benchmark, one.parameter))
        names.erase(one.parameter);
  }
  for (const Analyser& analyser : benchmark.analysers) {
    for (const Text& row : analyser.rows) names.insert(row.value);
  }
  return names;
}

std::set<std::string> varying_parameters(const Benchmark& benchmark) {
  std::set<std::string> own;
  for (const Parameter& parameter : all_parameters(benchmark)) {
    const bool varies =
        parameter.update != UpdateMode::never || names_workpackage(parameter.value.value);
    if (varies) own.insert(parameter.name.value);
  }
  for (bool more = true; more;) {
    more = false;
    for (const Parameter& parameter : all_parameters(benchmark)) {
      if (own.count(parameter.name.value) != 0) continue;
      const auto names = dollar_names(parameter.value.value);
      if (std::ranges::none_of(names,
                               [&](const std::string& name) { return own.count(name) != 0; }))
        continue;
      own.insert(parameter.name.value);
      more = true;
    }
  }
  return own;
}

std::vector<std::string> parameter_order(const Benchmark& benchmark) {
  std::vector<std::string> order;
  std::set<std::string> seen;
  const auto add = [&](const ParameterSet& set) {
    for (const Parameter& parameter : set.parameters) {
      if (seen.insert(parameter.name.value).second) order.push_back(parameter.name.value);
    }
  };
  for (const Step& step : benchmark.steps) {
    for (const Text& use : step.use) {
      const auto set = benchmark.parameter_sets.find(use.value);
      if (set != benchmark.parameter_sets.end()) add(set->second);
    }
  }
  for (const auto& [name, set] : benchmark.parameter_sets) add(set);
  for (const Analyser& analyser : benchmark.analysers) {
    for (const Text& row : analyser.rows) {
      if (seen.insert(row.value).second) order.push_back(row.value);
    }
  }
  return order;
}

std::string key_of_repeats(const std::shared_ptr<const Points>& points,
                           const WorkpackageView& workpackage,
                           const std::set<std::string>& varying) {
  return workpackage.step + '\0' + PointKey(points, workpackage.id).text_without(varying);
}

}  // namespace tally

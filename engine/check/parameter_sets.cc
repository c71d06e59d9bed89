// Builds parameter sets from their elements.
#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/check/elements.h"
#include "engine/check/platform.h"
#include "engine/check/sets.h"

namespace tally {

namespace {

Duplicate duplicate_of(const Element& element) {
  return choice<Duplicate>(
      element.get("duplicate"),
      {{"replace", Duplicate::replace}, {"concat", Duplicate::concat}, {"error", Duplicate::error}},
      Duplicate::none);
}

// JUBE joins the values of both definitions into a sorted set of texts. A script loses its mode in
// this way.
void concatenate(const Parameter& next, Parameter* parameter) {
  const std::string separator = parameter->separator.empty() ? "," : parameter->separator;
  std::set<std::string> values;
  for (const Parameter* each : {static_cast<const Parameter*>(parameter), &next}) {
    for (std::string& value : split_strip(each->value.value, each->separator)) {
      values.insert(std::move(value));
    }
  }
  parameter->value = {join({values.begin(), values.end()}, separator), next.value.mark};
  parameter->separator = separator;
  parameter->mode = Mode::text;
}

bool same_options(const Parameter& a, const Parameter& b) {
  return a.separator == b.separator && a.type == b.type && a.unit == b.unit &&
         a.exported == b.exported && a.update == b.update;
}

// Whether two elements come from the same list of values under `_`.
bool is_same_list(const Element& a, const Element& b) {
  const Attribute* x = a.find("name");
  const Attribute* y = b.find("name");
  return b.name == a.name && x && y && x->value.value == y->value.value && x->name.mark.known() &&
         x->name.mark == y->name.mark;
}

void check_zip_names(const ParameterSet& set, Diagnostics& diagnostics) {
  std::vector<std::string> names;
  for (const Parameter& p : set.parameters) names.push_back(p.name.value);
  std::set<std::string> zipped;
  for (const std::vector<Text>& group : set.zip) {
    for (const Text& name : group) {
      if (!contains(names, name.value)) {
        diagnostics.error(
            name.mark,
            fmt::format("zip names '{}', which is not a parameter of this set", name.value),
            did_you_mean(name.value, names));
      } else if (!zipped.insert(name.value).second) {
        diagnostics.error(name.mark, fmt::format("zip names '{}' twice", name.value));
      }
    }
    if (group.size() == 1) {
      diagnostics.error(
          group[0].mark,
          fmt::format("zip needs two parameters or more, not '{}' alone", group[0].value));
    }
  }
}

}  // namespace

Parameter SetBuilder::parameter(const Element& element) {
  Parameter p;
  p.name = attribute_text(element, "name");
  p.value = text_of(element);
  p.mode = choice<Mode>(element.get("mode"),
                        {{"python", Mode::python},
                         {"perl", Mode::perl},
                         {"shell", Mode::shell},
                         {"env", Mode::env},
                         {"tag", Mode::tag}},
                        Mode::text);
  p.type = value_type(element);
  p.separator = element.get("separator", ",");
  p.unit = strip(element.get("unit"));
  p.allowed = attribute_text(element, "allowed");
  p.exported = boolean_or(element.get("export"), false);
  p.update = choice<UpdateMode>(element.get("update_mode"),
                                {{"use", UpdateMode::use},
                                 {"step", UpdateMode::step},
                                 {"cycle", UpdateMode::cycle},
                                 {"always", UpdateMode::always}},
                                UpdateMode::never);
  p.duplicate = duplicate_of(element);
  return p;
}

void SetBuilder::add_parameter(Parameter next, const Element& element, const Element& set,
                               Parameters* before, ParameterSet* result) {
  auto& all = result->parameters;
  const auto [entry, added] = before->index.try_emplace(next.name.value, all.size());
  if (added) {
    all.push_back(std::move(next));
    before->origins.push_back(&element);
    return;
  }
  const size_t index = entry->second;
  Parameter* const known = &all[index];
  const bool own = index >= before->inherited;
  const std::string name = next.name.value;
  const Mark here = next.name.mark;
  if (own && known->duplicate != next.duplicate) {
    diagnostics_.error(here, fmt::format("the definitions of parameter '{}' say different "
                                         "things about duplicates",
                                         name));
    diagnostics_.note(known->name.mark, "the other one is here");
    return;
  }
  Duplicate how = next.duplicate == Duplicate::none ? duplicate_of(set) : next.duplicate;
  if (how == Duplicate::error) {
    diagnostics_.error(here, fmt::format("parameter '{}' is defined twice", name),
                       "'duplicate: error' forbids it");
    diagnostics_.note(known->name.mark, "the first one is here");
  } else if (how == Duplicate::concat) {
    if (!same_options(*known, next)) {
      diagnostics_.error(here,
                         fmt::format("the definitions of parameter '{}' cannot be joined: they "
                                     "differ in type, separator, unit, export or update_mode",
                                     name));
      diagnostics_.note(known->name.mark, "the other one is here");
      return;
    }
    concatenate(next, &*known);
  } else {
    // A definition with a tag that replaces a plain one is intended. Two plain definitions look
    // like a mistake.
    const Element* origin = before->origins[index];
    if (own && is_same_list(*origin, element)) {
      diagnostics_.warning(here,
                           fmt::format("parameter '{}' has a list of values, of which JUBE keeps "
                                       "the last",
                                       name),
                           "write them as one text with commas: \"1,2\"");
    } else if (own && how == Duplicate::none && !element.find("tag") && !origin->find("tag")) {
      diagnostics_.warning(
          here, fmt::format("parameter '{}' is defined twice; the last one counts", name),
          "say 'duplicate: replace' to mean it, or 'concat' to have both values");
      diagnostics_.note(known->name.mark, "the first one is here");
    }
    // A value that replaces one of a platform's set (init_with) belongs to that set.
    if (known->owner == Owner::any) next.owner = Owner::any;
    *known = std::move(next);
    before->origins[index] = &element;
  }
}

Element SetBuilder::whole_list(const Element* first, size_t count) {
  Element whole = *first;
  const std::string separator = whole.get("separator", ",");
  const std::string mode(strip(whole.get("mode")));
  const std::string name(strip(whole.get("name")));
  if (!mode.empty() && mode != "text") {
    diagnostics_.error(first->text.mark,
                       fmt::format("parameter '{}' of mode {} has a list of values", name, mode),
                       "a script is one text, whose result may be a list");
  }
  for (size_t i = 0; i < count; ++i) {
    const Text& value = first[i].text;
    if (separator.empty() || value.value.find(separator) != std::string::npos) {
      diagnostics_.error(
          value.mark,
          fmt::format("value '{}' of parameter '{}' cannot stand in a list cut at '{}'",
                      value.value, name, separator),
          "give the parameter a separator that its values do not hold, as in separator: ';'");
    }
    if (i > 0) whole.text.value += separator + value.value;
  }
  return whole;
}

ParameterSet SetBuilder::parameter_set(const Element& element, const SetFile& home) {
  ParameterSet set = initial_set(element, home, &SetBuilder::parameter_set);
  Parameters before;
  before.inherited = set.parameters.size();
  before.origins.assign(before.inherited, nullptr);
  for (size_t i = 0; i < before.inherited; ++i) {
    before.index.emplace(set.parameters[i].name.value, i);
  }
  const std::string_view name = strip(element.get("name"));
  const bool of_platform = name == platform_sets()[0] || name == platform_sets()[1];
  std::vector<Text> single_zip;
  for (size_t i = 0; i < element.children.size(); ++i) {
    const Element& child = element.children[i];
    if (child.name == "parameter") {
      size_t count = 1;
      while (rules_.lists_are_values && i + count < element.children.size() &&
             is_same_list(child, element.children[i + count])) {
        ++count;
      }
      Parameter next = parameter(count == 1 ? child : whole_list(&child, count));
      if (rules_.names_are_the_users && !of_platform) next.owner = Owner::user;
      i += count - 1;
      if (next.name.value.empty()) continue;
      add_parameter(std::move(next), child, element, &before, &set);
    } else if (child.name == "where") {
      set.where.push_back(text_of(child));
    } else if (child.name == "zip") {
      std::vector<Text> names = split_text(text_of(child));
      if (names.size() == 1) {
        single_zip.push_back(names[0]);  // `zip: [a, b]` arrives as one element per name
      } else {
        set.zip.push_back(std::move(names));
      }
    }
  }
  if (!single_zip.empty()) set.zip.push_back(std::move(single_zip));
  check_zip_names(set, diagnostics_);
  return set;
}

}  // namespace tally

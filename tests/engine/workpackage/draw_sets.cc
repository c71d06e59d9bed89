#include "tests/engine/workpackage/draw_sets.h"

namespace tally::testing {
namespace {

const Names letters{"a", "b", "c", "d"};

}  // namespace

const Names run_names{"jube_benchmark_id", "jube_benchmark_padid", "jube_benchmark_name",
                      "jube_benchmark_home", "jube_benchmark_rundir"};
const Names step_names{"jube_step_name", "jube_step_iterations", "jube_step_cycles"};
const Names own_names{"jube_wp_id",     "jube_wp_padid",   "jube_wp_iteration",
                      "jube_wp_cycle",  "jube_wp_relpath", "jube_wp_abspath",
                      "jube_wp_status", "jube_wp_envstr",  "jube_wp_envlist"};

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

std::string reference(const std::string& name) {
  return "${" + name + "}";
}

std::string joined(const Names& names, const std::string& separator) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : separator) + name;
  return out;
}

void add(Names& names, const Names& more) {
  names.insert(names.end(), more.begin(), more.end());
}

std::string DrawSets::tag() {
  static const Names tags{"x", "\"!x\"", "y", "\"x|y\"", "\"x+y\"", "\"!y\""};
  return random_.chance(8) ? ", tag: " + random_.pick(tags) : "";
}

std::string DrawSets::attributes(bool number) {
  std::string out;
  if (number && random_.chance(40)) out += random_.chance(70) ? ", type: int" : ", type: float";
  if (random_.chance(15)) out += ", unit: s";
  if (random_.chance(25)) out += ", export: true";
  if (random_.chance(22)) {
    static const Names modes{"use", "step", "cycle", "always"};
    out += ", update_mode: " + random_.pick(modes);
  }
  return out + tag();
}

std::string DrawSets::numbers(int count) {
  std::string list;
  for (int i = 0; i < count; ++i) {
    list += (i == 0 ? "" : ",") + std::to_string(1 + i + random_.below(3) * 3);
  }
  return list;
}

// A text that depends on other names. Fills `more` with further attributes.
std::string DrawSets::dependent(const DrawnSet& set, std::string* more, bool* simple) {
  const auto before = [&] {
    return set.simple.empty() ? reference("jube_step_name") : reference(random_.pick(set.simple));
  };
  *simple = false;
  switch (random_.below(12)) {
    case 0:
      *more = ", mode: python";
      *simple = true;
      return "len('" + before() + "') + 1";
    case 1:
      *more = ", mode: python";
      *simple = true;
      return "','.join('" + before() + "' + str(i) for i in range(" +
             std::to_string(random_.between(1, 2)) + "))";
    case 2:
      *simple = true;
      return before() + "x," + before() + "y";
    case 3:
      return reference(random_.pick(own_names));
    case 4:
      *more = ", mode: python";
      return "int('" + reference("jube_wp_id") + "') + " + "int('" +
             reference("jube_wp_iteration") + "')";
    case 5:
      return "in_" + reference("jube_wp_parent_s" + std::to_string(random_.below(3)) + "_id");
    case 6:
      return reference(random_.pick(run_names)) + "/" + before();
    case 7:  // a name that only a later step knows
      return "run " + reference(jube_ ? random_.pick(letters) + "2" : "jube_wp_padid") + "/x";
    case 8:
      if (random_.chance(70)) return "<" + before() + ">";
      *more = ", mode: shell";
      return "printf %s '" + (random_.chance(50) ? reference("jube_wp_padid") : before()) + "'";
    case 9:
      *more = random_.chance(50) ? ", mode: env" : ", mode: tag";
      return *more == ", mode: env" ? "TALLY_PROPERTY" : "x";
    default:
      *simple = true;
      return reference("jube_step_name") + "_" + before();
  }
}

Node DrawSets::parameter(DrawnSet& set, const std::string& name) {
  std::string more;
  std::string value;
  bool number = false;
  bool simple = true;
  const int kind = random_.below(10);
  if (kind < 4) {
    number = true;
    value = numbers(random_.chance(50) ? 1 : random_.between(2, 3));
  } else if (kind < 5) {
    more = ", separator: ;";
    value = random_.chance(50) ? "p,q;r" : "p;q;r";
  } else if (kind < 6) {
    value = random_.chance(50) ? "word" : "u,v";
  } else {
    value = dependent(set, &more, &simple);
  }
  set.parameters.push_back(name);
  if (number) set.numbers.push_back(name);
  if (simple) set.simple.push_back(name);
  return {"- {name: " + name + more + attributes(number) + ", _: " + quoted(value) + "}", {}};
}

Node DrawSets::parameter_set(int index) {
  DrawnSet set;
  set.name = "set" + std::to_string(index);
  Node node{"- name: " + set.name, {}};
  Node parameters{"parameter:", {}};
  const int count = random_.between(1, 4);
  const bool doubled = random_.chance(6);
  if (!doubled && !jube_ && count > 1 && random_.chance(40)) {
    add_zipped(set, index, node, parameters);
  }
  while (static_cast<int>(set.parameters.size()) < count) {
    const std::string name = letters[set.parameters.size()] + std::to_string(index);
    parameters.children.push_back(parameter(set, name));
  }
  if (doubled) {  // their other keys are to agree
    parameters.children.front() = {"- {name: " + set.parameters.front() + ", _: \"1,7\"}", {}};
    static const Names duplicates{"replace", "concat"};
    node.children.push_back({"duplicate: " + random_.pick(duplicates), {}});
    parameters.children.push_back({"- {name: " + set.parameters.front() + ", _: \"8,9\"}", {}});
  }
  if (!jube_ && !set.numbers.empty() && random_.chance(25)) {
    node.children.push_back({"where: " + quoted("$" + set.numbers.back() +
                                                " != " + std::to_string(random_.between(1, 4))),
                             {}});
  }
  node.children.push_back(std::move(parameters));
  sets_.push_back(std::move(set));
  return node;
}

// Sets that a parameter chooses, with the same names in each.
void DrawSets::add_chosen_sets(Node& sets) {
  sets.children.push_back(
      {"- name: choice", {{"parameter:", {{"- {name: which, _: \"v0,v1\"}", {}}}}}});
  for (int i = 0; i < 2; ++i) {
    sets.children.push_back(
        {"- name: v" + std::to_string(i),
         {{"parameter:",
           {{"- {name: chosen" + attributes(true) + ", _: " + quoted(numbers(1 + i)) + "}", {}},
            {"- {name: also" + attributes(false) + ", _: \"${chosen}_${which}_" +
                 std::to_string(i) + "\"}",
             {}}}}}});
  }
  chosen_ = true;
}

// Two lists of one length that advance together.
void DrawSets::add_zipped(DrawnSet& set, int index, Node& node, Node& parameters) {
  const int length = random_.between(2, 3);
  Names pair;
  for (int i = 0; i < 2; ++i) {
    const std::string name = letters[static_cast<size_t>(i)] + std::to_string(index);
    parameters.children.push_back(
        {"- {name: " + name + attributes(true) + ", _: " + quoted(numbers(length)) + "}", {}});
    pair.push_back(name);
    set.parameters.push_back(name);
    set.numbers.push_back(name);
    set.simple.push_back(name);
  }
  node.children.push_back({"zip: [" + joined(pair, ", ") + "]", {}});
}

Node DrawSets::draw() {
  Node sets{"parameterset:", {}};
  const int count = random_.between(0, 3);
  for (int i = 0; i < count; ++i) sets.children.push_back(parameter_set(i));
  if (random_.chance(20)) add_chosen_sets(sets);
  if (random_.chance(10)) {
    Node more{"parameter:", {{"- {name: c2" + attributes(false) + ", _: \"${c1}!\"}", {}}}};
    sets.children.push_back(
        {"- name: begun", {{"init_with: common.yaml:common", {}}, std::move(more)}});
    sets_.push_back({"begun", {"c0", "c1", "c2"}, {"c0"}, {"c0", "c1"}});
  }
  return sets;
}

}  // namespace tally::testing

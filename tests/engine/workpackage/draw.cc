#include "tests/engine/workpackage/draw.h"

#include <algorithm>
#include <functional>
#include <set>

#include "tests/engine/workpackage/draw_sets.h"

namespace tally::testing {
namespace {

const Names resource_names{"nodes",     "taskspernode",      "threadspertask", "tasks",
                           "timelimit", "timelimit_seconds", "queue"};

struct DrawnStep {
  std::string name;
  std::string kind;
  Names depend;
  Names known;   // parameters of its sets and its ancestors' sets
  Names simple;  // see DrawnSet
  Names numbers;
};

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed), jube_(random_.chance(45)), sets_(random_, jube_) {}

  Drawing make() {
    Drawing drawing;
    Node& root = drawing.root;
    root.children.push_back({"name: drawn", {}});
    root.children.push_back({"outpath: runs", {}});
    // A tag that the file does not name would be an error.
    root.children.push_back({"comment: {tag: \"x|y\", _: drawn}", {}});
    Node sets = sets_.draw();
    if (!sets.children.empty()) root.children.push_back(std::move(sets));
    Node steps{"step:", {}};
    const int number = random_.between(1, 4);
    for (int i = 0; i < number; ++i) steps.children.push_back(step(i));
    add_files(root);
    root.children.push_back(std::move(steps));
    add_results(root);
    if (random_.chance(50)) drawing.tags.emplace_back("x");
    if (random_.chance(50)) drawing.tags.emplace_back("y");
    return drawing;
  }

 private:
  Node step(int index) {
    DrawnStep step;
    step.name = "s" + std::to_string(index);
    Node node{"- name: " + step.name, {}};
    if (!jube_ && random_.chance(45)) {
      static const Names kinds{"setup", "build", "run", "run"};
      step.kind = random_.pick(kinds);
      node.children.push_back({"kind: " + step.kind, {}});
    }
    add_parents(step, node);
    add_uses(step, node);
    add_counts(step, node);
    add_places(step, node);
    if (!step.kind.empty()) add_kind(step, node);
    Node commands{"do:", {}};
    const int operations = random_.between(1, 2);
    for (int i = 0; i < operations; ++i) commands.children.push_back(command(step, i));
    if (shared_ && random_.chance(60)) {
      commands.children.push_back(
          {"- {shared: true, _: " + quoted(listing(step, "shared", shared_listing(step))) + "}",
           {}});
    }
    node.children.push_back(std::move(commands));
    steps_.push_back(std::move(step));
    return node;
  }

  void add_parents(DrawnStep& step, Node& node) {
    for (const DrawnStep& other : steps_) {
      if (step.depend.size() < 3 && random_.chance(steps_.size() == 1 ? 60 : 45)) {
        step.depend.push_back(other.name);
        for (const auto& [from, to] :
             {std::pair{&other.known, &step.known}, std::pair{&other.simple, &step.simple},
              std::pair{&other.numbers, &step.numbers}}) {
          for (const std::string& name : *from) {
            if (std::find(to->begin(), to->end(), name) == to->end()) to->push_back(name);
          }
        }
      }
    }
    if (step.depend.empty()) return;
    if (random_.chance(30)) std::reverse(step.depend.begin(), step.depend.end());
    node.children.push_back({"depend: [" + joined(step.depend, ", ") + "]", {}});
  }

  void add_uses(DrawnStep& step, Node& node) {
    Node uses{"use:", {}};
    for (const DrawnSet& set : sets_.sets()) {
      if (!random_.chance(55)) continue;
      uses.children.push_back({"- {_: " + set.name + sets_.tag() + "}", {}});
      for (const auto& [from, to] :
           {std::pair{&set.parameters, &step.known}, std::pair{&set.simple, &step.simple},
            std::pair{&set.numbers, &step.numbers}}) {
        for (const std::string& name : *from) {
          if (std::find(to->begin(), to->end(), name) == to->end()) to->push_back(name);
        }
      }
    }
    if (sets_.chosen() && random_.chance(60)) {
      uses.children.push_back({"- choice", {}});
      uses.children.push_back({"- \"$which\"", {}});
      for (const char* name : {"which", "chosen", "also"}) step.known.emplace_back(name);
    }
    const bool made = random_.chance(40);
    if (made || random_.chance(20)) uses.children.push_back({"- files", {}});
    if (made) uses.children.push_back({"- made", {}});
    if (!uses.children.empty()) node.children.push_back(std::move(uses));
  }

  std::string count(const DrawnStep& step) {
    if (!step.numbers.empty() && random_.chance(20))
      return "\"$" + random_.pick(step.numbers) + "\"";
    return std::to_string(random_.between(1, 3));
  }

  void add_counts(DrawnStep& step, Node& node) {
    if (random_.chance(25)) node.children.push_back({"iterations: " + count(step), {}});
    if (!jube_ && random_.chance(20)) node.children.push_back({"repeat: " + count(step), {}});
    if (step.kind != "setup" && step.kind != "build" && random_.chance(15)) {
      node.children.push_back({"cycles: 2", {}});
    }
    if (random_.chance(15)) node.children.push_back({"export: true", {}});
    if (random_.chance(8)) node.children.push_back({"procs: 2", {}});
    if (random_.chance(15)) {
      const std::string name = step.simple.empty() ? "jube_step_name" : random_.pick(step.simple);
      static const Names conditions{" != 'word'", " < '2'", " in ('1', 'p', 's0_1', 'u')"};
      std::string text = "'${" + name + "}'" + random_.pick(conditions);
      if (random_.chance(25)) text = "${jube_wp_id} % 3 != 1";
      node.children.push_back({"active: " + quoted(text), {}});
    }
  }

  void add_places(DrawnStep& step, Node& node) {
    if (random_.chance(15)) {
      const std::string name = step.known.empty() ? "jube_wp_padid" : random_.pick(step.known);
      node.children.push_back({"suffix: " + quoted("at_${" + name + "}_${jube_wp_iteration}"), {}});
    }
    if (step.kind != "setup" && step.kind != "build" && random_.chance(12)) {
      static const Names places{"${jube_benchmark_rundir}/away/${jube_wp_padid}",
                                "elsewhere/${jube_wp_id}_${jube_step_name}",
                                "$TALLY_PROPERTY_FOLDER/${jube_wp_padid}"};
      node.children.push_back({"work_dir: " + quoted(random_.pick(places)), {}});
    }
    shared_ = step.kind != "setup" && step.kind != "build" && random_.chance(15);
    if (shared_) node.children.push_back({"shared: common", {}});
  }

  void add_kind(DrawnStep& step, Node& node) {
    if (random_.chance(35)) {
      const std::string value =
          step.known.empty() ? "${jube_wp_id}" : "v_${" + random_.pick(step.known) + "}";
      node.children.push_back({"env: {DRAWN_" + step.name + ": " + quoted(value) +
                                   ", DRAWN_ALL: " + quoted(step.name) + "}",
                               {}});
    }
    if (random_.chance(15)) node.children.push_back({"env_unset: [TALLY_PROPERTY_FOLDER]", {}});
    if (step.kind != "run") return;
    if (random_.chance(50)) node.children.push_back({"platform: local", {}});
    if (random_.chance(60)) {
      const std::string nodes =
          step.numbers.empty() ? "4" : "\"$" + random_.pick(step.numbers) + "\"";
      node.children.push_back({"resources: {nodes: " + nodes + ", tasks_per_node: 2" +
                                   (random_.chance(40) ? ", time: 30m" : "") +
                                   (random_.chance(30) ? ", partition: \"q${jube_wp_id}\"" : "") +
                                   "}",
                               {}});
    }
    if (random_.chance(50)) {
      Names names = step.known;
      add(names, {"jube_wp_id", "jube_wp_cycle", "jube_step_name"});
      std::string text = "echo '<op>" + step.name + ".launch</op>";
      for (const std::string& name : names) text += tagged(name);
      node.children.push_back({"launch: " + quoted(text + "'"), {}});
    }
  }

  static std::string tagged(const std::string& name) {
    return "<" + name + ">" + reference(name) + "</" + name + ">";
  }

  // What a command names. A file of our own may name what is known only; JUBE's takes anything.
  Names named(const DrawnStep& step) const {
    Names names = step.known;
    if (jube_) {
      for (const DrawnSet& set : sets_.sets()) add(names, set.parameters);
      add(names, {"chosen", "which", "nodes"});
    }
    add(names, run_names);
    add(names, step_names);
    // One setup may do the work of others only where no command names its workpackage.
    if (step.kind != "setup" && step.kind != "build") {
      add(names, own_names);
      for (const std::string& parent : step.depend)
        names.push_back("jube_wp_parent_" + parent + "_id");
    }
    if (step.kind == "run") add(names, resource_names);
    return names;
  }

  Names shared_listing(const DrawnStep& step) const {
    Names names = step.known;
    add(names, run_names);
    if (jube_) add(names, own_names);
    return names;
  }

  static std::string listing(const DrawnStep& step, const std::string& operation,
                             const Names& names) {
    std::string text = "cat <<'END'\n<op>" + step.name + "." + operation + "</op>\n";
    std::set<std::string> seen;
    for (const std::string& name : names) {
      if (seen.insert(name).second) text += tagged(name) + "\n";
    }
    return text + "END";
  }

  Node command(const DrawnStep& step, int index) {
    std::string keys;
    if (random_.chance(10)) keys += ", work_dir: below_" + std::to_string(index);
    if (random_.chance(10) && !step.simple.empty()) {
      keys += ", active: " + quoted("'${" + random_.pick(step.simple) + "}' != '1'");
    }
    if (random_.chance(10)) keys += ", stdout: out_" + std::to_string(index);
    keys += sets_.tag();
    const std::string text = listing(step, std::to_string(index), named(step));
    // What the shell leaves and what it saw; the test without shells does not look at this line.
    const std::string seen = "\nenv -0 > seen_" + std::to_string(index);
    return {"- {_: " + quoted(text + seen) + keys + "}", {}};
  }

  void add_files(Node& root) {
    root.children.push_back(
        {"fileset:", {{std::string("- {name: files, copy: ") + template_name + "}", {}}}});
    Node substitutions{"sub:", {}};
    Names names{"jube_wp_id", "jube_wp_abspath", "jube_step_name", "nodes"};
    for (const DrawnSet& set : sets_.sets()) add(names, set.parameters);
    for (const std::string& name : names) {
      substitutions.children.push_back(
          {"- {source: \"#" + name + "#\", dest: \"$" + name + "\"}", {}});
    }
    if (!jube_) {  // a file of our own may name what every step knows
      substitutions.children.clear();
      for (const char* name : {"jube_wp_id", "jube_wp_abspath", "jube_step_name"}) {
        substitutions.children.push_back(
            {std::string("- {source: \"#") + name + "#\", dest: \"$" + name + "\"}", {}});
      }
    }
    root.children.push_back(
        {"substituteset:",
         {{"- name: made",
           {{std::string("iofile: {in: ") + template_name + ", out: \"made_${jube_wp_iteration}\"}",
             {}},
            std::move(substitutions)}}}});
  }

  void add_results(Node& root) {
    Node patterns{"pattern:", {}};
    for (const char* name : {"jube_wp_id", "jube_step_name", "a0", "b0", "nodes"}) {
      patterns.children.push_back(
          {std::string("- {name: seen_") + name + ", _: \"<" + name + ">(.*?)</" + name + ">\"}",
           {}});
    }
    root.children.push_back({"patternset:", {{"- name: seen", {std::move(patterns)}}}});
    Node analyses{"analyse:", {}};
    for (const DrawnStep& step : steps_) {
      if (random_.chance(70)) {
        analyses.children.push_back({"- {step: " + step.name + ", file: stdout}", {}});
      }
    }
    if (analyses.children.empty()) {
      analyses.children.push_back({"- {step: " + steps_.back().name + ", file: stdout}", {}});
    }
    const std::string reduce = random_.chance(70) ? "false" : "true";
    root.children.push_back(
        {"analyser:",
         {{"- name: all", {{"use: seen", {}}, {"reduce: " + reduce, {}}, std::move(analyses)}}}});
    Names columns{"jube_wp_id", "jube_step_name", "jube_wp_iteration", "nodes", "seen_jube_wp_id"};
    for (const DrawnSet& set : sets_.sets()) add(columns, set.parameters);
    const Names parameters = columns;
    for (const DrawnStep& step : steps_) {
      add(columns, {"jube_wp_id_" + step.name});
      for (const char* name : {"a0", "b1"}) {
        if (std::find(parameters.begin(), parameters.end(), name) != parameters.end())
          add(columns, {name + ("_" + step.name)});
      }
    }
    root.children.push_back(
        {"result:",
         {{"use: all", {}},
          {"table: {name: t, style: csv, column: [" + joined(columns, ", ") + "]}", {}}}});
  }

  Random random_;
  bool jube_;  // keys of JUBE's language alone
  DrawSets sets_;
  bool shared_ = false;
  std::vector<DrawnStep> steps_;
};

void render(const Node& node, int depth, std::string& out) {
  if (!node.text.empty())
    out += std::string(static_cast<size_t>(depth) * 2, ' ') + node.text + "\n";
  for (const Node& child : node.children) render(child, node.text.empty() ? depth : depth + 1, out);
}

size_t size_of(const Node& node) {
  size_t size = 1;
  for (const Node& child : node.children) size += size_of(child);
  return size;
}

}  // namespace

uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15U;
  uint64_t z = state_;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}

std::string render(const Node& root) {
  std::string out;
  render(root, 0, out);
  return out;
}

std::vector<Path> elements(const Node& root) {
  std::vector<std::pair<size_t, Path>> found;
  const std::function<void(const Node&, const Path&)> walk = [&](const Node& node,
                                                                 const Path& path) {
    for (size_t i = 0; i < node.children.size(); ++i) {
      Path child = path;
      child.push_back(i);
      found.emplace_back(size_of(node.children[i]), child);
      walk(node.children[i], child);
    }
  };
  walk(root, {});
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Path> paths;
  for (auto& entry : found) paths.push_back(std::move(entry.second));
  return paths;
}

Node without(Node root, const Path& path) {
  Node* at = &root;
  for (size_t i = 0; i + 1 < path.size(); ++i) at = &at->children[path[i]];
  at->children.erase(at->children.begin() + static_cast<std::ptrdiff_t>(path.back()));
  return root;
}

std::string template_text() {
  static const Names letters{"a", "b", "c", "d"};
  std::string text = "id #jube_wp_id# in #jube_wp_abspath# of #jube_step_name#, #nodes# nodes\n";
  for (int set = 0; set < 3; ++set) {
    for (const std::string& letter : letters) {
      const std::string name = letter + std::to_string(set);
      text.append(name).append(" = #").append(name).append("#\n");
    }
  }
  return text;
}

Drawing draw(uint64_t seed) {
  return seed % 6 == 5 ? draw_short(seed) : Draw(seed).make();
}

}  // namespace tally::testing

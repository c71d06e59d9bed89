// Workflows in the short form, drawn at random, each with the long form that it stands for by the rules
// of reference.md, which are written here once more.
#include <algorithm>

#include "tests/engine/workpackage/draw.h"
#include "tests/engine/workpackage/draw_sets.h"

namespace tally::testing {
namespace {

struct DrawnParameter {
  std::string name;
  std::string value;  // plain
  std::string keys;   // ", type: int" and the like
  Names reads;
};

class DrawShort {
 public:
  explicit DrawShort(uint64_t seed) : random_(seed) {}

  Drawing make() {
    Drawing drawing;
    Node& root = drawing.root;
    // Without a name the workflow would be called as its file is, which the test of names has.
    root.children = {{"name: drawn", {}}, {"outpath: runs", {}}};
    root.children.push_back({"comment: {tag: \"x|y\", _: drawn}", {}});
    drawing.long_form = root;
    add_parameters(root);
    if (random_.chance(60)) add_build(root);
    add_run(root);
    add_keys_of_run(root);
    if (random_.chance(80)) add_metrics(root);
    add_long_form(drawing.long_form);
    if (random_.chance(50)) drawing.tags.emplace_back("x");
    if (random_.chance(50)) drawing.tags.emplace_back("y");
    return drawing;
  }

 private:
  DrawnParameter parameter(const std::string& name) {
    static const Names lists{"[1, 2]", "[1, 2, 3]", "[3]", "7", "0x10", "[2, 2]"};
    static const Names texts{"[p, q r]", "word", "\"a, b\"", "[1.50, 010]", "~", "[true, no]"};
    DrawnParameter p{name, "", "", {}};
    if (!parameters_.empty() && random_.chance(20)) {
      p.reads = {random_.pick(parameters_)};
      p.value = quoted(name + "_of_" + reference(p.reads.front()));
      return p;
    }
    if (!numbers_.empty() && random_.chance(20)) {
      p.reads = {random_.pick(numbers_)};
      p.value = quoted("2 * " + reference(p.reads.front()));
      p.keys = ", mode: python";
      numbers_.push_back(name);
      return p;
    }
    const bool number = random_.chance(60);
    p.value = random_.pick(number ? lists : texts);
    if (number) numbers_.push_back(name);
    static const Names more{", export: true", ", unit: s", ", update_mode: step"};
    if (random_.chance(25)) p.keys = random_.pick(more);
    return p;
  }

  void add_parameters(Node& root) {
    // Names that steps and resources have are the user's own here.
    static const Names names{"a0", "b0", "nodes", "tag", "c0", "time", "d0"};
    Node parameters{"parameters:", {}};
    const int count = random_.between(0, 4);
    const int first = random_.below(static_cast<int>(names.size()));
    for (int i = 0; i < count; ++i) {
      drawn_.push_back(parameter(names[static_cast<size_t>(first + i) % names.size()]));
      parameters_.push_back(drawn_.back().name);
    }
    zipped_ = random_.chance(25);
    if (zipped_) {
      drawn_.push_back({"z0", "[1, 2]", "", {}});
      drawn_.push_back({"z1", "[one, two]", "", {}});
      add(parameters_, {"z0", "z1"});
    }
    for (const DrawnParameter& p : drawn_) {
      const std::string keys = p.keys.empty() ? p.value : "{_: " + p.value + p.keys + "}";
      parameters.children.push_back({p.name + ": " + keys, {}});
    }
    if (!parameters.children.empty()) root.children.push_back(std::move(parameters));
    if (zipped_) root.children.push_back({"zip: [z0, z1]", {}});
    if (!numbers_.empty() && random_.chance(30)) {
      where_ = random_.pick(numbers_);
      root.children.push_back({"where: " + quoted(where_ + " != 2"), {}});
    }
  }

  static std::string named(const Names& names) {
    std::string text;
    for (const std::string& name : names) {
      text += "<" + name + ">" + reference(name) + "</" + name + ">";
    }
    return text;
  }

  void add_build(Node& root) {
    Names names;
    for (const std::string& name : parameters_) {
      if (name[0] != 'z' && random_.chance(30)) names.push_back(name);
    }
    if (zipped_ && random_.chance(30)) add(names, {"z0", "z1"});
    build_reads_ = names;
    add(names, step_names);
    const std::string command =
        quoted("cat <<'END'\n<op>build.0</op>\n" + named(names) + "\nEND\nenv -0 > seen_0");
    static const Names before{"", "", "[", "{env: {DRAWN_build: one}, do: "};
    const std::string& form = random_.pick(before);
    const char* end = form.empty() ? "" : form == "[" ? "]" : "}";
    root.children.push_back({"build: " + form + command + end, {}});
    build_ = {"- {name: build, kind: build, do: " + command +
                  (form[0] == '{' ? ", env: {DRAWN_build: one}" : ""),
              {}};
  }

  void add_run(Node& root) {
    Names names = parameters_;
    add(names, {"jube_wp_id", "jube_wp_cycle", "jube_step_name"});
    std::string command = "echo '<op>run.launch</op>" + named(names) + "'";
    if (random_.chance(25)) command += std::string(" ") + template_name;
    run_ = {"- name: run", {{"kind: run", {}}, {"launch: " + quoted(command), {}}}};
    if (random_.chance(70)) {
      root.children.push_back({"run: " + quoted(command), {}});
    } else {
      root.children.push_back({"run: {launch: " + quoted(command) + ", iterations: 2}", {}});
      run_.children.push_back({"iterations: 2", {}});
    }
  }

  void add_keys_of_run(Node& root) {
    Names keys;
    if (random_.chance(30)) keys.push_back("repeat: " + std::to_string(random_.between(1, 3)));
    if (random_.chance(25)) {
      const std::string text = parameters_.empty() ? "one" : reference(random_.pick(parameters_));
      keys.push_back("env: {DRAWN_run: " + quoted(text) + "}");
    }
    if (random_.chance(15)) keys.push_back("env_unset: [TALLY_PROPERTY_FOLDER]");
    if (random_.chance(15)) keys.push_back("timeout: 1h");
    if (random_.chance(15)) keys.push_back("gpu_slots: 1");
    if (random_.chance(20)) {
      const std::string nodes = numbers_.empty() ? "2" : quoted(reference(random_.pick(numbers_)));
      keys.push_back("resources: {nodes: " + nodes + ", tasks_per_node: 2}");
    }
    for (const std::string& key : keys) {
      root.children.push_back({key, {}});
      run_.children.push_back({key, {}});
    }
    if (random_.chance(15)) {
      root.children.push_back({"on: local", {}});
      run_.children.push_back({"platform: local", {}});
    }
    if (random_.chance(20)) {
      root.children.push_back({std::string("files: [") + template_name + "]", {}});
    }
  }

  void add_metrics(Node& root) {
    Node metrics{"metrics:", {}};
    metrics.children.push_back({"seen_jube_wp_id: '<jube_wp_id>(.*?)</jube_wp_id>'", {}});
    for (const std::string& name : parameters_) {
      if (!random_.chance(50)) continue;
      const std::string pattern = "'<" + name + ">(.*?)</" + name + ">'";
      metrics.children.push_back({"seen_" + name + ": {_: " + pattern + ", type: string" +
                                      (random_.chance(30) ? ", unit: s" : "") + "}",
                                  {}});
    }
    root.children.push_back(std::move(metrics));
  }

  // A build's commands read it, or another that they read does: those are a set of their own.
  bool of_build(const std::string& name) const {
    const auto has = [](const Names& names, const std::string& one) {
      return std::find(names.begin(), names.end(), one) != names.end();
    };
    if (has(build_reads_, name)) return true;
    return std::any_of(drawn_.begin(), drawn_.end(), [&](const DrawnParameter& p) {
      return has(p.reads, name) && of_build(p.name);
    });
  }

  void add_set(const std::string& name, bool of_builds, Node& sets) {
    Node set{"- name: " + name, {}};
    Node parameters{"parameter:", {}};
    for (const DrawnParameter& p : drawn_) {
      if (of_build(p.name) != of_builds) continue;
      parameters.children.push_back({"- {name: " + p.name + ", _: " + p.value + p.keys + "}", {}});
    }
    if (parameters.children.empty()) return;
    if (zipped_ && of_build("z0") == of_builds) set.children.push_back({"zip: [z0, z1]", {}});
    if (!where_.empty() && of_build(where_) == of_builds)
      set.children.push_back({"where: " + quoted(where_ + " != 2"), {}});
    set.children.push_back(std::move(parameters));
    sets.children.push_back(std::move(set));
  }

  void add_long_form(Node& root) {
    Node sets{"parameterset:", {}};
    add_set("of_build", true, sets);
    const bool built = !sets.children.empty();
    add_set("of_run", false, sets);
    Names uses;
    if (sets.children.size() > (built ? 1U : 0U)) uses.emplace_back("of_run");
    if (!sets.children.empty()) root.children.push_back(std::move(sets));
    Node steps{"step:", {}};
    if (!build_.text.empty()) {
      steps.children.push_back({build_.text + (built ? ", use: of_build}" : "}"), {}});
      run_.children.push_back({"depend: build", {}});
    }
    if (!uses.empty()) run_.children.push_back({"use: [" + joined(uses, ", ") + "]", {}});
    steps.children.push_back(run_);
    root.children.push_back(std::move(steps));
  }

  Random random_;
  std::vector<DrawnParameter> drawn_;
  Names parameters_, numbers_;  // numbers: whole ones
  Names build_reads_;
  std::string where_;
  bool zipped_ = false;
  Node build_, run_;  // of the long form
};

}  // namespace

Drawing draw_short(uint64_t seed) {
  return DrawShort(seed).make();
}

}  // namespace tally::testing

#include "engine/check/build.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"
#include "engine/check/analyse_entries.h"
#include "engine/check/elements.h"
#include "engine/check/parse_values.h"
#include "engine/check/platform.h"
#include "engine/check/repeat.h"
#include "engine/check/schema_check.h"
#include "engine/read/schema.h"
#include "engine/workflow/chart_words.h"
#include "engine/workflow/statistic_words.h"

namespace tally {

namespace {

std::vector<std::string> split_attribute(const Element& element, const char* name) {
  std::vector<std::string> parts;
  for (Text& part : split_text(attribute_text(element, name))) {
    parts.push_back(std::move(part.value));
  }
  return parts;
}

void append(const Text& list, std::vector<Text>* out) {
  for (Text& part : split_text(list)) out->push_back(std::move(part));
}

std::vector<std::pair<Text, Text>> all_attributes(const Element& element) {
  std::vector<std::pair<Text, Text>> all;
  for (const Attribute& a : element.attributes) {
    if (a.name.value != "tag") all.emplace_back(a.name, a.value);
  }
  return all;
}

StepKind step_kind(const Element& element) {
  std::string kind(strip(element.get("kind")));
  if (kind == "setup") return StepKind::setup;
  if (kind == "build") return StepKind::build;
  if (kind == "run") return StepKind::run;
  if (kind == "result") return StepKind::result;
  return StepKind::plain;
}

Better better_of(std::string_view word) {
  if (word == "higher") return Better::higher;
  return word == "lower" ? Better::lower : Better::unknown;
}

Column column(const Element& element) {
  Column c;
  c.name = text_of(element);
  c.title = element.get("title");  // JUBE keeps blanks at its ends, too
  c.empty_title = c.title.empty() && element.find("title") != nullptr;
  c.format = strip(element.get("format"));
  c.colw = strip(element.get("colw"));
  if (const Attribute* null = element.find("null_value")) {
    c.null_value_set = true;
    c.null_value = null->value.value;
  }
  c.primary_key = boolean_or(element.get("primekey"), false);
  c.expression = attribute_text(element, "expression");
  c.statistic = statistic_of(strip(element.get("statistic")));
  c.uncertainty = uncertainty_of(strip(element.get("uncertainty")));
  c.better = better_of(strip(element.get("better")));
  const bool spread = c.uncertainty != Uncertainty::none;
  if (spread && c.statistic == Statistic::none) c.statistic = Statistic::median;
  for (const Element& child : element.children) {
    if (child.name == "relative_to") c.relative_to = all_attributes(child);
  }
  return c;
}

Reference reference(const Element& element) {
  Reference r;
  r.column = attribute_text(element, "column");
  r.condition = text_of(element);
  r.note = attribute_text(element, "note");
  r.where = attribute_text(element, "where");
  r.of = strip(element.get("of"));
  r.platform = attribute_text(element, "platform");
  r.on_fail = attribute_text(element, "on_fail");
  const std::string given = element.get("action");
  const std::string_view action = strip(given);
  if (action == "warn") r.action = ReferenceAction::warn;
  if (action == "expect_fail") r.action = ReferenceAction::expect_fail;
  return r;
}

class BenchmarkBuilder {
 public:
  BenchmarkBuilder(const SetFile& home, SetBuilder& sets, Benchmark* benchmark,
                   Diagnostics& diagnostics)
      : home_(home), sets_(sets), benchmark_(*benchmark), diagnostics_(diagnostics) {}

  void build(const Element& element) {
    for (const Element& child : element.children) {
      if (child.name == "comment") {
        benchmark_.comment = one_line(child.text.value);
      } else if (child.name == "step") {
        add_named(step(child), child, &benchmark_.steps);
      } else if (child.name == "analyser") {
        add_named(analyser(child), child, &benchmark_.analysers);
      } else if (child.name == "result") {
        benchmark_.results.push_back(result(child));
      }
    }
  }

 private:
  template <typename T>
  void add_named(T item, const Element& element, std::vector<T>* all) {
    for (const T& other : *all) {
      if (other.name.value != item.name.value || item.name.value.empty()) continue;
      diagnostics_.error(item.name.mark, fmt::format("{} is defined twice", describe(element)));
      diagnostics_.note(other.name.mark, "the first one is here");
      return;
    }
    all->push_back(std::move(item));
  }

  // Adds the sets that one `use` names, under their names in the benchmark.
  void add_use(const Element& element, bool pattern_sets, std::vector<Text>* use) {
    std::vector<Text> names = split_text(text_of(element));
    Text from = attribute_text(element, "from");
    if (!from.value.empty()) names = sets_.add_from(from, names, pattern_sets, home_, &benchmark_);
    for (Text& name : names) {
      for (const Text& other : *use) {
        if (other.value != name.value) continue;
        diagnostics_.error(name.mark,
                           fmt::format("Element \"{}\" can only be used once", name.value));
        diagnostics_.note(other.mark, "it is used here already");
        break;
      }
      use->push_back(std::move(name));
    }
  }

  static Operation operation(const Element& element) {
    Operation op;
    op.command = text_of(element);
    op.active = attribute_text(element, "active", "true");
    op.stdout_file = attribute_text(element, "stdout");
    op.stderr_file = attribute_text(element, "stderr");
    op.work_dir = attribute_text(element, "work_dir");
    op.done_file = attribute_text(element, "done_file");
    op.error_file = attribute_text(element, "error_file");
    op.break_file = attribute_text(element, "break_file");
    op.shared = boolean_or(element.get("shared"), false);
    return op;
  }

  Resources resources(const Element& element, Step* s) {
    Resources r;
    r.any = true;
    for (const ResourceKey& one : resource_keys()) {
      const Attribute* given = element.find(one.key);
      r.*one.text = given != nullptr && given->of_list ? add_points(element, *given, s)
                                                       : attribute_text(element, one.key);
    }
    for (const Element& child : element.children) {
      if (child.name != "options") continue;
      for (auto& option : all_attributes(child)) r.extra.push_back(std::move(option));
    }
    return r;
  }

  // Makes a parameter of the list of a key, in a set of the step's own. Returns its name as a text.
  Text add_points(const Element& element, const Attribute& key, Step* s) {
    std::vector<std::string> values;
    for (const Attribute& one : element.attributes)
      if (one.name.value == key.name.value) values.emplace_back(strip(one.value.value));
    const bool commas = std::any_of(values.begin(), values.end(), [](const std::string& value) {
      return value.find(',') != std::string::npos;
    });
    Parameter parameter;
    parameter.name = key.name;
    parameter.separator = commas ? "\n" : ",";
    parameter.value = {join(values, parameter.separator), key.value.mark};
    // A value that is no number has been reported.
    if (find_key("resources", key.name.value)->rule == ValueRule::number &&
        std::all_of(values.begin(), values.end(), is_number_or_parameter))
      parameter.type = ValueType::integer;
    if (sets_.rules().names_are_the_users) parameter.owner = Owner::user;
    const std::string name = "resources of " + s->name.value;
    ParameterSet& set = benchmark_.parameter_sets[name];
    if (set.parameters.empty()) {
      set.name = {name, element.mark};
      s->use.push_back(set.name);
    }
    set.parameters.push_back(std::move(parameter));
    return {"$" + key.name.value, key.value.mark};
  }

  static Container container(const Element& element) {
    Container c;
    c.runtime = attribute_text(element, "runtime");
    c.image = attribute_text(element, "image");
    c.gpus = attribute_text(element, "gpus");
    c.bind = attribute_text(element, "bind");
    c.args = attribute_text(element, "args");
    for (const Element& child : element.children) {
      if (child.name != "env") continue;
      for (auto& variable : all_attributes(child)) c.env.push_back(std::move(variable));
    }
    return c;
  }

  // Adds the four sets from the file or the name in `platform`.
  void add_platform(const Element& element, Step* s) {
    Text from = text_of(element);
    if (from.value.empty()) return;
    s->platform = from.value.substr(from.value.rfind('/') + 1);
    s->platform = s->platform.substr(0, s->platform.rfind('.'));
    std::vector<Text> names;
    for (const std::string& name : platform_sets()) names.push_back({name, element.mark});
    for (Text& name : sets_.add_from(from, names, false, home_, &benchmark_)) {
      s->use.push_back(std::move(name));
    }
  }

  Step step(const Element& element) {
    Step s;
    s.name = attribute_text(element, "name");
    s.kind = step_kind(element);
    for (Text& name : split_text(attribute_text(element, "depend"))) {
      auto same = [&](const Text& other) { return other.value == name.value; };
      if (std::none_of(s.depend.begin(), s.depend.end(), same)) s.depend.push_back(std::move(name));
    }
    s.work_dir = attribute_text(element, "work_dir");
    s.suffix = attribute_text(element, "suffix");
    s.active = attribute_text(element, "active", "true");
    s.shared = attribute_text(element, "shared").value;
    s.exported = boolean_or(element.get("export"), false);
    s.max_async = attribute_text(element, "max_async", "0");
    s.iterations = attribute_text(element, "iterations", "1");
    s.cycles = attribute_text(element, "cycles", "1");
    s.procs = attribute_text(element, "procs", "1");
    s.do_log_file = attribute_text(element, "do_log_file");
    s.timeout = attribute_text(element, "timeout");
    s.retry = attribute_text(element, "retry");
    s.repeat = attribute_text(element, "repeat");
    s.gpu_slots = attribute_text(element, "gpu_slots");
    s.reuse = boolean_or(element.get("reuse"), true);
    s.quiet_check = boolean_or(element.get("quiet_check"), true);
    for (const Element& child : element.children) add_to_step(child, &s);
    check_platforms(element);
    check_kind(element, s);
    return s;
  }

  void add_to_step(const Element& child, Step* s) {
    if (child.name == "use") {
      add_use(child, false, &s->use);
    } else if (child.name == "do") {
      s->operations.push_back(operation(child));
    } else if (child.name == "resources") {
      s->resources = resources(child, s);
    } else if (child.name == "repeat") {
      read_repeat(child, s, diagnostics_);
    } else if (child.name == "platform") {
      add_platform(child, s);
    } else if (child.name == "container") {
      s->container = container(child);
    } else if (child.name == "pack") {
      s->pack = {text_of(child), attribute_text(child, "size"), attribute_text(child, "at_once")};
    } else if (child.name == "launch") {
      if (!s->launch.value.empty()) {
        diagnostics_.error(child.mark, "a step launches one program",
                           "put further commands under 'do', or make a second step");
      }
      s->launch = text_of(child);
    } else if (child.name == "env") {
      for (auto& variable : all_attributes(child)) s->env.push_back(std::move(variable));
    } else if (child.name == "env_unset") {
      append(text_of(child), &s->env_unset);
    } else if (child.name == "modules") {
      append(text_of(child), &s->modules);
    } else if (child.name == "expect") {
      append(text_of(child), &s->expect);
    } else if (child.name == "input") {
      append(text_of(child), &s->inputs);
    }
  }

  void check_platforms(const Element& element) {
    const Element* first = nullptr;
    for (const Element& child : element.children) {
      if (child.name != "platform") continue;
      if (first) {
        diagnostics_.error(child.mark, fmt::format("{} has two platforms", describe(element)),
                           "give each a tag, so that one of them is left");
        diagnostics_.note(first->mark, "the other one is here");
      }
      first = &child;
    }
  }

  void check_kind(const Element& element, const Step& s) {
    if (s.kind != StepKind::run && !s.launch.value.empty()) {
      diagnostics_.error(s.launch.mark,
                         fmt::format("'launch' in {} needs kind: run", describe(element)),
                         "other steps have commands under 'do'");
    }
    for (const Element& child : element.children) {
      if (s.kind == StepKind::run) break;
      if (child.name != "resources" && child.name != "platform" && child.name != "container" &&
          child.name != "pack") {
        continue;
      }
      diagnostics_.error(child.mark,
                         fmt::format("'{}' in {} needs kind: run", child.name, describe(element)));
    }
    if (s.kind != StepKind::setup && s.kind != StepKind::build) check_reuse(element);
    if (s.operations.empty() && s.launch.value.empty() && s.kind != StepKind::plain &&
        s.kind != StepKind::result) {
      diagnostics_.error(element.mark, fmt::format("{} does nothing", describe(element)),
                         s.kind == StepKind::run ? "give it 'launch' or 'do'" : "give it 'do'");
    }
  }

  // `input` and `reuse` decide whether work is done again. Only setup and build steps can skip
  // work.
  void check_reuse(const Element& element) {
    const auto say = [&](const Mark& mark, const char* key) {
      diagnostics_.error(
          mark, fmt::format("'{}' in {} needs kind: setup or build", key, describe(element)),
          "other steps always run again");
    };
    for (const Element& child : element.children) {
      if (child.name == "input") say(child.mark, "input");
    }
    if (const Attribute* reuse = element.find("reuse")) say(reuse->value.mark, "reuse");
  }

  Analyser analyser(const Element& element) {
    Analyser a;
    a.name = attribute_text(element, "name");
    a.reduce = boolean_or(element.get("reduce"), true);
    a.rows = split_text(attribute_text(element, "rows"));
    for (const Element& child : element.children) {
      if (child.name == "use") {
        add_use(child, true, &a.use);
      } else if (child.name == "analyse") {
        add_analyse(child, &a);
      }
    }
    return a;
  }

  Result result(const Element& element) {
    Result r;
    r.result_dir = attribute_text(element, "result_dir");
    for (const Element& child : element.children) {
      if (child.name == "use") {
        add_use(child, true, &r.use);
      } else if (child.name == "table") {
        r.outputs.emplace_back(table(child));
      } else if (child.name == "syslog") {
        r.outputs.emplace_back(syslog(child));
      } else if (child.name == "database") {
        r.outputs.emplace_back(database(child));
      } else if (child.name == "chart") {
        r.charts.push_back(chart(child));
      }
    }
    return r;
  }

  Chart chart(const Element& element) {
    Chart c;
    c.name = attribute_text(element, "name");
    c.table = attribute_text(element, "table");
    c.x = attribute_text(element, "x");
    c.y = attribute_text(element, "y");
    c.series = attribute_text(element, "series");
    c.facet = attribute_text(element, "facet");
    c.title = strip(element.get("title"));
    set_chart_kind(std::string(strip(element.get("kind"))), &c);
    set_chart_error(std::string(strip(element.get("error"))), &c);
    c.error_mark = attribute_text(element, "error").mark;
    set_chart_ideal(std::string(strip(element.get("ideal"))), &c);
    set_chart_log(std::string(strip(element.get("log"))), &c);
    if (c.kind == ChartKind::bar && (c.log_x || c.log_y)) {
      diagnostics_.error(element.find("log")->value.mark, "a bar chart has no logarithmic axis",
                         "bars begin at 0: use kind: line or kind: scatter");
    }
    if (c.kind == ChartKind::bar && c.ideal != ChartIdeal::none) {
      diagnostics_.error(element.find("ideal")->value.mark, "a bar chart has no ideal line",
                         "it has names along its axis, not numbers: use kind: line");
    }
    for (const Element& child : element.children)
      if (child.name == "published") c.published.push_back(published(child, c));
    return c;
  }

  PublishedSeries published(const Element& element, const Chart& chart) {
    PublishedSeries series;
    series.name = attribute_text(element, "name");
    series.facet = strip(element.get("facet"));
    if (Status read = read_published_points(text_of(element).value, &series.points); !read) {
      diagnostics_.error(element.mark,
                         fmt::format("published '{}': {}", series.name.value, read.message()),
                         "write values of x and y, as \"1: 60.5, 2: 29.9\"");
    }
    if (!series.facet.empty() && chart.facet.value.empty()) {
      diagnostics_.error(element.find("facet")->value.mark,
                         fmt::format("published '{}' names a panel, and the chart has one panel",
                                     series.name.value),
                         "give the chart a `facet`, or leave this one out");
    }
    return series;
  }

  Table table(const Element& element) {
    Table t;
    t.name = attribute_text(element, "name");
    std::string style(strip(element.get("style")));
    if (style == "pretty") t.style = TableStyle::pretty;
    if (style == "aligned") t.style = TableStyle::aligned;
    t.separator = element.get("separator", ",");
    t.sort = split_attribute(element, "sort");
    t.filter = attribute_text(element, "filter");
    t.transpose = boolean_or(element.get("transpose"), false);
    for (const Element& child : element.children) {
      if (child.name == "reference") t.references.push_back(reference(child));
      if (child.name != "column") continue;
      t.columns.push_back(column(child));
      for (const Element& below : child.children) {
        if (below.name != "reference") continue;
        Reference r = reference(below);
        r.column = t.columns.back().name;
        r.column_index = static_cast<int>(t.columns.size()) - 1;
        t.references.push_back(std::move(r));
      }
    }
    return t;
  }

  static Syslog syslog(const Element& element) {
    Syslog s;
    s.name = attribute_text(element, "name");
    s.address = strip(element.get("address"));
    s.host = strip(element.get("host"));
    s.port = attribute_text(element, "port", s.host.empty() ? "" : "514").value;
    s.format = strip(element.get("format", "jube[%(process)s]: %(message)s"));
    s.sort = split_attribute(element, "sort");
    s.filter = attribute_text(element, "filter");
    for (const Element& child : element.children) {
      if (child.name == "key") s.keys.push_back(column(child));
    }
    return s;
  }

  static Database database(const Element& element) {
    Database d;
    d.name = attribute_text(element, "name");
    d.file = attribute_text(element, "file");
    d.primary_keys = split_attribute(element, "primekeys");
    d.filter = attribute_text(element, "filter");
    for (const Element& child : element.children) {
      if (child.name != "key") continue;
      Column key = column(child);
      // `primekeys` may name the key or its column in the database.
      auto& primary = d.primary_keys;
      std::replace(primary.begin(), primary.end(), key.name.value, key.column_title());
      const bool listed =
          std::find(primary.begin(), primary.end(), key.column_title()) != primary.end();
      if (key.primary_key && !listed) primary.push_back(key.column_title());
      key.primary_key = key.primary_key || listed;
      d.keys.push_back(std::move(key));
    }
    return d;
  }

  const SetFile& home_;
  SetBuilder& sets_;
  Benchmark& benchmark_;
  Diagnostics& diagnostics_;
};

}  // namespace

void build_benchmark(const Element& element, const SetFile& home, SetBuilder& sets,
                     Benchmark* benchmark, Diagnostics& diagnostics) {
  BenchmarkBuilder(home, sets, benchmark, diagnostics).build(element);
}

}  // namespace tally

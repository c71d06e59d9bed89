#include "engine/check/glossary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/text.h"
#include "engine/read/schema.h"
#include "engine/read/short_form.h"
#include "engine/workflow/builtin_names.h"

namespace tally {
namespace {

// Words that are no elements of a file.
constexpr std::pair<const char*, const char*> kWords[] = {
    {"workpackage",
     R"(A workpackage is one execution of one step: the step's commands with one value of each of its
parameters. A step with the parameters n = 1, 2, 4 and m = a, b has six workpackages. Each has
a number and a folder of its own, in which its commands run: RUN/000003_step/work.

`tally run FILE -n` lists them before anything runs, `tally info RUN` afterwards.
)"},
    {"parameter_space",
     R"(A parameter with a list of values (n: 1,2,4) opens a dimension. The parameter space of a step
are all combinations of the values of the parameters that it uses; each combination is a point,
and makes a workpackage. A step that depends on another one has its points, too.

`where` leaves points out, `zip` goes through several lists at the same time, and mode: python
computes a value from others.
)"},
    {"tagging",
     R"(Every element may have a key `tag`: an expression of tags, such as gpu+!small. ! is not, + is
and, | is or, ^ is either. An element whose expression does not hold is left out. The tags of a
run come from `--tag`; `tally tag FILE` lists those that a file knows.
)"},
    {"include",
     R"(Puts parts of another file in its place. In XML: <include from="FILE" path="XPATH"/>. In YAML
as a value: !include FILE, or !include FILE:["key"] for a part of it. FILE is looked for beside
the file that includes it, and in the directories of include-path and --include-path.
)"},
    {"types",
     R"(A parameter or a pattern has a `type`: string (the default), int, float or bool; its values are
sorted, compared and shown as such. `mode` says what a value is: text; python, perl or shell,
which compute it; env, the environment's variable; tag, chosen by the tags.
)"},
    {"update_mode",
     R"(When a parameter in a mode such as python or shell is evaluated: never (once, the default), use
(again where a step uses its set), step (again in each step), cycle (in each cycle of a step),
always.
)"},
    {"jube_pattern",
     "Patterns may use these regular expressions. Those with an n have no group.\n"
     "\n"
     "  $jube_pat_int, $jube_pat_nint  a whole number\n"
     "  $jube_pat_fp, $jube_pat_nfp    a number with a decimal point or an exponent\n"
     "  $jube_pat_wrd, $jube_pat_nwrd  a word: everything up to white space\n"
     "  $jube_pat_bl                   white space, without a group\n"},
    {"statistical_values",
     R"(A pattern that matches several times is also known as NAME_first, NAME_last, NAME_min, NAME_max,
NAME_avg, NAME_std, NAME_sum and NAME_cnt, over its matches. With `repeat` on a step, a column's
`statistic` (median, mean, min, max, ...) and `uncertainty` (ci, range, mad) are over the
repeats.
)"},
    {"speedup",
     "A column may name the same column of another row, its baseline: the row with the values of\n"
     "relative_to, and otherwise the row's own parameters. In the short form:\n"
     "\n"
     "  metrics:\n"
     "    time: {_: 'time = $jube_pat_fp', unit: s, better: lower}\n"
     "    speedup: {expression: baseline.time / time, relative_to: {nodes: 1}, format: .2f}\n"
     "    efficiency: {expression: baseline.time / time / nodes, relative_to: {nodes: 1}}\n"
     "  chart: {name: scaling, x: nodes, y: time, ideal: inverse, log: xy}\n"},
    {"marks",
     "What is wrong with a row's numbers stands in its columns `status` and `machine`:\n"
     "\n"
     "  FAILED, LOST     no measurement; the reason is below the table\n"
     "  PENDING, RUNNING not done yet\n"
     "  EXPECTED         it ended as `expect` says, and has no number\n"
     "  BUSY             other programs used the machine meanwhile\n"
     "  THROTTLED        the machine was slowed down: heat, a power brake\n"
     "  SHORT            measured for less than a second, as the program says (measured_over)\n"
     "  CHANGED          its output is another one than at its end\n"
     "  REUSED           work of an earlier run, not measured in this one\n"},
    {"directory_structure",
     "  OUTPATH/                     the runs of a workflow\n"
     "    000000/                    a run, by its id\n"
     "      journal.sqlite           what happened to each workpackage\n"
     "      run.log                  the same as lines of text\n"
     "      000003_step/             a workpackage: its number and its step\n"
     "        work/                  where its commands ran\n"
     "          stdout, stderr       what they printed\n"
     "      result/                  tables (NAME.dat) and charts (NAME.svg)\n"},
    {"general_structure_yaml",
     "  name: pi                                    # what the workflow is called\n"
     "  outpath: pi_run                             # where its runs are kept\n"
     "  parameterset: {name: p, parameter: [{name: n, type: int, _: \"1,2,4\"}]}\n"
     "  step: {name: s, use: p, do: ./pi $n}\n"
     "  patternset: {name: pt, pattern: {name: time, type: float, _: 'time = $jube_pat_fp'}}\n"
     "  analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
     "  result: {use: a, table: {name: t, column: [n, time]}}\n"
     "\n"
     "`tally new NAME` writes a shorter first file, and `tally show FILE` the long form of any.\n"},
    {"general_structure_xml",
     R"(  <jube><benchmark name="pi" outpath="pi_run">
    <parameterset name="p"><parameter name="n" type="int">1,2,4</parameter></parameterset>
    <step name="s"><use>p</use><do>./pi $n</do></step>
    <patternset name="pt"><pattern name="time" type="float">time = $jube_pat_fp</pattern>
    </patternset>
    <analyser name="a"><use>pt</use><analyse step="s"><file>stdout</file></analyse></analyser>
    <result><use>a</use><table name="t"><column>n</column><column>time</column></table></result>
  </benchmark></jube>
)"},
};

std::string jube_variables() {
  std::string text = "Names that every workflow may use:\n\n";
  for (const BuiltinName& name : builtin_names()) {
    const char* when = name.phase == BuiltinPhase::run    ? "of the run"
                       : name.phase == BuiltinPhase::step ? "of the step"
                                                          : "of the workpackage";
    text += fmt::format("  ${:<30} {}\n", name.name, when);
  }
  return text;
}

std::string element_entry(const ElementRule& rule) {
  std::string text =
      fmt::format("{}{}\n\n{}\n", rule.name,
                  *rule.parents == '\0' || std::strcmp(rule.parents, "jube") == 0
                      ? std::string()
                      : fmt::format(" (in {})", join(split_strip(rule.parents, " "), ", ")),
                  rule.doc);
  std::vector<std::pair<std::string, std::string>> rows;
  for (const KeyRule& key : key_rules()) {
    if (std::strcmp(key.element, rule.id) != 0) continue;
    std::string meaning = key.doc;
    if (const std::vector<std::string> choices = choices_of(key); !choices.empty())
      meaning += fmt::format(" ({})", join(choices, ", "));
    if (key.required) meaning += " (required)";
    rows.emplace_back(key.key, meaning);
  }
  for (const ElementRule& other : element_rules())
    if (find_child(rule.id, other.name) == &other) rows.emplace_back(other.name, other.doc);
  size_t width = 0;
  for (const auto& [name, meaning] : rows) width = std::max(width, name.size());
  if (!rows.empty()) text += "\n";
  for (const auto& [name, meaning] : rows)
    text += fmt::format("  {:<{}}  {}\n", name, width, one_line(meaning));
  return text;
}

}  // namespace

std::vector<std::string> glossary_words() {
  std::vector<std::string> words;
  for (const ElementRule& rule : element_rules())
    if (!contains(words, rule.name)) words.emplace_back(rule.name);
  for (const ShortKey& key : short_keys())
    if (!contains(words, key.key)) words.emplace_back(key.key);
  for (const auto& [word, text] : kWords) words.emplace_back(word);
  words.emplace_back("jube_variables");
  std::ranges::sort(words);
  return words;
}

std::string glossary_entry(const std::string& word) {
  std::string name = word;
  if (name.ends_with("_tag")) name.resize(name.size() - 4);
  if (word == "jube_variables") return jube_variables();
  constexpr std::pair<const char*, std::string_view> kOthers[] = {
      {"marks", " FAILED LOST PENDING RUNNING EXPECTED BUSY THROTTLED SHORT CHANGED REUSED "},
      {"speedup", " baseline efficiency "},
      {"statistical_values", " median mean "},
      {"jube_pattern",
       " jube_pat_int jube_pat_fp jube_pat_wrd jube_pat_nint jube_pat_nfp "
       "jube_pat_nwrd jube_pat_bl "}};
  for (const auto& [meant, names] : kOthers)
    if (names.find(" " + name + " ") != std::string_view::npos) name = meant;
  for (const auto& [known, text] : kWords) {
    if (name == known) return text;
  }
  std::string out;
  for (const ElementRule& rule : element_rules())
    if (element_name(name) == element_name(rule.name))
      out += (out.empty() ? "" : "\n") + element_entry(rule);
  for (const ShortKey& key : short_keys())
    if (name == key.key && out.empty())
      out = fmt::format("{} (beside `run`, in a short file): {}\n\n{}\n", key.key, key.values,
                        key.doc);
  return out;
}

}  // namespace tally

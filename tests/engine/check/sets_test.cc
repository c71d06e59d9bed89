// Sets: duplicates, init_with, from, files.
#include <fmt/format.h>

#include "tests/engine/check/checked.h"

using namespace tally;

namespace {

// The value of parameter x of set p after `definitions`, or the messages.
std::string duplicated(const std::string& definitions, const std::string& set = "") {
  Checked checked("name: b\nparameterset: {name: p" + set + ", parameter: [" + definitions +
                  "]}\n");
  if (!checked.workflow) return checked.messages();
  const auto& parameters = checked.set("p").parameters;
  REQUIRE(parameters.size() == 1);
  return parameters[0].value.value;
}

const std::string kOther =
    "<jube><parameterset name=\"A\"><parameter name=\"x\">A1</parameter>"
    "<parameter name=\"k\">K</parameter></parameterset>"
    "<parameterset name=\"B\"><parameter name=\"y\">B1</parameter></parameterset>"
    "<fileset name=\"F\"><copy>data</copy></fileset>"
    "<patternset name=\"P\"><pattern name=\"v\">a</pattern><pattern "
    "name=\"w\">b</pattern></patternset>"
    "<substituteset name=\"S\"><iofile in=\"i\" out=\"o\"/><sub source=\"#X#\" dest=\"1\"/>"
    "<sub source=\"#Y#\" dest=\"2\"/></substituteset></jube>";

Checked with_other(const std::string& text) {
  return Checked("d/f.yaml",
                 Files{{"d/f.yaml", "name: b\noutpath: o\n" + text},
                       {"d/other.xml", kOther},
                       {"d/two.yaml", "parameterset: {name: A, parameter: {name: x, _: T}}\n"}});
}

}  // namespace

TEST_CASE("a parameter with everything") {
  Checked checked(
      "name: b\nparameterset: {name: p, parameter: {name: x, type: int, mode: python, separator: "
      ";,\n"
      "  unit: s, export: true, update_mode: step, duplicate: replace, _: ' 1;2 '}}\n");
  CHECK(checked.messages() == "");
  const Parameter& x = checked.set("p").parameters.at(0);
  CHECK(x.name.value == "x");
  CHECK(x.value.value == "1;2");
  CHECK(x.type == ValueType::integer);
  CHECK(x.mode == Mode::python);
  CHECK(x.separator == ";");
  CHECK(x.unit == "s");
  CHECK(x.exported);
  CHECK(x.update == UpdateMode::step);
  CHECK(x.duplicate == Duplicate::replace);
}

// Compared with JUBE 2.5.1 where it answers.
TEST_CASE("parameters defined twice") {
  CHECK(duplicated("{name: x, _: '1,2'}, {name: x, _: '3,2'}") == "3,2");
  CHECK(duplicated("{name: x, _: '10,9'}, {name: x, _: '2,10'}", ", duplicate: concat") ==
        "10,2,9");
  CHECK(duplicated(
            "{name: x, duplicate: concat, _: '1,2'}, {name: x, duplicate: concat, _: '3,2'}") ==
        "1,2,3");
  CHECK(duplicated("{name: x, mode: python, _: 1+1}, {name: x, mode: python, _: 3+2}",
                   ", duplicate: concat") == "1+1,3+2");
  CHECK(duplicated("{name: x, duplicate: replace, _: 1}, {name: x, duplicate: replace, _: 2}",
                   ", duplicate: concat") == "2");
  CHECK(duplicated("{name: x, duplicate: concat, _: 1}, {name: x, _: 2}")
            .find("say different things about duplicates") != std::string::npos);
  CHECK(duplicated("{name: x, _: 1}, {name: x, _: 2}", ", duplicate: error")
            .find("error: parameter 'x' is defined twice") != std::string::npos);
  CHECK(duplicated("{name: x, separator: ;, _: 1}, {name: x, _: 2}", ", duplicate: concat")
            .find("cannot be joined") != std::string::npos);
  CHECK(duplicated("{name: x, _: [1, 2]}") == "2");
}

TEST_CASE("a silent duplicate is worth a warning, one chosen by tag is not") {
  CHECK(Checked("name: b\nparameterset: {name: p, parameter: [{name: x, _: 1}, {name: x, _: 2}]}\n")
            .says("f.yaml:2:61: warning: parameter 'x' is defined twice; the last one counts"));
  CHECK(Checked("name: b\nparameterset: {name: p, parameter: [{name: x, _: 1}, "
                "{name: x, tag: big, _: 2}]}\n",
                with_tags({"big"}))
            .messages() == "");
}

TEST_CASE("init_with takes another file's set, own entries override") {
  Checked checked = with_other(
      "parameterset: [{name: A, init_with: other.xml, parameter: {name: x, _: own}},\n"
      "  {name: Q, init_with: 'other.xml:A'}, {name: R, init_with: ':Q'},\n"
      "  {name: C, duplicate: concat, init_with: 'other.xml:A', parameter: {name: x, _: own}}]\n"
      "fileset: {name: F, init_with: other.xml, link: l}\n"
      "patternset: {name: P, init_with: other.xml, pattern: {name: w, _: own}}\n"
      "substituteset: {name: S, init_with: other.xml, iofile: {in: j, out: o},\n"
      "  sub: {source: '#Y#', dest: own}}\n");
  CHECK(checked.messages() == "");
  CHECK(checked.set("A").parameters.at(0).value.value == "own");
  CHECK(checked.set("A").parameters.at(1).value.value == "K");
  CHECK(checked.set("Q").parameters.at(0).value.value == "A1");
  CHECK(checked.set("R").parameters.at(0).value.value == "A1");
  CHECK(checked.set("C").parameters.at(0).value.value == "A1,own");
  const FileSet& files = checked.benchmark().file_sets.at("F");
  REQUIRE(files.entries.size() == 2);
  CHECK(std::get<FileCopy>(files.entries[0]).source.value == "data");
  CHECK(std::get<FileCopy>(files.entries[0]).file_path.find("/d") != std::string::npos);
  CHECK(std::get<FileCopy>(files.entries[1]).link);
  const PatternSet& patterns = checked.benchmark().pattern_sets.at("P");
  REQUIRE(patterns.patterns.size() == 2);
  CHECK(patterns.patterns[1].value.value == "own");
  const SubstituteSet& subs = checked.benchmark().substitute_sets.at("S");
  REQUIRE(subs.files.size() == 1);
  CHECK(subs.files[0].in.value == "j");
  REQUIRE(subs.substitutions.size() == 2);
  CHECK(subs.substitutions[0].source.value == "#X#");
  CHECK(subs.substitutions[1].dest.value == "own");
}

TEST_CASE("the main file's include paths serve the files that it takes sets from") {
  const Files files = {
      {"m.xml",
       "<jube><include-path><path>inc</path><path>far</path></include-path>"
       "<benchmark name='b' outpath='o'><parameterset name='A' init_with='d/arch.xml'/>"
       "</benchmark></jube>"},
      {"inc/d/arch.xml",
       "<jube><include from='third.xml'/>"
       "<parameterset name='A' init_with='d/fourth.xml:B'/></jube>"},
      {"far/third.xml", "<jube><parameterset name='T'/></jube>"},
      {"far/d/fourth.xml", "<jube><parameterset name='B' init_with='beside.xml:C'/></jube>"},
      {"beside.xml",
       "<jube><parameterset name='C'><parameter name='x'>1</parameter>"
       "</parameterset></jube>"}};
  Checked checked("m.xml", files);
  CHECK(checked.messages() == "");
  CHECK(checked.set("A").parameters.at(0).value.value == "1");
}

TEST_CASE("of equal sources the last counts, in the place of the first") {
  Checked checked(
      "name: b\nsubstituteset:\n"
      "  - {name: A, sub: [{source: x, dest: 1}, {source: y, dest: 2}, {source: x, dest: 3}]}\n"
      "  - {name: B, init_with: ':A', sub: [{source: z, dest: 4}, {source: x, dest: 5}]}\n");
  const auto shown = [&](const char* set) {
    std::string text;
    for (const Substitution& s : checked.benchmark().substitute_sets.at(set).substitutions) {
      text += s.source.value + s.dest.value + " ";
    }
    return text;
  };
  CHECK(shown("A") == "x3 y2 ");
  CHECK(shown("B") == "x5 y2 z4 ");
}

TEST_CASE("a list of values under _") {
  const std::string list =
      "parameter: [{name: x, _: [1, 2, yes]}, {name: y, separator: ;, _: [a, "
      "'b,c']}, {name: z, _: [7]}]}\n";
  Checked own("name: b\nparameterset: {name: p, where: $x > 0, " + list);
  CHECK(own.set("p").parameters.at(0).value.value == "1,2,yes");
  CHECK(own.set("p").parameters.at(1).value.value == "a;b,c");
  CHECK(own.set("p").parameters.at(2).value.value == "7");
  CHECK(
      own.says("f.yaml:2:72: note: the value is 'yes', as in YAML 1.2; in a file of plain JUBE "
               "language it is 'True'"));
  CHECK(Checked("name: b\nparameterset: {name: p, where: 1, parameter: {name: x, _: ['a,b', c]}}\n")
            .says("error: value 'a,b' of parameter 'x' cannot stand in a list cut at ','"));
  Checked jube("name: b\nparameterset: {name: p, " + list);  // as JUBE 2.5.1 and 2.7.1
  CHECK(jube.set("p").parameters.at(0).value.value == "True");
  CHECK(jube.says("warning: parameter 'x' has a list of values, of which JUBE keeps the last"));
  CHECK(jube.diagnostics.warning_count() == 3);
}

TEST_CASE("plain values are texts as written in files of our own, PyYAML's in JUBE's") {
  const std::string values =
      "parameter: [{name: a, _: 010}, {name: b, _: off}, {name: c, _: 1_000}, {name: d, _: "
      "1:30:00},"
      " {name: e, _: 0b11}, {name: f, _: 1e3}, {name: g, _: 1.50}, {name: h, _: 'yes'},"
      " {name: i, export: yes, _: 0x1F}]}\nstep: {name: no, active: off, do: x}\n";
  const auto shown = [](const Checked& checked) {
    std::string text;
    for (const Parameter& p : checked.set("p").parameters) text += p.value.value + " ";
    return text + checked.benchmark().steps.at(0).name.value;
  };
  Checked own("name: b\nparameterset: {name: p, where: 1 > 0, " + values);
  CHECK(shown(own) == "010 off 1_000 1:30:00 0b11 1e3 1.50 yes 0x1F no");
  CHECK(own.set("p").parameters.at(8).exported);
  CHECK(own.benchmark().steps.at(0).active.value == "False");
  CHECK(own.diagnostics.warning_count() == 0);
  CHECK(own.says("note: 5 more of this kind: 'off'"));
  CHECK(shown(Checked("name: b\nparameterset: {name: p, " + values)) ==
        "8 False 1000 5400 3 1e3 1.5 yes 31 False");
}

TEST_CASE("plain values: as they are written, wherever a text is taken") {
  // What PyYAML 6 makes of them is in yaml_scalar_test.cc.
  for (const char* written : {"12.10",
                              "3.10",
                              "2.50",
                              "1.0",
                              "010",
                              "0o17",
                              "0x1F",
                              "0b11",
                              "+1",
                              "-0",
                              "-1.50",
                              "1_000",
                              "1e3",
                              "1.5e+3",
                              "6.02E+23",
                              ".5",
                              "5.",
                              ".inf",
                              "-.INF",
                              ".nan",
                              "true",
                              "True",
                              "TRUE",
                              "false",
                              "yes",
                              "No",
                              "on",
                              "OFF",
                              "12:30:00",
                              "190:20:30.15",
                              "2026-11-27",
                              "2026-11-27 10:00:00Z",
                              "2026-11-27T10:00:00.10+01:00"}) {
    const std::string value = written;
    CAPTURE(value);
    for (const std::string& form :
         {value, "&anchor " + value, "!!str " + value, "\n      " + value}) {
      Checked own("name: b\ncomment: &alias " + value +
                  "\nparameterset: {name: p, where: 1 > 0, parameter: [{name: a, _: " + form +
                  "}, {name: l, separator: ;, _: [x, " + value +
                  "]}]}\nstep: {name: s, use: p, env: {V: " + value +
                  ", W: *alias}, suffix: " + value + ", do: " + value + "}\n");
      CHECK(own.set("p").parameters.at(0).value.value == value);
      CHECK(own.set("p").parameters.at(1).value.value == "x;" + value);
      const Step& made = own.benchmark().steps.at(0);
      CHECK(made.env.at(0).second.value == value);
      CHECK(made.env.at(1).second.value == value);
      CHECK(made.suffix.value == value);
      CHECK(made.operations.at(0).command.value == value);
      CHECK(own.benchmark().comment == value);
    }
  }
  // Empty stays empty.
  for (const char* empty : {"", "~", "null", "Null", "NULL", "!!null x"}) {
    CAPTURE(std::string(empty));
    Checked own("name: b\nparameterset: {name: p, where: 1 > 0, parameter: {name: a, _: " +
                std::string(empty) + "}}\n");
    CHECK(own.set("p").parameters.at(0).value.value.empty());
  }
  // Quoted ones are as they were in both languages.
  for (const char* where : {"where: 1 > 0, ", ""}) {
    Checked quoted("name: b\nparameterset: {name: p, " + std::string(where) +
                   "parameter: [{name: a, _: '12.10'}, {name: c, _: \"null\"}]}\n");
    CHECK(quoted.set("p").parameters.at(0).value.value == "12.10");
    CHECK(quoted.set("p").parameters.at(1).value.value == "null");
  }
}

TEST_CASE("plain values: keys of numbers, times and truths read what they read before") {
  const auto step = [](const std::string& keys) {
    Checked checked("name: b\nstep: {name: s, kind: run, do: x, " + keys + "}\n");
    CAPTURE(keys);
    CHECK(checked.messages().find("error") == std::string::npos);
    return checked.benchmark().steps.at(0);
  };
  CHECK(step("iterations: 010").iterations.value == "10");
  CHECK(step("iterations: 0x1F").iterations.value == "31");
  CHECK(step("timeout: 12:30:00").timeout.value == "12:30:00");
  CHECK(step("timeout: 1.50").timeout.value == "1.5");
  for (const char* word : {"true", "yes", "on", "True", "YES"})
    CHECK(step(std::string("export: ") + word).exported);
  for (const char* word : {"false", "no", "off", "False", "NO"}) {
    CHECK(!step(std::string("export: ") + word).exported);
    CHECK(step(std::string("active: ") + word).active.value == "False");
  }
  // A parameter that is a number has the text as written if that is a number's in Python.
  Checked typed(
      "name: b\nparameterset: {name: p, where: 1 > 0, parameter: [{name: i, type: int, _: 010}, "
      "{name: h, type: int, _: 0x1F}, {name: f, type: float, _: 12.10}, {name: n, type: float, _: "
      ".inf}, {name: l, type: int, _: [0x1F, 1_000, 2]}]}\n");
  std::string values;
  for (const Parameter& p : typed.set("p").parameters) values += p.value.value + " ";
  CHECK(values == "010 31 12.10 inf 31,1_000,2 ");
  // What is no number in YAML either is told as it is written.
  Checked words(
      "name: b\nparameterset: {name: p, where: 1 > 0, parameter: [{name: i, type: int, _: true}, "
      "{name: h, type: int, _: [0x1F, off]}, {name: d, type: int, _: 2001-01-01}, {name: f, type: "
      "float, _: 12:30}]}\n");
  for (const char* said : {"'true' is not a valid int", "'off' is not a valid int",
                           "'2001-01-01' is not a valid int", "'12:30' is not a valid float"})
    CHECK_MESSAGE(words.messages().find(said) != std::string::npos, words.messages());
  CHECK(words.messages().find("0x1F'") == std::string::npos);
  // Keys of a mapping are texts, too: PyYAML takes both for False.
  Checked names("name: b\nstep: {name: s, kind: run, do: x, env: {NO: 1, OFF: 2}}\n");
  CHECK(names.messages() == "");
  CHECK(names.benchmark().steps.at(0).env.at(1).first.value == "OFF");
}

TEST_CASE(
    "plain values: the language is that of the file that is run, or of a file with Tally's keys") {
  const auto value = [](const std::string& main, const std::string& other) -> std::string {
    Checked checked("d/f.yaml", Files{{"d/f.yaml", main}, {"d/other.yaml", other}}, {});
    for (const auto& [name, set] : checked.benchmark().parameter_sets) {
      for (const Parameter& p : set.parameters) {
        if (p.name.value == "a") return p.value.value;
      }
    }
    return checked.messages();
  };
  const std::string plain = "parameterset: {name: q, parameter: {name: a, _: 12.10}}\n";
  const std::string tally =
      "parameterset: {name: q, where: 1 > 0, parameter: {name: a, _: 12.10}}\n";
  const std::string uses = "step: {name: s, use: {from: other.yaml, _: q}, do: x}\n";
  const std::string own = "name: b\nparameterset: {name: m, where: 1 > 0}\n";
  CHECK(value("name: b\n" + uses, plain) == "12.1");
  CHECK(value(own + uses, plain) == "12.10");
  CHECK(value("name: b\n" + uses, tally) == "12.10");
  // What !include puts in belongs to the file.
  const std::string include =
      "step: {name: s, use: q, do: x}\nparameterset:\n  name: q\n  parameter:\n    name: a\n"
      "    _: !include other.yaml:[\"v\"]\n";
  CHECK(value("name: b\n" + include, "v: 12.10\n") == "12.1");
  CHECK(value("name: b\n" + include + "  where: 1 > 0\n", "v: 12.10\n") == "12.10");
}

TEST_CASE("init_with that leads nowhere") {
  CHECK(
      with_other("parameterset: {name: A, init_with: nix.xml}\n").says("file 'nix.xml' not found"));
  CHECK(with_other("parameterset: {name: AA, init_with: other.xml}\n")
            .says("no parameterset 'AA' in 'd/other.xml'"));
  CHECK(with_other("parameterset: [{name: A, init_with: ':Z'}, {name: Z, init_with: ':A'}]\n")
            .says("init_with goes round in a circle"));
}

// JUBE 2.5.1 resolves a chain of any length, also one that goes through the main file.
TEST_CASE("init_with goes through sets of the same file, and a circle is one error") {
  std::string chain =
      "name: b\noutpath: o\nparameterset:\n  - {name: p0, parameter: {name: x, _: 7}}\n";
  for (int i = 1; i <= 40; ++i) {
    chain += fmt::format("  - {{name: p{}, init_with: 'd/f.yaml:p{}'}}\n", i, i - 1);
  }
  Checked long_chain("d/f.yaml", Files{{"d/f.yaml", chain}, {"d/d/f.yaml", chain}});
  CHECK(long_chain.set("p40").parameters.at(0).value.value == "7");
  for (const char* kind : {"parameterset", "patternset", "substituteset", "fileset"}) {
    Checked circle(
        fmt::format("name: b\n{}: [{{name: A, init_with: ':Z'}}, {{name: Z, init_with: ':A'}}, "
                    "{{name: Q, init_with: ':Z'}}]\n",
                    kind));
    CAPTURE(circle.messages());
    CHECK(circle.diagnostics.error_count() == 1);
    CHECK(circle.says("init_with goes round in a circle: "));
    Checked itself(fmt::format("name: b\n{}: {{name: A, init_with: ':A'}}\n", kind));
    CHECK(itself.says("init_with goes round in a circle: "));
  }
}

// Each set of a chain would be made for each set behind it, and those before it again for each of
// these: a file of a thousand took half a minute.
TEST_CASE("a set that init_with names is made once, however many take it") {
  std::string chain =
      "name: b\noutpath: o\nparameterset:\n"
      "  - {name: p0, parameter: [{name: x, _: 7}, {name: x, _: 8}]}\n";
  for (int i = 1; i <= 300; ++i)
    chain += fmt::format("  - {{name: p{}, init_with: ':p{}', parameter: {{name: a{}, _: 1}}}}\n",
                         i, i - 1, i);
  Checked checked(chain);
  CHECK(checked.set("p300").parameters.size() == 301);
  CHECK(checked.set("p300").parameters.at(0).value.value == "8");
  CAPTURE(checked.diagnostics.warning_count());
  CHECK(checked.diagnostics.warning_count() <= 2);  // as a set of the benchmark, and as a base
  // The chain may have a thousand, in either order.
  for (const int step : {1, -1}) {
    std::string longer = "name: b\noutpath: o\nparameterset:\n";
    for (int k = 0; k <= 1005; ++k) {
      const int i = step == 1 ? k : 1005 - k;
      longer += i == 0 ? "  - {name: p0, parameter: {name: x, _: 7}}\n"
                       : fmt::format("  - {{name: p{}, init_with: ':p{}'}}\n", i, i - 1);
    }
    Checked too_long(longer);
    CHECK(too_long.says("init_with goes through more than 1000 sets"));
  }
}

// Which forms JUBE 2.5.1 accepts was found by running it.
TEST_CASE("use with from takes sets under names of their own") {
  auto uses = [](const std::string& use) {
    Checked checked =
        with_other("parameterset: {name: L, parameter: {name: z, _: 1}}\nstep: {name: s, use: [" +
                   use + "], do: x}\n");
    if (!checked.workflow) return checked.messages();
    std::string names;
    for (const Text& name : checked.benchmark().steps.at(0).use) {
      const auto& b = checked.benchmark();
      bool known = b.parameter_sets.count(name.value) + b.file_sets.count(name.value) > 0;
      names += name.value + (known ? " " : "? ");
    }
    return names;
  };
  CHECK(uses("{from: other.xml, _: A}") == "A@other.xml ");
  CHECK(uses("{from: other.xml, _: 'A,F'}") == "A@other.xml F@other.xml ");
  CHECK(uses("{from: 'other.xml:B:A', _: A}") == "A@other.xml:B:A ");
  CHECK(uses("{from: 'other.xml,other.xml:B', _: 'A,B'}") ==
        "A@other.xml,other.xml:B B@other.xml,other.xml:B ");
  CHECK(uses("{from: 'two.yaml,:L', _: 'A,L'}").find("no set 'L' in 'd/two.yaml'") !=
        std::string::npos);
  CHECK(uses("{from: 'two.yaml:A,:L', _: 'A,L'}") == "A@two.yaml:A,:L L@two.yaml:A,:L ");
  CHECK(uses("{from: 'other.xml:A:B', _: '${i}'}") == "${i}@other.xml:A:B? ");
  CHECK(uses("{from: 'other.xml:A', _: 'A,B'}").find("set 'B' is not among those taken") !=
        std::string::npos);
  CHECK(uses("{from: 'other.xml,two.yaml', _: A}").find("two of these files define set 'A'") !=
        std::string::npos);
  CHECK(uses("{from: other.xml, _: AB}").find("no set 'AB' in 'd/other.xml'") != std::string::npos);
}

TEST_CASE("files named by sets: entries in order, with the directory they start from") {
  Checked checked(
      "name: b\nfileset:\n  name: f\n  link: [l]\n"
      "  copy: {_: 'a,b', name: 'c,d', source_dir: s, target_dir: t, rel_path_ref: internal,\n"
      "         separator: ;, active: $x > 1}\n"
      "  prepare: {stdout: o, stderr: e, work_dir: w, _: make}\n");
  CHECK(checked.messages() == "");
  const FileSet& set = checked.benchmark().file_sets.at("f");
  REQUIRE(set.entries.size() == 3);
  CHECK(std::get<FileCopy>(set.entries[0]).link);
  const auto& copy = std::get<FileCopy>(set.entries[1]);
  CHECK(copy.source.value == "a,b");
  CHECK(copy.target.value == "c,d");
  CHECK(copy.source_dir == "s");
  CHECK(copy.target_dir == "t");
  CHECK(copy.internal);
  CHECK(copy.separator == ";");
  CHECK(copy.active.value == "$x > 1");
  const auto& prepare = std::get<Prepare>(set.entries[2]);
  CHECK(prepare.command.value == "make");
  CHECK(prepare.stdout_file == "o");
  CHECK(prepare.work_dir == "w");
}

TEST_CASE("zip and where") {
  auto zips = [](const std::string& zip) {
    Checked checked(
        "name: b\nparameterset: {name: p, parameter: [{name: a}, {name: b}, {name: c}, {name: "
        "d}],\n"
        "  where: [$a > 1, $b > 2], zip: " +
        zip + "}\n");
    if (!checked.workflow) return checked.messages();
    CHECK(checked.set("p").where.size() == 2);
    std::string text;
    for (const auto& group : checked.set("p").zip) {
      for (const Text& name : group) text += name.value;
      text += ";";
    }
    return text;
  };
  CHECK(zips("[a, b]") == "ab;");
  CHECK(zips("'a, b'") == "ab;");
  CHECK(zips("[[a, b], [c, d]]") == "ab;cd;");
  CHECK(zips("[a, e]").find("zip names 'e', which is not a parameter of this set") !=
        std::string::npos);
  CHECK(zips("[[a, b], [b, c]]").find("zip names 'b' twice") != std::string::npos);
  CHECK(zips("a").find("zip needs two parameters or more") != std::string::npos);
}

TEST_CASE("--set replaces a parameter in every set, as plain text") {
  CheckOptions options;
  options.set = {{"x", "3,4"}};
  const std::string text =
      "name: b\nparameterset: [{name: p, parameter: {name: x, mode: python, type: int, _: 1+1}},\n"
      "  {name: q, parameter: {name: x, _: 5}}]\n";
  Checked checked(text, options);
  CHECK(checked.messages() == "");
  CHECK(checked.set("p").parameters[0].value.value == "3,4");
  CHECK(checked.set("p").parameters[0].mode == Mode::text);
  CHECK(checked.set("p").parameters[0].type == ValueType::integer);
  CHECK(checked.set("q").parameters[0].value.value == "3,4");
  options.set = {{"xx", "3"}};
  CHECK(Checked(text, options).messages() ==
        "tally: error: --set xx=3: no parameter is called 'xx'\nhint: did you mean 'x'?\n");
}

TEST_CASE("--set with a value that is not of the parameter's type") {
  CheckOptions options;
  options.set = {{"x", "3,two"}};
  CHECK(
      Checked("name: b\nparameterset: {name: p, parameter: {name: x, type: int, _: 1}}\n", options)
          .messages() ==
      "tally: error: --set x=3,two: 'two' is not a valid int, which parameter 'x' has to be\n"
      "f.yaml:2:43: note: 'x' is defined here\n"
      "    parameterset: {name: p, parameter: {name: x, type: int, _: 1}}\n"
      "                                              ^\n");
  options.set = {{"x", "1.5, 1_000, $y, inf"}};
  CHECK(Checked("name: b\nparameterset: {name: p, parameter: {name: x, type: float, _: 1}}\n",
                options)
            .messages() == "");
  options.set = {{"x", "inf"}};
  CHECK(
      Checked("name: b\nparameterset: {name: p, parameter: {name: x, type: int, _: 1}}\n", options)
          .says("'inf' is not a valid int"));
}

TEST_CASE("the values that a parameter may have") {
  const std::string text =
      "name: b\n"
      "parameterset:\n"
      "  name: p\n"
      "  parameter:\n"
      "    - {name: precision, allowed: \"fp32, bf16\", _: \"fp32,bf16\"}\n"
      "    - {name: batch, type: int, allowed: \">= 1\", _: $n}\n"
      "    - {name: share, type: float, allowed: \"0 .. 1\", _: 0.5}\n"
      "    - {name: n, type: int, _: 8}\n"
      "step: {name: s, use: p, do: x}\n";
  CHECK(Checked(text).messages() == "");
  auto set = [&](const std::string& name, const std::string& value) {
    CheckOptions options;
    options.set = {{name, value}};
    const std::string messages = Checked(text, options).messages();
    return messages.substr(0, messages.find("\nf.yaml"));
  };
  CHECK(set("precision", "bf16") == "");
  CHECK(set("precision", "fp32,bf61") ==
        "tally: error: --set precision=fp32,bf61: parameter 'precision' has to be one of fp32, "
        "bf16, not 'bf61'\nhint: did you mean 'bf16'?");
  CHECK(
      set("precision", "") ==
      "tally: error: --set precision=: parameter 'precision' has to be one of fp32, bf16, not ''");
  CHECK(set("batch", "1, $n, 1_000") == "");
  CHECK(set("batch", "4,0") ==
        "tally: error: --set batch=4,0: parameter 'batch' has to be >= 1, not '0'");
  CHECK(set("share", "1") == "");
  CHECK(set("share", "-1e-3") ==
        "tally: error: --set share=-1e-3: parameter 'share' has to be 0 .. 1, not '-1e-3'");

  // In the file: one message for each parameter.
  CHECK(Checked("name: b\nparameterset: {name: p, parameter: {name: x, allowed: \"> 0\", _: "
                "\"1,0,-1\"}}\n")
            .says("f.yaml:2:65: error: parameter 'x' has to be > 0, not '0'\n"));
  CHECK(
      Checked("name: b\nparameterset: {name: p, parameter: {name: x, allowed: \">= one\", _: 1}}\n")
          .says("error: allowed: '>= one' is not a condition on a number, as '>= 1' or '1 .. 8' "
                "is\n"));
}

TEST_CASE("parameters that refer to each other in a circle") {
  const std::string text =
      "name: b\n"
      "parameterset:\n"
      "  - {name: p, parameter: [{name: x, _: \"$y\"}, {name: y, _: \"${z}1\"}, {name: w, _: $x},\n"
      "     {name: PATH, _: \"$PATH:/more\"}, {name: money, _: \"$$money\"}]}\n"
      "  - {name: q, parameter: {name: z, mode: python, _: \"$x + 1\"}}\n";
  const Checked apart(text);
  CHECK(apart.messages() == "");  // no step brings them together
  const Checked together(text + "step: {name: s, use: [p, q], do: x}\n");
  CHECK(together.workflow);
  CHECK(together.messages() ==
        "f.yaml:3:40: warning: parameters refer to each other in a circle: x -> y -> z -> x\n"
        "      - {name: p, parameter: [{name: x, _: \"$y\"}, {name: y, _: \"${z}1\"}, {name: w, _: "
        "$x},\n"
        "                                           ^~~~\n"
        "hint: none of them has a value: their $names stay as they are\n"
        "f.yaml:3:60: note: 'y' is here\n"
        "      - {name: p, parameter: [{name: x, _: \"$y\"}, {name: y, _: \"${z}1\"}, {name: w, _: "
        "$x},\n"
        "                                                               ^~~~~~~\n"
        "f.yaml:5:53: note: 'z' is here\n"
        "      - {name: q, parameter: {name: z, mode: python, _: \"$x + 1\"}}\n"
        "                                                        ^~~~~~~~\n");
  // A file in Tally's own language does not get away with it.
  CHECK(!Checked(text + "step: {name: s, use: [p, q], timeout: 1s, do: x}\n").workflow);
  CheckOptions strict;
  strict.strict = true;
  CHECK(!Checked(text + "step: {name: s, use: [p, q], do: x}\n", strict).workflow);
}

TEST_CASE("zipped lists of unequal length, as far as the file says") {
  auto checked = [](const std::string& values) {
    return Checked(
        "name: b\nparameterset: {name: p, zip: [a, b, c], parameter: [{name: a, _: \"1,2\"}, "
        "{name: b, "
        "separator: \";\", _: \"1;2\"}, {name: c, " +
        values + "}]}\n");
  };
  CHECK(checked("_: \"5,6\"").messages() == "");
  CHECK(checked("_: \"$d\"").messages() == "");
  CHECK(checked("mode: python, _: \"1\"").messages() == "");
  CHECK(checked("_: \"5,6,7\"")
            .says("f.yaml:2:31: error: zipped parameters differ in their number of values: a has "
                  "2, b has 2, c "
                  "has 3\n"));
}

TEST_CASE("a python parameter that prints has no value") {
  const Checked checked(
      "name: b\nparameterset: {name: p, parameter: {name: x, mode: python, _: \"print('a')\"}}\n");
  CHECK(checked.workflow);
  CHECK(checked.says("the value of parameter 'x' is None: print() returns nothing"));
}

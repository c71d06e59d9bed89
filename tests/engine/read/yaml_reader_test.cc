#include <doctest/doctest.h>
#include <fmt/format.h>

#include "engine/read/document.h"

using namespace tally;

namespace {

struct Read {
  Sources sources;
  Diagnostics diagnostics;
  Document document;

  explicit Read(const std::string& text, const std::string& name = "f.yaml",
                const ReadOptions& options = {}) {
    document = read_document_text(name, text, options, sources, diagnostics);
  }
  std::string messages() const { return diagnostics.format(sources); }
  const Element& benchmark() const { return document.root.children.at(0); }
};

std::string xml(const std::string& text) {
  Read read(text);
  REQUIRE(read.messages() == "");
  std::string all = document_to_xml(read.document);
  return all.substr(all.find('\n') + 1);
}

}  // namespace

TEST_CASE("a mapping without benchmark is the benchmark, but for the file's own keys") {
  CHECK(xml("name: b\noutpath: o\ncheck_tags: a|b\nselection: {only: b}\nstep: {name: s, do: "
            "echo}\n") ==
        "<jube>\n"
        "  <check_tags>a|b</check_tags>\n"
        "  <selection>\n"
        "    <only>b</only>\n"
        "  </selection>\n"
        "  <benchmark name=\"b\" outpath=\"o\">\n"
        "    <step name=\"s\">\n"
        "      <do>echo</do>\n"
        "    </step>\n"
        "  </benchmark>\n"
        "</jube>\n");
}

TEST_CASE("with a key benchmark, sets beside it are the file's") {
  CHECK(xml("parameterset: {name: p}\nbenchmark: [{name: a}, {name: b}]\n") ==
        "<jube>\n"
        "  <parameterset name=\"p\"/>\n"
        "  <benchmark name=\"a\"/>\n"
        "  <benchmark name=\"b\"/>\n"
        "</jube>\n");
}

TEST_CASE("a list at the top is a list of benchmarks") {
  CHECK(xml("- {name: a}\n- name: b\n") ==
        "<jube>\n  <benchmark name=\"a\"/>\n  <benchmark name=\"b\"/>\n</jube>\n");
}

TEST_CASE("scalar, list, _ and a list under _ are spellings of elements") {
  CHECK(xml("name: b\nstep:\n  - name: s\n    use: [p, {from: f.xml, _: q}]\n    do:\n    - echo\n"
            "    - {stdout: o, _: [a, b]}\n    -\n") ==
        "<jube>\n  <benchmark name=\"b\">\n    <step name=\"s\">\n"
        "      <use>p</use>\n"
        "      <use from=\"f.xml\">q</use>\n"
        "      <do>echo</do>\n"
        "      <do stdout=\"o\">a</do>\n"
        "      <do stdout=\"o\">b</do>\n"
        "      <do/>\n"
        "    </step>\n  </benchmark>\n</jube>\n");
}

TEST_CASE("quoted and block scalars stay text, keys are typed too") {
  Read read(
      "name: b\nparameterset:\n  name: p\n  parameter:\n  - {name: off, _: '007'}\n"
      "  - name: x\n    _: |\n      l1\n      l2\n  - {name: y, true: 1, _: !!str 1_0}\n");
  CHECK(read.messages() == "");
  const auto& set = read.benchmark().children.at(0);
  CHECK(set.children[0].get("name") == "False");  // JUBE 2.7.1 calls it so as well
  CHECK(set.children[0].text.value == "007");
  CHECK(set.children[1].text.value == "l1\nl2\n");
  CHECK(set.children[2].get("True") == "1");
  CHECK(set.children[2].text.value == "1_0");
}

TEST_CASE("names may be given as a list where JUBE has commas") {
  Read read("name: b\nstep: {name: s, depend: [a, b], do: echo}\n");
  CHECK(read.messages() == "");
  CHECK(read.benchmark().children[0].get("depend") == "a,b");
}

TEST_CASE("<< merges, own keys win, the first of several wins") {
  Read read(
      "name: b\nx: &x {do: a, name: s}\ny: &y {do: b, suffix: t}\n"
      "step: {<<: [*x, *y], name: own}\n");
  CHECK(read.messages() == "");
  const Element& step = read.benchmark().children.back();
  CHECK(step.get("name") == "own");
  CHECK(step.get("suffix") == "t");
  REQUIRE(step.children.size() == 1);
  CHECK(step.children[0].text.value == "a");
}

TEST_CASE("marks name the file, the line and the column of keys and values") {
  Read read(
      "name: b\nstep:\n  - name: s\n    \"do\": echo\n    work_dir: \xC3\xA9 # x\n    suffix:\n");
  const Element& step = read.benchmark().children.at(0);
  CHECK(step.mark == Mark{0, 3, 5});
  CHECK(step.find("name")->value.mark == Mark{0, 3, 11});
  CHECK(step.children[0].mark == Mark{0, 4, 5});
  CHECK(step.children[0].text.mark == Mark{0, 4, 11});
  CHECK(step.find("work_dir")->value.mark == Mark{0, 5, 15});
  CHECK(step.find("suffix")->value.mark == Mark{0, 6, 5});  // an empty value has its key's place
}

TEST_CASE("a key given twice is an error at the second, with the first beside it") {
  CHECK(Read("name: b\nstep: 1\nname: c\n").messages() ==
        "f.yaml:3:1: error: key 'name' is given twice\n"
        "    name: c\n"
        "    ^~~~\n"
        "hint: leave one out; a list holds several: [a, b]\n"
        "f.yaml:1:1: note: the first one is here\n"
        "    name: b\n"
        "    ^~~~\n");
}

TEST_CASE("YAML runs no code") {
  CHECK(
      Read("name: !!python/object/apply:os.getcwd []\n").messages() ==
      "f.yaml:1:7: error: '!!python/object/apply:os.getcwd' would run Python code from this file\n"
      "    name: !!python/object/apply:os.getcwd []\n"
      "          ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
      "hint: Tally never does; write the value itself, or a parameter with mode: python\n"
      "f.yaml:1:7: error: 'name' of a benchmark takes one value, not a list\n"
      "    name: !!python/object/apply:os.getcwd []\n"
      "          ^~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~\n");
  CHECK(Read("name: !foo x\n").messages().find("unknown YAML tag '!foo'") != std::string::npos);
}

TEST_CASE("broken YAML is one message with its place") {
  CHECK(Read("name: b\nstep:\n  - do: echo val: $p\n").messages() ==
        "f.yaml:3:17: error: YAML syntax: illegal map value\n"
        "      - do: echo val: $p\n"
        "                    ^\n"
        "hint: a text with ': ' in it must be quoted; or a key in the line above lacks its ':'\n");
  CHECK(Read("a: *nix\n").messages().find("f.yaml:1:4: error: YAML syntax:") == 0);
}

TEST_CASE("a text that must be quoted, and brackets and quotes that are not closed") {
  struct Case {
    std::string text, message;
  };
  const std::string head = "name: b\nmetrics:\n";
  const Case cases[] = {
      {head + "  time: {_: ^\\s*time: $jube_pat_fp, unit: s}\n",
       "f.yaml:3:13: error: YAML syntax: a text with ': ' in it must be quoted\n"
       "      time: {_: ^\\s*time: $jube_pat_fp, unit: s}\n"
       "                ^~~~~~~~\n"
       "hint: put it in quotes: '^\\s*time: $jube_pat_fp'\n"},
      {head + "  time: {_: ^\\s*time = ([0-9.]+), unit: s}\n",
       "f.yaml:3:13: error: YAML syntax: a text with '[' in it must be quoted\n"
       "      time: {_: ^\\s*time = ([0-9.]+), unit: s}\n"
       "                ^~~~~~~~\n"
       "hint: put it in quotes: '^\\s*time = ([0-9.]+)'\n"},
      {head + "  bw: {_: ^(\\d+)\\s+[\\d.]+$, unit: s}\n",
       "f.yaml:3:11: error: YAML syntax: a text with '[' in it must be quoted\n"
       "      bw: {_: ^(\\d+)\\s+[\\d.]+$, unit: s}\n"
       "              ^~~~~~~~~\n"
       "hint: put it in quotes: '^(\\d+)\\s+[\\d.]+$'\n"},
      {"name: b\nchart: {title: Bandwidth: all, y: n}\n",
       "f.yaml:2:16: error: YAML syntax: a text with ': ' in it must be quoted\n"
       "    chart: {title: Bandwidth: all, y: n}\n"
       "                   ^~~~~~~~~\n"
       "hint: put it in quotes: 'Bandwidth: all'\n"},
      {head + "  time: {_: [0-9]+ s, unit: s}\n",
       "f.yaml:3:13: error: YAML syntax: a text that begins with '[' must be quoted\n"
       "      time: {_: [0-9]+ s, unit: s}\n"
       "                ^\n"
       "hint: put it in quotes: '[0-9]+ s'\n"},
      {head + "  time: {_: 'time = $jube_pat_fp, unit: s, better: lower}\n",
       "f.yaml:3:13: error: YAML syntax: this quote is not closed\n"
       "      time: {_: 'time = $jube_pat_fp, unit: s, better: lower}\n"
       "                ^\n"
       "hint: close it at the end of its text: '\n"},
      {head + "  time: {_: 'time = $jube_pat_fp, unit: s}\n  bw: {_: 'bw = (.)', unit: s}\n",
       "f.yaml:3:13: error: YAML syntax: this quote is not closed in its line\n"
       "      time: {_: 'time = $jube_pat_fp, unit: s}\n"
       "                ^\n"
       "hint: the next ' is in line 4, which begins another text\n"},
      {head + "  time: 'it's = (.)'\n",
       "f.yaml:3:9: error: YAML syntax: the text goes on behind its closing quote\n"
       "      time: 'it's = (.)'\n"
       "            ^~~~\n"
       "hint: a ' within '...' is written twice: ''; or quote all of the text\n"},
      {head + "  time: {_: 'a (.)', unit: s\n  bw: {_: 'b (.)', unit: s}\n",
       "f.yaml:3:9: error: YAML syntax: this '{' is not closed before line 4\n"
       "      time: {_: 'a (.)', unit: s\n"
       "            ^\n"
       "hint: close it with '}', or put a ',' between its entries\n"},
      {"name: b\nparameters: {n: [1, 2}\nrun: echo\n",
       "f.yaml:2:17: error: YAML syntax: this '[' is not closed\n"
       "    parameters: {n: [1, 2}\n"
       "                    ^\n"
       "hint: a '}' comes first; a text with brackets in it must be quoted\n"},
      {"step: [a, b\n",
       "f.yaml:1:7: error: YAML syntax: this '[' is not closed\n"
       "    step: [a, b\n"
       "          ^\n"
       "hint: close it with ']'\n"},
      {head + "  bw: \"^(\\d+)$\"\n",
       "f.yaml:3:12: error: YAML syntax: unknown escape character: d\n"
       "      bw: \"^(\\d+)$\"\n"
       "               ^~~\n"
       "hint: within \"...\" a backslash begins an escape: put the text in single quotes, "
       "'...'\n"},
  };
  for (const Case& one : cases) {
    INFO(one.text);
    CHECK(Read(one.text).messages() == one.message);
  }
}

TEST_CASE("a line that is indented as none of its neighbours") {
  CHECK(Read("name: b\nparameters:\n  m: 1\n   n: [1, 2]\n").messages() ==
        "f.yaml:4:4: error: YAML syntax: the line is indented deeper than the one above, which has "
        "its value already\n"
        "       n: [1, 2]\n"
        "       ^\n"
        "hint: begin it in column 3, as the line above\n");
  CHECK(Read("name: b\nparameters:\n  m: [1, 2]\n   n: [1, 2]\n").messages() ==
        "f.yaml:4:4: error: YAML syntax: the line is indented deeper than the one above, which has "
        "its value already\n"
        "       n: [1, 2]\n"
        "       ^\n"
        "hint: begin it in column 3, as the line above\n");
  CHECK(Read("name: b\nparameters:\n   m: 1\n  n: [1, 2]\n").messages() ==
        "f.yaml:4:3: error: YAML syntax: the line is indented neither like its neighbours nor "
        "deeper\n"
        "      n: [1, 2]\n"
        "      ^\n"
        "hint: begin it in column 4, as the line above\n");
  CHECK(Read("name: b\nrun: echo\nrepeat:3\nmetrics: {t: a}\n").messages() ==
        "f.yaml:3:7: error: YAML syntax: a blank is missing behind this ':'\n"
        "    repeat:3\n"
        "          ^~\n"
        "hint: write 'repeat: 3'\n");
}

TEST_CASE("a quote that is not closed does not swallow the rest of the file") {
  const std::string rest = "analyser: {name: an, use: pt}\n";
  CHECK(Read("name: b\nstep:\n  - name: s\n    do: \"echo hello\n" + rest).messages() ==
        "f.yaml:4:9: error: the quote that opens here is never closed\n"
        "        do: \"echo hello\n"
        "            ^\n"
        "hint: all of the file after it would be this text\n");
  for (const char* open : {"'echo", "'it''s", "&a 'x", "\"a\\\"", "!!str \"x", "\xC3\xA9: 'x"}) {
    INFO(open);
    CHECK(Read("name: b\nstep:\n  - name: s\n    do: " + std::string(open) + "\n" + rest)
              .messages()
              .find(": error: ") != std::string::npos);
  }
  for (const char* closed : {"'echo'", "'it''s'", "&a 'x'", "\"a\\\"\"", "\"\\\\\"", "it's",
                             "\"'\"", "!!str 'x'", "\"two\n      lines\"", "|\n      \"", "''"}) {
    INFO(closed);
    CHECK(Read("name: b\nstep:\n  - name: s\n    do: " + std::string(closed) + "\n" + rest)
              .messages()
              .empty());
  }
}

TEST_CASE("texts that are no benchmark file get one clear error") {
  CHECK(Read("").messages() ==
        "tally: error: 'f.yaml' is empty\n"
        "hint: a benchmark file needs at least a name and a step\n");
  CHECK(Read("just text\n").messages().find("f.yaml:1:1: error: a benchmark file is a mapping") ==
        0);
  CHECK(Read("name: \"a\xFF"
             "b\"\n")
            .messages()
            .find("f.yaml:1:9: error: byte 0xFF is not UTF-8") == 0);
  CHECK(Read("name: a\x01\n").messages().find("f.yaml:1:8: error: control character 0x01") == 0);
  CHECK(Read("a: 1\n---\nb: 2\n").messages().find("f.yaml:3:1: error: a second YAML document") ==
        0);
  CHECK(Read("? [a]\n: 1\n").messages().find("cannot be a key") != std::string::npos);
  CHECK(Read("a: &x [*x]\n").messages().find("it would never end") != std::string::npos);
}

TEST_CASE("a value of the wrong shape is an error at its place") {
  CHECK(Read("name: [a]\n").messages() ==
        "f.yaml:1:7: error: 'name' of a benchmark takes one value, not a list\n"
        "    name: [a]\n"
        "          ^\n");
  CHECK(Read("name: b\nstep: {name: s, do: {_: {a: b}}}\n")
            .messages()
            .find("'_' is the text of an element") != std::string::npos);
  CHECK(Read("name: b\nstep: [[[{name: s}]]]\n").messages().find("nested too deeply") !=
        std::string::npos);
}

// Thirty levels: whoever walks every path through the aliases never comes to an end.
std::string multiplying_aliases() {
  std::string text = "name: b\na: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 30; ++i) {
    text += fmt::format("a{0}: &a{0} {{_: 1, use: [", i);
    for (int j = 0; j < 10; ++j) text += fmt::format("*a{}, ", i - 1);
    text += "]}\n";
  }
  return text;
}

TEST_CASE("aliases that multiply end in an error, not in a full memory") {
  CHECK(Read(multiplying_aliases()).messages().find("more than a million elements") !=
        std::string::npos);
  CHECK(Read(std::string(100000, '[')).diagnostics.has_errors());
  // yaml-cpp takes seconds for many, and its own words for a depth of 500 are "bad file".
  std::string deep = "name: b\nstep: ";
  for (int i = 0; i < 50000; ++i) deep += "{a: ";
  CHECK(Read(deep + std::string(50000, '}')).messages().find("brackets are open here") !=
        std::string::npos);
  deep = "name: b\nstep:\n";
  for (int i = 1; i < 300; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  CHECK(Read(deep + std::string(300, ' ') + "b\n").messages().find("nested more than 200 deep") !=
        std::string::npos);
}

TEST_CASE("aliases that multiply in an included file end in an error, too") {
  ReadOptions options;
  options.stored["x.yaml"] = "name: b\nstep: !include many.yaml\n";
  options.stored["many.yaml"] = multiplying_aliases();
  Sources sources;
  Diagnostics diagnostics;
  read_document("x.yaml", options, sources, diagnostics);
  CHECK(diagnostics.format(sources).find("more than a million elements") != std::string::npos);
}

TEST_CASE("a byte order mark and Windows line ends are no matter") {
  Read read("\xEF\xBB\xBFname: b\r\nstep:\r\n  name: s\r\n");
  // read_document_text takes UTF-8; the mark is removed where files are loaded.
  ReadOptions options;
  options.stored["x.yaml"] = "\xEF\xBB\xBFname: b\r\nstep:\r\n  name: s\r\n";
  Sources sources;
  Diagnostics diagnostics;
  Document document = read_document("x.yaml", options, sources, diagnostics);
  CHECK(diagnostics.format(sources) == "");
  CHECK(document.root.children.at(0).get("name") == "b");
  CHECK(document.root.children.at(0).children.at(0).get("name") == "s");
}

TEST_CASE("files that cannot be read") {
  Sources sources;
  Diagnostics diagnostics;
  read_document("/nonexistent/x.yaml", {}, sources, diagnostics);
  read_document("/", {}, sources, diagnostics);
  CHECK(diagnostics.format(sources) ==
        "tally: error: Benchmark configuration file not found: \"/nonexistent/x.yaml\"\n"
        "tally: error: '/' is a directory, not a benchmark file\n");
}

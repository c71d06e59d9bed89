#include <doctest/doctest.h>
#include <fmt/format.h>

#include "engine/read/document.h"
#include "engine/read/include_expression.h"
#include "engine/read/input_files.h"

using namespace tally;

namespace {

// Files in memory, as a run stores them.
struct Files {
  ReadOptions options;
  Sources sources;
  Diagnostics diagnostics;

  explicit Files(std::map<std::string, std::string> files) { options.stored = std::move(files); }
  std::string read(const std::string& path) {
    Document document = read_document(path, options, sources, diagnostics);
    if (diagnostics.has_errors()) return diagnostics.format(sources);
    std::string all = document_to_xml(document);
    return all.substr(all.find('\n') + 1);
  }
};

std::string step(const std::string& inner) {
  return "<jube>\n  <benchmark name=\"b\">\n    <step name=\"s\">\n" + inner +
         "    </step>\n  </benchmark>\n</jube>\n";
}

}  // namespace

TEST_CASE("!include splices a file, or what its subscripts and expression take from it") {
  const std::string data =
      "ops: [echo a, echo b]\nsets:\n  - {name: p, n: 1}\n  - {name: q, n: 2}\n";
  auto with = [&](const std::string& include) {
    return Files({{"d/m.yaml", "name: b\nstep:\n  name: s\n  do: " + include + "\n"},
                  {"d/data.yaml", data}})
        .read("d/m.yaml");
  };
  CHECK(with("!include data.yaml:[\"ops\"]") ==
        step("      <do>echo a</do>\n      <do>echo b</do>\n"));
  CHECK(with("!include data.yaml:[\"ops\"][1]") == step("      <do>echo b</do>\n"));
  CHECK(with("!include data.yaml:['ops'][-1]") == step("      <do>echo b</do>\n"));
  CHECK(with("\n    - first\n    - !include data.yaml:[\"ops\"]") ==
        step("      <do>first</do>\n      <do>echo a</do>\n      <do>echo b</do>\n"));
  CHECK(with("[!include 'data.yaml:[\"ops\"][0]', x]") ==
        step("      <do>echo a</do>\n      <do>x</do>\n"));
  CHECK(with("!include data.yaml:[\"sets\"]:[i[\"name\"] for i in _ if i[\"n\"] == 2]") ==
        step("      <do>q</do>\n"));
  CHECK(with("!include data.yaml::_[\"ops\"] + [\"c\"]") ==
        step("      <do>echo a</do>\n      <do>echo b</do>\n      <do>c</do>\n"));
  CHECK(with("!include data.yaml::_.get(\"nix\", \"otherwise\")") ==
        step("      <do>otherwise</do>\n"));
}

// What JUBE 2.5.1 makes of them.
TEST_CASE("!include's expressions compute as Python does, and nothing is executed") {
  auto value = [&](const std::string& expression) {
    const std::string text =
        Files({{"m.yaml", "name: b\nstep: {name: s, do: [!include 'd.yaml:" + expression + "']}\n"},
               {"d.yaml", "nums: [10, 9, 1.5, 3]\nnames: [b, a]\n"}})
            .read("m.yaml");
    const size_t at = text.find("<do>");
    return at == std::string::npos ? text : text.substr(at + 4, text.find("</do>") - at - 4);
  };
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"\",\".join(map(str,_))", "10,9,1.5,3"},
      {"\",\".join(map(str,sorted(_)))", "1.5,3,9,10"},
      {"\",\".join(map(str,map(int,_)))", "10,9,1,3"},
      {"\",\".join([str(2**i) for i in range(1,10,3)])", "2,16,128"},
      {"\",\".join(str(i) for i in _ if i > 3)", "10,9"},
      {"len(_)*2+1", "9"},
      {"_[0]/4", "2.5"},
      {"_[0]//4", "2"},
      {"7//-2", "-4"},
      {"-7%3", "2"},
      {"2**_[1]", "512"},
      {"_[0]*1.5", "15.0"},
      {"1e3", "1000.0"},
      {"-_[0]", "-10"},
      {"_[-1]-10", "-7"},
      {"str(_)", "[10, 9, 1.5, 3]"},
      {"float(\"3\")", "3.0"},
      {"int(_[2])", "1"},
      {"max(_)", "10"},
      {"sum(_)", "23.5"},
      {"\"a\"*3", "aaa"},
      {"_[0]<9", "False"},
      {"\"n\"+str(10 if _[0] > 3 else 4)", "n10"}};
  for (const auto& [expression, expected] : cases) {
    CAPTURE(expression);
    CHECK(value("[\"nums\"]:" + expression) == expected);
  }
  CHECK(value("[\"names\"]:\"-\".join(sorted(_)*2)") == "a-b-a-b");
  for (const char* wrong : {"1/0", "int(\"x\")", "_+1", "range(1e9)", "10**30", "eval(\"1\")"}) {
    CAPTURE(wrong);
    CHECK(value(std::string("[\"nums\"]:") + wrong).find("cannot take") != std::string::npos);
  }
}

TEST_CASE("what an !include cannot do is said at its place") {
  auto with = [&](const std::string& include) {
    return Files({{"m.yaml", "name: b\nstep: {name: s}\ndo: " + include + "\n"},
                  {"data.yaml", "ops: [echo a]\n"}})
        .read("m.yaml");
  };
  CHECK(with("!include nix.yaml") ==
        "m.yaml:3:5: error: included file 'nix.yaml' not found\n"
        "    do: !include nix.yaml\n"
        "        ^~~~~~~~\n"
        "hint: searched in: .\n");
  CHECK(
      with("!include data.yaml:[\"opps\"]")
          .find(
              "cannot take [\"opps\"] from 'data.yaml': there is no key 'opps' in it; did you mean "
              "'ops'?") != std::string::npos);
  CHECK(with("!include data.yaml:[\"ops\"][7]").find("index 7 is outside its 1 items") !=
        std::string::npos);
  CHECK(with("!include data.yaml::__import__(\"os\").getcwd()")
            .find("is beyond what Tally reads in an !include") != std::string::npos);
  CHECK(with("!include data.yaml::open(\"x\")").find("beyond what Tally reads") !=
        std::string::npos);
  CHECK(with("!include a:b:c:d").find("no further colon") != std::string::npos);
  CHECK(with("!include data.yaml::" + std::string(5000, '(')).find("nests too deeply") !=
        std::string::npos);
}

TEST_CASE("files that include each other are noticed") {
  std::string message =
      Files({{"a.yaml", "name: b\nstep: !include b.yaml\n"}, {"b.yaml", "x: !include a.yaml\n"}})
          .read("a.yaml");
  CHECK(message.find("b.yaml:1:4: error: 'a.yaml' includes itself (a.yaml -> b.yaml -> a.yaml)") ==
        0);
}

namespace {

// The parameters of a.xml, whose set includes all children of <x> in b.xml; or the messages.
std::string parameters_with(const std::string& a, const std::string& b, const std::string& c = "") {
  const std::string text = Files({{"a.xml", "<jube>" + a +
                                                "<benchmark name='b'><parameterset name='p'>"
                                                "<parameter name='own'>o</parameter><include "
                                                "from='b.xml' path='x/*'/></parameterset>"
                                                "</benchmark></jube>"},
                                  {"b.xml", "<jube>" + b + "</jube>"},
                                  {"c.xml", "<jube>" + c + "</jube>"}})
                               .read("a.xml");
  std::string found;
  size_t at = text.find("<parameterset");
  while (at != std::string::npos &&
         (at = text.find("<parameter name=\"", at)) != std::string::npos) {
    const size_t name = at + 17, end = text.find("</parameter>", at);
    found += text.substr(name, end - name) + " ";
    at = end;
  }
  return found.empty() ? text : found;
}

}  // namespace

// JUBE 2.5.1 takes the named part of each.
TEST_CASE("an XML file may include other parts of itself, directly and through others") {
  const std::string p = "<parameter name='q'>1</parameter>";
  const std::string expected = "own\">o q\">1 ";
  CHECK(parameters_with("", "<x><include from='b.xml' path='y/*'/></x><y>" + p + "</y>") ==
        expected);
  CHECK(parameters_with("",
                        "<x><include from='b.xml' path='y/include'/></x><y><include "
                        "from='b.xml' path='z/*'/></y><z>" +
                            p + "</z>") == expected);
  CHECK(parameters_with("", "<x><include from='c.xml' path='y/*'/></x><z>" + p + "</z>",
                        "<y><include from='b.xml' path='z/*'/></y>") == expected);
  CHECK(parameters_with("<z>" + p + "</z>", "<x><include from='a.xml' path='z/*'/></x>") ==
        expected);
  CHECK(parameters_with("",
                        "<x><include from='a.xml' path=\"benchmark/parameterset/parameter"
                        "[@name='own']\"/></x>") == "own\">o own\">o ");
  CHECK(parameters_with("", "<x><include from='c.xml'/></x><z>" + p + "</z>",
                        "<include from='b.xml' path='z/*'/>") == expected);
  CHECK(parameters_with("",
                        "<x><include from='c.xml' path='y/*'/><include from='c.xml' "
                        "path='y/*'/></x>",
                        "<y>" + p + "</y>") == expected + "q\">1 ");
}

TEST_CASE("a part of an XML file that includes itself is one error") {
  CHECK(parameters_with("", "<x><include from='b.xml' path='x/*'/></x>")
            .find("b.xml:1:11: error: 'b.xml:x/*' includes itself (a.xml -> b.xml:x/* -> "
                  "b.xml:x/*)\n") == 0);
  for (const auto& [b, c] : std::vector<std::pair<std::string, std::string>>{
           {"<x><include from='c.xml' path='y'/></x>", "<y><include from='b.xml' path='x'/></y>"},
           {"<x><include from='b.xml' path='./y/*'/></x><y><include from='b.xml' "
            "path='x/*'/></y>",
            ""},
           {"<x><include from='c.xml'/></x>", "<y><include from='c.xml'/></y>"},
           {"<x><include from='a.xml'/></x>", ""}}) {
    const std::string message = parameters_with("", b, c);
    CAPTURE(message);
    CHECK(message.find("includes itself") != std::string::npos);
    CHECK(message.find("error:", message.find("error:") + 1) == std::string::npos);
  }
  // Files that multiply themselves end, too.
  std::string doubling;
  for (int i = 0; i < 40; ++i) {
    const std::string next = fmt::format("<include from='b.xml' path='y{}/*'/>", i + 1);
    doubling +=
        i == 0 ? "<x>" + next + next + "</x>" : fmt::format("<y{}>{}{}</y{}>", i, next, next, i);
  }
  const std::string message =
      parameters_with("", doubling +
                              "<y40><include from='b.xml' path='y41/include'/></y40><y41>"
                              "<parameter name='q'>1</parameter></y41>");
  CHECK(message.find("error:") != std::string::npos);
}

TEST_CASE("a YAML file may include other parts of itself, directly and through others") {
  auto with = [](const std::string& b, const std::string& c = "",
                 const std::string& include = "b.yaml:[\"x\"]") {
    const std::string text =
        Files({{"a.yaml", "name: b\nlib: {deep: {v: 1}}\nstep: {name: s, do: [!include '" +
                              include + "']}\n"},
               {"b.yaml", b},
               {"c.yaml", c}})
            .read("a.yaml");
    const size_t at = text.find("<do>");
    return at == std::string::npos ? text : text.substr(at + 4, text.find("</do>") - at - 4);
  };
  CHECK(with("", "", "a.yaml:[\"lib\"][\"deep\"][\"v\"]") == "1");
  CHECK(with("x: !include 'a.yaml:[\"lib\"][\"deep\"][\"v\"]'\n") == "1");
  CHECK(with("x: !include 'b.yaml:[\"y\"]'\ny: 1\n") == "1");
  CHECK(with("x: !include 'b.yaml:[\"y\"]'\ny: !include 'b.yaml:[\"z\"]:_+1'\nz: 0\n") == "1");
  CHECK(with("x: !include 'c.yaml:[\"y\"]'\nz: 1\n",
             "y: !include 'b.yaml:[\"z\"]'\nq: !include 'b.yaml:[\"x\"]'\n") == "1");
  CHECK(with("x: 1\ny: !include b.yaml\nz: !include nowhere.yaml\n") == "1");
  CHECK(with("x: {p: 1, q: !include 'b.yaml:[\"x\"][\"p\"]'}\n", "", "b.yaml:[\"x\"][\"q\"]") ==
        "1");
  CHECK(with("x: [1, !include 'b.yaml:[\"x\"][0]']\n", "", "b.yaml:[\"x\"]:_[1]") == "1");
  CHECK(with("l: [2, 3]\nx: !include 'b.yaml:[\"l\"]:\",\".join(map(str, _))'\n") == "2,3");
  CHECK(with("x: !include 'c.yaml::_.get(\"y\", 5)'\nz: 1\n", "y: !include 'b.yaml:[\"z\"]'\n") ==
        "1");
}

TEST_CASE("a part of a YAML file that includes itself is one error") {
  auto with = [](const std::string& b, const std::string& c = "") {
    return Files({{"a.yaml", "name: b\nstep: {name: s, do: [!include 'b.yaml:[\"x\"]']}\n"},
                  {"b.yaml", b},
                  {"c.yaml", c}})
        .read("a.yaml");
  };
  CHECK(
      with("x: !include 'b.yaml:[\"x\"]'\n")
          .find("b.yaml:1:4: error: 'b.yaml:[\"x\"]' includes itself (a.yaml -> b.yaml:[\"x\"] -> "
                "b.yaml:[\"x\"])\n") == 0);
  for (const auto& [b, c] : std::vector<std::pair<std::string, std::string>>{
           {"x: {y: !include 'b.yaml:[\"x\"]'}\n", ""},
           {"x: !include 'b.yaml:[''x'']'\n", ""},
           {"x: !include 'c.yaml:[\"y\"]'\n", "y: {z: !include 'b.yaml:[\"x\"]'}\n"},
           {"x: !include 'c.yaml'\n", "y: {z: !include 'b.yaml'}\n"},
           {"x: !include 'a.yaml'\n", ""},
           {"x: !include 'b.yaml:[\"y\"][\"z\"]'\ny: !include 'b.yaml:[\"x\"][\"z\"]'\n", ""}}) {
    const std::string message = with(b, c);
    CAPTURE(message);
    CHECK(message.find("includes itself") != std::string::npos);
    CHECK(message.find("error:", message.find("error:") + 1) == std::string::npos);
  }
}

TEST_CASE("marks of included parts name the included file") {
  Files files({{"m.yaml", "name: b\nstep: !include d.yaml\n"}, {"d.yaml", "name: s\ndo: x\n"}});
  Document document = read_document("m.yaml", files.options, files.sources, files.diagnostics);
  const Element& step = document.root.children.at(0).children.at(0);
  CHECK(files.sources.name(step.children.at(0).mark.file) == "d.yaml");
  CHECK(step.children.at(0).mark.line == 2);
}

TEST_CASE(
    "includes are searched in order: given path, the file's own include-path, its directory") {
  auto read = [](std::map<std::string, std::string> files, std::vector<std::string> given) {
    files["d/m.yaml"] =
        "include-path: {path: [inc]}\nname: b\nstep: {name: s, do: !include x.yaml}\n";
    Files all(std::move(files));
    all.options.include_path = std::move(given);
    all.options.builtin_path = {"builtin"};
    std::string text = all.read("d/m.yaml");
    size_t at = text.find("<do>");
    return at == std::string::npos ? text : text.substr(at + 4, text.find("</do>") - at - 4);
  };
  std::map<std::string, std::string> files = {{"g/x.yaml", "given"},
                                              {"d/inc/x.yaml", "own"},
                                              {"d/x.yaml", "beside"},
                                              {"builtin/x.yaml", "built in"}};
  CHECK(read(files, {"g"}) == "given");
  CHECK(read(files, {}) == "own");
  files.erase("d/inc/x.yaml");
  CHECK(read(files, {}) == "beside");
  files.erase("d/x.yaml");
  CHECK(read(files, {}) == "built in");
}

TEST_CASE("include paths may come from another file") {
  Files yaml({{"m.yaml",
               "include-path: !include paths.yaml:[\"dirs\"]\nname: b\n"
               "step: {name: s, do: !include x.yaml}\n"},
              {"paths.yaml", "dirs: {path: [nix, far]}\n"},
              {"far/x.yaml", "echo far\n"}});
  CHECK(yaml.read("m.yaml").find("<do>echo far</do>") != std::string::npos);
  Files xml({{"m.xml",
              "<jube><include-path><include from='paths.xml' path='include-path/path'/>"
              "</include-path><include from='x.xml'/></jube>"},
             {"paths.xml", "<jube><include-path><path>far</path></include-path></jube>"},
             {"far/x.xml", "<jube><parameterset name='X'/></jube>"}});
  CHECK(xml.read("m.xml").find("<parameterset name=\"X\"/>") != std::string::npos);
}

TEST_CASE("analyzer is analyser") {
  Files yaml(std::map<std::string, std::string>{
      {"m.yaml", "name: b\nanalyzer: {name: a, analyse: {step: s}}\n"}});
  CHECK(yaml.read("m.yaml").find("<analyser name=\"a\">") != std::string::npos);
  Files xml(std::map<std::string, std::string>{
      {"m.xml", "<jube><benchmark name='b'><analyzer name='a'/></benchmark></jube>"}});
  CHECK(xml.read("m.xml").find("<analyser name=\"a\"/>") != std::string::npos);
}

TEST_CASE("paths") {
  CHECK(directory_of("a/b.yaml") == "a");
  CHECK(directory_of("b.yaml") == ".");
  CHECK(directory_of("/b.yaml") == "/");
  CHECK(join_path("a", "b") == "a/b");
  CHECK(join_path(".", "b") == "b");
  CHECK(join_path("a", "/b") == "/b");
}

TEST_CASE("find_file: a run's own template comes before this machine's, wherever it lay") {
  ReadOptions options;
  options.stored = {{"/there/templates/local/platform.yaml", "a"}, {"/there/b.yaml", "b"}};
  options.builtin_path = {TALLY_SOURCE_DIR "/templates"};
  CHECK(find_file("local/platform.yaml", {}, options) == "/there/templates/local/platform.yaml");
  CHECK(find_file("b.yaml", {"/there"}, options) == "/there/b.yaml");
  CHECK(find_file("platform.yaml", {}, options) == "/there/templates/local/platform.yaml");
  CHECK(find_file("al/platform.yaml", {}, options).empty());
  options.stored.clear();
  CHECK(find_file("local/platform.yaml", {}, options) == TALLY_SOURCE_DIR
        "/templates/local/platform.yaml");
}

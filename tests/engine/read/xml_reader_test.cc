#include <doctest/doctest.h>

#include "engine/read/document.h"

using namespace tally;

namespace {

struct Read {
  ReadOptions options;
  Sources sources;
  Diagnostics diagnostics;
  Document document;

  explicit Read(std::map<std::string, std::string> files,
                std::optional<std::vector<std::string>> tags = std::nullopt) {
    options.stored = std::move(files);
    options.tags = std::move(tags);
    document = read_document("m.xml", options, sources, diagnostics);
  }
  explicit Read(const std::string& text)
      : Read(std::map<std::string, std::string>{{"m.xml", text}}) {}
  std::string messages() const { return diagnostics.format(sources); }
  std::string xml() const {
    if (diagnostics.has_errors()) return messages();
    std::string all = document_to_xml(document);
    return all.substr(all.find('\n') + 1);
  }
};

}  // namespace

TEST_CASE("elements, attributes, entities, CDATA and comments") {
  Read read(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<jube>\n  <benchmark name=\"b\" outpath='o'>\n"
      "    <!-- a comment --><step name=\"a&lt;b\">\n"
      "      <do>echo <!-- dropped -->x &amp;&amp; y <![CDATA[<&>]]> &#65;&#x42;</do>\n"
      "    </step>\n  </benchmark>\n</jube>\n");
  CHECK(read.messages() == "");
  const Element& step = read.document.root.children.at(0).children.at(0);
  CHECK(step.get("name") == "a<b");
  CHECK(step.children.at(0).text.value == "echo x && y <&> AB");
  CHECK(read.document.is_xml);
}

TEST_CASE("marks of elements, attributes, values and texts") {
  Read read(
      "<jube>\n <benchmark name=\"b\"\n\toutpath = 'o'>\n  <step>\n   echo\n  "
      "</step></benchmark></jube>");
  const Element& benchmark = read.document.root.children.at(0);
  CHECK(benchmark.mark == Mark{0, 2, 3});
  CHECK(benchmark.find("name")->name.mark == Mark{0, 2, 13});
  CHECK(benchmark.find("name")->value.mark == Mark{0, 2, 19});
  CHECK(benchmark.find("outpath")->name.mark == Mark{0, 3, 2});
  CHECK(benchmark.find("outpath")->value.mark == Mark{0, 3, 13});
  CHECK(benchmark.children.at(0).text.mark == Mark{0, 5, 4});
}

TEST_CASE("broken XML is an error with its place") {
  CHECK(Read("<jube><do>a && b</do></jube>").messages() ==
        "m.xml:1:13: error: '&' starts no entity that XML knows\n"
        "    <jube><do>a && b</do></jube>\n"
        "                ^~\n"
        "hint: write '&amp;' for an ampersand\n");
  CHECK(Read("<jube a=\"1\" a=\"2\"/>")
            .messages()
            .find("m.xml:1:13: error: attribute 'a' of <jube> is given twice") == 0);
  CHECK(Read("<benchmark/>").messages().find("outermost element is <benchmark>, not <jube>") !=
        std::string::npos);
  CHECK(Read("<jube/><jube/>").messages().find("a second outermost element") != std::string::npos);
  CHECK(Read("<jube>\xFF</jube>").messages().find("m.xml:1:7: error: byte 0xFF") == 0);
  std::string deep = "<jube>";
  for (int i = 0; i < 100000; ++i) deep += "<a>";
  for (int i = 0; i < 100000; ++i) deep += "</a>";
  CHECK(Read(deep + "</jube>").messages().find("nested more than 200 deep") != std::string::npos);
}

TEST_CASE(
    "the outermost element may have any name, also in a file that is included") {  // JUBE 2.5.1
  const Read read({{"m.xml", "<suite><include from=\"s.xml\"/><benchmark name=\"b\"/></suite>"},
                   {"s.xml", "<sets><fileset name=\"f\"/><fileset name=\"g\"/></sets>"}});
  CHECK(read.xml() ==
        "<jube>\n  <fileset name=\"f\"/>\n  <fileset name=\"g\"/>\n  <benchmark name=\"b\"/>\n"
        "</jube>\n");
}

TEST_CASE("entities of the DOCTYPE: their text, wherever they are used") {
  const Read read(
      "<!DOCTYPE jube SYSTEM \"jube.dtd\" [ <!-- <!ENTITY n \"no\"> -->\n"
      " <!ELEMENT jube ANY><!ATTLIST do x CDATA \"a>b\">\n"
      " <!ENTITY % part 'unused'> <!ENTITY n \"7\"><!ENTITY n \"8\">\n"
      " <!ENTITY q 'a\"b&amp;&n;'> <!ENTITY tag \"&#60;do>two&#x3c;/do>\"> <?x y?> ]>\n"
      "<jube><step name=\"&q;\" x='1'><do>&n; &amp;n; <![CDATA[&n;]]></do>&tag;</step></jube>");
  CHECK(read.xml() ==
        "<jube>\n  <step name=\"a&quot;b&amp;7\" x=\"1\">\n    <do>7 &amp;n; &amp;n;</do>\n"
        "    <do>two</do>\n  </step>\n</jube>\n");
  const Element& step = read.document.root.children.at(0);
  CHECK(step.find("x")->value.mark == Mark{0, 5, 27});  // behind an entity
  CHECK(step.children.at(1).mark == Mark{0, 5, 66});    // of an entity: its reference
}

TEST_CASE("entities that cannot be replaced are one error each") {
  const auto said = [](const std::string& declared, const std::string& used) {
    const Read read("<!DOCTYPE jube [" + declared + "]>\n<jube><do>" + used + "</do></jube>");
    CHECK(read.diagnostics.all().size() == 1);
    return read.messages().substr(0, read.messages().find('\n'));
  };
  CHECK(said("<!ENTITY a SYSTEM \"/etc/passwd\">", "&a;") ==
        "m.xml:2:11: error: entity 'a' is in another file, which is not read");
  CHECK(said("<!ENTITY a \"&b;\"><!ENTITY b \"&a;\">", "&a;") ==
        "m.xml:2:11: error: entity 'a' contains itself");
  CHECK(said("<!ENTITY a \"x\">", "&b;") ==
        "m.xml:2:11: error: '&' starts no entity that XML knows");
  for (const char* first : {"laughs ", ""}) {  // text without bound, and work without bound
    std::string laughs = "<!ENTITY a0 \"" + std::string(first) + "\">";
    for (int i = 1; i < 15; ++i) {
      laughs += "<!ENTITY a" + std::to_string(i) + " \"";
      for (int j = 0; j < 10; ++j) laughs += "&a" + std::to_string(i - 1) + ";";
      laughs += "\">";
    }
    CHECK(said(laughs, "&a14;").find("m.xml:2:11: error: entities multiply themselves: ") == 0);
  }
  std::string chain = "<!ENTITY a0 \"x\">";
  for (int i = 1; i < 50; ++i)
    chain += "<!ENTITY a" + std::to_string(i) + " \"&a" + std::to_string(i - 1) + ";\">";
  CHECK(said(chain, "&a49;") == "m.xml:2:11: error: entities are nested more than 20 deep");
}

TEST_CASE("tags that do not match are told with both places") {
  CHECK(Read("<jube>\n  <benchmark>\n</jube>\n").messages() ==
        "m.xml:3:2: error: </jube> does not close <benchmark>\n"
        "    </jube>\n"
        "     ^~~~~\n"
        "hint: put '</benchmark>' before it\n"
        "m.xml:2:4: note: <benchmark> is opened here\n"
        "      <benchmark>\n"
        "       ^~~~~~~~~\n");
  const auto first = [](const std::string& text) {
    const std::string all = Read(text).messages();
    const size_t hint = all.find("hint: ");
    return all.substr(0, all.find('\n')) +
           (hint == std::string::npos ? "" : all.substr(hint - 1, all.find('\n', hint) - hint + 1));
  };
  // What looks like a tag within a value, a comment or CDATA is none.
  CHECK(first("<?xml version=\"1.0\"?><!DOCTYPE jube><jube><!-- <a> --><step a='>' b=\"<b>\">"
              "<![CDATA[<c>]]><do/></stop></jube>") ==
        "m.xml:1:96: error: </stop> does not close <step>\nhint: write '</step>'");
  CHECK(first("<jube>\n <step>\n  <do>x</do>\n") ==
        "m.xml:2:3: error: <step> is not closed: the file ends\n"
        "hint: put '</step>' where it is to end");
  CHECK(first("<jube></ jube>") ==
        "m.xml:1:8: error: </> does not close <jube>\nhint: write '</jube>'");
  CHECK(first("<jube></jube></jube>") ==
        "m.xml:1:15: error: </jube> closes nothing\nhint: remove it, or open what it is to close");
}

TEST_CASE("encodings: Latin-1 by declaration, UTF-16 by its mark") {
  Read latin(
      "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>\n<jube><benchmark name=\"\xE9\"/></jube>");
  CHECK(latin.document.root.children.at(0).get("name") == "\xC3\xA9");
  std::string wide = "\xFF\xFE";
  for (char c : std::string("<jube><benchmark name=\"x\"/></jube>")) wide += c, wide += '\0';
  CHECK(Read(wide).document.root.children.at(0).get("name") == "x");
}

// Which parts a path selects was compared with JUBE 2.5.1.
TEST_CASE("<include> is replaced by what it names") {
  const std::string sets =
      "<jube><parameterset name=\"p\"><parameter name=\"x\">1</parameter></parameterset>"
      "<parameterset name=\"q\"/></jube>";
  auto with = [&](const std::string& include) {
    return Read({{"m.xml", "<jube><benchmark>" + include + "</benchmark></jube>"},
                 {"inc.xml", sets},
                 {"one.xml", "<parameterset name=\"r\"/>"}})
        .xml();
  };
  const std::string head = "<jube>\n  <benchmark>\n", tail = "  </benchmark>\n</jube>\n";
  const std::string p =
      "    <parameterset name=\"p\">\n      <parameter name=\"x\">1</parameter>\n"
      "    </parameterset>\n";
  const std::string q = "    <parameterset name=\"q\"/>\n";
  CHECK(with("<include from=\"inc.xml\" path=\"parameterset\"/>") == head + p + q + tail);
  CHECK(with("<include from=\"inc.xml\" path=\"parameterset[@name='p']\"/>") == head + p + tail);
  CHECK(with("<include from=\"inc.xml\" path=\"*\"/>") == head + p + q + tail);
  CHECK(with("<include from=\"inc.xml\"/>") == head + p + q + tail);
  CHECK(with("<include from=\"one.xml\"/>") == head + "    <parameterset name=\"r\"/>\n" + tail);
  CHECK(with("<include from=\"inc.xml\" path=\"nix\"/>").find("selects nothing in 'inc.xml'") !=
        std::string::npos);
  CHECK(with("<include from=\"inc.xml\" path=\"[\"/>").find("is not XPath") != std::string::npos);
  CHECK(with("<include from=\"nix.xml\"/>")
            .find("m.xml:1:19: error: included file 'nix.xml' not found") == 0);
  CHECK(with("<include/>").find("needs the attribute 'from'") != std::string::npos);
  CHECK(with("<include from=\"m.xml\"/>").find("includes itself") != std::string::npos);
}

TEST_CASE("a tag on an include holds for what comes in, and an include ruled out is not read") {
  std::map<std::string, std::string> files = {
      {"m.xml", "<jube><include from=\"inc.xml\" path=\"*\" tag=\"a\"/></jube>"},
      {"inc.xml", "<jube><parameterset name=\"p\" tag=\"b\"/><parameterset name=\"q\"/></jube>"}};
  Read read(files);
  CHECK(read.document.root.children.at(0).get("tag") == "(a)+(b)");
  CHECK(read.document.root.children.at(1).get("tag") == "a");
  files.erase("inc.xml");
  CHECK(Read(files, std::vector<std::string>{}).messages() == "");
  CHECK(Read(files, std::vector<std::string>{"a"}).messages().find("not found") !=
        std::string::npos);
}

TEST_CASE("what is written as XML reads back the same") {
  Read read(
      "<jube><benchmark name=\"a &quot;b&quot; &lt;&#10;c\"><step name=\"s\">"
      "<do>x &lt; y &amp;&amp; z</do></step></benchmark></jube>");
  REQUIRE(read.messages() == "");
  Read again(document_to_xml(read.document));
  CHECK(again.xml() == read.xml());
  CHECK(again.document.root.children.at(0).get("name") == "a \"b\" <\nc");
}

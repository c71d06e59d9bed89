// Keys and values against the schema.
#include "tests/engine/check/checked.h"

using namespace tally;

namespace {

const std::string kHead = "name: b\noutpath: o\n";

std::string strict_messages(const std::string& text) {
  CheckOptions options;
  options.strict = true;
  return Checked(text, options).messages();
}

}  // namespace

TEST_CASE("an unknown key names its line, its element and the nearest known key") {
  const std::string text = kHead +
                           "parameterset:\n"
                           "  - name: p\n"
                           "    parameter:\n"
                           "      - {name: bind, _: '--bind', seperator: \"\"}\n"
                           "step: {name: s, use: p, do: echo $bind}\n";
  Checked plain(text);
  CHECK(plain.workflow);
  CHECK(plain.messages() ==
        "f.yaml:6:35: warning: unknown key 'seperator' in parameter 'bind'\n"
        "          - {name: bind, _: '--bind', seperator: \"\"}\n"
        "                                      ^~~~~~~~~\n"
        "hint: did you mean 'separator'?\n");
  // Strict, or in a file that uses Tally's own keys, it is an error.
  CHECK(strict_messages(text).find("f.yaml:6:35: error: unknown key 'seperator'") == 0);
  Checked own(text + "  # \n" + "comment: x\n");
  CHECK(own.workflow);
  Checked tally(kHead +
                "parameterset: {name: p, where: $x > 1, parameter: {name: x, seperator: ;}}\n");
  CHECK_FALSE(tally.workflow);
  CHECK(tally.says("error: unknown key 'seperator' in parameter 'x'"));
}

TEST_CASE("a mistyped element, and a key in the wrong place") {
  Checked element(kHead + "parametersets:\n  - name: p\n");
  CHECK(element.messages() ==
        "f.yaml:3:1: warning: unknown key 'parametersets' in benchmark 'b'\n"
        "    parametersets:\n"
        "    ^~~~~~~~~~~~~\n"
        "hint: did you mean 'parameterset'?\n");
  CHECK(Checked(kHead + "step: {name: s, stdout: x, do: echo}\n")
            .says("hint: 'stdout' belongs in: prepare, do"));
  CHECK(
      Checked(kHead + "step: {name: s, do: {comand: echo}}\n").says("unknown key 'comand' in do"));
  CHECK(Checked("benchmark: {name: b}\nstpe: {name: s}\n")
            .says("f.yaml:2:1: warning: unknown key 'stpe' in the top level"));
}

TEST_CASE("XML: unknown elements are errors as for JUBE, unknown attributes warnings") {
  Checked xml("f.xml",
              Files{{"f.xml",
                     "<jube><benchmark name=\"b\" outpath=\"o\">\n<stap/>\n"
                     "<step name=\"s\" dpend=\"x\"><name>s</name></step></benchmark></jube>"}});
  CHECK(xml.messages() ==
        "f.xml:2:2: error: unknown element <stap> in benchmark 'b'\n"
        "    <stap/>\n"
        "     ^~~~~\n"
        "hint: did you mean 'step'?\n"
        "f.xml:3:16: warning: unknown key 'dpend' in step 's'\n"
        "    <step name=\"s\" dpend=\"x\"><name>s</name></step></benchmark></jube>\n"
        "                   ^~~~~\n"
        "hint: did you mean 'depend'?\n"
        "f.xml:3:27: error: unknown element <name> in step 's'\n"
        "    <step name=\"s\" dpend=\"x\"><name>s</name></step></benchmark></jube>\n"
        "                              ^~~~\n"
        "hint: 'name' is an attribute: <step name=\"...\">\n");
}

TEST_CASE("values outside the choices are errors, all of them at once") {
  Checked checked(kHead +
                  "parameterset:\n"
                  "  name: p\n"
                  "  parameter:\n"
                  "    - {name: x, mode: pyhton, _: 1}\n"
                  "    - {name: 1x, _: 1}\n"
                  "    - {name: y, update_mode: nevr, _: 1}\n"
                  "substituteset: {name: q, iofile: {in: a, out: b, out_mode: x}}\n"
                  "step: {name: s, iterations: many, do: echo}\n"
                  "result: {table: {name: t, style: prety, column: jube_wp_id}}\n");
  CHECK(checked.diagnostics.error_count() == 6);
  CHECK(checked.says(
      "f.yaml:6:23: error: 'pyhton' is not a valid value for 'mode' in parameter 'x'"));
  CHECK(checked.says("hint: did you mean 'python'?"));
  CHECK(checked.says("f.yaml:7:14: error: '1x' cannot be the name of a parameter"));
  CHECK(checked.says("'nevr' is not a valid value for 'update_mode'"));
  CHECK(checked.says("'x' is not a valid value for 'out_mode' in iofile\n"));
  CHECK(checked.says("hint: one of: w, a"));
  CHECK(checked.says("'many' is not a valid value for 'iterations' in step 's'"));
  CHECK(checked.says("'prety' is not a valid value for 'style' in table 't'"));
}

TEST_CASE("what JUBE passes over is a warning: types and booleans") {
  Checked checked(kHead +
                  "parameterset: {name: p, parameter: [{name: x, type: number, _: 1}, "
                  "{name: y, export: maybe, _: 1}]}\nstep: {name: s, use: p, do: echo}\n");
  CHECK(checked.workflow);
  CHECK(checked.diagnostics.warning_count() == 2);
  CHECK(checked.set("p").parameters[0].type == ValueType::string);
}

TEST_CASE("booleans in any spelling, which JUBE 2.7.1 refuses for shared") {
  for (const char* word : {"yes", "True", "'true'", "on", "1", "'YES'"}) {
    CAPTURE(std::string(word));
    Checked checked(kHead + "step: {name: s, shared: sh, export: " + word +
                    ", do: {shared: " + std::string(word) + ", _: echo}}\n");
    CHECK(checked.messages() == "");
    CHECK(checked.benchmark().steps[0].exported);
    CHECK(checked.benchmark().steps[0].operations[0].shared);
  }
  CHECK_FALSE(Checked(kHead + "step: {name: s, do: {shared: false, _: x}}\n")
                  .benchmark()
                  .steps[0]
                  .operations[0]
                  .shared);
}

TEST_CASE("missing names are said with the place, in XML in JUBE's words") {
  CHECK(Checked("outpath: o\nstep: {name: s}\n").messages() ==
        "f.yaml:1:1: error: this benchmark has no 'name'\n"
        "    outpath: o\n"
        "    ^~~~~~~\n"
        "hint: The benchmark's name.\n");
  CHECK(Checked(kHead + "step: {do: echo}\n").says("this step has no 'name'"));
  CHECK(Checked(kHead + "substituteset: {name: q, iofile: {in: a}}\n")
            .says("this iofile has no 'out'"));
  CHECK(Checked(kHead + "step: {name: , do: echo}\n").says("this step has no 'name'"));
  CHECK(Checked("f.xml",
                Files{{"f.xml", "<jube><benchmark outpath='o'><step/></benchmark></jube>\n"}})
            .says("Missing attribute 'name' in <step>"));
}

TEST_CASE("text where there is none to hold") {
  CHECK(Checked(kHead + "parameterset: p\n").says("parameterset holds no text"));
  CHECK(Checked(kHead + "step: s\n").says("f.yaml:3:7: error: step holds no text"));
}

TEST_CASE("Tally's own keys are checked like JUBE's") {
  CHECK(
      Checked(kHead + "step: {name: s, kind: ruin, do: echo}\n").says("hint: did you mean 'run'?"));
  CHECK(Checked(kHead + "step: {name: s, kind: run, launch: x, resources: {nods: 1}}\n")
            .says("error: unknown key 'nods' in resources"));
  CHECK(Checked(kHead + "step: {name: s, timeout: soon, do: echo}\n")
            .says("'soon' is not a valid value"));
  CHECK(Checked(kHead + "step: {name: s, expect: [oom, slow], do: echo}\n")
            .says("'slow' is not a valid value for 'expect'"));
  CHECK(
      Checked(kHead + "step: {name: s, launch: x}\n").says("'launch' in step 's' needs kind: run"));
  CHECK(Checked(kHead + "step: {name: s, resources: {nodes: 1}, do: x}\n")
            .says("'resources' in step 's' needs kind: run"));
  CHECK(Checked(kHead + "step: {name: s, kind: run}\n").says("step 's' does nothing"));
  for (const char* time : {"90", "1.5h", "30m", "00:30:00", "1-00:00:00", "$limit"}) {
    CAPTURE(std::string(time));
    CHECK(Checked(kHead + "step: {name: s, timeout: '" + time + "', do: echo}\n").messages() == "");
  }
}

// Tags and the selection of benchmarks.
#include "tests/engine/check/checked.h"

using namespace tally;

namespace {

const std::string kTwo =
    "parameterset: {name: p, parameter: [{name: x, _: 1}, {name: x, tag: big, _: 2}]}\n"
    "benchmark:\n"
    "  - {name: one, step: [{name: s, use: [p, {tag: big, _: q}], do: [a, {tag: '!big', _: b}]}]}\n"
    "  - {name: two, tag: '!small', step: [{name: s, use: p, do: a}]}\n";

CheckOptions only(std::vector<std::string> names, std::vector<std::string> exclude = {}) {
  CheckOptions options;
  options.only = std::move(names);
  options.exclude = std::move(exclude);
  return options;
}

std::string names(const Checked& checked) {
  if (!checked.workflow) return checked.messages();
  std::string text;
  for (const Benchmark& b : checked.workflow->benchmarks) text += b.name.value + " ";
  return text;
}

}  // namespace

TEST_CASE("elements whose tag is false are gone before anything else") {
  Checked none(kTwo);
  CHECK(none.messages() == "");
  CHECK(names(none) == "one two ");
  CHECK(none.set("p").parameters.at(0).value.value == "1");
  CHECK(none.benchmark().steps.at(0).use.size() == 1);
  CHECK(none.benchmark().steps.at(0).operations.size() == 2);
  Checked big(kTwo, with_tags({"big"}));
  CHECK(big.says("unknown set 'q' in step 's'"));
  CHECK(names(Checked(kTwo, with_tags({"small"}))) == "one ");
}

TEST_CASE("tags that cannot be read are errors at their place") {
  CHECK(Checked("name: b\nstep: {name: s, tag: 'a||b', do: x}\n").messages() ==
        "f.yaml:2:22: error: Tag string 'a||b' not parseable.\n"
        "    step: {name: s, tag: 'a||b', do: x}\n"
        "                         ^~~~~~\n"
        "hint: names joined by ! + | ^ and parentheses\n");
}

TEST_CASE("a tag that appears nowhere is worth a warning") {
  CHECK(Checked(kTwo, with_tags({"smal"})).messages() ==
        "tally: warning: tag 'smal' appears nowhere in the file\nhint: did you mean 'small'?\n");
}

TEST_CASE("in a file of our own a misspelt tag is an error") {
  const std::string tags = "tags: {tag: {name: small, _: little}}\n";
  const std::string own =
      "benchmark: {name: b, step: {name: s, kind: setup, tag: small|!small, do: x}}\n";
  CHECK(Checked(tags + own, with_tags({"smal"})).messages() ==
        "tally: error: tag 'smal' appears nowhere in the file\nhint: did you mean 'small'?\n");
  CHECK(Checked(tags + own, with_tags({"huge"})).says("hint: the file's tags: small\n"));
  // Those that are described and used nowhere are the file's, too.
  CHECK(Checked("tags: {tag: {name: gpu, _: on GPUs}}\n" + kTwo, with_tags({"gpux"}))
            .says("tag 'gpux' appears nowhere in the file\nhint: did you mean 'gpu'?\n"));
  CHECK(Checked(own, with_tags({"smal"})).messages() ==
        "tally: error: tag 'smal' appears nowhere in the file\nhint: did you mean 'small'?\n");
  CHECK(Checked(own, with_tags({"small"})).messages() == "");
  CheckOptions as_jube = with_tags({"smal"});
  as_jube.called_as_jube = true;
  CHECK(Checked(tags + own, as_jube).says("warning: tag 'smal'"));
}

TEST_CASE("the file's selection adds tags and chooses benchmarks") {
  CHECK(names(Checked("selection: {tag: small}\n" + kTwo)) == "one ");
  CHECK(Checked("selection: {tag: small}\n" + kTwo).workflow->tags ==
        std::vector<std::string>{"small"});
  CHECK(names(Checked("selection: {only: two}\n" + kTwo)) == "two ");
  CHECK(names(Checked("selection: {not: [two]}\n" + kTwo)) == "one ");
  CHECK(names(Checked("selection: {only: two}\n" + kTwo, only({"one"}))) == "one ");
  CHECK(names(Checked(kTwo, only({}, {"one"}))) == "two ");
  CHECK(names(Checked(kTwo, only({"tow"}))) ==
        "tally: error: no benchmark is called 'tow'\nhint: did you mean 'two'?\n");
  CHECK(names(Checked(kTwo, only({"one"}, {"one"}))) ==
        "tally: error: the selection leaves no benchmark to run\n");
}

TEST_CASE("check_tags must hold") {
  CHECK(Checked("check_tags: a^b\n" + kTwo).messages() ==
        "f.yaml:1:13: error: check_tags 'a^b' does not hold for a run without tags\n"
        "    check_tags: a^b\n"
        "                ^~~\n"
        "hint: choose tags with -t so that it does\n");
  CHECK(Checked("check_tags: a^b\n" + kTwo, with_tags({"a"})).messages() == "");
  CHECK(Checked("tags: {check_tags: [a|b, '!b']}\n" + kTwo, with_tags({"b"}))
            .says("check_tags '!b' does not hold for the tags b"));
}

TEST_CASE("described tags must be used, and with forced, used tags described") {
  const std::string described = "tags: {tag: [{name: big, _: much}, {name: small, _: little}]}\n";
  CHECK(Checked(described + kTwo).messages() == "");
  CHECK(Checked("tags: {tag: {name: bigg, _: much}}\n" + kTwo)
            .says("tag 'bigg' is described but used nowhere"));
  CHECK(Checked("tags: {forced: true, tag: {name: big, _: much}}\n" + kTwo)
            .says("tag 'small' is used but not described"));
}

TEST_CASE("a file without a benchmark") {
  CHECK(Checked("f.xml", Files{{"f.xml", "<jube/>"}}).says("error: the file holds no benchmark"));
}

#include "engine/base/diagnostics.h"

#include <doctest/doctest.h>

using namespace tally;

TEST_CASE("an error shows its line, a caret under the word and a hint") {
  Sources sources;
  uint32_t file = sources.add("bench.yaml", "a: 1\n    seperator: \"\"\nz: 2");
  Diagnostics diagnostics;
  diagnostics.error({file, 2, 5}, "unknown key 'seperator' in parameter 'bind'",
                    "did you mean 'separator'?");
  CHECK(diagnostics.format(sources) ==
        "bench.yaml:2:5: error: unknown key 'seperator' in parameter 'bind'\n"
        "        seperator: \"\"\n"
        "        ^~~~~~~~~\n"
        "hint: did you mean 'separator'?\n");
}

TEST_CASE("the caret stands right behind tabs, wide text and a quoted word") {
  Sources sources;
  uint32_t file = sources.add("f", "\tx: \"a b\"\r\n\xC3\xA9\xC3\xA9: bad\n");
  Diagnostics diagnostics;
  diagnostics.warning({file, 1, 5}, "one");
  diagnostics.warning({file, 2, 5}, "two");
  CHECK(diagnostics.format(sources) ==
        "f:1:5: warning: one\n"
        "    \tx: \"a b\"\n"
        "    \t   ^~~~~\n"
        "f:2:5: warning: two\n"
        "    \xC3\xA9\xC3\xA9: bad\n"
        "        ^~~\n");
}

TEST_CASE("sorted by place, each once, notes behind what they belong to, placeless first") {
  Sources sources;
  uint32_t file = sources.add("f", "one\ntwo\nthree\n");
  Diagnostics diagnostics;
  diagnostics.error({file, 3, 1}, "c");
  diagnostics.note({file, 1, 1}, "first here");
  diagnostics.error({file, 2, 1}, "b");
  diagnostics.error({file, 2, 1}, "b");
  diagnostics.error({}, "a");
  CHECK(diagnostics.error_count() == 4);
  CHECK(diagnostics.format(sources) ==
        "tally: error: a\n"
        "f:2:1: error: b\n    two\n    ^~~\n"
        "f:3:1: error: c\n    three\n    ^~~~~\n"
        "f:1:1: note: first here\n    one\n    ^~~\n");
}

TEST_CASE("strict makes warnings errors, those before and those after") {
  Diagnostics diagnostics;
  diagnostics.warning({}, "a");
  CHECK_FALSE(diagnostics.has_errors());
  diagnostics.make_warnings_errors();
  diagnostics.warning({}, "b");
  CHECK(diagnostics.error_count() == 2);
  CHECK(diagnostics.warning_count() == 0);
  CHECK(diagnostics.format(Sources()) == "tally: error: a\ntally: error: b\n");
}

TEST_CASE("colours are asked for") {
  Sources sources;
  uint32_t file = sources.add("f", "x\n");
  Diagnostics diagnostics;
  diagnostics.error({file, 1, 1}, "m");
  CHECK(diagnostics.format(sources).find('\033') == std::string::npos);
  CHECK(diagnostics.format(sources, true).find("\033[1;31merror:\033[0m m") != std::string::npos);
}

TEST_CASE("a mark beyond the text shows no line") {
  Sources sources;
  uint32_t file = sources.add("f", "x\n");
  CHECK(sources.line({file, 9, 1}).empty());
  CHECK(sources.line({}).empty());
  CHECK(sources.line({7, 1, 1}).empty());
  Diagnostics diagnostics;
  diagnostics.error({file, 1, 99}, "m");
  CHECK(diagnostics.format(sources) == "f:1:99: error: m\n    x\n     ^\n");
}

TEST_CASE("warnings of one kind are shown once, with the places of the others") {
  Sources sources;
  const uint32_t file = sources.add("f", "one\ntwo\nthree\n");
  Diagnostics diagnostics;
  diagnostics.warning({file, 2, 1}, "no column 'b'", "did you mean 'd'?", {"column", "b"});
  diagnostics.warning({file, 1, 1}, "no column 'a'", "", {"column", "a"});
  diagnostics.warning({file, 3, 2}, "no column 'c'", "", {"column", "c"});
  diagnostics.warning({file, 3, 1}, "else", "", {"other", "c"});
  CHECK(diagnostics.warning_count() == 4);
  CHECK(diagnostics.format(sources) ==
        "f:1:1: warning: no column 'a'\n    one\n    ^~~\n"
        "note: 2 more of this kind: 'b' (2:1), 'c' (3:2)\n"
        "f:3:1: warning: else\n    three\n    ^~~~~\n");
  // Errors are shown each.
  diagnostics.make_warnings_errors();
  CHECK(diagnostics.format(sources).find("no column 'c'") != std::string::npos);
}

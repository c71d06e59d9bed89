// The words of shell texts. What bash makes of each stands beside it.
#include "engine/base/shell_words.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace tally {
namespace {

std::vector<std::string> words(const char* text) {
  std::vector<std::string> out;
  for (const ShellWord& word : shell_words(text))
    out.push_back((word.written ? ">" : "") + word.text);
  return out;
}
using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("words end at blanks and operators, and not in quotes") {
  CHECK(words("cc -O2 -o pi pi.c") == Words{"cc", "-O2", "-o", "pi", "pi.c"});
  CHECK(words("a;b&&c|d") == Words{"a", "b", "c", "d"});
  CHECK(words("sed 's/^/host compiler /' f") == Words{"sed", "s/^/host compiler /", "f"});
  CHECK(words("cat \"my file\".txt") == Words{"cat", "my file.txt"});
  CHECK(words("a\\ b c\\\n d") == Words{"a b", "c", "d"});
  CHECK(words("'it''s' \"\\\"q\\\"\"") == Words{"its", "\"q\""});
  CHECK(words("''") == Words{""});
  CHECK(words("") == Words{});
  CHECK(words("a # it's a comment\nb#c") == Words{"a", "b#c"});
}

TEST_CASE("the target of a redirection is written, and no other word") {
  CHECK(words("a <in >out 2>&1") == Words{"a", "in", ">out", "2", ">1"});
  CHECK(words("a >> 'my log' b") == Words{"a", ">my log", "b"});
  CHECK(words("a >|out; b") == Words{"a", ">out", "b"});
  CHECK(words("diff a >(cat b)") == Words{"diff", "a", "cat", "b"});
}

TEST_CASE("commands in a word are commands") {
  CHECK(words("echo $(cat a.txt) `cat b.txt`") ==
        Words{"echo", "$", "cat", "a.txt", "cat", "b.txt"});
  CHECK(words("echo \"x $(cat a.txt)\" y") ==
        Words{"echo", "x $(cat a.txt)", "x", "$", "cat", "a.txt", "y"});
  CHECK(words("echo '$(cat a.txt)'") == Words{"echo", "$(cat a.txt)"});
}

TEST_CASE("an open quote and a backslash at the end are the rest of the text") {
  CHECK(words("a 'b c") == Words{"a", "b c"});
  CHECK(words("a \"b\\") == Words{"a", "b\\"});
  CHECK(words("a\\") == Words{"a\\"});
}

}  // namespace tally

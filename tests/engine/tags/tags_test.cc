#include "engine/tags/tags.h"

#include <doctest/doctest.h>

using namespace tally;

namespace {

// "T", "F", or the error text.
std::string eval(const std::string& expression, const std::set<std::string>& tags) {
  bool value = false;
  const Status parsed = evaluate_tags(expression, tags, &value);
  if (!parsed) return parsed.message();
  return value ? "T" : "F";
}

}  // namespace

// The rows of this test are what JUBE 2.5.1 answered when run with the same file and tags.
TEST_CASE("comma lists: one of the wanted, none of the unwanted") {
  CHECK(eval("a,b", {"a"}) == "T");
  CHECK(eval("a,b", {"b"}) == "T");
  CHECK(eval("a,b", {}) == "F");
  CHECK(eval("a,!b", {"a"}) == "T");
  CHECK(eval("a,!b", {"b"}) == "F");
  CHECK(eval("a,!b", {"a", "b"}) == "F");
  CHECK(eval("a,!b", {}) == "F");
  CHECK(eval("!a,!b", {"a"}) == "F");
  CHECK(eval("!a,!b", {}) == "T");
  CHECK(eval("!a,!b", {"c"}) == "T");
  CHECK(eval("a+b,c", {"c"}) == "T");
  CHECK(eval("a+b,c", {"a"}) == "F");
  CHECK(eval("a+b,c", {"a", "b"}) == "T");
  CHECK(eval("a|b,c", {"c"}) == "T");
  CHECK(eval("(a,b)", {"b"}) == "T");
}

TEST_CASE("single expressions as JUBE 2.5.1 evaluates them") {
  CHECK(eval("!!ab", {"ab"}) == "T");
  CHECK(eval("!a^ab", {"ab"}) == "F");
  CHECK(eval("!ab^ab", {"ab"}) == "T");
  CHECK(eval("a b", {"ab"}) == "T");
  CHECK(eval("1a", {"ab"}) == "F");
  CHECK(eval("a-b", {"a-b"}) == "T");
  CHECK(eval("13", {"13"}) == "T");
  CHECK(eval("ab.c", {"ab.c"}) == "T");
  CHECK(eval("(ab)", {"ab"}) == "T");
  CHECK(eval("!(c)", {"ab"}) == "T");
}

// The names that JUBE 2.5.1 took in the same expressions.
TEST_CASE("a name has any characters but the operators") {
  for (const char* name : {"must:verbose", "must::v", "@x", "50%", "a/b", "\u00fc.x", "~t",  "#x",
                           "a=b",          "a;b",     "a*", "a'b", "{a}", "&x",       "<x",  "?",
                           "$x",           "-x",      "a:", ":",   "1e3", "a\\b",     "a\"b"}) {
    const std::string text = name;
    CAPTURE(text);
    CHECK(eval(text, {text}) == "T");
    CHECK(eval(text, {"other"}) == "F");
    CHECK(eval("!" + text, {text}) == "F");
    CHECK(eval("(" + text + "|other)+!no:ne", {text}) == "T");
    CHECK(eval(text + "^other", {text, "other"}) == "F");
    CHECK(eval("other," + text, {text}) == "T");
    CHECK(eval("other,!" + text, {"other", text}) == "F");
    CHECK(tag_names("!(" + text + "+other)|" + text) == std::vector<std::string>{text, "other"});
  }
}

TEST_CASE("precedence is ^ before ! before + before |") {
  for (int bits = 0; bits < 8; ++bits) {
    bool a = bits & 1, b = bits & 2, c = bits & 4;
    std::set<std::string> tags;
    if (a) tags.insert("a");
    if (b) tags.insert("b");
    if (c) tags.insert("c");
    auto is = [&](const char* text, bool wanted) {
      CAPTURE(std::string(text));
      CAPTURE(bits);
      CHECK(eval(text, tags) == (wanted ? "T" : "F"));
    };
    is("!a^b", !(a != b));
    is("a+b^c", a && (b != c));
    is("a|b+c", a || (b && c));
    is("(a|b)+c", (a || b) && c);
    is("!a+b", !a && b);
    is("!(a+b)|c", !(a && b) || c);
    is("a^b^c", (a != b) != c);
  }
}

TEST_CASE("what cannot be read is said in JUBE's words") {
  for (const char* text : {"", " ", "a||b", "(a", "a)", "a!b", "|a", "a+", "()", "a()", "^a"}) {
    CAPTURE(std::string(text));
    CHECK(eval(text, {"a"}) == "Tag string '" + std::string(text) + "' not parseable.");
  }
  // Deep nesting ends in an error, not in a full stack.
  CHECK(eval(std::string(100000, '('), {}).find("not parseable") != std::string::npos);
  CHECK(eval(std::string(100001, '!') + "a", {}) == "T");
}

TEST_CASE("names of an expression, in order, each once") {
  CHECK(tag_names("!gpu+(b|gpu)^ c-1,d") == std::vector<std::string>{"gpu", "b", "c-1", "d"});
  CHECK(tag_names("").empty());
}

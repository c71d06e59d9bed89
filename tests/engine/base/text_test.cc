#include "engine/base/text.h"

#include <doctest/doctest.h>

using namespace tally;

TEST_CASE("strip and split as Python does") {
  CHECK(strip(" \t a b\r\n") == "a b");
  CHECK(strip(" \n").empty());
  CHECK(split_strip("a,,b,", ",") == std::vector<std::string>{"a", "", "b", ""});
  CHECK(split_strip(" a ; b", ";") == std::vector<std::string>{"a", "b"});
  CHECK(split_strip(" a,b ", "") == std::vector<std::string>{" a,b "});
  CHECK(split_strip("", ",") == std::vector<std::string>{""});
  CHECK(split_strip("a::b::c", "::") == std::vector<std::string>{"a", "b", "c"});
  CHECK(join({"a", "b"}, ", ") == "a, b");
  CHECK(join({}, ", ").empty());
}

TEST_CASE("white space becomes one blank") {
  CHECK(one_line("  a \n\t b\r\nc ") == "a b c");
  CHECK(one_line(" \n").empty());
  CHECK(one_line("").empty());
}

TEST_CASE("edit distance counts swaps once") {
  CHECK(edit_distance("", "abc") == 3);
  CHECK(edit_distance("separator", "seperator") == 1);
  CHECK(edit_distance("form", "from") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("the nearest name, when one is near") {
  std::vector<std::string> names = {"separator", "source_dir", "name", "mode"};
  CHECK(nearest("seperator", names) == "separator");
  CHECK(nearest("Seperator", names) == "separator");
  CHECK(nearest("mdoe", names) == "mode");
  CHECK(nearest("zzzz", names).empty());
  CHECK(nearest("x", {"y"}).empty());
  CHECK(nearest("", names).empty());
  CHECK(did_you_mean("nmae", names) == "did you mean 'name'?");
  CHECK(did_you_mean("quux", names).empty());
}

TEST_CASE("shell words") {
  CHECK(shell_quote("a/b-c.txt") == "a/b-c.txt");
  CHECK(shell_quote("") == "''");
  CHECK(shell_quote("a b") == "'a b'");
  CHECK(shell_quote("it's") == "'it'\\''s'");
  CHECK(shell_quote("X=1") == "'X=1'");
  CHECK(shell_quote("$x") == "'$x'");
}

TEST_CASE("UTF-8 lengths") {
  uint32_t code = 0;
  CHECK(utf8_length("a", &code) == 1);
  CHECK(utf8_length("\xC3\xA9", &code) == 2);
  CHECK(code == 0xE9);
  CHECK(utf8_length("\xF0\x9F\x98\x80", &code) == 4);
  CHECK(code == 0x1F600);
  CHECK(utf8_length("\xFF") == 0);
  CHECK(utf8_length("\xC0\x80") == 0);      // too long a form
  CHECK(utf8_length("\xED\xA0\x80") == 0);  // a surrogate
  CHECK(utf8_length("\xE2\x82") == 0);      // cut short
  CHECK(utf8_length("") == 0);
}

TEST_CASE("any bytes are text, and the text gives them back") {
  const std::string own = tally::text_of_bytes("\xb5");
  for (const std::string& bytes :
       {std::string("plain\n\0x", 8), std::string("\xc3\xa9 \xe4\xbd\xa0 \xf0\x9f\x98\x80"),
        std::string("K\xf6ln"), std::string("\xe2\x82"), std::string("\xed\xa0\x80\xff\xc0\x80"),
        own, own + "\xf4\x8f", std::string("\xf4\x90\x80\x80\xf4\x8f\xbf\xbf")}) {
    CAPTURE(bytes);
    const std::string text = tally::text_of_bytes(bytes);
    CHECK(tally::bytes_of_text(text) == bytes);
    for (size_t at = 0; at < text.size();) {
      const size_t length = tally::utf8_length(std::string_view(text).substr(at));
      REQUIRE(length > 0);
      at += length;
    }
  }
  CHECK(tally::text_of_bytes("K\xc3\xb6ln \xef\xbf\xbd") == "K\xc3\xb6ln \xef\xbf\xbd");
  CHECK(own == "\xf4\x8f\xba\xb5");
}

#include "engine/evidence/redaction.h"

#include <doctest/doctest.h>

#include <string>

using tally::Redaction;

namespace {

std::string cleaned(Redaction& redaction, std::string text) {
  redaction.clean("m", &text);
  return text;
}

}  // namespace

TEST_CASE("redaction: a secret's bytes become asterisks, as often as they come, in each quoting") {
  Redaction redaction;
  redaction.add("API_KEY=it's<1>\"x\"");
  CHECK(cleaned(redaction, "a it's<1>\"x\" b") == "a ********** b");
  CHECK(cleaned(redaction, "'it'\\''s<1>\"x\"'") == "'************\"'");
  CHECK(cleaned(redaction, "it's&lt;1&gt;\"x\"") == std::string(16, '*'));
  CHECK(cleaned(redaction, "{\"k\": \"it's<1>\\\"x\\\"\"}") == "{\"k\": \"**********\\\"\"}");
  CHECK(cleaned(redaction, "its<1>x, it\\'s<1>x") == "*******, *********");
  CHECK(redaction.found().at("m").at("API_KEY") == 6);
  CHECK_FALSE(redaction.still_shows("m", "nothing"));
}

TEST_CASE("redaction: what is no secret stays") {
  Redaction redaction;
  for (const char* entry :
       {"PATH=/usr/bin", "A_TOKEN=abc", "USE_KEY=true", "MAX_TOKEN=4096", "KEY="})
    redaction.add(entry);
  const std::string text = "/usr/bin abc true 4096";
  CHECK(cleaned(redaction, text) == text);
  redaction.add("PIN_TOKEN=12345678");
  CHECK(cleaned(redaction, "x=12345678") == "x=********");
}

TEST_CASE("redaction: assignments in a text, as env prints and scripts make them") {
  Redaction redaction;
  redaction.add_assignments(
      "HF_TOKEN=abcdef\nexport MY_SECRET='two words'\nKEY_FILE=/etc/key\nSSH_KEY=/root/id\n"
      "OTHER_TOKEN=$HF_TOKEN\nus_per_token=1234.5678\nTOKEN=12345678901\nxAPI_KEY=notmine\n");
  CHECK(cleaned(redaction, "abcdef, two words") == "******, *********");
  CHECK(cleaned(redaction, "/etc/key /root/id 1234.5678 12345678901 notmine") ==
        "/etc/key /root/id 1234.5678 12345678901 notmine");
}

TEST_CASE("redaction: a longer secret goes before one that is a part of it; lines of a key") {
  Redaction redaction;
  redaction.add("A_KEY=abcd");
  redaction.add("B_KEY=abcdefgh");
  CHECK(cleaned(redaction, "abcdefgh abcd") == "******** ****");
  redaction.add("C_KEY=-----BEGIN\nMIIEvQIBADANBgkqhkiG9w0\n-----END");
  CHECK(cleaned(redaction, "> MIIEvQIBADANBgkqhkiG9w0") == "> ***********************");
}

#include "engine/base/variables.h"

#include <doctest/doctest.h>

#include <cstdlib>

using namespace tally;

// The expected values are Python 3.11's os.path.expandvars(os.path.expanduser(...)).
TEST_CASE("the environment's variables and ~ as Python puts them in") {
  setenv("TALLY_A", "/a b/$TALLY_B", 1);
  setenv("TALLY_EMPTY", "", 1);
  unsetenv("TALLY_NONE");
  setenv("HOME", "/home/me/", 1);
  CHECK(expand_path("$TALLY_A/x") == "/a b/$TALLY_B/x");  // once
  CHECK(expand_path("x${TALLY_A}y") == "x/a b/$TALLY_By");
  CHECK(expand_path("$TALLY_EMPTY/x") == "/x");
  CHECK(expand_path("$TALLY_NONE/${TALLY_NONE}/$") == "$TALLY_NONE/${TALLY_NONE}/$");
  CHECK(expand_path("$$TALLY_EMPTY|$-|${TALLY_A|$ x") == "$|$-|${TALLY_A|$ x");
  CHECK(expand_path("~") == "/home/me");
  CHECK(expand_path("~/x/~") == "/home/me/x/~");
  CHECK(expand_path("a~/x") == "a~/x");
  CHECK(expand_path("~no-such-user/x") == "~no-such-user/x");
  CHECK(expand_path("~root/x") == "/root/x");
  CHECK(expand_path("").empty());
  setenv("HOME", "/", 1);
  CHECK(expand_path("~") == "/");
  CHECK(expand_path("~/x") == "/x");
}

TEST_CASE("what is left over") {
  CHECK(unknown_variable("/a/$B/c") == "$B");
  CHECK(unknown_variable("${B}") == "${B}");
  CHECK(unknown_variable("/a/b$").empty());
  CHECK(unknown_variable("$-").empty());
  CHECK(unknown_variable("").empty());
}

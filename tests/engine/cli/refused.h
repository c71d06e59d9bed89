// A mistake in a file that validate, run -n and run refuse alike.
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

namespace tally::testing {

// `message`: all that is said. No folder of runs is made.
inline void is_refused(const std::string& file, const std::string& message) {
  for (const char* command : {"validate b.yaml", "run -n b.yaml", "run b.yaml"}) {
    CAPTURE(command);
    const Shell shell;
    shell.file("b.yaml", file);
    const Ran ran = shell.tally(command);
    CHECK_MESSAGE(ran.code == 2, (ran.out + ran.err));
    CHECK_MESSAGE(ran.err == message, ran.err);
    CHECK(!shell.exists("b_run"));
  }
}

}  // namespace tally::testing

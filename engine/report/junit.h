// Test reports in JUnit's XML, which CI systems show.
#pragma once

#include <string>
#include <vector>

namespace tally {

enum class JunitResult { passed, failed, skipped };

struct JunitCase {
  std::string classname, name;
  JunitResult result = JunitResult::passed;
  double seconds = 0;
  std::string message;  // one line: why it failed or was skipped
  std::string details;  // of a failure: the last lines of its output
};
struct JunitSuite {
  std::string name;
  std::string timestamp;  // 2026-11-21T01:18:53
  std::vector<JunitCase> cases;
};

// Bytes that are not valid in XML become U+FFFD.
std::string junit_document(const std::vector<JunitSuite>& suites);

}  // namespace tally

#include "engine/cli/exit_codes.h"

#include <fmt/format.h>

namespace tally {
namespace {

struct ExitCode {
  int code;
  const char* brief;
  const char* full;
};

constexpr ExitCode kCodes[] = {
    {kFine, "all went well", "Every workpackage finished, and every reference was met."},
    {kFailed, "something failed",
     "A workpackage failed, was lost or waits; the run was interrupted; a result could not be "
     "written. `result` and `report` only show that a workpackage failed: their code is 0."},
    {kBadInput, "wrong input or command line",
     "Nothing was started: the input file, the command line or the run that it names is wrong."},
    {kReferenceMissed, "a reference was missed or a result regressed",
     "A table's value is not what its `reference` expects, or is not there. Also where "
     "workpackages "
     "failed. `compare`: a row regressed, or with --strict is unclear; --null found a difference."},
};

}  // namespace

std::string exit_codes_in_short() {
  std::string text;
  for (const ExitCode& code : kCodes)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", code.code, code.brief);
  return text;
}

std::string exit_codes_in_full() {
  std::string text = "Exit codes\n";
  for (const ExitCode& code : kCodes)
    text += fmt::format("  {}  {}. {}\n", code.code, code.brief, code.full);
  return text +
         "Called by the name jube: JUBE's. 0, also where commands failed; 1 for any error; 2 for a "
         "command line\nthat cannot be understood.\n";
}

}  // namespace tally

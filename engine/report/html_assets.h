// The style sheet and the script of the report. Private to report/.
#pragma once

namespace tally {

extern const char* const kReportStyle;
extern const char* const kReportScript;

}  // namespace tally

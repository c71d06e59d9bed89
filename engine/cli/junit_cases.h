// The cases of a run in a JUnit report: a test for each workpackage and for each reference.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"
#include "engine/journal/journal.h"
#include "engine/report/junit.h"
#include "engine/report/report.h"
#include "engine/workflow/workflow.h"

namespace tally {

// Whether a report can be written to `path`, found out before the run starts.
Status can_write_report(const std::string& path);

// `tables`: those that the run showed. A reference of a table that is missing there has failed.
Status junit_suite(const Benchmark& benchmark, const Journal& journal,
                   const std::vector<RenderedResult>& tables, JunitSuite* out);

}  // namespace tally

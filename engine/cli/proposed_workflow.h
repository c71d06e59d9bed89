// The first workflow that `tally new` writes: what a command takes and prints, in the short form.
#pragma once

#include <string>
#include <vector>

namespace tally {

// The text of a workflow that runs the command and reads what it printed:
//   - numbers among its words are parameters. One that the output repeats behind a name ("Array
//     size: 2000000") has this name; it does not become a metric.
//   - numbers behind a name in the output are metrics.
//   - lines of numbers, as a benchmark prints one for each message size, are `rows`.
//   - the time that it takes is the metric, if it printed no number with a name.
// An empty command: an example that runs everywhere.
std::string proposed_workflow(const std::string& name, const std::vector<std::string>& command,
                              const std::string& output);

}  // namespace tally

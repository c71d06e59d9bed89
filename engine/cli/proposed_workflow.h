// A first workflow for a command: its numbers as parameters, and what it printed as metrics.
#pragma once

#include <string>
#include <vector>

namespace tally {

// A word of the command that is a number, or ends in one behind "=".
struct ProposedParameter {
  std::string name;   // from the option before it: "batch_size" of --batch-size; else "n"
  std::string value;  // as it is written
  size_t word = 0;    // which word of the command
};

// A number behind a name in the output: "time = 1.5 s", "loss: 2.31".
struct ProposedMetric {
  std::string name;     // "time"
  std::string pattern;  // a regular expression with one of JUBE's building blocks
  std::string unit;     // empty: none
  int matches = 1;      // of the pattern in the output; the first is the metric's value
};

std::vector<ProposedParameter> proposed_parameters(const std::vector<std::string>& command);
// At most `most`, those of the output's first lines. The pattern's first match in this output is the
// number that it was made for.
std::vector<ProposedMetric> proposed_metrics(const std::string& output, size_t most);

// The text of a workflow in the short form that runs the command and reads what it printed. An empty
// command: an example that runs everywhere.
std::string proposed_workflow(const std::string& name, const std::vector<std::string>& command,
                              const std::string& output);

}  // namespace tally

// A scheduler's record of a workpackage's job.
#pragma once

#include <optional>
#include <string>

namespace tally {

struct JobUse {
  std::string nodes;              // on which it ran: "node[1-4]"; empty: unknown
  std::optional<double> seconds;  // from its start to its end
  std::optional<double> joules;   // of its nodes
  std::optional<double> max_rss;  // MiB: the largest resident memory of one of its tasks
  // Why numbers are missing, a clause. Empty: the job's record is complete, and those that are
  // missing are not measured here.
  std::string why;
};

}  // namespace tally

// MLPerf's log of a training (--mllog): what ran, when the clock started and stopped, and each
// evaluation, as lines ":::MLLOG {...}" that its compliance checker reads
// (https://github.com/mlcommons/logging). No result of it is an MLPerf result: docs/evidence.md.
#pragma once

#include <fstream>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "src/config/config.h"
#include "src/measure/record.h"
#include "src/train/step/progress.h"

namespace tally::train {

class MlLog {
 public:
  // Milliseconds since 1970.
  using Now = std::function<int64_t()>;
  // Replaces the file, and begins the initialization. Throws std::runtime_error.
  explicit MlLog(const Config& config, Now now = system_now);
  static int64_t system_now();

  // Logs the settings, and ends the initialization: the clock of the training starts.
  void start(const RunFacts& facts, const Progress& done);
  // Called around each evaluation on validation data.
  void evaluating(const Progress& done);
  void evaluated(const Progress& done, double loss);
  // The clock stops. `success`: the target is reached, or every step done where there is none.
  void stop(const Progress& done, bool success);
  // Why the log is not complete; empty where it is.
  std::string failure() const;

 private:
  using Json = nlohmann::ordered_json;
  void point(const std::string& key, const Json& value);
  void write(const char* type, const std::string& key, const Json& value, const Json& metadata);
  void log_settings(const RunFacts& facts);
  void log_optimizer();
  void log_precision();
  // The place of a line in the training: MLPerf counts in samples.
  static Json place(const Progress& done);

  const Config& config_;
  const Now now_;
  std::ofstream file_;
  std::set<std::string> written_;  // keys
  bool in_block_ = false, started_ = false;
};

}  // namespace tally::train

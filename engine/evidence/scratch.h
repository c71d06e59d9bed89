// A folder for a while, below $TMPDIR or /tmp. It is removed with all that is in it.
#pragma once

#include <string>

#include "engine/base/status.h"

namespace tally {

class Scratch {
 public:
  Scratch() = default;
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  Status make();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tally

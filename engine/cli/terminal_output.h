// What a person sees of a run on standard error, and of its commands on standard output.
#pragma once

#include "engine/execute/status_line.h"

namespace tally {

class TerminalOutput final : public StatusOutput {
 public:
  bool is_terminal() const override;
  int columns() const override;
  int rows() const override;
  void write(const std::string& text) override;
  void show(const char* bytes, size_t count) override;
};

}  // namespace tally

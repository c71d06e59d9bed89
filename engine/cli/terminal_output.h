// The text that a person sees of a run on standard error, and of its commands on standard output;
// the question that a person is asked at ctrl-C.
#pragma once

#include <functional>
#include <string>

#include "engine/execute/execute.h"
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

// The function for Parts::on_interrupt. It is empty without a terminal; the jobs are then left
// in the queue.
std::function<Parts::OnInterrupt(size_t, const std::function<bool()>&)> interrupt_question();

}  // namespace tally

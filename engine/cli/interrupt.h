// What becomes of a run's jobs at ctrl-C: asked once, on a terminal.
#pragma once

#include <functional>

#include "engine/execute/execute.h"

namespace tally {

// For RunOptions::on_interrupt; nothing where there is no terminal to ask at: the jobs are left.
std::function<RunOptions::OnInterrupt(size_t, const std::function<bool()>&)> interrupt_question();

}  // namespace tally

// Decides at ctrl-C what happens to a run's jobs. Asks once, on a terminal.
#pragma once

#include <functional>

#include "engine/execute/execute.h"

namespace tally {

// The function for Parts::on_interrupt. It is empty without a terminal; the jobs are then left
// in the queue.
std::function<Parts::OnInterrupt(size_t, const std::function<bool()>&)> interrupt_question();

}  // namespace tally

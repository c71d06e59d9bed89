#include "engine/plan/workpackage.h"

namespace tally {

const char* state_name(State state) {
  switch (state) {
    case State::pending:
      return "pending";
    case State::running:
      return "running";
    case State::waiting:
      return "waiting";
    case State::done:
      return "done";
    case State::failed:
      return "failed";
    case State::expected:
      return "expected";
    case State::lost:
      return "lost";
  }
  return "unknown";
}

}  // namespace tally

#include "src/train/stop.h"

#include <array>
#include <csignal>

namespace tally::train {
namespace {

constexpr std::array<int, 4> caught{SIGTERM, SIGINT, SIGUSR1, SIGUSR2};
std::array<struct sigaction, caught.size()> previous;
// A signal handler can reach nothing but a global.
volatile std::sig_atomic_t first_signal = 0;

void remember(int signal) {
  if (first_signal == 0) first_signal = signal;
}

}  // namespace

StopSignals::StopSignals() {
  first_signal = 0;
  for (size_t i = 0; i < caught.size(); ++i) {
    struct sigaction action {};
    action.sa_handler = remember;
    sigemptyset(&action.sa_mask);
    // Reads and waits go on; only the second ctrl-C is the default's.
    action.sa_flags = SA_RESTART | (caught[i] == SIGINT ? static_cast<int>(SA_RESETHAND) : 0);
    sigaction(caught[i], &action, &previous[i]);
  }
}

StopSignals::~StopSignals() {
  for (size_t i = 0; i < caught.size(); ++i) sigaction(caught[i], &previous[i], nullptr);
}

int StopSignals::received() {
  return first_signal;
}

std::string signal_name(int signal) {
  switch (signal) {
    case SIGTERM:
      return "SIGTERM";
    case SIGINT:
      return "SIGINT";
    case SIGUSR1:
      return "SIGUSR1";
    case SIGUSR2:
      return "SIGUSR2";
  }
  return "signal " + std::to_string(signal);
}

}  // namespace tally::train

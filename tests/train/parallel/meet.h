// How the ranks of a test meet. A failure of one ends all.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "src/parallel/control/launch.h"
#include "src/parallel/control/rendezvous.h"

inline std::unique_ptr<tally::train::Rendezvous> meet(const tally::train::Launch& launch,
                                                      const char* program) {
  tally::train::RendezvousOptions o;
  o.rank = launch.rank;
  o.size = launch.size;
  o.address = launch.address;
  o.port = launch.port;
  o.listening_fd = launch.listening_fd;
  o.host = "test";
  o.run = launch.run;
  o.token = launch.token;
  o.timeout_seconds = 60;
  return tally::train::Rendezvous::meet(o, [program](const tally::train::Failure& f) {
    fmt::print(stderr, "{}: rank {}: {}\n", program, f.rank, f.message);
    _exit(1);
  });
}

// Messages between neighbouring stages of a pipeline: residual streams to the next stage, their
// gradients back. The stages form a ring, since the last stage's chunk of layers may be followed by
// a chunk of the first.
#pragma once

#include <memory>
#include <vector>

#include "src/parallel/collectives/communicator.h"

namespace tally::train {

class PipelineLinks {
 public:
  // `pipeline`: its ranks are the stages; it outlives this. Collective over them. Each link and
  // each direction has a communicator of its own, so that no message waits for one that it has
  // nothing to do with, and one message has passed through each: NCCL connects two ranks at their
  // first, and two that both send first would wait for each other.
  PipelineLinks(Communicator& pipeline, Stream& s);

  // Enqueues; later work on `s` sees what was received.
  void receive_input(Stream& s, const Tensor& t) { back_.input->receive(s, t, 0); }
  void receive_gradient(Stream& s, const Tensor& t) { next_.gradient->receive(s, t, 0); }
  // The sending overlaps with what is enqueued later; `t` must not change before the next
  // wait_...().
  void start_send_output(Stream& s, const Tensor& t) { next_.input->start_send(s, t, 1); }
  void start_send_gradient(Stream& s, const Tensor& t) { back_.gradient->start_send(s, t, 1); }
  void wait_for_output(Stream& s) { next_.input->wait(s); }
  void wait_for_gradient(Stream& s) { back_.gradient->wait(s); }

 private:
  // Rank 0 sends, rank 1 receives: see the .cc for which is which.
  struct Link {
    Communicator* input = nullptr;
    Communicator* gradient = nullptr;
  };
  std::vector<std::unique_ptr<Communicator>> made_;
  Link back_, next_;  // to the stage before and to the next one
};

}  // namespace tally::train

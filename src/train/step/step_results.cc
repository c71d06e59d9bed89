#include "src/train/step/step_results.h"

#include <cmath>

namespace tally::train {

StepResults::StepResults(Stream& stream, int capacity)
    : stream_(stream),
      capacity_(capacity),
      staging_(stream, static_cast<size_t>(capacity) * sizeof(StepState)),
      states_(stream, static_cast<size_t>(capacity) * sizeof(StepState)),
      events_(StreamEvents::make(stream, capacity + 1)),
      samples_(static_cast<size_t>(capacity)) {}

int StepResults::begin(int64_t samples) {
  const int slot = pending_;
  if (slot == 0) events_->record(0);
  if (slot >= run_ahead) {
    done_ = slot - run_ahead + 1;
    events_->wait(done_);
  }
  samples_[static_cast<size_t>(slot)] = samples;
  return slot;
}

void StepResults::end(const StepState* state) {
  stream_.copy(states_.as<StepState>() + pending_, state, sizeof(StepState));
  events_->record(++pending_);
}

void StepResults::wait() {
  stream_.synchronize();
  done_ = pending_;
}

std::vector<Step> StepResults::take(int64_t first) {
  std::vector<Step> steps(static_cast<size_t>(pending_));
  for (int k = 0; k < pending_; ++k) {
    Step& step = steps[static_cast<size_t>(k)];
    step.iteration = first + k;
    step.seconds = events_->seconds(k, k + 1);
    step.unlabelled = !state(k).has_labels();
    step.loss = step.unlabelled ? std::nan("") : state(k).loss();
    step.grad_norm = state(k).grad_norm;
    step.learning_rate = state(k).learning_rate;
    step.loss_scale = state(k).step_loss_scale;
    step.skipped = state(k).found_inf != 0;
    step.samples = samples_[static_cast<size_t>(k)];
  }
  pending_ = done_ = 0;
  return steps;
}

}  // namespace tally::train

// Micro batches of encoders' samples in training order, made ahead of time by threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/data/encoders/encoder_samples.h"
#include "src/data/tokens/batches.h"

namespace tally::train {

// The order is that of BatchLoader (batches.h). It depends on the source and the consumed samples
// alone, and on the number of threads not at all. order.sequence is the length of rows; 0: each
// micro batch has that of its longest sample.
class EncoderLoader {
 public:
  // `pad`: the token that fills rows. `ahead`: micro batches made in advance.
  EncoderLoader(std::shared_ptr<const EncoderSource> source, const BatchOrder& order, int32_t pad,
                int workers = 1, int ahead = 8);
  ~EncoderLoader();
  EncoderLoader(const EncoderLoader&) = delete;
  EncoderLoader& operator=(const EncoderLoader&) = delete;

  // The next micro batch, valid until the next call; waits for it when needed. Rethrows what the
  // source threw for it.
  const EncoderBatch& next();
  // The micro batch that next() returns after `number` further calls; likewise. Throws
  // std::invalid_argument where number >= `ahead`.
  const EncoderBatch& peek(int64_t number);
  // Seconds spent waiting in next() so far: the time that training lost to its data.
  double waited_seconds() const { return waited_seconds_; }

 private:
  struct Slot {
    EncoderBatch batch;
    std::exception_ptr error;
    bool made = false;
  };
  void produce();
  const EncoderBatch& wait_for(Slot* wanted, std::unique_lock<std::mutex>* lock);
  Slot& slot(int64_t number) { return slots_[static_cast<size_t>(number) % slots_.size()]; }

  std::shared_ptr<const EncoderSource> source_;
  BatchOrder order_;
  int32_t pad_;
  std::vector<Slot> slots_;
  std::mutex mutex_;
  std::condition_variable made_more_, taken_more_;
  int64_t begun_ = 0;  // micro batches that a thread makes or has made
  int64_t taken_ = 0;  // calls of next()
  bool stop_ = false;
  double waited_seconds_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace tally::train

// Micro batches in training order, made ahead of time by a thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "src/data/tokens/dataset.h"

namespace tally::train {

// A micro batch in host memory: row major [micro_batch, sequence]. Targets are the ids one position
// on, or -1 where they do not count (DocumentEnds::mask_loss).
struct HostBatch {
  const int32_t* ids = nullptr;
  const int32_t* targets = nullptr;
  // Null unless DocumentEnds asks for them; cu_seqlens[micro_batch * sequence + 1].
  const int32_t* positions = nullptr;
  const int32_t* cu_seqlens = nullptr;
  int64_t counted = -1;  // targets that count; -1: all
};

struct BatchOrder {
  int64_t micro_batch = 1, sequence = 1;
  int data_parallel_rank = 0, data_parallel_size = 1;
  // Samples that all ranks together have consumed before: where to resume.
  int64_t consumed_samples = 0;
};

// The order is Megatron's: each round of micro_batch * data_parallel_size consecutive samples gives
// every rank its micro_batch of them; micro batch k of a step is the step's round k. It depends on
// nothing but the sample source and the consumed samples.
class BatchLoader {
 public:
  // Memory for the batches; a GPU's loader passes pinned memory. Both may be empty.
  struct Memory {
    std::function<void*(size_t bytes)> allocate;
    std::function<void(void*)> release;
  };
  // `ahead`: micro batches made in advance. `hold`: a batch stays valid during this many further
  // calls of next(), for copies to a device that are still under way.
  BatchLoader(std::shared_ptr<const SampleSource> source, const BatchOrder& order,
              Memory memory = {}, int ahead = 8, int hold = 1);
  ~BatchLoader();
  BatchLoader(const BatchLoader&) = delete;
  BatchLoader& operator=(const BatchLoader&) = delete;

  // The next micro batch; waits for it when needed. Rethrows what the source threw.
  HostBatch next();
  // Targets that count in the next `batches` micro batches, which it waits for; likewise. Throws
  // std::invalid_argument for more than `ahead`.
  int64_t counted(int64_t batches);
  // Seconds spent waiting in next() so far: the time that training lost to its data.
  double waited_seconds() const { return waited_seconds_; }

 private:
  void produce();
  void fill(int64_t number);
  void wait_for(int64_t number, std::unique_lock<std::mutex>* lock);
  int32_t* slot(int64_t number) const { return buffer_ + number % slots_ * slot_numbers_; }
  HostBatch batch(int64_t number) const;

  std::shared_ptr<const SampleSource> source_;
  BatchOrder order_;
  Memory memory_;
  const DocumentEnds ends_;
  int64_t slots_, hold_, slot_numbers_;
  int32_t* buffer_ = nullptr;
  std::vector<int32_t> row_;
  std::vector<int64_t> counted_;  // each slot's
  std::mutex mutex_;
  std::condition_variable made_more_, taken_more_;
  int64_t made_ = 0, taken_ = 0;  // micro batches
  bool stop_ = false;
  std::exception_ptr error_;
  double waited_seconds_ = 0;
  std::thread thread_;
};

}  // namespace tally::train

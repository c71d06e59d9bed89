#include "src/data/encoders/encoder_loader.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>

namespace tally::train {

EncoderLoader::EncoderLoader(std::shared_ptr<const EncoderSource> source, const BatchOrder& order,
                             int32_t pad, int workers, int ahead)
    : source_(std::move(source)),
      order_(order),
      pad_(pad),
      // One is in use, and every thread makes one.
      slots_(static_cast<size_t>(std::max({ahead, workers, 1}) + 1)) {
  if (order_.micro_batch < 1 || order_.sequence < 0 || order_.data_parallel_size < 1 ||
      order_.data_parallel_rank < 0 || order_.data_parallel_rank >= order_.data_parallel_size ||
      order_.consumed_samples < 0) {
    throw std::invalid_argument("EncoderLoader: the order of batches is not possible");
  }
  for (int i = 0; i < std::max(workers, 1); ++i) threads_.emplace_back([this] { produce(); });
}

EncoderLoader::~EncoderLoader() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  taken_more_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void EncoderLoader::produce() {
  for (;;) {
    int64_t number = 0;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      // The batch that next() returned last, number taken_ - 1, is still in use.
      taken_more_.wait(lock, [&] {
        return stop_ ||
               begun_ - std::max<int64_t>(taken_ - 1, 0) < static_cast<int64_t>(slots_.size());
      });
      if (stop_) return;
      number = begun_++;
    }
    Slot& into = slot(number);
    std::exception_ptr error;
    try {
      const int64_t first =
          order_.consumed_samples +
          order_.micro_batch * (number * order_.data_parallel_size + order_.data_parallel_rank);
      fill_batch(*source_, first, order_.micro_batch, order_.sequence, pad_, &into.batch);
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      into.error = error;
      into.made = true;
    }
    made_more_.notify_all();
  }
}

const EncoderBatch& EncoderLoader::wait_for(Slot* wanted, std::unique_lock<std::mutex>* lock) {
  if (!wanted->made) {
    const auto begin = std::chrono::steady_clock::now();
    made_more_.wait(*lock, [&] { return wanted->made; });
    waited_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  if (wanted->error) std::rethrow_exception(wanted->error);
  return wanted->batch;
}

const EncoderBatch& EncoderLoader::next() {
  std::unique_lock<std::mutex> lock(mutex_);
  if (taken_ > 0) slot(taken_ - 1).made = false;
  Slot& wanted = slot(taken_++);
  taken_more_.notify_all();
  return wait_for(&wanted, &lock);
}

const EncoderBatch& EncoderLoader::peek(int64_t number) {
  if (number + 1 >= static_cast<int64_t>(slots_.size()))
    throw std::invalid_argument("EncoderLoader: fewer micro batches are made ahead");
  std::unique_lock<std::mutex> lock(mutex_);
  return wait_for(&slot(taken_ + number), &lock);
}

}  // namespace tally::train

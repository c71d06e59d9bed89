#include "src/data/tokens/batches.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

#include "src/data/tokens/documents.h"

namespace tally::train {

BatchLoader::BatchLoader(std::shared_ptr<const SampleSource> source, const BatchOrder& order,
                         Memory memory, int ahead, int hold)
    : source_(std::move(source)),
      order_(order),
      memory_(std::move(memory)),
      ends_(source_->document_ends()),
      slots_(std::max(ahead, 1) + std::max(hold, 0) + 1),
      hold_(std::max(hold, 0)) {
  if (order_.micro_batch < 1 || order_.sequence < 1 || order_.data_parallel_size < 1 ||
      order_.data_parallel_rank < 0 || order_.data_parallel_rank >= order_.data_parallel_size ||
      order_.consumed_samples < 0) {
    throw std::invalid_argument("BatchLoader: the order of batches is not possible");
  }
  if (!memory_.allocate) {
    memory_.allocate = [](size_t bytes) { return std::malloc(bytes); };
    memory_.release = [](void* data) { std::free(data); };
  }
  const int64_t tokens = order_.micro_batch * order_.sequence;
  slot_numbers_ =
      (ends_.reset_positions ? 3 : 2) * tokens + (ends_.reset_attention ? tokens + 1 : 0);
  buffer_ = static_cast<int32_t*>(
      memory_.allocate(static_cast<size_t>(slots_ * slot_numbers_) * sizeof(int32_t)));
  if (buffer_ == nullptr) throw std::bad_alloc();
  row_.resize(static_cast<size_t>(order_.sequence) + 1);
  counted_.assign(static_cast<size_t>(slots_), -1);
  thread_ = std::thread([this] { produce(); });
}

BatchLoader::~BatchLoader() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  taken_more_.notify_all();
  thread_.join();
  if (memory_.release) memory_.release(buffer_);
}

HostBatch BatchLoader::batch(int64_t number) const {
  const int64_t tokens = order_.micro_batch * order_.sequence;
  HostBatch b;
  b.ids = slot(number);
  b.targets = b.ids + tokens;
  const int32_t* end = b.targets + tokens;
  if (ends_.reset_positions) {
    b.positions = end;
    end += tokens;
  }
  if (ends_.reset_attention) b.cu_seqlens = end;
  b.counted = counted_[static_cast<size_t>(number % slots_)];
  return b;
}

void BatchLoader::fill(int64_t number) {
  int32_t* ids = slot(number);
  int32_t* targets = ids + order_.micro_batch * order_.sequence;
  const int64_t first =
      order_.consumed_samples +
      order_.micro_batch * (number * order_.data_parallel_size + order_.data_parallel_rank);
  const size_t bytes = static_cast<size_t>(order_.sequence) * sizeof(int32_t);
  for (int64_t b = 0; b < order_.micro_batch; ++b) {
    source_->sample(first + b, row_.data());
    std::memcpy(ids + b * order_.sequence, row_.data(), bytes);
    std::memcpy(targets + b * order_.sequence, row_.data() + 1, bytes);
  }
  if (!ends_.any()) return;
  const HostBatch made = batch(number);
  describe_documents(ids, order_.micro_batch, order_.sequence, ends_.eod,
                     const_cast<int32_t*>(made.positions), const_cast<int32_t*>(made.cu_seqlens));
  if (!ends_.mask_loss) return;
  counted_[static_cast<size_t>(number % slots_)] =
      mask_document_ends(ids, order_.micro_batch * order_.sequence, ends_.eod, targets);
}

void BatchLoader::produce() {
  for (int64_t number = 0;; ++number) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      taken_more_.wait(lock, [&] { return stop_ || number - (taken_ - hold_ - 1) < slots_; });
      if (stop_) return;
    }
    std::exception_ptr error;
    try {
      fill(number);
    } catch (...) {
      error = std::current_exception();
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (error) {
        error_ = error;
      } else {
        made_ = number + 1;
      }
    }
    made_more_.notify_all();
    if (error) return;
  }
}

void BatchLoader::wait_for(int64_t number, std::unique_lock<std::mutex>* lock) {
  if (made_ <= number && !error_) {
    const auto begin = std::chrono::steady_clock::now();
    made_more_.wait(*lock, [&] { return made_ > number || error_; });
    waited_seconds_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  if (made_ <= number) std::rethrow_exception(error_);
}

int64_t BatchLoader::counted(int64_t batches) {
  if (batches >= slots_ - hold_)
    throw std::invalid_argument("BatchLoader: fewer micro batches are made ahead");
  std::unique_lock<std::mutex> lock(mutex_);
  int64_t sum = 0;
  for (int64_t number = taken_; number < taken_ + batches; ++number) {
    wait_for(number, &lock);
    const int64_t of_batch = counted_[static_cast<size_t>(number % slots_)];
    sum += of_batch < 0 ? order_.micro_batch * order_.sequence : of_batch;
  }
  return sum;
}

HostBatch BatchLoader::next() {
  std::unique_lock<std::mutex> lock(mutex_);
  const int64_t number = taken_;
  wait_for(number, &lock);
  taken_ = number + 1;
  lock.unlock();
  taken_more_.notify_all();
  return batch(number);
}

}  // namespace tally::train

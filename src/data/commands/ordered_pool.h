// Worker threads whose results come back in the order of the work.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace tally::train {

// push() and drain() belong to one thread, which also receives the results; at most `limit` pieces
// of work are under way, so memory is bounded. An exception of a worker comes out of push() or
// drain().
template <typename In, typename Out>
class OrderedPool {
 public:
  using Work = std::function<Out(In&&)>;
  // `make_work` is called once in each worker, so that each has its own scratch memory.
  OrderedPool(int workers, std::function<Work()> make_work, std::function<void(Out&&)> receive)
      : make_work_(std::move(make_work)),
        receive_(std::move(receive)),
        limit_(static_cast<size_t>(workers) * 2 + 2) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { run(); });
  }
  ~OrderedPool() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    work_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  OrderedPool(const OrderedPool&) = delete;
  OrderedPool& operator=(const OrderedPool&) = delete;

  void push(In&& in) {
    auto job = std::make_shared<Job>();
    job->in = std::move(in);
    order_.push_back(job);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      todo_.push_back(std::move(job));
    }
    work_.notify_one();
    receive_until(limit_);
  }
  void drain() { receive_until(0); }

 private:
  struct Job {
    In in;
    Out out;
    bool done = false;
    std::exception_ptr error;
  };

  void receive_until(size_t left) {
    while (order_.size() > left) {
      std::shared_ptr<Job> job = order_.front();
      {
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [&] { return job->done; });
      }
      order_.pop_front();
      if (job->error) std::rethrow_exception(job->error);
      receive_(std::move(job->out));
    }
  }

  void run() {
    const Work work = make_work_();
    for (;;) {
      std::shared_ptr<Job> job;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        work_.wait(lock, [&] { return stop_ || !todo_.empty(); });
        if (stop_) return;
        job = std::move(todo_.front());
        todo_.pop_front();
      }
      try {
        job->out = work(std::move(job->in));
      } catch (...) {
        job->error = std::current_exception();
      }
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        job->done = true;
      }
      done_.notify_one();
    }
  }

  std::function<Work()> make_work_;
  std::function<void(Out&&)> receive_;
  size_t limit_;
  std::deque<std::shared_ptr<Job>> order_;  // only the owner's thread uses it
  std::mutex mutex_;
  std::condition_variable work_, done_;
  std::deque<std::shared_ptr<Job>> todo_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace tally::train

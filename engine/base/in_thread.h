// Work in another thread, where the host has one to give.
#pragma once

#include <future>
#include <system_error>
#include <type_traits>
#include <utility>

namespace tally {

// Starts `work` in a thread of its own. If no thread is to be had, the work is done when its result
// is asked for. The objects that `work` refers to must outlive the result.
template <typename Work>
std::future<std::invoke_result_t<Work>> in_thread(Work work) {
  try {
    return std::async(std::launch::async, work);
  } catch (const std::system_error&) {
    return std::async(std::launch::deferred, std::move(work));
  }
}

}  // namespace tally

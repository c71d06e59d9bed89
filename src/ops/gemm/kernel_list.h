// Kernels of one kind that a build may lack: the file that makes them lists them, before main(),
// and programs without that file have an empty list.
#pragma once

namespace tally::train::cuda {

template <typename Kernel>
struct KernelList {
  const Kernel* first = nullptr;
  int count = 0;

  KernelList() = default;
  template <int N>
  KernelList(const Kernel (&kernels)[N]) : first(kernels), count(N) {}
  const Kernel* begin() const { return first; }
  const Kernel* end() const { return first + count; }
};

}  // namespace tally::train::cuda

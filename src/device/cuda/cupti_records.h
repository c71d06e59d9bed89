// CUPTI's activity records: kernels, copies and fills, and the buffers that they come in. For the
// files that include CUPTI's headers.
#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace tally::train::cuda {

inline constexpr CUpti_ActivityKind activity_kinds[] = {
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY2,
    CUPTI_ACTIVITY_KIND_MEMSET};

inline const char* copy_name(unsigned kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_MEMCPY_KIND_HTOD:
      return "[copy to device]";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOH:
      return "[copy to host]";
    case CUPTI_ACTIVITY_MEMCPY_KIND_DTOD:
      return "[copy within device]";
    case CUPTI_ACTIVITY_MEMCPY_KIND_PTOP:
      return "[copy to peer]";
    default:
      return "[copy]";
  }
}

// Calls kernel(record), or transfer(name, record) for a copy or a fill.
template <typename Kernel, typename Transfer>
void visit_activity(const CUpti_Activity* record, const Kernel& kernel, const Transfer& transfer) {
  switch (record->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
      return kernel(*reinterpret_cast<const CUpti_ActivityKernel10*>(record));
    case CUPTI_ACTIVITY_KIND_MEMCPY: {
      const auto& copy = *reinterpret_cast<const CUpti_ActivityMemcpy6*>(record);
      return transfer(copy_name(copy.copyKind), copy);
    }
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return transfer("[copy to peer]",
                      *reinterpret_cast<const CUpti_ActivityMemcpyPtoP4*>(record));
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return transfer("[fill]", *reinterpret_cast<const CUpti_ActivityMemset4*>(record));
    default:
      return;
  }
}

// Gives CUPTI a buffer of its own, which the taker frees.
inline void CUPTIAPI give_buffer(uint8_t** buffer, size_t* size, size_t* most_records) {
  constexpr size_t bytes = size_t{4} << 20, alignment = 8;
  *buffer = static_cast<uint8_t*>(std::aligned_alloc(alignment, bytes));
  *size = *buffer ? bytes : 0;
  *most_records = 0;  // 0: as many as fit
}

}  // namespace tally::train::cuda

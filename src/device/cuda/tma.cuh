// Hopper's copy engine (TMA) and the mbarriers in shared memory that count what it has copied. All
// addresses of shared memory are those of shared_address().
#pragma once

#include <cuda.h>

#include <cstdint>

#include "src/device/cuda/ptx.cuh"

namespace tally::train::cuda {

__device__ inline void barrier_init(uint32_t barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ inline void barrier_expect(uint32_t barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
}
__device__ inline void barrier_arrive(uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Orders this thread's accesses to shared memory before later ones by the copy engine and wgmma,
// which use another proxy.
__device__ inline void fence_async_proxy() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ inline void barrier_wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n"
      ".reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra finished;\n"
      "bra again;\n"
      "finished:\n"
      "}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}
__device__ inline void copy_boxes(uint32_t to, const CUtensorMap& map, int inner, int box,
                                  uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3, %4}], [%5];" ::"r"(to),
      "l"(&map), "r"(0), "r"(inner), "r"(box), "r"(barrier)
      : "memory");
}
__device__ inline void copy_box(uint32_t to, const CUtensorMap& map, int x, int y,
                                uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, "
      "%3}], [%4];" ::"r"(to),
      "l"(&map), "r"(x), "r"(y), "r"(barrier)
      : "memory");
}
// A multiple of 16 bytes, both ends aligned to 16.
__device__ inline void copy_bytes(uint32_t to, const void* from, int bytes, uint32_t barrier) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(to),
      "l"(from), "r"(bytes), "r"(barrier)
      : "memory");
}
// Copies a box from shared to global memory. The thread that calls it must wait before the source
// is overwritten (wait_stores_read) and before it exits (wait_stored).
__device__ inline void store_box(const CUtensorMap& map, int x, int y, uint32_t from) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
      "cp.async.bulk.commit_group;" ::"l"(&map),
      "r"(x), "r"(y), "r"(from)
      : "memory");
}
__device__ inline void wait_stores_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
__device__ inline void wait_stored() {
  asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
// Makes initialized barriers visible to the copy engine.
__device__ inline void fence_barrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

}  // namespace tally::train::cuda

#include "src/ops/column_sums.cuh"

namespace tally::train::cuda {
namespace {

// A block of 32 x 32 threads adds up 32 columns of one array of parts (blockIdx.y).
template <typename A>
__global__ void __launch_bounds__(1024)
    add_parts_kernel(const A* parts, int64_t count, int64_t elements, A* first, A* second,
                     A* third) {
  __shared__ A shared[32][33];
  parts += blockIdx.y * count * elements;
  A* out = blockIdx.y == 0 ? first : blockIdx.y == 1 ? second : third;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  A sum = 0;
  if (column < elements) {
#pragma unroll 8
    for (int64_t p = threadIdx.y; p < count; p += 32) sum += parts[p * elements + column];
  }
  shared[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  sum = warp_sum(shared[threadIdx.x][threadIdx.y]);
  const int64_t target = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.y;
  if (threadIdx.x == 0 && target < elements) out[target] += sum;
}

}  // namespace

void column_sums(CudaStream& s, const In& dy, int64_t first, const Out& db) {
  sum_by_type<NoFactor>(s, __func__, {dy, {}, {}, db, first, db.numel(), {}});
}

void add_shares(CudaStream& s, const Shares& shares, const Out& first, const Out& second,
                const Out& third) {
  const auto [parts, count, elements] = shares;
  if (elements == 0 || count == 0) return;
  const unsigned arrays = third.defined() ? 3 : second.defined() ? 2 : 1;
  const dim3 grid(static_cast<unsigned>(divide_up(elements, 32)), arrays);
  if (first.dtype == DType::f64) {
    add_parts_kernel<<<grid, dim3(32, 32), 0, s.stream()>>>(
        static_cast<const double*>(parts), count, elements, first.as<double>(), second.as<double>(),
        third.as<double>());
  } else {
    add_parts_kernel<<<grid, dim3(32, 32), 0, s.stream()>>>(static_cast<const float*>(parts), count,
                                                            elements, first.as<float>(),
                                                            second.as<float>(), third.as<float>());
  }
  CUDA_LAUNCHED();
}

}  // namespace tally::train::cuda

// The small tables in device memory that cuDNN's kernels read beside the operands.
#include "src/device/cuda/kernel.cuh"
#include "src/ops/attention/library/cudnn.h"

namespace tally::train::cuda {
namespace {

__global__ void seed_kernel(int64_t* to, DropoutSeed seed) {
  to[0] = static_cast<int64_t>(seed.get());
  to[1] = 0;
}

constexpr unsigned threads = 256;

// Entry i of n + 1. `known`: entries of cu_seqlens; what lies beyond is its last.
__global__ void documents_kernel(DocumentTable table, const int32_t* cu_seqlens, int64_t known,
                                 int64_t n, int64_t packed_row, int64_t heads, int64_t head_dim) {
  const int64_t i = int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i > n) return;
  const int64_t begin = cu_seqlens[min(i, known - 1)];
  table.packed[i] = begin * packed_row;
  table.plain[i] = begin * heads * head_dim;
  table.stats[i] = begin * heads;
  if (i < n) table.lengths[i] = cu_seqlens[min(i + 1, known - 1)] - static_cast<int32_t>(begin);
}

}  // namespace

int64_t document_table_bytes(const AttentionShape& shape) {
  return cudnn_document_bytes(shape);
}

DocumentTable write_documents(CudaStream& s, const AttentionShape& shape, const In& cu_seqlens,
                              void* to) {
  const int64_t n = shape.most_documents;
  DocumentTable table;
  table.packed = static_cast<int64_t*>(to);
  table.plain = table.packed + n + 1;
  table.stats = table.plain + n + 1;
  table.lengths = reinterpret_cast<int32_t*>(table.stats + n + 1);
  documents_kernel<<<static_cast<unsigned>(divide_up(n + 1, int64_t{threads})), threads, 0,
                     s.stream()>>>(table, cu_seqlens.as<int32_t>(), cu_seqlens.dim(0), n,
                                   shape.row(), shape.heads, shape.head_dim);
  CUDA_LAUNCHED();
  return table;
}

void write_seed(CudaStream& s, void* to, DropoutSeed seed) {
  seed_kernel<<<1, 1, 0, s.stream()>>>(static_cast<int64_t*>(to), seed);
  CUDA_LAUNCHED();
}

}  // namespace tally::train::cuda

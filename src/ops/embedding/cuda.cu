// Token and position embeddings. The backward pass adds the gradient's rows of each table row in a
// fixed order: they are sorted by table row (stable radix sort) and cut into chunks of equal
// length. One block sums a chunk. A second kernel finishes table rows whose sums span chunks.
#include <algorithm>
#include <cub/device/device_radix_sort.cuh>

#include "src/device/cuda/dropout.cuh"
#include "src/device/cuda/kernel.cuh"
#include "src/ops/embedding/embedding.h"

namespace tally::train::cuda {
namespace {

// The rows of the vocabulary that a table holds.
struct Rows {
  int32_t first, count;
  // A negative id has no row in this table.
  __device__ inline int32_t of(int32_t id) const {
    const int32_t row = id - first;
    return row < count ? row : -1;
  }
};

template <typename T, int N>
__global__ void embedding_kernel(const int32_t* ids, const int32_t* positions, const T* wte,
                                 const T* wpe, T* out, int64_t tokens, int64_t length,
                                 int64_t columns, Rows rows, Dropout dropout) {
  dropout.resolve();
  const int64_t vectors = columns / N;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= tokens * vectors) return;
  const int64_t token = i / vectors, column = i % vectors * N;
  Acc<T> x[N] = {};
  const int32_t row = rows.of(ids[token]);
  if (row >= 0) {
    const Vector<T, N> w = load<T, N>(wte + row * columns + column);
#pragma unroll
    for (int k = 0; k < N; ++k) x[k] = widen(w.v[k]);
  }
  if (wpe) {
    const int64_t position = positions ? positions[token] : token % length;
    const Vector<T, N> p = load<T, N>(wpe + position * columns + column);
#pragma unroll
    for (int k = 0; k < N; ++k) x[k] += widen(p.v[k]);
  }
  if (dropout.active) dropout.apply<N>(static_cast<uint64_t>(token * columns + column), x);
  Vector<T, N> y;
#pragma unroll
  for (int k = 0; k < N; ++k) y.v[k] = narrow<T>(x[k]);
  store<T, N>(out + token * columns + column, y);
}

// dwpe[t] += sum over the batch of dout[b, t]
template <typename T, int N>
__global__ void position_kernel(const T* dout, Acc<T>* dwpe, int64_t batch, int64_t length,
                                int64_t columns, Dropout dropout) {
  dropout.resolve();
  const int64_t vectors = columns / N;
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= length * vectors) return;
  const int64_t at = i / vectors * columns + i % vectors * N;
  Acc<T> sum[N] = {};
#pragma unroll 4
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t from = b * length * columns + at;
    const Vector<T, N> g = load<T, N>(dout + from);
    Acc<T> x[N];
#pragma unroll
    for (int k = 0; k < N; ++k) x[k] = widen(g.v[k]);
    if (dropout.active) dropout.apply<N>(static_cast<uint64_t>(from), x);
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] += x[k];
  }
#pragma unroll
  for (int k = 0; k < N; ++k) dwpe[at + k] += sum[k];
}

__global__ void number_kernel(int32_t* order, int64_t count) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) order[i] = static_cast<int32_t>(i);
}

// Sums the sorted positions [first, last) of this chunk. Complete tokens go to dwte, the part of a
// token that began before the chunk to pieces[chunk, 0], and of one that ends after it to
// pieces[chunk, 1]. A chunk inside one token leaves piece 0 only.
template <typename T, int N>
__global__ void token_kernel(const int32_t* ids, const int32_t* order, const T* dout, Acc<T>* dwte,
                             Acc<T>* pieces, int64_t tokens, int64_t columns, int chunk, Rows rows,
                             Dropout dropout) {
  const int64_t column = (static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x) * N;
  if (column >= columns) return;
  dropout.resolve();
  const int64_t first = static_cast<int64_t>(blockIdx.x) * chunk;
  const int64_t last = first + chunk < tokens ? first + chunk : tokens;
  bool began_before = first > 0 && ids[first - 1] == ids[first];
  Acc<T> sum[N] = {};
#pragma unroll 4
  for (int64_t i = first; i < last; ++i) {
    const int64_t from = order[i] * columns + column;
    const Vector<T, N> g = load<T, N>(dout + from);
    Acc<T> x[N];
#pragma unroll
    for (int k = 0; k < N; ++k) x[k] = widen(g.v[k]);
    if (dropout.active) dropout.apply<N>(static_cast<uint64_t>(from), x);
#pragma unroll
    for (int k = 0; k < N; ++k) sum[k] += x[k];
    const bool ends_here = i + 1 >= tokens || ids[i + 1] != ids[i];
    if (!ends_here && i + 1 < last) continue;
    const int32_t row = rows.of(ids[i]);
    Acc<T>* target = dwte + row * columns + column;
    if (began_before) {
      target = pieces + (2 * static_cast<int64_t>(blockIdx.x)) * columns + column;
    } else if (!ends_here) {
      target = pieces + (2 * static_cast<int64_t>(blockIdx.x) + 1) * columns + column;
    } else if (row < 0) {
      target = nullptr;
    }
    const bool whole = !began_before && ends_here;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (target) target[k] = whole ? target[k] + sum[k] : sum[k];
      sum[k] = 0;
    }
    began_before = false;
  }
}

// Adds a token's pieces in order, in the chunk in which a token begins that ends in a later chunk.
template <typename A>
__global__ void join_kernel(const int32_t* ids, const A* pieces, A* dwte, int64_t tokens,
                            int64_t columns, int chunk, Rows rows) {
  const int64_t column = static_cast<int64_t>(blockIdx.y) * blockDim.x + threadIdx.x;
  const int64_t here = blockIdx.x;
  const int64_t next = (here + 1) * chunk;
  if (column >= columns || next >= tokens) return;
  const int32_t id = ids[next - 1];
  const int32_t row = rows.of(id);
  if (ids[next] != id || row < 0) return;  // no token spans this chunk's end
  // The whole chunk is in the middle of a token that began in an earlier chunk.
  if (here > 0 && ids[here * chunk - 1] == id) return;
  A sum = pieces[(2 * here + 1) * columns + column];
  for (int64_t c = here + 1; c * chunk < tokens && ids[c * chunk] == id; ++c) {
    sum += pieces[2 * c * columns + column];
  }
  dwte[row * columns + column] += sum;
}

struct Sorting {
  int32_t *ids, *order, *numbers;
  void* temporary;
  size_t temporary_bytes, bytes;
};

size_t padded(size_t bytes) {
  return (bytes + 255) / 256 * 256;
}

Sorting sorting_in(void* base, int64_t tokens, int bits, cudaStream_t stream) {
  Sorting p{};
  CUDA_CHECK(cub::DeviceRadixSort::SortPairs(
      nullptr, p.temporary_bytes, static_cast<const int32_t*>(nullptr),
      static_cast<int32_t*>(nullptr), static_cast<const int32_t*>(nullptr),
      static_cast<int32_t*>(nullptr), static_cast<int>(tokens), 0, bits, stream));
  const size_t list = padded(static_cast<size_t>(tokens) * sizeof(int32_t));
  auto* at = static_cast<char*>(base);
  p.ids = reinterpret_cast<int32_t*>(at);
  p.order = reinterpret_cast<int32_t*>(at + list);
  p.numbers = reinterpret_cast<int32_t*>(at + 2 * list);
  p.temporary = at + 3 * list;
  p.bytes = 3 * list + padded(p.temporary_bytes);
  return p;
}

int bits_for(int64_t vocabulary) {
  int bits = 1;
  while (bits < 31 && (int64_t{1} << bits) < vocabulary) ++bits;
  return bits;
}

struct TablePart {
  Out table;
  VocabularyPart part;
};
// Adds dout's rows, under the mask, to the rows of `table` that `ids` name.
template <typename T, int N>
void add_rows(CudaStream& s, const In& ids, const In& dout, const DropoutMask& mask,
              const TablePart& to) {
  using A = Acc<T>;
  const int64_t tokens = ids.numel(), columns = dout.dim(-1);
  const Rows rows{static_cast<int32_t>(to.part.first), static_cast<int32_t>(to.table.dim(0))};
  const int bits =
      bits_for(std::max(to.table.dim(0), to.part.whole));  // ids without a row are sorted, too
  const Sorting p = sorting_in(s.workspace(), tokens, bits, s.stream());
  const size_t room = s.workspace_bytes() > p.bytes ? s.workspace_bytes() - p.bytes : 0;
  // Short chunks balance the work; the pieces' memory limits how short.
  int chunk = 32;
  const auto piece_bytes = static_cast<size_t>(2 * columns) * sizeof(A);
  while (chunk<tokens&& static_cast<size_t>(divide_up(tokens, chunk)) * piece_bytes> room)
    chunk *= 2;
  const int64_t chunks = divide_up(tokens, chunk);
  if (static_cast<size_t>(chunks) * piece_bytes > room) {
    throw DeviceError(embedding_backward.name() + std::string(": ") + std::to_string(tokens) +
                      " tokens of " + std::to_string(columns) +
                      " columns do not fit the workspace");
  }
  A* pieces = reinterpret_cast<A*>(static_cast<char*>(s.workspace()) + p.bytes);
  number_kernel<<<static_cast<unsigned>(divide_up(tokens, 256)), 256, 0, s.stream()>>>(p.numbers,
                                                                                       tokens);
  CUDA_LAUNCHED();
  size_t temporary = p.temporary_bytes;
  CUDA_CHECK(cub::DeviceRadixSort::SortPairs(p.temporary, temporary, ids.as<const int32_t>(), p.ids,
                                             static_cast<const int32_t*>(p.numbers), p.order,
                                             static_cast<int>(tokens), 0, bits, s.stream()));
  const int64_t vectors = columns / N;
  const int threads = vectors >= 128 ? 128 : static_cast<int>(divide_up(vectors, 32) * 32);
  const dim3 grid(static_cast<unsigned>(chunks),
                  static_cast<unsigned>(divide_up(vectors, threads)));
  token_kernel<T, N><<<grid, static_cast<unsigned>(threads), 0, s.stream()>>>(
      p.ids, p.order, dout.as<T>(), to.table.as<A>(), pieces, tokens, columns, chunk, rows,
      Dropout(mask));
  CUDA_LAUNCHED();
  const dim3 join_grid(static_cast<unsigned>(chunks),
                       static_cast<unsigned>(divide_up(columns, 256)));
  join_kernel<A><<<join_grid, 256, 0, s.stream()>>>(p.ids, pieces, to.table.as<A>(), tokens,
                                                    columns, chunk, rows);
  CUDA_LAUNCHED();
}

// Calls run with a vector of T, or a single value where rows cannot be moved in vectors.
template <typename T, typename Run>
void with_width(bool vectors, const Run& run) {
  vectors ? run(std::integral_constant<int, vector_size<T>>{})
          : run(std::integral_constant<int, 1>{});
}

void forward(Stream& stream, EmbeddingIds in, EmbeddingTables tables, DropoutMask mask, Out out) {
  CudaStream& s = cuda_stream(stream);
  const In &wte = tables.wte, &wpe = tables.wpe;
  const int64_t tokens = in.ids.numel(), columns = wte.dim(1);
  if (tokens == 0) return;
  const Rows rows{static_cast<int32_t>(in.part.first), static_cast<int32_t>(wte.dim(0))};
  by_type(wte.dtype, embedding_forward.name(), [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(vectorizable<T>(columns, wte.as<T>(), wpe.as<T>(), out.as<T>()), [&](auto width) {
      constexpr int N = decltype(width)::value;
      const auto blocks = static_cast<unsigned>(divide_up(tokens * columns / N, 256));
      embedding_kernel<T, N><<<blocks, 256, 0, s.stream()>>>(
          in.ids.as<int32_t>(), in.positions.as<int32_t>(), wte.as<T>(), wpe.as<T>(), out.as<T>(),
          tokens, in.ids.dim(-1), columns, rows, Dropout(mask));
    });
    CUDA_LAUNCHED();
  });
}

void backward(Stream& stream, EmbeddingIds in, In dout, DropoutMask mask,
              EmbeddingGradients gradients) {
  CudaStream& s = cuda_stream(stream);
  const Out &dwte = gradients.dwte, &dwpe = gradients.dwpe;
  const int64_t tokens = in.ids.numel(), columns = dout.dim(-1);
  if (tokens == 0) return;
  const int64_t length = in.ids.dim(-1), batch = tokens / length;
  by_type(dout.dtype, embedding_backward.name(), [&](auto zero) {
    using T = decltype(zero);
    with_width<T>(vectorizable<T>(columns, dout.as<T>()), [&](auto width) {
      constexpr int N = decltype(width)::value;
      if (dwte.defined()) add_rows<T, N>(s, in.ids, dout, mask, {dwte, in.part});
      if (!dwpe.defined()) return;
      if (in.positions.defined()) return add_rows<T, N>(s, in.positions, dout, mask, {dwpe, {}});
      const auto blocks = static_cast<unsigned>(divide_up(length * (columns / N), 128));
      position_kernel<T, N><<<blocks, 128, 0, s.stream()>>>(dout.as<T>(), dwpe.as<Acc<T>>(), batch,
                                                            length, columns, Dropout(mask));
      CUDA_LAUNCHED();
    });
  });
}

const OnCuda versions[] = {{embedding_forward, forward}, {embedding_backward, backward}};

}  // namespace
}  // namespace tally::train::cuda

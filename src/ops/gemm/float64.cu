#include "src/ops/gemm/float64.h"

#include <algorithm>

#include "src/device/cuda/tensor_map.h"
#include "src/ops/gemm/float64_kernel.cuh"

namespace tally::train::cuda {
namespace {

// A tensor map of an operand of `outer` rows or columns; what lies beyond it reads as 0. Where
// neighbours in memory are neighbours along `inner`, boxes have `extent` rows. Where they are
// neighbours along `outer`, boxes are 32 wide; a whole number of them is described in three
// dimensions (`boxes`), so that all `extent` / 32 of a slice are copied at once.
bool describe(CUtensorMap* map, bool* boxes, const float* data, int64_t outer, int64_t inner,
              int64_t leading, bool along_outer, int extent) {
  const TensorMapEncode encode = tensor_map_encode();
  if (!encode) return false;
  constexpr auto size = static_cast<cuuint64_t>(sizeof(float));
  const auto o = static_cast<cuuint64_t>(outer), i = static_cast<cuuint64_t>(inner),
             row = static_cast<cuuint64_t>(leading) * size;
  const auto e = static_cast<cuuint32_t>(extent);
  *boxes = along_outer && outer % 32 == 0 && outer >= extent;
  const cuuint32_t steps[] = {1, 1, 1};
  const auto made = [&](cuuint32_t rank, const cuuint64_t* sizes, const cuuint64_t* strides,
                        const cuuint32_t* box) {
    return encode(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, rank, const_cast<float*>(data), sizes,
                  strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
  };
  if (*boxes) {
    const cuuint64_t sizes[] = {32, i, o / 32}, strides[] = {row, 32 * size};
    const cuuint32_t box[] = {32, float64::slice, e / 32};
    return made(3, sizes, strides, box);
  }
  const cuuint64_t sizes[] = {along_outer ? o : i, along_outer ? i : o};
  const cuuint32_t box[] = {32, along_outer ? float64::slice : e};
  return made(2, sizes, &row, box);
}

// Tiles that all blocks share: those of a partial last wave, and one more whole wave if that is
// less than half full, so that no block gets a sliver.
int even_tiles(int tiles, int slices, int blocks) {
  const int rest = tiles % blocks;
  const int even = rest > 0 && 2 * rest < blocks && tiles >= blocks ? rest + blocks : rest;
  // Either every block has a slice of them or none has, because a block waits for all blocks before
  // it that share its tile.
  return static_cast<int64_t>(even) * slices < blocks ? 0 : even;
}

template <bool a_outer, bool b_outer, int warps_down, int warps_across, int slots>
cudaError_t launch(const Float64Gemm& q, int sms, void* parts, void* marks, cudaStream_t stream) {
  using K = float64::Kernel<a_outer, b_outer, warps_down, warps_across, slots>;
  float64::Arguments p{};
  if (!describe(&p.a, &p.a_boxes, q.a, q.rows, q.inner, q.a_leading, a_outer, K::tile_rows) ||
      !describe(&p.b, &p.b_boxes, q.b, q.cols, q.inner, q.b_leading, b_outer, K::tile_cols))
    return cudaErrorNotSupported;
  p.out = q.out;
  p.bias = q.bias;
  p.addend = q.addend;
  p.out_leading = q.out_leading;
  p.rows = static_cast<int>(q.rows);
  p.cols = static_cast<int>(q.cols);
  p.tiles_down = (p.rows + K::tile_rows - 1) / K::tile_rows;
  const int tiles_across = (p.cols + K::tile_cols - 1) / K::tile_cols;
  p.tiles = p.tiles_down * tiles_across;
  p.slices = static_cast<int>((q.inner + float64::slice - 1) / float64::slice);
  p.down_first = p.tiles_down < tiles_across;
  // One block an SM, as long as there are slices for them.
  const int64_t units = static_cast<int64_t>(p.tiles) * p.slices;
  const int blocks = static_cast<int>(std::min<int64_t>(sms, units));
  p.even_tiles = even_tiles(p.tiles, p.slices, blocks);
  p.parts = static_cast<double2*>(parts);
  p.marks = static_cast<unsigned*>(marks);
  const auto kernel = float64::float64_kernel<K>;
  const cudaError_t sized =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, K::shared_bytes);
  if (sized != cudaSuccess) return sized;
  kernel<<<blocks, K::threads, K::shared_bytes, stream>>>(p);
  return cudaGetLastError();
}

template <int warps_down, int warps_across, int slots>
auto by_layout(const Float64Gemm& q) {
  if (q.a_transposed) {
    return q.b_transposed ? launch<true, false, warps_down, warps_across, slots>
                          : launch<true, true, warps_down, warps_across, slots>;
  }
  return q.b_transposed ? launch<false, false, warps_down, warps_across, slots>
                        : launch<false, true, warps_down, warps_across, slots>;
}

}  // namespace

bool float64_gemms_built() {
#ifdef TALLY_FLOAT64_GEMMS
  return true;
#else
  return false;
#endif
}

bool float64_gemm_supported(const Float64Gemm& q) {
  constexpr int64_t most = INT32_MAX / 2;
  constexpr auto most_units = static_cast<double>(INT32_MAX);
  const auto bits = reinterpret_cast<uintptr_t>(q.a) | reinterpret_cast<uintptr_t>(q.b) |
                    reinterpret_cast<uintptr_t>(q.out) | reinterpret_cast<uintptr_t>(q.addend) |
                    reinterpret_cast<uintptr_t>(q.bias);
  const bool wide_enough = q.a_leading >= (q.a_transposed ? q.rows : q.inner) &&
                           q.b_leading >= (q.b_transposed ? q.inner : q.cols) &&
                           q.out_leading >= q.cols;
  return tensor_map_encode() && wide_enough && q.rows > 0 && q.cols > 0 && q.inner > 0 &&
         q.rows <= most && q.cols <= most && q.inner <= most && bits % 16 == 0 &&
         (q.a_leading | q.b_leading | q.out_leading) % 4 == 0 &&
         (static_cast<double>(q.rows) / 64 + 1) * (static_cast<double>(q.cols) / 64 + 1) *
                 (static_cast<double>(q.inner) / float64::slice + 1) <
             most_units;
}

size_t float64_parts_bytes(int sms) {
  return static_cast<size_t>(sms) * 128 * 128 * sizeof(double);
}

size_t float64_flags_bytes(int sms) {
  return static_cast<size_t>(sms) * sizeof(unsigned);
}

cudaError_t float64_gemm(const Float64Gemm& q, int tile, int sms, void* parts, void* marks,
                         cudaStream_t stream) {
  const auto launcher = tile == 0 ? by_layout<2, 4, 5>(q) : by_layout<4, 2, 4>(q);
  return launcher(q, sms, parts, marks, stream);
}

}  // namespace tally::train::cuda

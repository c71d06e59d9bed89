#include "src/ops/attention/hopper/map.h"

#include <fmt/format.h>

#include "src/device/cuda/tensor_map.h"
#include "src/device/errors.h"
#include "src/ops/attention/hopper/kernels.h"

namespace tally::train::cuda {

CUtensorMap head_map(const char* op, const void* data, const AttentionArgs& args, int64_t columns,
                     int box_rows) {
  const TensorMapEncode encode = tensor_map_encode();
  const int64_t rows = args.shape.batch * args.shape.tokens;
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t stride = static_cast<cuuint64_t>(columns) * 2;
  const cuuint32_t box[] = {hopper::head_dim, static_cast<cuuint32_t>(box_rows)}, steps[] = {1, 1};
  const CUtensorMapDataType type = args.dtype == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                                             : CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  CUtensorMap map{};
  if (encode &&
      encode(&map, type, 2, const_cast<void*>(data), sizes, &stride, box, steps,
             CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS)
    return map;
  throw DeviceError(
      fmt::format("{}: the driver cannot describe a tensor of {} rows of {} values for the copy "
                  "engine; --no-fusion attention does without",
                  op, rows, columns));
}

}  // namespace tally::train::cuda

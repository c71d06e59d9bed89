#include "src/device/stream.h"

#include "src/device/backends.h"

namespace tally::train {

const char* dtype_name(DType t) {
  switch (t) {
    case DType::f64:
      return "float64";
    case DType::f32:
      return "float32";
    case DType::bf16:
      return "bfloat16";
    case DType::f16:
      return "float16";
    case DType::i64:
      return "int64";
    case DType::i32:
      return "int32";
    case DType::u16:
      return "uint16";
    case DType::u8:
      return "uint8";
  }
  return "unknown";
}

int cuda_device_count() {
#ifdef TALLY_WITH_CUDA
  return cuda::device_count();
#else
  return 0;
#endif
}

std::string cuda_unavailable_reason() {
#ifdef TALLY_WITH_CUDA
  return cuda::unavailable_reason();
#else
  return "this build has no CUDA";
#endif
}

DeviceInfo device_info(Device device) {
  if (!device.is_cuda()) return cpu::device_info();
#ifdef TALLY_WITH_CUDA
  return cuda::device_info(device.index);
#else
  throw DeviceError("no GPU can be used: " + cuda_unavailable_reason());
#endif
}

std::unique_ptr<Stream> make_stream(Device device) {
  if (!device.is_cuda()) return cpu::make_stream();
#ifdef TALLY_WITH_CUDA
  return cuda::make_stream(device.index);
#else
  throw DeviceError("no GPU can be used: " + cuda_unavailable_reason());
#endif
}

}  // namespace tally::train

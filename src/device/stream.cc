#include "src/device/stream.h"

#include "src/device/convert.h"
#include "src/device/devices.h"

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
    case DType::e4m3:
      return "float8_e4m3";
    case DType::e5m2:
      return "float8_e5m2";
  }
  return "unknown";
}

[[gnu::weak]] const Gpus* gpus() {
  return nullptr;
}

[[gnu::weak]] const Cpu* cpu_device() {
  return nullptr;
}

int cuda_device_count() {
  return gpus() ? gpus()->count() : 0;
}

std::string cuda_unavailable_reason() {
  return gpus() ? gpus()->unavailable_reason() : "this build has no CUDA";
}

namespace {

const Gpus& usable_gpus() {
  if (!gpus()) throw DeviceError("no GPU can be used: " + cuda_unavailable_reason());
  return *gpus();
}

const Cpu& usable_cpu() {
  if (!cpu_device()) throw DeviceError("this program computes nothing: it has no LibTorch");
  return *cpu_device();
}

}  // namespace

void convert_elements(const Tensor& from, const Tensor& to) {
  usable_cpu().convert_elements(from, to);
}

DeviceInfo device_info(Device device) {
  return device.is_cuda() ? usable_gpus().info(device.index) : usable_cpu().info();
}

std::unique_ptr<Stream> make_stream(Device device) {
  return device.is_cuda() ? usable_gpus().make_stream(device.index) : usable_cpu().make_stream();
}

}  // namespace tally::train

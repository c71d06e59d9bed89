#include "src/train/run/device.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <thread>
#include <utility>

#include "src/measure/busy_processors.h"
#include "src/measure/system_info.h"
#include "src/ops/attention/attention.h"
#include "src/ops/build_features.h"
#include "src/train/run/failures.h"

namespace tally::train {
namespace {

Device choose_device(const Config& c) {
  const int gpus = c.device == "cpu" ? 0 : cuda_device_count();
  if (c.device == "cpu" || (c.device == "auto" && gpus == 0)) {
    if (uses_tf32(c.precision))
      throw InputError(fmt::format("--precision {}: a CPU has no TF32, and no GPU can be used ({})",
                                   precision_name(c.precision), cuda_unavailable_reason()));
    return {DeviceKind::cpu, 0};
  }
  const bool named = c.device.rfind("cuda:", 0) == 0;
  if (named && c.local_size > 1)
    throw InputError(fmt::format(
        "--device {}: {} processes of this host cannot share one GPU: --device cuda gives each its "
        "own",
        c.device, c.local_size));
  // A launcher that binds GPUs shows each process only its own.
  const int index = named ? std::stoi(c.device.substr(5)) : gpus == 1 ? 0 : c.local_rank;
  if (gpus == 0)
    throw InputError(
        fmt::format("--device {}: no GPU can be used: {}", c.device, cuda_unavailable_reason()));
  if (index >= gpus && !named)
    throw InputError(fmt::format(
        "process {} of this host has no GPU: {} are there for {} processes; start fewer, or take "
        "--device cpu",
        index, gpus, c.local_size));
  if (index >= gpus)
    throw InputError(
        fmt::format("--device {}: there are {} GPUs, numbered from 0", c.device, gpus));
  return {DeviceKind::cuda, index};
}

void check_precision(const Config& c, const Device& device, const DeviceInfo& info) {
  const bool needs_ampere =
      c.precision == Precision::bf16 || uses_tf32(c.precision) || c.policy.tf32x3_attention;
  if (device.is_cuda() && needs_ampere && info.capability < 80)
    throw InputError(fmt::format(
        "--precision {}: {} (compute capability {}.{}) does not have it: use --fp16 or --precision "
        "fp32",
        precision_name(c.precision), info.name, info.capability / 10, info.capability % 10));
  if (!device.is_cuda()) return;
  const std::string refusal = fp8_refusal(c, info.name, info.capability);
  if (!refusal.empty()) throw InputError(refusal);
}

// A person or a launcher has taken the GPUs away on purpose.
bool hides_gpus() {
  return std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
}

std::string attention_name(const Config& c, Stream& stream) {
  if (c.reference) return "autograd";
  const auto backend = [&](bool documents) {
    return std::string(
        attention_backend({stream, {c.policy}}, attention_shape(c, documents), c.compute_type()));
  };
  // Encoders compute on documents where they can (encoder_feed.h).
  const std::string of_documents = c.model.language_model() ? "unfused" : backend(true);
  return of_documents == "unfused" ? backend(false) : of_documents;
}

}  // namespace

std::string idle_gpus_notice(int gpus, const std::string& reason) {
  const char* plural = gpus == 1 ? "" : "s";
  if (!reason.empty())
    return fmt::format("this run is on the CPU and leaves the host's {} NVIDIA GPU{} idle: {}",
                       gpus, plural, reason);
  return fmt::format(
      "this build has no CUDA and leaves the host's {} NVIDIA GPU{} idle: scripts/build --gpu "
      "makes one that trains on {}",
      gpus, plural, gpus == 1 ? "it" : "them");
}

std::string kernel_notice(const DeviceFacts& r) {
  if (r.idle_gpus > 0)
    return idle_gpus_notice(r.idle_gpus, build_features().cuda ? cuda_unavailable_reason() : "");
  if (r.missing_kernels.empty()) return "";
  return fmt::format(
      "this build lacks kernels that {} would use, and is slower for it: {}. scripts/build --gpu "
      "makes a build with all of them",
      r.device_info.name, fmt::join(r.missing_kernels, ", "));
}

namespace {

// The pause is long enough for the kernel's clock of hundredths, and short beside the start of a
// run.
constexpr std::chrono::milliseconds looked_at{200};
constexpr int looks = 3;  // repeated while each finds a busy one

// A thread that shares its processor makes every parallel loop wait for a time slice: three to four
// times slower with two threads on two processors of which one is busy. Processes of one run on
// this host would count each other.
std::optional<int> busy_processors_for(const Config& config, Device device, int threads) {
  if (device.is_cuda() || config.local_size > 1 || threads < 2 || threads_are_given()) return {};
  // A burst of others' work must not halve a whole run: only lasting use counts.
  int busy = threads;
  for (int look = 0; look < looks && busy > 0; ++look)
    busy = std::min(busy, busy_processors([] { std::this_thread::sleep_for(looked_at); }));
  return busy;
}

}  // namespace

std::string threads_notice(const DeviceFacts& r) {
  if (r.busy_processors.value_or(0) == 0) return "";
  return fmt::format(
      "other processes use {} of the processors: computing with {} thread{} (OMP_NUM_THREADS sets "
      "another number)",
      *r.busy_processors, r.threads, r.threads == 1 ? "" : "s");
}

AttentionShape attention_shape(const Config& c, bool documents) {
  AttentionShape shape;
  shape.batch = c.micro_batch;
  shape.tokens = c.sequence;
  shape.heads = c.model.heads;
  shape.groups = c.model.kv_heads();
  shape.head_dim = c.model.head_dim();
  shape.scale = 1.0 / std::sqrt(static_cast<double>(shape.head_dim));
  shape.dropout = static_cast<float>(c.model.attention_dropout);
  if (!c.model.block.causal) shape.mask = AttentionMask::none;
  if (!documents) return shape;
  shape.batch = 1;
  shape.tokens = c.micro_batch * c.sequence;
  shape.documents = true;
  shape.most_documents = 2 * c.micro_batch;
  shape.longest = c.sequence;
  return shape;
}

OpenDevice open_device(const Config& config) {
  DeviceFacts facts;
  facts.device = choose_device(config);
  facts.device_info = device_info(facts.device);
  const BuildFeatures build = build_features();
  if (facts.device.is_cuda()) {
    facts.missing_kernels = missing_kernels(build, facts.device_info.capability);
  } else if (config.device == "auto" && !(build.cuda && hides_gpus())) {
    facts.idle_gpus = nvidia_gpus_of_host();
  }
  check_precision(config, facts.device, facts.device_info);
  facts.threads = default_threads(config.local_size);
  facts.busy_processors = busy_processors_for(config, facts.device, facts.threads);
  facts.threads = std::max(1, facts.threads - facts.busy_processors.value_or(0));
  set_threads(facts.threads);
  std::unique_ptr<Stream> stream;
  try {
    stream = make_stream(facts.device);
  } catch (const NoDeviceCode& e) {
    throw DeviceError(
        fmt::format("{}: configure with -DTALLY_CUDA_ARCHITECTURES={} and build again", e.what(),
                    e.capability));
  }
  facts.attention_backend = attention_name(config, *stream);
  return {std::move(stream), std::move(facts)};
}

}  // namespace tally::train

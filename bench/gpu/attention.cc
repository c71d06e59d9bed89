// TFLOP/s of attention by our kernels for Hopper and by the libraries, by turns, sustained, causal.
//
//   tally-attention [--forward] [--dropout P] [--rounds N] [SHAPE...]
//
// SHAPE: BATCHxHEADSxGROUPSxTOKENSxHEAD_DIM, by default those of Llama 8B and of 13B's layers.
// --forward: that pass alone. TALLY_ATTENTION=hopper: our backward pass for every shape.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/gpu/sustained.h"
#include "src/ops/attention/attention.h"

namespace tally::train {
namespace {

constexpr DType type = DType::bf16;

// The operands of one shape.
class Case {
 public:
  Case(Stream& s, const AttentionShape& shape) : stream_(s), a_(shape), bench_(s, type) {
    const int64_t rows = a_.heads + 2 * a_.kv_heads();
    qkv_ = bench_.random({a_.batch, a_.tokens, rows, a_.head_dim});
    dout_ = bench_.random({a_.batch, a_.tokens, a_.heads, a_.head_dim});
    dqkv_ = bench_.plain(type, {a_.batch, a_.tokens, rows, a_.head_dim});
    out_ = bench_.plain(type, {a_.batch, a_.tokens, a_.heads, a_.head_dim});
    stats_ = bench_.plain(DType::f32, {a_.batch, a_.heads, a_.tokens});
    size_t bytes = 0;
    for (const bool ours : {true, false})
      bytes = std::max(bytes, attention_workspace(computes(ours), a_, type));
    workspace_ = bench_.plain(DType::u8, {static_cast<int64_t>(bytes)});
  }

  void measure(bool ours, bool forward_alone) {
    const Compute c = computes(ours);
    const AttentionArgs args =
        packed_attention(a_, qkv_, {Out(out_), Out(stats_)}, Out(workspace_), 1);
    const double flops = 2.0 * static_cast<double>(a_.batch * a_.heads * a_.head_dim) *
                         static_cast<double>(a_.tokens) * static_cast<double>(a_.tokens);
    const double forward = bench_.seconds([&] { attention_forward(c, args); });
    std::printf("%-8s forward %7.0f us %5.0f TFLOP/s", attention_backend(c, a_, type),
                1e6 * forward, flops / forward / 1e12);
    if (!forward_alone) {
      const AttentionGradients gradients = packed_gradients(a_, dout_, Out(dqkv_));
      const double backward = bench_.seconds([&] { attention_backward(c, args, gradients); });
      std::printf("   backward %7.0f us %5.0f TFLOP/s", 1e6 * backward,
                  2.5 * flops / backward / 1e12);
    }
    std::printf("\n");
    std::fflush(stdout);
  }

 private:
  Compute computes(bool ours) const {
    ComputeOptions options;
    options.fusions.attention = ours;
    return {stream_, options};
  }

  Stream& stream_;
  const AttentionShape a_;
  Bench bench_;
  Tensor qkv_, dout_, dqkv_, out_, stats_, workspace_;
};

bool parse(const char* text, AttentionShape* a) {
  long long n[5];
  char end = 0;
  if (std::sscanf(text, "%lldx%lldx%lldx%lldx%lld%c", n, n + 1, n + 2, n + 3, n + 4, &end) != 5)
    return false;
  for (const long long one : n)
    if (one <= 0) return false;
  if (n[1] % n[2] != 0) return false;
  *a = {};
  a->batch = n[0];
  a->heads = n[1];
  a->groups = n[2];
  a->tokens = n[3];
  a->head_dim = n[4];
  a->scale = 1 / std::sqrt(static_cast<double>(a->head_dim));
  return true;
}

int run(int argc, char** argv) {
  std::vector<const char*> shapes;
  double dropout = 0;
  int rounds = 2;
  bool forward_alone = false;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--forward") == 0) {
      forward_alone = true;
    } else if (i + 1 < argc && std::strcmp(argv[i], "--dropout") == 0) {
      dropout = std::atof(argv[++i]);
    } else if (i + 1 < argc && std::strcmp(argv[i], "--rounds") == 0) {
      rounds = std::atoi(argv[++i]);
    } else {
      shapes.push_back(argv[i]);
    }
  }
  if (shapes.empty())
    shapes = {"1x32x8x8192x128", "2x32x8x4096x128", "4x40x40x2048x128", "1x32x8x32768x128"};
  const auto stream = make_stream(Device{DeviceKind::cuda, 0});
  for (const char* text : shapes) {
    AttentionShape a;
    if (!parse(text, &a)) {
      std::fprintf(stderr,
                   "usage: tally-attention [--forward] [--dropout P] [--rounds N] "
                   "[BATCHxHEADSxGROUPSxTOKENSxHEAD_DIM...]\n");
      return 2;
    }
    a.dropout = dropout;
    std::printf("%s dropout %g\n", text, dropout);
    Case one(*stream, a);
    for (int round = 0; round < rounds; ++round) {
      for (const bool ours : {false, true}) one.measure(ours, forward_alone);
    }
  }
  return 0;
}

}  // namespace
}  // namespace tally::train

int main(int argc, char** argv) {
  try {
    return tally::train::run(argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tally-attention: %s\n", e.what());
    return 1;
  }
}

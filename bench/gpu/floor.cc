// The lower bound on the time of a GPT's training step on this GPU (roofline): each GEMM (by the
// algorithm that is fastest here) and each attention call alone, sustained on random data, plus the
// fewest bytes of everything else at the rate of a device copy. bench/gpu/run calls it in the
// session that it measures.
//
//   tally-floor LAYERS HIDDEN HEADS TOKENS BATCH [VOCABULARY [TENSOR [DROPOUT [PRECISION]]]]
//
// VOCABULARY 0 leaves out the head, as the inner stages of a pipeline do. With TENSOR over 1 it is
// the bound of one tensor and sequence parallel rank's share: its columns and rows of each GEMM,
// its heads, its tokens of the norms; weight gradients add to those of earlier micro batches.
// DROPOUT is the probability within attention, which slows down its kernels; 0 by default. PRECISION
// is that of the operands, bf16 (default) or fp16: the latter has more bits that change, and a GPU
// at its power limit is slower with it. Weight gradients are in float32.
//
// Prints one JSON object.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/gpu/sustained.h"
#include "src/nn/lm_head.h"
#include "src/ops/attention/attention.h"
#include "src/ops/linear/linear.h"

namespace tally::train {
namespace {

struct Shape {
  int64_t layers, hidden, heads, tokens, batch, vocabulary, tensor;
  double dropout = 0;  // of attention's probabilities
  DType precision = DType::bf16;
  int64_t rows() const { return batch * tokens; }
};

class Floor {
 public:
  Floor(Stream& s, const Shape& shape) : stream_(s), n_(shape) {}

  nlohmann::ordered_json measure() {
    const int64_t c = n_.hidden, m = n_.rows(), t = n_.tensor;
    const auto layers = static_cast<double>(n_.layers);
    products("qkv", m, 3 * c / t, c, layers);
    products("projection", m, c, c / t, layers);
    products("mlp up", m, 4 * c / t, c, layers);
    products("mlp down", m, c, 4 * c / t, layers);
    if (n_.vocabulary > 0) {
      const int64_t piece = head_piece();
      products("head", piece, n_.vocabulary / t, c,
               static_cast<double>(m) / static_cast<double>(piece));
    }
    attention();
    const double rate = copy_rate();
    const double update = optimizer_bytes(), bytes = passes_bytes() + update, rest = bytes / rate;
    const double total = products_ + attention_ + rest;
    return {{"products_ms", 1e3 * products_},
            {"products_tflops", flops_ / products_ / 1e12},
            {"attention_ms", 1e3 * attention_},
            {"rest_ms", 1e3 * rest},
            {"rest_bytes", bytes},
            {"copy_bytes_per_second", rate},
            {"passes_ms", 1e3 * (total - update / rate)},
            {"floor_ms", 1e3 * total},
            {"tokens_per_second", static_cast<double>(m) / total},
            {"calls", rows_}};
  }

 private:
  void add(const std::string& name, double count, double seconds, double flops) {
    rows_.push_back({{"call", name},
                     {"times", count},
                     {"us", 1e6 * seconds},
                     {"tflops", flops / seconds / 1e12}});
  }

  // The tokens whose logits the model holds at once.
  int64_t head_piece() const {
    ModelConfig model;
    model.layers = n_.layers;
    model.hidden = n_.hidden;
    model.ffn = 4 * n_.hidden;
    model.padded_vocabulary = n_.vocabulary;
    return LmHead::rows_at_once(n_.rows(), model, n_.vocabulary / n_.tensor, n_.precision, true);
  }

  void products(const std::string& name, int64_t rows, int64_t out, int64_t in, double count) {
    Bench b(stream_, n_.precision);
    const Tensor x = b.random({rows, in}), dy = b.random({rows, out}), w = b.random({out, in});
    const Tensor y = b.plain(n_.precision, {rows, out}), dx = b.plain(n_.precision, {rows, in});
    const Tensor dw = b.plain(DType::f32, {out, in});
    const double flops = 2.0 * static_cast<double>(rows) * static_cast<double>(out * in);
    const auto one = [&](const char* way, const std::function<void()>& work) {
      const double seconds = b.seconds(work);
      add(name + ", " + way, count, seconds, flops);
      products_ += count * seconds;
      flops_ += count * flops;
    };
    one("forward", [&] { linear_forward(stream_, x, {w}, Out(y), {}); });
    one("input gradient", [&] { linear_backward_input(stream_, dy, w, Out(dx), {}); });
    const bool accumulate = name == "head" || n_.tensor > 1;
    one("weight gradient", [&] {
      linear_backward_weight(stream_, dy, x, {Out(dw), {}, accumulate});
    });
  }

  void attention() {
    Bench b(stream_, n_.precision);
    AttentionShape a;
    a.batch = n_.batch;
    a.tokens = n_.tokens;
    a.heads = n_.heads / n_.tensor;
    a.head_dim = n_.hidden / n_.heads;
    a.scale = 1 / std::sqrt(static_cast<double>(a.head_dim));
    a.dropout = n_.dropout;
    const Tensor qkv = b.random({a.batch, a.tokens, 3, a.heads, a.head_dim});
    const Tensor dqkv = b.plain(n_.precision, {a.batch, a.tokens, 3, a.heads, a.head_dim});
    const Tensor out = b.plain(n_.precision, {a.batch, a.tokens, a.heads, a.head_dim});
    const Tensor dout = b.random({a.batch, a.tokens, a.heads, a.head_dim});
    const Tensor stats = b.plain(DType::f32, {a.batch, a.heads, a.tokens});
    size_t bytes = 0;
    for (const bool hopper : {true, false})
      bytes = std::max(bytes, attention_workspace(computes(hopper), a, n_.precision));
    const Tensor workspace = b.plain(DType::u8, {static_cast<int64_t>(bytes)});
    const double flops = 2.0 * static_cast<double>(a.batch * a.heads * a.head_dim) *
                         static_cast<double>(a.tokens) * static_cast<double>(a.tokens);  // causal
    const auto layers = static_cast<double>(n_.layers);
    const uint64_t seed = 1;
    const auto both = [&](const Compute& c) {
      const std::string backend = attention_backend(c, a, n_.precision);
      const double forward = b.seconds([&] {
        attention_forward(c,
                          packed_attention(a, qkv, {Out(out), Out(stats)}, Out(workspace), seed));
      });
      const double backward = b.seconds([&] {
        attention_backward(c,
                           packed_attention(a, qkv, {Out(out), Out(stats)}, Out(workspace), seed),
                           packed_gradients(a, dout, Out(dqkv)));
      });
      add("attention forward (" + backend + ")", layers, forward, flops);
      add("attention backward (" + backend + ")", layers, backward, 2.5 * flops);
      return layers * (forward + backward);
    };
    const std::string libraries = attention_backend(computes(false), a, n_.precision);
    // For comparison: the lower bound takes the libraries' attention.
    if (libraries != attention_backend(computes(true), a, n_.precision)) both(computes(true));
    attention_ = both(computes(false));
  }

  // With our Hopper attention or the libraries'.
  Compute computes(bool hopper) const {
    ComputeOptions options;
    options.fusions.attention = hopper;
    return {stream_, options};
  }

  double copy_rate() {
    Bench b(stream_, n_.precision);
    const Tensor from = b.random({int64_t{1} << 30}),
                 to = b.plain(n_.precision, {int64_t{1} << 30});
    const double seconds = b.seconds([&] { stream_.copy(to.data, from.data, to.bytes()); });
    return 2.0 * static_cast<double>(to.bytes()) / seconds;
  }

  // The bytes that the passes must move besides their GEMMs and attention, if the GEMMs do every
  // addition, bias and GELU: both norms of a block forward (in, out) and backward (two gradients
  // and the input in, one gradient out); with the head also the final norm, the embedding both
  // ways, and the logits once in and once out.
  double passes_bytes() const {
    const auto t = static_cast<double>(n_.tensor);
    const double stream = 2.0 * static_cast<double>(n_.rows() * n_.hidden) / t;
    const double logits = 2.0 * static_cast<double>(n_.rows() * n_.vocabulary) / t;
    const double ends = n_.vocabulary > 0 ? 5 + 3 : 0;
    return stream * (static_cast<double>(n_.layers) * 12 + ends) + 2 * logits;
  }

  // The optimizer's 30 bytes a parameter, with 4 more for the gradient's norm.
  double optimizer_bytes() const {
    const auto c = static_cast<double>(n_.hidden), t = static_cast<double>(n_.tensor);
    const double positions = n_.vocabulary > 0 ? static_cast<double>(n_.tokens) : 0;
    const double matrices =
        static_cast<double>(n_.layers) * 12 * c * c + static_cast<double>(n_.vocabulary) * c;
    return 34 * (matrices / t + positions * c);
  }

  Stream& stream_;
  const Shape n_;
  nlohmann::ordered_json rows_ = nlohmann::ordered_json::array();
  double products_ = 0, flops_ = 0, attention_ = 0;
};

// -1: not a probability below 1.
double probability(const char* text) {
  char* end = nullptr;
  const double p = std::strtod(text, &end);
  return *end == 0 && end != text && p >= 0 && p < 1 ? p : -1;
}

// u8: neither of the two.
DType precision(const std::string& text) {
  if (text == "bf16") return DType::bf16;
  return text == "fp16" ? DType::f16 : DType::u8;
}

int64_t number(const char* text) {
  char* end = nullptr;
  const long long n = std::strtoll(text, &end, 10);
  return *end == 0 && end != text ? n : -1;
}

}  // namespace
}  // namespace tally::train

int main(int argc, char** argv) {
  using namespace tally::train;
  Shape shape{};
  shape.vocabulary = 50304;
  shape.tensor = 1;
  int64_t* const fields[] = {&shape.layers, &shape.hidden,     &shape.heads, &shape.tokens,
                             &shape.batch,  &shape.vocabulary, &shape.tensor};
  for (int i = 1; i < argc && i <= 7; ++i) *fields[i - 1] = number(argv[i]);
  if (argc > 8) shape.dropout = probability(argv[8]);
  if (argc > 9) shape.precision = precision(argv[9]);
  for (const int64_t* field : fields) {
    const bool valid = *field > 0 || (*field == 0 && field == &shape.vocabulary);
    if (valid && shape.dropout >= 0 && shape.precision != DType::u8 && argc >= 6 && argc <= 10)
      continue;
    std::fprintf(stderr,
                 "usage: tally-floor LAYERS HIDDEN HEADS TOKENS BATCH [VOCABULARY [TENSOR "
                 "[DROPOUT [bf16|fp16]]]]\n");
    return 2;
  }
  if (shape.hidden % shape.heads != 0) {
    std::fprintf(stderr, "tally-floor: %lld heads do not divide %lld\n",
                 static_cast<long long>(shape.heads), static_cast<long long>(shape.hidden));
    return 2;
  }
  if (shape.heads % shape.tensor != 0 || shape.vocabulary % shape.tensor != 0) {
    std::fprintf(stderr, "tally-floor: %lld ranks do not divide %lld heads and %lld words\n",
                 static_cast<long long>(shape.tensor), static_cast<long long>(shape.heads),
                 static_cast<long long>(shape.vocabulary));
    return 2;
  }
  try {
    const auto stream = make_stream(Device{DeviceKind::cuda, 0});
    std::printf("%s\n", Floor(*stream, shape).measure().dump(1).c_str());
  } catch (const std::exception& e) {
    std::fprintf(stderr, "tally-floor: %s\n", e.what());
    return 1;
  }
  return 0;
}

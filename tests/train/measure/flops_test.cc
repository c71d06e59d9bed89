#include "src/measure/flops.h"

#include <doctest/doctest.h>

#include "src/measure/peak_rates.h"

using namespace tally::train;

TEST_CASE("model FLOPs: every GEMM of a tiny model counted by hand") {
  // One layer, h 4, f 16, V 10, s 6. Forward GEMMs per token, 2 operations a multiply-add: QKV
  // 4x12, projection 4x4, MLP 4x16 twice, head 4x10; scores and values over the causal half, 2 x
  // s/2 x h.
  ModelConfig m;
  m.layers = 1;
  m.hidden = 4;
  m.heads = 2;
  m.ffn = 16;
  m.vocabulary = 10;
  m.padded_vocabulary = 128;
  const double multiply_adds = 4 * 12 + 4 * 4 + 2 * 4 * 16 + 4 * 10 + 2 * 3 * 4;
  CHECK(model_flops_per_token(m, 6) == 3 * 2 * multiply_adds);
}

TEST_CASE("model FLOPs: every GEMM of a tiny Llama counted by hand") {
  // One layer, h 4, four heads of Q and two of K and V of 3 dimensions, f 16, V 10, s 6: Q 4x12, K
  // and V 4x6 each, projection 12x4, gate, up and down 4x16 each, head; scores and values.
  ModelConfig m;
  m.set_kind("llama");
  m.layers = 1;
  m.hidden = 4;
  m.heads = 4;
  m.query_groups = 2;
  m.kv_channels = 3;
  m.ffn = 16;
  m.vocabulary = 10;
  const double multiply_adds = 4 * 12 + 2 * 4 * 6 + 12 * 4 + 3 * 4 * 16 + 4 * 10 + 2 * 3 * 12;
  CHECK(model_flops_per_token(m, 6) == 3 * 2 * multiply_adds);
  Config c;
  c.model = m;
  c.model.padded_vocabulary = 10;
  c.sequence = 6;
  c.global_batch = 5;
  CHECK(megatron_flops_per_iteration(c) == 5 * 6 * 3 * 2 * multiply_adds);
}

TEST_CASE("model FLOPs of GPT-2 124M: 6N + 6LCT of llm.c to within what N counts differently") {
  const ModelConfig m;
  const double llmc = 6.0 * 124439808 + 6.0 * 12 * 768 * 1024;  // N with positions, biases, norms
  CHECK(model_flops_per_token(m, 1024) == doctest::Approx(llmc).epsilon(0.01));
}

TEST_CASE("Megatron's formula: factor 3 without recomputation, 4 with") {
  Config c;
  const double plain = megatron_flops_per_iteration(c);
  c.recompute = Recompute::selective;
  CHECK(megatron_flops_per_iteration(c) == doctest::Approx(plain * 4 / 3));
}

TEST_CASE("today's Megatron-LM: 72 l h^2 (1 + s/12h + V/12lh) per token where the MLP is 4h wide") {
  ModelConfig m;
  m.layers = 96;
  m.hidden = 12288;
  m.ffn = 4 * 12288;
  m.vocabulary = 50257;
  m.padded_vocabulary = 51200;
  // 2.087873625100124e17 for 96 samples of 2048 tokens, by the expression in transformer_flops().
  CHECK(megatron_flops_per_token(m, 2048) * 96 * 2048 ==
        doctest::Approx(2.087873625100124e17).epsilon(1e-14));
  m.padded_vocabulary = m.vocabulary;
  CHECK(megatron_flops_per_token(m, 2048) == model_flops_per_token(m, 2048));
}

TEST_CASE("peak rates by the driver's name") {
  CHECK(peak_rate("NVIDIA H200", Precision::bf16)->tflops == 989.5);
  CHECK(peak_rate("NVIDIA H200 NVL", Precision::bf16)->tflops == 835.5);
  CHECK(peak_rate("NVIDIA H100 80GB HBM3", Precision::tf32)->tflops == 494.5);
  CHECK(peak_rate("NVIDIA GH200 480GB", Precision::f16)->source == "NVIDIA GH200 datasheet");
  CHECK(peak_rate("NVIDIA A100-SXM4-40GB", Precision::bf16)->tflops == 312);
  CHECK(peak_rate("NVIDIA A10", Precision::bf16)->tflops == 125);
  CHECK(peak_rate("NVIDIA A100-SXM4-40GB", Precision::f32)->tflops == 19.5);
  CHECK(peak_rate("NVIDIA GB200", Precision::bf16)->tflops == 2500);
  CHECK(peak_rate("NVIDIA B200", Precision::bf16)->tflops == 2250);
  CHECK(fp8_peak_rate("NVIDIA B300 SXM6 AC")->source == "NVIDIA HGX B300 datasheet");
  CHECK(fp8_peak_rate("NVIDIA GeForce RTX 5090")->tflops == 419);
  // The other editions have other rates.
  CHECK_FALSE(peak_rate("NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",  //
                        Precision::bf16)
                  .has_value());
  CHECK_FALSE(peak_rate("Tesla V100-SXM2-16GB", Precision::bf16).has_value());
  CHECK_FALSE(peak_rate("NVIDIA Unheard-of 9000", Precision::bf16).has_value());
}

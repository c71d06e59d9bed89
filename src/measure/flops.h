// Floating-point operations of training, by two conventions.
#pragma once

#include "src/config/config.h"

namespace tally::train {

// The convention of the log line, as the JUPITER NLP benchmark patches Megatron-LM f772743:
//   24 k B s l h^2 (1 + s / 6h + V / 16lh), k = 4 with --recompute-granularity, else 3
// with B samples, V the padded vocabulary. It counts attention in full although it is causal, and
// with selective recomputation a second forward pass that does not happen (4/3 too high). It is
// printed so that logs can be compared with that benchmark's; use model_flops for anything else.
// For Llama's blocks, which the formula does not know: k / 3 times megatron_flops_per_token().
double megatron_flops_per_iteration(const Config& config);

// The convention of today's Megatron-LM for a model like ours (transformer_flops() in the
// num_floating_point_operations() of its training.py, commit 001b00c2), per token: that of
// model_flops_per_token(), but with the padding of the vocabulary.
double megatron_flops_per_token(const ModelConfig& model, int64_t sequence);

// The FLOPs of the model itself, forward and backward, per trained token: every GEMM once,
// attention over the causal half, the vocabulary without padding, nothing recomputed.
//   6 (L (4 h^2 + 2 h f) + h V) + 6 L h s
// For Llama 4 h^2 + 2 h f becomes 2 h d (H + G) + 3 h f, with H heads of Q and G of K and V of d
// dimensions, and 6 L h s becomes 6 L H d s.
// The backward pass has two GEMMs for each of the forward (Kaplan et al. 2020, "Scaling Laws for
// Neural Language Models", section 2.1); the attention term is PaLM's (Chowdhery et al. 2022,
// appendix B), 12 L h s, halved for causality.
double model_flops_per_token(const ModelConfig& model, int64_t sequence);
// The same of an encoder in samples of so many tokens: attention over all of them, the head over
// what it reads. 15 % of the tokens are masked (Devlin et al., arXiv:1810.04805).
//   6 L (4 h^2 + 2 h f) + 12 L h s + head;  pre-training: 6 * 0.15 (h^2 + h V), and 6 (h^2 + 2 h) / s
//   for the next sentence; classes: 6 (h^2 + classes h) / s; answers: 12 h
double encoder_flops_per_token(const ModelConfig& model, double tokens);
// The part of either that attention has, in samples of so many tokens.
double attention_flops_per_token(const ModelConfig& model, double tokens);
// The FLOPs of the GEMMs that are in FP8, of either.
double fp8_flops_per_token(const Config& config);

}  // namespace tally::train

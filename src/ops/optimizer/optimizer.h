// The norm of the gradient, and AdamW, LAMB and SGD over flat buffers, in which every parameter is
// one range.
//   norm = sqrt(sum g^2) / loss_scale;  clip_factor = min(1, clip / (norm + 1e-6)) / loss_scale
//   g *= clip_factor;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2
//   w -= lr (decay w + (m / bias_correction1) / (sqrt(v / bias_correction2) + eps))
// AdamW with decoupled weight decay: Loshchilov and Hutter, arXiv:1711.05101, as torch.optim.AdamW.
// LAMB: You et al., arXiv:1904.00962, as apex's FusedLAMB (csrc/multi_tensor_lamb.cu) with the
// settings of NVIDIA's BERT: decoupled weight decay, bias correction, averaged gradients and
// use_nvlamb off. The gradient is clipped and m and v are AdamW's, then for each parameter
//   u = (m / bias_correction1) / (sqrt(v / bias_correction2) + eps) + decay w
//   w -= lr r u;  r = |w| / |u| over the whole parameter, or 1 where either norm is 0 or the
//   parameter has no weight decay. Each of fused parameters (Parameter::fused) has its own r.
// SGD with momentum and coupled weight decay, as torch.optim.SGD without dampening and Nesterov:
//   g = clip_factor g + decay w;  m = momentum m + g;  w -= lr m
// Clipping: Pascanu, Mikolov and Bengio, arXiv:1211.5063, as torch.nn.utils.clip_grad_norm_.
//
//   gradients, master weights, moments: f32 (f64 for f64), one dimension; weights: the compute type
//   (f64, f32, bf16, f16), rounded from the master weights, which are the weights in f32
//   and f64
// Learning rate, weight decay, bias corrections, loss scale and clip are read from StepState in
// device memory, so that one recorded CUDA graph serves every step.
//
// The versions, and what each serves:
//   CPU (cpu.cc)       every type; threads share the elements
//   whole GPU          every type: a vector of 16 bytes a thread (adamw_kernel in cuda.cu)
//   few SMs            every type, for a deferred update that overlaps with the next forward pass
//                      (nn/deferred_update.h): one block on each of `sms` SMs, with operands copied
//                      to shared memory ahead (cp.async; adamw_few_kernel in cuda.cu). Blocks run
//                      in clusters of two on compute capability 9.0 where `sms` is even, so that
//                      the SMs that are left are pairs too, which the GEMMs' kernels need.
// The few SMs are taken where `sms` > 0, gradients are not to be zeroed, the elements are whole
// vectors and a block's shared memory holds the slots; else the whole GPU. Both leave the same
// bits. With --no-fusion deferred-update `sms` is 0. No kernel is timed, and --deterministic
// changes nothing.
//
// LAMB and SGD have one CUDA version each, for every type: lamb.cu (a block a piece, the piece's
// sums of squares reduced in a fixed order) and sgd.cu. Both divide exactly.
//
// The norm is summed in a fixed order: on a GPU per thread in f32 (f64 for f64) and then in f64,
// on the CPU in f64. A gradient that is not finite sets state->found_inf, and the update is left
// out. In f32 the GPU's square root and division are the hardware's approximations, good to 2 units
// in the last place. DeviceError on a GPU, std::invalid_argument on the CPU: the type is not a
// floating-point type.
#pragma once

#include "src/device/step_state.h"
#include "src/ops/operation.h"

namespace tally::train {

struct AdamW {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
};

// Writes state->grad_norm, clip_factor and found_inf, and adapts a dynamic loss scale
// (update_dynamic_scale()).
inline Operation<void(Stream& s, In gradients, StepState* state)> gradient_norm{"gradient_norm"};
// The same in steps, where other processes have parts of the gradient:
// state->gradient_squares += sum of squares; all processes' sums are added up; then the norm from
// state->gradient_squares. The host zeroes the sum before every step.
inline Operation<void(Stream& s, In gradients, StepState* state)> add_gradient_squares{
    "add_gradient_squares"};
inline Operation<void(Stream& s, StepState* state)> finish_gradient_norm{"finish_gradient_norm"};

// to += from, f32 or f64.
inline Operation<void(Stream& s, In from, Out to)> add_gradients{"add_gradients"};

// The same elements of the flat buffers: those of [0, decayed) are updated with weight decay. The
// rounded weights go to `weights`, which may be `master` itself in f32 and f64. Gradients are
// zeroed where `zero_gradients`. SGD has no v, and its m is the momentum.
struct FlatUpdate {
  Out gradients, master, m, v, weights;
  int64_t decayed = 0;
  bool zero_gradients = false;
};
// Both do nothing but zero gradients where state->found_inf is set. `sms`: the update takes so many
// SMs of a GPU as a whole and leaves the others to other work; 0: all.
inline Operation<void(Stream& s, const AdamW& hyper, const StepState* state,
                      const FlatUpdate& update, int sms)>
    adamw_step{"adamw_step"};
inline Operation<void(Stream& s, double momentum, const StepState* state, const FlatUpdate& update)>
    sgd_step{"sgd_step"};

// A piece has at most this many neighbouring elements of one parameter, which LAMB treats together.
inline constexpr int64_t lamb_piece_elements = 32768;
struct LambPiece {
  void* gradient;  // the first element's; f32, f64 for f64
  // The piece's offset in master weights and moments, and in the weights. Multiples of 16, with
  // `gradient` aligned alike, are fastest.
  int64_t state, weight;
  int32_t count;
  int32_t norm;  // the parameter's row of LambTables::norms; -1: it has no weight decay
};
// Tables in device memory.
struct LambTables {
  const LambPiece* pieces = nullptr;  // pieces of a row of `norms` are neighbours
  int64_t count = 0;                  // number of `pieces`
  // [rows + 1] the first piece of each row of `norms`; those behind the last row's have no row.
  const int64_t* first_piece = nullptr;
  Tensor piece_sums;  // [count,2] f64, scratch
  Tensor norms;       // [rows,2] f64: sums of squares of w and of u
};
struct LambBuffers {
  Out master, m, v, weights;
};

// LAMB in two steps, because processes may have parts of a parameter, whose sums of squares are
// added up in between. Both do nothing but what is said here where state->found_inf is set.
// Updates the moments, writes u in place of the gradients and this process's sums to tables.norms.
inline Operation<void(Stream& s, const AdamW& hyper, const StepState* state,
                      const LambBuffers& buffers, const LambTables& tables)>
    lamb_direction{"lamb_direction"};
// Updates the weights; zeroes u, which is in the gradients' place, or without an update the
// gradients, where `zero_gradients`.
inline Operation<void(Stream& s, const StepState* state, const LambBuffers& buffers,
                      const LambTables& tables, bool zero_gradients)>
    lamb_step{"lamb_step"};

}  // namespace tally::train

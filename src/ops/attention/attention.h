// Scaled-dot-product attention.
//   P = softmax(scale Q K^T + mask); out = P V
//
// Which version serves what (cuda.cc decides; the start of a run prints it):
//   aten           CPU, every type, by ATen (cpu.cc)
//   hopper         bf16 and f16 heads of 64, whole blocks of 128 tokens, no dropout, on compute
//                  capability 9.0 (hopper*.cc, .cu); not repeatable bit for bit
//   cudnn          bf16 and f16 on compute capability 8.0 and newer, as cuDNN's graph API serves
//                  the shape (cudnn.cc)
//   flash          f32 heads of up to 128, on every GPU: float32, float64 tensor cores
//                  (flash-float64), TF32 or three TF32 products (flash-tf32x3) (flash*)
//   unfused        everything else: GEMMs with a softmax kernel between them (unfused.cu)
// Documents (cu_seqlens) and operands that are not packed: aten and unfused.
#pragma once

#include "src/device/compute_options.h"
#include "src/device/step_state.h"
#include "src/device/tensor.h"

namespace tally::train {

// Which keys a query sees: all of its sequence, or those up to itself.
enum class AttentionMask : uint8_t { none, causal };

struct AttentionShape {
  int64_t batch = 0, tokens = 0, heads = 0, head_dim = 0;
  AttentionMask mask = AttentionMask::causal;
  double scale = 0;    // 1 / sqrt(head_dim)
  double dropout = 0;  // probability, element ((b H + h) T + i) T + j of `seed`'s mask (philox.h)
  bool documents = false;  // cu_seqlens is given

  bool causal() const { return mask == AttentionMask::causal; }
};

// The heads of every token, [B,T,H,D]: D elements from head to head, `stride` from token to token.
struct HeadRows {
  void* data = nullptr;
  int64_t stride = 0;
};

struct AttentionArgs {
  AttentionShape shape;
  DType dtype = DType::f32;
  HeadRows q, k, v;
  Tensor out;    // [B,T,H,D]
  Tensor stats;  // [B,H,T] f32 (f64 for f64): log-sum-exp of each row's scaled scores, for the
                 // backward pass
  // i32: where documents begin among the B T tokens, ascending, then B T up to the tensor's end.
  // Tokens see their document only. A document lies within a sequence. Undefined: a document is a
  // sequence.
  Tensor cu_seqlens;
  Tensor workspace;  // attention_workspace() bytes
  DropoutSeed seed;
};

struct AttentionGradients {
  Tensor dout;          // [B,T,H,D]
  HeadRows dq, dk, dv;  // written, not added to
  // [H D], the gradient type: the column sums of dQ are added to it where it is defined: the gradient
  // of Q's bias.
  Tensor q_sums;
};

// With Q, K and V packed in the rows of one GEMM's output, qkv[B,T,3,H,D].
AttentionArgs packed_attention(const AttentionShape& shape, const Tensor& qkv, const Tensor& out,
                               const Tensor& stats, const Tensor& workspace, DropoutSeed seed);
AttentionGradients packed_gradients(const AttentionShape& shape, const Tensor& dout,
                                    const Tensor& dqkv, const Tensor& q_sums = Tensor());
// Whether three HeadRows lie as packed_attention() lays them.
bool is_packed(const AttentionShape& shape, DType dtype, const HeadRows& q, const HeadRows& k,
               const HeadRows& v);

// The version that serves packed operands of this shape on this device, as named above.
const char* attention_backend(const Compute& c, const AttentionShape& shape, DType dtype);

// Bytes of scratch that both directions need (shared by all layers).
size_t attention_workspace(const Compute& c, const AttentionShape& shape, DType dtype);

void attention_forward(const Compute& c, const AttentionArgs& args);
void attention_backward(const Compute& c, const AttentionArgs& args,
                        const AttentionGradients& gradients);

// Rotary position embedding (rotate-half, `fraction` of the head's dimensions) in place on Q and K
// of qkv[B,T,3,H,D]. positions[B,T]: i32; undefined: 0 ... T - 1 in each row. `inverse` rotates back:
// the backward pass applied to dqkv.
void rotary(Stream& s, const Tensor& qkv, const Tensor& positions, double base, double fraction,
            bool inverse);

}  // namespace tally::train

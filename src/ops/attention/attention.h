// Scaled dot-product attention (Vaswani et al., arXiv:1706.03762), and rotary positions.
//   P = softmax(scale Q K^T + mask);  out = dropout(P) V
//   q, out: [B,T,H,D], k, v: [B,T,G,D], the compute type (f64, f32, bf16, f16)
//   With fewer heads of K and V than of Q (grouped query attention: Ainslie et al.,
//   arXiv:2305.13245) head h of Q takes head h G / H of K and V.
//   stats[B,H,T]: f32 (f64 for f64), the log-sum-exp of each row's scaled scores
//
// Scores, softmax and the sums of the gradients are float32, or float64 for f64. The backward pass
// computes P again from Q, K and `stats`.
//
// The versions, and what each serves; the first that serves is taken (cuda.cc), and the start of a run names
// it:
//   aten      every type and head size on the CPU (cpu.cc): blocks of 128 queries and the keys that
//             one of them sees, GEMMs by ATen
//   hopper    flash attention of our own for bf16 and f16 on compute capability 9.0: heads of 64 or
//             128, whole blocks of 128 tokens (hopper/hopper.h). The last bits of dQ differ from run
//             to run. Where cuDNN's backward pass is faster, that follows ("hopper+cudnn"): heads
//             of 128 without dropout, with grouped queries or more than 4,096 tokens.
//   hopper-short
//             the same instructions for sequences or known documents of up to 128 tokens, without a
//             causal mask, with or without dropout (hopper/short.h). For documents its dropout masks are its own.
//   cudnn     flash attention by cuDNN's graph API for bf16 and f16 on compute capability 8.0 and
//             newer, where cuDNN has a kernel for the shape (library/cudnn.cc). Its dropout masks are its
//             own.
//   flash     flash attention of our own for f32 on every GPU: heads of up to 128, where a block's
//             shared memory holds its tiles (flash/flash.h). Its GEMMs are float32 multiply-adds,
//             float64 tensor cores (compute capability 9.0; "flash-float64"), TF32, or three TF32
//             GEMMs.
//   unfused   everything else on a GPU: GEMMs with a softmax kernel between them (library/unfused.cu)
// Documents (cu_seqlens): aten, hopper-short and cudnn where their number and length are known, and
// unfused.
// Operands that are not packed in one tensor: aten and unfused only.
// Grouped queries (G < H): aten, hopper, cudnn and unfused only. Unfused adds up the gradients of K
// and V over a group's heads in the compute type.
//
// The choice depends on these, besides type, shape and GPU. It is not timed.
//   --no-fusion attention     hopper and hopper-short are left out
//   --deterministic           hopper is left out; cuDNN takes its deterministic backward pass
//   --no-fusion float64       flash computes in float32 instead of on float64 tensor cores
//   --precision tf32, tf32x3  flash computes GEMMs in TF32, or each as three in TF32
//   --fp32-attention tf32x3   the latter, for attention alone ("flash-tf32x3")
//   TALLY_ATTENTION=unfused   unfused everywhere on a GPU, to compare the others with it
//   TALLY_ATTENTION=hopper    hopper's backward pass wherever its forward pass serves
//   the build                 no cudnn without cuDNN's front end, no hopper without code for 9.0
//
// DeviceError: the operands are not as AttentionShape::documents and AttentionShape::packed say;
// the driver cannot describe the tensors to TMA (hopper); cuDNN fails; cuBLASLt has no algorithm
// (unfused); on a GPU, the type is not a floating-point type. std::invalid_argument: the same on
// the CPU.
#pragma once

#include "src/device/rotary.h"
#include "src/device/step_state.h"
#include "src/ops/operation.h"

namespace tally::train {

// The keys that a query sees: all of its sequence, or those up to itself.
enum class AttentionMask : uint8_t { none, causal };

struct AttentionShape {
  int64_t batch = 0, tokens = 0, heads = 0, head_dim = 0;
  AttentionMask mask = AttentionMask::causal;
  double scale = 0;    // 1 / sqrt(head_dim)
  double dropout = 0;  // probability, element ((b H + h) T + i) T + j of `seed`'s mask (philox.h)
  bool documents = false;  // cu_seqlens is given
  // The most documents that cu_seqlens has and the longest of them, where these are known: cuDNN
  // serves documents only with both.
  int64_t most_documents = 0, longest = 0;
  bool packed = true;  // q, k and v lie as packed_attention() lays them
  int64_t groups = 0;  // heads of K and V, which divides `heads`; 0: as many

  int64_t kv_heads() const { return groups > 0 ? groups : heads; }
  bool grouped() const { return kv_heads() < heads; }
  int64_t row() const { return (heads + 2 * kv_heads()) * head_dim; }  // packed Q, K and V
  bool causal() const { return mask == AttentionMask::causal; }
};

// The heads of every token, [B,T,H,D] or [B,T,G,D]: D elements from head to head, `stride` from
// token to token.
template <typename Data>
struct Heads {
  Data* data = nullptr;
  int64_t stride = 0;
};
using HeadsIn = Heads<const void>;
using HeadsOut = Heads<void>;

// The operands of both directions: the backward pass reads `out` and `stats`, which the forward
// pass writes.
struct AttentionArgs {
  AttentionShape shape;
  DType dtype = DType::f32;
  HeadsIn q, k, v;
  Out out;    // [B,T,H,D]
  Out stats;  // [B,H,T] f32 (f64 for f64): log-sum-exp of each row's scaled scores; cudnn's of
              // documents are [B T,H]
  // i32: where documents begin among the B T tokens, ascending, then B T up to the tensor's end.
  // Tokens see their document only. A document lies within a sequence. Undefined: a document is a
  // sequence.
  In cu_seqlens;
  Out workspace;  // attention_workspace() bytes
  DropoutSeed seed;
};

struct AttentionGradients {
  In dout;              // [B,T,H,D]
  HeadsOut dq, dk, dv;  // written, not added to
  // [H D], the gradient type; where it is defined, the column sums of dQ are added to it: the
  // gradient of Q's bias.
  Out q_sums;
};

// The operands for Q, K and V that are packed in the rows of one GEMM's output, qkv[B,T,H+2G,D].
struct AttentionResults {
  Out out, stats;
};
AttentionArgs packed_attention(const AttentionShape& shape, const In& qkv,
                               const AttentionResults& results, const Out& workspace,
                               DropoutSeed seed);
AttentionGradients packed_gradients(const AttentionShape& shape, const In& dout, const Out& dqkv,
                                    const Out& q_sums = {});
// Whether heads lie as packed_attention() lays them.
bool is_packed(const AttentionShape& shape, DType dtype, const HeadsIn& q, const HeadsIn& k,
               const HeadsIn& v);

// The version that serves this shape on this device, by the names above.
inline Operation<const char*(const Compute& c, const AttentionShape& shape, DType dtype)>
    attention_backend{"attention_backend"};

// Bytes of scratch that both directions need (shared by all layers).
inline Operation<size_t(const Compute& c, const AttentionShape& shape, DType dtype)>
    attention_workspace{"attention_workspace"};

inline Operation<void(const Compute& c, const AttentionArgs& args)> attention_forward{
    "attention_forward"};
inline Operation<void(const Compute& c, const AttentionArgs& args,
                      const AttentionGradients& gradients)>
    attention_backward{"attention_backward"};

// Rotary position embedding (Su et al., arXiv:2104.09864; rotate-half, the first `fraction` of the
// head's dimensions) in place on Q and K of qkv[B,T,H+2G,D], every type (rotary_cpu.cc, rotary.cu).
// positions[B,T]: i32; undefined: 0 ... T - 1 in each row. `inverse` rotates back, for the backward
// pass on dqkv.
struct RotaryPositions {
  In positions;
  int64_t kv_heads = 0;  // G
  RotaryAngles angles;
  double fraction = 1;
};
inline Operation<void(Stream& s, Out qkv, const RotaryPositions& positions, bool inverse)>
    rotary_embedding{"rotary_embedding"};

}  // namespace tally::train

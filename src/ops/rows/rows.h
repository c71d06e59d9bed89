// Chosen rows of a matrix, rows of a small table added to all rows, and the activations of small
// heads: what encoders need besides the layers of their blocks (Devlin et al., arXiv:1810.04805).
//   gather_rows           out[k] = x[rows[k]]
//   add_to_rows           out[rows[k]] += x[k], the backward pass of gather_rows
//   add_embedding         x[i] += table[ids[i]], as BERT adds token types
//   activation_forward    y = tanh(x) or max(x, 0)
//   activation_backward   dx = dy (1 - y^2), or dy where y > 0 and else 0
//   scale_rows            x[i] *= factors[i]
//   columns_to_rows       out[k,b,j] = x[firsts[b] + j, k] for j < lengths[b], else -infinity
//   rows_to_columns       its backward pass: dx[firsts[b] + j, k] = g[k,b,j], and 0 elsewhere
//   x[M,C], out[K,C] and table[R,C]: the compute type (f64, f32, bf16, f16); rows[K], ids[M]: i32
// The gradient of add_embedding's table is that of any embedding: embedding_backward() in
// embedding.h with the ids of the table's rows.
//
// The versions, and what each serves:
//   CPU (cpu.cc)    every type and size; threads share rows or elements
//   GPUs (cuda.cu)  every type on every GPU, a 16-byte vector a thread, or one value where C is not
//                   a whole number of vectors or an address is not aligned
//
// Additions are taken in f32 (f64 for f64) and rounded once. Each element is added to once, so that
// results repeat bit for bit. No kernel is timed, and no option changes the kernels.
//
// DeviceError on a GPU: the type is not a floating-point type (on the CPU: std::invalid_argument).
// Rows and ids are not checked here: src/train/ checks what comes from data.
#pragma once

#include "src/ops/operation.h"

namespace tally::train {

inline Operation<void(Stream& s, In x, In rows, Out out)> gather_rows{"gather_rows"};
// The rows are distinct.
inline Operation<void(Stream& s, In x, In rows, Out out)> add_to_rows{"add_to_rows"};
inline Operation<void(Stream& s, In ids, In table, Out x)> add_embedding{"add_embedding"};

// The rows that a sequence has in a matrix of tokens: lengths[b] from firsts[b] on.
struct SequenceRows {
  In firsts, lengths;
};
// The few columns of x[M,K] as rows over the tokens of each sequence, out[K,B,T], where no sequence
// has more than T tokens. The rows go through a softmax.
inline Operation<void(Stream& s, In x, SequenceRows sequences, Out out)> columns_to_rows{
    "columns_to_rows"};
inline Operation<void(Stream& s, In g, SequenceRows sequences, Out dx)> rows_to_columns{
    "rows_to_columns"};

// x[i] *= factors[i].  factors[M]: f32 (f64 for f64)
inline Operation<void(Stream& s, In factors, Out x)> scale_rows{"scale_rows"};

enum class Activation : uint8_t { tanh, relu };
// y may be x's memory.
inline Operation<void(Stream& s, Activation kind, In x, Out y)> activation_forward{
    "activation_forward"};
// Takes the output y. dx may be the memory of dy or y.
inline Operation<void(Stream& s, Activation kind, In dy, In y, Out dx)> activation_backward{
    "activation_backward"};

}  // namespace tally::train

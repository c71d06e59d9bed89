// Chosen rows of a matrix, rows of a small table added to all rows, and the activations of small
// heads: what encoders need besides the layers of their blocks (Devlin et al., arXiv:1810.04805).
//   gather_rows           out[k] = x[rows[k]]
//   add_to_rows           out[rows[k]] += x[k], the backward pass of gather_rows
//   add_embedding         x[i] += table[ids[i]], as BERT adds token types
//   activation_forward    y = tanh(x) or max(x, 0)
//   activation_backward   dx = dy (1 - y^2), or dy where y > 0 and else 0
//   columns_to_rows       out[k,b,j] = x[firsts[b] + j, k] for j < lengths[b], else -infinity
//   rows_to_columns       its backward pass: dx[firsts[b] + j, k] = g[k,b,j], and 0 elsewhere
//   x[M,C], out[K,C] and table[R,C]: the compute type (f64, f32, bf16, f16); rows[K], ids[M]: i32
// The gradient of add_embedding's table is that of any embedding: embedding_backward() in
// embedding.h with the ids of the table's rows.
//
// Which version serves what:
//   CPU (cpu.cc)    every type and size; threads share rows or elements
//   GPUs (cuda.cu)  every type on every GPU, a 16-byte vector a thread, or one value where C is not
//                   a whole number of vectors or an address is not aligned
//
// Additions are taken in f32 (f64 for f64) and rounded once. Each element is added to once, so that
// results repeat bit for bit. Nothing is timed, and no option changes the kernels.
//
// DeviceError on a GPU: the type is not a floating-point type (on the CPU: std::invalid_argument).
// Rows and ids are not checked here: src/train/ checks what comes from data.
#pragma once

#include "src/device/stream.h"
#include "src/device/tensor.h"

namespace tally::train {

void gather_rows(Stream& s, const Tensor& x, const Tensor& rows, const Tensor& out);
// The rows are distinct.
void add_to_rows(Stream& s, const Tensor& x, const Tensor& rows, const Tensor& out);
void add_embedding(Stream& s, const Tensor& ids, const Tensor& table, const Tensor& x);

// The few columns of x[M,K] as rows over the tokens of each sequence, out[K,B,T]: sequence b has
// lengths[b] <= T tokens from row firsts[b] on. The rows go through a softmax.
void columns_to_rows(Stream& s, const Tensor& x, const Tensor& firsts, const Tensor& lengths,
                     const Tensor& out);
void rows_to_columns(Stream& s, const Tensor& g, const Tensor& firsts, const Tensor& lengths,
                     const Tensor& dx);

enum class Activation : uint8_t { tanh, relu };
// y may be x's memory.
void activation_forward(Stream& s, Activation kind, const Tensor& x, const Tensor& y);
// From the output y. dx may be the memory of dy or y.
void activation_backward(Stream& s, Activation kind, const Tensor& dy, const Tensor& y,
                         const Tensor& dx);

}  // namespace tally::train

// The norms' forward pass over the rows of rows.cuh: gamma and beta stay in registers from row to
// row.
#pragma once

#include "src/device/cuda/dropout.cuh"
#include "src/ops/norm/rows.cuh"

namespace tally::train::cuda {

struct NormArguments {
  const void *x, *delta, *gamma, *beta;
  void *r, *y, *mean, *rstd;
  int64_t rows, columns;
  double epsilon;
};

template <typename T, int PER, int WIDE, bool with_delta>
using NormForwardRows = NormRows<T, PER, WIDE, with_delta ? 2 : 1, with_delta ? 1 : 2>;

// Registers of gamma, beta and a row decide how many blocks fit an SM.
template <int PER, int N>
constexpr int norm_forward_blocks = PER* N <= 24 ? 4 : 3;

// `centered`: LayerNorm.
template <typename T, int PER, int WIDE, bool with_delta, bool centered>
__global__ void __launch_bounds__(128, (norm_forward_blocks<PER, vector_size<T>>))
    norm_forward_warp_kernel(NormArguments a, Dropout dropout) {
  using Rows = NormForwardRows<T, PER, WIDE, with_delta>;
  constexpr int N = Rows::N;
  Rows rows;
  rows.from[0] = a.x;
  if constexpr (with_delta) rows.from[1] = a.delta;
  rows.rows = a.rows;
  rows.columns = WIDE == 1 ? Rows::most_columns : static_cast<int>(a.columns);
  if (with_delta) dropout.resolve();
  Vector<float, N> gamma[PER], beta[centered ? PER : 1];
  rows.parameters(a.gamma, gamma);
  if constexpr (centered) rows.parameters(a.beta, beta);
  auto* const ring = Rows::slots_of_warp();
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const int64_t step = Rows::step();
  int64_t row = Rows::first_row();
#pragma unroll
  for (int k = 0; k < Rows::slots - 1; ++k) rows.fetch(ring[k], row + k * step);
  const float share = 1.0F / static_cast<float>(rows.columns);
  for (int slot = 0, turn = 0; row < a.rows; row += step) {
    const int last = slot == 0 ? Rows::slots - 1 : slot - 1;  // used in the turn before
    rows.fetch(ring[last], row + (Rows::slots - 1) * step);
    Rows::wait();
    float x[PER][N], sum[1] = {0}, squares[1] = {0};
#pragma unroll
    for (int p = 0; p < PER; ++p) {
      if (!rows.has(p)) continue;
      widen(ring[slot][0][p][lane], x[p]);
      if constexpr (with_delta) {
        float change[N];
        widen(ring[slot][1][p][lane], change);
        const int64_t at = rows.offset(row, p);
        if (dropout.active) dropout.apply<N>(static_cast<uint64_t>(at), change);
        Vector<T, N> r;
#pragma unroll
        for (int k = 0; k < N; ++k) r.v[k] = narrow<T>(x[p][k] + change[k]);
        widen(r, x[p]);  // the values that the backward pass will see
        store<T, N>(static_cast<T*>(a.r) + at, r);
      }
#pragma unroll
      for (int k = 0; k < N; ++k) sum[0] += x[p][k];
    }
    float mean = 0;
    if constexpr (centered) {
      Rows::row_sums(sum, 0);
      mean = sum[0] * share;
    }
#pragma unroll
    for (int p = 0; p < PER; ++p) {
      if (!rows.has(p)) continue;
#pragma unroll
      for (int k = 0; k < N; ++k) squares[0] += (x[p][k] - mean) * (x[p][k] - mean);
    }
    // The turns alternate from row to row without the sums above.
    Rows::row_sums(squares, centered ? 1 : turn);
    turn ^= 1;
    const float rstd = 1.0F / sqrtf(squares[0] * share + static_cast<float>(a.epsilon));
    const float shift = -mean * rstd;
    if (threadIdx.x % (32 * WIDE) == 0) {
      if constexpr (centered) static_cast<float*>(a.mean)[row] = mean;
      static_cast<float*>(a.rstd)[row] = rstd;
    }
#pragma unroll
    for (int p = 0; p < PER; ++p) {
      if (!rows.has(p)) continue;
      Vector<T, N> out;
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if constexpr (centered) {
          out.v[k] = narrow<T>(fmaf(fmaf(x[p][k], rstd, shift), gamma[p].v[k], beta[p].v[k]));
        } else {
          out.v[k] = narrow<T>(x[p][k] * rstd * gamma[p].v[k]);
        }
      }
      store<T, N>(static_cast<T*>(a.y) + rows.offset(row, p), out);
    }
    slot = slot == Rows::slots - 1 ? 0 : slot + 1;
  }
  __pipeline_wait_prior(0);
}

}  // namespace tally::train::cuda

#include "src/ops/rows/rows.h"

#include "src/ops/dispatch.h"
#include "src/ops/rows/backends.h"

namespace tally::train {

void gather_rows(Stream& s, const Tensor& x, const Tensor& rows, const Tensor& out) {
  TALLY_BACKEND(s, gather_rows(s, x, rows, out));
}

void add_to_rows(Stream& s, const Tensor& x, const Tensor& rows, const Tensor& out) {
  TALLY_BACKEND(s, add_to_rows(s, x, rows, out));
}

void add_embedding(Stream& s, const Tensor& ids, const Tensor& table, const Tensor& x) {
  TALLY_BACKEND(s, add_embedding(s, ids, table, x));
}

void columns_to_rows(Stream& s, const Tensor& x, const Tensor& firsts, const Tensor& lengths,
                     const Tensor& out) {
  TALLY_BACKEND(s, columns_to_rows(s, x, firsts, lengths, out));
}

void rows_to_columns(Stream& s, const Tensor& g, const Tensor& firsts, const Tensor& lengths,
                     const Tensor& dx) {
  TALLY_BACKEND(s, rows_to_columns(s, g, firsts, lengths, dx));
}

void activation_forward(Stream& s, Activation kind, const Tensor& x, const Tensor& y) {
  TALLY_BACKEND(s, activation_forward(s, kind, x, y));
}

void activation_backward(Stream& s, Activation kind, const Tensor& dy, const Tensor& y,
                         const Tensor& dx) {
  TALLY_BACKEND(s, activation_backward(s, kind, dy, y, dx));
}

}  // namespace tally::train

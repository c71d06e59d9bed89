// rows.h on the counting device: a pass over each operand.
#include "src/ops/counting.h"
#include "src/ops/rows/rows.h"

namespace tally::train::counting {
namespace {

void gather(Stream& s, In, In rows, Out out) {
  pass(s, rows, out, out);
}
void add_rows(Stream& s, In x, In rows, Out) {
  pass(s, rows, x, x, x);
}
void add_table(Stream& s, In ids, In, Out x) {
  pass(s, ids, x, x);
}
void to_rows(Stream& s, In x, SequenceRows, Out out) {
  pass(s, x, out);
}
void to_columns(Stream& s, In g, SequenceRows, Out dx) {
  pass(s, g, dx);
}
void scale(Stream& s, In factors, Out x) {
  pass(s, factors, x, x);
}
void activate(Stream& s, Activation, In x, Out y) {
  pass(s, x, y);
}
void activate_backward(Stream& s, Activation, In dy, In y, Out dx) {
  pass(s, dy, y, dx);
}

const OnCounting versions[] = {
    {gather_rows, gather},          {add_to_rows, add_rows},
    {add_embedding, add_table},     {columns_to_rows, to_rows},
    {rows_to_columns, to_columns},  {scale_rows, scale},
    {activation_forward, activate}, {activation_backward, activate_backward}};

}  // namespace
}  // namespace tally::train::counting

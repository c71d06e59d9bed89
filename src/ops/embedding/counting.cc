// embedding.h on the counting device.
#include "src/ops/counting.h"
#include "src/ops/embedding/embedding.h"

namespace tally::train::counting {
namespace {

// A row of each table for every token.
void forward(Stream& s, EmbeddingIds ids, EmbeddingTables tables, DropoutMask, Out out) {
  pass(s, ids.ids, ids.positions, out, out, tables.wpe.defined() ? out : Out());
}

// The gradient is read once for each table, and rows of that are read and written.
void backward(Stream& s, EmbeddingIds ids, In dout, DropoutMask, EmbeddingGradients gradients) {
  const auto rows = [&](const Out& table) {
    return table.defined() ? Tensor(table.data, table.dtype, {dout.numel()}) : Tensor();
  };
  const Tensor token = rows(gradients.dwte), position = rows(gradients.dwpe);
  pass(s, ids.ids, ids.positions, token.defined() ? dout : In(), position.defined() ? dout : In(),
       token, token, position, position);
}

const OnCounting versions[] = {{embedding_forward, forward}, {embedding_backward, backward}};

}  // namespace
}  // namespace tally::train::counting

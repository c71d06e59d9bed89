#include "src/ops/embedding/embedding.h"

#include "src/ops/dispatch.h"
#include "src/ops/embedding/backends.h"

namespace tally::train {

void embedding_forward(Stream& s, const Tensor& ids, const Tensor& positions, const Tensor& wte,
                       const Tensor& wpe, double dropout, DropoutSeed seed, const Tensor& out,
                       VocabularyPart part) {
  TALLY_BACKEND(s, embedding_forward(s, ids, positions, wte, wpe, dropout, seed, out, part));
}

void embedding_backward(Stream& s, const Tensor& ids, const Tensor& positions, const Tensor& dout,
                        double dropout, DropoutSeed seed, const Tensor& dwte, const Tensor& dwpe,
                        const Tensor& workspace, VocabularyPart part) {
  TALLY_BACKEND(
      s, embedding_backward(s, ids, positions, dout, dropout, seed, dwte, dwpe, workspace, part));
}

size_t embedding_workspace(Stream& s, int64_t tokens, int64_t vocabulary) {
  return TALLY_BACKEND(s, embedding_workspace(s, tokens, vocabulary));
}

}  // namespace tally::train

// Token and position embeddings with dropout (Radford et al. 2019, GPT-2).
//   out = dropout(wte[ids] + wpe[positions])
//   dwte[ids] += dout,  dwpe[positions] += dout, both under the dropout mask
//   ids[B,T] i32; positions[B,T] i32, undefined: 0 ... T - 1 in each row
//   wte[V,C]: rows part.first ... part.first + V - 1 of the vocabulary; an id outside them has a row of zeros
//   here, and its row and gradient are another process's (vocabulary-parallel embedding)
//   wpe[P,C], undefined with rotary positions; out[B,T,C]
// wte, wpe, out and dout have the compute type (f64, f32, bf16, f16). dwte and dwpe have the
// gradient type (f32, f64 for f64). Sums are taken in the gradient type.
//
// The versions, and what each serves:
//   CPU (cpu.cc)    every type and size; threads share the columns of the backward pass
//   GPUs (cuda.cu)  every type on every GPU, a 16-byte vector a thread, or one value where C is not
//                   a whole number of vectors or an address is not aligned
//
// The GPU's backward pass (backward() in cuda.cu):
//   positions undefined   one thread sums a position's column over the batch
//   token ids, positions  the tokens are sorted by id (CUB's stable radix sort) and cut into chunks
//                         of 32 or more; a block sums a chunk, and a second kernel adds the sums of
//                         ids that span several chunks
// Atomic additions would be simpler, but their order changes from run to run. Here it is fixed on
// every device, so that results repeat bit for bit. No kernel is timed, and no option changes the
// kernels.
//
// DeviceError on a GPU: the sorted lists and partial sums do not fit the stream's workspace, or the
// type is not a floating-point type (on the CPU: std::invalid_argument). Ids and positions are not
// checked here: src/train/feed/data_sources.h checks token ids against the vocabulary.
#pragma once

#include "src/device/step_state.h"
#include "src/ops/operation.h"

namespace tally::train {

// The rows of the vocabulary that a table holds: from `first` on; the vocabulary has `whole`, and 0
// means that the table holds all.
struct VocabularyPart {
  int64_t first = 0, whole = 0;
};

// The rows that are looked up.
struct EmbeddingIds {
  In ids, positions;
  VocabularyPart part;
};
struct EmbeddingTables {
  In wte, wpe;
};
// Undefined where nobody asks for it.
struct EmbeddingGradients {
  Out dwte, dwpe;
};

inline Operation<void(Stream& s, EmbeddingIds ids, EmbeddingTables tables, DropoutMask mask,
                      Out out)>
    embedding_forward{"embedding_forward"};
inline Operation<void(Stream& s, EmbeddingIds ids, In dout, DropoutMask mask,
                      EmbeddingGradients gradients)>
    embedding_backward{"embedding_backward"};

}  // namespace tally::train

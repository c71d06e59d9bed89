// The documents within a row of token ids. The end-of-document token belongs to the document that
// it ends, and the next one begins after it. As in Megatron-LM's _get_ltor_masks_and_position_ids()
// (megatron/core/datasets/gpt_dataset.py), only the row counts: a row that begins inside a document
// begins at position 0.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "src/data/tokens/dataset.h"

namespace tally::train {

// --reset-position-ids: positions[t] is the number of tokens before ids[t] in its document.
void document_positions(const int32_t* ids, int64_t tokens, int32_t eod, int32_t* positions);

// --reset-attention-mask: where the row's documents begin, and its end, as cumulative lengths
// (0, ..., tokens) for attention over sequences of different length. ids[t] attends to those from
// its document's start on.
std::vector<int32_t> document_starts(const int32_t* ids, int64_t tokens, int32_t eod);

// --eod-mask-loss: the token after an end of document is not to be predicted, so targets[t] becomes
// -1 where ids[t] is `eod`. Returns how many targets count.
int64_t mask_document_ends(const int32_t* ids, int64_t tokens, int32_t eod, int32_t* targets);

// Positions[rows, tokens] and the documents of a micro batch ids[rows, tokens], each where it is
// not null. cu_seqlens[rows * tokens + 1]: where the documents of all rows begin, counted through
// the micro batch, and rows * tokens from the last one to the array's end.
void describe_documents(const int32_t* ids, int64_t rows, int64_t tokens, int32_t eod,
                        int32_t* positions, int32_t* cu_seqlens);

// `source` with this treatment of its documents' ends.
std::shared_ptr<const SampleSource> with_document_ends(std::shared_ptr<const SampleSource> source,
                                                       const DocumentEnds& ends);

}  // namespace tally::train

// PyTorch's checkpoints: what torch.save() of version 1.6 or later makes of a state dict. The file
// is a ZIP archive with the pickle FOLDER/data.pkl, and with one entry FOLDER/data/KEY for each
// storage (torch/serialization.py).
#pragma once

#include <string>

#include "src/convert/source_weights.h"

namespace tally::train {

// Adds the tensors of PATH to `out`, by the names of its state dict: what the pickle has under
// "model", "state_dict", "model_state_dict" or "module", else the one dictionary of tensors in it,
// else the whole of it. Tensors of types that are not computed with (bool, i8, i16) are left out.
// Throws std::runtime_error with one sentence
// that names the file where it is damaged, or holds anything else than tensors and plain values;
// nothing of it is executed, and nothing larger than the file is allocated.
void read_torch_file(const std::string& path, SourceWeights* out);

// The same of all shards that a pytorch_model.bin.index.json names.
void read_torch_index(const std::string& path, SourceWeights* out);

}  // namespace tally::train

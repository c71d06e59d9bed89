// A model's weights in Hugging Face's format: GPT-2's linear layers ("Conv1D") keep [in, out] where
// we keep [out, in]; encoders and Llama keep Q, K and V apart, and Llama gates and
// ups; the vocabulary has no padding.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/checkpoint/safetensors.h"
#include "src/config/config.h"
#include "src/device/stream.h"
#include "src/nn/parameters.h"
#include "src/optim/optimizer_state.h"

namespace tally::train {

// The parts of a model that are read and written: its parameters and flat buffers in device memory.
// optimizer.master is the weights themselves in f32 and f64.
struct ParameterState {
  const std::vector<Parameter>* parameters = nullptr;
  // All of the model, undivided, where this process has a part of it; null: it has everything.
  const std::vector<Parameter>* model = nullptr;
  Tensor weights;
  OptimizerBuffers optimizer;  // undefined without an optimizer

  ParameterState() = default;
  explicit ParameterState(const ParameterTable& table, const OptimizerBuffers& buffers = {})
      : parameters(&table.all()), weights(table.weights()), optimizer(buffers) {}
};

// All weights in the compute type to PATH, under the names of GPT2LMHeadModel
// ("transformer.h.0....") or LlamaForCausalLM ("model.layers.0...."), lm_head only when untied, or
// of BERT's and DistilBERT's models with the task's head. Returns the file's checksum.
FileChecksum save_model_weights(const std::string& path, const ParameterState& state,
                                Stream& stream);

// The same file written by several processes, none of which has everything: one makes PATH with its
// header and size, all write their parts into it, copies left out (model_file.cc). The parts are on
// the disk when write_model_part() returns. Both throw std::runtime_error that names the file. The
// first returns the file's size.
uint64_t make_model_file(const std::string& path, const ParameterState& state);
void write_model_part(const std::string& path, const ParameterState& state, Stream& stream);

// The names of the model's tensors in Hugging Face's files, each with the model's prefix and
// without; the value is the name without it.
std::map<std::string, std::string> tensor_names(const std::vector<Parameter>& parameters);

// Whether the weights at `path` fit the parameters, as load_model_weights() checks it: for a check
// before anything is allocated. Returns and throws like it.
std::vector<std::string> check_model_weights(const std::string& path, const ModelConfig& config,
                                             const std::vector<Parameter>& parameters);

// Reads this process's part of a model's weights into `weights` and `master` (where defined),
// rounded to their types; padding rows of the vocabulary become 0. PATH as in WeightFiles. Names
// may have the prefix "transformer.", "model.", "bert." or "distilbert."; the causal masks of old
// files, a tied output layer and an encoder's other heads are ignored. An encoder's head that the
// files do not have stays as it is; returns the names of its parameters. All names, shapes and
// types are checked before anything is changed, and so are the checksums of a checkpoint;
// std::runtime_error with one sentence names what does not fit. A weight that is not finite is such
// an error, too.
std::vector<std::string> load_model_weights(const std::string& path, const ModelConfig& config,
                                            const ParameterState& state, Stream& stream);

}  // namespace tally::train

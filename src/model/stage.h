// A model as the training loop sees it: the layers that this process holds, with explicit forward
// and backward passes over memory that is reserved once, or the autograd reference behind the same
// interface.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "src/config/config.h"
#include "src/device/compute_options.h"
#include "src/device/step_state.h"
#include "src/device/tensor.h"
#include "src/model/architecture.h"
#include "src/nn/deferred_update.h"
#include "src/nn/gemm_hook.h"
#include "src/nn/parameters.h"
#include "src/parallel/collectives/communicator.h"
#include "src/parallel/collectives/mesh.h"

namespace tally::train {

// Labels of each head that count.
using LabelCounts = std::array<int64_t, 2>;

// One micro batch in device memory, all i32; B sequences of T tokens. Fields that a model does not
// use stay undefined. Encoders take sequences of different lengths as rows that are padded to T
// tokens, or one after the other as a single sequence of all tokens, with positions and cu_seqlens.
struct Batch {
  Tensor ids;          // [B,T]
  Tensor positions;    // [B,T] rows of the position table; undefined: 0 ... T - 1 in each sequence
  Tensor token_types;  // [B,T] rows of the token type table, for models that have one
  // Labels of each head. A negative label does not count.
  //   language model      [0]: [B,T]
  //   pre-training        [0]: [K] tokens that are masked; [1]: [S] the next sentence
  //   classification      [0]: [S]
  //   question answering  [0], [1]: [S] the answer's first and last token in the sequence
  std::array<Tensor, 2> labels;
  Tensor rows;             // pre-training: [K] the masked tokens among all, ascending
  Tensor firsts, lengths;  // encoders: [S] the first token of each sequence, and how many it has
  // [n + 1] where n documents begin among the B T tokens, ascending, and B T at the end (repeated
  // up to the tensor's size): tokens attend within their document only. None crosses a sequence.
  // Undefined: a document is a sequence.
  Tensor cu_seqlens;
  // The labels of each head that count, set by the loader; -1: all.
  LabelCounts counted{-1, -1};
  bool first = false;  // the first of its step: gradients are overwritten, whatever they were
};

// The arguments of a micro batch's pass besides the batch.
struct Pass {
  // The losses of each head are weight / labels that count; see `counted`.
  double weight = 1;
  DropoutSeed dropout;         // differs per step and micro batch; the value 0 turns dropout off
  StepState* state = nullptr;  // in device memory
  // The labels that count, of each head, by which losses are divided: [heads] in device memory. The
  // global batch's, or those of a micro batch of a recorded step, which serves micro batches with
  // different counts. Null: Batch::counted.
  const double* counted = nullptr;
  // A counter in device memory, to which an evaluation of a language model adds the tokens that it
  // predicted. Null: they are not counted. Processes that divide the vocabulary do not count.
  double* correct = nullptr;
};

// The state that a micro batch's forward pass leaves for its backward pass. A schedule owns as many
// sets as it has micro batches in flight.
class ActivationSet {
 public:
  virtual ~ActivationSet() = default;
  virtual size_t bytes() const = 0;

  // The tensors at which stages of a pipeline meet, [M,C] each in the compute type; M tokens of a
  // micro batch, or this process's part of them (sequence parallelism). The memory is the set's.
  Tensor input;     // forward() reads it: the output of the stage before; undefined on the first
  Tensor output;    // forward() writes it; undefined on the last stage
  Tensor gradient;  // backward() finds the gradient at `output` there and leaves that at `input`;
                    // undefined where a stage is the whole model
};

class Stage {
 public:
  virtual ~Stage() = default;

  // Allocates. The stage outlives its sets.
  virtual std::unique_ptr<ActivationSet> make_activations() = 0;
  // Fills `set`, which this stage made. The batch's memory and the pass's state stay as they are
  // until the backward pass is done. Enqueues only: no allocation, no synchronisation.
  virtual void forward(const Batch& batch, const Pass& pass, ActivationSet& set) = 0;
  // Gradients of the micro batch that `set` holds, and on the last stage its loss. Gradients are
  // added to the parameter table's (overwritten for Batch::first) and carry the losses' factor *
  // state->loss_scale. The losses * factor are added to state->loss_sums. The factor is
  // Pass::weight / labels that count. Enqueues only.
  virtual void backward(ActivationSet& set) = 0;
  // Forward and loss only, without dropout: the last stage adds the losses of each head *
  // pass.weight to state->loss_sums. The caller divides by the labels that count in all micro
  // batches. Overwrites `set`.
  virtual void evaluate(const Batch& batch, const Pass& pass, ActivationSet& set) = 0;
  // Scratch that all sets share.
  virtual size_t scratch_bytes() const = 0;

  // The scratch in which the processes of a tensor parallel group add up and gather what each has.
  // It has the same sizes on all of them and stays where it is.
  virtual std::vector<Tensor> exchanged() const { return {}; }

  // `hook` is called by backward() as soon as the gradient of a parameter, given by its index in
  // ParameterTable::all(), is final and work on it may be enqueued. Only the parameters of
  // reported_parameters() are reported.
  using GradientHook = std::function<void(int parameter)>;
  void set_gradient_hook(GradientHook hook) { gradient_hook_ = std::move(hook); }
  // The parameters in the order in which backward() reports them. Models that do not know the order
  // report none.
  virtual std::vector<int> reported_parameters() const { return {}; }

  // `hook` is called by forward() of a step's first micro batch (Batch::first) before it reads the
  // weights of a block, with one of the parameters of reported_parameters(), from the first block
  // to the last. Only models that report parameters call it.
  using WeightHook = std::function<void(int parameter)>;
  void set_weight_hook(WeightHook hook) { weight_hook_ = std::move(hook); }

  // `hook` hears the GEMMs of all passes (--explain); empty: nobody does. Only explicit models call it.
  virtual void set_gemm_hook(const GemmHook& hook) { static_cast<void>(hook); }

  // The head's logits in the last evaluate(), in device memory: classification [S,classes],
  // question answering [2,S,T] (start and end; -infinity beyond the sequence). Undefined: none.
  virtual Tensor logits() const { return {}; }

  // The update that may overlap with the forward pass (deferred update); null where the model has
  // none.
  virtual DeferredUpdate* deferred_update() { return nullptr; }

 protected:
  void gradient_is_final(const ParamGrad& p) const {
    if (gradient_hook_) gradient_hook_(p.id);
  }
  bool reports_gradients() const { return static_cast<bool>(gradient_hook_); }
  bool gathers_weights() const { return static_cast<bool>(weight_hook_); }
  void weight_is_needed(const ParamGrad& p) const {
    if (weight_hook_) weight_hook_(p.id);
  }

 private:
  GradientHook gradient_hook_;
  WeightHook weight_hook_;
};

// The parameters that the stages of a process report, in the order in which their gradients become
// final. The stages are in the order of their layers.
std::vector<int> reported_parameters(const std::vector<Stage*>& stages);

// The parts of the model that a process holds, one for each chunk, in the order of their layers.
std::vector<ModelPart> parts_of(const Config& config, const MeshPosition& position);

// Registers the weights of a part in `table` (before allocate()), as weights_of() lists them. A
// process that holds several parts calls it for each, in the order of their layers. An encoder is
// one part.
void register_model(const ModelConfig& config, const ModelPart& part, ParameterTable* table);
void register_model(const ModelConfig& config, ParameterTable* table);  // the whole model

// The explicit model and the autograd reference, as the functions of each task below. `table` is
// laid out. `tensor`: the processes that share the part (tensor parallelism), whose number is
// part.shards; null: one. All of them outlive the model.
std::unique_ptr<Stage> make_model(const Config& config, const ModelPart& part,
                                  const ParameterTable& table, Stream& stream,
                                  Communicator* tensor);
std::unique_ptr<Stage> make_model(const Config& config, const ParameterTable& table,
                                  Stream& stream);  // the whole model
std::unique_ptr<Stage> make_reference(const Config& config, const ParameterTable& table,
                                      Stream& stream);

// Language models (model/gpt.h, reference/gpt.cc).
std::unique_ptr<Stage> make_gpt(const Config& config, const ModelPart& part,
                                const ParameterTable& table, Stream& stream, Communicator* tensor);
std::unique_ptr<Stage> make_gpt(const Config& config, const ParameterTable& table,
                                Stream& stream);  // the whole model
std::unique_ptr<Stage> make_reference_gpt(const Config& config, const ParameterTable& table,
                                          Stream& stream);

// Encoders (model/encoder.h, reference/encoder.cc).
std::unique_ptr<Stage> make_encoder(const Config& config, const ParameterTable& table,
                                    Stream& stream);
std::unique_ptr<Stage> make_reference_encoder(const Config& config, const ParameterTable& table,
                                              Stream& stream);

}  // namespace tally::train

// The stages of the model that this process holds, with what their micro batches need: one set of
// activations and one micro batch's tokens for each that is in flight, and the links to the
// neighbours. Without pipeline parallelism that is one stage, one set and one micro batch.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "src/config/config.h"
#include "src/device/graph.h"
#include "src/model/stage.h"
#include "src/parallel/collectives/mesh.h"
#include "src/parallel/collectives/pipeline_links.h"
#include "src/train/feed/loader.h"
#include "src/train/step/pipeline_schedule.h"

namespace tally::train {

class Pipeline {
 public:
  // `stages`: this process's, in the order of their layers. All outlive this. Collective over
  // mesh.pipeline(). Throws OutOfMemory.
  Pipeline(const Config& config, Stream& stream, const Mesh& mesh, std::vector<Stage*> stages);

  // Whether there are several processes of which each has a part of the layers.
  bool divided() const { return mesh_.shape().pipeline > 1; }
  const std::vector<Stage*>& stages() const { return stages_; }
  // Whether the last of the model's stages is among them: the head, which has the loss.
  bool has_head() const { return parts_.back().last; }
  // The first stage's set and the memory of its micro batch. Evaluations may use them between two
  // steps.
  ActivationSet& activations() { return *sets_.front().front(); }
  Batch& batch() { return *batches_.front(); }

  // Calls of a step's schedule.
  struct Calls {
    // Fills the next micro batch, `number` of the step.
    std::function<void(int64_t number, Batch* batch)> load;
    // The arguments of a micro batch's passes.
    std::function<Pass(int64_t number, const Batch& batch)> pass;
    // A backward pass will need what `pass` has put into the step's state, after forward passes of
    // other micro batches.
    std::function<void(int64_t number)> resume;
    // A stage's backward pass of a micro batch begins, and has ended. Recorded with it.
    std::function<void(int64_t number)> before_backward;
    std::function<void()> after_backward;
  };
  // Does all forward and backward passes of a step of a divided pipeline, and exchanges their ends.
  // Enqueues; on the CPU waits for the neighbours. With `record` the passes of the step's inner
  // micro batches are CUDA graphs, one for each slot in memory. The first and the last micro batch
  // differ from step to step in what they wait for and what they start, so they are called.
  void run(int64_t micro_batches, bool record, const Calls& calls);
  // A micro batch through all stages, forward and loss only; see Stage::evaluate(). `batch` stays
  // as it is until the stages have done it.
  void evaluate(const Batch& batch, const Pass& pass);
  // Drops recorded passes, whose arguments are no longer those of the next steps. Waits for them.
  void forget_recorded();

 private:
  ActivationSet& set_of(const PipelineStep& step);
  void forward(const PipelineStep& step, const Calls& calls);
  void backward(const PipelineStep& step, const Calls& calls);
  void enqueue(const PipelineStep& step, const std::function<void()>& pass);

  Stream& stream_;
  const Mesh& mesh_;
  const std::vector<Stage*> stages_;
  std::vector<ModelPart> parts_;  // one for each stage
  std::unique_ptr<PipelineLinks> links_;
  std::vector<std::vector<std::unique_ptr<ActivationSet>>> sets_;  // each stage's
  std::vector<std::unique_ptr<DeviceBatch>> batches_;
  // Counts of the step that runs.
  int64_t loaded_ = 0, micro_batches_ = 0;
  bool record_ = false;
  // Recorded passes by direction, stage, and the slots of activations and batch.
  std::map<std::tuple<bool, int, size_t, size_t>, std::unique_ptr<StepGraph>> recorded_;
};

}  // namespace tally::train

// The model and the optimizer of a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/checkpoint/checkpoint.h"
#include "src/measure/record.h"
#include "src/model/stage.h"
#include "src/optim/optimizer.h"
#include "src/parallel/collectives/mesh.h"
#include "src/train/run/folders.h"
#include "src/train/step/progress.h"

namespace tally::train {

// Everything that lives on the device, in the order of its construction. `config`, `stream`
// and `mesh` outlive it.
struct Session {
  Session(const Config& config, Stream& stream, const Mesh& mesh);

  // Fills weights and optimizer. `notice` is called for differences from the checkpoint's run.
  Progress start(const StartingPoint& from, const Print& notice);
  // The state of the training, for a checkpoint next to parameters().
  TrainingState state(const Progress& done, const Record& record) const;
  // Writes the model to --save-hf's folder. Throws std::runtime_error.
  // Collective where group.divided().
  void save_to_hugging_face(const SideFiles& files, const SaveGroup& group);

  // Undefined with --skip-train.
  OptimizerBuffers buffers() const { return optimizer ? optimizer->buffers() : OptimizerBuffers(); }
  std::vector<Stage*> stage_list() const;
  ParameterState parameters() const;

  const Config& config;
  Stream& stream;
  ParameterTable table;
  ParameterTable model;                        // the whole model's names and shapes, without memory
  std::vector<std::unique_ptr<Stage>> stages;  // this process's, in the order of their layers
  std::unique_ptr<Sharding> sharding;    // null: every replica has the whole optimizer's state
  std::unique_ptr<Optimizer> optimizer;  // null with --skip-train

 private:
  void share_state(const Mesh& mesh);
  void map_shards(const Mesh& mesh);
  void map_replicas(const Mesh& mesh);
  std::vector<std::string> load_weights(const std::string& folder);
  void draw_weights();
  void load_hugging_face(const std::string& folder, const Print& notice);
  Progress resume(const StartingPoint& from);

  // The optimizer's updates and the skipped steps before this run.
  int64_t first_iteration_ = 0, first_updates_ = 0, skipped_before_ = 0;
  // Memory that the GPUs of tensor parallelism, and the replicas, map from each other; null: none.
  std::unique_ptr<PeerMapping> shards_, replicas_;
};

}  // namespace tally::train

// The model and the optimizer of a run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/checkpoint/model_weights.h"
#include "src/measure/record.h"
#include "src/model/stage.h"
#include "src/optim/optimizer.h"
#include "src/parallel/mesh.h"
#include "src/train/folders.h"

namespace tally::train {

// The progress of a training.
struct Progress {
  int64_t iteration = 0, consumed_samples = 0;
};

// Everything that lives on the device, in the order of its construction. `config`, `stream`
// and `mesh` outlive it.
struct Session {
  Session(const Config& config, Stream& stream, const Mesh& mesh);

  // Fills weights and optimizer. `notice` is called for differences from the checkpoint's run.
  Progress start(const StartingPoint& from, const Print& notice);
  // Writes a checkpoint to --save's folder; returns its own folder. Throws std::runtime_error.
  std::string save(const Progress& done, const Record& record, const SideFiles& files);
  // Writes the model to --save-hf's folder. Throws std::runtime_error.
  void save_to_hugging_face(const SideFiles& files);

  // Undefined with --skip-train.
  OptimizerBuffers buffers() const { return optimizer ? optimizer->buffers() : OptimizerBuffers(); }
  std::vector<Stage*> stage_list() const;
  ParameterState parameters() const { return ParameterState(table, buffers()); }

  const Config& config;
  Stream& stream;
  ParameterTable table;
  std::vector<std::unique_ptr<Stage>> stages;  // of this process, in the order of their layers
  std::unique_ptr<Optimizer> optimizer;        // null with --skip-train

 private:
  void load_weights(const std::string& folder);
  Progress resume(const StartingPoint& from, const Print& notice);

  // The optimizer's updates and the skipped steps before this run.
  int64_t first_iteration_ = 0, first_updates_ = 0, skipped_before_ = 0;
};

}  // namespace tally::train

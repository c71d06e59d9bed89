#include "src/train/step/session.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "src/checkpoint/hugging_face.h"
#include "src/optim/weight_gather.h"
#include "src/train/run/device.h"
#include "src/train/run/failures.h"
#include "src/train/step/pipeline_schedule.h"

namespace tally::train {

Session::Session(const Config& c, Stream& s, const Mesh& mesh) : config(c), stream(s) {
  const std::vector<ModelPart> parts = parts_of(c, mesh.position());
  for (const ModelPart& part : parts) register_model(c.model, part, &table);
  register_model(c.model, &model);
  const bool shares = c.distributed_optimizer && !c.skip_train;
  table.allocate(stream, c.compute_type(),
                 shares ? sharded_memory(c, mesh.replicas().size()) : TableMemory());
  for (const ModelPart& part : parts)
    stages.push_back(c.reference ? make_reference(c, table, stream)
                                 : make_model(c, part, table, stream, &mesh.tensor()));
  if (shares) share_state(mesh);
  if (!c.skip_train)
    optimizer = std::make_unique<Optimizer>(c, table, stream, &mesh, sharding.get());
  map_shards(mesh);
  map_replicas(mesh);
}

// Maps the tensors that tensor parallelism adds up and gathers in the passes.
void Session::map_shards(const Mesh& mesh) {
  if (config.reference || !config.peer_memory) return;
  std::vector<Tensor> exchanged;
  for (const auto& stage : stages)
    for (const Tensor& t : stage->exchanged()) exchanged.push_back(t);
  shards_ = mesh.tensor().map_peers(stream, exchanged);
}

// Maps the buffers of messages that overlap with the passes.
void Session::map_replicas(const Mesh& mesh) {
  const bool overlaps = config.shard_gradients || config.gradient_bucket.value_or(1) > 0;
  if (config.skip_train || config.reference || !config.peer_memory || !overlaps) return;
  std::vector<Tensor> exchanged{table.gradients()};
  if (sharding) exchanged.push_back(table.weights());
  if (table.fp8().defined()) exchanged.push_back(table.fp8());
  replicas_ = mesh.replicas().map_peers(stream, exchanged);
}

void Session::share_state(const Mesh& mesh) {
  Sharding::Options options;
  options.bucket_elements = config.gradient_bucket.value_or(overlapped_bucket);
  options.shard_gradients = config.shard_gradients;
  for (const Parameter& p : table.all())
    if (p.reduction == Reduction::ends) options.alone = table.get(p.name).id;
  sharding = std::make_unique<Sharding>(mesh.replicas(), table, stream,
                                        reported_parameters(stage_list()), options);
}

std::vector<Stage*> Session::stage_list() const {
  std::vector<Stage*> list;
  for (const auto& stage : stages) list.push_back(stage.get());
  return list;
}

ParameterState Session::parameters() const {
  ParameterState state(table, buffers());
  state.model = &model.all();
  return state;
}

std::vector<std::string> Session::load_weights(const std::string& folder) {
  return load_model_weights(folder, config.model, parameters(), stream);
}

// Replicas that share the optimizer's state draw what they own and get the rest from the others: a
// large model takes all of a host for a minute. A rehearsal has no others.
void Session::draw_weights() {
  const OptimizerBuffers own = buffers();
  const bool alone = !sharding || config.rehearsal.asked;
  table.initialize(config.seed, own.master, own.ranges, alone);
  if (!alone) WeightGather(stream, table, *sharding).all();
}

// A model of Hugging Face may have been trained for something else: its new head starts from random
// weights.
void Session::load_hugging_face(const std::string& folder, const Print& notice) {
  if (!config.model.language_model()) draw_weights();
  const std::vector<std::string> missing = load_weights(folder);
  if (!missing.empty())
    notice(fmt::format("--load-hf: {} has no weights of {}, which start from random ones", folder,
                       fmt::join(missing, ", ")));
}

Progress Session::start(const StartingPoint& from, const Print& notice) {
  if (from.resumes) return resume(from);
  if (from.checkpoint) {
    check_flag("--load", [&] { load_weights(*from.checkpoint); });
  } else if (!config.load_hf_dir.empty()) {
    check_flag("--load-hf", [&] { load_hugging_face(config.load_hf_dir, notice); });
  } else {
    draw_weights();
  }
  return {};
}

Progress Session::resume(const StartingPoint& from) {
  TrainingState state;
  if (from.optimizer) {
    std::optional<TrainingState> loaded;
    check_flag("--load", [&] {
      loaded = load_checkpoint(config.load_dir, config.model, parameters(), stream);
    });
    if (!loaded)
      throw InputError(fmt::format("--load: {} holds no checkpoint any more", config.load_dir));
    state = *loaded;
    optimizer->restore(state.optimizer_steps, {state.loss_scale, state.loss_scale_good_steps,
                                               state.loss_scale_hysteresis});
  } else {
    check_flag("--load", [&] {
      state = read_training_state(*from.checkpoint);
      load_weights(*from.checkpoint);
    });
  }
  first_iteration_ = state.iteration;
  first_updates_ = optimizer ? optimizer->updates() : 0;
  skipped_before_ = state.skipped_iterations;
  return {state.iteration, state.consumed_samples, state.scheduled_samples};
}

TrainingState Session::state(const Progress& done, const Record& record) const {
  TrainingState state;
  state.iteration = done.iteration;
  state.consumed_samples = done.consumed_samples;
  state.scheduled_samples = done.scheduled_samples;
  state.optimizer_steps = optimizer->updates();
  state.skipped_iterations = skipped_before_ + (done.iteration - first_iteration_) -
                             (optimizer->updates() - first_updates_);
  const LossScaler::State scale = optimizer->scaler().state();
  state.loss_scale = scale.scale;
  state.loss_scale_good_steps = scale.growth_steps;
  state.loss_scale_hysteresis = scale.hysteresis_left;
  state.seed = config.seed;
  state.sequence = config.sequence;
  state.optimizer = config.save_optimizer;
  state.optimizer_kind = optimizer_name(config.optimizer.kind);
  state.config_json =
      configuration_json(record).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
  return state;
}

void Session::save_to_hugging_face(const SideFiles& files, const SaveGroup& group) {
  save_hugging_face(config.save_hf_dir, config.model, files, parameters(), stream, group);
}

}  // namespace tally::train

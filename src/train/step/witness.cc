#include "src/train/step/witness.h"

#include "src/parallel/collectives/communicator.h"
#include "src/train/run/world.h"
#include "src/train/step/session.h"
#include "src/train/step/step_loop.h"

namespace tally::train {
namespace {

// The same training by the reference model, which does nothing besides its first steps.
Config witness_of(const Config& config) {
  Config c = config;
  c.reference = true;
  c.device = "cpu";
  c.precision = Precision::f64;
  c.fp8 = {};
  c.policy = {};
  c.cuda_graph = false;
  c.recompute = Recompute::none;
  c.loss_scale = 1;
  c.log_interval = c.exit_interval = config.witness_steps;
  c.save_interval = c.eval_interval = c.eval_iterations = c.eval_interval_samples = 0;
  c.weight_check_interval = 0;
  c.target_loss = 0;
  c.time_phases = false;
  c.distributed_optimizer = c.shard_gradients = false;
  c.save_dir.clear();
  return c;
}

}  // namespace

std::vector<double> witness_losses(const Config& config, const Samples& train,
                                   const StartingPoint& start) {
  const Config c = witness_of(config);
  const auto stream = make_stream({DeviceKind::cpu, 0});
  const auto communicator = make_single_communicator();
  const Mesh mesh(*communicator, mesh_shape(c));
  Session session(c, *stream, mesh);
  const Progress from = session.start(start, [](const std::string&) {});
  RunLists lists;
  StepLoop loop(
      {c, *stream, session.table, session.stage_list(), *session.optimizer, train, nullptr, mesh},
      {}, &lists);
  loop.run(from);
  std::vector<double> losses;
  for (const Step& step : lists.steps) losses.push_back(step.loss);
  return losses;
}

}  // namespace tally::train

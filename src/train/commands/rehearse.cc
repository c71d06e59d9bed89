#include "src/train/commands/rehearse.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "src/data/text/exit_codes.h"
#include "src/data/tokens/dataset.h"
#include "src/measure/flops.h"
#include "src/model/architecture.h"
#include "src/optim/schedule.h"
#include "src/parallel/collectives/rehearsal.h"
#include "src/train/run/device.h"
#include "src/train/run/failures.h"
#include "src/train/run/output.h"
#include "src/train/run/world.h"
#include "src/train/step/forward_backward.h"
#include "src/train/step/session.h"

namespace tally::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Steps that tune and record, and steps that are measured.
constexpr int warm_up = StepGraph::eager_calls + 1, least_measured = 3, most_measured = 10;

// Medians and ranges of what was measured, in seconds.
struct Measured {
  std::vector<double> passes, updates;  // times of each step
  static double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
  }
};

// The objects that a step needs.
struct Rehearsed {
  const Config& config;
  Session& session;
  const Mesh& mesh;
  MicroBatches* loader;
};

std::unique_ptr<MicroBatches> loader_of(const Config& c, Session& session, const Mesh& mesh) {
  const std::shared_ptr<const SampleSource> source =
      make_mock_samples(c.model.vocabulary, c.sequence, c.seed);
  return make_loader(c, mesh.samples(), session.stream, source, 0,
                     static_cast<int>(2 * c.micro_batches()));
}

// A step's passes and its update, each waited for: both take much longer than waiting. New weights
// are gathered in the next step's passes (StepLoop), where they are at all.
void run_step(const Rehearsed& r, ForwardBackward& passes, int64_t step, Measured* measured) {
  Stream& stream = r.session.stream;
  Optimizer& optimizer = *r.session.optimizer;
  optimizer.defer_gather(r.config.policy.fusions.overwrite);
  optimizer.begin_step(0);  // training on noise must not diverge
  stream.synchronize();
  const auto start = Clock::now();
  passes.run(r.loader, step * r.config.global_batch, 0);
  stream.synchronize();
  const double passed = seconds_since(start);
  const auto update = Clock::now();
  optimizer.apply(!r.config.policy.fusions.overwrite);
  stream.synchronize();
  if (measured) {
    measured->passes.push_back(passed);
    measured->updates.push_back(seconds_since(update));
  }
  optimizer.finish_step();
}

// A group of all ranks is the world, see Mesh. Its messages between two ranks are a pipeline's.
std::string group_of(const Messages& m, const MeshShape& shape) {
  if (m.group != "world") return m.group;
  if (m.kind == MessageKind::send || m.kind == MessageKind::receive) return "pipeline";
  if (shape.tensor == shape.size()) return "tensor";
  return shape.data == shape.size() ? "data" : m.group;
}

// Counts the messages of a step. Its passes are not recorded: a graph that is replayed calls no
// communicator.
std::vector<Messages> count_messages(const Rehearsed& r, RehearsalLedger* ledger) {
  Config eager = r.config;
  eager.cuda_graph = false;
  ForwardBackward passes(eager, r.session.stream, r.session.table, r.session.stage_list(), r.mesh,
                         *r.session.optimizer, 1);
  ledger->clear();
  run_step(r, passes, 0, nullptr);
  std::vector<Messages> messages = ledger->messages();
  for (Messages& m : messages) m.group = group_of(m, r.mesh.shape());
  return messages;
}

Measured measure_steps(const Rehearsed& r) {
  const Config& c = r.config;
  ForwardBackward passes(c, r.session.stream, r.session.table, r.session.stage_list(), r.mesh,
                         *r.session.optimizer, 1);
  Measured measured;
  const auto steps =
      std::clamp<int64_t>(c.train_iterations, least_measured, most_measured) + warm_up;
  for (int64_t step = 1; step <= steps; ++step)
    run_step(r, passes, step, step > warm_up ? &measured : nullptr);
  return measured;
}

const char* kind_name(MessageKind kind) {
  switch (kind) {
    case MessageKind::all_reduce:
      return "all-reduce";
    case MessageKind::all_gather:
      return "all-gather";
    case MessageKind::reduce_scatter:
      return "reduce-scatter";
    case MessageKind::broadcast:
      return "broadcast";
    case MessageKind::send:
      return "send";
    case MessageKind::receive:
      return "receive";
  }
  return "";
}

// Groups whose messages are those of single micro batches; the others' come once a step.
bool of_micro_batches(const Messages& m) {
  return m.group == "tensor" || m.group == "pipeline";
}

// Seconds for the messages of a step. Tensor parallel ranks share a node.
double seconds_for(const Messages& m, const Rehearsal& r) {
  const bool node = m.group == "tensor";
  return m.bytes_sent() / (node ? r.node_rate : r.network_rate) +
         m.steps() * (node ? r.node_seconds : r.network_seconds);
}

std::string messages_text(const std::vector<Messages>& all, int64_t micro_batches) {
  std::string out;
  for (const Messages& m : all) {
    if (m.kind == MessageKind::receive) continue;
    const bool often = of_micro_batches(m);
    const double times = often ? static_cast<double>(micro_batches) : 1;
    out += fmt::format("  sends      {}: {:.4g} {} of {:.2f} MiB on average among {} ranks, a {}\n",
                       m.group, static_cast<double>(m.calls) / times, kind_name(m.kind),
                       m.bytes / static_cast<double>(m.calls) / (1 << 20), m.ranks,
                       often ? "micro batch" : "step");
  }
  return out.empty() ? "  sends      nothing\n" : out;
}

// FLOPs of this rank's layers for a token, the head's where it has it; see model_flops_per_token().
double flops_of(const Config& c, const std::vector<ModelPart>& parts) {
  ModelConfig of_layers = c.model, of_head = c.model;
  of_layers.layers = 0;
  of_layers.vocabulary = 0;
  of_head.layers = 0;
  double flops = 0;
  for (const ModelPart& part : parts) {
    of_layers.layers = part.layers;
    flops += model_flops_per_token(of_layers, c.sequence);
    if (part.last) flops += model_flops_per_token(of_head, c.sequence);
  }
  return flops / c.tensor_parallel;
}

std::string layers_text(const std::vector<ModelPart>& parts) {
  std::string out;
  for (const ModelPart& part : parts)
    out += fmt::format("{}{} to {}", out.empty() ? "" : ", ", part.first_layer,
                       part.first_layer + part.layers - 1);
  if (parts.front().first) out += ", with the embedding";
  if (parts.back().last) out += ", with the head";
  return out;
}

std::string header_text(const Config& c, const DeviceFacts& device,
                        const std::vector<ModelPart>& parts, const ParameterTable& table) {
  return fmt::format(
             "rehearsal of tensor {}{} x pipeline {} x data {}: stage {}, layers {} of {}\n",
             c.tensor_parallel, c.sequence_parallel ? " (sequence parallel)" : "",
             c.pipeline_parallel, c.data_parallel, c.rehearsal.stage, layers_text(parts),
             c.model.layers) +
         fmt::format("  device     {}\n", device.device_info.name) +
         fmt::format(
             "  batch      {} samples of {} tokens a step, {} x {} at a time on this rank\n",
             c.global_batch, c.sequence, c.micro_batches(), c.micro_batch) +
         fmt::format("  parameters {:.2f} M on this rank of {:.2f} M, {}{}\n",
                     static_cast<double>(table.count()) / 1e6,
                     static_cast<double>(parameter_count(c.model)) / 1e6, precision_text(c),
                     c.recompute == Recompute::none
                         ? ""
                         : fmt::format(", recompute: {}", recompute_name(c.recompute)));
}

std::string step_text(const Config& c, const RehearsedStep& s) {
  const double tokens = static_cast<double>(c.global_batch) * static_cast<double>(c.sequence);
  const double alone = s.without_messages(), all = s.with_messages();
  std::string out = fmt::format(
      "  step       {:.4f} s without messages, if all stages were like this one: {} micro batches, "
      "bubble {:.1f} %, {:.0f} tokens/s\n",
      alone, s.micro_batches, 100 * s.bubble / (static_cast<double>(s.micro_batches) + s.bubble),
      tokens / alone);
  if (c.rehearsal.network_rate > 0)
    out += fmt::format(
        "  predicted  {:.4f} to {:.4f} s, {:.0f} to {:.0f} tokens/s: all messages hidden behind "
        "other work, or none\n",
        alone, all, tokens / all, tokens / alone);
  return out;
}

}  // namespace

int rehearse(const Config& config) {
  for (const std::string& note : config.notices) print_note(note);
  const OpenDevice device = open_device(config);
  Stream& stream = *device.stream;
  const MeshShape shape = mesh_shape(config);
  RehearsalLedger ledger;
  const auto world = make_rehearsal_communicator(rank_of(shape, {0, config.rehearsal.stage, 0}),
                                                 shape.size(), &ledger);
  const Mesh mesh(*world, shape);
  const std::vector<ModelPart> parts = parts_of(config, mesh.position());
  Session session(config, stream, mesh);
  print_text(header_text(config, device.facts, parts, session.table));
  session.start({}, [](const std::string&) {});
  const auto loader = loader_of(config, session, mesh);
  const Rehearsed rehearsed{config, session, mesh, loader.get()};
  const std::vector<Messages> messages = count_messages(rehearsed, &ledger);
  const Measured measured = measure_steps(rehearsed);

  RehearsedStep step;
  step.micro_batches = config.micro_batches();
  const auto micro_batches = static_cast<double>(step.micro_batches);
  step.micro_batch = Measured::median(measured.passes) / micro_batches;
  step.update = Measured::median(measured.updates);
  step.bubble =
      static_cast<double>(config.pipeline_parallel - 1) / static_cast<double>(parts.size());
  if (config.rehearsal.network_rate > 0)
    for (const Messages& m : messages)
      (of_micro_batches(m) ? step.micro_batch_messages : step.step_messages) +=
          seconds_for(m, config.rehearsal) / (of_micro_batches(m) ? micro_batches : 1);

  const auto [least, most] = std::minmax_element(measured.passes.begin(), measured.passes.end());
  const double flops = flops_of(config, parts) * static_cast<double>(config.micro_batch) *
                       static_cast<double>(config.sequence);
  print_text(
      fmt::format(
          "  memory     {:.2f} GiB at the peak, without what a communication library takes\n",
          static_cast<double>(stream.bytes_peak()) / (1 << 30)) +
      messages_text(messages, step.micro_batches) +
      fmt::format("  measured   {:.3f} ms a micro batch ({:.3f} to {:.3f}), {:.1f} TFLOP/s; update "
                  "{:.3f} ms\n",
                  1e3 * step.micro_batch, 1e3 * *least / micro_batches, 1e3 * *most / micro_batches,
                  flops / step.micro_batch / 1e12, 1e3 * step.update) +
      step_text(config, step));
  return exit_completed;
}

}  // namespace tally::train

#include "src/train/step/pipeline.h"

#include <algorithm>

namespace tally::train {

Pipeline::Pipeline(const Config& config, Stream& stream, const Mesh& mesh,
                   std::vector<Stage*> stages)
    : stream_(stream),
      mesh_(mesh),
      stages_(std::move(stages)),
      parts_(parts_of(config, mesh.position())) {
  if (divided()) links_ = std::make_unique<PipelineLinks>(mesh.pipeline(), stream);
  const auto chunks = static_cast<int>(stages_.size());
  const auto schedule = pipeline_schedule(mesh.position().stage, mesh.shape().pipeline, chunks,
                                          divided() ? config.micro_batches() : 1);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    auto& sets = sets_.emplace_back();
    for (int64_t k = 0; k < micro_batches_in_flight(schedule, chunk); ++k)
      sets.push_back(stages_[static_cast<size_t>(chunk)]->make_activations());
  }
  for (int64_t k = 0; k < micro_batches_in_flight(schedule); ++k)
    batches_.push_back(std::make_unique<DeviceBatch>(config, stream));
}

// The micro batches in flight follow one another.
ActivationSet& Pipeline::set_of(const PipelineStep& step) {
  const auto& sets = sets_[static_cast<size_t>(step.chunk)];
  return *sets[static_cast<size_t>(step.micro_batch) % sets.size()];
}

void Pipeline::run(int64_t micro_batches, bool record, const Calls& calls) {
  loaded_ = 0;
  micro_batches_ = micro_batches;
  record_ = record;
  for (const PipelineStep& step :
       pipeline_schedule(mesh_.position().stage, mesh_.shape().pipeline,
                         static_cast<int>(stages_.size()), micro_batches)) {
    if (step.forward) {
      forward(step, calls);
    } else {
      backward(step, calls);
    }
  }
  links_->wait_for_output(stream_);
  links_->wait_for_gradient(stream_);
}

void Pipeline::enqueue(const PipelineStep& step, const std::function<void()>& pass) {
  if (!record_ || step.micro_batch == 0 || step.micro_batch == micro_batches_ - 1) return pass();
  const auto slot = [&](size_t slots) { return static_cast<size_t>(step.micro_batch) % slots; };
  auto& graph =
      recorded_[{step.forward, step.chunk, slot(sets_[static_cast<size_t>(step.chunk)].size()),
                 slot(batches_.size())}];
  if (!graph) graph = StepGraph::make(stream_);
  graph->run(pass);
}

void Pipeline::forget_recorded() {
  if (recorded_.empty()) return;
  stream_.synchronize();
  recorded_.clear();
}

void Pipeline::forward(const PipelineStep& step, const Calls& calls) {
  Batch& batch = *batches_[static_cast<size_t>(step.micro_batch) % batches_.size()];
  if (step.micro_batch == loaded_) {
    calls.load(step.micro_batch, &batch);
    ++loaded_;
  }
  ActivationSet& set = set_of(step);
  const auto chunk = static_cast<size_t>(step.chunk);
  if (!parts_[chunk].first) links_->receive_input(stream_, set.input);
  if (!parts_[chunk].last) links_->wait_for_output(stream_);
  const Pass pass = calls.pass(step.micro_batch, batch);
  enqueue(step, [&] { stages_[chunk]->forward(batch, pass, set); });
  if (!parts_[chunk].last) links_->start_send_output(stream_, set.output);
}

void Pipeline::backward(const PipelineStep& step, const Calls& calls) {
  ActivationSet& set = set_of(step);
  const auto chunk = static_cast<size_t>(step.chunk);
  if (!parts_[chunk].first) links_->wait_for_gradient(stream_);
  if (!parts_[chunk].last) links_->receive_gradient(stream_, set.gradient);
  calls.resume(step.micro_batch);
  enqueue(step, [&] {
    calls.before_backward(step.micro_batch);
    stages_[chunk]->backward(set);
    calls.after_backward();
  });
  if (!parts_[chunk].first) links_->start_send_gradient(stream_, set.gradient);
}

void Pipeline::evaluate(const Batch& batch, const Pass& pass) {
  for (size_t chunk = 0; chunk < stages_.size(); ++chunk) {
    ActivationSet& set = *sets_[chunk].front();
    if (divided() && !parts_[chunk].first) links_->receive_input(stream_, set.input);
    if (divided() && !parts_[chunk].last) links_->wait_for_output(stream_);
    stages_[chunk]->evaluate(batch, pass, set);
    if (divided() && !parts_[chunk].last) links_->start_send_output(stream_, set.output);
  }
}

}  // namespace tally::train

#include "src/train/skip_train.h"

#include <fmt/format.h>

#include "src/measure/log_line.h"
#include "src/train/evaluation.h"
#include "src/train/loader.h"

namespace tally::train {

void evaluate_once(const Config& c, Session& session, const DataSources& data,
                   Communicator& communicator, int64_t iteration, const Print& print,
                   Record* record) {
  Stream& stream = session.stream;
  DeviceBatch batch(c, stream);
  auto* state =
      static_cast<StepState*>(stream.allocate(sizeof(StepState), "result of an evaluation"));
  const auto activations = session.stage->make_activations();
  for (const auto& [name, source] :
       {std::pair{"validation", data.validation}, std::pair{"test", data.test}}) {
    if (!source) continue;
    const auto loader = make_loader(c, communicator, stream, source, 0, evaluation_in_flight);
    const double loss = mean_batch_loss(stream, *session.stage, *activations, batch, *loader,
                                        c.eval_iterations * c.micro_batches(), state, communicator);
    print(format_validation(fmt::format("iteration {} on {} set", iteration, name), loss));
    record->evaluations.push_back({iteration, loss, name});
  }
  stream.release(state);
}

}  // namespace tally::train

#include "src/train/commands/skip_train.h"

#include <fmt/format.h>

#include <cmath>

#include "src/measure/log_line.h"
#include "src/train/run/failures.h"
#include "src/train/run/stop_request.h"
#include "src/train/score/evaluator.h"
#include "src/train/step/pipeline.h"

namespace tally::train {

void evaluate_once(const Config& config, Session& session, const DataSources& data,
                   const Mesh& mesh, int64_t iteration, const Print& print, RunLists* lists) {
  Pipeline pipeline(config, session.stream, mesh, session.stage_list());
  Evaluator evaluator(
      config, session.stream,
      [&](const Batch& batch, const Pass& pass) {
        throw_if_signalled();
        pipeline.evaluate(batch, pass);
      },
      [&] { return pipeline.stages().back()->logits(); }, mesh);
  for (const auto& [name, source] :
       {std::pair{"validation", data.validation}, std::pair{"test", data.test}}) {
    if (!source) continue;
    const HeldOutResult found = evaluator.evaluate(source, 0, pipeline.batch());
    print(format_validation(fmt::format("iteration {} on {} set", iteration, name), found.loss,
                            found.metrics));
    lists->evaluations.push_back({iteration, found.loss, name, found.metrics});
    if (!std::isfinite(found.loss))
      throw CheckFailed(fmt::format("the loss of the {} set is not finite", name));
  }
}

}  // namespace tally::train

#include "src/model/stage.h"

namespace tally::train {

std::vector<int> reported_parameters(const std::vector<Stage*>& stages) {
  std::vector<int> ids;
  for (auto stage = stages.rbegin(); stage != stages.rend(); ++stage) {
    const std::vector<int> of_stage = (*stage)->reported_parameters();
    ids.insert(ids.end(), of_stage.begin(), of_stage.end());
  }
  return ids;
}

}  // namespace tally::train

// The points of runs whose records say where the time of a step went.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/report/time_waterfall.h"
#include "engine/run/run.h"

namespace tally {

// The mean over the repeats of a point.
struct ExplainedPoint {
  std::string step;  // empty: of a file or a folder that was named
  std::vector<std::pair<std::string, std::string>> parameters;
  TimeWaterfall waterfall;
  size_t repeats = 0;
};

// One of two that are compared.
struct ExplainedSide {
  std::string name;
  std::vector<ExplainedPoint> points;
};

// Lists the points of a run, in the order of its workpackages: the JSON files in the folders of those that
// ended well.
Status explained_points(const Run& run, std::vector<ExplainedPoint>* points);

struct ExplainedPair {
  const ExplainedPoint* base;
  const ExplainedPoint* other;
};
// One of each is a pair, whatever the parameters. Else those with equal ones are.
std::vector<ExplainedPair> pairs_of(const std::vector<ExplainedPoint>& base,
                                    const std::vector<ExplainedPoint>& other);

// "train (gpus=2, precision=bf16)"; empty: it has no step.
std::string label_of(const ExplainedPoint& point);

}  // namespace tally

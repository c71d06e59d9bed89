// Published step times and rates of Megatron-LM on A100 GPUs, of the JUPITER benchmark, and our own
// of one H200: what the plan's time model is compared with. Each table names its source.
#pragma once

#include <string>
#include <vector>

#include "src/plan/time_model.h"

namespace tally::train {

// What a row's figure is.
enum class Unit {
  step,     // seconds of a step
  tokens,   // tokens/s of the whole run
  tflops,   // TFLOP/s of each GPU by the formula of Narayanan et al., with full recomputation
  forward,  // milliseconds of a layer
  backward
};

struct PublishedRow {
  const char* name;
  std::string flags;  // of --plan
  double figure = 0;
  Unit unit = Unit::step;
};

// One table: one machine, one program. The efficiency is fitted to the row `fitted` alone; all
// others are predicted.
struct PublishedTable {
  const char* name;
  const char* source;
  const char* gpu;
  ProgramTraits traits;
  size_t fitted = 0;
  std::vector<PublishedRow> rows;
};

std::vector<PublishedTable> published_tables();

}  // namespace tally::train

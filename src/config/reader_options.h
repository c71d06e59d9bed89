// Options of the readers of an encoder's files, from a Config.
#pragma once

#include "src/config/config.h"
#include "src/data/encoders/classification.h"
#include "src/data/encoders/squad.h"

namespace tally::train {

SquadOptions squad_options(const Config& config);
LabelledTextOptions labelled_text_options(const Config& config);

}  // namespace tally::train

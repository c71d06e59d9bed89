// The folders of models as checkpoint/ knows them, for parse_args().
#pragma once

#include "src/config/stored_models.h"

namespace tally::train {

// Checkpoints of --save, and models in Hugging Face's format.
StoredModels stored_models();

}  // namespace tally::train

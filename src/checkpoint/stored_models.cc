#include "src/checkpoint/stored_models.h"

#include <filesystem>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/latest_checkpoint.h"
#include "src/checkpoint/model_config_file.h"
#include "src/data/tokenizers/tokenizer_settings.h"

namespace tally::train {

StoredModels stored_models() {
  StoredModels models;
  models.holds_checkpoints = [](const std::string& path) {
    return std::filesystem::exists(path + "/" + latest_file);
  };
  models.latest_checkpoint = [](const std::string& root) { return latest_checkpoint(root); };
  models.read_config = [](const std::string& folder, const ModelConfigRequest& r) {
    check_folder(folder);
    return read_model_config(folder, r.defaults, r.vocabulary_multiple, r.dropout);
  };
  models.lower_case = [](const std::string& folder) {
    check_folder(folder);
    return stated_lower_case(folder);
  };
  return models;
}

}  // namespace tally::train

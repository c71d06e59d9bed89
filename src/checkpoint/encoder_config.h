// The config.json of transformers' BERT and DistilBERT. Private to checkpoint/.
#pragma once

#include <string>
#include <vector>

#include "src/checkpoint/config_reader.h"
#include "src/config/config.h"

namespace tally::train {

// Sets the fields of an encoder and its task, as of BertForSequenceClassification. Other fields of
// the file that the model comes from stay. `type`: the weights', as "float32". `classes`: the names
// of the first classes; empty: the file's, or LABEL_0, LABEL_1 and so on.
void write_encoder_config(const ModelConfig& config, const std::string& type,
                          const std::vector<std::string>& classes, ConfigJson* json);

// The names of a classifier's classes by their numbers: id2label. Empty where it is no classifier,
// or where they are but LABEL_0, LABEL_1 and so on. Throws std::runtime_error with one sentence.
std::vector<std::string> read_class_names(const ConfigReader& in);

// Reads a file of model type `type`, bert or distilbert. defaults.task, unless it is that of a
// language model, is the task; else the file's architecture tells it. Throws std::runtime_error
// with one sentence where the model is not supported.
ModelConfig read_encoder_config(const ConfigReader& in, const std::string& type,
                                const ModelConfig& defaults, int64_t vocabulary_multiple);

}  // namespace tally::train

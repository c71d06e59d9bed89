#include "src/train/run/saved_run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tally::train {
namespace {

using Json = nlohmann::ordered_json;

// The runs in which a setting changes the numbers.
enum class When {
  always,
  means,   // each micro batch's loss is a mean of its own (--eod-mask-loss)
  dropout  // masks are drawn, and the above does not hold
};

// A setting of the record's configuration.
struct SavedSetting {
  const char* flag;
  const char* path;  // JSON pointer
  const char* effect;
  When when = When::always;
  const char* zero = nullptr;  // the meaning of 0, for the note
};

constexpr const char* kRate = "the learning rate does not follow the checkpoint's schedule";
constexpr const char* kBatch =
    "samples count for the schedule, so that the learning rate and the number of steps change";
constexpr const char* kUpdate = "the updates are others";
constexpr const char* kScale = "the loss scale takes another course";
constexpr const char* kMeans =
    "with --eod-mask-loss each micro batch's mean counts alike, so that the updates are others";
constexpr const char* kMasks =
    "the masks of dropout are drawn for each micro batch, so that the updates are others";

constexpr SavedSetting kSettings[] = {
    {"--global-batch-size", "/training/global_batch_size", kBatch},
    {"--rampup-batch-size", "/training/rampup_batch_size", kBatch},
    {"--micro-batch-size", "/training/micro_batch_size", kMeans, When::means},
    {"--micro-batch-size", "/training/micro_batch_size", kMasks, When::dropout},
    {"the number of replicas:", "/parallel/data", kMeans, When::means},
    {"--lr", "/training/lr", kRate},
    {"--min-lr", "/training/min_lr", kRate},
    {"--lr-decay-style", "/training/lr_decay_style", kRate},
    {"samples of the learning rate's decay:", "/training/lr_decay_samples", kRate},
    {"samples of the learning rate's warm-up:", "/training/lr_warmup_samples", kRate},
    {"--lr-warmup-init", "/training/lr_warmup_init", kRate},
    {"--optimizer", "/training/optimizer", kUpdate},
    {"the weight decay at the start:", "/training/weight_decay", kUpdate},
    {"the weight decay at the end:", "/training/end_weight_decay", kUpdate},
    {"--weight-decay-incr-style", "/training/weight_decay_incr_style", kUpdate},
    {"--adam-beta1", "/training/adam_beta1", kUpdate},
    {"--adam-beta2", "/training/adam_beta2", kUpdate},
    {"--adam-eps", "/training/adam_eps", kUpdate},
    {"--sgd-momentum", "/training/sgd_momentum", kUpdate},
    {"--clip-grad", "/training/clip_grad", kUpdate},
    {"--loss-scale", "/training/loss_scale", kScale, When::always, "0 (adjusted)"},
    {"--min-loss-scale", "/training/min_loss_scale", kScale},
    {"--loss-scale-window", "/training/loss_scale_window", kScale},
    {"--hysteresis", "/training/hysteresis", kScale},
    {"--fp8-format", "/fp8_format", kUpdate},
    {"--fp8-recipe", "/fp8_recipe", kUpdate},
    {"--hidden-dropout", "/model/hidden_dropout", kUpdate},
    {"--attention-dropout", "/model/attention_dropout", kUpdate},
    {"--classifier-dropout", "/encoder/classifier_dropout", kUpdate},
    {"--seed", "/training/seed", "the data's order changes"},
    // Whatever flags name it: paths, shares, splits, columns, masks.
    {"the training data:", "/data/content", "the samples are others, or in another order"},
    {"--eod-mask-loss", "/data/eod_mask_loss", kUpdate},
    {"--calculate-per-token-loss", "/training/calculate_per_token_loss", kUpdate},
    {"--reset-position-ids", "/data/reset_position_ids", kUpdate},
    {"--reset-attention-mask", "/data/reset_attention_mask", kUpdate}};

std::string setting_text(const Json& value, const char* zero = nullptr) {
  if (zero && value == 0) return zero;
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The value at `path`; null where there is none.
const Json* find(const Json& json, const char* path) {
  const Json::json_pointer pointer(path);
  return json.contains(pointer) ? &json.at(pointer) : nullptr;
}

// Null instead of a number or a text: the task has no such setting, or it is not known.
bool comparable(const Json& a, const Json& b) {
  const bool known = a.is_null() == b.is_null() || a.is_array() || b.is_array();
  return known && a.is_number() == b.is_number();
}

}  // namespace

std::vector<std::string> differences(const std::string& saved, const Record& run, bool resumes) {
  std::vector<std::string> notes;
  const Json then = Json::parse(saved, nullptr, false);
  if (!then.is_object()) return notes;
  const Json now = configuration_json(run);
  const ModelConfig& model = run.config.model;
  const bool means = run.config.data.eod_mask_loss && !run.config.divides_by_labels();
  const bool masks = model.hidden_dropout > 0 || model.attention_dropout > 0 ||
                     model.head_dropout().value_or(0) > 0;
  const Json* precision = find(then, "/precision");
  if (precision && precision->is_string() && *precision != now["precision"])
    notes.push_back(fmt::format(
        "--precision: the checkpoint was trained in {}, and this run trains in {}: give "
        "--precision {} to train as before",
        setting_text(*precision), setting_text(now["precision"]), setting_text(*precision)));
  if (!resumes) return notes;
  for (const SavedSetting& setting : kSettings) {
    if (setting.when == When::means && !means) continue;
    if (setting.when == When::dropout && (means || !masks)) continue;
    const Json *before = find(then, setting.path), *here = find(now, setting.path);
    if (before && here && comparable(*before, *here) && *before != *here)
      notes.push_back(fmt::format("{} {} differs from the checkpoint's {}: {}", setting.flag,
                                  setting_text(*here, setting.zero),
                                  setting_text(*before, setting.zero), setting.effect));
  }
  return notes;
}

}  // namespace tally::train

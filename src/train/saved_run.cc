#include "src/train/saved_run.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "src/train/failures.h"

namespace tally::train {
namespace {

constexpr const char* padding_flag = "--make-vocab-size-divisible-by";

// The value of the flag that gives this padding: the default where it does.
int64_t multiple_for(int64_t rows, const Config& c) {
  const int64_t usual = 128, ranks = c.tensor_parallel;
  return pad_vocabulary(c.model.vocabulary, usual * ranks) == rows ? usual : rows / ranks;
}

}  // namespace

SavedRun saved_run(const std::string& config_json) {
  SavedRun saved;
  if (config_json.empty()) return saved;
  try {
    const nlohmann::json json = nlohmann::json::parse(config_json);
    saved.precision = json.value("precision", "");
    if (json.contains("model"))
      saved.padded_vocabulary = json["model"].value("padded_vocab_size", int64_t{0});
  } catch (const nlohmann::json::exception&) {  // written for people, so it may be anything
    return {};
  }
  return saved;
}

std::vector<std::string> differences(const SavedRun& saved, const Config& c) {
  std::vector<std::string> notes;
  const std::string precision = precision_name(c.precision);
  if (!saved.precision.empty() && saved.precision != precision)
    notes.push_back(fmt::format(
        "--precision: the checkpoint was trained in {}, and this run trains in {}: give "
        "--precision {} to train as before",
        saved.precision, precision, saved.precision));
  const int64_t rows = c.model.padded_vocabulary;
  if (saved.padded_vocabulary != 0 && saved.padded_vocabulary != rows)
    notes.push_back(
        fmt::format("{}: the checkpoint's vocabulary was padded to {} rows, and this run's is to "
                    "{}: give {} {} to have the same",
                    padding_flag, saved.padded_vocabulary, rows, padding_flag,
                    multiple_for(saved.padded_vocabulary, c)));
  return notes;
}

void check_padding(const SavedRun& saved, const Config& c) {
  const int64_t rows = c.model.padded_vocabulary;
  if (saved.padded_vocabulary == 0 || saved.padded_vocabulary == rows) return;
  throw InputError(
      fmt::format("{}: the checkpoint's vocabulary is padded to {} rows, and this run's to {}, so "
                  "that the optimizer's state does not fit: give {} {}",
                  padding_flag, saved.padded_vocabulary, rows, padding_flag,
                  multiple_for(saved.padded_vocabulary, c)));
}

}  // namespace tally::train

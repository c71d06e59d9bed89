#include "src/train/run/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/config/args.h"
#include "src/measure/record.h"
#include "src/ops/tuned.h"
#include "src/train/run/failures.h"

namespace tally::train {
namespace {

using Json = nlohmann::ordered_json;

// More ranks than this are counted instead of listed.
constexpr size_t most_listed = 8;

// Paths of this host. Data is compared by its content once it has been read.
constexpr std::array<const char*, 4> paths_of_hosts{"data.paths", "data.valid_paths",
                                                    "data.test_paths", "data.description"};
// Paths that must be given on all ranks or on none; the paths themselves may differ.
constexpr std::array<const char*, 4> given_or_not{"load", "load_hf", "save", "save_hf"};

// Settings whose flags are spelled differently from their keys.
constexpr std::array<std::pair<const char*, const char*>, 19> labels{
    {{"model.preset", "--model"},
     {"model.kind", "--swiglu"},
     {"model.padded_vocab_size", "the padded vocabulary (--make-vocab-size-divisible-by)"},
     {"training.train_iters", "the number of steps (--train-iters, --train-samples or --epochs)"},
     {"training.recompute", "--recompute-granularity"},
     {"training.lr_decay_samples", "lr_decay_samples (--lr-decay-iters or --lr-decay-samples)"},
     {"training.lr_warmup_samples",
      "lr_warmup_samples (--lr-warmup-iters, --lr-warmup-samples or --lr-warmup-fraction)"},
     {"cuda_graph", "cuda_graph (--no-cuda-graph turns it off)"},
     {"parallel.tensor", "--tensor-model-parallel-size"},
     {"parallel.pipeline", "--pipeline-model-parallel-size"},
     {"parallel.virtual_pipeline_layers", "--num-layers-per-virtual-pipeline-stage"},
     {"parallel.sequence", "--sequence-parallel"},
     {"parallel.distributed_optimizer", "--use-distributed-optimizer"},
     {"parallel.shard_gradients", "--data-parallel-sharding-strategy"},
     {"parallel.peer_memory", "peer_memory (--no-peer-memory turns it off)"},
     {"load_optimizer", "load_optimizer (--no-load-optim turns it off)"},
     {"save_optimizer", "save_optimizer (--no-save-optim turns it off)"},
     {"data.mock", "--mock-data"},
     {"data.weights", "the weights of --data-path"}}};

template <size_t n>
bool among(const std::array<const char*, n>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "training.adam_beta1" is "--adam-beta1" where there is such a flag.
std::string label_of(const std::string& name, const std::vector<std::string>& flags) {
  for (const auto& [key, label] : labels)
    if (name == key) return label;
  std::string flag = "--" + name.substr(name.rfind('.') + 1);
  std::replace(flag.begin(), flag.end(), '_', '-');
  for (const std::string& candidate : {flag, flag + "-type"})
    if (std::find(flags.begin(), flags.end(), candidate) != flags.end()) return candidate;
  return name + " of the configuration";
}

// Names may hold bytes that are not UTF-8.
std::string value_text(const Json& value) {
  if (value.is_null()) return "not given";
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void flatten(const Json& value, const std::string& name, const std::vector<std::string>& flags,
             Settings* out) {
  if (value.is_object()) {
    for (const auto& [key, inner] : value.items())
      flatten(inner, name.empty() ? key : name + "." + key, flags, out);
    return;
  }
  if (among(paths_of_hosts, name)) return;
  const std::string text = !among(given_or_not, name) ? value_text(value)
                           : value.is_null()          ? "not given"
                                                      : "given";
  out->push_back({name, label_of(name, flags), text});
}

std::string encoded_settings(const std::string& host, const Settings& settings) {
  Json out{{"host", host}, {"settings", Json::array()}};
  for (const Setting& s : settings) out["settings"].push_back({s.name, s.label, s.value});
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string hash_of(const Settings& settings) {
  const std::string text = encoded_settings("", settings);
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

std::string ranks_text(const std::vector<size_t>& ranks) {
  if (ranks.size() > most_listed) return fmt::format("{} ranks", ranks.size());
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", fmt::join(ranks, ", "));
}

// The first setting in which two ranks differ: its label and both values.
std::array<std::string, 3> first_difference(const Json& zero, const Json& other) {
  const Json &a = zero["settings"], &b = other["settings"];
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i >= a.size() || i >= b.size() || a[i][0] != b[i][0])
      return {"the list of settings", "of another version of tally-train", "of this version"};
    if (a[i][2] != b[i][2]) return {a[i][1], b[i][2], a[i][2]};
  }
  return {"the list of settings", "unreadable", "readable"};
}

}  // namespace

Settings run_settings(const Config& config) {
  Record record;
  record.config = config;
  Settings settings;
  flatten(configuration_json(record), "", flag_names(), &settings);
  if (config.command != Command::evaluate) return settings;
  const auto given = [](const std::string& text) { return text.empty() ? "not given" : "given"; };
  settings.push_back({"text", "--text", given(config.text)});
  settings.push_back({"stride", "--stride", fmt::format("{}", config.stride)});
  settings.push_back({"eval_mode", "--eval-mode", eval_mode_name(config.eval_mode)});
  settings.push_back({"predictions", "--predictions", given(config.predictions_path)});
  return settings;
}

Settings build_settings(const BuildInfo& b) {
  return {{"build.version", "the version of tally-train", b.version},
          {"build.commit", "the commit of tally-train", b.commit},
          {"build.libtorch", "LibTorch", b.libtorch},
          {"build.cuda", "the CUDA toolkit of the build", b.cuda.empty() ? "none" : b.cuda}};
}

void require_same_settings(Rendezvous& meeting, const std::string& host, const Settings& mine,
                           const std::string& remedy) {
  if (meeting.size() == 1) return;
  const auto hashes = meeting.exchange(hash_of(mine));
  const auto differs = std::find_if(hashes.begin(), hashes.end(),
                                    [&](const std::string& h) { return h != hashes.front(); });
  if (differs == hashes.end()) return;
  const auto other = static_cast<size_t>(differs - hashes.begin());
  const auto me = static_cast<size_t>(meeting.rank());
  const auto all = meeting.exchange(me == 0 || me == other ? encoded_settings(host, mine) : "");
  // Rank 0 reports for all. An exchange without it ends with its failure.
  if (me != 0) meeting.exchange("");
  const Json zero = Json::parse(all.front()), its = Json::parse(all[other]);
  std::vector<size_t> ranks;
  for (size_t r = 0; r < hashes.size(); ++r)
    if (hashes[r] == *differs) ranks.push_back(r);
  const auto [label, theirs, ours] = first_difference(zero, its);
  throw InputError(fmt::format("{} is {} on {} ({}) and {} on rank 0 ({}): {}", label, theirs,
                               ranks_text(ranks), its["host"].get<std::string>(), ours,
                               zero["host"].get<std::string>(), remedy));
}

void agree_on_algorithms(Rendezvous& meeting, Stream& stream, const std::string& device) {
  if (meeting.size() == 1) return;
  const std::string head = device + "\n";
  std::vector<std::string> alike;
  for (const std::string& text : meeting.exchange(head + tuned_algorithms(stream)))
    if (text.rfind(head, 0) == 0) alike.push_back(text.substr(head.size()));
  adopt_algorithms(stream, first_choices(alike));
}

}  // namespace tally::train

#include "src/train/run/agreement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "src/config/settings.h"
#include "src/measure/record.h"
#include "src/ops/tuned.h"
#include "src/train/run/failures.h"

namespace tally::train {
namespace {

using Json = nlohmann::ordered_json;

// More ranks than this are counted instead of listed.
constexpr size_t most_listed = 8;

// Names may hold bytes that are not UTF-8.
std::string value_text(const Json& value) {
  if (value.is_null()) return "not given";
  if (value.is_string()) return value.get<std::string>();
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string encoded_settings(const std::string& host, const RunSettings& settings) {
  Json out{{"host", host}, {"settings", Json::array()}};
  for (const RunSetting& s : settings) out["settings"].push_back({s.name, s.label, s.value});
  return out.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string hash_of(const RunSettings& settings) {
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

RunSettings run_settings(const Config& config) {
  RunSettings compared;
  for (const Setting& row : recorded_settings(config)) {
    if (row.agreement == Agreement::none) continue;
    const std::string value = row.agreement == Agreement::value ? value_text(row.value)
                              : row.value.is_null()             ? "not given"
                                                                : "given";
    compared.push_back({row.key, row.label, value});
  }
  return compared;
}

RunSettings build_settings(const BuildInfo& b) {
  return {{"build.version", "the version of tally-train", b.version},
          {"build.commit", "the commit of tally-train", b.commit},
          {"build.libtorch", "LibTorch", b.libtorch},
          {"build.cuda", "the CUDA toolkit of the build", b.cuda.empty() ? "none" : b.cuda}};
}

void require_same_settings(Rendezvous& meeting, const std::string& host, const RunSettings& mine,
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

#include "engine/report/time_waterfall.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "engine/base/files.h"
#include "engine/chart/waterfall.h"

namespace tally {
namespace {

using Json = nlohmann::ordered_json;

const Json* member_of(const Json& in, const char* key) {
  if (!in.is_object()) return nullptr;
  const auto found = in.find(key);
  return found == in.end() ? nullptr : &*found;
}

std::string string_in(const Json& in, const char* key) {
  const Json* found = member_of(in, key);
  return found != nullptr && found->is_string() ? found->get<std::string>() : std::string();
}

// The bars' sum is the whole, or they explain something else.
bool read_bars(const Json& explain, TimeWaterfall* out) {
  constexpr double kExact = 1e-6;
  const Json* seconds = member_of(explain, "seconds");
  const Json* bars = member_of(explain, "bars");
  if (seconds == nullptr || !seconds->is_number() || bars == nullptr || !bars->is_array())
    return false;
  out->seconds = seconds->get<double>();
  double sum = 0;
  for (const Json& bar : *bars) {
    const Json* of_bar = member_of(bar, "seconds");
    TimeBar one{string_in(bar, "name"), string_in(bar, "title"), 0};
    if (one.name.empty() || of_bar == nullptr || !of_bar->is_number()) return false;
    one.seconds = of_bar->get<double>();
    sum += one.seconds;
    out->bars.push_back(std::move(one));
  }
  return out->seconds > 0 && std::fabs(sum - out->seconds) <= kExact * out->seconds;
}

std::string in_words(const std::string& name) {
  std::string words = name;
  std::ranges::replace(words, '_', ' ');
  return words;
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.3f}", 1e3 * seconds);
}

const TimeBar* bar_of(const TimeWaterfall& waterfall, const std::string& name) {
  const auto found = std::ranges::find(waterfall.bars, name, &TimeBar::name);
  return found == waterfall.bars.end() ? nullptr : &*found;
}

}  // namespace

Status read_waterfall(const std::string& path, std::optional<TimeWaterfall>* out) {
  std::string text;
  TRY(read_file(path, &text));
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Status::error(fmt::format("{}: is no JSON", path));
  const Json* results = member_of(json, "results");
  const Json* explain = member_of(results != nullptr ? *results : json, "explain");
  out->reset();
  if (explain == nullptr || !explain->is_object()) return Status::ok();
  TimeWaterfall found;
  if (!read_bars(*explain, &found))
    return Status::error(fmt::format(
        "{}: the bars of `explain` are not whole: each has a name and seconds, and they add up to "
        "its `seconds`",
        path));
  found.throttling = string_in(*explain, "throttling");
  if (found.throttling == "none") found.throttling.clear();
  *out = std::move(found);
  return Status::ok();
}

Status waterfalls_in(const std::string& folder, std::vector<TimeWaterfall>* out) {
  namespace fs = std::filesystem;
  constexpr uintmax_t kMost = uintmax_t{256} << 20;
  std::error_code error;
  std::vector<std::string> paths;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const bool small = at->is_regular_file(ignored) && at->file_size(ignored) <= kMost;
    if (small && at->path().extension() == ".json") paths.push_back(at->path().string());
  }
  std::ranges::sort(paths);
  for (const std::string& path : paths) {
    std::string text;
    // Most files have none, and some are large.
    if (!read_file(path, &text) || text.find("\"explain\"") == std::string::npos) continue;
    if (!Json::accept(text)) continue;
    std::optional<TimeWaterfall> one;
    TRY(read_waterfall(path, &one));
    if (one) out->push_back(std::move(*one));
  }
  return Status::ok();
}

TimeWaterfall mean_of(const std::vector<TimeWaterfall>& repeats) {
  TimeWaterfall mean;
  const auto n = static_cast<double>(repeats.size());
  for (const TimeWaterfall& one : repeats) {
    mean.seconds += one.seconds / n;
    if (mean.throttling.empty()) mean.throttling = one.throttling;
    for (const TimeBar& bar : one.bars) {
      auto at = std::ranges::find(mean.bars, bar.name, &TimeBar::name);
      if (at == mean.bars.end()) at = mean.bars.insert(at, {bar.name, bar.title, 0});
      at->seconds += bar.seconds / n;
    }
  }
  return mean;
}

std::string draw(const TimeWaterfall& waterfall, const std::string& title,
                 const SvgOptions& options) {
  std::vector<WaterfallRow> rows;
  double at = 0;
  const auto text = [&](double seconds) {
    return fmt::format("{} ms, {:.1f} %", milliseconds(seconds), 100 * seconds / waterfall.seconds);
  };
  for (const TimeBar& bar : waterfall.bars) {
    rows.push_back({bar.title.empty() ? in_words(bar.name) : bar.title, text(bar.seconds), at,
                    at + bar.seconds});
    at += bar.seconds;
  }
  rows.push_back({"the step", milliseconds(waterfall.seconds) + " ms", 0, waterfall.seconds});
  return waterfall_svg(title, rows, options);
}

std::vector<TimeChange> changes_between(const TimeWaterfall& base, const TimeWaterfall& other) {
  std::vector<TimeChange> changes;
  for (const TimeBar& bar : base.bars) {
    const TimeBar* now = bar_of(other, bar.name);
    changes.push_back({bar, now != nullptr ? *now : TimeBar{bar.name, bar.title, 0}});
  }
  for (const TimeBar& bar : other.bars)
    if (bar_of(base, bar.name) == nullptr) changes.push_back({{bar.name, bar.title, 0}, bar});
  std::ranges::stable_sort(changes, [](const TimeChange& a, const TimeChange& b) {
    return std::fabs(a.seconds()) > std::fabs(b.seconds());
  });
  return changes;
}

std::string why_sentence(const std::string& base_name, const TimeWaterfall& base,
                         const std::string& other_name, const TimeWaterfall& other) {
  constexpr double kSame = 0.0005;  // of the step
  constexpr double kNamed = 0.005;
  const double all = other.seconds / base.seconds - 1;
  const bool slower = all > 0;
  std::string out = std::fabs(all) < kSame
                        ? fmt::format("{} is as fast as {}", other_name, base_name)
                        : fmt::format("{} is {:.1f} % {} than {}", other_name, 100 * std::fabs(all),
                                      slower ? "slower" : "faster", base_name);
  std::string parts;
  for (const TimeChange& change : changes_between(base, other)) {
    const double share = change.seconds() / base.seconds;
    if (std::fabs(share) < kNamed) break;
    // A change that goes the other way has a sign.
    parts += fmt::format("{}{:.1f} % {}", parts.empty() ? ": " : ", ",
                         100 * (slower ? share : -share), in_words(change.base.name));
    const std::string& held = slower ? other.throttling : base.throttling;
    if (change.base.name == "clocks" && !held.empty()) parts += fmt::format(" ({})", held);
  }
  return out + parts;
}

Grid why_grid(const TimeWaterfall& base, const TimeWaterfall& other) {
  Grid grid;
  grid.header = {"where", "base ms", "new ms", "change ms", "% of base"};
  const auto add = [&](const std::string& name, double before, double after) {
    grid.rows.push_back({name, milliseconds(before), milliseconds(after),
                         fmt::format("{:+.3f}", 1e3 * (after - before)),
                         fmt::format("{:+.2f}", 100 * (after - before) / base.seconds)});
  };
  for (const TimeChange& change : changes_between(base, other))
    add(in_words(change.base.name), change.base.seconds, change.other.seconds);
  add("the step", base.seconds, other.seconds);
  return grid;
}

}  // namespace tally

#include "engine/report/fleet_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>

#include "engine/base/duration.h"
#include "engine/base/files.h"
#include "engine/base/terminal.h"
#include "engine/base/text.h"
#include "engine/chart/markup.h"
#include "engine/results/rows/records.h"

namespace tally {
namespace {

using Json = nlohmann::ordered_json;
using statistics::Deviation;

constexpr FleetVerdict kVerdicts[] = {FleetVerdict::passes, FleetVerdict::slow, FleetVerdict::wrong,
                                      FleetVerdict::undecided};

struct Look {
  char letter;
  const char *terminal, *fill;
};

Look look_of(FleetVerdict verdict) {
  switch (verdict) {
    case FleetVerdict::passes:
      return {'.', "\033[32m", "#2e9e5b"};
    case FleetVerdict::slow:
      return {'S', "\033[1;31m", "#d5443f"};
    case FleetVerdict::wrong:
      return {'W', "\033[1;35m", "#8e3db8"};
    case FleetVerdict::undecided:
      break;
  }
  return {'?', "\033[33m", "#e0b13a"};
}

std::string signed_percent(double change) {
  // A rate without a lower bound.
  const bool known = std::isfinite(change) && change > -1;
  return known ? fmt::format("{:+.1f}", 100 * change) : std::string("?");
}

std::string deviation_text(const std::optional<Deviation>& deviation) {
  if (!deviation) return {};
  return fmt::format("{} % ({} to {})", signed_percent(deviation->change),
                     signed_percent(deviation->interval.low),
                     signed_percent(deviation->interval.high));
}

std::string time_of(double seconds) {
  return seconds > 0 ? local_time(static_cast<std::time_t>(seconds)) : std::string();
}

// The names of what is shown of any member, in their order.
std::vector<std::string> shown_names(const FleetReport& report) {
  std::vector<std::string> names;
  for (const FleetMember& member : report.members)
    for (const auto& [name, text] : member.shown)
      if (!contains(names, name)) names.push_back(name);
  return names;
}

std::string shown_text(const FleetMember& member, const std::string& name) {
  for (const auto& [one, text] : member.shown)
    if (one == name) return text;
  return {};
}

template <typename Predicate>
std::vector<std::string> names_of(const FleetReport& report, Predicate matches) {
  std::vector<std::string> names;
  for (const FleetMember& member : report.members)
    if (matches(member)) names.push_back(member.name);
  return names;
}

std::string counted(const FleetReport& report, bool pairs) {
  std::vector<std::string> parts;
  size_t all = 0;
  for (const FleetVerdict verdict : kVerdicts) {
    const std::vector<std::string> names = names_of(report, [&](const FleetMember& one) {
      return one.is_pair == pairs && one.verdict == verdict;
    });
    all += names.size();
    if (names.empty()) continue;
    const bool passes = verdict == FleetVerdict::passes;
    const bool few = names.size() <= 8;
    parts.push_back(
        fmt::format("{} {}{}", names.size(), passes ? "pass" : fleet_word(verdict),
                    passes || !few ? "" : " (" + join(names, pairs ? "; " : ", ") + ")"));
  }
  if (all == 0) return {};
  return fmt::format("{} {}{}: {}", all, pairs ? "pair" : "machine", all == 1 ? "" : "s",
                     join(parts, ", "));
}

Json document_of(const std::optional<Deviation>& deviation) {
  if (!deviation) return nullptr;
  const auto bound = [](double value) {
    return std::isfinite(value) && value > -1 ? Json(value) : Json(nullptr);
  };
  return {{"change", deviation->change},
          {"low", bound(deviation->interval.low)},
          {"high", bound(deviation->interval.high)}};
}

Json document_of(const FleetMember& member) {
  Json rates = Json::array();
  for (const FleetFinding& one : member.findings) {
    constexpr const char* kWords[] = {"undecided", "passes", "slow"};
    rates.push_back({{"step", one.name.step},
                     {"metric", one.name.metric},
                     {"point", one.name.point},
                     {"part", one.part},
                     {"unit", one.name.unit},
                     {"rate", one.rate},
                     {"repeats", one.repeats},
                     {"verdict", kWords[static_cast<int>(one.verdict)]},
                     {"of_median", document_of(one.deviations.of_median)},
                     {"of_baseline", document_of(one.deviations.of_baseline)}});
  }
  Json shown = Json::object();
  for (const auto& [name, text] : member.shown) shown[name] = text;
  return {{"name", member.name},
          {"group", member.group},
          {"verdict", fleet_word(member.verdict)},
          {"why", member.why},
          {"part", member.part},
          {"ended", time_of(member.ended)},
          {"measured", member.measured},
          {"failed", member.failed},
          {"lost", member.lost},
          {"busy", member.busy},
          {"throttled", member.throttled},
          {"shown", shown},
          {"rates", rates}};
}

Json document_of(const std::vector<std::pair<std::string, std::string>>& facts) {
  Json out = Json::object();
  for (const auto& [name, value] : facts) out[name] = value;
  return out;
}

std::string dumped(const Json& document) {
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// The machines by their group, in their order; not tested ones are in the last group.
struct MapLine {
  std::string group;
  std::vector<std::pair<std::string, const FleetMember*>> machines;  // null: not tested
};

std::vector<MapLine> map_lines(const FleetReport& report, size_t most) {
  std::vector<MapLine> lines;
  const auto add = [&](const std::string& group, const std::string& name,
                       const FleetMember* member) {
    auto line = std::find_if(lines.rbegin(), lines.rend(),
                             [&](const MapLine& one) { return one.group == group; });
    const bool full = line != lines.rend() && line->machines.size() >= most;
    if (line == lines.rend() || full) {
      lines.push_back({group, {}});
      line = lines.rbegin();
    }
    line->machines.emplace_back(name, member);
  };
  for (const FleetMember& member : report.members)
    if (!member.is_pair) add(member.group, member.name, &member);
  for (const auto& [name, why] : report.not_tested) add("not tested", name, nullptr);
  return lines;
}

}  // namespace

Grid fleet_grid(const FleetReport& report) {
  const std::vector<std::string> shown = shown_names(report);
  const bool grouped = std::ranges::any_of(
      report.members, [](const FleetMember& member) { return !member.group.empty(); });
  const bool baseline = std::ranges::any_of(report.members, [](const FleetMember& member) {
    return std::ranges::any_of(member.findings, [](const FleetFinding& one) {
      return one.deviations.of_baseline.has_value();
    });
  });
  Grid grid;
  grid.header = {"node"};
  if (grouped) grid.header.emplace_back("group");
  for (const char* name : {"verdict", "rate", "of median"}) grid.header.emplace_back(name);
  if (baseline) grid.header.emplace_back("of baseline");
  grid.header.emplace_back("repeats");
  grid.header.insert(grid.header.end(), shown.begin(), shown.end());
  for (const char* name : {"when", "why"}) grid.header.emplace_back(name);
  for (const FleetMember& member : report.members) {
    if (member.is_pair && member.verdict == FleetVerdict::passes) continue;
    const FleetFinding* finding = member.decisive();
    std::vector<std::string> cells = {member.name};
    if (grouped) cells.push_back(member.group);
    cells.emplace_back(fleet_word(member.verdict));
    cells.push_back(finding == nullptr
                        ? ""
                        : fmt::format("{} {:.6g}{}", finding->name.text(), finding->rate,
                                      finding->name.unit.empty() ? "" : " " + finding->name.unit));
    cells.push_back(finding == nullptr ? "" : deviation_text(finding->deviations.of_median));
    if (baseline)
      cells.push_back(finding == nullptr ? "" : deviation_text(finding->deviations.of_baseline));
    cells.push_back(finding == nullptr ? "" : std::to_string(finding->repeats));
    for (const std::string& name : shown) cells.push_back(shown_text(member, name));
    cells.push_back(time_of(member.ended));
    cells.push_back(member.why);
    grid.rows.push_back(std::move(cells));
  }
  return grid;
}

std::vector<std::string> fleet_summary(const FleetReport& report) {
  std::vector<std::string> lines;
  for (const bool pairs : {false, true})
    if (std::string line = counted(report, pairs); !line.empty()) lines.push_back(std::move(line));
  for (const auto& [name, why] : report.not_tested)
    lines.push_back(fmt::format("not tested: {}: {}", name, why));
  lines.push_back(fmt::format("cost: {:.3g} node-hours{}", report.node_hours,
                              report.budget > 0 ? fmt::format(" of {:g}", report.budget) : ""));
  lines.insert(lines.end(), report.notes.begin(), report.notes.end());
  return lines;
}

std::string fleet_exclude(const FleetReport& report) {
  const std::vector<std::string> names = names_of(
      report, [](const FleetMember& member) { return !member.is_pair && member.is_bad(); });
  return names.empty() ? std::string() : "--exclude=" + join(names, ",");
}

std::string fleet_map(const FleetReport& report, bool color) {
  constexpr size_t kColumns = 32;
  std::string text;
  for (const MapLine& line : map_lines(report, kColumns)) {
    std::string letters;
    for (const auto& [name, member] : line.machines) {
      const Look look = member == nullptr ? Look{'-', "\033[2m", ""} : look_of(member->verdict);
      letters += color ? fmt::format("{}{}\033[0m", look.terminal, look.letter)
                       : std::string(1, look.letter);
    }
    std::string title = line.group.empty() ? "" : line.group + ": ";
    title += line.machines.front().first;
    if (line.machines.size() > 1) title += " to " + line.machines.back().first;
    text += fmt::format("{}  {}\n", letters, color ? literal(title) : title);
  }
  return text;
}

std::string fleet_svg(const FleetReport& report, const std::string& title) {
  constexpr size_t kColumns = 40;
  constexpr int kCell = 18, kTop = 34, kLeft = 130;
  const std::vector<MapLine> lines = map_lines(report, kColumns);
  const size_t height = kTop + lines.size() * kCell + 34;
  const size_t width = kLeft + kColumns * kCell + 10;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" "
      "height=\"{1}\" font-family=\"DejaVu Sans, sans-serif\" font-size=\"12\">\n"
      "<title>{2}</title>\n<text x=\"8\" y=\"20\" font-size=\"14\">{2}</text>\n",
      width, height, escaped(title));
  size_t y = kTop;
  for (const MapLine& line : lines) {
    const std::string name = line.group.empty() ? line.machines.front().first : line.group;
    out += fmt::format("<text x=\"8\" y=\"{}\">{}</text>\n", y + 13,
                       escaped(shortened(name, (kLeft - 16) / 12.0)));
    size_t x = kLeft;
    for (const auto& [machine, member] : line.machines) {
      const std::string words = member == nullptr
                                    ? "not tested"
                                    : fmt::format("{}{}{}", fleet_word(member->verdict),
                                                  member->why.empty() ? "" : ": ", member->why);
      out += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"2\" fill=\"{}\"><title>{}: "
          "{}</title></rect>\n",
          x, y, kCell - 2, kCell - 2, member == nullptr ? "#b8b8b8" : look_of(member->verdict).fill,
          escaped(machine), escaped(words));
      x += kCell;
    }
    y += kCell;
  }
  size_t x = 8;
  for (const FleetVerdict verdict : kVerdicts) {
    out += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{}\"/><text x=\"{}\" "
        "y=\"{}\">{}</text>\n",
        x, y + 10, look_of(verdict).fill, x + 17, y + 20, fleet_word(verdict));
    x += 100;
  }
  return out + "</svg>\n";
}

std::string fleet_json(const FleetReport& report,
                       const std::vector<std::pair<std::string, std::string>>& facts,
                       const std::string& version) {
  Json document = {{"version", 1},
                   {"tally", version},
                   {"node_hours", report.node_hours},
                   {"budget", report.budget > 0 ? Json(report.budget) : Json(nullptr)},
                   {"exclude", fleet_exclude(report)},
                   {"notes", report.notes}};
  Json machines = Json::array(), links = Json::array(), others = Json::array();
  for (const FleetMember& member : report.members)
    (member.is_pair ? links : machines).push_back(document_of(member));
  for (const auto& [name, why] : report.not_tested)
    others.push_back({{"name", name}, {"why", why}});
  document["machines"] = std::move(machines);
  document["links"] = std::move(links);
  document["not_tested"] = std::move(others);
  document["machine"] = document_of(facts);
  return dumped(document);
}

JunitSuite fleet_suite(const FleetReport& report, const std::string& benchmark) {
  JunitSuite suite;
  suite.name = benchmark + ".fleet";
  for (const FleetMember& member : report.members) {
    JunitCase one;
    one.classname = fmt::format("{}.{}", suite.name, member.is_pair ? "links" : "nodes");
    one.name = member.name;
    one.message = fmt::format("{}: {}", fleet_word(member.verdict), member.why);
    if (member.is_bad()) one.result = JunitResult::failed;
    if (member.verdict == FleetVerdict::undecided) one.result = JunitResult::skipped;
    suite.cases.push_back(std::move(one));
  }
  for (const auto& [name, why] : report.not_tested)
    suite.cases.push_back(
        {suite.name + ".nodes", name, JunitResult::skipped, 0, "not tested: " + why, {}});
  return suite;
}

Status read_baseline(const std::string& path, FleetBaseline* out) {
  std::string text;
  TRY(read_file(path, &text));
  const Json document = Json::parse(text, nullptr, false);
  const auto wrong = [&](const char* what) {
    return Status::error(fmt::format("'{}' is not a fleet's baseline: {}", path, what))
        .with_hint("`tally fleet ... --accept` writes one");
  };
  if (!document.is_object() || !document.contains("rates") || !document["rates"].is_array())
    return wrong("it has no list of rates");
  for (const Json& one : document["rates"]) {
    FleetRateName name;
    AcceptedRate rate;
    for (const auto& [key, into] :
         {std::pair{"step", &name.step}, {"metric", &name.metric}, {"point", &name.point}}) {
      if (!one.is_object() || !one.contains(key) || !one[key].is_string())
        return wrong("a rate has no step, metric or point");
      *into = one[key].get<std::string>();
    }
    for (const auto& [key, into] :
         {std::pair{"rate", &rate.rate}, {"low", &rate.low}, {"high", &rate.high}}) {
      if (!one.contains(key) || !one[key].is_number() || !(one[key].get<double>() > 0))
        return wrong("a rate has no positive value and interval");
      *into = one[key].get<double>();
    }
    out->rates[name] = rate;
  }
  for (const Json& one : document.value("same", Json::array())) {
    const auto text_of = [&](const char* key) {
      return one.is_object() && one.contains(key) && one[key].is_string()
                 ? one[key].get<std::string>()
                 : std::string();
    };
    out->same[text_of("step") + '\0' + text_of("pattern")] = text_of("text");
  }
  return Status::ok();
}

std::string baseline_text(const FleetBaseline& baseline,
                          const std::vector<std::pair<std::string, std::string>>& facts,
                          const std::string& version) {
  Json rates = Json::array(), same = Json::array();
  for (const auto& [name, rate] : baseline.rates)
    rates.push_back({{"step", name.step},
                     {"metric", name.metric},
                     {"point", name.point},
                     {"unit", name.unit},
                     {"rate", rate.rate},
                     {"low", rate.low},
                     {"high", rate.high},
                     {"machines", rate.machines},
                     {"repeats", rate.repeats}});
  for (const auto& [key, text] : baseline.same) {
    const size_t end = key.find('\0');
    same.push_back(
        {{"step", key.substr(0, end)}, {"pattern", key.substr(end + 1)}, {"text", text}});
  }
  return dumped({{"version", 1},
                 {"tally", version},
                 {"accepted", time_stamp()},
                 {"rates", std::move(rates)},
                 {"same", std::move(same)},
                 {"machine", document_of(facts)}});
}

}  // namespace tally

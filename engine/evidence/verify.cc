#include "engine/evidence/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/files.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/evidence/computed.h"
#include "engine/evidence/tables.h"
#include "engine/report/run_results.h"

namespace tally {
namespace {

constexpr const char* kSums = "SHA256SUMS";
constexpr size_t kDigits = 64;

// "line 3: '2 | 15457' was '2 | 15458'"
std::string first_difference(const std::string& now, const std::string& then) {
  constexpr size_t kMost = 200;
  size_t line = 1, from = 0;
  for (size_t i = 0; i < std::min(now.size(), then.size()) && now[i] == then[i]; ++i) {
    if (now[i] != '\n') continue;
    ++line;
    from = i + 1;
  }
  const auto line_of = [&](const std::string& text) {
    return from >= text.size()
               ? "nothing"
               : "'" + text.substr(from, std::min(kMost, text.find('\n', from) - from)) + "'";
  };
  return fmt::format("line {} is {}, and its samples give {}", line, line_of(then), line_of(now));
}

class Verifier {
 public:
  Verifier(const Settings& settings, const std::string& folder, bool compute, Verification* out)
      : settings_(settings), folder_(folder), compute_(compute), out_(*out) {}

  Status verify(const std::string& file) {
    TRY(unpack(file, folder_, &names_, &out_.faults));
    out_.members = names_.size();
    for (const Fault& fault : out_.faults) broken_.insert(fault.member);
    if (!has(kSums) && !has("evidence.json"))
      return Status::error(file + ": is no archive of tally");
    TRY(check_sums());
    return check_runs(file);
  }

 private:
  bool has(const std::string& name) const { return std::ranges::binary_search(names_, name); }
  void fault(const std::string& member, std::string what) {
    if (broken_.insert(member).second) out_.faults.push_back({member, std::move(what)});
  }

  Status check_sums() {
    std::string text;
    if (!has(kSums)) {
      fault(kSums, "is missing");
      return Status::ok();
    }
    TRY(read_file(folder_ + "/" + kSums, &text));
    std::set<std::string> listed = {kSums};
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string line = text.substr(at, end - at);
      at = end + 1;
      const bool plain = line.size() > kDigits + 2 && line.compare(kDigits, 2, "  ") == 0;
      const std::string name = plain ? line.substr(kDigits + 2) : "";
      if (!plain) fault(kSums, "has a line that is none: '" + line + "'");
      if (!plain || !listed.insert(name).second) continue;
      if (!has(name)) {
        fault(broken_.count(kSums) != 0 ? kSums : name, "is listed in SHA256SUMS and missing");
        continue;
      }
      std::string sum;
      TRY(sha256_file(folder_ + "/" + name, &sum));
      if (sum != line.substr(0, kDigits) && broken_.count(kSums) == 0)
        fault(name, "has another SHA-256 than SHA256SUMS says");
    }
    for (const std::string& name : names_)
      if (listed.count(name) == 0 && broken_.count(kSums) == 0)
        fault(name, "is not listed in SHA256SUMS");
    return Status::ok();
  }

  Status check_runs(const std::string& file) {
    std::string text;
    if (has("evidence.json")) TRY(read_file(folder_ + "/evidence.json", &text));
    const auto json = nlohmann::json::parse(text, nullptr, false);
    if (!json.is_object() || json.value("format", "") != "tally-evidence" ||
        !json.contains("runs") || !json["runs"].is_array()) {
      fault("evidence.json", "cannot be read");
      return Status::ok();
    }
    if (json.value("version", 0) > 1)
      return Status::error(file + ": was made by a newer tally; use that one");
    out_.program = json.value("program", "");
    for (const auto& run : json["runs"]) {
      const std::string folder = run.is_object() ? run.value("folder", "") : "";
      if (!is_member_name(folder)) {
        fault("evidence.json", "names no folder of a run");
        continue;
      }
      check_run(folder);
      take_programs(run);
    }
    for (const std::string& name : names_)
      if (name.ends_with(".json") && name.find("/work/") != std::string::npos) check_witness(name);
    return Status::ok();
  }

  void check_witness(const std::string& member) {
    std::string record;
    std::string wrong;
    if (!read_file(folder_ + "/" + member, &record)) return;  // it is missing, which is said
    std::optional<LossWitness> witness = read_witness(record, &wrong);
    if (!witness) return;
    if (!wrong.empty()) return fault(member, wrong);
    witness->member = member;
    out_.witnesses.push_back(std::move(*witness));
  }

  void take_programs(const nlohmann::json& run) {
    if (!run.contains("programs") || !run["programs"].is_array()) return;
    for (const auto& one : run["programs"])
      if (one.is_object() && one.contains("sha256") && one["sha256"].is_string())
        out_.programs.emplace_back(one.value("path", ""), one["sha256"].get<std::string>());
  }

  void check_run(const std::string& folder) {
    constexpr const char* kProgram = "tally ";
    std::unique_ptr<Run> run;
    Evidence evidence;
    Status status = open_archived(settings_, folder_ + "/" + folder, &run);
    const std::string version = starts_with(out_.program, kProgram)
                                    ? out_.program.substr(std::string(kProgram).size())
                                    : "";
    ComputedValues computed;
    std::string json;
    if (status) status = read_file(folder_ + "/" + folder + "/" + kComputed, &json);
    if (status && !computed.read(json)) fault(folder + "/" + kComputed, "cannot be read");
    if (status) status = make_evidence(*run, version, *computed.remembered(), &evidence);
    if (status && compute_) check_computed(folder, computed);
    if (!status) {
      // A run with a broken journal has nothing else to be said of it.
      fault(folder + "/journal.sqlite", "the run cannot be read: " + status.message());
      return;
    }
    ArchivedRun done{folder, run->journal().run().benchmark, run->journal().run().id, 0, 0};
    if (const std::vector<std::string>& missing = computed.missing(); !missing.empty())
      fault(folder + "/" + kComputed, fmt::format("has no value of '{}', to which the samples lead",
                                                  one_line(missing.front())));
    const EvidenceTexts& texts = evidence.texts;
    for (const auto& [name, now] : texts) compare(folder + "/" + name, now, &done);
    for (const std::string& name : names_) {
      if (starts_with(name, folder + "/tables/") &&
          texts.count(name.substr(folder.size() + 1)) == 0)
        fault(name, "does not follow from the run's samples");
    }
    out_.runs.push_back(std::move(done));
  }

  void check_computed(const std::string& folder, const ComputedValues& computed) {
    const std::unique_ptr<Evaluator> real = make_result_evaluator(settings_);
    const std::string difference = computed.difference(*real);
    if (!difference.empty()) fault(folder + "/" + kComputed, difference);
  }

  void compare(const std::string& member, const std::string& now, ArchivedRun* done) {
    if (member.ends_with(".dat")) ++done->tables;
    if (member.ends_with("/samples.csv"))
      done->samples = static_cast<size_t>(std::ranges::count(now, '\n')) - 1;
    std::string then;
    if (!has(member) || !read_file(folder_ + "/" + member, &then)) {
      fault(member, "is missing");
    } else if (then != now) {
      // The cause is in the samples, if they have changed.
      fault(member, "does not follow from the run's samples: " + first_difference(now, then));
    }
  }

  const Settings& settings_;
  const std::string& folder_;
  const bool compute_;
  Verification& out_;
  std::vector<std::string> names_;
  std::set<std::string> broken_;  // members that a fault names
};

}  // namespace

Status verify_archive(const Settings& settings, const std::string& file, const std::string& folder,
                      bool compute, Verification* out) {
  return Verifier(settings, folder, compute, out).verify(file);
}

}  // namespace tally

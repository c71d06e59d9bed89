#include "engine/evidence/archive.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/evidence/computed.h"
#include "engine/evidence/container.h"
#include "engine/evidence/redaction.h"
#include "engine/evidence/scratch.h"
#include "engine/evidence/staging.h"
#include "engine/evidence/tables.h"
#include "engine/report/run_results.h"
#include "engine/run/run_directory.h"

namespace tally {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kReadme =
    R"(An archive of benchmark runs, made by `tally archive`.

With tally:     tally verify FILE
                reads every member, and computes the tables again from what the workpackages printed.
Without tally:  unzip FILE && sha256sum -c SHA256SUMS

evidence.json   the runs, their machines, programs and data with SHA-256 digests, and what was left out
runs/*/         journal.sqlite: the run's record (SQLite)
                input/: the workflow and what it includes
                samples.csv: what each workpackage printed; tables/: what was made of that
                NNNNNN_STEP/work/: output, scripts and records of a workpackage
Secrets are replaced by asterisks; evidence.json lists where.
)";

Json files_of(const std::vector<NamedFile>& files) {
  Json list = Json::array();
  for (const NamedFile& file : files) {
    Json one = {{"path", file.path}, {"size", file.size}};
    one["sha256"] = file.sha256.empty() ? Json(nullptr) : Json(file.sha256);
    if (file.changed) one["written_after_the_run"] = true;
    list.push_back(std::move(one));
  }
  return list;
}

Status describe_run(const Run& run, const StagedRun& staged, Json* out) {
  const RunRecord& record = run.journal().run();
  std::string origin;
  TRY(run.journal().archived_from(&origin));
  *out = {{"folder", staged.folder},    {"id", record.id},         {"benchmark", record.benchmark},
          {"directory", origin},        {"started", record.start}, {"tally", record.version},
          {"input", record.input_file}, {"tags", record.tags}};
  std::vector<Journal::Facts> sessions;
  TRY(run.journal().sessions(&sessions));
  (*out)["machines"] = Json::array();
  for (const Journal::Facts& facts : sessions) {
    Json machine = Json::object();
    for (const auto& [name, value] : facts) machine[name] = value;
    (*out)["machines"].push_back(std::move(machine));
  }
  (*out)["programs"] = files_of(staged.programs);
  (*out)["data"] = files_of(staged.data);
  (*out)["outside"] = staged.outside;
  return Status::ok();
}

Json secrets_of(const Redaction& redaction) {
  Json list = Json::array();
  for (const auto& [member, names] : redaction.found())
    for (const auto& [name, places] : names)
      list.push_back({{"member", member}, {"name", name}, {"places", places}});
  return list;
}

std::string dumped(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

class Archiver {
 public:
  Archiver(const Settings& settings, const std::string& version, Archived* archived)
      : settings_(settings), version_(version), archived_(*archived) {}

  Status write(const std::vector<Run>& runs, const std::string& file) {
    TRY(scratch_.make());
    Json evidence = {
        {"format", "tally-evidence"}, {"version", 1}, {"program", "tally " + version_}};
    evidence["runs"] = Json::array();
    for (const Run& run : runs) {
      Json described;
      TRY(add(run, &described));
      evidence["runs"].push_back(std::move(described));
    }
    evidence["secrets_left_out"] = secrets_of(redaction_);
    std::string text = dumped(evidence);
    redaction_.clean("evidence.json", &text);
    TRY(write_file(scratch_.path() + "/evidence.json", text));
    TRY(write_file(scratch_.path() + "/README.txt", kReadme));
    TRY(write_sums());
    TRY(write_container(scratch_.path(), file));
    struct stat info {};
    if (::stat(file.c_str(), &info) == 0) archived_.bytes = info.st_size;
    note_secrets();
    return Status::ok();
  }

 private:
  Status add(const Run& run, Json* described) {
    StagedRun staged;
    staged.folder = "runs/" + padded_id(run.directory().id);
    for (int again = 2; !folders_.insert(staged.folder).second; ++again)
      staged.folder = fmt::format("runs/{}-{}", padded_id(run.directory().id), again);
    TRY(stage_run(run, scratch_.path(), &redaction_, &staged));
    const std::string folder = scratch_.path() + "/" + staged.folder;
    std::unique_ptr<Run> copied;
    TRY(open_archived(settings_, folder, &copied));
    Evidence now, then;
    const std::unique_ptr<Evaluator> real = make_result_evaluator(settings_);
    ComputedValues computed;
    TRY(make_evidence(*copied, version_, *computed.recording(*real), &now));
    TRY(make_evidence(run, version_, *real, &then));
    archived_.said.push_back({&run, then.unfinished, std::move(then.said)});
    now.texts[kComputed] = computed.json();
    for (const auto& [name, text] : now.texts) {
      const std::string path = folder + "/" + name;
      TRY(make_directories(path.substr(0, path.rfind('/'))));
      TRY(write_file(path, text));
      if (name.ends_with(".dat") && then.texts[name] != text)
        archived_.notes.push_back(
            fmt::format("{}: {} is not the table of the run's folder, which has values that are "
                        "left out or lie "
                        "outside of the run",
                        staged.folder, name));
    }
    for (const std::string& path : staged.outside)
      archived_.notes.push_back(fmt::format(
          "{} lies outside of the run and is not in the archive: its values are those that the "
          "journal kept",
          path));
    return describe_run(*copied, staged, described);
  }

  Status write_sums() {
    std::vector<std::string> names;
    TRY(files_below(scratch_.path(), &names));
    std::string text;
    for (const std::string& name : names) {
      std::string sum;
      TRY(sha256_file(scratch_.path() + "/" + name, &sum));
      text += fmt::format("{}  {}\n", sum, name);
    }
    archived_.members = names.size() + 1;
    return write_file(scratch_.path() + "/SHA256SUMS", text);
  }

  void note_secrets() {
    std::map<std::string, int> places;
    for (const auto& [member, names] : redaction_.found())
      for (const auto& [name, count] : names) places[name] += count;
    for (const auto& [name, count] : places)
      archived_.notes.push_back(
          fmt::format("{} is left out, in {} place{}", name, count, count == 1 ? "" : "s"));
  }

  const Settings& settings_;
  const std::string& version_;
  Archived& archived_;
  Scratch scratch_;
  Redaction redaction_;
  std::set<std::string> folders_;
};

}  // namespace

Status write_archive(const Settings& settings, const std::vector<Run>& runs,
                     const std::string& version, const std::string& file, Archived* archived) {
  return Archiver(settings, version, archived).write(runs, file);
}

}  // namespace tally

#include "engine/cli/runs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <filesystem>
#include <map>
#include <set>
#include <system_error>

#include "engine/base/duration.h"
#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/cli/prepare.h"
#include "engine/execute/machine_facts.h"
#include "engine/results/judge/fleet.h"

namespace tally {
namespace {

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Whether the path is a run's own folder: six digits and a journal.
bool is_run(const std::string& path, int* id) {
  std::string name = path.substr(path.rfind('/') + 1);
  bool digits = name.size() >= 6 && name.find_first_not_of("0123456789") == std::string::npos;
  return digits && parse_id(name, id) && has_journal(path);
}

std::string newest_ids(const std::vector<RunDirectory>& runs) {
  std::vector<std::string> ids;
  for (const RunDirectory& run : runs) ids.push_back(std::to_string(run.id));
  if (ids.size() > 12) ids.erase(ids.begin(), ids.end() - 12);
  return join(ids, ", ");
}

// A folder in `directory` that has runs; the last one by its name. Empty: there is none.
std::string folder_of_runs_in(const std::string& directory) {
  constexpr int kMost = 1000;  // of a folder of something else
  std::string found;
  std::error_code failed;
  std::filesystem::directory_iterator entry(directory, failed);
  for (int looked = 0; !failed && entry != std::filesystem::directory_iterator() && looked < kMost;
       entry.increment(failed), ++looked) {
    const std::filesystem::path& whole = entry->path();
    const std::string path = directory == "." ? whole.filename().string() : whole.string();
    std::error_code unknown;
    std::vector<RunDirectory> runs;
    if (path <= found || !entry->is_directory(unknown)) continue;
    if (list_runs(path, &runs) && !runs.empty()) found = path;
  }
  return found;
}

}  // namespace

Status run_facts(const Journal& journal, Journal::Facts* facts) {
  constexpr size_t kMost = 20;
  std::vector<Journal::Facts> sessions;
  TRY(journal.sessions(&sessions));
  *facts = merged(sessions);
  std::erase_if(*facts, [](const auto& fact) { return starts_with(fact.first, kFleetFact); });
  std::map<int, JobUse> uses;
  TRY(journal.job_uses(&uses));
  std::set<std::string> distinct;
  for (const auto& [workpackage, use] : uses) {
    if (!use.nodes.empty()) distinct.insert(use.nodes);
  }
  std::vector<std::string> nodes(distinct.begin(), distinct.end());
  const size_t all = nodes.size();
  if (all > kMost) {
    nodes.resize(kMost);
    nodes.push_back(fmt::format("and {} more", all - kMost));
  }
  if (all > 0) facts->emplace_back("Job nodes", join(nodes, ", "));
  return Status::ok();
}

Status reported_run(const Run& run, ReportedRun* reported) {
  *reported = {run.directory().id, absolute_path(run.directory().path),
               run.definitions().name.value};
  return run_facts(run.journal(), &reported->machine);
}

bool open_runs(const Settings& settings, const std::vector<std::string>& folders,
               const std::vector<std::string>& ids, std::vector<Run>* runs) {
  for (const std::string& folder : folders) {
    const std::vector<RunDirectory> found = find_runs(settings, {folder, ids});
    if (found.empty()) return false;
    for (const RunDirectory& directory : found) {
      const auto run = open_results(settings, directory);
      if (!run) return false;
      runs->push_back(std::move(*run));
    }
  }
  return true;
}

std::string work_folder(const RunDirectory& run, const Journal::Stored& workpackage) {
  return workpackage.work_dir.empty() ? run.path + "/" + workpackage.directory + "/work"
                                      : workpackage.work_dir;
}

std::string output_of(const RunDirectory& run, const Journal::Stored& workpackage,
                      const std::string& name) {
  const std::string own = run.path + "/" + workpackage.directory + "/work/" + name;
  return may_be_there(own) ? own : work_folder(run, workpackage) + "/" + name;
}

bool parse_id(const std::string& text, int* id) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *id);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool find_outpath(const Settings& settings, const std::string& directory, std::string* outpath,
                  int* id) {
  *outpath = past_links(without_slashes(directory));
  std::optional<struct stat> found;
  const auto looks = [&](const std::string& path) {
    const Status looked = look_at(path, &found);
    if (!looked) print_error(settings, looked);
    return static_cast<bool>(looked);
  };
  if (!looks(*outpath)) return false;
  if (found && S_ISDIR(found->st_mode)) {
    std::string absolute = absolute_path(*outpath);
    if (is_run(absolute, id)) {
      size_t slash = outpath->rfind('/');
      *outpath = slash == std::string::npos ? (*outpath == "." ? ".." : ".")
                                            : outpath->substr(0, std::max<size_t>(slash, 1));
    }
    return true;
  }
  if (found) {  // an input file stands for its outpath
    const std::shared_ptr<Input> input = load_input(settings, *outpath, {});
    if (!input->workflow || input->workflow->benchmarks.empty()) return false;
    *outpath = outpath_of(input->workflow->benchmarks.front(), "", true);
    if (!looks(*outpath)) return false;
    if (found && S_ISDIR(found->st_mode)) return true;
    print_error(settings, fmt::format("'{}' was not run yet: there is no directory '{}'", directory,
                                      *outpath));
    return false;
  }
  print_error(settings, fmt::format("Not a directory: \"{}\"", directory));
  return false;
}

std::vector<RunDirectory> find_runs(const Settings& settings, const RunsArgs& args) {
  std::string outpath;
  int own = -1;
  if (!find_outpath(settings, args.directory, &outpath, &own)) return {};
  std::vector<RunDirectory> all;
  if (print_if_error(settings, list_runs(outpath, &all))) return {};
  std::vector<std::string> ids = args.ids;
  if (ids.empty() && own >= 0) ids = {std::to_string(own)};
  if (all.empty()) {
    const std::string below = folder_of_runs_in(outpath);
    print_error(settings, fmt::format("there are no runs in '{}'", outpath),
                below.empty() ? "name the directory that `run` printed, or the input file"
                              : fmt::format("there are some in '{}'", below));
    return {};
  }
  if (ids.empty()) return {all.back()};
  std::vector<RunDirectory> chosen;
  for (const std::string& word : ids) {
    if (word == "all") return all;
    int id = 0;
    if (word == "last") {
      chosen.push_back(all.back());
      continue;
    }
    if (!parse_id(word, &id)) {
      print_error(settings,
                  fmt::format("'{}' is not a valid run id: use a number, last or all", word));
      return {};
    }
    if (id < 0 && static_cast<size_t>(-id) <= all.size()) {
      chosen.push_back(all[all.size() - static_cast<size_t>(-id)]);
      continue;
    }
    auto found = std::ranges::find_if(all, [&](const RunDirectory& run) { return run.id == id; });
    if (found == all.end()) {
      print_error(settings,
                  fmt::format("Benchmark directory not found: \"{}/{}\"", outpath, padded_id(id)),
                  "there are runs " + newest_ids(all));
      return {};
    }
    chosen.push_back(*found);
  }
  // Each run appears once, as in JUBE, ordered by id, however the runs were named.
  const auto earlier = [](const RunDirectory& a, const RunDirectory& b) { return a.id < b.id; };
  const auto same = [](const RunDirectory& a, const RunDirectory& b) { return a.id == b.id; };
  std::ranges::sort(chosen, earlier);
  chosen.erase(std::unique(chosen.begin(), chosen.end(), same), chosen.end());
  return chosen;
}

std::string last_change(const RunRecord& run, const std::vector<Journal::Stored>& workpackages) {
  double last = 0;
  for (const Journal::Stored& stored : workpackages) {
    last = std::max({last, stored.started, stored.ended});
  }
  if (last <= 0) return run.change;
  return local_time(static_cast<std::time_t>(last), 'T');
}

}  // namespace tally

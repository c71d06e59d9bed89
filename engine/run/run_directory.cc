#include "engine/run/run_directory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <vector>

#include "engine/base/accounts.h"
#include "engine/base/files.h"
#include "engine/base/own_files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"

namespace tally {
namespace {

// The number in the name of a run's folder. -1 for any other folder.
int run_number(const char* name) {
  const size_t size = strlen(name);
  if (size < 6 || size > 9) return -1;
  int number = 0;
  for (const char* at = name; *at != '\0'; ++at) {
    if (isdigit(static_cast<unsigned char>(*at)) == 0) return -1;
    number = number * 10 + (*at - '0');
  }
  return number;
}

// Whether the workflow is in a folder made by `cmake --install`, which does not belong to the user.
bool is_installed(const std::string& folder) {
  namespace fs = std::filesystem;
  const std::string program = program_directory();
  std::error_code ignored;
  return !program.empty() &&
         fs::weakly_canonical(folder, ignored) ==
             fs::weakly_canonical(program + "/../share/tally/workflows", ignored);
}

// Whether the folder is writable, or, if it does not exist, can be created.
bool can_write(std::string folder) {
  while (access(folder.c_str(), F_OK) != 0) {
    const size_t slash = folder.find_last_not_of('/', folder.rfind('/'));
    if (folder.rfind('/') == std::string::npos) {
      folder = ".";
    } else {
      folder = slash == std::string::npos ? "/" : folder.substr(0, slash + 1);
    }
  }
  return access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace

std::string outpath_of(const Benchmark& benchmark, const std::string& given, bool to_read,
                       const std::string& otherwise) {
  if (!given.empty()) return past_links(given);
  std::string own = benchmark.outpath.value;
  if (own.empty()) {
    const char* environment = getenv("JUBE_BENCHMARK_OUTPATH");
    if (environment != nullptr && *environment != '\0') return past_links(environment);
    own = otherwise;
    if (own.empty()) return {};
  }
  own =
      normal_path(expand_path(own));  // `..` removes also a folder that does not exist, as in JUBE
  // The path is relative to the file as the user wrote its path, so that messages stay short.
  size_t slash = benchmark.input_file.rfind('/');
  if (own.front() == '/' || slash == std::string::npos) return own;
  const std::string folder = benchmark.input_file.substr(0, slash + 1);
  std::string beside = normal_path(folder + own);
  if (to_read && may_be_there(beside) && !may_be_there(own)) return beside;
  return is_installed(folder) || !can_write(beside) ? own : beside;
}

Status list_runs(const std::string& outpath, std::vector<RunDirectory>* runs) {
  runs->clear();
  Status listed = each_entry(outpath, [&](const dirent& entry) {
    const int id = run_number(entry.d_name);
    if (id >= 0) runs->push_back({id, outpath + "/" + entry.d_name});
  });
  std::ranges::sort(*runs,
                    [](const RunDirectory& a, const RunDirectory& b) { return a.id < b.id; });
  return listed;
}

Status next_run_id(const std::string& outpath, int* id) {
  std::vector<RunDirectory> runs;
  TRY(list_runs(outpath, &runs));
  *id = runs.empty() ? 0 : runs.back().id + 1;
  // The history of Tally's runs remains when a run is removed: its file is not a later run's.
  std::vector<std::string> histories;
  TRY(names_in(outpath + "/history.d", &histories));
  for (const std::string& name : histories)
    *id = std::max(*id, run_number(std::filesystem::path(name).stem().c_str()) + 1);
  return Status::ok();
}

Status create_run_directory(const std::string& outpath, RunDirectory* out) {
  TRY(make_directories(outpath));
  int id = 0;
  TRY(next_run_id(outpath, &id));
  for (;; ++id) {
    const std::string path = outpath + "/" + padded_id(id);
    if (mkdir(path.c_str(), 0777) == 0) {
      *out = {id, path};
      return Status::ok();
    }
    if (errno != EEXIST) return file_error(path, "cannot make the run's folder", errno);
  }
}

Status create_run_directory(const std::string& outpath, int id, RunDirectory* out) {
  TRY(make_directories(outpath));
  const std::string path = outpath + "/" + padded_id(id);
  if (mkdir(path.c_str(), 0777) != 0) {
    return Status::error(errno == EEXIST ? "Benchmark directory \"" + path + "\" already exists"
                                         : "cannot make '" + path + "': " + strerror(errno));
  }
  *out = {id, path};
  return Status::ok();
}

Status write_run_files(const std::string& run_dir, const std::string& configuration) {
  TRY(write_file(run_dir + "/configuration.xml", configuration));
  const std::string now = time_stamp();
  return write_file(run_dir + "/timestamps", "start: " + now + "\nchange: " + now + "\n");
}

Status touch_timestamps(const std::string& run_dir) {
  std::string text;
  const std::string now = time_stamp();
  std::string start = "start: " + now;
  if (read_own_file(run_dir, run_dir + "/timestamps", &text) && text.rfind("start: ", 0) == 0) {
    start = text.substr(0, text.find('\n'));
  }
  return write_file(run_dir + "/timestamps", start + "\nchange: " + now + "\n");
}

namespace {

bool is_member(gid_t gid) {
  if (geteuid() == 0 || getegid() == gid) return true;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(getgroups(0, nullptr), 0)));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(count, 0)));
  return contains(groups, gid);
}

}  // namespace

Status RunGroup::from_environment(RunGroup* out) {
  const char* name = std::getenv("JUBE_GROUP_NAME");
  if (name == nullptr || *name == '\0') return Status::ok();
  const std::optional<long> found = group_id(name);
  if (!found) {
    return Status::error(
        fmt::format("Failed to get group ID, group \"{}\" does not exist (JUBE_GROUP_NAME)", name));
  }
  if (!is_member(static_cast<gid_t>(*found))) {
    return Status::error(fmt::format("User \"{}\" is not in group \"{}\" (JUBE_GROUP_NAME)",
                                     effective_user(), name));
  }
  out->gid_ = *found;
  umask(002);
  return Status::ok();
}

Status RunGroup::give(const std::string& folder, bool inherit) const {
  if (gid_ < 0) return Status::ok();
  struct stat info {};
  if (chown(folder.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(gid_)) != 0 ||
      stat(folder.c_str(), &info) != 0 ||
      (inherit && chmod(folder.c_str(), (info.st_mode & 07777) | S_ISGID | S_IRWXG) != 0)) {
    return Status::error(
        fmt::format("{}: cannot be given to the group: {}", folder, std::strerror(errno)));
  }
  return Status::ok();
}

void RunGroup::open_to(const std::string& file) const {
  struct stat info {};
  if (gid_ < 0 || stat(file.c_str(), &info) != 0) return;
  [[maybe_unused]] const int done = chmod(file.c_str(), (info.st_mode & 07777) | S_IRGRP | S_IWGRP);
}

}  // namespace tally

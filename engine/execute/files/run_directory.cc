#include "engine/execute/files/run_directory.h"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "engine/base/own_files.h"

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

}  // namespace

std::vector<RunDirectory> list_runs(const std::string& outpath) {
  std::vector<RunDirectory> runs;
  DIR* folder = opendir(outpath.c_str());
  if (folder == nullptr) return runs;
  while (const dirent* entry = readdir(folder)) {
    const int id = run_number(entry->d_name);
    if (id >= 0) runs.push_back({id, outpath + "/" + entry->d_name});
  }
  closedir(folder);
  std::sort(runs.begin(), runs.end(),
            [](const RunDirectory& a, const RunDirectory& b) { return a.id < b.id; });
  return runs;
}

Status create_run_directory(const std::string& outpath, RunDirectory* out) {
  if (Status s = make_directories(outpath); !s) return s;
  const std::vector<RunDirectory> runs = list_runs(outpath);
  int id = runs.empty() ? 0 : runs.back().id + 1;
  // The history of Tally's runs remains when a run is removed: its file is not a later run's.
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(outpath + "/history.d", none))
    id = std::max(id, run_number(file.path().stem().c_str()) + 1);
  for (;; ++id) {
    const std::string path = outpath + "/" + padded_id(id);
    if (mkdir(path.c_str(), 0777) == 0) {
      *out = {id, path};
      return Status::ok();
    }
    if (errno != EEXIST) return file_error(path, "cannot make the run's folder", errno);
  }
}

Status write_run_files(const std::string& run_dir, const std::string& configuration) {
  if (Status s = write_file(run_dir + "/configuration.xml", configuration); !s) return s;
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

}  // namespace tally

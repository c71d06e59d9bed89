// The folder that one run writes its checkpoints to.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace tally::train {

// Makes folders to find out whether they can be made; removes those that are empty at the end.
class MadeFolders {
 public:
  // Makes `path` and the folders above it where they are missing. Throws
  // std::filesystem::filesystem_error.
  explicit MadeFolders(const std::filesystem::path& path);
  ~MadeFolders();
  MadeFolders(const MadeFolders&) = delete;
  MadeFolders& operator=(const MadeFolders&) = delete;

 private:
  void remove_empty();
  std::vector<std::filesystem::path> made_;  // outermost first
};

// Tries to take an exclusive lock of an open file without waiting. Returns an errno; 0: taken.
using TakeLock = std::function<int(int fd)>;
int take_flock(int fd);

// Holds `root` for one run from its start to its end, so that no other run writes checkpoints
// there: a lock of the file ROOT/.tally-train.lock, which names its holder.
class SaveFolder {
 public:
  // Makes `root` where it is missing and removes what killed saves left in it. Throws
  // std::runtime_error with one sentence when nothing can be written there or another run has it.
  explicit SaveFolder(const std::string& root, const TakeLock& take = take_flock);
  // A folder that is still empty is removed if it was made here.
  ~SaveFolder();
  SaveFolder(const SaveFolder&) = delete;
  SaveFolder& operator=(const SaveFolder&) = delete;
  // A sentence that says that the file system has no locks; empty where it has.
  const std::string& notice() const { return notice_; }

 private:
  void say_who() const;

  std::string file_, notice_;
  MadeFolders made_;
  int fd_ = -1;
};

// A folder that is removed with whatever is still in it.
class Unfinished {
 public:
  // Makes it, empty. Throws std::filesystem::filesystem_error.
  explicit Unfinished(std::filesystem::path folder);
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  const std::filesystem::path path;
};

// ".STEM.HOST.PID.tmp": a name that no other process takes.
std::string temporary_name(const std::string& stem);
// Removes what killed saves left in `root`: those of processes of this host that no longer exist,
// or, where `alone` says that no other run writes there, all.
void remove_leftovers(const std::filesystem::path& root, bool alone);

}  // namespace tally::train

#include "engine/results/changed_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/in_thread.h"
#include "engine/base/text.h"
#include "engine/journal/journal.h"
#include "engine/results/analyse.h"
#include "engine/workpackage/ended_file.h"

namespace tally {
namespace {

constexpr size_t kAtOnce = 256;
// Clocks of a file server and of this host differ by less.
constexpr long long kClockSkew = 60LL * 1000000000;

// A copy of a run has other inodes.
bool is_same(const FileStamp& a, const FileStamp& b) {
  return a.size == b.size && a.written_ns == b.written_ns;
}

bool any_differs(int folder, const std::string& packed) {
  constexpr long long kNano = 1000000000;
  PackedEndedFiles files(packed);
  for (PackedEndedFiles::File file; files.next(&file);) {
    struct stat info {};
    if (fstatat(folder, file.path.data(), &info, 0) != 0) return true;
    if (!is_same(file.stamp,
                 {0, info.st_size, info.st_mtim.tv_sec * kNano + info.st_mtim.tv_nsec})) {
      return true;
    }
  }
  return false;
}

using Key = std::tuple<uint64_t, long long, long long>;
Key key(const FileStamp& stamp) {
  return {stamp.inode, stamp.size, stamp.written_ns};
}

// Looks closely at the files of the workpackages of which one seems to have changed.
class Comparer {
 public:
  // `left`: as workpackages of the run have left their files.
  Comparer(const std::string& run, std::set<Key> left, const std::vector<WorkpackageView>& views)
      : run_(run),
        left_(std::move(left)),
        goes_on_(std::any_of(views.begin(), views.end(), [](const WorkpackageView& view) {
          return view.state == State::running || view.state == State::waiting;
        })) {}

  void compare(const std::string& packed, WorkpackageView& view) const {
    if (::access(view.work_dir.c_str(), F_OK) != 0) return;
    const EndedFiles ended = EndedFiles::unpacked(packed);
    for (const EndedFile& file : ended.files) {
      const std::string path = file.path.front() == '/' ? file.path : run_ + file.path;
      const FileStamp now = file_stamp(path);
      if (is_same(now, file.stamp) || left_.count(key(now)) != 0) continue;
      std::string digest;
      const bool same_begin = now.there() && now.size >= file.stamp.size &&
                              digest_part(path, 0, file.stamp.size, &digest) &&
                              digest == file.digest;
      if (same_begin && now.size == file.stamp.size) continue;
      if (same_begin && may_grow(ended, file, now, view.id)) continue;
      view.changes.push_back(
          {path, what_happened(file.stamp, now, same_begin), file.stamp.size, same_begin});
    }
  }

 private:
  bool may_grow(const EndedFiles& ended, const EndedFile& file, const FileStamp& now,
                int id) const {
    if (ended.writer == EndedFiles::Writer::unknown) return true;
    if (ended.writer == EndedFiles::Writer::job && now.written_ns <= ended.noted_ns + kClockSkew)
      return true;
    // In a folder that workpackages share, one of them may be writing.
    return goes_on_ && !starts_with(file.path, fmt::format("{:06}_", id));
  }

  static std::string what_happened(const FileStamp& then, const FileStamp& now, bool same_begin) {
    if (!now.there()) return "is gone";
    if (same_begin) return fmt::format("is {} bytes longer", now.size - then.size);
    if (now.size < then.size) return fmt::format("has {} bytes instead of {}", now.size, then.size);
    return "has other content";
  }

  const std::string& run_;
  const std::set<Key> left_;
  const bool goes_on_;
};

}  // namespace

ChangedFiles::ChangedFiles(const Journal& journal, const std::string& run_dir)
    : journal_(journal),
      run_(absolute_path(run_dir) + "/"),
      folder_(::open(run_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_PATH)) {}

ChangedFiles::~ChangedFiles() {
  suspects_.clear();  // waits
  if (folder_ >= 0) ::close(folder_);
}

void ChangedFiles::add(int id, std::string packed) {
  if (packed.empty()) return;
  if (!some_) {
    some_ = std::make_shared<Some>();
    some_->reserve(kAtOnce);
  }
  some_->push_back({id, std::move(packed)});
  if (some_->size() == kAtOnce) look();
}

void ChangedFiles::look() {
  suspects_.push_back(in_thread([folder = folder_, some = std::exchange(some_, nullptr)] {
    Some found;
    for (Ended& one : *some) {
      if (any_differs(folder, one.packed)) found.push_back(std::move(one));
    }
    return found;
  }));
}

Status ChangedFiles::finish(std::vector<WorkpackageView>* views) {
  if (some_) look();
  Some suspects;
  for (std::future<Some>& some : suspects_) {
    for (Ended& one : some.get()) suspects.push_back(std::move(one));
  }
  suspects_.clear();
  if (suspects.empty()) return Status::ok();  // as nearly every run
  std::set<Key> left;
  Status read = journal_.each_workpackage([&](Journal::Stored& stored) {
    PackedEndedFiles files(stored.ended_files);
    for (PackedEndedFiles::File file; files.next(&file);) left.insert(key(file.stamp));
  });
  if (!read) return read;
  const Comparer comparer(run_, std::move(left), *views);
  const WorkpackagesById all = by_id(*views);
  for (const Ended& one : suspects) {
    const WorkpackageView* view = find_id(all, one.id);
    if (view != nullptr)
      comparer.compare(one.packed, (*views)[static_cast<size_t>(view - views->data())]);
  }
  return Status::ok();
}

}  // namespace tally

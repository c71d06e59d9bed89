#include "engine/results/read/changed_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/journal/journal.h"
#include "engine/results/read/outside_parts.h"
#include "engine/results/read/scan.h"
#include "engine/results/read/workpackage_view.h"
#include "engine/workflow/pattern_uses.h"
#include "engine/workpackage/ended_file.h"
#include "engine/workpackage/matching_files.h"

namespace tally {
namespace {

// A copy of a run has other inodes.
bool is_same(const FileStamp& a, const FileStamp& b) {
  return a.size == b.size && a.written_ns == b.written_ns;
}

// The whole path of one that the journal may have kept relative to the run's folder.
std::string path_in(const std::string& run, const std::string& path) {
  return path.front() == '/' ? path : run + path;
}

// The files as workpackages of the run have left them. Several may write to one file, in a folder
// that they share or through a link, and each notes it at its own end.
class LeftFiles {
 public:
  explicit LeftFiles(const std::string& run) : run_(run) {}
  void add(const std::string& path, const FileStamp& stamp) {
    by_path_.emplace(path, stamp.size, stamp.written_ns);
    by_inode_.emplace(std::tuple(stamp.inode, stamp.size, stamp.written_ns), path);
  }
  // `directory`: a workpackage's own, relative to the run.
  void add_folder(const std::string& directory) { folders_.insert(directory); }
  // Whether a workpackage has left the file at `path`, which was `before`, as it is `now`, if that
  // is seen at once.
  bool has_plainly(const std::string& path, const FileStamp& before, const FileStamp& now) const {
    const auto [first, last] = by_inode_.equal_range({now.inode, now.size, now.written_ns});
    for (auto left = first; now.inode == before.inode && left != last; ++left) {
      if (!leads_into_a_folder(left->second)) return true;
    }
    return by_path_.count({path, now.size, now.written_ns}) != 0;
  }
  // The same where links lead to the file's folder, or to the one through which another workpackage
  // left it. A file in the folder of a workpackage is left by that one alone: others may have read
  // it through a link, or have changed it. Looks at the folders of all files: seldom needed.
  bool has(const std::string& path, const FileStamp& now) const {
    if (!linked_) {
      linked_.emplace();
      for (const auto& [left, size, written_ns] : by_path_) {
        std::string real = real_path(left);
        if (!is_in_own_folder(real)) linked_->emplace(std::move(real), size, written_ns);
      }
    }
    return linked_->count({real_path(path), now.size, now.written_ns}) != 0;
  }
  // An error: a folder could not be looked at, so that has() may be wrong.
  const Status& looked() const { return looked_; }

 private:
  using Files = std::set<std::tuple<std::string, long long, long long>>;

  // Whether the path without links is below the folder of some workpackage. The folder that a
  // step's workpackages share may look like one.
  bool is_in_own_folder(const std::string& real) const {
    const std::string run = real_path(run_.substr(0, run_.size() - 1)) + "/";
    if (!starts_with(real, run)) return false;
    return folders_.count(real.substr(run.size(), real.find('/', run.size()) - run.size())) != 0;
  }
  // Whether a link leads from the path into the folder of some workpackage.
  bool leads_into_a_folder(const std::string& path) const {
    const std::string real = real_path(path);
    if (!is_in_own_folder(real)) return false;
    const std::string run = real_path(run_.substr(0, run_.size() - 1)) + "/";
    return !starts_with(path, run_) || real != run + path.substr(run_.size());
  }
  // Without the links on the way and at the end.
  const std::string& real_path(const std::string& path) const {
    const auto [found, is_new] = real_.try_emplace(path);
    if (is_new) {
      std::error_code error;
      found->second = std::filesystem::canonical(path, error).string();
      if (error) found->second = path;
      if (error && !means_not_there(error.value())) looked_ = look_error(path, error.value());
    }
    return found->second;
  }

  const std::string& run_;  // with a slash
  std::set<std::string> folders_;
  Files by_path_;
  mutable std::optional<Files> linked_;
  std::multimap<std::tuple<uint64_t, long long, long long>, std::string>
      by_inode_;  // with the path
  mutable std::map<std::string, std::string> real_;
  mutable Status looked_;
};

// Looks closely at the files of the workpackages of which one seems to have changed.
class FileComparer {
 public:
  FileComparer(const std::string& run, bool outside_counts, const LeftFiles& left,
               const std::vector<WorkpackageView>& views)
      : run_(run),
        outside_counts_(outside_counts),
        left_(left),
        goes_on_(std::ranges::any_of(views, [](const WorkpackageView& view) {
          return view.state == State::running || view.state == State::waiting;
        })) {}

  // Finds the files that have their size and time of the workpackage's end, and other bytes: that time
  // can be set, and the one of the last change cannot. Call it for all workpackages before
  // add_changes().
  Status find_replaced(const EndedFiles& ended) {
    for (const EndedFile& file : ended.files) {
      if (!file.stamp.there() || file.digest.empty()) continue;
      const std::string path = path_of(file);
      if (file_changed_ns(path) <= ended.noted_ns) continue;
      FileStamp now;
      TRY(file_stamp(path, &now));
      if (!is_same(now, file.stamp)) continue;
      std::string digest;
      TRY(digest_part(path, 0, file.stamp.size, &digest));
      if (digest != file.digest) replaced_.insert(path);
    }
    return Status::ok();
  }

  Status add_changes(const EndedFiles& ended, const WorkpackageView& view,
                     std::vector<WorkpackageView::Change>& changes) const {
    for (const EndedFile& file : ended.files) {
      if (!file.stamp.there()) {
        TRY(add_new_files(ended, file, view, changes));
        continue;
      }
      const std::string path = path_of(file);
      FileStamp now;
      TRY(file_stamp(path, &now));
      const bool replaced = replaced_.contains(path);
      if (!replaced && (is_same(now, file.stamp) || left_.has_plainly(path, file.stamp, now)))
        continue;
      bool same_begin = now.there() && now.size >= file.stamp.size;
      if (same_begin) {
        std::string digest;
        TRY(digest_part(path, 0, file.stamp.size, &digest));
        same_begin = digest == file.digest;
      }
      if (same_begin && now.size == file.stamp.size) continue;
      if (same_begin && may_grow(ended, path, now, view.id)) continue;
      if (!replaced && is_where_it_was(ended, file, path) && left_.has(path, now)) continue;
      changes.push_back(
          {path, what_happened(file.stamp, now, same_begin), file.stamp.size, same_begin});
    }
    bool there = true;
    if (!changes.empty()) {
      TRY(path_exists(view.work_dir, &there));
    }
    if (!there) changes.clear();  // the whole folder is gone
    return Status::ok();
  }

 private:
  std::string path_of(const EndedFile& file) const { return path_in(run_, file.path); }

  // Whether the same links lead to the file as when the workpackage ended. Else another one's file
  // may have been put in its place.
  bool is_where_it_was(const EndedFiles& ended, const EndedFile& file,
                       const std::string& path) const {
    if (!ended.links_known) return true;
    const std::string plain = starts_with(path, run_) ? path.substr(run_.size()) : path;
    return path_behind_links(run_, path) == (file.real.empty() ? plain : file.real);
  }

  // Files of a name or glob that were not there when the workpackage ended.
  Status add_new_files(const EndedFiles& ended, const EndedFile& file, const WorkpackageView& view,
                       std::vector<WorkpackageView::Change>& changes) const {
    const std::string& name = file.path;
    const auto was_there = [&](const std::string& path) {
      return std::ranges::any_of(ended.files, [&](const EndedFile& other) {
        return other.stamp.there() && path_of(other) == path;
      });
    };
    // A file of the first folder that is looked into comes first.
    const std::string& first = view.own_dir.empty() ? view.work_dir : view.own_dir;
    if (!is_glob(name) && was_there(first + "/" + name)) return Status::ok();
    std::vector<std::string> found;
    TRY(matching_files(view.work_dir, name, view.own_dir, &found));
    const std::string in_work_dir = absolute_path(opened_path(name, view.work_dir));
    for (const std::string& each : found) {
      const std::string path = opened_path(each);
      const bool led = path != in_work_dir || is_where_it_was(ended, file, path);
      FileStamp now;
      TRY(file_stamp(path, &now));
      if (!now.there() || was_there(path) ||
          (!outside_counts_ && !is_in_folder_of(run_, view.id, path)) ||
          may_grow(ended, path, now, view.id) || (led && left_.has(path, now)) ||
          (path != absolute_path(each) && now.written_ns <= ended.noted_ns))  // an earlier program
        continue;                                                             // took another for it
      changes.push_back({path, "was not there", 0, true});
    }
    return Status::ok();
  }

  bool may_grow(const EndedFiles& ended, const std::string& path, const FileStamp& now,
                int id) const {
    if (now.written_ns <= ended.own_until_ns()) return true;
    // In a folder that workpackages share, one of them may be writing.
    return goes_on_ && !is_in_folder_of(run_, id, path);
  }

  static std::string what_happened(const FileStamp& then, const FileStamp& now, bool same_begin) {
    if (!now.there()) return "is gone";
    if (same_begin) return fmt::format("is {} bytes longer", now.size - then.size);
    if (now.size < then.size) return fmt::format("has {} bytes instead of {}", now.size, then.size);
    return "has other content";
  }

  const std::string& run_;
  const bool outside_counts_;  // files outside the run count, too
  const LeftFiles& left_;
  const bool goes_on_;
  std::set<std::string> replaced_;  // paths
};

// Whether the journal has kept what all patterns found that are sought in the workpackage's
// outputs.
bool has_kept_all(const Benchmark& benchmark, const WorkpackageView& view) {
  if (view.kept == nullptr) return false;
  for (const Analyser& analyser : benchmark.analysers) {
    for (const Analyse& analyse : analyser.analyse) {
      if (analyse.step.value != view.step) continue;
      for (const AnalyseFile& file : analyse.files) {
        for (const Pattern* pattern : patterns_for(benchmark, analyser, file)) {
          if (pattern->mode != PatternMode::pattern) continue;
          if (!view.kept->matches(benchmark, analyser, analyse, *pattern)) return false;
        }
      }
    }
  }
  return true;
}

// Shows the values of the bytes that were there when the workpackage ended, with a mark: output
// that somebody has changed cannot be trusted.
void mark_changed(WorkpackageView& view) {
  view.state = State::changed;
  std::vector<OutsidePart> parts;
  if (view.outside != nullptr) parts = *view.outside;
  for (const WorkpackageView::Change& change : view.changes) {
    if (change.grown) parts.push_back({change.path, OutsidePart::Kind::own, 0, change.size, 0});
  }
  if (!parts.empty())
    view.outside = std::make_shared<const std::vector<OutsidePart>>(std::move(parts));
}

}  // namespace

ChangedFiles::ChangedFiles(const Journal& journal, const std::string& run_dir)
    : journal_(journal), run_(absolute_path(run_dir) + "/") {}

Status ChangedFiles::mark(const Benchmark& benchmark, const std::vector<WorkpackageView>& views,
                          const std::vector<int>& suspects,
                          std::vector<WorkpackageView>* marked) const {
  std::map<int, EndedFiles> ended;
  for (const int id : suspects) ended.try_emplace(id);
  LeftFiles left(run_);
  Status read = journal_.each_workpackage([&](Journal::Stored& stored) {
    left.add_folder(stored.directory);
    const EndedFiles files = EndedFiles::unpacked(stored.ended_files);
    for (const EndedFile& file : files.files) {
      if (file.stamp.there()) left.add(path_in(run_, file.path), file.stamp);
    }
    if (const auto own = ended.find(stored.workpackage.id); own != ended.end()) own->second = files;
  });
  if (!read) return read;
  FileComparer comparer(run_, !benchmark.rules.outside_files_are_guarded, left, views);
  for (const auto& [id, files] : ended) {
    TRY(comparer.find_replaced(files));
  }
  std::map<int, std::vector<WorkpackageView::Change>> changes;
  for (const WorkpackageView& view : views) {
    const auto files = ended.find(view.id);
    if (files == ended.end()) continue;
    std::vector<WorkpackageView::Change> found;
    TRY(comparer.add_changes(files->second, view, found));
    if (!found.empty()) changes.emplace(view.id, std::move(found));
  }
  if (!left.looked()) return left.looked();
  if (changes.empty()) return Status::ok();
  *marked = views;
  std::set<int> changed;
  for (WorkpackageView& view : *marked) {
    if (ended.count(view.id) != 0) view.files_at_end = 0;  // has been compared
    const auto found = changes.find(view.id);
    if (found == changes.end()) continue;
    view.changes = found->second;
    changed.insert(view.id);
  }
  if (!benchmark.rules.values_are_kept) return Status::ok();
  TRY(take_kept(journal_, changed, *marked));
  for (WorkpackageView& view : *marked) {
    if (view.changes.empty() || has_kept_all(benchmark, view)) continue;
    view.kept = nullptr;
    if (view.state == State::done) mark_changed(view);
  }
  return Status::ok();
}

}  // namespace tally

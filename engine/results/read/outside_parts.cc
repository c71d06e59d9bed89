#include "engine/results/read/outside_parts.h"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/journal/journal.h"
#include "engine/results/read/workpackage_view.h"

namespace tally {
namespace {

constexpr double kNano = 1e-9;
// A file's time is that of the kernel's last tick, at most 10 ms (100 Hz) behind the clock by which
// workpackages start.
constexpr double kTick = 0.01;

Status compare_part(const OutsideFile& file, OutsidePart& part) {
  part.path = file.path;
  part.from = file.from;
  part.to = file.after.size;
  if (!file.after.there()) {
    part.kind = OutsidePart::Kind::absent;
    part.until_ns = file.after.written_ns;
    return Status::ok();
  }
  FileStamp now;
  TRY(file_stamp(file.path, &now));
  // Without a digest nobody could tell which bytes are the workpackage's.
  const bool as_it_was = now == file.after && (file.untouched() || !file.digest.empty());
  // The time of the last write can be set. That of the last change is later then.
  if (as_it_was && (file.untouched() || file_changed_ns(file.path) <= now.written_ns))
    return Status::ok();
  bool same = now.there() && now.size >= file.after.size;
  if (same) {
    std::string digest;
    TRY(digest_part(file.path, file.from, file.after.size, &digest));
    same = digest == file.digest;
  }
  if (!same) part.kind = OutsidePart::Kind::changed;
  if (same) part.grown = now.size - file.after.size;
  return Status::ok();
}

class OutsideParts {
 public:
  OutsideParts(std::string run, std::vector<WorkpackageView>* views, double first_start)
      : run_(std::move(run)), views_(*views), first_start_(first_start), index_(by_id(*views)) {}

  void add(int id, OutsideFile file) {
    if (!file.ended) return;
    if (file.path.front() != '/') file.path = run_ + file.path;
    if (!file.untouched() && file.after.there()) writers_[file.path].push_back(known_.size());
    known_.push_back({id, file, {}});
  }

  void finish() {
    for (Known& one : known_) {
      if (Status s = compare_part(one.file, one.part); !s) {
        one.part.kind = OutsidePart::Kind::unknown;
        one.part.why = s.message();
      }
      if (one.part.grown > 0 && has_later_writer(one)) one.part.grown = 0;
    }
    for (auto& [path, writers] : writers_) find_shared(writers);
    std::map<int, std::vector<OutsidePart>> parts;
    for (Known& one : known_) {
      if (one.file.untouched() && one.file.before.there()) {
        if (made_by_ancestor(one)) continue;
        one.part.kind = OutsidePart::Kind::untouched;
      }
      parts[one.id].push_back(std::move(one.part));
    }
    for (WorkpackageView& view : views_) {
      const auto found = parts.find(view.id);
      if (found == parts.end()) continue;
      view.outside_changed = std::ranges::any_of(found->second, [](const OutsidePart& part) {
        return part.kind == OutsidePart::Kind::changed;
      });
      view.outside = std::make_shared<const std::vector<OutsidePart>>(std::move(found->second));
    }
  }

 private:
  struct Known {
    int id = 0;
    OutsideFile file;
    OutsidePart part;
  };

  // One that began after another's last write came after it. Writes of others are mixed up.
  void find_shared(std::vector<size_t>& writers) {
    std::ranges::stable_sort(writers, [this](size_t a, size_t b) {
      return known_[a].file.after.written_ns < known_[b].file.after.written_ns;
    });
    size_t marked = 0;  // those before are, or cannot be
    for (size_t i = 1; i < writers.size(); ++i) {
      const long long began = known_[writers[i]].file.before.written_ns;
      size_t first = i;
      while (first > marked && known_[writers[first - 1]].file.after.written_ns > began) --first;
      if (first < i || (marked == i && known_[writers[i - 1]].file.after.written_ns > began)) {
        for (size_t k = first; k <= i; ++k)
          known_[writers[k]].part.kind = OutsidePart::Kind::shared;
        marked = i + 1;
      }
    }
  }

  std::set<int> ancestors_of(int id) const {
    std::set<int> all;
    std::vector<int> todo{id};
    while (!todo.empty()) {
      const WorkpackageView* view = find_id(index_, todo.back());
      todo.pop_back();
      for (size_t i = 0; view != nullptr && i < view->parents.size(); ++i) {
        if (all.insert(view->parents[i]).second) todo.push_back(view->parents[i]);
      }
    }
    return all;
  }

  // A step before it may have made the file, in its own folder or in a work_dir that both have.
  bool made_by_ancestor(const Known& one) const {
    const std::set<int> ancestors = ancestors_of(one.id);
    if (std::ranges::any_of(ancestors,
                            [&](int id) { return is_in_folder_of(run_, id, one.file.path); }))
      return true;
    if (static_cast<double>(one.file.before.written_ns) * kNano < first_start_ - kTick)
      return false;
    if (const auto wrote = writers_.find(one.file.path); wrote != writers_.end()) {
      for (const size_t writer : wrote->second) {
        if (ancestors.count(known_[writer].id) == 0) return false;
      }
    }
    const WorkpackageView* own = find_id(index_, one.id);
    return own != nullptr && std::ranges::any_of(ancestors, [&](int ancestor) {
             const WorkpackageView* other = find_id(index_, ancestor);
             return other != nullptr && other->work_dir == own->work_dir;
           });
  }

  // Whether the bytes behind its own are those of another workpackage of this run.
  bool has_later_writer(const Known& one) const {
    const auto writers = writers_.find(one.file.path);
    return writers != writers_.end() && std::ranges::any_of(writers->second, [&](size_t other) {
             return known_[other].file.from == one.file.after.size;
           });
  }

  const std::string run_;
  std::vector<WorkpackageView>& views_;
  const double first_start_;
  const WorkpackagesById index_;
  std::vector<Known> known_;
  std::map<std::string, std::vector<size_t>> writers_;  // by path: places in known_
};

}  // namespace

const OutsidePart* part_of(const WorkpackageView& workpackage, const std::string& path) {
  if (workpackage.outside == nullptr) return nullptr;
  const std::vector<OutsidePart>& parts = *workpackage.outside;
  const auto named = [&](const OutsidePart& part) { return part.path == path; };
  auto found = std::ranges::find_if(parts, named);
  if (found == parts.end()) {
    found = std::ranges::find_if(parts, [&](const OutsidePart& part) {
      return part.kind == OutsidePart::Kind::absent &&
             fnmatch(part.path.c_str(), path.c_str(), FNM_PATHNAME | FNM_PERIOD) == 0;
    });
  }
  return found == parts.end() ? nullptr : &*found;
}

bool is_in_folder_of(const std::string& run, int id, const std::string& path) {
  return starts_with(path, fmt::format("{}{:06}_", run, id));
}

Status take_outside_files(const Journal& journal, const std::string& run_dir,
                          std::vector<WorkpackageView>* views) {
  std::vector<std::pair<int, OutsideFile>> files;
  Status read =
      journal.each_outside([&](int id, const OutsideFile& file) { files.emplace_back(id, file); });
  if (!read || files.empty()) return read;  // as nearly every run
  double first_start = 0;
  TRY(journal.first_start(&first_start));
  OutsideParts parts(absolute_path(run_dir) + "/", views, first_start);
  for (auto& [id, file] : files) parts.add(id, std::move(file));
  parts.finish();
  return Status::ok();
}

}  // namespace tally

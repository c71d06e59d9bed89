#include "engine/results/read/scan.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"
#include "engine/results/read/cut_value.h"
#include "engine/results/read/file_view.h"
#include "engine/results/read/workpackage_view.h"
#include "engine/workflow/pattern_uses.h"
#include "engine/workpackage/matching_files.h"

namespace tally {
namespace {

// The limit for patterns with parameters, which have one text for each workpackage.
constexpr size_t kMostRegexes = 4096;

void add_once(std::string_view name, std::vector<std::string>& list) {
  if (!contains(list, name)) list.emplace_back(name);
}

void add_once(const AnalyseFile* file, FoundFiles& list) {
  if (file->use.empty()) return;
  if (!contains(list, file)) list.push_back(file);
}

void add_once(const Pattern* pattern, std::vector<const Pattern*>& list) {
  if (!contains(list, pattern)) list.push_back(pattern);
}

// The place for the values of a pattern. It has no value, but was searched for, until one is added.
class Targets {
 public:
  Targets(const MatchSinks& found, const Pattern& pattern)
      : row_(of(found.row->found, pattern)),
        own_(found.own != nullptr ? &of(found.own->found, pattern) : nullptr) {}
  template <class ViewValues>
  void add(const ViewValues& values) const {
    row_.add(values);
    if (own_ != nullptr) own_->add(values);
  }

 private:
  static Statistics& of(Found& found, const Pattern& pattern) {
    return found.try_emplace(pattern.name.value, pattern.type).first->second;
  }

  Statistics& row_;
  Statistics* own_;
};

// The files of a name that may have several, or that may be in one of several folders.
Status find_files(const WorkpackageView& workpackage, const std::string& name,
                  const std::string& first_name, size_t which, std::vector<std::string>* paths) {
  if (!workpackage.log.empty())
    return files_beside_log(workpackage.log, name, first_name, which, paths);
  return matching_files(workpackage.work_dir, name, workpackage.own_dir, paths);
}

}  // namespace

void MatchSinks::add_file(const AnalyseFile* file) const {
  add_once(file, row->files);
  if (own != nullptr) add_once(file, own->files);
}

void MatchSinks::add_seconds_of(const StatedTime& time, double stated) const {
  add_seconds(time, stated, row->seconds);
  if (own != nullptr) add_seconds(time, stated, own->seconds);
}

const std::string* ViewValues::find(std::string_view name) const {
  if (values_.empty()) {
    values_.reserve(workpackage_.values.size());
    for (const auto& [key, value] : workpackage_.values) values_.emplace(key, &value);
  }
  auto found = values_.find(name);
  return found == values_.end() ? nullptr : found->second;
}

Scanner::Scanner(const Benchmark& benchmark, const Analyser& analyser)
    : benchmark_(benchmark),
      analyser_(analyser),
      rows_(benchmark, analyser),
      rates_(read_rates(benchmark, analyser)) {
  for (const Pattern* pattern : patterns_of_analyser(benchmark, analyser))
    if (pattern->mode != PatternMode::pattern) computed_.push_back(pattern);
  for (const Rate& rate : rates_) times_.insert(rate.times.begin(), rate.times.end());
}
Scanner::~Scanner() = default;
Scanner::Scanner(Scanner&&) noexcept = default;

void Scanner::problem(const Mark& mark, const std::string& key, std::string text, bool error) {
  Problem& p = problems_[key];
  if (p.times++ == 0) {
    p.mark = mark;
    p.error = error;
    p.text = std::move(text);
  }
}

void Scanner::add(const Scanner& later) {
  errors_.append(later.errors_);
  for (const auto& [key, theirs] : later.problems_) {
    const auto [own, is_new] = problems_.try_emplace(key, theirs);
    if (is_new) continue;
    own->second.times += theirs.times;
    for (const Pattern* pattern : theirs.patterns) add_once(pattern, own->second.patterns);
  }
  suspects_.insert(suspects_.end(), later.suspects_.begin(), later.suspects_.end());
  for (const Search& theirs : later.searches_) {
    Search& own = search_of(theirs.pattern);
    own.workpackages += theirs.workpackages;
    own.most = std::max(own.most, theirs.most);
    own.has_value = own.has_value || theirs.has_value;
    own.without.insert(own.without.end(), theirs.without.begin(), theirs.without.end());
    for (const std::string& file : theirs.files) add_once(file, own.files);
  }
}

void Scanner::report(Diagnostics& diagnostics) const {
  diagnostics.append(errors_);
  for (const auto& [key, p] : problems_) {
    const bool error = p.error || std::ranges::any_of(p.patterns, [&](const Pattern* pattern) {
                         return has_no_value(*pattern);
                       });
    std::string text = p.text;
    if (p.times > 1) text += fmt::format(" (and {} more of this kind)", p.times - 1);
    if (error) {
      diagnostics.error(p.mark, std::move(text));
    } else {
      diagnostics.warning(p.mark, std::move(text));
    }
  }
}

std::string Scanner::pattern_text(const Pattern& pattern,
                                  const std::vector<const Pattern*>& patterns,
                                  const ViewValues& values) const {
  return substitute(pattern.value.value, [&](std::string_view name) -> const std::string* {
    if (const std::string* block = pattern_building_block(name, benchmark_.rules.fortran_numbers))
      return block;
    if (const std::string* value = values.find(name)) return value;
    for (const Pattern* other : patterns) {
      if (other->name.value == name && other != &pattern) return &other->value.value;
    }
    return nullptr;
  });
}

// Most patterns refer to building blocks alone, and are compiled once.
Regex* Scanner::regex_of(const Pattern& pattern, const std::vector<const Pattern*>& patterns,
                         const ViewValues& values) {
  const auto [entry, is_new] = plain_.try_emplace(&pattern);
  PlainRegex& plain = entry->second;
  if (is_new) {
    const std::string text =
        substitute(pattern.value.value, [&](std::string_view name) -> const std::string* {
          const std::string* block = pattern_building_block(name, benchmark_.rules.fortran_numbers);
          if (block == nullptr) plain.same_everywhere = false;
          return block;
        });
    if (plain.same_everywhere) plain.regex = compile(pattern, text);
  }
  if (plain.same_everywhere) return plain.regex.get();
  return compiled(pattern, pattern_text(pattern, patterns, values));
}

Regex* Scanner::compiled(const Pattern& pattern, const std::string& text) {
  std::string key = (pattern.dotall ? "s" : "-") + text;
  auto found = regexes_.find(key);
  if (found != regexes_.end()) return found->second.get();
  if (regexes_.size() >= kMostRegexes) regexes_.clear();
  return regexes_.emplace(std::move(key), compile(pattern, text)).first->second.get();
}

std::unique_ptr<Regex> Scanner::compile(const Pattern& pattern, const std::string& text) {
  std::unique_ptr<Regex> regex;
  const Status valid = Regex::compile(text_of_bytes(text), pattern.dotall, &regex);
  if (!valid) {
    errors_.error(pattern.value.mark,
                  fmt::format("pattern '{}' is not a regular expression: {} in \"{}\"",
                              pattern.name.value, valid.message(), text));
  }
  return regex;
}

const std::vector<Scanner::FileSearch>& Scanner::searches_of(const Analyse& analyse) {
  const auto [entry, is_new] = files_.try_emplace(&analyse);
  if (!is_new) return entry->second;
  for (const AnalyseFile& file : analyse.files) {
    FileSearch& search = entry->second.emplace_back();
    search.file = &file;
    search.patterns = patterns_for(benchmark_, analyser_, file);
    const std::string& path = file.path.value;
    if (path.find_first_of("$\\") == std::string::npos) search.names = file_names(path);
  }
  return entry->second;
}

std::vector<Scanner::FileName> Scanner::file_names(const std::string& list) {
  std::vector<FileName> names;
  for (std::string& name : names_of(list)) {
    const bool glob = is_glob(name);
    names.push_back({std::move(name), glob});
  }
  return names;
}

void Scanner::scan(const Analyse& analyse, const WorkpackageView& workpackage,
                   const MatchSinks& found, const std::vector<const AnalyseFile*>& left_out) {
  if (workpackage.kept != nullptr && take_kept(analyse, workpackage, found)) return;
  const ViewValues values(workpackage);
  const auto lookup = [&](std::string_view name) { return values.find(name); };
  std::vector<std::vector<FileName>> own_names;  // those that depend on the workpackage
  const FileName* first_name = nullptr;
  size_t which = 0;
  SearchedHere here;
  opened_ = {};
  opened_changed_ns_ = 0;
  rows_.begin_workpackage();
  for (const FileSearch& search : searches_of(analyse)) {
    const AnalyseFile& file = *search.file;
    if (contains(left_out, &file)) continue;
    if (!search.names) own_names.push_back(file_names(substitute(file.path.value, lookup)));
    for (const FileName& name : search.names ? *search.names : own_names.back()) {
      if (which == 0) first_name = &name;
      Status looked = Status::ok();
      bool missing = false;
      if (workpackage.log.empty() && workpackage.own_dir.empty() && !name.glob) {
        // Opening the file tells whether it is there.
        const bool absolute = name.text.front() == '/';
        const std::string path = absolute ? name.text : workpackage.work_dir + "/" + name.text;
        const Seen seen =
            scan_file({workpackage, path, name.text, &file}, search.patterns, values, found, here);
        if (seen == Seen::file) found.add_file(&file);
        missing = seen == Seen::nothing;
      } else {
        std::vector<std::string> paths;
        looked = find_files(workpackage, name.text, first_name->text, which, &paths);
        missing = paths.empty() && workpackage.log.empty();
        for (const std::string& path : paths) {
          if (scan_file({workpackage, path, name.text, &file}, search.patterns, values, found,
                        here) == Seen::file)
            found.add_file(&file);
        }
      }
      ++which;
      if (!looked) {
        problem({}, "open " + looked.message(), looked.message(), true);
      } else if (missing) {
        no_file(analyse, search, name.text, workpackage);
      }
    }
  }
  if (workpackage.files_at_end != 0 && (opened_.value() != workpackage.files_at_end ||
                                        opened_changed_ns_ > workpackage.files_noted_ns))
    suspects_.push_back(workpackage.id);
  end_rows(found);
  count(workpackage, here);
}

void Scanner::end_rows(const MatchSinks& found) {
  const std::string doubtful = rows_.end_workpackage(found);
  if (doubtful.empty()) return;
  problem(
      analyser_.rows.front().mark, "rows in files",
      fmt::format("two files have a row with {}: which of a point's rows is which is not known; "
                  "let `rows` also name a pattern that tells them apart, or read each file once",
                  doubtful),
      true);
}

std::string definition_of(const Benchmark& benchmark, const Analyser& analyser,
                          const Analyse& analyse, const std::string& pattern) {
  std::string definition;
  for (const AnalyseFile& file : analyse.files) {
    bool refers = false, found = false;
    std::string own, all;
    for (const Pattern* one : patterns_for(benchmark, analyser, file)) {
      const std::string text =
          (one->dotall ? "s " : "- ") + one->name.value + ": " + one->value.value + "\n";
      all += text;
      if (one->name.value != pattern) continue;
      found = true;
      own += text;
      substitute(one->value.value, [&](std::string_view name) -> const std::string* {
        const std::string* block = pattern_building_block(name, benchmark.rules.fortran_numbers);
        refers = refers || block == nullptr;
        return block;
      });
    }
    if (found) definition += file.path.value + "\n" + (refers ? all : own);
  }
  return definition;
}

bool Scanner::take_kept(const Analyse& analyse, const WorkpackageView& workpackage,
                        const MatchSinks& found) {
  SearchedHere here;
  std::set<std::string> taken;  // several sets may have a name, and the values are of all of them
  const KeptPart part{analyse, workpackage};
  for (const FileSearch& search : searches_of(analyse)) {
    for (const Pattern* pattern : search.patterns) {
      if (pattern->mode != PatternMode::pattern || here.count(pattern) != 0) continue;
      SearchedPattern& searched = here[pattern];
      searched.files = {"the journal"};
      const Targets targets(found, *pattern);
      const auto values = workpackage.kept->matches(benchmark_, analyser_, analyse, *pattern);
      if (!values) continue;
      searched.matched = searched.has_value = true;
      if (!taken.insert(pattern->name.value).second) continue;
      targets.add(*values);
      for (const auto& [time, stated] : kept_seconds(part, *pattern, *values))
        found.add_seconds_of(time, stated);
    }
  }
  if (taken.empty()) return false;
  take_kept_rows(analyse, workpackage, found);
  const bool changed = workpackage.outside_changed || !workpackage.changes.empty();
  for (const FileSearch& search : searches_of(analyse)) {
    if (was_there(search, workpackage, here)) found.add_file(search.file);
  }
  problem({}, "kept " + workpackage.step,
          fmt::format("{} of workpackage {} ({}) {}; its values are those that the journal kept",
                      changed ? "an output file" : "the folder", workpackage.id, workpackage.step,
                      changed ? "has changed since it ended" : "is gone"));
  count(workpackage, here);
  return true;
}

std::string definition_of_row(const std::string& definition, const Analyser& analyser, int row) {
  std::string names;
  for (const Text& name : analyser.rows) names += " " + name.value;
  return fmt::format("{}row {} of{}\n", definition, row, names);
}

std::string definition_of_seconds(const std::string& definition, const StatedTime& time) {
  const auto& [file, pattern] = time.time;
  std::string sets;
  for (const Text& use : file->use) sets += " " + use.value;
  const std::string beside = time.beside == nullptr ? "" : " beside " + time.beside->name.value;
  return fmt::format("{}seconds in {}{}{}\n", definition, file->path.value, sets, beside);
}

void Scanner::take_kept_rows(const Analyse& analyse, const WorkpackageView& workpackage,
                             const MatchSinks& found) {
  if (analyser_.rows.empty()) return;
  rows_.begin_workpackage();
  for (int row = 0;; ++row) {
    Found kept;
    StatedSeconds seconds;
    for (const FileSearch& search : searches_of(analyse)) {
      for (const Pattern* pattern : search.patterns) {
        if (pattern->mode != PatternMode::pattern || kept.count(pattern->name.value) != 0) continue;
        const KeptPart part{analyse, workpackage, row};
        const auto values =
            workpackage.kept->matches(benchmark_, analyser_, analyse, *pattern, row);
        if (!values) continue;
        kept.try_emplace(pattern->name.value, pattern->type).first->second.add(*values);
        for (const auto& [time, stated] : kept_seconds(part, *pattern, *values))
          add_seconds(time, stated, seconds);
      }
    }
    if (kept.empty()) break;
    rows_.add_row(std::move(kept), std::move(seconds));
  }
  end_rows(found);
}

StatedSeconds Scanner::kept_seconds(const KeptPart& part, const Pattern& time,
                                    const Statistics& values) {
  const auto& kept = part.workpackage.kept->values;
  const std::string& name = time.name.value;
  std::string definition = definition_of(benchmark_, analyser_, part.analyse, name);
  if (part.row >= 0) definition = definition_of_row(definition, analyser_, part.row);
  StatedSeconds seconds, of_any_file;
  const auto take = [&](const StatedTime& stated) {
    const auto found =
        kept.find({analyser_.name.value, name, definition_of_seconds(definition, stated)});
    if (found != kept.end()) add_seconds(stated, std::atof(found->second.c_str()), seconds);
  };
  for (const FileSearch& search : searches_of(part.analyse)) {
    for (const Pattern* pattern : search.patterns) {
      const SearchedIn place(search.file, pattern);
      if (pattern->name.value != name || times_.count(place) == 0) continue;
      add_seconds(place, values, of_any_file);
      take({place});
      for (const Rate& rate : rates_) take({place, rate.rate});
    }
  }
  return seconds.empty() ? of_any_file : seconds;
}

// Whether a file of the search was there when the workpackage ended.
bool Scanner::was_there(const FileSearch& search, const WorkpackageView& workpackage,
                        const SearchedHere& here) {
  for (const Pattern* pattern : search.patterns) {
    const auto searched = here.find(pattern);
    if (searched != here.end() && searched->second.matched) return true;
  }
  const ViewValues values(workpackage);
  const std::string& path = search.file->path.value;
  const std::vector<std::string>& absent = workpackage.kept->absent;
  const std::vector<FileName> names =
      search.names
          ? *search.names
          : file_names(substitute(path, [&](std::string_view name) { return values.find(name); }));
  return std::ranges::any_of(names,
                             [&](const FileName& name) { return !contains(absent, name.text); });
}

void Scanner::no_file(const Analyse& analyse, const FileSearch& search, const std::string& name,
                      const WorkpackageView& workpackage) {
  bool there = false;
  if (Status s = path_exists(workpackage.work_dir, &there); !s) {
    problem({}, "open " + s.message(), s.message(), true);
  } else if (there && workpackage.state == State::failed && benchmark_.rules.rows_are_marked) {
    // Its row says why it has no values.
  } else if (there) {
    const Text& path = search.file->path;
    const std::string key = fmt::format("{} {}", analyse.step.value, path.value);
    problem(path.mark, key,
            fmt::format("no file '{}' in the work directory of workpackage {} ({}): {}", name,
                        workpackage.id, workpackage.step, workpackage.work_dir));
    if (workpackage.state != State::done) return;
    for (const Pattern* pattern : search.patterns) {
      if (pattern->mode != PatternMode::pattern) continue;
      search_of(pattern);
      add_once(pattern, problems_[key].patterns);
    }
  } else if (finished_well(workpackage.state)) {
    // Others are not reported: a workpackage that has not started has no folder either.
    problem({}, "folder of " + workpackage.step,
            fmt::format("workpackage {} ({}) is done, but its work directory is gone: {}",
                        workpackage.id, workpackage.step, workpackage.work_dir),
            benchmark_.rules.unreadable_output_is_error);
  }
}

// Only successful workpackages must have printed the searched values. An expected outcome (out of
// memory) need not.
void Scanner::count(const WorkpackageView& workpackage, const SearchedHere& here) {
  if (workpackage.state != State::done) return;
  for (const auto& entry : here) {
    const Pattern* pattern = entry.first;
    const SearchedPattern& searched = entry.second;
    Search& search = search_of(pattern);
    ++search.workpackages;
    if (!searched.matched) search.without.push_back(workpackage.id);
    if (searched.has_value) search.has_value = true;
    search.most = std::max(search.most, searched.most);
    for (const std::string_view file : searched.files) add_once(file, search.files);
  }
}

Scanner::Search& Scanner::search_of(const Pattern* pattern) {
  const auto known = std::ranges::find_if(
      searches_, [&](const Search& search) { return search.pattern == pattern; });
  if (known != searches_.end()) return *known;
  searches_.emplace_back().pattern = pattern;
  return searches_.back();
}

// Whether a table shows the pattern, and no match of it in the run is a value.
bool Scanner::has_no_value(const Pattern& pattern) const {
  const auto search =
      std::ranges::find_if(searches_, [&](const Search& s) { return s.pattern == &pattern; });
  const std::string& name = pattern.name.value;
  return search != searches_.end() && !search->has_value &&
         benchmark_.rules.missing_values_are_reported && !pattern.default_value &&
         !may_lack_values(benchmark_, name) && is_shown(benchmark_, computed_, name);
}

std::vector<Unmatched> Scanner::unmatched() const {
  constexpr size_t kMost = 5;
  std::vector<Unmatched> list;
  for (const Search& search : searches_) {
    const std::vector<int>& without = search.without;
    const bool nowhere = without.size() == search.workpackages;
    const bool optional = search.pattern->default_value ||
                          (!benchmark_.rules.missing_values_are_reported && !nowhere) ||
                          may_lack_values(benchmark_, search.pattern->name.value);
    if (without.empty() || optional) continue;
    std::string which;
    for (size_t i = 0; i < without.size() && i < kMost; ++i)
      which += (i == 0 ? "" : ", ") + std::to_string(without[i]);
    if (without.size() > kMost) which += ", ...";
    list.push_back(
        {search.pattern->value.mark,
         fmt::format("pattern '{}' matched nothing in {} of {} workpackage{} ({}); searched: {}",
                     search.pattern->name.value, without.size(), search.workpackages,
                     search.workpackages == 1 ? "" : "s", which, join(search.files, ", ")),
         benchmark_.rules.missing_values_are_reported && nowhere &&
             is_shown(benchmark_, computed_, search.pattern->name.value)});
  }
  return list;
}

std::vector<const Pattern*> Scanner::several(long long* most) const {
  std::vector<const Pattern*> list;
  *most = 0;
  for (const Search& search : searches_) {
    if (search.most == 0) continue;
    list.push_back(search.pattern);
    *most = std::max(*most, search.most);
  }
  return list;
}

bool Scanner::own_part(const ScannedFile& file, FilePart* part) {
  const auto& [workpackage, path, name, entry] = file;
  if (workpackage.outside == nullptr) return true;  // as nearly always
  const OutsidePart* known = part_of(workpackage, opened_path(path));
  if (known == nullptr) return true;
  const std::string who = fmt::format("workpackage {} ({})", workpackage.id, workpackage.step);
  // A file that the workflow names in full may be meant as it is. A glob names none.
  const bool named = name.front() == '/' && !is_glob(name);
  if (known->kind == OutsidePart::Kind::untouched && !named) {
    problem({}, "old " + name,
            fmt::format("'{}' was there before {} began, which wrote nothing to it: its values are "
                        "not of this run",
                        path, who));
    return false;
  }
  if (known->kind == OutsidePart::Kind::untouched) return true;
  if (known->kind == OutsidePart::Kind::absent) {
    FileStamp now;
    if (Status s = file_stamp(path, &now); !s) {
      problem({}, "open " + s.message(), s.message(), true);
      return false;
    }
    if (!now.there() || now.written_ns <= known->until_ns) return true;
    problem(
        {}, "new " + name,
        fmt::format("'{}' was not there when {} ended: what is in it does not count", path, who));
    return false;
  }
  if (known->kind == OutsidePart::Kind::unknown) {
    problem({}, "open " + known->why, known->why, true);
    return false;
  }
  if (known->kind != OutsidePart::Kind::own) {
    const bool shared = known->kind == OutsidePart::Kind::shared;
    problem(
        {}, (shared ? "shared " : "changed ") + name,
        fmt::format("'{}' {}, so that its values may be another's; let each workpackage of each "
                    "run write to a file of its own",
                    path,
                    shared ? "was written by others while " + who + " ran"
                           : "has changed since " + who + " ended"),
        true);
    return false;
  }
  if (known->grown > 0) {
    problem({}, "grown " + name,
            fmt::format("'{}' is {} bytes longer than when {} ended; these do not count", path,
                        known->grown, who));
  }
  *part = {known->from, known->to};
  return true;
}

// The times that the file states, for all rates and for those that it has itself.
void Scanner::add_stated(const MatchSinks& found) const {
  for (const auto& [stated, seconds] : in_file_.seconds) {
    found.add_seconds_of(stated, seconds);
    for (const Rate& rate : rates_) {
      const bool here = std::ranges::any_of(
          rate.read, [&](const std::string& name) { return in_file_.matched.count(name) != 0; });
      if (here && contains(rate.times, stated.time))
        found.add_seconds_of({stated.time, rate.rate}, seconds);
    }
  }
}

Scanner::Seen Scanner::scan_file(const ScannedFile& scanned,
                                 const std::vector<const Pattern*>& patterns,
                                 const ViewValues& values, const MatchSinks& found,
                                 SearchedHere& here) {
  const auto& [workpackage, path, file_name, entry] = scanned;
  FilePart part;
  const bool any = own_part(scanned, &part);
  FileView view;
  if (Status opened = any ? FileView::open(path, &view, part) : Status::ok(); !opened) {
    if (means_not_there(opened.reason())) return Seen::nothing;
    // JUBE ends with a Python error when it cannot read a file. It passes over what is not a file.
    std::optional<struct stat> known;
    const bool file = !look_at(path, &known) || !known || S_ISREG(known->st_mode);
    problem({}, "open " + opened.message(), opened.message(),
            file || benchmark_.rules.unreadable_output_is_error);
    return file ? Seen::file : Seen::no_file;
  }
  if (any &&
      (workpackage.outside == nullptr || part_of(workpackage, opened_path(path)) == nullptr)) {
    opened_.add(view.stamp());
    opened_changed_ns_ = std::max(opened_changed_ns_, view.changed_ns());
  }
  const auto look_for = [&](const Pattern* pattern) {
    if (pattern->mode != PatternMode::pattern) return;
    Regex* regex = regex_of(*pattern, patterns, values);
    if (regex == nullptr) return;
    SearchedPattern& searched = here[pattern];
    searched.files.push_back(file_name);
    const Matches matches = search(scanned, view, *pattern, *regex, found);
    if (matches.count > 0) searched.matched = true;
    if (matches.has_value) searched.has_value = true;
    if (matches.has_value && !rates_.empty()) in_file_.matched.insert(pattern->name.value);
    if (matches.differ) searched.most = std::max(searched.most, matches.count);
  };
  // The beginnings of rows decide to which row each other match belongs.
  rows_.begin_file();
  in_file_ = {};
  const Pattern* first = rows_.first_of(patterns);
  if (first != nullptr) look_for(first);
  for (const Pattern* pattern : patterns) {
    if (pattern != first) look_for(pattern);
  }
  add_stated(found);
  for (const std::string& name : rows_.end_file())
    problem(analyser_.rows.front().mark, "above " + name,
            fmt::format("pattern '{}' matches above the first row of '{}', and in rows: the value "
                        "above is of no row; where values stand before their row, let the first "
                        "pattern of `rows` be the one that begins it",
                        name, path));
  if (Status same = any ? view.unchanged(path) : Status::ok(); !same) {
    problem({}, "open " + same.message(), same.message(), true);
  }
  return Seen::file;
}

void Scanner::report_cut(const std::string& path, std::string_view text, std::string_view match,
                         const Pattern& pattern) {
  const std::string& name = pattern.name.value;
  const std::string key = "cut " + name;
  if (const auto known = problems_.find(key); known != problems_.end()) {
    ++known->second.times;
    return;
  }
  problem(pattern.value.mark, key,
          fmt::format("pattern '{}': \"{}\" is only a part of \"{}\", in {}; match all of it, or "
                      "let the pattern name what stands beside the value",
                      name, bytes_of_text(match), bytes_of_text(around(text, match)), path));
}

Scanner::Matches Scanner::search(const ScannedFile& file, FileView& view, const Pattern& pattern,
                                 Regex& regex, const MatchSinks& found) {
  Matches matches;
  const std::string& path = file.path;
  const SearchedIn place(file.entry, &pattern);
  const SearchedIn* time = times_.count(place) != 0 ? &place : nullptr;
  std::string_view first;
  const std::string& name = pattern.name.value;
  const Targets targets(found, pattern);
  const std::string_view text = view.text();
  const bool begins_rows = rows_.begins_with(pattern);
  if (begins_rows && regex.groups() > 1) {
    problem(pattern.value.mark, "rows " + name, several_groups(name, regex.groups()), true);
    return matches;
  }
  std::string bytes;
  auto sink = [&](std::string_view match, int group) {
    const char* at = match.data();
    view.passed(at);
    if (begins_rows) rows_.begin_row(text, at);
    if (match.empty()) return;
    if (++matches.count == 1) first = match;
    if (!matches.differ) matches.differ = match != first;
    if (match.size() > longest_text) {
      problem(pattern.value.mark, "long " + name,
              fmt::format("pattern '{}' matched {} bytes in {}; a value may have {} MiB: let the "
                          "pattern match less",
                          name, match.size(), path, longest_text >> 20),
              true);
      return;
    }
    if (may_be_cut(text, match) && is_cut(text, match, regex.edges()[static_cast<size_t>(group)]))
      report_cut(path, text, match, pattern);
    if (view.holds_bytes()) match = bytes = bytes_of_text(match);
    std::optional<Value> value =
        make_value(match, pattern.type, benchmark_.rules.fractions_are_kept);
    if (!value && benchmark_.rules.fortran_numbers) {
      if (const auto plain = without_fortran(match))
        value = make_value(*plain, pattern.type, benchmark_.rules.fractions_are_kept);
    }
    if (value) {
      targets.add(*value);
      if (time != nullptr) add_seconds(*time, *value, in_file_.seconds);
      rows_.add(pattern, at, *value, time);
      matches.has_value = true;
      return;
    }
    const char* type = pattern.type == ValueType::integer ? "int" : "float";
    const std::string key = "type " + name;
    problem(pattern.value.mark, key,
            fmt::format("pattern '{}': \"{}\" cannot be represented as a \"{}\", in {}", name,
                        match, type, path));
    add_once(&pattern, problems_[key].patterns);
  };
  const FileView::Search memory(view);
  if (const Status read = regex.find_all(text, view.ascii(), sink); !read) {
    problem(pattern.value.mark, "match " + name,
            fmt::format("pattern '{}' gave up on {}: {}; simplify the pattern, as nested repeats "
                        "do this",
                        name, path, read.message()),
            benchmark_.rules.unreadable_output_is_error);
  }
  return matches;
}

}  // namespace tally

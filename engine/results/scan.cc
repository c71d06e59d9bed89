#include "engine/results/scan.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "engine/base/files.h"
#include "engine/base/path_text.h"
#include "engine/base/text.h"
#include "engine/results/file_view.h"

namespace tally {
namespace {

// The limit for patterns with parameters, which have one text for each workpackage.
constexpr size_t kMostRegexes = 4096;

bool digit(char c) {
  return c >= '0' && c <= '9';
}

Status matching_files(const std::string& work_dir, const std::string& name,
                      const std::string& own_dir, std::vector<std::string>* files) {
  if (!own_dir.empty()) {
    if (Status s = matching_files(own_dir, name, {}, files); !s || !files->empty()) return s;
  }
  std::string path = name;
  if (path.empty() || path.front() != '/') path = work_dir + "/" + name;
  if (name.find_first_of("*?[") == std::string::npos) {
    struct stat info {};
    // Opening tells what is wrong with a file that may be there.
    if (::stat(path.c_str(), &info) == 0 || may_pass(errno)) *files = {path};
    return Status::ok();
  }
  if (Status s = matching_paths(path, GLOB_NOESCAPE | GLOB_NOSORT, files); !s) return s;
  std::sort(files->begin(), files->end(), natural_less);
  return Status::ok();
}

// The files for the `which`-th name in a step's analyse, when a log was given by hand.
Status files_beside_log(const std::string& log, const std::string& name,
                        const std::string& first_name, size_t which,
                        std::vector<std::string>* files) {
  if (which == 0) {
    *files = {log};
    return Status::ok();
  }
  const size_t slash = log.rfind('/') + 1;
  if (log.substr(slash) != first_name.substr(first_name.rfind('/') + 1)) return Status::ok();
  return matching_files(slash == 0 ? "." : log.substr(0, slash), name, {}, files);
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  size_t i = 0;
  size_t j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      size_t from_i = i;
      size_t from_j = j;
      while (i < a.size() && digit(a[i])) ++i;
      while (j < b.size() && digit(b[j])) ++j;
      std::string_view left = a.substr(from_i, i - from_i);
      std::string_view right = b.substr(from_j, j - from_j);
      left.remove_prefix(std::min(left.find_first_not_of('0'), left.size()));
      right.remove_prefix(std::min(right.find_first_not_of('0'), right.size()));
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
    } else {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i;
      ++j;
    }
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;
}

const std::string* pattern_building_block(std::string_view name) {
  static const std::map<std::string, std::string, std::less<>> blocks = {
      {"jube_pat_int", R"(([+-]?\d+))"},
      {"jube_pat_nint", R"((?:[+-]?\d+))"},
      {"jube_pat_fp", R"(([+-]?(?:\d*\.?\d+(?:[eE][-+]?\d+)?|\d+\.)))"},
      {"jube_pat_nfp", R"((?:[+-]?(?:\d*\.?\d+(?:[eE][-+]?\d+)?|\d+\.)))"},
      {"jube_pat_wrd", R"((\S+))"},
      {"jube_pat_nwrd", R"((?:\S+))"},
      {"jube_pat_bl", R"((?:\s+))"}};
  auto found = blocks.find(name);
  return found == blocks.end() ? nullptr : &found->second;
}

std::vector<const Pattern*> patterns_of(const Benchmark& benchmark, const std::vector<Text>& use) {
  std::vector<const Pattern*> patterns;
  for (const Text& name : use) {
    auto set = benchmark.pattern_sets.find(name.value);
    if (set == benchmark.pattern_sets.end()) continue;
    for (const Pattern& pattern : set->second.patterns) patterns.push_back(&pattern);
  }
  return patterns;
}

Values::Values(const WorkpackageView& workpackage) {
  values_.reserve(workpackage.values.size());
  for (const auto& [name, value] : workpackage.values) values_.emplace(name, &value);
}

const std::string* Values::find(std::string_view name) const {
  auto found = values_.find(name);
  return found == values_.end() ? nullptr : found->second;
}

Scanner::Scanner(const Benchmark& benchmark, const Analyser& analyser, Diagnostics& diagnostics)
    : benchmark_(benchmark), analyser_(analyser), diagnostics_(diagnostics) {}
Scanner::~Scanner() = default;

void Scanner::problem(const Mark& mark, const std::string& key, std::string text, bool error) {
  Problem& p = problems_[key];
  if (p.times++ == 0) {
    p.mark = mark;
    p.error = error;
    p.text = std::move(text);
  }
}

void Scanner::report() {
  for (const auto& [key, p] : problems_) {
    std::string text = p.text;
    if (p.times > 1) text += fmt::format(" (and {} more of this kind)", p.times - 1);
    if (p.error) {
      diagnostics_.error(p.mark, std::move(text));
    } else {
      diagnostics_.warning(p.mark, std::move(text));
    }
  }
  problems_.clear();
}

std::vector<const Pattern*> Scanner::patterns_for(const AnalyseFile& file) const {
  std::vector<const Pattern*> patterns = patterns_of(benchmark_, analyser_.use);
  for (const Pattern* own : patterns_of(benchmark_, file.use)) {
    auto same = [&](const Pattern* other) { return other->name.value == own->name.value; };
    if (std::none_of(patterns.begin(), patterns.end(), same)) patterns.push_back(own);
  }
  return patterns;
}

std::string Scanner::pattern_text(const Pattern& pattern,
                                  const std::vector<const Pattern*>& patterns,
                                  const Values& values) const {
  return substitute(pattern.value.value, [&](std::string_view name) -> const std::string* {
    if (const std::string* block = pattern_building_block(name)) return block;
    if (const std::string* value = values.find(name)) return value;
    for (const Pattern* other : patterns) {
      if (other->name.value == name && other != &pattern) return &other->value.value;
    }
    return nullptr;
  });
}

Regex* Scanner::compiled(const Pattern& pattern, const std::string& text) {
  std::string key = (pattern.dotall ? "s" : "-") + text;
  auto found = regexes_.find(key);
  if (found != regexes_.end()) return found->second.get();
  if (regexes_.size() >= kMostRegexes) regexes_.clear();
  std::string error;
  std::unique_ptr<Regex> regex = Regex::compile(text, pattern.dotall, &error);
  if (!regex) {
    diagnostics_.error(pattern.value.mark,
                       fmt::format("pattern '{}' is not a regular expression: {} in \"{}\"",
                                   pattern.name.value, error, text));
  }
  return regexes_.emplace(std::move(key), std::move(regex)).first->second.get();
}

void Scanner::scan(const Analyse& analyse, const WorkpackageView& workpackage,
                   const std::vector<Found*>& found) {
  Values values(workpackage);
  auto lookup = [&](std::string_view name) { return values.find(name); };
  std::string first_name;
  size_t names = 0;
  SoughtHere here;
  for (const AnalyseFile& file : analyse.files) {
    std::vector<const Pattern*> patterns = patterns_for(file);
    for (const std::string& given : split_strip(substitute(file.path.value, lookup), ",")) {
      const std::string name = expand_path(given);
      if (name.empty()) continue;
      if (names == 0) first_name = name;
      const bool by_hand = !workpackage.log.empty();
      std::vector<std::string> paths;
      const Status looked =
          by_hand ? files_beside_log(workpackage.log, name, first_name, names, &paths)
                  : matching_files(workpackage.work_dir, name, workpackage.own_dir, &paths);
      ++names;
      if (!looked) {
        problem({}, "open " + looked.message(), looked.message(), true);
      } else if (paths.empty() && !by_hand) {
        no_file(analyse, file, name, workpackage);
      }
      for (const std::string& path : paths) scan_file(path, patterns, values, found, here, name);
    }
  }
  count(workpackage, here);
}

void Scanner::no_file(const Analyse& analyse, const AnalyseFile& file, const std::string& name,
                      const WorkpackageView& workpackage) {
  const bool there = ::access(workpackage.work_dir.c_str(), F_OK) == 0;
  if (there) {
    problem(file.path.mark, fmt::format("{} {}", analyse.step.value, file.path.value),
            fmt::format("no file '{}' in the work directory of workpackage {} ({}): {}", name,
                        workpackage.id, workpackage.step, workpackage.work_dir));
  } else if (finished_well(workpackage.state)) {
    // Others are not reported: a workpackage that has not started has no folder either.
    problem({}, "folder of " + workpackage.step,
            fmt::format("workpackage {} ({}) is done, but its work directory is gone: {}",
                        workpackage.id, workpackage.step, workpackage.work_dir),
            !benchmark_.as_jube);
  }
}

// Only successful workpackages must have printed the searched values. An expected outcome (out of
// memory) need not.
void Scanner::count(const WorkpackageView& workpackage, const SoughtHere& here) {
  if (workpackage.state != State::done) return;
  for (const auto& entry : here) {
    const Pattern* pattern = entry.first;
    const Sought& sought = entry.second;
    auto known = std::find_if(searches_.begin(), searches_.end(),
                              [&](const Search& search) { return search.pattern == pattern; });
    if (known == searches_.end()) {
      known = searches_.insert(searches_.end(), Search{});
      known->pattern = pattern;
    }
    Search& search = *known;
    ++search.workpackages;
    if (!sought.matched) search.without.push_back(workpackage.id);
    for (const std::string& file : sought.files) {
      const auto& files = search.files;
      if (std::find(files.begin(), files.end(), file) == files.end()) search.files.push_back(file);
    }
  }
}

namespace {

// Whether all columns of a pattern define what to show without a value. If so, the pattern may lack
// values.
bool may_lack_values(const Benchmark& benchmark, const std::string& name) {
  bool any = false;
  for (const Result& result : benchmark.results) {
    for (const auto& output : result.outputs) {
      const auto* table = std::get_if<Table>(&output);
      if (table == nullptr) continue;
      for (const Column& column : table->columns) {
        if (column.name.value != name) continue;
        if (!column.null_value_set) return false;
        any = true;
      }
    }
  }
  return any;
}

}  // namespace

std::vector<Unmatched> Scanner::unmatched() const {
  constexpr size_t kMost = 5;
  std::vector<Unmatched> list;
  for (const Search& search : searches_) {
    const std::vector<int>& without = search.without;
    const bool nowhere = without.size() == search.workpackages;
    const bool optional = search.pattern->default_value || (benchmark_.as_jube && !nowhere) ||
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
                     search.workpackages == 1 ? "" : "s", which, join(search.files, ", "))});
  }
  return list;
}

void Scanner::scan_file(const std::string& path, const std::vector<const Pattern*>& patterns,
                        const Values& values, const std::vector<Found*>& found, SoughtHere& here,
                        const std::string& file_name) {
  FileView view;
  if (Status opened = FileView::open(path, &view); !opened) {
    // JUBE ends with a Python error when it cannot read a file. It passes over what is not a file.
    const bool error = opened.reason() != 0 || !benchmark_.as_jube;
    problem({}, "open " + opened.message(), opened.message(), error);
    return;
  }
  for (const Pattern* pattern : patterns) {
    if (pattern->mode != PatternMode::pattern) continue;
    Regex* regex = compiled(*pattern, pattern_text(*pattern, patterns, values));
    if (regex == nullptr) continue;
    const std::string& name = pattern->name.value;
    std::vector<Statistics*> statistics;
    for (Found* one : found)
      statistics.push_back(&one->try_emplace(name, pattern->type).first->second);
    Sought& sought = here[pattern];
    sought.files.push_back(file_name);
    auto sink = [&](std::string_view match) {
      sought.matched = true;
      view.passed(match.data());
      if (std::optional<Value> value = make_value(match, pattern->type, !benchmark_.as_jube)) {
        for (Statistics* one : statistics) one->add(*value);
        return;
      }
      const char* type = pattern->type == ValueType::integer ? "int" : "float";
      problem(pattern->value.mark, "type " + name,
              fmt::format("pattern '{}': \"{}\" cannot be represented as a \"{}\", in {}", name,
                          match, type, path));
    };
    std::string error;
    if (!regex->find_all(view.text(), view.ascii(), sink, &error)) {
      problem(
          pattern->value.mark, "match " + name,
          fmt::format("pattern '{}' gave up on {}: {}; simplify the pattern, as nested repeats do "
                      "this",
                      name, path, error),
          !benchmark_.as_jube);
    }
  }
  if (Status same = view.unchanged(path); !same) {
    problem({}, "open " + same.message(), same.message(), true);
  }
}

void check_patterns(const Benchmark& benchmark, Diagnostics& diagnostics) {
  for (const auto& [set_name, set] : benchmark.pattern_sets) {
    for (const Pattern& pattern : set.patterns) {
      if (pattern.mode != PatternMode::pattern) continue;
      auto lookup = [](std::string_view name) { return pattern_building_block(name); };
      std::string text = substitute(pattern.value.value, lookup);
      if (has_reference(text)) continue;
      std::string error;
      if (Regex::compile(text, pattern.dotall, &error)) continue;
      diagnostics.error(pattern.value.mark,
                        fmt::format("pattern '{}' is not a regular expression: {} in \"{}\"",
                                    pattern.name.value, error, text));
    }
  }
}

}  // namespace tally

#include "engine/evidence/staging.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <utility>

#include "engine/base/digest.h"
#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/sha256.h"
#include "engine/base/text.h"
#include "engine/evidence/container.h"
#include "engine/journal/archived_copy.h"
#include "engine/workflow/lookup.h"

namespace tally {
namespace {

// A text of this size in a work folder is copied: scripts, records, small outputs.
constexpr long long kSmall = 1 << 20;
// A file beyond it is named without a digest.
constexpr long long kMostHashed = 1LL << 32;

bool is_text(const std::string& bytes) {
  return bytes.find('\0') == std::string::npos;
}

// Digests of files, each read once.
class NamedFiles {
 public:
  explicit NamedFiles(double ended) : ended_(ended) {}

  // Empty for what is no regular file, or cannot be looked at.
  std::optional<NamedFile> of(const std::string& path) {
    struct stat info {};
    if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
    NamedFile file{path, {}, info.st_size, ended_ > 0 && double(info.st_mtime) > ended_ + 1};
    const std::pair key(info.st_dev, info.st_ino);
    const auto [known, is_new] = known_.try_emplace(key);
    if (is_new && info.st_size <= kMostHashed && !sha256_file(path, &known->second))
      known->second.clear();
    file.sha256 = known->second;
    return file;
  }

 private:
  const double ended_;
  std::map<std::pair<dev_t, ino_t>, std::string> known_;
};

class Stager {
 public:
  Stager(const Run& run, const std::string& root, Redaction* redaction, StagedRun* staged)
      : run_(run),
        from_(absolute_path(run.directory().path)),
        to_(root + "/" + staged->folder),
        redaction_(*redaction),
        staged_(*staged) {}

  Status stage() {
    TRY(run_.journal().workpackages(&workpackages_));
    TRY(learn_secrets());
    double ended = 0;
    for (const Journal::Stored& one : workpackages_) ended = std::max(ended, one.ended);
    NamedFiles files(ended);
    files_ = &files;
    for (const char* name : {"configuration.xml", "workpackages.xml", "timestamps", "run.log"})
      TRY(copy(from_ + "/" + name, name));
    for (const Journal::Stored& one : workpackages_) TRY(stage_folder(one));
    TRY(stage_other_folders());
    TRY(stage_analysed());
    TRY(stage_input());
    TRY(stage_journal());
    name_programs();
    for (auto* list : {&staged_.programs, &staged_.data}) std::ranges::sort(*list);
    for (auto* list : {&staged_.programs, &staged_.data})
      list->erase(std::unique(list->begin(), list->end()), list->end());
    return Status::ok();
  }

 private:
  // The secrets of this process, of commands that exported some, of parameters, and those that
  // outputs and scripts name themselves.
  Status learn_secrets() {
    for (char** variable = environ; *variable != nullptr; ++variable) redaction_.add(*variable);
    for (const Journal::Stored& one : workpackages_) {
      for (const std::string& entry : one.environment) redaction_.add(entry);
      for (const auto& [name, value] : one.parameters)
        if (const Parameter* parameter = find_parameter(run_.benchmark(), name))
          redaction_.add(secret_entry(*parameter, value));
    }
    Journal::Texts texts;
    TRY(run_.journal().sources(&texts));
    for (const auto& [path, text] : texts) redaction_.add_assignments(text);
    for (const Journal::Stored& one : workpackages_) {
      for (const std::string& work : {from_ + "/" + one.directory + "/work", one.work_dir}) {
        std::vector<std::string> names;
        if (!work.empty()) TRY(names_in(work, &names));
        for (const std::string& name : names) {
          std::string bytes;
          if (is_small(work + "/" + name) && read_file(work + "/" + name, &bytes))
            redaction_.add_assignments(bytes);
        }
      }
    }
    return Status::ok();
  }

  static bool is_small(const std::string& path) {
    struct stat info {};
    return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= kSmall;
  }

  // Copies a file without its secrets. `to`: its name in the run's folder. A file that is not
  // there, or cannot be a member, is left out.
  Status copy(const std::string& from, const std::string& to) {
    struct stat info {};
    if (::stat(from.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return Status::ok();
    if (!is_member_name(to) || !copied_.insert(to).second) return Status::ok();
    std::string bytes;
    TRY(read_file(from, &bytes));
    return put(to, std::move(bytes));
  }

  Status put(const std::string& to, std::string bytes) {
    const std::string member = staged_.folder + "/" + to;
    const bool changed = redaction_.clean(member, &bytes);
    if (redaction_.still_shows(member, bytes)) return Status::ok();
    if (changed) cleaned_.insert(to);
    const std::string path = to_ + "/" + to;
    TRY(make_directories(path.substr(0, path.rfind('/'))));
    return write_file(path, bytes, 0600);
  }

  // Copies the files at its folder's top and the small texts of its work folder. The other files there
  // are named with their digests.
  Status stage_folder(const Journal::Stored& one) {
    const std::string own = from_ + "/" + one.directory;
    std::vector<std::string> names;
    TRY(names_in(own, &names));
    for (const std::string& name : names)
      TRY(copy_text(own + "/" + name, one.directory + "/" + name));
    TRY(stage_work(own + "/work", one.directory + "/work"));
    if (one.work_dir.empty()) return Status::ok();
    // Others may work there, too: only what this one may have printed.
    for (const char* name : {"stdout", "stderr"})
      TRY(copy_text(one.work_dir + "/" + name,
                    one.directory + "/" + archived_work_dir + "/" + name));
    return Status::ok();
  }

  Status stage_work(const std::string& from, const std::string& to) {
    std::vector<std::string> names;
    TRY(names_in(from, &names));
    for (const std::string& name : names) TRY(copy_text(from + "/" + name, to + "/" + name));
    return Status::ok();
  }

  // Scripts of jobs that several workpackages share.
  Status stage_other_folders() {
    std::set<std::string> own = {"result"};
    for (const Journal::Stored& one : workpackages_) own.insert(one.directory);
    std::vector<std::string> names;
    TRY(names_in(from_, &names));
    for (const std::string& name : names) {
      bool folder = false;
      TRY(folder_exists(from_ + "/" + name, &folder));
      if (folder && own.count(name) == 0) TRY(stage_work(from_ + "/" + name, name));
    }
    return Status::ok();
  }

  Status copy_text(const std::string& from, const std::string& to) {
    std::string bytes;
    if (is_small(from) && is_member_name(to)) {
      TRY(read_file(from, &bytes));
      if (is_text(bytes))
        return copied_.insert(to).second ? put(to, std::move(bytes)) : Status::ok();
    }
    if (std::optional<NamedFile> file = files_->of(from)) {
      file->path = to;
      staged_.data.push_back(*std::move(file));
    }
    return Status::ok();
  }

  // The files from which the tables' values are, of whatever size.
  Status stage_analysed() {
    std::map<int, const Journal::Stored*> by_id;
    for (const Journal::Stored& one : workpackages_) by_id[one.workpackage.id] = &one;
    std::vector<std::pair<std::string, std::string>> wanted;
    TRY(run_.journal().each_workpackage([&](Journal::Stored& stored) {
      for (const EndedFile& file : EndedFiles::unpacked(stored.ended_files).files) {
        if (!file.stamp.there()) continue;
        wanted.emplace_back(whole(file.path), place(*by_id.at(stored.workpackage.id), file.path));
      }
    }));
    TRY(run_.journal().each_outside([&](int, const OutsideFile& file) {
      if (whole(file.path).compare(0, from_.size() + 1, from_ + "/") != 0)
        staged_.outside.push_back(file.path);
    }));
    for (const auto& [from, to] : wanted) {
      if (to.front() == '/') {
        staged_.outside.push_back(to);
      } else {
        TRY(copy(from, to));
        std::erase_if(staged_.data, [&](const NamedFile& file) { return file.path == to; });
      }
    }
    std::ranges::sort(staged_.outside);
    const auto repeated = std::ranges::unique(staged_.outside);
    staged_.outside.erase(repeated.begin(), repeated.end());
    return Status::ok();
  }

  // The journal keeps paths below the run relative to it.
  std::string whole(const std::string& path) const {
    return path.front() == '/' ? path : from_ + "/" + path;
  }

  // The place of an analysed file in the run's folder of the archive. A path that begins with a slash:
  // it is outside.
  static std::string place(const Journal::Stored& of, const std::string& path) {
    if (path.front() != '/' || of.work_dir.empty() || !starts_with(path, of.work_dir + "/"))
      return path;
    return of.directory + "/" + archived_work_dir + path.substr(of.work_dir.size());
  }

  Status stage_input() {
    Journal::Texts texts;
    TRY(run_.journal().sources(&texts));
    for (size_t i = 0; i < texts.size(); ++i) {
      const std::string& path = texts[i].first;
      TRY(put(fmt::format("input/{}-{}", i, path.substr(path.rfind('/') + 1)), texts[i].second));
    }
    return Status::ok();
  }

  Status stage_journal() {
    std::map<int, const Journal::Stored*> by_id;
    for (const Journal::Stored& one : workpackages_) by_id[one.workpackage.id] = &one;
    const std::string member = staged_.folder + "/journal.sqlite";
    ArchivedCopy how;
    how.run_dir = from_;
    how.clean = [&](std::string* value) {
      bool changed = redaction_.clean(member, value);
      if (!redaction_.still_shows(member, *value)) return changed;
      std::ranges::fill(*value, '*');
      return true;
    };
    how.place = [&](int workpackage, EndedFiles* files) {
      return give_places(*by_id.at(workpackage), files);
    };
    TRY(write_archived_copy(run_.journal(), to_ + "/journal.sqlite", how));
    return ::chmod((to_ + "/journal.sqlite").c_str(), 0600) == 0
               ? Status::ok()
               : file_error(to_ + "/journal.sqlite", "cannot change", errno);
  }

  Status give_places(const Journal::Stored& of, EndedFiles* files) const {
    for (EndedFile& file : files->files) {
      if (file.stamp.there()) file.path = place(of, file.path);
      if (file.digest.empty() || cleaned_.count(file.path) == 0) continue;
      TRY(digest_part(to_ + "/" + file.path, 0, file.stamp.size, &file.digest));
    }
    return Status::ok();
  }

  // Words of parameters and commands that name a program by its path, and the first words of
  // commands.
  void name_programs() {
    std::set<std::string> paths = {"/proc/self/exe"};
    const auto take = [&](const std::string& text) {
      std::string word;
      for (const char c : text + " ") {
        if (std::string_view(" \t\n\"'`=;|&()<>,:$").find(c) == std::string_view::npos) {
          word += c;
          continue;
        }
        if (!word.empty() && word.front() == '/') paths.insert(word);
        word.clear();
      }
    };
    for (const Journal::Stored& one : workpackages_)
      for (const auto& [name, value] : one.parameters) take(value);
    for (const Step& step : run_.benchmark().steps) {
      for (const Operation& operation : step.operations) {
        take(operation.command.value);
        const std::string line(strip(operation.command.value));
        const std::string first = line.substr(0, line.find_first_of(" \t\n;|&"));
        if (first.find_first_of("/$=") == std::string::npos && !first.empty())
          paths.insert(find_program({first}));
      }
    }
    for (const std::string& path : paths) {
      if (path.empty() || ::access(path.c_str(), X_OK) != 0) continue;
      std::optional<NamedFile> file = files_->of(path);
      if (!file) continue;
      if (path == "/proc/self/exe") {
        file->path = "tally";
        file->changed = false;
      }
      staged_.programs.push_back(*std::move(file));
    }
  }

  const Run& run_;
  const std::string from_, to_;
  Redaction& redaction_;
  StagedRun& staged_;
  NamedFiles* files_ = nullptr;
  std::vector<Journal::Stored> workpackages_;
  std::set<std::string> copied_, cleaned_;  // names in the run's folder
};

}  // namespace

Status stage_run(const Run& run, const std::string& root, Redaction* redaction, StagedRun* staged) {
  return Stager(run, root, redaction, staged).stage();
}

}  // namespace tally

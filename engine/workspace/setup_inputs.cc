#include "engine/workspace/setup_inputs.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <set>
#include <string_view>

#include "engine/base/digest.h"
#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/shell_words.h"
#include "engine/base/text.h"
#include "engine/base/variables.h"
#include "engine/workspace/substitute_files.h"
#include "engine/workspace/work_directory.h"

namespace tally {
namespace {

constexpr off_t kReadWhole = 64 << 20;
// Version of the rules below. Work that was kept under another version is not reused.
constexpr uint64_t kRules = 5;
// A folder with more bytes is compared by sizes and times. More files are not looked at.
constexpr size_t kMostFiles = 10000;
constexpr uintmax_t kMostBytes = uintmax_t{1} << 30;

bool lies_below(const std::string& path, const std::string& folder) {
  return path.size() > folder.size() && starts_with(path, folder) && path[folder.size()] == '/';
}

// Replaces $NAME and ${NAME} in a text by the values of an environment. Unknown names stay.
std::string with_variables(std::string_view text, const Environment& environment) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    if (text[at] != '$') {
      out += text[at++];
      continue;
    }
    const bool braces = at + 1 < text.size() && text[at + 1] == '{';
    size_t end = at + (braces ? 2 : 1);
    const size_t begin = end;
    while (end < text.size() && is_name_char(text[end])) ++end;
    const auto found = environment.find(std::string(text.substr(begin, end - begin)));
    const bool whole = !braces || (end < text.size() && text[end] == '}');
    if (end == begin || !whole || found == environment.end()) {
      out += text[at++];
      continue;
    }
    out += found->second;
    at = end + (braces ? 1 : 0);
  }
  return out;
}

class Collector {
 public:
  Collector(const SetupContext& context, FileDigests& digests, StepInputs* inputs)
      : context_(context), digests_(digests), inputs_(inputs) {}

  Status collect() {
    inputs_->step = context_.step.name.value;
    TRY(add_operations());
    TRY(add_sets());
    for (const Text& module : context_.step.modules) text("module " + apply(module));
    add_environment();
    TRY(add_declared());
    TRY(add_named_files());
    add_compilers();
    return Status::ok();
  }

 private:
  std::string apply(const Text& text) const { return context_.values.apply(text); }
  void text(std::string command) { inputs_->commands.push_back(std::move(command)); }

  Status is_active(const Text& active, bool* out) const {
    return evaluate_active(apply(active), context_.evaluator, out);
  }

  Status add_operations() {
    for (const Operation& operation : context_.step.operations) {
      bool active = true;
      TRY(is_active(operation.active, &active));
      if (!active) continue;
      text(apply(operation.command));
      shell_texts_.push_back(inputs_->commands.back());
      for (const Text* name :
           {&operation.work_dir, &operation.stdout_file, &operation.stderr_file,
            &operation.done_file, &operation.error_file, &operation.break_file}) {
        if (!name->value.empty()) text(apply(*name));
      }
    }
    if (context_.step.cycles.value != "1") text("cycles " + apply(context_.step.cycles));
    if (!context_.step.work_dir.value.empty()) text("work_dir " + context_.work_dir);
    if (context_.shell != "/bin/sh") text("shell " + context_.shell);
    return Status::ok();
  }

  Status add_sets() {
    const Lookup lookup = context_.values.lookup();
    for (const std::string& name : used_sets(context_.step, lookup)) {
      const auto& file_sets = context_.benchmark.file_sets;
      if (const auto set = file_sets.find(name); set != file_sets.end()) {
        for (const auto& entry : set->second.entries) {
          Status s;
          if (const auto* prepare = std::get_if<Prepare>(&entry)) {
            s = add_prepare(*prepare);
          } else {
            s = add_copy(std::get<FileCopy>(entry), lookup);
          }
          if (!s) return s;
        }
      }
      const auto& substitute_sets = context_.benchmark.substitute_sets;
      if (const auto set = substitute_sets.find(name); set != substitute_sets.end()) {
        add_substitutions(set->second);
      }
    }
    return Status::ok();
  }

  Status add_prepare(const Prepare& prepare) {
    bool active = true;
    if (Status s = is_active(prepare.active, &active); !s || !active) return s;
    prepared_ = true;
    text("prepare " + apply(prepare.command));
    shell_texts_.push_back(apply(prepare.command));
    return Status::ok();
  }

  Status add_copy(const FileCopy& copy, const Lookup& lookup) {
    bool active = true;
    if (Status s = is_active(copy.active, &active); !s || !active) return s;
    const auto add_text = [&] {
      text((copy.link ? "link " : "copy ") + substitute(copy.source_dir, lookup) + " " +
           apply(copy.source) + " -> " + substitute(copy.target_dir, lookup) + " " +
           apply(copy.target));
      return Status::ok();
    };
    // The source is in the work directory. The parents account for its content.
    if (copy.internal) return add_text();
    std::vector<PlannedFile> files;
    if (Status s = list_files(copy, lookup, context_.work_dir, &files, variables()); !s) {
      // A prepare command before it may make the file, or export its path.
      return prepared_ ? add_text() : s;
    }
    for (const PlannedFile& file : files) {
      TRY(add_tree(file.source, file.target));
    }
    return Status::ok();
  }

  Variables variables() const {
    return [this](const std::string& name) -> std::optional<std::string> {
      const auto found = context_.environment.find(name);
      return found != context_.environment.end() ? std::optional<std::string>(found->second)
                                                 : std::nullopt;
    };
  }

  void add_substitutions(const SubstituteSet& set) {
    for (const IoFile& file : set.files) {
      text(std::string(file.append ? "append " : "write ") + apply(file.in) + " -> " +
           apply(file.out));
      named_.push_back(context_.values.path(file.in));
    }
    for (const Substitution& sub : set.substitutions) {
      text((sub.regex ? "regex " : "") + apply(sub.source) + " -> " + apply(sub.dest));
    }
  }

  // The variables that the step sets, and those that its commands name. Being unset counts as a
  // value.
  void add_environment() {
    std::map<std::string, std::string> variables;
    for (const auto& [name, value] : context_.changes) variables[name] = value.value_or("");
    for (const std::string& command : shell_texts_) {
      for (const std::string& name : shell_variables(command)) {
        if (name == "PWD" || name == "OLDPWD" || name == "SHLVL" || name == "_") continue;
        const auto found = context_.environment.find(name);
        variables.try_emplace(
            name, found == context_.environment.end() ? std::string() : "=" + found->second);
      }
    }
    inputs_->environment.assign(variables.begin(), variables.end());
  }

  // `input` names files, folders and globs, relative to the folder of the input file.
  Status add_declared() {
    for (const Text& declared : context_.step.inputs) {
      FileCopy copy;
      copy.source = {context_.values.path(declared), declared.mark};
      copy.file_path = context_.benchmark.file_path;
      std::vector<PlannedFile> files;
      if (Status s = list_files(copy, context_.values.lookup(), context_.work_dir, &files); !s) {
        return Status::error("input \"" + copy.source.value + "\": " + s.message(), s.reason(),
                             s.path());
      }
      for (const PlannedFile& file : files) {
        TRY(add_tree(file.source, file.source));
      }
    }
    return Status::ok();
  }

  // A folder that may not be entered is no input: the step's commands may not enter it, either.
  static Status readable(Status looked) {
    return looked.reason() == EACCES ? Status::ok() : std::move(looked);
  }

  // The names of files and folders that a word may be: the word, and what stands behind `=`, `,`
  // and `:`, as in --input=a.txt.
  static std::vector<std::string> names_in_word(const ShellWord& word) {
    std::vector<std::string> names = {word.text};
    if (const size_t slash = word.text.find('/'); starts_with(word.text, "-") && slash == 2)
      names.push_back(word.text.substr(slash));  // -I/usr/include, -C/home/me/src
    if (!word.quoted) add_parts(word.text, "=,:", &names);
    return names;
  }

  static void add_parts(const std::string& text, std::string_view ends,
                        std::vector<std::string>* names) {
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find_first_of(ends, at), text.size());
      if (end > at && end - at < text.size()) names->push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }

  // Whether the word is a text that a shell runs: that of `sh -c`, or of `eval`.
  static bool is_shell_text(const std::vector<ShellWord>& words, size_t at) {
    if (at > 0 && words[at - 1].text == "eval") return true;
    const std::string option = at > 1 ? words[at - 1].text : "";
    if (option.size() < 2 || option[0] != '-' || option[1] == '-' || option.back() != 'c')
      return false;
    for (size_t back = 2; back <= std::min<size_t>(at, 4); ++back) {
      const std::string& word = words[at - back].text;
      for (const char* shell : {"sh", "bash", "dash", "ksh", "zsh"})
        if (word.substr(word.rfind('/') + 1) == shell) return true;
    }
    return false;
  }

  // Adds what the words of a shell text name. In another text, of sed or Python, a part may be a
  // name or not: a file that is there counts, as its content costs little. A folder does not:
  // `s|/a|/b|` would make inputs of all of /a.
  Status add_names(const std::string& text, std::set<std::string>* paths) {
    const std::vector<ShellWord> words = shell_words(text);
    for (size_t at = 0; at < words.size(); ++at) {
      const ShellWord& word = words[at];
      if (word.written) continue;
      if (word.quoted && is_shell_text(words, at)) {
        TRY(add_names(word.text, paths));
        continue;
      }
      for (const std::string& name : names_in_word(word)) {
        TRY(add_name(name, paths));
      }
      if (!word.quoted) continue;
      std::vector<std::string> parts;
      add_parts(word.text, " \t\n\r'\"`=;|&<>(),:", &parts);
      for (const std::string& part : parts) add_file_or_program(part, paths);
    }
    return Status::ok();
  }

  void add_file_or_program(const std::string& name, std::set<std::string>* paths) {
    if (name.find('/') == std::string::npos && !starts_with(name, "~")) {
      add_program(name);
      return;
    }
    const std::string path = absolute_path(expand_path(name), context_.work_dir);
    std::optional<struct stat> found;
    if (!is_of_the_host(path) && look_at(path, &found) && found && S_ISREG(found->st_mode))
      paths->insert(path);
  }

  Status add_named_files() {
    std::set<std::string> paths;
    for (const std::string& command : shell_texts_) {
      TRY(add_names(with_variables(command, context_.environment), &paths));
    }
    for (const auto& [name, value] : context_.changes) {
      if (value && !value->empty()) {
        paths.insert(absolute_path(expand_path(*value), context_.work_dir));
      }
    }
    for (const std::string& name : named_) {
      paths.insert(absolute_path(name, context_.work_dir));
    }
    for (const std::string& path : paths) {
      if (is_of_the_host(path) || lies_below(path, context_.work_dir)) continue;
      std::optional<struct stat> found;
      Status added = readable(look_at(path, &found));
      if (found && S_ISREG(found->st_mode)) added = add_tree(path, path);
      if (found && S_ISDIR(found->st_mode)) added = add_folder(path);
      if (!added) return added;
    }
    return Status::ok();
  }

  // Adds what a command may mean by this name: files and folders to `paths`, else a program.
  Status add_name(const std::string& name, std::set<std::string>* paths) {
    if (name.find('/') == std::string::npos && !starts_with(name, "~")) {
      add_program(name);
      return Status::ok();
    }
    const std::string path = absolute_path(expand_path(name), context_.work_dir);
    paths->insert(path);
    if (name.find_first_of("*?[") == std::string::npos) return Status::ok();
    std::vector<std::string> found;
    Status looked = readable(matching_paths(path, &found));
    paths->insert(found.begin(), found.end());
    return looked;
  }

  // The whole file system, and what the kernel makes of itself, are no inputs.
  static bool is_of_the_host(const std::string& path) {
    for (const char* folder : {"/dev", "/proc", "/sys", "/run"})
      if (path == folder || lies_below(path, folder)) return true;
    return path == "/";
  }

  // A folder that a command names, as in `make -C`. Folders of the system count as unchanged, and
  // so do runs: they change with every run.
  Status add_folder(const std::string& path) {
    for (const char* system : {"/usr", "/opt", "/etc", "/bin", "/lib", "/lib64", "/sbin", "/var"})
      if (path == system || lies_below(path, system)) return Status::ok();
    Folder folder;
    TRY(list_folder(path, &folder));
    std::ranges::sort(folder.files);
    if (!folder.has_more && folder.bytes <= kMostBytes) {
      for (const auto& [file, stamp] : folder.files) {
        TRY(add_tree(file, file));
      }
      return Status::ok();
    }
    Digest digest;
    for (const auto& [file, stamp] : folder.files) digest.add(file + " " + stamp);
    inputs_->files.emplace_back(path, digest.hex());
    if (folder.has_more) {
      inputs_->notes.push_back(
          fmt::format("{} has more than {} files, of which as many are compared by size and time: "
                      "`input` names "
                      "what counts",
                      path, kMostFiles));
    }
    return Status::ok();
  }

  struct Folder {
    std::vector<std::pair<std::string, std::string>> files;  // with their sizes and times
    uintmax_t bytes = 0;
    bool has_more = false;  // than are looked at
  };
  // Folders that may not be entered are left out. The order of the names decides which files are
  // looked at.
  static Status list_folder(const std::string& path_of_folder, Folder* folder) {
    std::vector<std::string> names;
    TRY(readable(names_in(path_of_folder, &names)));
    std::ranges::sort(names);
    for (const std::string& name : names) {
      const std::string path = path_of_folder + "/" + name;
      std::optional<struct stat> found;
      TRY(readable(look_at(path, &found, Links::keep)));
      if (found && S_ISDIR(found->st_mode)) {
        bool skipped = name == ".git";
        TRY(skipped ? Status::ok() : has_runs(path, &skipped));
        if (skipped) continue;
        if (Status s = list_folder(path, folder); !s || folder->has_more) return s;
        continue;
      }
      if (found && S_ISLNK(found->st_mode)) {
        found.reset();
        TRY(readable(look_at(path, &found)));
      }
      if (!found || !S_ISREG(found->st_mode)) continue;
      folder->has_more = folder->files.size() == kMostFiles;
      if (folder->has_more) return Status::ok();
      folder->bytes += static_cast<uintmax_t>(found->st_size);
      folder->files.emplace_back(
          path, fmt::format("{} {}.{:09} {}", found->st_size, found->st_mtim.tv_sec,
                            found->st_mtim.tv_nsec, found->st_ino));
    }
    return Status::ok();
  }

  // Whether it is an outpath, which has the histories of its workflows or finished work; or a run.
  static Status has_runs(const std::string& folder, bool* has) {
    for (const char* own : {"/.tally-store", "/history.d", "/journal.sqlite"}) {
      if (Status s = readable(path_exists(folder + own, has)); !s || *has) return s;
    }
    return Status::ok();
  }

  // The file that PATH finds for a word of a command, unless it is of the system.
  void add_program(const std::string& word) {
    const auto path = context_.environment.find("PATH");
    if (path == context_.environment.end() || !programs_.insert(word).second) return;
    for (const std::string& folder : split_strip(path->second, ":")) {
      const std::string program = folder + "/" + word;
      if (access(program.c_str(), X_OK) != 0) continue;
      const bool system =
          folder == "/usr/bin" || folder == "/bin" || folder == "/usr/sbin" || folder == "/sbin";
      if (!system) inputs_->files.emplace_back(program, stamp_text(program));
      return;
    }
  }

  static std::string stamp_text(const std::string& program) {
    char real[PATH_MAX];
    struct stat info {};
    if (realpath(program.c_str(), real) == nullptr || stat(real, &info) != 0) return {};
    return fmt::format("{} {} {}.{:09}", real, info.st_size, info.st_mtim.tv_sec,
                       info.st_mtim.tv_nsec);
  }

  // Adds a file, or all files of a folder in the order of their names.
  Status add_tree(const std::string& source, const std::string& target) {
    std::optional<struct stat> found;
    TRY(look_at(source, &found));
    if (found && S_ISDIR(found->st_mode)) {
      std::vector<std::string> names;
      TRY(names_in(source, &names));
      for (const std::string& name : names) {
        TRY(add_tree(source + "/" + name, target + "/" + name));
      }
      return Status::ok();
    }
    if (!found || !S_ISREG(found->st_mode)) {
      inputs_->files.emplace_back(target, "no regular file");
      return Status::ok();
    }
    std::string digest;
    TRY(digests_.of(source, &digest));
    inputs_->files.emplace_back(target, digest);
    return Status::ok();
  }

  // Inputs that a build depends on without naming them: variables that choose compilers and their
  // flags, loaded modules, and the compilers that PATH finds.
  void add_compilers() {
    constexpr std::array<const char*, 18> kVariables = {"CC",
                                                        "CXX",
                                                        "FC",
                                                        "CFLAGS",
                                                        "CXXFLAGS",
                                                        "FFLAGS",
                                                        "LDFLAGS",
                                                        "CPPFLAGS",
                                                        "CUDA_HOME",
                                                        "NVCCFLAGS",
                                                        "LOADEDMODULES",
                                                        "CPATH",
                                                        "C_INCLUDE_PATH",
                                                        "CPLUS_INCLUDE_PATH",
                                                        "LIBRARY_PATH",
                                                        "LD_LIBRARY_PATH",
                                                        "PKG_CONFIG_PATH",
                                                        "CMAKE_PREFIX_PATH"};
    constexpr std::array<const char*, 9> kTools = {"cc",       "c++",   "gcc",    "g++", "clang",
                                                   "gfortran", "mpicc", "mpicxx", "nvcc"};
    for (const char* name : kVariables) {
      const auto found = context_.environment.find(name);
      if (found != context_.environment.end()) inputs_->environment.emplace_back(*found);
    }
    const auto path = context_.environment.find("PATH");
    if (path == context_.environment.end()) return;
    const std::vector<std::string> folders = split_strip(path->second, ":");
    for (const char* tool : kTools) {
      for (const std::string& folder : folders) {
        const std::string program = folder + "/" + tool;
        const std::string stamp = stamp_text(program);
        if (stamp.empty()) continue;
        inputs_->files.emplace_back(program, stamp);
        break;
      }
    }
  }

  const SetupContext& context_;
  FileDigests& digests_;
  StepInputs* inputs_;
  bool prepared_ = false;                 // a command runs before the files that follow
  std::vector<std::string> shell_texts_;  // commands
  std::vector<std::string> named_;        // paths
  std::set<std::string> programs_;        // that were looked for
};

}  // namespace

EnvironmentChanges declared_environment(const Step& step, const WorkpackageValues& values,
                                        const Environment& before) {
  EnvironmentChanges changes;
  for (const auto& [name, value] : values.exported()) changes[name] = value;
  for (const Text& name : step.env_unset) changes[values.apply(name)] = std::nullopt;
  if (step.env.empty()) return changes;
  const Environment without_env = with_changes(before, changes);
  const Variables variables = [&](const std::string& name) -> std::optional<std::string> {
    const auto found = without_env.find(name);
    if (found == without_env.end()) return std::nullopt;
    return found->second;
  };
  for (const auto& [name, text] : step.env) {
    const std::string put_in = substitute_parameters(text.value, values.lookup());
    changes[values.apply(name)] = expand_variables(put_in, variables);
  }
  return changes;
}

std::vector<std::string> with_secrets(const WorkpackageValues& values,
                                      const Environment& environment) {
  std::vector<std::string> list = entries(environment);
  for (std::string& secret : values.secrets()) list.push_back(std::move(secret));
  return list;
}

Status setup_inputs(const SetupContext& context, FileDigests& digests, StepInputs* inputs) {
  return Collector(context, digests, inputs).collect();
}

std::string content_hash(const StepInputs& inputs) {
  Digest digest;
  digest.add(kRules).add(inputs.step).add(inputs.commands.size());
  for (const std::string& command : inputs.commands) digest.add(command);
  for (const NamedValues* list : {&inputs.parents, &inputs.environment, &inputs.files}) {
    digest.add(list->size());
    for (const auto& [name, value] : *list) digest.add(name).add(value);
  }
  return digest.hex();
}

std::map<std::string, std::string> parts_of(const StepInputs& inputs) {
  std::map<std::string, std::string> out;
  for (size_t i = 0; i < inputs.commands.size(); ++i) {
    out[fmt::format("command {}", i + 1)] = digest_of(inputs.commands[i]);
  }
  for (const auto& [name, value] : inputs.parents) out["parent " + name] = digest_of(value);
  for (const auto& [name, value] : inputs.environment) out["variable " + name] = digest_of(value);
  for (const auto& [name, value] : inputs.files) out["file " + name] = digest_of(value);
  return out;
}

Status FileDigests::of(const std::string& path, std::string* digest) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return file_error(path, "cannot read", errno);
  const std::string seal =
      fmt::format("{} {}.{:09} {}.{:09} {}", info.st_size, info.st_mtim.tv_sec,
                  info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec, info.st_ino);
  Known& known = known_[path];
  if (known.seal != seal) {
    known.digest = path + " " + seal;
    if (info.st_size <= kReadWhole) {
      if (Status s = digest_file(path, &known.digest); !s) {
        known_.erase(path);
        return s;
      }
    }
    known.seal = seal;
  }
  *digest = known.digest;
  return Status::ok();
}

}  // namespace tally

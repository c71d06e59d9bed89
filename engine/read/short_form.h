// The short form of a workflow: `parameters`, `build`, `run`, `metrics` and a few more keys at the top
// level. It is the same language: the reader writes it out as the sets, steps, analyser and result
// that it stands for, before anything has a meaning. Values keep their marks, so that every later
// message points into the short form.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/diagnostics.h"
#include "engine/read/yaml_tree.h"

namespace tally {

// A key of the short form. The keys of a run step (`repeat`, `resources`, `env`, ...) may stand beside
// these and are not among them.
struct ShortKey {
  const char* key;
  const char* values;  // what it takes, for the reference
  const char* doc;
};
std::span<const ShortKey> short_keys();
// Whether it is a key of steps that may stand at the top level beside `run`.
bool is_run_key(std::string_view key);

// The key of the short form that people mean who write `word`: `env` by environment. Empty: none.
std::string_view key_meant_by(std::string_view word);

// Whether a file with this top level is in the short form: it has `run` and no step of the long
// form, or any of short_keys() beside a key of Tally's own. JUBE drops unknown keys, which may hold
// anchors: a file that runs in JUBE stays what it is.
bool is_short_form(const YamlNode& top);

// Adds what the words of a command name in `directory`: of each file its name, or the folder there
// under which it lies. A parameter in a word stands for any text. Names that a file set would read
// otherwise are left out.
void add_names_beside(const std::string& command, const std::string& directory,
                      std::set<std::string>* names);

// Warns of a command's program that is not where the command looks for it: not beside the workflow,
// not in PATH, or one of the names that the build's commands have and make.
void warn_of_program(const YamlNode& command, const std::set<std::string>& build_names,
                     const std::string& directory, Diagnostics& diagnostics);
// Warns of names that begin with `..`, which lead somewhere from `directory` alone.
void warn_of_paths_above(const YamlNode& command, const std::string& directory,
                         Diagnostics& diagnostics);

struct Metric {
  YamlPtr column;
  std::string file;  // in which the pattern is searched
  Mark file_mark;    // unknown: no key says it
  YamlPtr pattern;   // null: the column alone, which is computed from others
};

// The metric `key` with a definition that has its name and its keys: those of a pattern, those of a
// column, and `file`. `repeated`: it is measured more than once, so that its median is shown.
Metric metric_of(const YamlNode& key, const YamlNode& definition, bool repeated);

// The long form of `top`, for which is_short_form() holds and whose includes are resolved. `file` is
// its file's path, after which a workflow without `name` is called. Files that `build` and `run` name
// are looked for in `directory`, the folder of the file. Problems go to `diagnostics`; the result
// then has what could be understood.
YamlPtr long_form(const YamlNode& top, const std::string& file, const std::string& directory,
                  Diagnostics& diagnostics);

}  // namespace tally

// The short form of a workflow: `parameters`, `build`, `run`, `metrics` and a few more keys at the top
// level. It is the same language: the reader writes it out as the sets, steps, analyser and result
// that it stands for, before anything has a meaning. Values keep their marks, so that every later
// message points into the short form.
#pragma once

#include <span>
#include <string_view>

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

// Whether a file with this top level is in the short form: it has `run` and no step of the long
// form, or any of short_keys() beside a key of Tally's own. JUBE drops unknown keys, which may hold
// anchors: a file that runs in JUBE stays what it is.
bool is_short_form(const YamlNode& top);

}  // namespace tally

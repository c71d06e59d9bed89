// Small parts of the journal: its files' names, lists as bytes.
#pragma once

#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

std::string main_file(const std::string& run_dir);
std::string snapshot_file(const std::string& run_dir);
std::string lease_file(const std::string& run_dir);
// "run 000003", of its folder.
std::string run_name(const std::string& run_dir);

// Lists are kept as bytes, each entry ended by a NUL, which neither a parameter nor a variable can
// hold.
std::string pack(const std::vector<std::string>& list);
std::vector<std::string> unpack(const std::string& bytes);
std::string join_ids(const std::vector<int>& ids);
std::vector<int> split_ids(const std::string& text);

double now_seconds();
// A path within a file: URI.
std::string percent_encoded(const std::string& path);
// Copies a file's bytes; `to` is replaced in one step.
Status copy_file(const std::string& from, const std::string& to);

}  // namespace tally

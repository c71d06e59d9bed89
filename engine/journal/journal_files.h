// Helpers of the journal: names of its files, lists as bytes.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/base/status.h"

namespace tally {

std::string main_file(const std::string& run_dir);
std::string snapshot_file(const std::string& run_dir);
std::string lease_file(const std::string& run_dir);
// "run 000003" for the folder of that run.
std::string run_name(const std::string& run_dir);

// Lists are stored as bytes. Each entry ends with a NUL, which no parameter or variable can
// contain.
std::string pack(const std::vector<std::string>& list);
std::vector<std::string> unpack(std::string_view bytes);
// Takes the first text off a list that is not empty, without a copy.
std::string_view next_packed(std::string_view* list);
std::string join_ids(const std::vector<int>& ids);
std::vector<int> split_ids(const std::string& text);

double now_seconds();
// Encodes a path for use in a file: URI.
std::string percent_encoded(const std::string& path);
// Writes the pieces that `next` gives, until one is empty, and then replaces `to` atomically. A
// link at `to` or beside it is replaced, not followed.
Status replace_file(const std::string& to, int mode,
                    const std::function<Status(std::string* piece)>& next);
// Copies a file's bytes. `to` is replaced atomically.
Status copy_file(const std::string& from, const std::string& to);

}  // namespace tally

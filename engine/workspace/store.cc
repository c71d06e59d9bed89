#include "engine/workspace/store.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/files.h"
#include "engine/base/presence.h"
#include "engine/base/text.h"

namespace tally {
namespace {

constexpr std::string_view kFirstLine = "tally work 2";

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> out;
  size_t begin = 0;
  for (size_t end = text.find(at); end != std::string::npos; end = text.find(at, begin)) {
    out.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  if (begin < text.size()) out.push_back(text.substr(begin));
  return out;
}

// The seal is size, time and path. While these are equal, the bytes are taken to be equal.
std::string seal_of(const struct stat& info) {
  return fmt::format("{} {}.{:09}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

std::string safe_name(const std::string& step) {
  std::string name = step;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

std::string text_of_parts(const StepInputs& inputs) {
  std::string text;
  for (const auto& [name, digest] : parts_of(inputs)) {
    if (name.find('\n') == std::string::npos) text += digest + " " + name + "\n";
  }
  return text;
}

// The difference between the last kept work and the current inputs.
std::string input_difference(const std::string& kept, const StepInputs& inputs) {
  std::map<std::string, std::string> before;
  for (const std::string& line : split(kept, '\n')) {
    const size_t space = line.find(' ');
    if (space != std::string::npos) before[line.substr(space + 1)] = line.substr(0, space);
  }
  std::vector<std::string> changed;
  const std::map<std::string, std::string> now = parts_of(inputs);
  for (const auto& [name, digest] : now) {
    const auto found = before.find(name);
    if (found == before.end()) {
      changed.push_back(name + " is new");
    } else if (found->second != digest) {
      changed.push_back(name + " changed");
    }
  }
  for (const auto& [name, digest] : before) {
    if (now.count(name) == 0) changed.push_back(name + " is gone");
  }
  constexpr size_t kMost = 3;
  const size_t count = changed.size();
  if (count > kMost) {
    changed.resize(kMost);
    changed.push_back(fmt::format("{} more", count - kMost));
  }
  return join(changed, ", ");
}

}  // namespace

WorkStore::WorkStore(const std::string& outpath) : folder_(outpath + "/.tally-store") {}

std::string WorkStore::entry(const std::string& step, const std::string& hash) const {
  return folder_ + "/" + safe_name(step) + "-" + hash;
}

std::string WorkStore::last(const std::string& step) const {
  return folder_ + "/" + safe_name(step) + ".last";
}

std::string WorkStore::find(const StepInputs& inputs, const std::string& hash, std::string* why,
                            std::string* instance) const {
  std::string text;
  struct stat info {};
  if (stat(entry(inputs.step, hash).c_str(), &info) != 0 ||
      !read_file(entry(inputs.step, hash), &text)) {
    std::string kept;
    if (stat(last(inputs.step).c_str(), &info) != 0 || !read_file(last(inputs.step), &kept)) {
      *why = "nothing of this step is kept from earlier runs";
    } else {
      *why = "compared with the last kept work: " + input_difference(kept, inputs);
    }
    return {};
  }
  std::vector<std::string> lines = split(text, '\n');
  if (lines.size() < 3 || lines[0] != kFirstLine) {
    *why = "its entry in " + folder_ + " cannot be read";
    return {};
  }
  std::string work = lines[1];
  for (size_t i = 2; i < lines.size(); ++i) {
    // The line has the form: size time path.
    const size_t first = lines[i].find(' ');
    const size_t second = first == std::string::npos ? first : lines[i].find(' ', first + 1);
    if (second == std::string::npos) continue;
    const std::string path = work + "/" + lines[i].substr(second + 1);
    std::optional<struct stat> found;
    if (Status s = look_at(path, &found); !s || !found) {
      *why = s ? path + " of the run that did it is gone" : s.message();
      return {};
    }
    if (seal_of(*found) != lines[i].substr(0, second)) {
      *why = path + " was changed since";
      return {};
    }
  }
  *why = "the same as in " + work;
  *instance = digest_of(text);
  return work;
}

Status WorkStore::seal(const StepInputs& inputs, const std::string& hash, const std::string& work,
                       Entry* entry) {
  *entry = {inputs.step, hash, fmt::format("{}\n{}\n", kFirstLine, work), {}, {}};
  std::error_code error;
  std::vector<std::string> lines;
  std::filesystem::recursive_directory_iterator walk(work, error), end;
  for (; !error && walk != end; walk.increment(error)) {
    const std::string path = walk->path().string();
    std::optional<struct stat> found;
    TRY(look_at(path, &found));
    if (!found || !S_ISREG(found->st_mode)) continue;
    const std::string name = path.substr(work.size() + 1);
    // A name with a newline does not fit into one line. Such work is not kept; it runs each time.
    if (name.find('\n') != std::string::npos) return Status::ok();
    lines.push_back(seal_of(*found) + " " + name);
  }
  if (error) return Status::error("cannot read " + work + ": " + error.message(), error.value());
  if (lines.empty()) return Status::ok();
  std::ranges::sort(lines);
  for (const std::string& line : lines) entry->text += line + "\n";
  entry->parts = text_of_parts(inputs);
  entry->instance = digest_of(entry->text);
  return Status::ok();
}

Status WorkStore::keep(const Entry& made) const {
  TRY(make_directories(folder_));
  TRY(write_file(entry(made.step, made.hash), made.text));
  return write_file(last(made.step), made.parts);
}

}  // namespace tally

#include "src/parallel/control/host_list.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>

#include "src/parallel/control/errors.h"

namespace tally::train {
namespace {

constexpr size_t most_hosts = 65536;

[[noreturn]] void bad_list(const std::string& list, const char* why) {
  throw LaunchError(fmt::format("the host list '{}' cannot be read: {}", list, why));
}

int64_t number(const std::string& list, const std::string& digits) {
  int64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || digits.front() == '-' || stop != end || error != std::errc())
    bad_list(list, "a range is not of numbers");
  return value;
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == at) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// The inside of a bracket: "01-03,07" -> 01 02 03 07.
std::vector<std::string> expand_ranges(const std::string& list, const std::string& inside) {
  std::vector<std::string> out;
  for (const std::string& range : split(inside, ',')) {
    const size_t dash = range.find('-');
    const std::string from = range.substr(0, dash);
    const int64_t first = number(list, from);
    const int64_t last = dash == std::string::npos ? first : number(list, range.substr(dash + 1));
    if (last < first) bad_list(list, "a range ends before it begins");
    if (static_cast<uint64_t>(last - first) >= most_hosts)
      bad_list(list, "it names too many hosts");
    for (int64_t n = first; n <= last; ++n) out.push_back(fmt::format("{:0{}}", n, from.size()));
  }
  return out;
}

// One name with its brackets.
void expand_name(const std::string& list, const std::string& name, std::vector<std::string>* out) {
  if (name.empty()) bad_list(list, "a name is empty");
  std::vector<std::string> made{""};
  for (size_t i = 0; i < name.size();) {
    if (name[i] == ']') bad_list(list, "a ']' has no '['");
    std::vector<std::string> pieces;
    if (name[i] == '[') {
      const size_t close = name.find(']', i);
      if (close == std::string::npos) bad_list(list, "a '[' is not closed");
      pieces = expand_ranges(list, name.substr(i + 1, close - i - 1));
      i = close + 1;
    } else {
      const size_t next = std::min(name.find_first_of("[]", i), name.size());
      pieces = {name.substr(i, next - i)};
      i = next;
    }
    if (made.size() * pieces.size() > most_hosts) bad_list(list, "it names too many hosts");
    std::vector<std::string> longer;
    longer.reserve(made.size() * pieces.size());
    for (const std::string& start : made)
      for (const std::string& piece : pieces) longer.push_back(start + piece);
    made = std::move(longer);
  }
  out->insert(out->end(), made.begin(), made.end());
}

}  // namespace

std::vector<std::string> expand_host_list(const std::string& list) {
  std::vector<std::string> hosts;
  std::string name;
  bool inside = false;
  for (const char c : list) {
    if (c == '[') {
      if (inside) bad_list(list, "a '[' is inside another");
      inside = true;
    }
    if (c == ']') inside = false;
    if (c == ',' && !inside) {
      expand_name(list, name, &hosts);
      name.clear();
    } else {
      name += c;
    }
  }
  expand_name(list, name, &hosts);
  if (hosts.size() > most_hosts) bad_list(list, "it names too many hosts");
  return hosts;
}

std::vector<int> expand_tasks_per_node(const std::string& list) {
  std::vector<int> tasks;
  for (const std::string& entry : split(list, ',')) {
    const size_t times = entry.find("(x");
    const bool closed = times == std::string::npos || entry.back() == ')';
    if (!closed) bad_list(list, "a '(' is not closed");
    const int64_t count = number(list, entry.substr(0, times));
    const int64_t repeats = times == std::string::npos
                                ? 1
                                : number(list, entry.substr(times + 2, entry.size() - times - 3));
    if (static_cast<uint64_t>(repeats) > most_hosts) bad_list(list, "it names too many nodes");
    tasks.insert(tasks.end(), static_cast<size_t>(repeats), static_cast<int>(count));
  }
  return tasks;
}

}  // namespace tally::train

// Values of keys that a scheduler's option takes as they are. The rules are those of sbatch 22.05, which
// was asked for each form.
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>

#include "engine/base/text.h"
#include "engine/workflow/job_options.h"

namespace tally {
namespace {

bool has_digits_only(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_digit);
}

// "64G", "4096", "+4gb", "0"; the number is one of 64 bits.
bool is_slurm_memory(std::string text) {
  text = to_lower(text);
  if (starts_with(text, "+")) text.erase(0, 1);
  if (text.size() > 2 && text.back() == 'b') text.pop_back();
  if (!text.empty() && std::string_view("kmgt").find(text.back()) != std::string_view::npos)
    text.pop_back();
  return has_digits_only(text) && whole_number(text).has_value();
}

bool is_slurm_hint(const std::string& text) {
  static const std::set<std::string> words = {"compute_bound", "memory_bound", "multithread",
                                              "nomultithread"};
  const std::vector<std::string> list = split_strip(to_lower(text), ",");
  return std::ranges::all_of(list, [](const std::string& word) { return words.contains(word); });
}

bool is_signal(std::string name) {
  static const std::set<std::string> names = {"abrt", "alrm", "cont", "hup",  "int",  "kill",
                                              "quit", "stop", "term", "tstp", "ttin", "ttou",
                                              "urg",  "usr1", "usr2", "xcpu"};
  name = to_lower(name);
  if (has_digits_only(name)) return name.size() < 4 && std::atoi(name.c_str()) > 0;
  if (starts_with(name, "sig")) name.erase(0, 3);
  return names.contains(name);
}

// A script that gets one of these cannot act on it.
bool takes_effect_at_once(std::string name) {
  name = to_lower(name);
  if (has_digits_only(name)) return std::atoi(name.c_str()) == 9 || std::atoi(name.c_str()) == 19;
  if (starts_with(name, "sig")) name.erase(0, 3);
  return name == "kill" || name == "stop";
}

// "B:TERM@60": whom it is sent to, the signal, and the seconds before the limit. *signal: the second.
bool is_slurm_signal(const std::string& text, std::string* signal) {
  std::string& name = *signal;
  name = text;
  if (const size_t colon = name.find(':'); colon != std::string::npos) {
    const std::string to = to_lower(name.substr(0, colon));
    if (to.find_first_not_of("br") != std::string::npos) return false;
    name.erase(0, colon + 1);
  }
  if (const size_t at = name.find('@'); at != std::string::npos) {
    constexpr int kMost = 65535;
    const std::string seconds = name.substr(at + 1);
    if (!has_digits_only(seconds) || seconds.size() > 5 || std::atoi(seconds.c_str()) > kMost)
      return false;
    name.erase(at);
  }
  return is_signal(name);
}

}  // namespace

std::string request_fault(const std::string& scheduler, std::string_view key,
                          const std::string& value) {
  if (value.empty()) return {};
  if (key == "memory" && scheduler == "slurm" && !is_slurm_memory(value))
    return "is not an amount that sbatch reads, as 64G, 500M or 4096 (MB)";
  if (scheduler != "slurm") return {};
  if (key == "hint" && !is_slurm_hint(value))
    return "is none that sbatch knows: compute_bound, memory_bound, multithread, nomultithread";
  if (key != "signal") return {};
  std::string signal;
  if (!is_slurm_signal(value, &signal))
    return "is none that sbatch reads, as TERM@60 or B:USR1@120 (seconds before the limit)";
  if (takes_effect_at_once(signal))
    return "is one on which no job script can act: take TERM@60 or B:USR1@120";
  return {};
}

}  // namespace tally

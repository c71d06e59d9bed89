// Classes of kernels by their names.
#include <map>
#include <mutex>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "src/measure/step_bars.h"

namespace tally::train {
namespace {

constexpr const char* kernel_classes =
#include "src/measure/kernel_classes.inc"
    ;

struct ClassPattern {
  KernelClass kind;
  std::regex pattern;
};

KernelClass class_named(const std::string& word) {
  static const std::map<std::string, KernelClass> names{
      {"gemm", KernelClass::gemm},
      {"attention", KernelClass::attention},
      {"other", KernelClass::other},
      {"collective", KernelClass::collective},
      {"point_to_point", KernelClass::point_to_point}};
  const auto found = names.find(word);
  if (found == names.end())
    throw std::logic_error("kernel_classes.inc: '" + word + "' is no class");
  return found->second;
}

std::vector<ClassPattern> read_patterns() {
  std::vector<ClassPattern> patterns;
  std::istringstream lines(kernel_classes);
  for (std::string line; std::getline(lines, line);) {
    if (line.empty() || line[0] == '#') continue;
    const std::string pattern = line.substr(line.rfind("  ") + 2);
    patterns.push_back({class_named(line.substr(0, line.find("  "))), std::regex(pattern)});
  }
  return patterns;
}

}  // namespace

KernelClass class_of(const std::string& kernel) {
  static const std::vector<ClassPattern>& patterns =
      *new std::vector<ClassPattern>(read_patterns());
  // A trace has some dozens of names, and regular expressions are slow.
  static std::mutex& mutex = *new std::mutex;
  static std::map<std::string, KernelClass>& known = *new std::map<std::string, KernelClass>;
  const std::lock_guard<std::mutex> guard(mutex);
  const auto entry = known.find(kernel);
  if (entry != known.end()) return entry->second;
  KernelClass kind = KernelClass::other;
  for (const ClassPattern& p : patterns) {
    if (!std::regex_search(kernel, p.pattern)) continue;
    kind = p.kind;
    break;
  }
  return known[kernel] = kind;
}

}  // namespace tally::train

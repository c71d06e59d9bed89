#include "engine/workflow/linked_files.h"

namespace tally {
namespace {

void add_ancestors(const Benchmark& benchmark, const std::string& step,
                   std::set<std::string>& names) {
  const Step* found = benchmark.find_step(step);
  if (found == nullptr) return;
  for (const Text& parent : found->depend) {
    if (names.insert(parent.value).second) add_ancestors(benchmark, parent.value, names);
  }
}

}  // namespace

std::set<std::string> steps_read(const Benchmark& benchmark, const Analyse& analyse,
                                 const AnalyseFile& file) {
  std::set<std::string> read;
  if (file.path.value.find('/') == std::string::npos) return read;
  std::set<std::string> ancestors;
  add_ancestors(benchmark, analyse.step.value, ancestors);
  std::string folder;
  for (const char c : file.path.value) {
    if (c == '/' && ancestors.count(folder) != 0) read.insert(folder);
    if (c == '/' || c == ',' || c == ' ') {
      folder.clear();
    } else {
      folder += c;
    }
  }
  return read;
}

}  // namespace tally

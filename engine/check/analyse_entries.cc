#include "engine/check/analyse_entries.h"

#include <algorithm>
#include <set>
#include <string>

#include "engine/base/text.h"
#include "engine/check/elements.h"

namespace tally {
namespace {

std::set<std::string> sets_of(const AnalyseFile& file) {
  std::set<std::string> names;
  for (const Text& name : file.use) names.insert(name.value);
  return names;
}

bool is_listed(const std::string& path, const AnalyseFile& file, const Analyse& analyse) {
  return std::any_of(analyse.files.begin(), analyse.files.end(), [&](const AnalyseFile& other) {
    const std::vector<Text> parts = split_text(other.path);
    return sets_of(other) == sets_of(file) &&
           std::any_of(parts.begin(), parts.end(),
                       [&](const Text& part) { return part.value == path; });
  });
}

// A list of files is kept as it is written, without the parts that are listed already.
void add_files(const Element& element, Analyse* analyse) {
  AnalyseFile file{text_of(element), split_text(attribute_text(element, "use"))};
  const std::vector<Text> parts = split_text(file.path);
  std::vector<std::string> kept;
  for (const Text& part : parts) {
    const bool here = std::find(kept.begin(), kept.end(), part.value) != kept.end();
    if (!here && !is_listed(part.value, file, *analyse)) kept.push_back(part.value);
  }
  if (kept.empty() && !parts.empty()) return;
  if (kept.size() != parts.size()) file.path.value = join(kept, ",");
  analyse->files.push_back(std::move(file));
}

}  // namespace

void add_analyse(const Element& element, Analyser* analyser) {
  const Text step = attribute_text(element, "step");
  std::vector<Analyse>& all = analyser->analyse;
  auto same = std::find_if(all.begin(), all.end(),
                           [&](const Analyse& other) { return other.step.value == step.value; });
  if (same == all.end()) same = all.insert(same, Analyse{step, {}});
  for (const Element& child : element.children) {
    if (child.name == "file") add_files(child, &*same);
  }
}

}  // namespace tally

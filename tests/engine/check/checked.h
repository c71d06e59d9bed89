// A benchmark file in memory, checked.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <optional>
#include <string>

#include "engine/check/check.h"

namespace tally {

using Files = std::map<std::string, std::string>;

struct Checked {
  Sources sources;
  Diagnostics diagnostics;
  CheckOptions options;
  std::optional<Workflow> workflow;

  // `files` by path, of which `path` is checked.
  Checked(const std::string& path, Files files, CheckOptions given = {})
      : options(std::move(given)) {
    options.read.stored = std::move(files);
    options.read.tags = options.tags;
    Document document = read_document(path, options.read, sources, diagnostics);
    workflow = check_document(document, options, sources, diagnostics);
  }
  explicit Checked(const std::string& yaml, CheckOptions given = {})
      : Checked("f.yaml", Files{{"f.yaml", yaml}}, std::move(given)) {}

  std::string messages() const { return diagnostics.format(sources); }
  bool says(const std::string& part) const { return messages().find(part) != std::string::npos; }
  const Benchmark& benchmark() const {
    REQUIRE(workflow);
    return workflow->benchmarks.at(0);
  }
  const ParameterSet& set(const std::string& name) const {
    return benchmark().parameter_sets.at(name);
  }
};

inline CheckOptions with_tags(std::vector<std::string> tags) {
  CheckOptions options;
  options.tags = std::move(tags);
  return options;
}

}  // namespace tally

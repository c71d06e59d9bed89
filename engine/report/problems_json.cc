#include "engine/report/problems_json.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

namespace tally {
namespace {

using Json = nlohmann::ordered_json;

const char* word(Severity severity) {
  if (severity == Severity::error) return "error";
  return severity == Severity::warning ? "warning" : "note";
}

// File names and messages may hold bytes that are not UTF-8; JSON must be UTF-8.
std::string indented_text(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A path as a URI reference, relative unless the path is absolute.
std::string uri(const std::string& path) {
  std::string out = path[0] == '/' ? "file://" : "";
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '.' || c == '-' || c == '_' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

std::string problems_as_json(const std::vector<Problem>& problems) {
  size_t errors = 0;
  size_t warnings = 0;
  Json list = Json::array();
  for (const Problem& p : problems) {
    if (p.severity == Severity::error) ++errors;
    if (p.severity == Severity::warning) ++warnings;
    Json one = {{"severity", word(p.severity)}, {"message", p.message}};
    if (!p.hint.empty()) one["hint"] = p.hint;
    if (!p.file.empty()) one.update({{"file", p.file}, {"line", p.line}, {"column", p.column}});
    list.push_back(std::move(one));
  }
  return indented_text(
      {{"version", 1}, {"errors", errors}, {"warnings", warnings}, {"problems", list}});
}

std::string problems_as_sarif(const std::vector<Problem>& problems, const std::string& version) {
  Json results = Json::array();
  for (const Problem& p : problems) {
    const std::string text = p.hint.empty() ? p.message : p.message + "\n" + p.hint;
    Json result = {
        {"ruleId", "workflow"}, {"level", word(p.severity)}, {"message", {{"text", text}}}};
    if (!p.file.empty()) {
      const Json region = {{"startLine", p.line}, {"startColumn", p.column}};
      const Json place = {{"artifactLocation", {{"uri", uri(p.file)}}}, {"region", region}};
      result["locations"] = Json::array({{{"physicalLocation", place}}});
    }
    results.push_back(std::move(result));
  }
  const Json rule = {{"id", "workflow"},
                     {"shortDescription", {{"text", "A problem in a workflow file"}}}};
  const Json driver = {{"name", "tally"}, {"version", version}, {"rules", Json::array({rule})}};
  const Json run = {
      {"tool", {{"driver", driver}}}, {"columnKind", "unicodeCodePoints"}, {"results", results}};
  return indented_text({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                        {"version", "2.1.0"},
                        {"runs", Json::array({run})}});
}

}  // namespace tally

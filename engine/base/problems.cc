#include "engine/base/problems.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/text.h"

namespace tally {
namespace {

std::string with_hint(const Problem& problem) {
  return problem.hint.empty() ? problem.message : problem.message + "; " + problem.hint;
}

// The characters that would end a message or a property of GitHub's commands.
std::string github_text(const std::string& text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    out += special ? fmt::format("%{:02X}", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

const char* word(Severity severity, const char* note) {
  if (severity == Severity::error) return "error";
  return severity == Severity::warning ? "warning" : note;
}

}  // namespace

void add_problems(const Diagnostics& diagnostics, const Sources& sources,
                  std::vector<Problem>* problems) {
  for (const Diagnostic& d : diagnostics.all()) {
    Problem problem{{}, 0, 0, d.severity, d.message, d.hint};
    if (d.mark.known() && d.mark.file < sources.size()) {
      problem.file = sources.name(d.mark.file);
      problem.line = d.mark.line;
      problem.column = d.mark.column;
    }
    if (std::find(problems->begin(), problems->end(), problem) == problems->end())
      problems->push_back(std::move(problem));
  }
}

std::string problems_for_gcc(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& p : problems) {
    const std::string where =
        p.file.empty() ? "tally" : fmt::format("{}:{}:{}", p.file, p.line, p.column);
    out += fmt::format("{}: {}: {}\n", where, word(p.severity, "note"), one_line(with_hint(p)));
  }
  return out;
}

std::string problems_for_github(const std::vector<Problem>& problems) {
  std::string out;
  for (const Problem& p : problems) {
    out += fmt::format("::{}", word(p.severity, "notice"));
    if (!p.file.empty()) {
      out += fmt::format(" file={},line={},col={}", github_text(p.file, true), p.line, p.column);
    }
    out += fmt::format("::{}\n", github_text(with_hint(p), false));
  }
  return out;
}

}  // namespace tally

#include "engine/jube/jube_files.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <unordered_map>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/secrets.h"
#include "engine/base/text.h"
#include "engine/results/read/views.h"
#include "engine/workspace/run_log.h"

namespace tally {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(std::string_view(text).substr(i));
    if (length != 1) {
      // U+FFFD replaces invalid UTF-8.
      out += length == 0 ? "\xEF\xBF\xBD" : text.substr(i, length);
      i += std::max<size_t>(length, 1);
      continue;
    }
    const char c = text[i++];
    // XML 1.0 allows no other control characters, not even as references.
    if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') out += c;
  }
  return xml_escaped(out, "&<>\"");
}

// Python's repr() of a text. JUBE stores environment variables in this form.
std::string quoted(const std::string& text) {
  const bool single = text.find('\'') == std::string::npos || text.find('"') != std::string::npos;
  const char quote = single ? '\'' : '"';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\\' || c == quote) {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else {
      out += c;
    }
  }
  return out + quote;
}

const char* mode_name(Mode mode) {
  switch (mode) {
    case Mode::text:
      return "text";
    case Mode::python:
      return "python";
    case Mode::perl:
      return "perl";
    case Mode::shell:
      return "shell";
    case Mode::env:
      return "env";
    case Mode::tag:
      return "tag";
  }
  return "text";
}

const char* type_name(ValueType type) {
  switch (type) {
    case ValueType::string:
      return "string";
    case ValueType::integer:
      return "int";
    case ValueType::floating:
      return "float";
  }
  return "string";
}

const char* duplicate_name(Duplicate duplicate) {
  switch (duplicate) {
    case Duplicate::none:
      return "none";
    case Duplicate::replace:
      return "replace";
    case Duplicate::concat:
      return "concat";
    case Duplicate::error:
      return "error";
  }
  return "none";
}

const char* update_name(UpdateMode mode) {
  switch (mode) {
    case UpdateMode::never:
      return "never";
    case UpdateMode::use:
      return "use";
    case UpdateMode::step:
      return "step";
    case UpdateMode::cycle:
      return "cycle";
    case UpdateMode::always:
      return "always";
  }
  return "never";
}

std::string parameter_xml(const Parameter& parameter, const std::string& value, uint32_t index,
                          bool hidden) {
  std::string out = fmt::format(
      "      <parameter name=\"{}\" type=\"{}\" separator=\"{}\" duplicate=\"{}\" mode=\"{}\"",
      escaped(parameter.name.value), type_name(parameter.type), escaped(parameter.separator),
      duplicate_name(parameter.duplicate), mode_name(parameter.mode));
  if (!parameter.unit.empty()) out += fmt::format(" unit=\"{}\"", escaped(parameter.unit));
  if (parameter.exported) out += " export=\"true\"";
  if (parameter.update != UpdateMode::never) {
    out += fmt::format(" update_mode=\"{}\"", update_name(parameter.update));
  }
  out += fmt::format(">\n        <value>{}</value>\n", escaped(parameter.value.value));
  if (hidden) return out + "      </parameter>\n";
  if (index != Binding::no_index) {
    out += fmt::format("        <selection idx=\"{}\">{}</selection>\n", index, escaped(value));
  } else if (value != parameter.value.value) {
    out += fmt::format("        <selection>{}</selection>\n", escaped(value));
  }
  return out + "      </parameter>\n";
}

// Whether everybody may read this. `secrets`: those of the workpackage's parameters.
bool is_hidden(const std::string& entry, const std::vector<std::string>& secrets) {
  return keeps_secret(entry) || shows_secret(entry, secrets);
}

std::string environment_xml(const std::vector<std::string>& environment,
                            const std::vector<std::string>& secrets) {
  if (environment.empty()) return "    <environment/>\n";
  std::string out = "    <environment>\n";
  for (const std::string& entry : environment) {
    const size_t equals = entry.find('=');
    // Everybody may read this file.
    if (names_secret(entry.substr(0, equals)) || is_hidden(entry, secrets)) continue;
    if (equals == std::string::npos) {
      out += fmt::format("      <nonenv name=\"{}\"/>\n", escaped(entry));
    } else {
      out += fmt::format("      <env name=\"{}\">{}</env>\n", escaped(entry.substr(0, equals)),
                         escaped(quoted(entry.substr(equals + 1))));
    }
  }
  return out + "    </environment>\n";
}

std::string ids(const std::vector<int>& list) {
  std::string out;
  for (const int id : list) out += (out.empty() ? "" : ",") + std::to_string(id);
  return out;
}

using Values = std::unordered_map<std::string, std::string>;

// The environments of workpackages by id, relative to the engine's environment. Each combines the
// changes of its parents, its exported parameters and its own changes. Entries are "NAME=value", or
// "NAME" for a variable that was unset.
std::unordered_map<int, std::vector<std::string>> environments(
    const Benchmark& benchmark, const std::vector<Journal::Stored>& workpackages) {
  std::unordered_map<int, std::vector<std::string>> all;
  for (const Journal::Stored& stored : workpackages) {
    std::map<std::string, std::string> entries;  // by name
    const auto take = [&](const std::vector<std::string>& list) {
      for (const std::string& entry : list) entries[entry.substr(0, entry.find('='))] = entry;
    };
    for (const int parent : stored.workpackage.parents) take(all[parent]);
    const DefinitionsByName known = definitions_of(benchmark, stored);
    for (const auto& [name, value] : stored.parameters) {
      const auto parameter = known.find(name);
      if (parameter == known.end() || !parameter->second->exported) continue;
      entries[name] = name;
      entries[name] += '=';
      entries[name] += value;
    }
    take(stored.environment);
    std::vector<std::string>& own = all[stored.workpackage.id];
    for (auto& [name, entry] : entries) own.push_back(std::move(entry));
  }
  return all;
}

// The parameters that are secrets, as "NAME=value".
std::vector<std::string> secrets_of(const Journal::Stored& stored, const DefinitionsByName& known) {
  std::vector<std::string> secrets;
  for (const auto& [name, value] : stored.parameters) {
    const auto parameter = known.find(name);
    if (parameter != known.end() && is_secret(*parameter->second))
      secrets.push_back(secret_entry(*parameter->second, value));
  }
  return secrets;
}

Status workpackages_xml(const Benchmark& benchmark, const Journal& journal, std::string* xml) {
  std::vector<Journal::Stored> workpackages;
  TRY(journal.workpackages(&workpackages));
  std::unordered_map<int, const Journal::Stored*> by_id;
  std::map<std::string, std::vector<int>> siblings;  // workpackages of one point
  auto point = [](const Journal::Stored& stored) {
    return fmt::format("{}/{}/{}", stored.step, ids(stored.workpackage.parents),
                       fmt::join(stored.index, ","));
  };
  for (const Journal::Stored& stored : workpackages) {
    by_id[stored.workpackage.id] = &stored;
    siblings[point(stored)].push_back(stored.workpackage.id);
  }
  auto environment = environments(benchmark, workpackages);
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<workpackages>\n";
  for (const Journal::Stored& stored : workpackages) {
    out += fmt::format(
        "  <workpackage id=\"{}\">\n    <step iteration=\"{}\" cycle=\"{}\">{}</step>\n",
        stored.workpackage.id, stored.workpackage.iteration, stored.workpackage.cycle,
        escaped(stored.step));
    Values inherited;
    for (const int parent : stored.workpackage.parents) {
      const auto found = by_id.find(parent);
      if (found == by_id.end()) continue;
      for (const auto& [name, value] : found->second->parameters) inherited.emplace(name, value);
    }
    const DefinitionsByName known = definitions_of(benchmark, stored);
    const std::vector<std::string> secrets = secrets_of(stored, known);
    std::string own;
    for (size_t i = 0; i < stored.parameters.size(); ++i) {
      const auto& [name, value] = stored.parameters[i];
      const auto parameter = known.find(name);
      const auto before = inherited.find(name);
      if (parameter == known.end() || (before != inherited.end() && before->second == value)) {
        continue;
      }
      const bool hidden = is_secret(*parameter->second) || is_hidden("=" + value, secrets);
      own += parameter_xml(*parameter->second, value, stored.index[i], hidden);
    }
    if (!own.empty()) out += "    <parameterset>\n" + own + "    </parameterset>\n";
    if (!stored.workpackage.parents.empty()) {
      out += fmt::format("    <parents>{}</parents>\n", ids(stored.workpackage.parents));
    }
    out += fmt::format("    <iteration_siblings>{}</iteration_siblings>\n",
                       ids(siblings[point(stored)]));
    out += environment_xml(environment[stored.workpackage.id], secrets);
    out += "  </workpackage>\n";
  }
  *xml = out + "</workpackages>\n";
  return Status::ok();
}

}  // namespace

Status write_workpackages_xml(const Benchmark& benchmark, const Journal& journal,
                              const std::string& run_dir) {
  std::string xml;
  TRY(workpackages_xml(benchmark, journal, &xml));
  return write_file(run_dir + "/workpackages.xml", xml);
}

Status write_analyse_xml(const std::vector<AnalyserResult>& results, const std::string& run_dir) {
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<analyse>\n";
  for (const AnalyserResult& analyser : results) {
    out += fmt::format("  <analyser name=\"{}\">\n", escaped(analyser.name));
    std::string step;
    for (const WorkpackageResult& workpackage : analyser.workpackages) {
      if (workpackage.step != step) {
        if (!step.empty()) out += "    </step>\n";
        step = workpackage.step;
        out += fmt::format("    <step name=\"{}\">\n", escaped(step));
      }
      out += fmt::format("      <workpackage id=\"{}\">\n", workpackage.id);
      for (const auto& [name, value] : workpackage.values) {
        const char* type = value.number() ? value.type_name() : "string";
        out += fmt::format("        <pattern name=\"{}\" type=\"{}\">{}</pattern>\n", escaped(name),
                           type, escaped(value.str()));
      }
      out += "      </workpackage>\n";
    }
    if (!step.empty()) out += "    </step>\n";
    out += "  </analyser>\n";
  }
  return write_file(run_dir + "/analyse.xml", out + "</analyse>\n");
}

void note_command(const std::string& run_dir, const std::string& command, const std::string& text) {
  if (::access(run_dir.c_str(), W_OK) == 0) RunLog(run_dir + "/" + command + ".log").write(text);
}

}  // namespace tally

#include "tests/engine/workpackage/fake_processes.h"

#include <algorithm>

#include "engine/base/files.h"

namespace tally::testing {

Status FakeProcesses::start(const ProcessSpec& spec, int* pid) {
  Seen now;
  now.command = spec.argv.back();
  now.directory = spec.directory;
  now.stdout_path = spec.stdout_path;
  for (const std::string& entry : spec.environment) {
    const size_t equals = entry.find('=');
    now.environment[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  const std::string printed = printed_by(now.command);
  seen.push_back(std::move(now));
  const int number = starts_++;
  // Half of what a killed engine's command writes is there.
  if (number == kill_at) {
    if (Status s = append_file(spec.stdout_path, printed.substr(0, printed.size() / 2)); !s) {
      return s;
    }
    throw Killed();
  }
  if (Status s = append_file(spec.stdout_path, printed + "\n"); !s) return s;
  *pid = 1000000000 + number;
  ProcessResult result;
  result.pid = *pid;
  result.status = random_.chance(fail_percent_) ? 1 : 0;
  running_.push_back(result);
  return Status::ok();
}

bool FakeProcesses::wait_any(std::chrono::milliseconds, ProcessResult* result) {
  if (running_.empty()) return false;
  const auto which = running_.begin() + random_.below(static_cast<int>(running_.size()));
  *result = *which;
  running_.erase(which);
  return true;
}

void FakeProcesses::kill_tree(int pid, int signal) {
  for (ProcessResult& result : running_) {
    if (result.pid == pid) result = {pid, 128 + signal, true};
  }
}

std::string printed_by(const std::string& command) {
  const std::string begin = "<<'END'\n";
  if (const size_t at = command.find(begin); at != std::string::npos) {
    const size_t from = at + begin.size();
    return command.substr(from, command.find("\nEND", from) - from);
  }
  const std::string echo = "echo '";
  const size_t at = command.find(echo);
  if (at == std::string::npos) return {};
  const size_t from = at + echo.size();
  const size_t end = command.find("</jube_step_name>'", from);
  return command.substr(from, end == std::string::npos ? end : end + 17 - from);
}

std::vector<std::pair<std::string, std::string>> named_values(const std::string& text) {
  std::vector<std::pair<std::string, std::string>> values;
  for (size_t at = text.find('<'); at != std::string::npos; at = text.find('<', at)) {
    const size_t close = text.find('>', at);
    if (close == std::string::npos) break;
    const std::string name = text.substr(at + 1, close - at - 1);
    const size_t end = text.find("</" + name + ">", close);
    if (end == std::string::npos) {
      at = close;
      continue;
    }
    values.emplace_back(name, text.substr(close + 1, end - close - 1));
    at = end + name.size() + 3;
  }
  return values;
}

}  // namespace tally::testing

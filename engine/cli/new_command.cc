// tally new: writes a first workflow.
#include <fmt/format.h>
#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <filesystem>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/cli/application.h"
#include "engine/cli/input.h"
#include "engine/cli/proposed_workflow.h"

namespace tally {
namespace {

// Runs the command, prints what it prints, and keeps that in *output. Returns its exit code.
int run_and_keep(const std::vector<std::string>& command, std::string* output) {
  std::string line;
  for (const std::string& word : command) line += (line.empty() ? "" : " ") + shell_quote(word);
  std::fflush(stdout);
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) return -1;
  std::array<char, 4096> part{};
  for (size_t n = 0; (n = std::fread(part.data(), 1, part.size(), pipe)) > 0;) {
    output->append(part.data(), n);
    std::fwrite(part.data(), 1, n, stdout);
  }
  std::fflush(stdout);
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

int new_command(const Settings& settings, const NewArgs& args) {
  const std::string file = args.name + ".yaml";
  if (args.name.empty() || args.name.find('/') != std::string::npos) {
    print_error(settings, fmt::format("'{}' is no name for a workflow", args.name),
                "tally new pi -- ./pi 1000000 writes pi.yaml");
    return kBadInput;
  }
  if (std::filesystem::exists(std::filesystem::symlink_status(file))) {
    print_error(settings, fmt::format("'{}' is there already", file), "take another name");
    return kBadInput;
  }
  std::string output;
  if (!args.command.empty()) {
    if (const int code = run_and_keep(args.command, &output); code != 0) {
      print_error(settings,
                  fmt::format("the command ended with exit code {}: no file was written", code));
      return kFailed;
    }
  }
  const std::string text = proposed_workflow(args.name, args.command, output);
  if (Status s = write_file(file, text); !s) {
    print_error(settings, s.message());
    return kFailed;
  }
  fmt::print("{}{}:\n{}", output.empty() ? "" : "\n", file, text);
  return kFine;
}

void Application::add_new() {
  CLI::App* sub =
      command("new", "write a first workflow, with what a command takes and prints", [this] {
        if (!new_.command.empty() && !may_execute("new")) return kBadInput;
        return new_command(settings_, new_);
      });
  sub->add_option("name", new_.name, "the workflow's name; NAME.yaml is written")->required();
  sub->add_option("command", new_.command, "a program and its arguments, after --")
      ->option_text("-- COMMAND ...");
}

}  // namespace tally

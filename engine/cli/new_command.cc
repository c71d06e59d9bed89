// tally new: writes a first workflow.
#include <fmt/format.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/files.h"
#include "engine/base/text.h"
#include "engine/cli/application.h"
#include "engine/cli/prepare.h"
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

// A name that stands in a command line and in the names of a file and a folder as it is.
bool is_simple_name(const std::string& name) {
  return !name.empty() && name.front() != '-' && name.front() != '.' &&
         std::ranges::all_of(name, [](char c) {
           return is_name_char(c) || c == '.' || c == '-' || static_cast<unsigned char>(c) >= 128;
         });
}

}  // namespace

int new_command(const Settings& settings, const NewArgs& args) {
  std::string name = args.name;
  if (name.ends_with(".yaml")) name.resize(name.size() - std::string_view(".yaml").size());
  const std::string file = name + ".yaml";
  if (!is_simple_name(name)) {
    print_error(settings, fmt::format("'{}' is no name for a workflow", args.name),
                "letters, digits, '.', '_' and '-': tally new pi -- ./pi 1000000 writes pi.yaml");
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
  const std::string text = proposed_workflow(name, args.command, output);
  if (print_if_error(settings, write_file(file, text))) return kFailed;
  fmt::print("{}{}:\n{}", output.empty() ? "" : "\n", file, text);
  return kFine;
}

// CLI11 does not tell what stands before "--": the first word of a command may have become the name.
bool Application::divide_words_of_new() {
  Words words = std::move(new_.command);
  if (!new_.name.empty()) words.insert(words.begin(), new_.name);
  const auto command = words.end() - static_cast<std::ptrdiff_t>(behind_);
  if (command - words.begin() > 1) {
    print_error(settings_, "a workflow has one name, and a command stands behind '--'",
                fmt::format("{} new {} -- {} ...", settings_.command, words[0], words[1]));
    return false;
  }
  new_.command = {command, words.end()};
  if (command != words.begin()) {
    new_.name = words.front();
  } else {
    new_.name = behind_ == 0 ? "" : std::filesystem::path(new_.command.front()).stem().string();
  }
  return new_.command.empty() || may_execute("new");
}

void Application::add_new() {
  CLI::App* sub =
      command("new", "write a first workflow, with what a command takes and prints",
              [this] { return divide_words_of_new() ? new_command(settings_, new_) : kBadInput; });
  sub->add_option("name", new_.name, "NAME.yaml is written; without it, after the program")
      ->option_text("[NAME]");
  sub->add_option("command", new_.command, "a program and its arguments, which is run once")
      ->option_text("[-- COMMAND ...]");
}

}  // namespace tally

#include "engine/cli/input.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "engine/base/terminal.h"

namespace tally {

bool in_color(const Settings& settings, int fd) {
  if (settings.color != Settings::Color::automatic)
    return settings.color == Settings::Color::always;
  const char* off = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  return (off == nullptr || *off == '\0') && kind != nullptr && std::string_view(kind) != "dumb" &&
         ::isatty(fd) != 0;
}

void print_error(const Settings& settings, const std::string& message, const std::string& hint) {
  if (settings.problems != nullptr) {
    settings.problems->push_back({{}, 0, 0, Severity::error, message, hint});
    return;
  }
  const bool color = in_color(settings, STDERR_FILENO);
  print_styled(stderr,
               fmt::format("{}: {}error:{} {}\n", literal(settings.program),
                           color ? "\033[1;31m" : "", color ? "\033[0m" : "", literal(message)));
  if (!hint.empty()) fmt::print(stderr, "hint: {}\n", hint);
}

size_t print_diagnostics(const Settings& settings, const Diagnostics& diagnostics,
                         const Sources& sources) {
  if (diagnostics.all().empty()) return 0;
  if (settings.problems != nullptr) {
    add_problems(diagnostics, sources, settings.problems);
    return diagnostics.all().size();
  }
  if (in_color(settings, STDERR_FILENO)) {
    print_styled(stderr, diagnostics.format(sources, true));
  } else {
    const std::string text = diagnostics.format(sources);
    std::fwrite(text.data(), 1, text.size(), stderr);
  }
  return diagnostics.all().size();
}

void print_error(const Settings& settings, const Status& status) {
  print_error(settings, status.message(), status.hint());
}

std::shared_ptr<Input> load_input(const Settings& settings, const std::string& path,
                                  const InputArgs& args) {
  auto input = std::make_shared<Input>();
  if (Status s = read_input(settings, path, args, input.get()); !s) print_error(settings, s);
  print_diagnostics(settings, input->diagnostics, input->sources);
  return input;
}

std::shared_ptr<Input> load_input_text(const Settings& settings, const std::string& name,
                                       const std::string& text, const InputArgs& args) {
  auto input = std::make_shared<Input>();
  if (Status s = read_input_text(settings, name, text, args, input.get()); !s)
    print_error(settings, s);
  print_diagnostics(settings, input->diagnostics, input->sources);
  return input;
}

std::unique_ptr<Run> open_run(const Settings& settings, const RunDirectory& directory,
                              Run::Access access) {
  std::unique_ptr<Run> run;
  if (Status s = Run::open(directory, access, settings, &run); !s) {
    print_error(settings, s);
    return nullptr;
  }
  print_diagnostics(settings, run->input().diagnostics, run->input().sources);
  if (!run->input().workflow) run.reset();
  return run;
}

bool read_definitions(const Settings& settings, Run* run) {
  if (Status s = run->read_definitions(settings); !s) {
    print_error(settings, s);
    return false;
  }
  const Input& input = run->definitions_input();
  if (&input == &run->input()) return true;  // its problems were printed when it was read
  print_diagnostics(settings, input.diagnostics, input.sources);
  return input.workflow.has_value();
}

namespace {

// Takes the patterns, analysers and results of `file`, and keeps them for later commands, as JUBE
// does, because `analyse -u` followed by `result` is common.
bool take_update(const Settings& settings, const std::string& file, const InputArgs& args,
                 Run* run) {
  Status kept;
  if (Status s = run->update_definitions(settings, file, args, &kept); !s) {
    print_error(settings, s);
    return false;
  }
  const Input& input = run->definitions_input();
  print_diagnostics(settings, input.diagnostics, input.sources);
  if (!input.workflow) return false;
  const RunRecord& record = run->journal().run();
  if (input.find(record.benchmark) == nullptr) {
    print_error(settings, fmt::format("'{}' has no benchmark '{}', which run {} is of", file,
                                      record.benchmark, record.id));
    return false;
  }
  if (!kept)
    fmt::print(stderr, "note: -u {} is not kept for the next time: {}\n", file, kept.message());
  return true;
}

}  // namespace

std::unique_ptr<Run> open_results(const Settings& settings, const RunDirectory& directory,
                                  const std::string& update, const InputArgs& update_input) {
  std::unique_ptr<Run> run = open_run(settings, directory, Run::Access::read);
  if (!run) return run;
  const bool read = update.empty() ? read_definitions(settings, run.get())
                                   : take_update(settings, update, update_input, run.get());
  if (!read) run.reset();
  return run;
}

}  // namespace tally

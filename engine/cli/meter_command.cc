// tally meter.
#include <fmt/format.h>

#include <cstdio>

#include "engine/base/files.h"
#include "engine/cli/application.h"
#include "engine/cli/prepare.h"
#include "engine/energy/meter.h"

namespace tally {

int meter_command(const Settings& settings, const MeterArgs& args) {
  if (args.command.empty()) {
    print_error(settings, "meter needs a command",
                settings.command + " meter -- ./program --its-option");
    return kBadInput;
  }
  EnergyUse use;
  int code = 0;
  if (print_if_error(settings, measure_command(args.command, {}, &use, &code))) return kBadInput;
  // The numbers follow what the program printed, so that a pattern finds both in one file.
  fmt::print("{}", energy_lines(use));
  std::fflush(stdout);
  if (args.json.empty()) return code;
  if (print_if_error(settings, write_named_file(args.json, energy_json(use, args.command, code))))
    return code == 0 ? kFailed : code;
  return code;
}

void Application::add_meter() {
  CLI::App* sub = command("meter", "run a program and print the energy that the machine used",
                          [this] { return meter_command(settings_, meter_); });
  sub->add_option("command", meter_.command, "the program and its arguments, after --")
      ->option_text("-- COMMAND ...");
  sub->add_option("--json", meter_.json, "also write the numbers to this file")
      ->option_text("FILE");
}

}  // namespace tally

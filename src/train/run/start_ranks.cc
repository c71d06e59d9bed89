#include "src/train/run/start_ranks.h"

#include <algorithm>

#include "src/checkpoint/stored_models.h"
#include "src/config/args.h"
#include "src/measure/record.h"
#include "src/measure/system_info.h"
#include "src/parallel/control/supervisor.h"
#include "src/train/run/failures.h"
#include "src/train/run/host_memory.h"
#include "src/train/run/output.h"
#include "src/train/run/process_limits.h"

namespace tally::train {
namespace {

// Reports a shortage, because no rank exists yet to do so. Returns the exit code.
int refuse(const Config& config, const std::string& shortage) {
  Record record;
  record.config = config;
  record.started = record.ended = utc_now();
  const Ending ending = describe_failure(std::make_exception_ptr(MemoryShortage(shortage)), config);
  record.outcome = ending.outcome;
  record.message = ending.message;
  print_error(ending.message);
  if (!config.record_path.empty()) {
    try {
      check_record_target(config.record_path);
      write_record(record, config.record_path);
    } catch (const std::runtime_error& e) {
      print_error(e.what());
    }
  }
  return exit_code(ending.outcome);
}

}  // namespace

int start_ranks(const LaunchOptions& options, const Launch& launch, std::vector<char*> argv,
                Command command) {
  const int processes = std::max(1, options.processes);
  const int ranks = launch.size * processes;
  Config config =
      parse_args(static_cast<int>(argv.size()), argv.data(), stored_models(), ranks, command);
  config.local_size = processes;
  if (const std::string why = process_shortage(processes, default_threads(processes)); !why.empty())
    throw LaunchError(why);
  if (const std::string why = open_file_shortage(ranks, processes); !why.empty())
    throw LaunchError(why);
  if (const std::string why = memory_shortage_before_start(config); !why.empty())
    return refuse(config, why);
  argv.push_back(nullptr);
  return supervise(processes, options, launch, argv.data());
}

}  // namespace tally::train

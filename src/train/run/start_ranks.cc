#include "src/train/run/start_ranks.h"

#include <algorithm>
#include <optional>

#include "src/checkpoint/stored_models.h"
#include "src/config/args.h"
#include "src/measure/record.h"
#include "src/measure/system_info.h"
#include "src/parallel/control/supervisor.h"
#include "src/train/run/failures.h"
#include "src/train/run/host_memory.h"
#include "src/train/run/output.h"
#include "src/train/run/process_limits.h"
#include "src/train/run/world.h"

namespace tally::train {
namespace {

// Writes the record of a shortage, because no rank exists yet to do so.
Fault refuse(const Config& config, const std::string& shortage) {
  Record record = begin_record(config);
  record.ended = record.started;
  const Ending ending = describe_failure(std::make_exception_ptr(MemoryShortage(shortage)), config);
  record.outcome = ending.outcome;
  record.message = ending.message;
  Fault fault;
  fault.code = exit_code(ending.outcome);
  fault.message = ending.message;
  if (!config.record_path.empty()) {
    try {
      check_record_target(config.record_path);
      write_record(record, config.record_path);
    } catch (const std::runtime_error& e) {
      print_error(e.what());
    }
  }
  return fault;
}

}  // namespace

std::optional<Fault> find_fault(int processes, int ranks, const std::vector<char*>& argv,
                                Command command) {
  Fault fault;
  fault.ranks = processes;
  try {
    Config config =
        parse_args(static_cast<int>(argv.size()), argv.data(), stored_models(), ranks, command);
    config.local_size = processes;
    fault.message = process_shortage(processes, default_threads(processes));
    if (fault.message.empty()) fault.message = open_file_shortage(ranks, processes);
    if (!fault.message.empty()) return fault;
    const std::string shortage = memory_shortage_before_start(config);
    if (shortage.empty()) return std::nullopt;
    fault = refuse(config, shortage);
    fault.ranks = processes;
    return fault;
  } catch (const UsageError& e) {
    fault.message = e.what();
    return fault;
  }
}

int start_ranks(const LaunchOptions& options, const Launch& launch, std::vector<char*> argv,
                const FindFault& find_fault) {
  const int processes = std::max(1, options.processes);
  const int ranks = launch.size * processes;
  if (const auto fault = find_fault(processes, ranks)) {
    if (launch.size > 1) {  // the ranks of other hosts are told instead of this host's first
      Launch first = launch;
      first.rank *= processes;
      first.size = ranks;
      const World told(first, options, fault);
    }
    print_error(fault->message);
    return fault->code;
  }
  argv.push_back(nullptr);
  return supervise(processes, options, launch, argv.data());
}

}  // namespace tally::train

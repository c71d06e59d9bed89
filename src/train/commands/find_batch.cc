#include "src/train/commands/find_batch.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "src/config/json_values.h"
#include "src/data/text/exit_codes.h"
#include "src/measure/system_info.h"
#include "src/model/architecture.h"
#include "src/plan/stage_count.h"
#include "src/train/commands/batch_search.h"
#include "src/train/feed/data_sources.h"
#include "src/train/run/device.h"
#include "src/train/run/failures.h"
#include "src/train/run/host_memory.h"
#include "src/train/run/memory_estimate.h"
#include "src/train/run/output.h"
#include "src/train/run/stop.h"
#include "src/train/run/stop_request.h"
#include "src/train/step/session.h"
#include "src/train/step/step_loop.h"

namespace tally::train {
namespace {

constexpr double gib = 1 << 30;

// A micro batch that was asked for: by the model, or by a try of its own.
struct Try {
  int64_t micro_batch = 0;
  double predicted = 0;        // bytes
  std::optional<double> peak;  // bytes that the steps held; empty: not tried, or out of memory
  bool tried = false, fits = false;
};

Config with_micro_batch(Config c, int64_t micro_batch) {
  c.micro_batch = c.global_batch = micro_batch;
  return c;
}

// Token ids are counted in 32 bits.
int64_t most_samples(const Config& c) {
  return std::max<int64_t>(1, std::numeric_limits<int32_t>::max() / c.sequence);
}

// Address space that this process has already, bytes.
double address_space() {
  double pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

// Bytes that this process may take: what the host has, and what its limit of address space leaves.
double host_limit() {
  const size_t available = available_memory();
  double limit = available == unknown_memory ? std::numeric_limits<double>::infinity()
                                             : static_cast<double>(available);
  rlimit of_process{};
  if (getrlimit(RLIMIT_AS, &of_process) == 0 && of_process.rlim_cur != RLIM_INFINITY)
    limit = std::min(limit, static_cast<double>(of_process.rlim_cur) - address_space());
  return std::max(0.0, limit - process_bytes);
}

class BatchFinder {
 public:
  explicit BatchFinder(const Config& config)
      : config_(config),
        unit_(config.fp8.micro_batch_unit(config.sequence)),
        record_(begin_record(config)) {
    if (!config.record_path.empty())
      check_flag("--record", [&] { check_record_target(config.record_path); });
    data_ = open_data(config, config.load_hf_dir);
    record_.data = data_.description;
    record_.parameters = parameter_count(config.model);
    static_cast<DeviceFacts&>(record_) = open_device(config).facts;
    limit_ = on_gpu() ? static_cast<double>(record_.device_info.total_bytes) : host_limit();
    catch_stop_signals();
    // A record that cannot be written is found now, and a search that is killed leaves a record
    // that says "running".
    check_flag("--record", [&] { write_record({}); });
  }

  void record_failure(const Ending& ending) {
    record_.outcome = ending.outcome;
    record_.message = ending.message;
    record_.ended = utc_now();
    try {
      write_record({});
    } catch (const std::runtime_error& e) {
      print_error(e.what());
    }
  }

  // Returns the exit code.
  int run() {
    print_text(fmt::format("{}: {:.2f} GiB, {} of {} tokens a sample\n{:>12} {:>15} {:>15}  {}\n",
                           on_gpu() ? record_.device_info.name : "this host", limit_ / gib,
                           config_.model.kind(), config_.sequence, "micro batch", "predicted GiB",
                           "peak GiB", "result"));
    const int64_t most = std::max<int64_t>(1, most_samples(config_) / unit_);
    int64_t found = largest_that_fits(std::min<int64_t>(64, most), most,
                                      [&](int64_t n) { return predicted(n * unit_) <= limit_; });
    if (on_gpu()) {
      found = largest_that_fits(std::max<int64_t>(1, found), most,
                                [&](int64_t n) { return try_steps(n * unit_); });
    } else {
      report(found * unit_, found > 0);
      if (found < most) report((found + 1) * unit_, false);
    }
    return finish(found * unit_);
  }

 private:
  bool on_gpu() const { return record_.device.is_cuda(); }

  double predicted(int64_t micro_batch) const {
    const Config c = with_micro_batch(config_, micro_batch);
    if (!on_gpu()) return estimate_memory(c).total();
    const CountedDevice target{true, limit_, record_.device_info.capability};
    return stage_memory(c, 0, target).total();
  }

  // A row of the model's answer.
  void report(int64_t micro_batch, bool fits) {
    if (micro_batch == 0) return;
    add({micro_batch, predicted(micro_batch), {}, false, fits});
  }

  // Whether the first steps of a run with this micro batch succeed: those that launch kernels one
  // by one and the one that is recorded.
  bool try_steps(int64_t micro_batch) {
    Config c = with_micro_batch(config_, micro_batch);
    c.train_iterations = StepGraph::eager_calls + 1;
    c.log_interval = c.train_iterations + 1;
    c.eval_interval = c.save_interval = 0;
    Try t{micro_batch, predicted(micro_batch), {}, true, false};
    try {
      t.peak = static_cast<double>(peak_of_steps(c));
      t.fits = true;
    } catch (const CheckFailed&) {
      t.fits = true;  // a loss that is not finite takes as much memory
    } catch (...) {
      const Ending ending = describe_failure(std::current_exception(), c);
      if (ending.outcome != Outcome::out_of_memory) throw;
    }
    add(t);
    return t.fits;
  }
  size_t peak_of_steps(const Config& c) const {
    const std::unique_ptr<Stream> stream = open_device(c).stream;
    const auto alone = make_single_communicator();
    const Mesh mesh(*alone, {});
    Session session(c, *stream, mesh);
    session.start({}, [](const std::string&) {});
    const LoopParts parts{
        c,           *stream, session.table, session.stage_list(), *session.optimizer,
        data_.train, nullptr, mesh};
    LoopHooks hooks;
    hooks.stop = [] {
      throw_if_signalled();
      return Ending{};
    };
    RunLists unused;
    StepLoop loop(parts, hooks, &unused);
    loop.run({});
    return stream->bytes_peak();
  }

  void add(const Try& t) {
    tries_.push_back(t);
    print_text(fmt::format("{:>12} {:>15.2f} {:>15}  {}\n", t.micro_batch, t.predicted / gib,
                           t.peak ? fmt::format("{:.2f}", *t.peak / gib) : "-",
                           t.fits    ? "fits"
                           : t.tried ? "out of memory"
                                     : "does not fit"));
  }

  int finish(int64_t found) {
    record_.outcome = found > 0 ? Outcome::completed : Outcome::out_of_memory;
    record_.ended = utc_now();
    // The answer comes first: the record may be impossible to write.
    if (found > 0) {
      print_line(fmt::format("largest micro batch: {} ({})", found,
                             on_gpu() ? "tried" : "by the memory model, not tried on a CPU"));
    } else {
      print_error(fmt::format("not even a micro batch of {} fits: {}", unit_,
                              memory_advice(with_micro_batch(config_, unit_))));
    }
    write_record(found);
    if (found == 0) return exit_code(record_.outcome);
    if (const std::string lost = output_failure(); !lost.empty()) throw std::runtime_error(lost);
    return exit_completed;
  }

  // `found`: empty before the end.
  void write_record(std::optional<int64_t> found) const {
    if (!config_.record_path.empty()) write_json(to_json(found), config_.record_path);
  }

  nlohmann::ordered_json to_json(std::optional<int64_t> found) const {
    auto tries = nlohmann::ordered_json::array();
    for (const Try& t : tries_)
      tries.push_back({{"micro_batch_size", t.micro_batch},
                       {"predicted_bytes", t.predicted},
                       {"tried", t.tried},
                       {"peak_bytes", value_or_null(t.peak)},
                       {"fits", t.fits}});
    return {
        {"schema", "tally-train-find-batch/1"},
        {"outcome", outcome_name(record_.outcome)},
        {"started", record_.started},
        {"message", text_or_null(record_.message)},
        {"ended", text_or_null(record_.ended)},
        {"command_line", config_.command_line},
        {"configuration", configuration_json(record_)},
        {"environment", environment_json(record_)},
        {"results",
         {{"micro_batch_size", value_or_null(found)}, {"limit_bytes", limit_}, {"tries", tries}}}};
  }

  const Config& config_;
  int64_t unit_;  // micro batches are multiples of this
  Record record_;
  DataSources data_;
  double limit_ = 0;  // bytes
  std::vector<Try> tries_;
};

}  // namespace

int find_batch(const Config& config, World& world) {
  std::optional<BatchFinder> finder;  // once the input has been checked
  try {
    for (const std::string& notice : config.notices) print_note(notice);
    finder.emplace(config);
    const int code = finder->run();
    world.done();
    return code;
  } catch (...) {
    Ending ending = describe_failure(std::current_exception(), config);
    if (!finder && ending.outcome == Outcome::error) ending.outcome = Outcome::bad_input;
    if (finder) finder->record_failure(ending);
    return world.fail(exit_code(ending.outcome), ending.message);
  }
}

}  // namespace tally::train

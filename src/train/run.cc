#include "src/train/run.h"

#include <fmt/format.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/hugging_face.h"
#include "src/measure/build_info.h"
#include "src/measure/system_info.h"
#include "src/parallel/communicator.h"
#include "src/train/agreement.h"
#include "src/train/data_sources.h"
#include "src/train/device.h"
#include "src/train/failures.h"
#include "src/train/folders.h"
#include "src/train/host_memory.h"
#include "src/train/step_loop.h"
#include "src/train/summary.h"

namespace tally::train {
namespace {

// Of several processes one speaks.
void print(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void print_notice(const std::string& text) {
  fmt::print(stderr, "tally-train: note: {}\n", text);
}

// Everything that lives on the device, in the order in which it is made.
struct Session {
  Session(const Config& c, Stream& s) : config(c), stream(s) {
    register_gpt(c.model, &table);
    table.layout(stream, c.compute_type(), true);
    model = c.reference ? make_reference_gpt(c, table, stream) : make_gpt(c, table, stream);
    optimizer = std::make_unique<Optimizer>(c, table, stream);
  }

  // Returns the iterations and samples done before.
  std::pair<int64_t, int64_t> start(bool resume, const Print& notice) {
    if (!resume) {
      if (config.load_hf_dir.empty()) {
        table.initialize(config.seed);
      } else {
        load_model_weights(config.load_hf_dir, config.model, ParameterState(table), stream);
      }
      return {0, 0};
    }
    const auto state =
        load_checkpoint(config.load_dir, config.model, ParameterState(table), stream);
    if (!state)
      throw InputError(fmt::format("--load: {} holds no checkpoint any more", config.load_dir));
    if (state->seed != config.seed)
      notice(fmt::format("--seed {} differs from the checkpoint's {}: the data's order changes",
                         config.seed, state->seed));
    optimizer->restore(state->optimizer_steps, {state->loss_scale, state->loss_scale_good_steps,
                                                state->loss_scale_hysteresis});
    return {state->iteration, state->consumed_samples};
  }

  void save(int64_t iteration, int64_t consumed, const Record& record, const SideFiles& files) {
    TrainingState state;
    state.iteration = iteration;
    state.consumed_samples = consumed;
    state.optimizer_steps = optimizer->updates();
    state.skipped_iterations = iteration - optimizer->updates();
    const LossScaler::State scale = optimizer->scaler().state();
    state.loss_scale = scale.scale;
    state.loss_scale_good_steps = scale.growth_steps;
    state.loss_scale_hysteresis = scale.hysteresis_left;
    state.seed = config.seed;
    state.sequence = config.sequence;
    state.config_json =
        configuration_json(record).dump(1, ' ', false, nlohmann::json::error_handler_t::replace);
    const std::string path =
        save_checkpoint(config.save_dir, state, config.model, ParameterState(table), stream, files);
    print(fmt::format("  saved checkpoint at iteration {} to {}", iteration, path));
  }

  void save_to_hugging_face(const SideFiles& files) {
    save_hugging_face(config.save_hf_dir, config.model, files, ParameterState(table), stream);
    print(fmt::format("  saved the model in Hugging Face's layout to {}", config.save_hf_dir));
  }

  const Config& config;
  Stream& stream;
  ParameterTable table;
  std::unique_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
};

Ending asked_to_stop(const TimeLimit& limit) {
  if (const int signal = StopSignals::received())
    return {Outcome::signalled, fmt::format("{} was received", signal_name(signal))};
  if (limit.reached())
    return {Outcome::time_limit,
            fmt::format("--exit-duration-in-mins {} is over", limit.minutes())};
  return {};
}

void check_kinds_of_parallelism(const Config& c) {
  if (c.tensor_parallel > 1)
    throw InputError(fmt::format(
        "--tensor-model-parallel-size {}: this version is parallel in data only: take 1",
        c.tensor_parallel));
  if (c.pipeline_parallel > 1)
    throw InputError(fmt::format(
        "--pipeline-model-parallel-size {}: this version is parallel in data only: take 1",
        c.pipeline_parallel));
  if (c.distributed_optimizer)
    throw InputError(fmt::format(
        "--use-distributed-optimizer: this version keeps the optimizer's state whole in each of "
        "the {} processes: leave it out",
        c.data_parallel));
}

// A checkpoint that could not be written.
struct SaveFailed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A run whose input has been checked and whose record has been begun.
class Run {
 public:
  Run(const Config& config, World& world, DataSources data, Stream* stream,
      std::unique_ptr<Communicator> communicator, TimeLimit limit, bool resume, SideFiles files,
      std::string shortage, Record* record)
      : config_(config),
        world_(world),
        print_(world.speaks() ? Print(print) : Print([](const std::string&) {})),
        notice_(world.speaks() ? Print(print_notice) : Print([](const std::string&) {})),
        data_(std::move(data)),
        stream_(*stream),
        communicator_(std::move(communicator)),
        limit_(limit),
        resume_(resume),
        files_(std::move(files)),
        shortage_(std::move(shortage)),
        record_(*record) {}

  Ending train() {
    if (world_.speaks()) fmt::print("{}", start_summary(record_));
    std::fflush(stdout);
    if (!shortage_.empty()) throw OutOfMemory(shortage_);
    stream_.before_long_tuning = [this] {
      print_(
          "  tuning     timing algorithms for this GPU and these sizes: "
          "a minute or two, the first time");
    };
    Session session(config_, stream_);
    const auto [iteration, consumed] = session.start(resume_, notice_);
    require_same_settings(
        world_.meeting(), host_name(),
        {{"iteration", "the number of steps done before (--load)", fmt::format("{}", iteration)}},
        "let --load name the same checkpoint on every host");
    const auto check_weights = [&](const char* when) {
      check_same_weights(world_, stream_, session.table.master(), when);
    };
    check_weights("at the start");
    record_.first_iteration = iteration;
    if (iteration > 0)
      print_(fmt::format("  resumed    after {} steps, from {}", iteration, config_.load_dir));
    if (!resume_ && !config_.load_hf_dir.empty())
      print_(fmt::format("  weights    {}", config_.load_hf_dir));
    LoopHooks hooks;
    hooks.stop = [&] { return asked_to_stop(limit_); };
    hooks.print = print_;
    hooks.check_weights = [&] { check_weights("while training"); };
    if (!config_.save_dir.empty()) {
      // All processes pause alike; one writes.
      hooks.save = [&](int64_t done, int64_t samples) {
        if (!world_.speaks()) return;
        try {
          session.save(done, samples, record_, files_);
        } catch (const std::exception& e) {
          throw SaveFailed(e.what());
        }
        write_record();
      };
    }
    const LoopParts parts{
        config_,     stream_,          session.table, *session.model, *session.optimizer,
        data_.train, data_.validation, *communicator_};
    StepLoop loop(parts, hooks, &record_);
    const int64_t updates = session.optimizer->updates();
    const auto save_model = [&] {
      if (!config_.save_hf_dir.empty() && world_.speaks()) session.save_to_hugging_face(files_);
    };
    Ending ending;
    try {
      ending = loop.run(iteration, consumed);
    } catch (const SaveFailed&) {
      save_model();  // what one place does not take, another may
      throw;
    }
    record_.device_bytes_peak = stream_.bytes_peak();
    if (!record_.steps.empty() && session.optimizer->updates() == updates)
      notice_(
          "no step changed the weights: the gradients of each overflowed; a lower "
          "--initial-loss-scale is found sooner");
    save_model();
    return ending;
  }

  void write_record() {
    if (!config_.record_path.empty() && world_.speaks())
      tally::train::write_record(record_, config_.record_path);
  }

 private:
  const Config& config_;
  World& world_;
  const Print print_, notice_;
  DataSources data_;
  Stream& stream_;
  std::unique_ptr<Communicator> communicator_;
  TimeLimit limit_;
  bool resume_;
  SideFiles files_;
  std::string shortage_;
  Record& record_;
};

// When a failure ends several processes, the record of what is known now says so, whichever it was
// and whoever ends this process first.
void set_record_of_failure(World& world, const Record& record) {
  if (!world.speaks() || record.config.record_path.empty()) return;
  world.set_last_words([begun = record](const Failure& f) {
    Record last = begun;
    last.outcome = f.code == exit_code(Outcome::out_of_memory)  ? Outcome::out_of_memory
                   : f.code == exit_code(Outcome::failed_check) ? Outcome::failed_check
                                                                : Outcome::error;
    last.message = fmt::format("rank {} on {}: {}", f.rank, f.host, f.message);
    last.ended = utc_now();
    try {
      tally::train::write_record(last, last.config.record_path);
    } catch (const std::exception& e) {
      print_error(e.what());
    }
  });
}

// Trains, and turns whatever ends it into the record and the exit code.
int run_to_record(Run* run, const Config& config, World* world, Record* record, Stream* stream) {
  int code = 0;
  bool consequence = false;
  try {
    const Ending ending = run->train();
    record->outcome = ending.outcome;
    record->message = ending.message;
    code = exit_code(ending.outcome);
  } catch (const InputError& e) {
    record->outcome = Outcome::error;
    record->message = e.what();
    code = 2;
  } catch (const CommunicationError& e) {
    record->outcome = Outcome::error;
    record->message = e.what();
    code = exit_code(Outcome::error);
    consequence = true;
  } catch (...) {
    const Ending ending = describe_failure(std::current_exception(), config);
    record->outcome = ending.outcome;
    record->message = ending.message;
    code = exit_code(ending.outcome);
  }
  record->device_bytes_peak = stream->bytes_peak();
  record->ended = utc_now();
  const bool stopped = code == 0 || code == 4;
  if (stopped && world->speaks()) print(end_summary(*record));
  if (code == 4 && world->speaks())
    fmt::print(stderr, "tally-train: stopped: {}\n", record->message);
  if (!stopped && world->size() > 1) {
    set_record_of_failure(*world, *record);
    return world->fail(code, record->message, consequence);
  }
  std::string unwritten;
  try {
    run->write_record();
  } catch (const std::exception& e) {
    unwritten = e.what();
  }
  if (!stopped) world->fail(code, record->message);
  if (!unwritten.empty()) return world->fail(code == 0 ? 1 : code, unwritten);
  if (stopped) world->done();
  return code;
}

}  // namespace

void print_error(const char* text) {
  fmt::print(stderr, "tally-train: error: {}\n", text);
}

int run(const Config& config, TimeLimit::Clock::time_point start, World& world) {
  const StopSignals signals;
  const Print notice = world.speaks() ? Print(print_notice) : Print([](const std::string&) {});
  for (const std::string& text : config.notices) notice(text);
  Record record;
  record.config = config;
  record.started = utc_now();
  std::optional<SaveFolder> save_folder;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Run> prepared;
  try {
    require_same_settings(world.meeting(), host_name(), build_settings(build_info()),
                          "start the same build on every rank");
    require_same_settings(world.meeting(), host_name(), run_settings(config),
                          "give every rank the same flags");
    check_kinds_of_parallelism(config);
    if (!config.record_path.empty() && world.speaks())
      check_flag("--record", [&] { check_record_target(config.record_path); });
    const auto resumed = find_checkpoint(config, notice);
    check_model_folders(config, world, resumed);
    SideFiles files = side_files(config, world, resumed);
    DataSources data = open_data(config);
    require_same_settings(world.meeting(), host_name(), {{"dataset", "the dataset", data.content}},
                          "let --data-path name the same dataset on every host");
    take_save_folder(config, world, resumed, &save_folder, notice);
    record.data = data.description;
    record.parameters = config.model.parameters();
    stream = open_device(config, &record);
    // Before processes meet: afterwards others on this host may have taken memory already.
    std::string shortage = memory_shortage(config, record.device);
    auto communicator = open_communicator(config, world, &record);
    prepared =
        std::make_unique<Run>(config, world, std::move(data), stream.get(), std::move(communicator),
                              TimeLimit(config.exit_duration_minutes, start), resumed.has_value(),
                              std::move(files), std::move(shortage), &record);
    // A record that cannot be written is found now, and a run that is killed leaves "running".
    prepared->write_record();
  } catch (const OutOfMemory& e) {
    return world.fail(exit_code(Outcome::out_of_memory),
                      describe_failure(std::current_exception(), config).message);
  } catch (const CommunicationError& e) {
    return world.fail(exit_code(Outcome::error), e.what(), true);
  } catch (const std::exception& e) {
    return world.fail(2, e.what());
  }
  if (world.size() > 1) set_record_of_failure(world, record);
  return run_to_record(prepared.get(), config, &world, &record, stream.get());
}

}  // namespace tally::train

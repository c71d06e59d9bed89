#include "src/train/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

#include "src/checkpoint/checkpoint.h"
#include "src/checkpoint/hugging_face.h"
#include "src/checkpoint/save_folder.h"
#include "src/measure/system_info.h"
#include "src/parallel/communicator.h"
#include "src/train/data_sources.h"
#include "src/train/device.h"
#include "src/train/failures.h"
#include "src/train/host_memory.h"
#include "src/train/step_loop.h"
#include "src/train/summary.h"

namespace tally::train {
namespace {

// Of several processes one speaks.
using Print = std::function<void(const std::string&)>;
void print(const std::string& line) {
  fmt::print("{}\n", line);
  std::fflush(stdout);
}

void print_notice(const std::string& text) {
  fmt::print(stderr, "tally-train: note: {}\n", text);
}

// What a wrong path would otherwise only show when the first checkpoint is written.
std::map<std::string, std::string> tokenizer_files(const Config& c) {
  std::map<std::string, std::string> files;
  const auto add = [&](const char* flag, const char* name, const std::string& path) {
    if (path.empty() || (c.save_dir.empty() && c.save_hf_dir.empty())) return;
    if (access(path.c_str(), R_OK) != 0)
      throw InputError(
          fmt::format("{}: {} cannot be read; it is copied beside checkpoints", flag, path));
    files[name] = path;
  };
  add("--vocab-file", "vocab.json", c.data.vocab_file);
  add("--merge-file", "merges.txt", c.data.merge_file);
  return files;
}

// The checkpoint to resume from.
std::optional<std::string> find_checkpoint(const Config& c, const Print& notice) {
  if (c.load_dir.empty()) return std::nullopt;
  std::optional<std::string> found;
  check_flag("--load", [&] { found = latest_checkpoint(c.load_dir); });
  if (found) return found;
  if (c.exit_on_missing_checkpoint)
    throw InputError(fmt::format("--load: {} holds no checkpoint", c.load_dir));
  notice(
      fmt::format("--load: {} holds no checkpoint yet, training starts from scratch", c.load_dir));
  return std::nullopt;
}

// Where the model comes from and goes to, before anything is allocated. `resumed`: the
// checkpoint that --load gives.
void check_model_folders(const Config& c, const World& world,
                         const std::optional<std::string>& resumed) {
  ParameterTable names;
  register_gpt(c.model, &names);
  TrainingState state;
  if (resumed) {
    check_flag("--load", [&] {
      check_model_weights(*resumed, c.model, names.all());
      const bool wide = c.compute_type() == DType::f64;
      state = check_checkpoint(*resumed, names.all(), wide ? DType::f64 : DType::f32);
    });
  }
  if (state.sequence != 0 && state.sequence != c.sequence)
    throw InputError(fmt::format("--seq-length: {} differs from the checkpoint's {}", c.sequence,
                                 state.sequence));
  if (!c.load_hf_dir.empty())
    check_flag("--load-hf", [&] { check_model_weights(c.load_hf_dir, c.model, names.all()); });
  if (c.save_hf_dir.empty() || !world.speaks()) return;
  if (c.model.positions == Positions::rotary)
    throw InputError("--save-hf: transformers' GPT-2 has no rotary positions: use --save");
  check_flag("--save-hf", [&] { check_hugging_face_target(c.save_hf_dir); });
}

// Of all processes one writes checkpoints.
void take_save_folder(const Config& c, const World& world,
                      const std::optional<std::string>& resumed, std::optional<SaveFolder>* folder,
                      const Print& notice) {
  if (c.save_dir.empty() || !world.speaks()) return;
  check_flag("--save", [&] {
    folder->emplace(c.save_dir);
    check_goes_on(c.save_dir, resumed);
  });
  if (!(*folder)->notice().empty()) notice((*folder)->notice());
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

  void save(int64_t iteration, int64_t consumed, const Record& record,
            const std::map<std::string, std::string>& files) {
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

  void save_to_hugging_face() {
    save_hugging_face(config.save_hf_dir, config.model, config.data, config.load_hf_dir,
                      ParameterState(table), stream);
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

// A run whose input has been checked and whose record has been begun.
class Run {
 public:
  Run(const Config& config, World& world, DataSources data, Stream* stream,
      std::unique_ptr<Communicator> communicator, TimeLimit limit, bool resume,
      std::map<std::string, std::string> files, std::string shortage, Record* record)
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
    Session session(config_, stream_);
    const auto [iteration, consumed] = session.start(resume_, notice_);
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
        session.save(done, samples, record_, files_);
        write_record();
      };
    }
    const LoopParts parts{
        config_,     stream_,          session.table, *session.model, *session.optimizer,
        data_.train, data_.validation, *communicator_};
    StepLoop loop(parts, hooks, &record_);
    Ending ending = loop.run(iteration, consumed);
    record_.device_bytes_peak = stream_.bytes_peak();
    if (!config_.save_hf_dir.empty() && world_.speaks()) session.save_to_hugging_face();
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
  std::map<std::string, std::string> files_;
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
    check_kinds_of_parallelism(config);
    if (!config.record_path.empty() && world.speaks())
      check_flag("--record", [&] { check_record_target(config.record_path); });
    auto files = tokenizer_files(config);
    const auto resumed = find_checkpoint(config, notice);
    check_model_folders(config, world, resumed);
    DataSources data = open_data(config);
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

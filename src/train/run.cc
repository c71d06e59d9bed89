#include "src/train/run.h"

#include <fmt/format.h>

#include <functional>
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
#include "src/train/output.h"
#include "src/train/step_loop.h"
#include "src/train/stop_request.h"
#include "src/train/summary.h"

namespace tally::train {
namespace {

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
    print_line(fmt::format("  saved checkpoint at iteration {} to {}", iteration, path));
  }

  void save_to_hugging_face(const SideFiles& files) {
    save_hugging_face(config.save_hf_dir, config.model, files, ParameterState(table), stream);
    print_line(fmt::format("  saved the model in Hugging Face's layout to {}", config.save_hf_dir));
  }

  const Config& config;
  Stream& stream;
  ParameterTable table;
  std::unique_ptr<Model> model;
  std::unique_ptr<Optimizer> optimizer;
};

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

// One process prints.
Print of_primary(const World& world, const Print& print) {
  return world.is_primary() ? print : Print([](const std::string&) {});
}

// Why `write` failed; empty where it did not.
std::string failure_of(const std::function<void()>& write) {
  try {
    write();
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

// When a failure ends several processes, the record of what is known now says so, whichever it was
// and whoever ends this process first.
void set_record_of_failure(World& world, const Record& record) {
  if (!world.is_primary() || record.config.record_path.empty()) return;
  world.set_on_failure([begun = record](const Failure& f) {
    Record last = begun;
    last.outcome = f.code == exit_code(Outcome::out_of_memory)  ? Outcome::out_of_memory
                   : f.code == exit_code(Outcome::failed_check) ? Outcome::failed_check
                                                                : Outcome::error;
    last.message = fmt::format("rank {} on {}: {}", f.rank, f.host, f.message);
    last.ended = utc_now();
    const std::string unwritten =
        failure_of([&] { tally::train::write_record(last, last.config.record_path); });
    if (!unwritten.empty()) print_error(unwritten);
  });
}

// A run whose input has been checked and whose record has been begun.
class Run {
 public:
  Run(const Config& config, World& world, DataSources data, Stream* stream,
      std::unique_ptr<Communicator> communicator, TimeLimit limit, bool resume, SideFiles files,
      std::string shortage, Record* record)
      : config_(config),
        world_(world),
        print_(of_primary(world, print_line)),
        notice_(of_primary(world, print_note)),
        data_(std::move(data)),
        stream_(*stream),
        communicator_(std::move(communicator)),
        limit_(limit),
        resume_(resume),
        files_(std::move(files)),
        shortage_(std::move(shortage)),
        record_(*record) {}

  Ending train() {
    if (world_.is_primary()) print_text(start_summary(record_));
    if (!shortage_.empty()) throw MemoryShortage(shortage_);
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
    hooks.stop = [&] { return stop_request(limit_); };
    hooks.print = print_;
    hooks.check_weights = [&] { check_weights("while training"); };
    if (!config_.save_dir.empty()) {
      // All processes pause alike; one writes.
      hooks.save = [&](int64_t done, int64_t samples) {
        if (world_.is_primary()) save(&session, done, samples);
      };
    }
    const LoopParts parts{
        config_,     stream_,          session.table, *session.model, *session.optimizer,
        data_.train, data_.validation, *communicator_};
    StepLoop loop(parts, hooks, &record_);
    const int64_t updates = session.optimizer->updates();
    Ending ending = reason_to_stop(loop.run(iteration, consumed), limit_, world_);
    record_.device_bytes_peak = stream_.bytes_peak();
    if (!record_.steps.empty() && session.optimizer->updates() == updates)
      notice_(
          "no step changed the weights: the gradients of each overflowed; a lower "
          "--initial-loss-scale is found sooner");
    if (!config_.save_hf_dir.empty() && world_.is_primary()) session.save_to_hugging_face(files_);
    // What one place does not take, another may: the model has been written first.
    if (!unsaved_.empty())
      throw std::runtime_error("the newest checkpoint is missing: " + unsaved_);
    return ending;
  }

  void write_record() {
    if (!config_.record_path.empty() && world_.is_primary())
      tally::train::write_record(record_, config_.record_path);
  }

 private:
  // A disk may be full for an hour: training goes on, the next save tries again, and the end of the
  // run fails where the last one did.
  void save(Session* session, int64_t iteration, int64_t samples) {
    unsaved_ = failure_of([&] { session->save(iteration, samples, record_, files_); });
    if (!unsaved_.empty())
      warn(fmt::format("the checkpoint of iteration {} is missing: {}", iteration, unsaved_));
    const std::string unwritten = failure_of([&] { write_record(); });
    if (!unwritten.empty()) warn(unwritten);
    // Of a failure from now on, the record holds the steps up to here.
    if (world_.size() > 1) set_record_of_failure(world_, record_);
  }
  void warn(const std::string& text) {
    print_warning(text);
    record_.config.notices.push_back(text);
  }

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
  std::string unsaved_;  // why the newest checkpoint could not be written; empty where it was
  Record& record_;
};

// Writes the record and ends the run together with the other ranks. Returns the exit code.
int end_run(Run* run, World* world, const Record& record, int code, bool consequence) {
  const bool good = code == 0 || code == 4;
  if (!good && world->size() > 1) {
    set_record_of_failure(*world, record);
    return world->fail(code, record.message, consequence);
  }
  const std::string unwritten = failure_of([&] { run->write_record(); });
  if (!good) world->fail(code, record.message);
  if (!unwritten.empty()) {
    world->set_on_failure({});  // it would try the same again
    return world->fail(good ? 1 : code, unwritten);
  }
  if (good) world->done();
  return code;
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
  if ((code == 0 || code == 4) && world->is_primary()) print_line(end_summary(*record));
  if (code == 4 && world->is_primary()) print_stopped(record->message);
  if (code == 0 && !output_failure().empty()) {
    record->outcome = Outcome::error;
    record->message = "all steps are done, but " + output_failure();
    code = exit_code(record->outcome);
  }
  return end_run(run, world, *record, code, consequence);
}

}  // namespace

int run(const Config& config, TimeLimit::Clock::time_point start, World& world) {
  catch_stop_signals();
  const Print notice = of_primary(world, print_note);
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
    if (!config.record_path.empty() && world.is_primary())
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

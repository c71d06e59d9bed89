#include "src/train/commands/run.h"

#include <fmt/format.h>

#include <functional>
#include <stdexcept>
#include <utility>

#include "src/data/text/exit_codes.h"
#include "src/measure/build_info.h"
#include "src/measure/system_info.h"
#include "src/model/architecture.h"
#include "src/parallel/collectives/communicator.h"
#include "src/parallel/control/operations.h"
#include "src/train/commands/skip_train.h"
#include "src/train/feed/data_sources.h"
#include "src/train/run/agreement.h"
#include "src/train/run/checkpoint_writer.h"
#include "src/train/run/device.h"
#include "src/train/run/failure_record.h"
#include "src/train/run/failures.h"
#include "src/train/run/folders.h"
#include "src/train/run/host_memory.h"
#include "src/train/run/output.h"
#include "src/train/run/run_energy.h"
#include "src/train/run/stop_request.h"
#include "src/train/run/summary.h"
#include "src/train/step/explain.h"
#include "src/train/step/mllog.h"
#include "src/train/step/session.h"
#include "src/train/step/step_loop.h"
#include "src/train/step/step_window.h"
#include "src/train/step/witness.h"

namespace tally::train {
namespace {

// Refuses flags that this version does not support.
void check_supported(const Config& c) {
  if (c.reference && c.tensor_parallel * c.pipeline_parallel > 1)
    throw InputError(
        "--reference: the autograd model is parallel in data only: leave out "
        "--tensor-model-parallel-size and --pipeline-model-parallel-size");
}

// Only the primary process prints.
Print of_primary(const World& world, const Print& print) {
  return world.is_primary() ? print : Print([](const std::string&) {});
}

// The message of what `write` throws; empty where it succeeds. Lost connections end the run.
std::string failure_of(const std::function<void()>& write) {
  try {
    write();
    return "";
  } catch (const CommunicationError&) {
    throw;
  } catch (const std::exception& e) {
    return e.what();
  }
}

// A run whose input has been checked and whose record has been started.
class Run {
 public:
  Run(const Config& config, World& world, DataSources data, Stream* stream,
      std::unique_ptr<Communicator> communicator, TimeLimit limit, StartingPoint start,
      SideFiles files, std::string shortage, FailureRecord* of_failure, Record* record)
      : config_(config),
        world_(world),
        print_(of_primary(world, print_line)),
        notice_(of_primary(world, print_note)),
        data_(std::move(data)),
        stream_(*stream),
        communicator_(std::move(communicator)),
        mesh_(*communicator_, mesh_shape(config)),
        limit_(limit),
        start_(std::move(start)),
        files_(std::move(files)),
        shortage_(std::move(shortage)),
        of_failure_(*of_failure),
        record_(*record) {
    if (!config.save_dir.empty() && writes())
      writer_ = std::make_unique<CheckpointWriter>(
          config.save_dir, config.model, files_,
          save_group(config, world, ExchangeKind::background), config.local_size, notice_);
  }

  void set_mllog(std::unique_ptr<MlLog> log) { mllog_ = std::move(log); }

  // Observes the steps of --profile-start to --profile-stop.
  void set_window(std::unique_ptr<StepWindow> window) { window_ = std::move(window); }

  // Traces the steps of --explain.
  void set_profiler(std::unique_ptr<DeviceProfiler> profiler) { profiler_ = std::move(profiler); }

  Ending train() {
    if (world_.is_primary()) print_text(start_summary(record_));
    if (!shortage_.empty()) throw MemoryShortage(shortage_);
    stream_.on_long_autotune = [this] {
      print_(
          "  tuning     timing algorithms for this GPU and these sizes: "
          "a minute or two, the first time");
    };
    Session session(config_, stream_, mesh_);
    note_messages();
    const Progress from = start(&session);
    require_same_settings(world_.meeting(), host_name(),
                          {{"iteration", "the number of steps done before (--load)",
                            fmt::format("{}", from.iteration)}},
                          "let --load name the same checkpoint on every host");
    const auto check_weights = [&](const char* when) {
      // Replicas that share the optimizer's state have only the weights in common.
      const bool master = session.optimizer && !session.sharding;
      check_same_weights(world_, mesh_.shape(), stream_,
                         master ? session.buffers().master : session.table.weights(), when);
    };
    check_weights("at the start");
    record_.first_iteration = from.iteration;
    of_failure_.update(record_);
    if (from.iteration > 0 && !config_.skip_train)
      print_(fmt::format("  resumed    after {} steps, from {}{}", from.iteration, config_.load_dir,
                         start_.optimizer ? "" : ", without its optimizer's state"));
    if ((!start_.resumes || config_.skip_train) &&
        (start_.checkpoint || !config_.load_hf_dir.empty()))
      print_(fmt::format("  weights    {}", start_.checkpoint.value_or(config_.load_hf_dir)));
    if (config_.skip_train) {
      evaluate_once(config_, session, data_, mesh_, from.iteration, print_, &record_);
      return {};
    }
    if (config_.witness_steps > 0) witness(from);
    LoopHooks hooks;
    hooks.stop = [&] {
      if (writer_) report(writer_->finished());
      return stop_request(limit_);
    };
    hooks.print = print_;
    if (mllog_) {
      hooks.evaluating = [&](const Progress& done) { mllog_->evaluating(done); };
      hooks.evaluated = [&](const Progress& done, double loss) { mllog_->evaluated(done, loss); };
    }
    hooks.recorded = [&] {
      record_.device_bytes_peak = stream_.bytes_peak();
      if (window_) static_cast<WindowFacts&>(record_) = window_->facts();
      of_failure_.update(record_);
    };
    hooks.agree_on_algorithms = [&] {
      agree_on_algorithms(world_.meeting(), stream_, record_.device_info.name);
    };
    hooks.check_weights = [&] { check_weights("while training"); };
    if (!config_.save_dir.empty()) hooks.save = [&](const Progress& done) { save(&session, done); };
    std::string no_energy;
    const auto energy = open_energy(config_, record_.device, &no_energy);
    const LoopParts parts{
        config_,     stream_,          session.table, session.stage_list(), *session.optimizer,
        data_.train, data_.validation, mesh_,         data_.test,           window_.get(),
        energy.get()};
    StepLoop loop(parts, hooks, &record_);
    const int64_t updates = session.optimizer->updates();
    if (mllog_) mllog_->start(record_, from);
    Ending ending = reason_to_stop(loop.run(from), limit_, world_);
    if (mllog_) mllog_->stop(loop.done(), loop.succeeded());
    if (window_) static_cast<WindowFacts&>(record_) = window_->facts();
    if (config_.policy.deterministic)
      record_.weights_hash = weights_hash(world_, mesh_.shape(), stream_, session.table.weights());
    record_.energy = gather_energy(world_.meeting(), energy.get(), no_energy, record_);
    if (writer_) {
      const TaskScope task(world_.meeting().operations(), "writes a checkpoint");
      report(writer_->wait());
    }
    record_.device_bytes_peak = stream_.bytes_peak();
    if (!record_.steps.empty() && session.optimizer->updates() == updates)
      note(
          "no step changed the weights: the gradients of each overflowed; start with a lower "
          "--initial-loss-scale");
    if (!config_.save_hf_dir.empty() && writes()) {
      const TaskScope task(world_.meeting().operations(), "writes the model");
      session.save_to_hugging_face(files_, save_group(config_, world_, ExchangeKind::main));
      print_(fmt::format("  saved the model in Hugging Face's format to {}", config_.save_hf_dir));
    }
    if (profiler_ && ending.outcome == Outcome::completed) explain_steps_of(loop);
    // If one path cannot be written, another may: the model has been written first.
    if (mllog_ && !mllog_->failure().empty()) throw std::runtime_error(mllog_->failure());
    if (!unsaved_.empty())
      throw std::runtime_error("the newest checkpoint is missing: " + unsaved_);
    return ending;
  }

  // Called before a failure ends this process: a checkpoint that it alone is writing is finished,
  // and the record of the failure has all that is known.
  void finish() {
    if (writer_ && !save_group(config_, world_, ExchangeKind::main).divided())
      report(writer_->wait());
    of_failure_.update(record_);
  }

  void write_record() {
    if (config_.record_path.empty() || !world_.is_primary()) return;
    world_.write_unless_ending(
        [this] { tally::train::write_record(record_, config_.record_path); });
  }

 private:
  bool writes() const {
    return world_.is_primary() || save_group(config_, world_, ExchangeKind::main).divided();
  }
  Progress start(Session* session) {
    const TaskScope task(world_.meeting().operations(), "reads or makes the weights");
    return session->start(start_, [this](const std::string& text) { note(text); });
  }
  void witness(const Progress& from) {
    if (from.iteration > 0)
      return note("--witness-steps: the run resumes another one: its first steps have no witness");
    print_(fmt::format("  witness    {} step{} of the reference model in float64 on the CPU",
                       config_.witness_steps, config_.witness_steps == 1 ? "" : "s"));
    record_.witness = witness_losses(config_, data_.train, start_);
  }
  // Comes last, because the steps that it does change the weights.
  void explain_steps_of(StepLoop& loop) {
    if (record_.steps.empty() || loop.done().iteration < explain_steps)
      return note("--explain: there are fewer steps than it does again: nothing is explained");
    print_("  explain    some steps are done again and traced, and their GEMMs timed alone");
    const TaskScope task(world_.meeting().operations(), "explains the time of a step");
    std::string why;
    record_.explanation = explain({loop, *profiler_, stream_, world_.meeting()}, &why);
    if (!why.empty()) note(why);
  }
  // The routes of messages, which the GPUs decide.
  void note_messages() {
    if (world_.size() == 1) return;
    record_.peer_kernels = mesh_.tensor().uses_peer_kernels();
    if (record_.peer_kernels)
      print_("  tensor parallel messages  by kernels that read and write the other GPUs' memory");
    if (!config_.skip_train) note_gradients();
    of_failure_.update(record_);
  }
  void note_gradients() {
    record_.copy_engines = mesh_.replicas().uses_copy_engines();
    if (!config_.gradient_bucket)
      record_.gradient_bucket =
          config_.distributed_optimizer ? overlapped_bucket : usual_bucket(mesh_.replicas());
    if (record_.copy_engines)
      print_("  gradients  carried by copy engines, overlapped with the backward pass");
  }
  // A disk may be full for an hour. Training continues, the next save tries again, and the run
  // fails only if the last save failed.
  void save(Session* session, const Progress& done) {
    if (!writer_) return;
    const TaskScope task(world_.meeting().operations(), "writes a checkpoint");
    report(writer_->wait());
    writer_->start(session->state(done, record_), session->parameters(), stream_);
    report(writer_->finished());
  }
  void report(const std::optional<SaveResult>& saved) {
    if (!saved) return;
    unsaved_ = saved->error;
    if (unsaved_.empty()) {
      print_(
          fmt::format("  saved checkpoint at iteration {} to {}", saved->iteration, saved->folder));
    } else {
      warn(
          fmt::format("the checkpoint of iteration {} is missing: {}", saved->iteration, unsaved_));
    }
    const std::string unwritten = failure_of([&] { write_record(); });
    if (!unwritten.empty()) warn(unwritten);
    of_failure_.update(record_);
  }
  void note(const std::string& text) {
    notice_(text);
    record_.notices.push_back(text);
  }
  void warn(const std::string& text) {
    if (world_.is_primary()) print_warning(text);
    record_.notices.push_back(text);
  }

  const Config& config_;
  World& world_;
  const Print print_, notice_;
  DataSources data_;
  Stream& stream_;
  std::unique_ptr<Communicator> communicator_;
  const Mesh mesh_;
  TimeLimit limit_;
  StartingPoint start_;
  SideFiles files_;
  std::unique_ptr<StepWindow> window_;        // null without --profile-start, and on ranks but 0
  std::unique_ptr<DeviceProfiler> profiler_;  // null without --explain
  std::unique_ptr<MlLog> mllog_;              // null without --mllog, and on ranks but 0
  std::string shortage_;
  std::string unsaved_;  // why the newest checkpoint could not be written; empty where it was
  FailureRecord& of_failure_;
  Record& record_;
  std::unique_ptr<CheckpointWriter> writer_;  // null where this process writes none
};

// The other ranks' knowledge of a run's end.
enum class Known : uint8_t { all, nothing, maybe };  // maybe: it may be the consequence of theirs

// Writes the record and ends the run together with the other ranks. Returns the exit code.
int end_run(Run* run, World* world, const Record& record, Known known) {
  const int code = exit_code(record.outcome);
  const bool good = known == Known::all && ended_in_order(code);
  if (!good) run->finish();
  if (!good && world->size() > 1) return world->fail(code, record.message, known == Known::maybe);
  const std::string unwritten = failure_of([&] { run->write_record(); });
  if (!good) world->fail(code, record.message);
  if (!unwritten.empty()) {
    world->set_on_failure({});  // it would do the same again
    return world->fail(ended_in_order(code) ? exit_error : code, unwritten);
  }
  if (good) world->done();
  return code;
}

// Trains, and turns every outcome into the record and the exit code.
int run_to_record(Run* run, const Config& config, World* world, Record* record, Stream* stream) {
  Ending ending;
  Known known = Known::nothing;
  try {
    ending = run->train();
    known = Known::all;
  } catch (const CommunicationError& e) {
    ending = {Outcome::error, e.what()};
    known = Known::maybe;
  } catch (...) {
    ending = describe_failure(std::current_exception(), config);
  }
  record->outcome = ending.outcome;
  record->message = ending.message;
  const int code = exit_code(ending.outcome);
  record->device_bytes_peak = stream->bytes_peak();
  record->ended = utc_now();
  if (known == Known::all && world->is_primary()) {
    print_text(measurements_summary(*record) + end_summary(*record) + "\n");
    if (code == exit_stopped) print_stopped(record->message);
  }
  if (code == exit_completed && !output_failure().empty()) {
    record->outcome = Outcome::error;
    record->message = "all steps are done, but " + output_failure();
  }
  return end_run(run, world, *record, known);
}

}  // namespace

int run(const Config& config, TimeLimit::Clock::time_point start, World& world) {
  catch_stop_signals();
  const Print notice = of_primary(world, print_note);
  for (const std::string& text : config.notices) notice(text);
  Record record = begin_record(config);
  const Print recorded_notice = [&](const std::string& text) {
    notice(text);
    record.notices.push_back(text);
  };
  std::optional<SaveFolder> save_folder;
  std::unique_ptr<Stream> stream;
  std::optional<FailureRecord> of_failure;
  std::unique_ptr<Run> prepared;
  try {
    require_same_settings(world.meeting(), host_name(), build_settings(build_info()),
                          "start the same build on every rank");
    require_same_settings(world.meeting(), host_name(), run_settings(config),
                          "give every rank the same flags");
    check_supported(config);
    if (!config.record_path.empty() && world.is_primary())
      check_flag("--record", [&] { check_record_target(config.record_path); });
    std::unique_ptr<MlLog> mllog;
    if (!config.mllog_path.empty() && world.is_primary())
      check_flag("--mllog", [&] { mllog = std::make_unique<MlLog>(config); });
    StartingPoint from = find_start(config, recorded_notice);
    check_model_folders(config, world, from, recorded_notice);
    SideFiles files = side_files(config, world, from);
    DataSources data = [&] {
      const TaskScope task(world.meeting().operations(), "opens the data");
      return open_data(config, from.checkpoint.value_or(config.load_hf_dir));
    }();
    files.classes = data.classes;
    for (const std::string& note : data.notes) recorded_notice(note);
    require_same_settings(world.meeting(), host_name(), {{"dataset", "the dataset", data.content}},
                          "let --data-path name the same dataset on every host");
    take_save_folder(config, world, from, &save_folder, recorded_notice);
    record.data = data.description;
    record.data_content = data.training_content;
    note_differences(record, from, recorded_notice);
    record.parameters = parameter_count(config.model);
    OpenDevice device = open_device(config);
    stream = std::move(device.stream);
    static_cast<DeviceFacts&>(record) = device.facts;
    for (const std::string& text : {kernel_notice(device.facts), threads_notice(device.facts)})
      if (!text.empty()) notice(text);
    // The check comes before processes connect: afterwards others on this host may have taken
    // memory already.
    std::string shortage = memory_shortage(config, record.device);
    // This comes before another rank can be further than this one.
    of_failure.emplace(world, record);
    OpenCommunicator open = open_communicator(config, world, record.device);
    static_cast<ProcessFacts&>(record) = open.facts;
    prepared = std::make_unique<Run>(
        config, world, std::move(data), stream.get(), std::move(open.communicator),
        TimeLimit(config.exit_duration_minutes, start), std::move(from), std::move(files),
        std::move(shortage), &*of_failure, &record);
    prepared->set_mllog(std::move(mllog));
    if (config.profile_window.first > 0 && world.is_primary())
      prepared->set_window(open_step_window(config, *stream, recorded_notice));
    if (config.explain) prepared->set_profiler(open_explain_profiler(*stream));
    // A record that cannot be written is found now, and a run that is killed leaves a record that
    // says "running".
    prepared->write_record();
    of_failure->update(record);
  } catch (const OutOfMemory& e) {
    return world.fail(exit_code(Outcome::out_of_memory),
                      describe_failure(std::current_exception(), config).message);
  } catch (const CommunicationError& e) {
    return world.fail(exit_code(Outcome::error), e.what(), true);
  } catch (const std::exception& e) {
    return world.fail(exit_bad_input, e.what());
  }
  return run_to_record(prepared.get(), config, &world, &record, stream.get());
}

}  // namespace tally::train

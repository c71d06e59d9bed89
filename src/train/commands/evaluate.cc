#include "src/train/commands/evaluate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "src/checkpoint/model_weights.h"
#include "src/config/json_values.h"
#include "src/data/text/exit_codes.h"
#include "src/data/text/output_file.h"
#include "src/data/text/text_input.h"
#include "src/data/text/utf8.h"
#include "src/data/tokenizers/tokenizer.h"
#include "src/measure/build_info.h"
#include "src/measure/record.h"
#include "src/measure/system_info.h"
#include "src/train/run/agreement.h"
#include "src/train/run/device.h"
#include "src/train/run/failures.h"
#include "src/train/run/folders.h"
#include "src/train/run/host_memory.h"
#include "src/train/run/output.h"
#include "src/train/run/stop.h"
#include "src/train/run/stop_request.h"
#include "src/train/score/encoder_evaluation.h"
#include "src/train/score/evaluation.h"
#include "src/train/score/steady_passes.h"

namespace tally::train {
namespace {

struct Result {
  int64_t tokens = 0, scored = 0, blocks = 0;
  double loss = 0;
  SteadyPasses measured;
  std::optional<double> accuracy;  // the reference model does not count
  double perplexity() const { return std::exp(loss); }
  double seconds() const { return measured.seconds / static_cast<double>(measured.passes); }
  double rate() const { return static_cast<double>(scored) / seconds(); }
};

std::vector<int32_t> tokens_of_text(const Config& c, const Print& notice) {
  constexpr size_t kBlock = size_t{1} << 20;
  TextInput input(c.text);
  std::string text, block;
  while (input.read(kBlock, &block)) text += block;
  const auto tokenizer = make_tokenizer(c.data.tokenizer, c.data.vocab_file, c.data.merge_file);
  const size_t valid = valid_utf8_prefix(text);
  if (tokenizer->utf8() && valid != text.size())
    notice(fmt::format(
        "--text: {} is not valid UTF-8 from byte {} on: invalid bytes are evaluated as U+FFFD",
        input.name(), valid));
  std::vector<int32_t> tokens = tokenizer->before_text();
  tokenizer->make_encoder()->encode(text, &tokens);
  const std::vector<int32_t> after = tokenizer->after_text();
  tokens.insert(tokens.end(), after.begin(), after.end());
  return tokens;
}

// All documents in their order.
std::vector<int32_t> tokens_of_dataset(const std::string& prefix) {
  const IndexedDataset dataset(prefix);
  std::vector<int32_t> tokens(static_cast<size_t>(dataset.tokens()));
  int64_t at = 0;
  for (int64_t i = 0; i < dataset.sequences(); ++i) {
    dataset.read(i, 0, dataset.length(i), tokens.data() + at);
    at += dataset.length(i);
  }
  return tokens;
}

std::vector<int32_t> read_tokens(const Config& c, const Print& notice) {
  const std::string name = c.text.empty() ? c.data.paths.front() : c.text;
  std::vector<int32_t> tokens =
      c.text.empty() ? tokens_of_dataset(name) : tokens_of_text(c, notice);
  if (tokens.size() < 2)
    throw InputError(
        fmt::format("{}: a text of {} tokens has none to predict", name, tokens.size()));
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i] >= 0 && tokens[i] < c.model.vocabulary) continue;
    throw InputError(fmt::format(
        "{}: token {} is {}, and the model's vocabulary has {} tokens: the text must be tokenized "
        "by the model's tokenizer",
        name, i, tokens[i], c.model.vocabulary));
  }
  return tokens;
}

// The name of the data that was evaluated on.
std::string data_name(const Config& c) {
  if (c.data.mock) return "random tokens (--mock-data)";
  return c.text.empty() ? c.data.paths.front() : c.text;
}

Result evaluate_tokens(const Config& c, std::vector<int32_t> tokens, Stream& stream,
                       const Mesh& mesh, World& world) {
  ParameterTable table;
  register_model(c.model, &table);
  table.allocate(stream, c.compute_type());
  check_flag(evaluated_flag(c),
             [&] { load_model_weights(c.model_dir, c.model, ParameterState(table), stream); });
  const auto model =
      c.reference ? make_reference_gpt(c, table, stream) : make_gpt(c, table, stream);
  Result result;
  result.tokens = static_cast<int64_t>(tokens.size());
  const auto blocks = make_text_blocks(std::move(tokens), c.sequence, c.stride);
  result.blocks = blocks->blocks();
  result.scored = blocks->targets();
  const auto bytes = static_cast<size_t>(c.micro_batch * c.sequence) * sizeof(int32_t);
  struct Memory {
    Memory(Stream& s, size_t n, const char* what) : stream(s), data(s.allocate(n, what)) {}
    ~Memory() { stream.release(data); }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    Stream& stream;
    void* data;
  };
  const Memory ids(stream, bytes, "token ids"), targets(stream, bytes, "target ids");
  const Memory state(stream, sizeof(StepState), "result of an evaluation");
  const Memory correct(stream, sizeof(double), "result of an evaluation");
  Batch batch;
  batch.ids = Tensor(ids.data, DType::i32, {c.micro_batch, c.sequence});
  batch.labels[0] = Tensor(targets.data, DType::i32, {c.micro_batch, c.sequence});
  const auto activations = model->make_activations();
  // The first pass loads kernels and tunes GEMMs, which does not belong to the time.
  stream.fill_zero(ids.data, bytes);
  stream.fill_zero(targets.data, bytes);
  model->evaluate(batch, {1, {}, static_cast<StepState*>(state.data)}, *activations);
  stream.synchronize();
  const auto timed_pass = [&] {
    const auto start = std::chrono::steady_clock::now();
    result.loss = mean_loss(
        stream,
        [&](const Batch& filled, const Pass& pass) {
          throw_if_signalled();
          model->evaluate(filled, pass, *activations);
        },
        batch, *blocks, static_cast<StepState*>(state.data), mesh,
        c.reference ? nullptr : static_cast<double*>(correct.data));
    if (!c.reference) {
      double counted = 0;
      stream.copy(&counted, correct.data, sizeof counted);
      stream.synchronize();
      result.accuracy = counted / static_cast<double>(result.scored);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  result.measured = repeat_until_steady(timed_pass(), world, timed_pass);
  return result;
}

// `results`: null before the end, and where it failed.
nlohmann::ordered_json record_of(const Record& record, const nlohmann::ordered_json& results) {
  const Config& c = record.config;
  return {{"schema", "tally-train-evaluation/1"},
          {"outcome", outcome_name(record.outcome)},
          {"message", text_or_null(record.message)},
          {"started", record.started},
          {"ended", text_or_null(record.ended)},
          {"command_line", c.command_line},
          {"model", c.model_dir},
          {"text", data_name(c)},
          {"precision", precision_name(c.precision)},
          {"fp8_format", fp8_format_name(c.fp8.format)},
          {"fp8_recipe", text_or_null(c.fp8.recipe_name())},
          {"seq_length", c.sequence},
          {"micro_batch_size", c.micro_batch},
          {"data_parallel_size", c.data_parallel},
          {"stride",
           c.model.language_model() ? nlohmann::ordered_json(c.stride) : nlohmann::ordered_json()},
          {"eval_mode", eval_mode_name(c.eval_mode)},
          {"encoder", configuration_json(record)["encoder"]},
          {"environment", environment_json(record)},
          {"results", results}};
}

// The results that are printed and recorded.
struct Report {
  double loss = 0;
  std::string line;
  nlohmann::ordered_json results;
  std::string predictions;  // filled for --predictions
};

Report report_of_text(const Config& c, std::vector<int32_t> tokens, Stream& stream,
                      const Mesh& mesh, World& world) {
  const Result r = evaluate_tokens(c, std::move(tokens), stream, mesh, world);
  return {r.loss,
          fmt::format("loss: {:.6E} | perplexity: {:.6E} | {}scored tokens: {} | blocks: {} of {} "
                      "tokens, stride {} | tokens per second: {:.1f} in {:.3g} s",
                      r.loss, r.perplexity(),
                      r.accuracy ? fmt::format("accuracy: {:.4f} | ", *r.accuracy) : "", r.scored,
                      r.blocks, c.sequence, c.stride, r.rate(), r.measured.seconds),
          {{"loss", r.loss},
           {"perplexity", r.perplexity()},
           {"accuracy", r.accuracy ? nlohmann::ordered_json(*r.accuracy) : nullptr},
           {"tokens", r.tokens},
           {"scored_tokens", r.scored},
           {"blocks", r.blocks},
           {"seconds", r.seconds()},
           {"tokens_per_second", r.rate()},
           {"measured", {{"seconds", r.measured.seconds}, {"passes", r.measured.passes}}}},
          ""};
}

Report report_of_encoder(const Config& c, const EncoderExam& exam, Stream& stream, const Mesh& mesh,
                         World& world) {
  const EncoderEvaluation e = evaluate_encoder(c, exam, stream, mesh, world);
  const double rate = static_cast<double>(e.samples) / e.seconds;
  Report report{e.loss, "", nlohmann::ordered_json::object(), e.predictions};
  if (c.model.task != Task::question_answering) {
    report.line = fmt::format("loss: {:.6E} | ", e.loss);
    report.results["loss"] = e.loss;
  }
  for (const auto& [name, value] : e.metrics) {
    report.line += fmt::format("{}: {:.4f} | ", name, value);
    report.results[name] = value;
  }
  report.line += fmt::format("samples: {} of {} tokens | samples per second: {:.1f} in {:.3g} s",
                             e.samples, e.tokens, rate, e.measured.seconds);
  if (c.time_phases)
    report.line += fmt::format(
        "\nphases, ms: evaluation {:.3f}, gather {:.3f}, metric {:.3f}, {} {:.3f}",
        e.phases.evaluation * 1e3, e.phases.gather * 1e3, e.phases.metric * 1e3,
        c.eval_mode == EvalMode::gather ? "broadcast" : "reduce", e.phases.exchange * 1e3);
  report.results["samples"] = e.samples;
  report.results["tokens"] = e.tokens;
  report.results["seconds"] = e.seconds;
  report.results["samples_per_second"] = rate;
  report.results["measured"] = {{"seconds", e.measured.seconds}, {"passes", e.measured.passes}};
  report.results["phases"] = {
      {"evaluation_seconds", e.phases.evaluation},
      {"gather_seconds", e.phases.gather},
      {"metric_seconds", e.phases.metric},
      {c.eval_mode == EvalMode::gather ? "broadcast_seconds" : "reduce_seconds",
       e.phases.exchange}};
  return report;
}

// Throws where the model's weights do not fit, or lack the head of its task.
void check_model(const Config& c) {
  ParameterTable names;
  register_model(c.model, &names);
  const auto missing = check_model_weights(c.model_dir, c.model, names.all());
  if (!missing.empty())
    throw std::runtime_error(
        fmt::format("{} has no weights of {}, so that it cannot do this task: name a model that "
                    "was trained for "
                    "it, or another --task",
                    c.model_dir, fmt::join(missing, ", ")));
}

struct Work {
  std::function<Report(Stream&, const Mesh&, World&)> on_device;
  std::string content;  // the data's description, which all processes must have alike
};

// Reads the data; what is left to do on the device.
Work prepare_evaluation(const Config& c, const Print& notice) {
  if (!c.model.language_model()) {
    EncoderExam exam;
    check_flag("--data-path", [&] { exam = open_encoder_exam(c); });
    for (const std::string& note : exam.notes) notice(note);
    return {[&c, exam](Stream& stream, const Mesh& mesh, World& world) {
              return report_of_encoder(c, exam, stream, mesh, world);
            },
            fmt::format("{} samples", exam.source->samples_per_epoch())};
  }
  std::vector<int32_t> tokens;
  check_flag(c.text.empty() ? "--data-path" : "--text", [&] { tokens = read_tokens(c, notice); });
  const std::string content =
      fmt::format("{} tokens, hash {:016x}", tokens.size(),
                  XXH3_64bits(tokens.data(), tokens.size() * sizeof(int32_t)));
  return {[&c, tokens](Stream& stream, const Mesh& mesh, World& world) {
            return report_of_text(c, tokens, stream, mesh, world);
          },
          content};
}

// Whether a file holds predictions: lines of classes, or an object of answers.
bool holds_predictions(const std::string& path) {
  const std::string line = R"({"sample":)";
  std::ifstream file(path, std::ios::binary);
  std::string beginning(line.size(), ' ');
  file.read(beginning.data(), static_cast<std::streamsize>(beginning.size()));
  if (beginning == line) return true;
  if (beginning.front() != '{') return false;
  file.clear();
  file.seekg(0);
  const auto answers = nlohmann::json::parse(file, nullptr, false);
  return answers.is_object() &&
         std::all_of(answers.begin(), answers.end(),
                     [](const nlohmann::json& answer) { return answer.is_string(); });
}

// Predictions replace predictions, and nothing else.
void check_predictions_target(const std::string& path) {
  namespace fs = std::filesystem;
  if (fs::is_directory(path))
    throw std::runtime_error(fmt::format("'{}' is a directory: name a file", path));
  if (!destination_of(path).replaced || !fs::exists(path)) return;
  if (fs::file_size(path) > 0 && !holds_predictions(path))
    throw std::runtime_error(
        fmt::format("'{}' exists but does not hold predictions: it would be replaced; remove it or "
                    "give another file",
                    path));
}

// A file that is complete or not there. Made before the work, so that a path that cannot be written
// is found at once.
class PredictionsFile {
 public:
  explicit PredictionsFile(const std::string& path) : to_(destination_of(path)) {
    check_predictions_target(path);
    if (!to_.replaced) return;
    check_predictions_target(to_.path + ".tmp");
    file_.emplace(to_.path + ".tmp", true);
  }
  void write(const std::string& text) {
    if (!file_) return write_into(to_.path, text);
    file_->append(text.data(), text.size());
    file_->sync_and_keep();
    rename_durably(file_->path(), to_.path);
  }

 private:
  const Destination to_;
  std::optional<OutputFile> file_;  // renamed when it is complete
};

// An evaluation whose flags have been checked.
class EvaluationRun {
 public:
  EvaluationRun(const Config& config, World& world)
      : config_(config),
        world_(world),
        notice_([&world](const std::string& text) {
          if (world.is_primary()) print_note(text);
        }),
        record_(begin_record(config)) {}

  // Whether errors from now on are those of the run and not of its input.
  bool checked() const { return checked_; }

  // The record of an evaluation that failed, if errors are those of the run.
  void record_failure(const Ending& ending) const {
    if (!checked_) return;
    Record failed = record_;
    failed.outcome = ending.outcome;
    failed.message = ending.message;
    failed.ended = utc_now();
    try {
      write_record(failed, results_);
    } catch (const std::runtime_error& e) {
      print_error(e.what());
    }
  }

  void run() {
    for (const std::string& text : config_.notices) notice_(text);
    require_same_settings(world_.meeting(), host_name(), build_settings(build_info()),
                          "start the same build on every rank");
    require_same_settings(world_.meeting(), host_name(), run_settings(config_),
                          "give every rank the same flags");
    check_targets();
    check_flag(evaluated_flag(config_), [&] { check_model(config_); });
    note_checksums(evaluated_flag(config_), config_.model_dir, notice_);
    const Work work = prepare_evaluation(config_, notice_);
    // A signal ends the evaluation in order from here on. Before, while a long text is tokenized
    // and there is no record, it has its default action. All ranks are here before one goes on.
    catch_stop_signals();
    require_same_settings(world_.meeting(), host_name(), {{"dataset", "the dataset", work.content}},
                          "let --data-path or --text name the same data on every host");
    const OpenDevice device = open_device(config_);
    static_cast<DeviceFacts&>(record_) = device.facts;
    for (const std::string& text : {kernel_notice(device.facts), threads_notice(device.facts)})
      if (!text.empty()) notice_(text);
    // A record that cannot be written is found now, and an evaluation that is killed leaves a
    // record that says "running".
    check_flag("--record", [&] { write_record(record_, nullptr); });
    checked_ = true;
    // The check comes before processes connect: afterwards others on this host may have taken
    // memory already.
    const std::string shortage = memory_shortage(config_, record_.device);
    // When a failure ends several processes, rank 0 writes the record, whichever rank failed.
    // Another rank cannot be further than this one yet.
    if (world_.size() > 1)
      world_.set_on_failure([this](const Failure& f) { record_failure(describe_failure(f)); });
    const OpenCommunicator open = open_communicator(config_, world_, record_.device);
    world_.write_unless_ending([&] { static_cast<ProcessFacts&>(record_) = open.facts; });
    if (!shortage.empty()) throw MemoryShortage(shortage);
    const Mesh mesh(*open.communicator, mesh_shape(config_));
    report(work.on_device(*device.stream, mesh, world_));
  }

 private:
  void check_targets() {
    if (!world_.is_primary()) return;
    if (!config_.record_path.empty())
      check_flag("--record", [&] { check_record_target(config_.record_path); });
    if (!config_.predictions_path.empty())
      check_flag("--predictions", [&] {
        predictions_ = std::make_unique<PredictionsFile>(config_.predictions_path);
      });
  }
  void report(const Report& report) {
    if (!std::isfinite(report.loss))
      throw CheckFailed(fmt::format("{}: the loss is not finite", config_.model_dir));
    if (!world_.is_primary()) return;
    world_.write_unless_ending([&] {
      results_ = report.results;  // they are known, whatever fails from here on
      record_.outcome = Outcome::completed;
      record_.ended = utc_now();
    });
    print_line(fmt::format("evaluation of {} | {}", config_.model_dir, report.line));
    if (predictions_) predictions_->write(report.predictions);
    write_record(record_, results_);
    if (const std::string lost = output_failure(); !lost.empty()) throw std::runtime_error(lost);
  }

  void write_record(const Record& record, const nlohmann::ordered_json& results) const {
    if (config_.record_path.empty() || !world_.is_primary()) return;
    world_.write_unless_ending(
        [&] { write_json(record_of(record, results), config_.record_path); });
  }

  const Config& config_;
  World& world_;
  const Print notice_;
  Record record_;
  nlohmann::ordered_json results_;                // null until they are known
  std::unique_ptr<PredictionsFile> predictions_;  // on rank 0, where they are asked for
  bool checked_ = false;
};

}  // namespace

int evaluate(const Config& config, World& world) {
  EvaluationRun run(config, world);
  try {
    run.run();
    world.done();
    return exit_completed;
  } catch (const CommunicationError& e) {
    return world.fail(exit_code(Outcome::error), e.what(), true);
  } catch (...) {
    Ending ending = describe_failure(std::current_exception(), config);
    if (!run.checked() && ending.outcome == Outcome::error) ending.outcome = Outcome::bad_input;
    if (world.size() == 1) run.record_failure(ending);
    return world.fail(exit_code(ending.outcome), ending.message);
  }
}

}  // namespace tally::train

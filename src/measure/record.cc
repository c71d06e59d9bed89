#include "src/measure/record.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "src/config/settings.h"
#include "src/data/text/exit_codes.h"
#include "src/data/text/output_file.h"
#include "src/measure/build_info.h"
#include "src/measure/flops.h"
#include "src/measure/peak_rates.h"
#include "src/measure/record_energy.h"
#include "src/measure/record_explanation.h"
#include "src/measure/system_info.h"

namespace tally::train {
namespace {

using json = nlohmann::ordered_json;

double real_tokens(const Record& r) {
  return r.tokens_per_sample > 0 ? r.tokens_per_sample : static_cast<double>(r.config.sequence);
}

// The phases of the steps after the warm-up.
json phases_json(const Record& r) {
  json out = json::object();
  const auto statistics = phase_statistics(r.phases, first_steady_step(r));
  for (size_t k = 0; k < step_phases; ++k) {
    const PhaseStatistics& s = statistics[k];
    out[step_phase_names[k]] = {
        {"mean_seconds", s.mean}, {"min_seconds", s.min}, {"max_seconds", s.max}};
  }
  return out;
}

json profile_json(const Record& r) {
  const DeviceProfile& p = r.profile->profile;
  const bool ran = p.kernel_seconds > 0;  // a kernel, whose resources a mean can have
  json kernels = json::array();
  for (const KernelTime& k : p.kernels)
    kernels.push_back({{"name", k.name},
                       {"calls", k.calls},
                       {"seconds", k.seconds},
                       {"mean_seconds", k.seconds / static_cast<double>(k.calls)},
                       {"min_seconds", k.min_seconds},
                       {"max_seconds", k.max_seconds},
                       {"share", k.share}});
  return {{"first_iteration", r.config.profile_window.first},
          {"last_iteration", r.config.profile_window.second},
          {"directory", r.config.profile_dir},
          {"seconds", p.seconds},
          {"busy_seconds", p.busy_seconds},
          {"busy_fraction", p.busy_fraction()},
          {"kernel_seconds", p.kernel_seconds},
          {"calls", p.calls},
          {"lost_records", r.profile->lost},
          {"mean_registers", ran ? json(p.mean_registers) : json(nullptr)},
          {"mean_shared_bytes", ran ? json(p.mean_shared_bytes) : json(nullptr)},
          {"kernels", kernels}};
}

json percent_json(const PercentOfPeak& percent) {
  json out = json::object();
  for (size_t column = 0; column < counter_columns; ++column)
    out[counter_column_list()[column].name] = value_or_null(percent[column]);
  return out;
}

json counters_json(const Record& r) {
  const CounterResult& c = *r.counters;
  json metrics = json::object();
  for (size_t column = 0; column < counter_columns; ++column)
    metrics[counter_column_list()[column].name] =
        c.selection.index[column] ? json(c.selection.metrics[*c.selection.index[column]])
                                  : json(nullptr);
  json kernels = json::array();
  for (const KernelUse& k : c.profile.kernels)
    kernels.push_back({{"name", k.name},
                       {"calls", k.calls},
                       {"seconds", k.seconds},
                       {"share", k.share},
                       {"percent_of_peak", percent_json(k.percent)}});
  return {{"first_iteration", r.config.profile_window.first},
          {"last_iteration", r.config.profile_window.second},
          {"directory", r.config.profile_dir},
          {"chip", c.chip},
          {"passes", c.passes},
          {"metrics", metrics},
          {"calls", c.profile.all.calls},
          {"kernel_seconds", c.profile.all.seconds},
          {"percent_of_peak", percent_json(c.profile.all.percent)},
          {"kernels", kernels}};
}

json witness_json(const Record& r) {
  json losses = json::array(), own = json::array();
  for (size_t k = 0; k < r.witness.size(); ++k) {
    losses.push_back(finite_or_null(r.witness[k]));
    if (k < r.steps.size()) own.push_back(finite_or_null(r.steps[k].loss));
  }
  const double difference = witness_difference(r);
  return {{"losses", losses},
          {"own_losses", own},
          {"largest_relative_difference", finite_or_null(difference)}};
}

// Adds what a run measured besides its steps.
void add_measurements(const Record& r, json* out) {
  (*out)["headline"] = !r.config.time_phases && r.config.profile_window.first == 0;
  (*out)["energy"] = energy_json(r);
  if (r.profile) (*out)["profile"] = profile_json(r);
  if (r.counters) (*out)["counters"] = counters_json(r);
  if (!r.explanation.empty() && !r.steps.empty()) (*out)["explain"] = explanation_json(r);
  if (!r.witness.empty()) (*out)["witness"] = witness_json(r);
  if (!r.phases.empty() && r.phases.size() == r.steps.size()) (*out)["phases"] = phases_json(r);
  if (const auto w = window_throughput(r))
    (*out)["throughput_window"] = {{"first_iteration", r.config.throughput_window.first},
                                   {"last_iteration", r.config.throughput_window.second},
                                   {"seconds", w->seconds},
                                   {"samples_per_second", w->samples_per_second},
                                   {"tokens_per_second", w->tokens_per_second}};
}

json measured_json(const MeasuredWork& work) {
  return {{"seconds", work.steps > 0 ? json(work.seconds) : json(nullptr)}, {"steps", work.steps}};
}

json results_json(const Record& r) {
  const Config& c = r.config;
  const double tokens = tokens_per_step(r);
  const Throughput t = throughput_of(r);
  const double flops = flops_per_token(r);
  const auto peak = peak_rate(r.device_info.name, c.precision);
  const auto mfu = model_flops_utilisation(r), typed_mfu = typed_flops_utilisation(r);
  json out = {
      {"first_iteration", r.first_iteration},
      {"iterations", r.first_iteration + static_cast<int64_t>(r.steps.size())},
      {"tokens_per_iteration", whole_or_not(tokens)},
      {"tokens_per_second", finite_or_null(t.tokens_per_second)},
      {"seconds_per_iteration", finite_or_null(t.seconds_per_iteration)},
      {"tokens_per_second_median", finite_or_null(t.tokens_per_second_median)},
      {"seconds_per_iteration_median", finite_or_null(t.seconds_per_iteration_median)},
      {"tokens_per_second_steady", finite_or_null(t.tokens_per_second_steady)},
      {"seconds_per_iteration_steady", finite_or_null(t.seconds_per_iteration_steady)},
      {"steady_from", value_or_null(t.steady_from)},
      {"measured",
       {{"tokens_per_second", measured_json(t.logged)},
        {"tokens_per_second_median", measured_json(t.all)},
        {"tokens_per_second_steady", measured_json(t.steady)}}},
      {"model_flops_per_token", flops},
      {"model_tflops_per_second", finite_or_null(flops * t.tokens_per_second_median / 1e12)},
      {"peak_tflops_per_second", peak ? json(peak->tflops) : json(nullptr)},
      {"peak_source", peak ? json(peak->source) : json(nullptr)},
      {"model_flops_utilisation", value_or_null(mfu)},
      {"typed_flops_utilisation", value_or_null(typed_mfu)},
      {"peak_device_bytes", r.device_bytes_peak > 0 ? json(r.device_bytes_peak) : json(nullptr)},
      {"peak_host_bytes", peak_resident_bytes()}};
  if (!c.model.language_model()) {
    out["tokens_per_sample"] = real_tokens(r);
    out["samples_per_second_steady"] =
        finite_or_null(static_cast<double>(c.global_batch) / t.seconds_per_iteration_steady);
  }
  add_measurements(r, &out);
  int64_t skipped = 0;
  json last = nullptr;
  for (const Step& s : r.steps) {
    skipped += s.skipped ? 1 : 0;
    if (s.has_loss()) last = finite_or_null(s.loss);
  }
  out["skipped_iterations"] = skipped;
  out["final_loss"] = last;
  out["weights_hash"] = r.weights_hash.empty() ? json(nullptr) : json(r.weights_hash);
  json evaluations = json::array();
  for (const Evaluation& e : r.evaluations) {
    evaluations.push_back(
        {{"iteration", e.iteration}, {"split", e.split}, {"loss", finite_or_null(e.loss)}});
    for (const auto& [name, value] : e.metrics) evaluations.back()[name] = value;
  }
  out["evaluations"] = evaluations;
  json epochs = json::array();
  for (const Epoch& e : r.epochs)
    epochs.push_back({{"epoch", e.epoch},
                      {"iteration", e.iteration},
                      {"loss", finite_or_null(e.loss)},
                      {"validation_loss",
                       e.validation_loss ? finite_or_null(*e.validation_loss) : json(nullptr)},
                      {"first_iteration", e.first_iteration}});
  out["epochs"] = epochs;
  return out;
}

// Steps are stored by columns, because a run has many.
json steps_json(const Record& r) {
  const std::vector<Step>& steps = r.steps;
  const int64_t global_batch = r.config.global_batch;
  json columns = {{"iteration", json::array()},     {"seconds", json::array()},
                  {"loss", json::array()},          {"grad_norm", json::array()},
                  {"learning_rate", json::array()}, {"loss_scale", json::array()},
                  {"skipped", json::array()},       {"global_batch_size", json::array()}};
  for (const Step& s : steps) {
    columns["iteration"].push_back(s.iteration);
    columns["seconds"].push_back(s.seconds);
    columns["loss"].push_back(finite_or_null(s.loss));
    columns["grad_norm"].push_back(finite_or_null(s.grad_norm));
    columns["learning_rate"].push_back(s.learning_rate);
    columns["loss_scale"].push_back(s.loss_scale);
    columns["skipped"].push_back(s.skipped);
    columns["global_batch_size"].push_back(s.samples > 0 ? s.samples : global_batch);
  }
  if (r.phases.size() != steps.size()) return columns;
  for (const PhaseSeconds& phases : r.phases)
    for (size_t k = 0; k < step_phases; ++k)
      columns[fmt::format("{}_seconds", step_phase_names[k])].push_back(phases[k]);
  return columns;
}

json intervals_json(const std::vector<Interval>& intervals) {
  json rows = json::array();
  for (const Interval& i : intervals)
    rows.push_back({{"iteration", i.iteration},
                    {"steps", i.steps},
                    {"seconds_per_iteration", i.seconds_per_iteration}});
  return rows;
}

nlohmann::ordered_json capability_or_null(const Record& r) {
  if (!r.device.is_cuda()) return nullptr;
  return r.device_info.capability;
}

[[noreturn]] void fail(const std::string& path, const char* what) {
  throw std::runtime_error(
      fmt::format("{}: the record cannot be {}: {}", path, what,
                  errno == ENXIO ? "no process reads this pipe" : std::strerror(errno)));
}

}  // namespace

nlohmann::ordered_json environment_json(const Record& r) {
  const BuildInfo b = build_info();
  return {{"host", host_name()},
          {"device", r.device.is_cuda() ? fmt::format("cuda:{}", r.device.index) : "cpu"},
          {"device_name", r.device_info.name},
          {"compute_capability", capability_or_null(r)},
          {"device_bytes", r.device_info.total_bytes},
          {"threads", r.threads},
          {"attention_backend", text_or_null(r.attention_backend)},
          {"missing_kernels", r.missing_kernels},
          {"idle_gpus", r.idle_gpus},
          {"busy_processors", value_or_null(r.busy_processors)},
          {"launcher", text_or_null(r.launcher)},
          {"hosts", r.hosts.empty() ? json(std::vector<std::string>{host_name()}) : json(r.hosts)},
          {"communication", text_or_null(r.backend)},
          {"mpi", r.backend == "mpi" ? json(r.backend_version) : json(nullptr)},
          {"nccl", r.backend == "nccl" ? json{{"version", r.backend_version},
                                              {"settings", r.nccl_settings},
                                              {"copy_engines", r.copy_engines},
                                              {"peer_kernels", r.peer_kernels}}
                                       : json(nullptr)},
          {"driver", text_or_null(r.device_info.driver)},
          {"cuda_runtime", text_or_null(r.device_info.runtime)},
          {"cuda_toolkit", text_or_null(b.cuda)},
          {"cudnn", text_or_null(loaded_cudnn_version())},
          {"libtorch", b.libtorch},
          {"compiler", b.compiler},
          {"build_type", b.build_type},
          {"tally_train", b.version},
          {"git_commit", b.commit}};
}

Record begin_record(const Config& config) {
  Record record;
  record.config = config;
  record.notices = config.notices;
  record.started = utc_now();
  return record;
}

double witness_difference(const Record& r) {
  double largest = std::nan("");
  for (size_t k = 0; k < std::min(r.witness.size(), r.steps.size()); ++k) {
    const double off = std::fabs(r.steps[k].loss - r.witness[k]) / std::fabs(r.witness[k]);
    if (std::isfinite(off)) largest = std::isnan(largest) ? off : std::max(largest, off);
  }
  return largest;
}

nlohmann::ordered_json configuration_json(const Record& r) {
  json out = json::object();
  const auto at = [&](const std::string& key) -> json& {
    json* node = &out;
    std::istringstream names(key);
    for (std::string name; std::getline(names, name, '.');) node = &(*node)[name];
    return *node;
  };
  for (const Setting& row : recorded_settings(r.config)) at(row.key) = row.value;
  at("model.parameters") = r.parameters;
  at("data.description") = r.data;
  at("data.content") = text_or_null(r.data_content);
  // The size that was chosen where the flag leaves it open.
  if (r.gradient_bucket) at("parallel.ddp_bucket_size") = *r.gradient_bucket;
  return out;
}

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::running:
      return "running";
    case Outcome::completed:
      return "completed";
    case Outcome::time_limit:
      return "time_limit";
    case Outcome::signalled:
      return "signalled";
    case Outcome::out_of_memory:
      return "out_of_memory";
    case Outcome::failed_check:
      return "failed_check";
    case Outcome::bad_input:
    case Outcome::error:
      return "error";
  }
  return "error";
}

int exit_code(Outcome outcome) {
  switch (outcome) {
    case Outcome::completed:
      return exit_completed;
    case Outcome::bad_input:
      return exit_bad_input;
    case Outcome::out_of_memory:
      return exit_out_of_memory;
    case Outcome::time_limit:
    case Outcome::signalled:
      return exit_stopped;
    case Outcome::failed_check:
      return exit_failed_check;
    case Outcome::running:
    case Outcome::error:
      return exit_error;
  }
  return exit_error;
}

Throughput throughput_of(const Record& r) {
  Throughput t = throughput(r.intervals, r.steps, r.config.global_batch, r.config.sequence);
  if (r.config.model.language_model()) return t;
  const double share = real_tokens(r) / static_cast<double>(r.config.sequence);
  for (double* rate :
       {&t.tokens_per_second, &t.tokens_per_second_median, &t.tokens_per_second_steady})
    *rate *= share;
  return t;
}

size_t first_steady_step(const Record& r) {
  return static_cast<size_t>(*throughput_of(r).steady_from - r.steps.front().iteration);
}

std::optional<WindowThroughput> window_throughput(const Record& r) {
  const auto [first, last] = r.config.throughput_window;
  if (first == 0 || r.steps.empty() || r.steps.front().iteration > first ||
      r.steps.back().iteration < last)
    return std::nullopt;
  WindowThroughput w;
  double samples = 0;
  for (const Step& s : r.steps) {
    if (s.iteration < first || s.iteration > last) continue;
    w.seconds += s.seconds;
    samples += static_cast<double>(s.samples > 0 ? s.samples : r.config.global_batch);
  }
  w.samples_per_second = samples / w.seconds;
  w.tokens_per_second = w.samples_per_second * real_tokens(r);
  return w;
}

double flops_per_token(const Record& r) {
  const ModelConfig& m = r.config.model;
  return m.language_model() ? model_flops_per_token(m, r.config.sequence)
                            : encoder_flops_per_token(m, real_tokens(r));
}

double attention_flops_per_token(const Record& r) {
  return attention_flops_per_token(r.config.model, real_tokens(r));
}

double tokens_per_step(const Record& r) {
  return static_cast<double>(r.config.global_batch) * real_tokens(r);
}

std::optional<double> model_flops_utilisation(const Record& r) {
  const auto peak = peak_rate(r.device_info.name, r.config.precision);
  if (!peak || !r.device.is_cuda()) return std::nullopt;
  const double rate = throughput_of(r).tokens_per_second_median;
  if (!(rate > 0)) return std::nullopt;  // also where no step was measured
  return flops_per_token(r) * rate / (peak->tflops * 1e12 * r.config.world_size);
}

std::optional<double> typed_flops_utilisation(const Record& r) {
  const auto of_bf16 = model_flops_utilisation(r);
  const auto peak = peak_rate(r.device_info.name, r.config.precision);
  const auto fp8_peak = fp8_peak_rate(r.device_info.name);
  const double all = flops_per_token(r), fp8 = fp8_flops_per_token(r.config);
  if (!of_bf16 || !peak || !fp8_peak || fp8 == 0) return std::nullopt;
  return *of_bf16 * (all - fp8 + fp8 * peak->tflops / fp8_peak->tflops) / all;
}

nlohmann::ordered_json to_json(const Record& r) {
  return {{"schema", "tally-train-record/1"},
          {"outcome", outcome_name(r.outcome)},
          {"exit_code", r.outcome == Outcome::running ? json(nullptr) : json(exit_code(r.outcome))},
          {"message", text_or_null(r.message)},
          {"started", r.started},
          {"ended", text_or_null(r.ended)},
          {"command_line", r.config.command_line},
          {"configuration", configuration_json(r)},
          {"notices", r.notices},
          {"environment", environment_json(r)},
          {"results", results_json(r)},
          {"intervals", intervals_json(r.intervals)},
          {"steps", steps_json(r)}};
}

void check_record_target(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!destination_of(path).replaced || !fs::exists(path, error) || fs::file_size(path, error) == 0)
    return;
  std::array<char, 256> text{};
  std::ifstream(path, std::ios::binary).read(text.data(), text.size());
  std::string beginning(text.data(), text.size());
  const auto blank = [](unsigned char c) { return std::isspace(c) != 0; };
  beginning.erase(std::remove_if(beginning.begin(), beginning.end(), blank), beginning.end());
  if (beginning.rfind(R"({"schema":"tally-train-)", 0) == 0) return;
  throw std::runtime_error(
      fmt::format("'{}' exists but is not a record of tally-train: it would be replaced; remove it "
                  "or give another file",
                  path));
}

void write_record(const Record& record, const std::string& path) {
  write_json(to_json(record), path);
}

void write_json(const nlohmann::ordered_json& value, const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path target(path);
  std::error_code error;
  if (target.has_parent_path()) fs::create_directories(target.parent_path(), error);
  const Destination to = destination_of(path);
  // Names and paths may hold bytes that are not UTF-8. They are replaced, so that no record is lost
  // for them.
  const std::string text = value.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
  if (!to.replaced) {
    // The reader of a pipe takes the first record for the whole: it gets none that says "running".
    if (value.value("outcome", "") == outcome_name(Outcome::running)) {
      if (access(to.path.c_str(), W_OK) != 0) fail(path, "written");
      return;
    }
    try {
      return write_into(to.path, text);
    } catch (const std::system_error& failure) {
      errno = failure.code().value();
      fail(path, "written");
    }
  }
  const std::string temporary = fmt::format("{}.{}.tmp", to.path, getpid());
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(temporary.c_str(), "wb"),
                                                       std::fclose);
  if (!file) fail(path, "written");
  const bool written = std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                       std::fflush(file.get()) == 0 && fsync(fileno(file.get())) == 0;
  if (!written || std::rename(temporary.c_str(), to.path.c_str()) != 0) {
    const int saved = errno;
    std::remove(temporary.c_str());
    errno = saved;
    fail(path, "written");
  }
}

}  // namespace tally::train

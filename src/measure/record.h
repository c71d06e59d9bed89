// The JSON record of a run (docs/record.md): its configuration, measurements, environment and
// outcome.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/device/stream.h"
#include "src/measure/counters.h"
#include "src/measure/energy.h"
#include "src/measure/explanation.h"
#include "src/measure/phases.h"
#include "src/measure/profile.h"
#include "src/measure/statistics.h"

namespace tally::train {

enum class Outcome {
  running,        // not ended: what a killed run leaves
  completed,      // every step, or --exit-interval
  time_limit,     // --exit-duration-in-mins
  signalled,      // SIGTERM, SIGINT, SIGUSR1, SIGUSR2, SIGHUP, or output that cannot be written
  out_of_memory,  // the device's memory or the host's
  failed_check,   // a loss that is not finite
  bad_input,      // the run cannot be carried out as asked; its name is "error", too
  error
};
const char* outcome_name(Outcome outcome);
// The program's exit code (src/data/text/exit_codes.h), which the record has as well.
int exit_code(Outcome outcome);

struct Evaluation {
  int64_t iteration = 0;
  double loss = 0;
  std::string split = "validation";  // or "test"
  // Accuracy of classifiers; exact match and F1 in percent of SQuAD with --epochs.
  std::vector<std::pair<std::string, double>> metrics;
};

// The end of a pass over the training blocks (--epochs).
struct Epoch {
  int64_t epoch = 0, iteration = 0;
  int64_t first_iteration = 0;            // the first of the epoch's steps in this run
  double loss = 0;                        // mean over these steps
  std::optional<double> validation_loss;  // over all validation blocks
};

// A profile of the GPU (--profile-start), and the records that CUPTI could not keep.
struct ProfileResult {
  DeviceProfile profile;
  int64_t lost = 0;
};

// Hardware counters of the GPU (--profile-counters), and how they were read.
struct CounterResult {
  CounterProfile profile;
  CounterSelection selection;
  std::string chip;  // CUPTI's name
  int passes = 0;    // runs of each kernel
};

// The device that a run opened (open_device()).
struct DeviceFacts {
  Device device;
  DeviceInfo device_info;
  std::string attention_backend;
  // Kernels that this GPU would use and that the build lacks; GPUs of the host that a build without
  // CUDA does not use.
  std::vector<std::string> missing_kernels;
  int idle_gpus = 0;
  // Processors that other processes used when the run began; empty: it did not count them.
  std::optional<int> busy_processors;
  int threads = 0;
};

// The processes of a run (open_communicator()): who started them, where they are, what carries
// their messages.
struct ProcessFacts {
  std::string launcher;                    // "one process", "srun", ...
  std::string backend, backend_version;    // "single", "nccl", "mpi", "sockets"
  std::vector<std::string> nccl_settings;  // "NCCL_NVLS_ENABLE=0"
  std::vector<std::string> hosts;          // the ranks' hosts in their order
};

// The results of observing some of the steps (--profile-start, --profile-counters).
struct WindowFacts {
  std::optional<ProfileResult> profile;
  std::optional<CounterResult> counters;
};

// The facts of a run besides the lists that grow with its steps.
struct RunFacts : DeviceFacts, ProcessFacts, WindowFacts {
  Config config;
  std::vector<std::string> notices;  // the config's, and later ones
  Outcome outcome = Outcome::running;
  std::string message;  // one sentence for an outcome that is not completed
  std::string started, ended;
  std::string data;          // "PREFIX: 503 documents, 1528901 tokens", or "mock"
  std::string data_content;  // DataSources::training_content
  int64_t parameters = 0;
  int64_t first_iteration = 0;  // iterations done before this run (resumed)
  // Communicator::map_peers(): what carries gradients, and the messages of tensor parallelism.
  bool copy_engines = false, peer_kernels = false;
  std::optional<int64_t> gradient_bucket;  // elements; empty: as --ddp-bucket-size says
  std::string weights_hash;  // after the last step; empty: bits need not repeat (--deterministic)
  std::vector<GpuEnergyUse> energy;  // each rank's; empty: the run has not ended
  Explanation explanation;           // each rank's; empty: without --explain
  // The losses of the first steps in float64 by the reference model; empty: without
  // --witness-steps.
  std::vector<double> witness;
  size_t device_bytes_peak = 0;
};

// The lists of a run, which grow with its steps.
struct RunLists {
  std::vector<Step> steps;
  std::vector<PhaseSeconds> phases;  // --time-phases: of each of the steps
  std::vector<Interval> intervals;
  std::vector<Evaluation> evaluations;
  std::vector<Epoch> epochs;
  double tokens_per_sample = 0;  // real tokens, on average; 0: config.sequence
};

struct Record : RunFacts, RunLists {};

// A record that begins now.
Record begin_record(const Config& config);

// Throughput in real tokens, and the model's FLOPs for one of them.
Throughput throughput_of(const Record& record);
double flops_per_token(const Record& record);
// The part of these that attention has.
double attention_flops_per_token(const Record& record);
// Real tokens of a step, on average.
double tokens_per_step(const Record& record);
// The index in record.steps of the first step after the warm-up (Throughput::steady_from). There is
// a step.
size_t first_steady_step(const Record& record);
// The largest difference of a step's loss from its witness, as a share of it; NaN without one.
double witness_difference(const Record& record);
// The steps of --throughput-start to --throughput-stop; empty where this run did not do them all.
struct WindowThroughput {
  double seconds = 0;  // sum over all its steps
  double samples_per_second = 0, tokens_per_second = 0;
};
std::optional<WindowThroughput> window_throughput(const Record& record);
nlohmann::ordered_json to_json(const Record& record);
// The record's "environment" alone: host, device, versions.
nlohmann::ordered_json environment_json(const Record& record);
// The record's "configuration" alone, which is known before the first step. Its keys are the same
// for every run.
nlohmann::ordered_json configuration_json(const Record& record);
// True model FLOP/s over the datasheet's rate, from the median step; empty when the rate is
// unknown.
std::optional<double> model_flops_utilisation(const Record& record);
// The same of the peak that each GEMM's type has: the share of the step that the GPU would need for
// the model's FLOPs at the peak rates of bf16 and of FP8. Empty also where nothing is in FP8.
std::optional<double> typed_flops_utilisation(const Record& record);
// Whether a record may be written to `path`: it does not exist, is an older record, or is not a
// regular file. Throws std::runtime_error with one sentence.
void check_record_target(const std::string& path);
// Writes a temporary file and renames it, so that a reader sees the old record or the new one.
// Makes missing folders. Throws std::runtime_error naming the file.
void write_json(const nlohmann::ordered_json& json, const std::string& path);
void write_record(const Record& record, const std::string& path);

}  // namespace tally::train

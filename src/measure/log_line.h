// Megatron-LM's lines, byte for byte, so that patterns written for its logs read ours.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace tally::train {

struct LogLine {
  int64_t iteration = 0, iterations = 0, consumed_samples = 0;
  double seconds_per_iteration = 0;  // mean over the interval
  double learning_rate = 0;          // the interval's last step's
  int64_t global_batch = 0;
  double loss = 0;  // mean over the interval's steps that were not skipped; left out when not > 0
  double loss_scale = 1;         // after the interval's last step
  double grad_norm = -1;         // the last step's; left out when negative (that step was skipped)
  int64_t skipped = 0, nan = 0;  // steps of the interval
  double samples_per_second = 0;
  double tflops = 0;      // per GPU, see megatron_flops_per_iteration()
  double throughput = 0;  // TFLOP/s per GPU, see megatron_flops_per_token()
};

// Commit f772743 with the JUPITER benchmark's TFLOPs patch; without a newline.
std::string format_log_line(const LogLine& line);

// Today's line, as training_log() of megatron/training/training.py formats it (commit 001b00c2).
// The loss is left out when it is not a number, the throughput without --log-throughput. `time`:
// see log_time().
std::string format_megatron_log_line(const LogLine& line, bool throughput, const std::string& time);
// The local time now: "2025-11-24 05:29:58.123456".
std::string log_time();

// exp(loss), of 20 at most, as Megatron-LM prints it; NaN of NaN.
double perplexity(double loss);

// The three lines that frame a validation loss; `where` as "iteration 1000". No newline at the end.
// `metrics`: further values of the line by name, in the form of Megatron-LM's.
std::string format_validation(const std::string& where, double loss,
                              const std::vector<std::pair<std::string, double>>& metrics = {});

}  // namespace tally::train

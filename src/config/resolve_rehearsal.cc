// --rehearse and --network: one rank's share of a layout, without the other ranks.
#include <charconv>
#include <cmath>
#include <sstream>

#include "src/config/resolve_parts.h"

namespace tally::train {
namespace {

constexpr const char* rehearse = "--rehearse";

// Splits "2x4x1:3" into its numbers; each at least `least`.
int number_of(const std::string& text, int least, const std::string& whole) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < least)
    fail(rehearse, "'{}' is not a valid layout: TPxPPxDP or TPxPPxDP:STAGE, as 2x4x4:0", whole);
  return value;
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) parts.push_back(part);
  return parts;
}

void take(int* ranks, int value, const char* name) {
  if (*ranks != 1 && *ranks != value)
    fail(rehearse, "its layout has {} and {} is {}: leave {} out", value, name, *ranks, name);
  *ranks = value;
}

void resolve_network(const std::string& text, Rehearsal* r) {
  std::vector<double> numbers;
  for (const std::string& part : parts_of(text, ',')) {
    char* end = nullptr;
    numbers.push_back(std::strtod(part.c_str(), &end));
    if (part.empty() || *end != '\0' || !std::isfinite(numbers.back()) || numbers.back() < 0)
      numbers.clear();
    if (numbers.empty()) break;
  }
  const bool sensible = (numbers.size() == 2 || numbers.size() == 4) && numbers[0] > 0 &&
                        (numbers.size() == 2 || numbers[2] > 0);
  if (!sensible)
    fail("--network",
         "'{}' is not GB/s,us (between nodes) or GB/s,us,GB/s,us (between nodes, within a node)",
         text);
  if (numbers.size() == 2) numbers.insert(numbers.end(), {numbers[0], numbers[1]});
  r->network_rate = numbers[0] * 1e9;
  r->network_seconds = numbers[1] * 1e-6;
  r->node_rate = numbers[2] * 1e9;
  r->node_seconds = numbers[3] * 1e-6;
}

}  // namespace

Rehearsal resolve_rehearsal(Flags* f, Command command, int* world_size) {
  Rehearsal r;
  if (!f->network.empty() && f->rehearse.empty())
    fail("--network", "says what a rehearsal is to assume: give {} with it", rehearse);
  if (f->rehearse.empty()) return r;
  if (command == Command::evaluate)
    fail(rehearse, "rehearses training, and evaluate does not train");
  Config& c = f->config;
  if (c.skip_train) fail(rehearse, "rehearses training: leave out --skip-train");
  if (c.reference) fail(rehearse, "rehearses the explicit model: leave out --reference");
  if (c.plan.asked) fail(rehearse, "measures what --plan estimates: give one of them");
  const std::string& text = f->rehearse;
  const std::vector<std::string> ends = parts_of(text, ':');
  const std::vector<std::string> sizes = ends.empty() ? ends : parts_of(ends.front(), 'x');
  if (sizes.size() != 3 || ends.size() > 2 || text.back() == ':') number_of("", 1, text);
  const int tensor = number_of(sizes[0], 1, text), pipeline = number_of(sizes[1], 1, text);
  const int data = number_of(sizes[2], 1, text);
  r.asked = true;
  r.stage = ends.size() == 2 ? number_of(ends[1], 0, text) : 0;
  if (r.stage >= pipeline)
    fail(rehearse, "'{}': there are {} stages, numbered from 0", text, pipeline);
  if (*world_size > 1)
    fail(rehearse, "is the work of one rank on one device, and {} processes were started",
         *world_size);
  if (int64_t{tensor} * pipeline * data > (int64_t{1} << 30))
    fail(rehearse, "'{}' has more ranks than any machine", text);
  take(&c.tensor_parallel, tensor, "--tensor-model-parallel-size");
  take(&c.pipeline_parallel, pipeline, "--pipeline-model-parallel-size");
  *world_size = tensor * pipeline * data;
  if (!f->network.empty()) resolve_network(f->network, &r);
  // The files that are read and written belong to the run that is rehearsed.
  c.data.mock = true;
  c.data.paths.clear();
  f->train_paths.clear();
  f->valid_paths.clear();
  f->test_paths.clear();
  c.save_dir.clear();
  c.load_dir.clear();
  c.save_hf_dir.clear();
  c.load_hf_dir.clear();
  if (!c.record_path.empty()) f->ignored.emplace_back("--record (a rehearsal writes none)");
  c.record_path.clear();
  c.finetune = false;
  c.load_optimizer = true;
  f->epochs.reset();  // epochs need a dataset
  if (!f->train_iterations && !f->train_samples) f->train_iterations = 3;
  c.rampup = {};  // the step of the full batch
  c.save_interval = 0;
  f->eval_interval.reset();
  f->eval_iterations.reset();
  f->config.eval_interval_samples = 0;
  f->config.target_loss = 0;
  f->config.mllog_path.clear();
  f->config.mllog_values.clear();
  return r;
}

}  // namespace tally::train

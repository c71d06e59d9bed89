#include "src/train/commands/links.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <string>

#include "src/data/text/exit_codes.h"
#include "src/device/arena.h"
#include "src/device/events.h"
#include "src/device/pci_address.h"
#include "src/measure/system_info.h"
#include "src/train/run/device.h"
#include "src/train/run/failures.h"
#include "src/train/run/output.h"

namespace tally::train {
namespace {

constexpr int untimed = 2, rounds = 5;
// A round lasts about so long, and no longer than so many operations.
constexpr double round_seconds = 0.05;
constexpr double most_operations = 2000;

struct Times {
  double median = 0, least = 0, largest = 0;  // seconds an operation
};

// An operation on a tensor that each rank fills with its own numbers.
struct Operation {
  const char* name;
  std::function<void(Stream&)> run;
  const Tensor* result;    // the tensor that it leaves
  std::vector<int> ranks;  // the result is the sum of their numbers
};

class Links {
 public:
  Links(World& world, Communicator& all, Stream& stream)
      : world_(world), all_(all), stream_(stream), events_(StreamEvents::make(stream, 2)) {}

  // The operations on tensors of `bytes`, one after the other.
  void measure(int64_t bytes) {
    Arena arena(stream_);
    const Tensor out = arena.make(DType::f32, {bytes / 4}, "messages");
    const Tensor in = arena.make(DType::f32, {bytes / 4}, "messages");
    std::vector<int> everybody(static_cast<size_t>(all_.size()));
    for (int r = 0; r < all_.size(); ++r) everybody[static_cast<size_t>(r)] = r;
    const int n = all_.size();
    const Times sum =
        time(out, {"all_reduce", [&](Stream& s) { all_.all_reduce(s, out); }, &out, everybody});
    print_all_reduce(out.bytes(), sum);
    // Half way round. Each of an odd number of ranks receives from another than it sends to.
    const int to = (rank() + n / 2) % n, from = (rank() + n - n / 2) % n;
    const auto exchange = [&](Stream& s) { all_.send_receive(s, out, to, in, from); };
    print_exchange(out.bytes(), time(out, {"exchange", exchange, &in, {from}}), from);
  }

 private:
  int rank() const { return all_.rank(); }

  Times time(const Tensor& out, const Operation& operation) {
    check(out, operation);
    stream_.fill_zero(out.data, out.bytes());  // sums of sums would grow
    for (int i = 0; i < untimed; ++i) operation.run(stream_);
    const double once = largest(seconds_of(operation, 1));
    const int count =
        static_cast<int>(std::clamp(std::ceil(round_seconds / once), 1.0, most_operations));
    std::vector<double> all;
    for (int i = 0; i < rounds; ++i) all.push_back(seconds_of(operation, count));
    return median_of(all);
  }

  void check(const Tensor& out, const Operation& operation) {
    std::vector<float> numbers(static_cast<size_t>(out.numel()));
    for (size_t i = 0; i < numbers.size(); ++i)
      numbers[i] = link_element(rank(), static_cast<int64_t>(i));
    stream_.copy(out.data, numbers.data(), out.bytes());
    operation.run(stream_);
    stream_.copy(numbers.data(), operation.result->data, out.bytes());
    stream_.synchronize();
    const int64_t wrong = first_wrong_sum(numbers, operation.ranks);
    if (wrong < 0) return;
    throw CheckFailed(
        fmt::format("links: {} of {} bytes: element {} is {} and has to be {}: these links do not "
                    "carry what is sent",
                    operation.name, out.bytes(), wrong, numbers[static_cast<size_t>(wrong)],
                    expected(wrong, operation.ranks)));
  }

  static double expected(int64_t i, const std::vector<int>& ranks) {
    double sum = 0;
    for (const int r : ranks) sum += link_element(r, i);
    return sum;
  }

  double seconds_of(const Operation& operation, int count) {
    all_.barrier(stream_);
    events_->record(0);
    for (int i = 0; i < count; ++i) operation.run(stream_);
    events_->record(1);
    events_->wait(1);
    return events_->seconds(0, 1) / count;
  }

  std::vector<std::string> of_all(const std::string& mine) {
    return world_.meeting().exchange(mine);
  }

  double largest(double mine) {
    double most = mine;
    for (const std::string& one : of_all(fmt::format("{}", mine)))
      most = std::max(most, std::stod(one));
    return most;
  }

  Times median_of(std::vector<double> mine) {
    std::sort(mine.begin(), mine.end());
    return {mine[mine.size() / 2], mine.front(), mine.back()};
  }

  static std::string line(const char* name, size_t bytes, const Times& t, double rate) {
    return fmt::format(
        "{} bytes {} time_us {:.2f} low {:.2f} high {:.2f} gb_per_s {:.3f} right yes", name, bytes,
        1e6 * t.median, 1e6 * t.least, 1e6 * t.largest, rate / 1e9);
  }

  void print_all_reduce(size_t bytes, const Times& mine) {
    const Times t{largest(mine.median), largest(mine.least), largest(mine.largest)};
    const double n = all_.size();
    if (world_.is_primary())
      print_line(
          line("all_reduce", bytes, t, static_cast<double>(bytes) / t.median * 2 * (n - 1) / n));
  }

  void print_exchange(size_t bytes, const Times& mine, int from) {
    const std::vector<std::string> medians = of_all(fmt::format("{}", mine.median)),
                                   least = of_all(fmt::format("{}", mine.least)),
                                   most = of_all(fmt::format("{}", mine.largest)),
                                   sources = of_all(fmt::format("{}", from));
    if (!world_.is_primary()) return;
    for (int r = 0; r < all_.size(); ++r) {
      const auto at = static_cast<size_t>(r);
      const Times t{std::stod(medians[at]), std::stod(least[at]), std::stod(most[at])};
      print_line(fmt::format("{} from {} to {}",
                             line("exchange", bytes, t, static_cast<double>(bytes) / t.median),
                             sources[at], r));
    }
  }

  World& world_;
  Communicator& all_;
  Stream& stream_;
  std::unique_ptr<StreamEvents> events_;
};

}  // namespace

float link_element(int rank, int64_t i) {
  return static_cast<float>((i * 31 + int64_t{rank} * 7) % 251);
}

int64_t first_wrong_sum(const std::vector<float>& got, const std::vector<int>& ranks) {
  // The numbers repeat after 251 elements.
  std::vector<float> sums(251);
  for (size_t i = 0; i < sums.size(); ++i)
    for (const int r : ranks) sums[i] += link_element(r, static_cast<int64_t>(i));
  for (size_t i = 0; i < got.size(); ++i)
    if (!(got[i] == sums[i % sums.size()])) return static_cast<int64_t>(i);
  return -1;
}

int links(const LinksOptions& options, World& world) {
  if (world.size() == 1)
    throw InputError("links: one process has no links: start several, as with --nproc-per-node 2");
  Config config = options.config;
  config.rank = world.rank();
  config.local_rank = world.launch().local_rank;
  config.local_size = world.launch().local_size;
  const OpenDevice device = open_device(config);
  const OpenCommunicator open = open_communicator(config, world, device.stream->device());
  const std::string address = pci_address(device.stream->device());
  const auto gpus = world.meeting().exchange(address.empty() ? "" : " gpu " + address);
  if (world.is_primary()) {
    const std::set<std::string> hosts(open.facts.hosts.begin(), open.facts.hosts.end());
    print_line(fmt::format(
        "links of {} ranks on {} host{}, {}, by {}", world.size(), hosts.size(),
        hosts.size() == 1 ? "" : "s", device.facts.device_info.name,
        open.facts.backend +
            (open.facts.backend_version.empty() ? "" : " " + open.facts.backend_version)));
    for (size_t r = 0; r < open.facts.hosts.size(); ++r)
      print_line(fmt::format("rank {} host {}{}", r, open.facts.hosts[r], gpus[r]));
  }
  Links links(world, *open.communicator, *device.stream);
  for (const int64_t bytes : options.bytes) links.measure(bytes);
  return exit_completed;
}

}  // namespace tally::train

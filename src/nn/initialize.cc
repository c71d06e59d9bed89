// ParameterTable::initialize(): the numbers that training starts from.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <thread>

#include "src/device/convert.h"
#include "src/device/philox.h"
#include "src/nn/parameters.h"

namespace tally::train {
namespace {

// Elements that are drawn and copied at a time. Their memory is used again: writing to fresh memory
// takes longer than drawing, because the kernel clears each page first.
constexpr int64_t together = int64_t{1} << 24;

// FNV-1a, 64 bits.
uint64_t hash_of(const std::string& name) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (unsigned char c : name) h = (h ^ c) * 0x100000001b3ull;
  return h;
}

// Elements [first, first + count) of a parameter's normal numbers, by Box and Muller. Element i
// depends on (key, i) alone, so that any range can be drawn by itself.
void draw_normal(uint64_t key, double std, int64_t first, int64_t count, float* out) {
  constexpr double unit = 1.0 / 4294967296.0;
  const auto begin = static_cast<uint64_t>(first), end = static_cast<uint64_t>(first + count);
  for (uint64_t group = begin / 4; group * 4 < end; ++group) {
    const Philox4 words = philox(key, group);
    for (uint64_t pair = 0; pair < 4; pair += 2) {
      const double radius = std::sqrt(-2 * std::log((words.word[pair] + 0.5) * unit));
      const double angle = 2 * std::numbers::pi * words.word[pair + 1] * unit;
      const uint64_t i = group * 4 + pair;
      if (i >= begin && i < end)
        out[i - begin] = static_cast<float>(std * radius * std::cos(angle));
      if (i + 1 >= begin && i + 1 < end)
        out[i + 1 - begin] = static_cast<float>(std * radius * std::sin(angle));
    }
  }
}

// Calls work(begin, end) for parts of [0, count) on as many threads as are useful. All but the last
// part are multiples of 1024.
template <typename Work>
void in_parallel(int64_t count, const Work& work) {
  constexpr int64_t least = int64_t{1} << 18;
  const int64_t cores = std::max(1U, std::thread::hardware_concurrency());
  const int64_t threads = std::min(cores, count / least + 1);
  const int64_t part = (count / threads / 1024 + 1) * 1024;
  std::vector<std::thread> others;
  for (int64_t begin = part; begin < count; begin += part)
    others.emplace_back([&work, begin, end = std::min(begin + part, count)] { work(begin, end); });
  work(0, std::min(part, count));
  for (std::thread& t : others) t.join();
}

// Draws elements [begin, end) of those that this process has.
void draw(const Parameter& p, uint64_t key, const std::vector<ElementRun>& runs, int64_t begin,
          int64_t end, float* out) {
  if (p.init_std <= 0) {
    std::fill(out, out + (end - begin), static_cast<float>(p.init_value));
    return;
  }
  auto run = std::upper_bound(runs.begin(), runs.end(), begin,
                              [](int64_t at, const ElementRun& r) { return at < r.local; });
  for (--run; run != runs.end() && run->local < end; ++run) {
    const int64_t first = std::max(begin, run->local);
    const int64_t last = std::min(end, run->local + run->count);
    draw_normal(key, p.init_std, run->global + first - run->local, last - first,
                out + (first - begin));
  }
}

// A flat buffer that gets numbers, and those of them that are on their way.
class Target {
 public:
  Target(const Tensor& flat, std::vector<FlatRange> ranges, int64_t most)
      : flat_(flat), ranges_(std::move(ranges)) {
    if (flat_.dtype != DType::f32)
      converted_ =
          std::make_unique_for_overwrite<char[]>(static_cast<size_t>(most) * size_of(flat_.dtype));
  }

  // Takes the held elements of the parameter whose numbers come next.
  void begin(const Parameter& p) { held_ = held_elements(p, ranges_); }

  // Converts `count` numbers, which stand `at` elements behind the first of those on their way.
  // Several threads call it at once.
  void convert(float* values, int64_t at, int64_t count) const {
    if (!converted_) return;
    const size_t width = size_of(flat_.dtype);
    convert_elements(
        Tensor(values, DType::f32, {count}),
        Tensor(converted_.get() + static_cast<size_t>(at) * width, flat_.dtype, {count}));
  }

  // Copies elements [first, last) of the parameter. `values` live until the stream has reached
  // this.
  void copy(Stream& stream, const float* values, int64_t first, int64_t last) const {
    const size_t width = size_of(flat_.dtype);
    const char* from = converted_ ? converted_.get() : reinterpret_cast<const char*>(values);
    for (const HeldElements& h : held_) {
      const int64_t begin = std::max(first, h.in_parameter);
      const int64_t end = std::min(last, h.in_parameter + h.count);
      if (begin >= end) continue;
      const int64_t to = h.in_buffer + begin - h.in_parameter;
      stream.copy(static_cast<char*>(flat_.data) + static_cast<size_t>(to) * width,
                  from + static_cast<size_t>(begin - first) * width,
                  static_cast<size_t>(end - begin) * width);
    }
  }

 private:
  const Tensor flat_;
  const std::vector<FlatRange> ranges_;
  std::unique_ptr<char[]> converted_;  // none where the buffer has the type of the numbers
  std::vector<HeldElements> held_;
};

}  // namespace

void ParameterTable::initialize(uint64_t seed, const Tensor& master,
                                const std::vector<FlatRange>& ranges, bool others) {
  if (!stream_) throw std::logic_error("initialize() comes after allocate()");
  int64_t most = 0;
  for (const Parameter& p : parameters_)
    most = std::max(most, std::min(together, p.local_elements()));
  const std::vector<FlatRange> all{{0, elements_}};
  std::vector<Target> targets;
  targets.emplace_back(weights_, all, most);
  if (master.defined() && master.data != weights_.data)
    targets.emplace_back(master, ranges.empty() ? all : ranges, most);
  const auto values = std::make_unique_for_overwrite<float[]>(static_cast<size_t>(most));
  for (const Parameter& p : parameters_) {
    const uint64_t key = site_seed(seed, hash_of(p.name));
    const std::vector<ElementRun> runs = runs_of(p.shape, p.shard);
    for (Target& t : targets) t.begin(p);
    const auto fill = [&](int64_t first, int64_t last) {
      in_parallel(last - first, [&](int64_t begin, int64_t end) {
        float* out = values.get() + begin;
        draw(p, key, runs, first + begin, first + end, out);
        for (const Target& t : targets) t.convert(out, begin, end - begin);
      });
      for (const Target& t : targets) t.copy(*stream_, values.get(), first, last);
      stream_->synchronize();  // before the next numbers take the place of these
    };
    for (const HeldElements& piece : held_elements(p, others ? all : ranges)) {
      const int64_t end = piece.in_parameter + piece.count;
      for (int64_t first = piece.in_parameter; first < end; first += together)
        fill(first, std::min(first + together, end));
    }
  }
}

}  // namespace tally::train

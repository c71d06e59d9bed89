#include "src/nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <stdexcept>
#include <thread>

#include "src/device/convert.h"
#include "src/device/philox.h"

namespace tally::train {
namespace {

int64_t product_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

int64_t aligned(int64_t n) {
  return (n + ParameterTable::alignment - 1) / ParameterTable::alignment *
         ParameterTable::alignment;
}

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

// A run of elements that are neighbours both in the whole parameter and in this process's part.
struct Run {
  int64_t global, local, count;
};

// The part of a parameter as runs.
std::vector<Run> runs_of(const Parameter& p) {
  const Shard& s = p.shard;
  if (s.count == 1) return {{0, 0, p.elements()}};
  const auto dimension = static_cast<size_t>(s.dimension);
  const auto outer_end = p.shape.begin() + s.dimension;
  const int64_t outer =
      std::accumulate(p.shape.begin(), outer_end, int64_t{1}, std::multiplies<>());
  const int64_t inner =
      std::accumulate(outer_end + 1, p.shape.end(), int64_t{1}, std::multiplies<>());
  const std::vector<int64_t> sections =
      s.sections.empty() ? std::vector<int64_t>{p.shape[dimension]} : s.sections;
  std::vector<Run> runs;
  int64_t local = 0;
  for (int64_t o = 0; o < outer; ++o) {
    int64_t at = o * p.shape[dimension];
    for (const int64_t section : sections) {
      const int64_t share = section / s.count;
      runs.push_back({(at + s.index * share) * inner, local, share * inner});
      local += share * inner;
      at += section;
    }
  }
  return runs;
}

void check(const Parameter& p) {
  const auto fail = [&](const std::string& why) {
    throw std::invalid_argument("parameter " + p.name + ": " + why);
  };
  if (p.shape.empty() || p.shape.size() > Tensor().shape.size())
    fail("has " + std::to_string(p.shape.size()) + " dimensions, and 1 to 5 are possible");
  const Shard& s = p.shard;
  if (s.count == 1) return;
  if (s.dimension < 0 || s.dimension >= static_cast<int>(p.shape.size()))
    fail("is divided along a dimension that it does not have");
  const int64_t length = p.shape[static_cast<size_t>(s.dimension)];
  const std::vector<int64_t> sections =
      s.sections.empty() ? std::vector<int64_t>{length} : s.sections;
  if (std::accumulate(sections.begin(), sections.end(), int64_t{0}) != length)
    fail("has sections that do not add up to " + std::to_string(length));
  for (const int64_t section : sections)
    if (section % s.count != 0)
      fail("has a section of " + std::to_string(section) + ", which " + std::to_string(s.count) +
           " processes cannot share evenly");
}

std::vector<float> drawn(const Parameter& p, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(p.local_elements()),
                            static_cast<float>(p.init_value));
  if (p.init_std <= 0) return values;
  const uint64_t key = site_seed(seed, hash_of(p.name));
  for (const Run& run : runs_of(p)) {
    in_parallel(run.count, [&](int64_t begin, int64_t end) {
      draw_normal(key, p.init_std, run.global + begin, end - begin,
                  values.data() + run.local + begin);
    });
  }
  return values;
}

}  // namespace

std::vector<int64_t> Parameter::local_shape() const {
  std::vector<int64_t> local = shape;
  local[static_cast<size_t>(shard.dimension)] /= shard.count;
  return local;
}

int64_t Parameter::elements() const {
  return product_of(shape);
}

int64_t Parameter::local_elements() const {
  return elements() / shard.count;
}

Tensor parameter_range(const Tensor& flat, const Parameter& parameter) {
  Tensor t;
  t.data =
      static_cast<char*>(flat.data) + static_cast<size_t>(parameter.offset) * size_of(flat.dtype);
  t.dtype = flat.dtype;
  const std::vector<int64_t> shape = parameter.local_shape();
  t.rank = static_cast<int>(shape.size());
  std::copy(shape.begin(), shape.end(), t.shape.begin());
  return t;
}

void ParameterTable::add(Parameter parameter) {
  check(parameter);
  parameters_.push_back(std::move(parameter));
}

void ParameterTable::layout(Stream& stream, DType compute) {
  if (stream_) throw std::logic_error("the parameters are laid out already");
  const auto vectors =
      std::stable_partition(parameters_.begin(), parameters_.end(),
                            [](const Parameter& p) { return p.group == ParameterGroup::decayed; });
  const auto undivided = std::stable_partition(
      vectors, parameters_.end(), [](const Parameter& p) { return p.shard.count > 1; });
  elements_ = 0;
  decayed_ = 0;
  undivided_ = -1;
  for (auto p = parameters_.begin(); p != parameters_.end(); ++p) {
    if (p == undivided) undivided_ = elements_;
    p->offset = elements_;
    elements_ += aligned(p->local_elements());
    if (p->group == ParameterGroup::decayed) decayed_ = elements_;
  }
  if (undivided_ < 0) undivided_ = elements_;
  stream_ = &stream;
  const auto flat = [&](DType type, const char* what) {
    Tensor t(nullptr, type, {elements_});
    t.data = stream.allocate(t.bytes(), what);
    stream.fill_zero(t.data, t.bytes());
    return t;
  };
  weights_ = flat(compute, "weights");
  gradients_ = flat(compute == DType::f64 ? DType::f64 : DType::f32, "gradients");
}

ParameterTable::~ParameterTable() {
  if (!stream_) return;
  stream_->release(gradients_.data);
  stream_->release(weights_.data);
}

const Parameter& ParameterTable::find(const std::string& name) const {
  const auto it = std::find_if(parameters_.begin(), parameters_.end(),
                               [&](const Parameter& p) { return p.name == name; });
  if (it == parameters_.end()) throw std::out_of_range("there is no parameter " + name);
  return *it;
}

ParamGrad ParameterTable::get(const std::string& name) const {
  const Parameter& p = find(name);
  return {parameter_range(weights_, p), parameter_range(gradients_, p),
          static_cast<int>(&p - parameters_.data())};
}

int64_t ParameterTable::count() const {
  int64_t n = 0;
  for (const Parameter& p : parameters_) n += p.local_elements();
  return n;
}

std::vector<std::pair<int64_t, int64_t>> ParameterTable::counted_ranges() const {
  std::vector<std::pair<int64_t, int64_t>> ranges;
  for (const Parameter& p : parameters_) {
    if (p.copy) continue;
    const int64_t end = p.offset + aligned(p.local_elements());
    if (!ranges.empty() && ranges.back().second == p.offset) {
      ranges.back().second = end;
    } else {
      ranges.emplace_back(p.offset, end);
    }
  }
  return ranges;
}

void ParameterTable::initialize(uint64_t seed, const Tensor& master) {
  if (!stream_) throw std::logic_error("initialize() comes after layout()");
  for (const Parameter& p : parameters_) {
    std::vector<float> values = drawn(p, seed);
    for (const Tensor& flat : {weights_, master}) {
      if (!flat.defined()) continue;
      std::vector<char> bytes(values.size() * size_of(flat.dtype));
      in_parallel(static_cast<int64_t>(values.size()), [&](int64_t begin, int64_t end) {
        const auto at = static_cast<size_t>(begin);
        convert_elements(
            Tensor(values.data() + at, DType::f32, {end - begin}),
            Tensor(bytes.data() + at * size_of(flat.dtype), flat.dtype, {end - begin}));
      });
      stream_->copy(parameter_range(flat, p).data, bytes.data(), bytes.size());
      stream_->synchronize();  // before `bytes` is gone
      if (master.data == weights_.data) break;
    }
  }
}

}  // namespace tally::train

#include "src/nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <stdexcept>
#include <thread>

#include "src/device/convert.h"
#include "src/device/philox.h"

namespace tally::train {
namespace {

constexpr int64_t range_alignment = 128;

int64_t numel_of(const Parameter& p) {
  int64_t n = 1;
  for (int64_t d : p.shape) n *= d;
  return n;
}

int64_t aligned(int64_t n) {
  return (n + range_alignment - 1) / range_alignment * range_alignment;
}

Tensor slice(const Tensor& flat, const Parameter& p) {
  Tensor t;
  t.data = static_cast<char*>(flat.data) + static_cast<size_t>(p.offset) * size_of(flat.dtype);
  t.dtype = flat.dtype;
  t.rank = static_cast<int>(p.shape.size());
  std::copy(p.shape.begin(), p.shape.end(), t.shape.begin());
  return t;
}

// FNV-1a, 64 bits.
uint64_t hash_of(const std::string& name) {
  uint64_t h = 0xcbf29ce484222325ull;
  for (unsigned char c : name) h = (h ^ c) * 0x100000001b3ull;
  return h;
}

// Normal numbers by Box and Muller: element i depends on (key, i) only, so any slice can be drawn
// alone.
void draw_normal(uint64_t key, double std, std::vector<float>& out, size_t begin, size_t end) {
  constexpr double unit = 1.0 / 4294967296.0;
  for (size_t i = begin; i < end; i += 4) {
    const Philox4 words = philox(key, i / 4);
    for (size_t pair = 0; pair < 4; pair += 2) {
      const double radius = std::sqrt(-2 * std::log((words.word[pair] + 0.5) * unit));
      const double angle = 2 * std::numbers::pi * words.word[pair + 1] * unit;
      if (i + pair < out.size()) out[i + pair] = static_cast<float>(std * radius * std::cos(angle));
      if (i + pair + 1 < out.size()) {
        out[i + pair + 1] = static_cast<float>(std * radius * std::sin(angle));
      }
    }
  }
}

// Calls work(begin, end) for parts of [0, count) on as many threads as are of use; all but the last
// part are multiples of 1024.
template <typename Work>
void in_parallel(size_t count, const Work& work) {
  constexpr size_t least = size_t{1} << 18;
  const size_t cores = std::max(1U, std::thread::hardware_concurrency());
  const size_t threads = std::min(cores, count / least + 1);
  const size_t part = (count / threads / 1024 + 1) * 1024;
  std::vector<std::thread> others;
  for (size_t begin = part; begin < count; begin += part)
    others.emplace_back([&work, begin, end = std::min(begin + part, count)] { work(begin, end); });
  work(0, std::min(part, count));
  for (std::thread& t : others) t.join();
}

}  // namespace

void ParameterTable::add(Parameter parameter) {
  if (parameter.shape.empty() || parameter.shape.size() > Tensor().shape.size()) {
    throw std::invalid_argument("parameter " + parameter.name + " has no shape we can hold");
  }
  parameters_.push_back(std::move(parameter));
}

void ParameterTable::layout(Stream& stream, DType compute, bool with_optimizer) {
  if (stream_) throw std::logic_error("the parameters are laid out already");
  std::stable_partition(parameters_.begin(), parameters_.end(),
                        [](const Parameter& p) { return p.decayed; });
  elements_ = 0;
  decayed_ = 0;
  for (Parameter& p : parameters_) {
    p.offset = elements_;
    elements_ += aligned(numel_of(p));
    if (p.decayed) decayed_ = elements_;
  }
  stream_ = &stream;
  const DType wide = compute == DType::f64 ? DType::f64 : DType::f32;
  const auto flat = [&](DType type, const char* what) {
    Tensor t(nullptr, type, {elements_});
    t.data = stream.allocate(t.bytes(), what);
    stream.fill_zero(t.data, t.bytes());
    return t;
  };
  weights_ = flat(compute, "weights");
  gradients_ = flat(wide, "gradients");
  if (compute == wide) {
    master_ = weights_;
  } else if (with_optimizer) {
    master_ = flat(wide, "master weights");
  }
  if (with_optimizer) {
    m_ = flat(wide, "first moments");
    v_ = flat(wide, "second moments");
  }
}

ParameterTable::~ParameterTable() {
  if (!stream_) return;
  stream_->release(v_.data);
  stream_->release(m_.data);
  if (master_.data != weights_.data) stream_->release(master_.data);
  stream_->release(gradients_.data);
  stream_->release(weights_.data);
}

const Parameter& ParameterTable::find(const std::string& name) const {
  const auto it = std::find_if(parameters_.begin(), parameters_.end(),
                               [&](const Parameter& p) { return p.name == name; });
  if (it == parameters_.end()) throw std::out_of_range("there is no parameter " + name);
  return *it;
}

Tensor ParameterTable::weight(const std::string& name) const {
  return slice(weights_, find(name));
}

Tensor ParameterTable::gradient(const std::string& name) const {
  return slice(gradients_, find(name));
}

int64_t ParameterTable::count() const {
  int64_t n = 0;
  for (const Parameter& p : parameters_) n += numel_of(p);
  return n;
}

void ParameterTable::initialize(uint64_t seed) {
  if (!stream_) throw std::logic_error("initialize() comes after layout()");
  for (const Parameter& p : parameters_) {
    std::vector<float> values(static_cast<size_t>(numel_of(p)), static_cast<float>(p.init_value));
    if (p.init_std > 0) {
      const uint64_t key = site_seed(seed, hash_of(p.name));
      in_parallel(values.size(), [&](size_t begin, size_t end) {
        draw_normal(key, p.init_std, values, begin, end);
      });
    }
    for (const Tensor& flat : {weights_, master_}) {
      if (!flat.defined()) continue;
      std::vector<char> bytes(values.size() * size_of(flat.dtype));
      in_parallel(values.size(), [&](size_t begin, size_t end) {
        const auto count = static_cast<int64_t>(end - begin);
        convert_elements(Tensor(values.data() + begin, DType::f32, {count}),
                         Tensor(bytes.data() + begin * size_of(flat.dtype), flat.dtype, {count}));
      });
      stream_->copy(slice(flat, p).data, bytes.data(), bytes.size());
      stream_->synchronize();  // `bytes` goes
      if (master_.data == weights_.data) break;
    }
  }
}

}  // namespace tally::train

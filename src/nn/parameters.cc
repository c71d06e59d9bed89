#include "src/nn/parameters.h"

#include <algorithm>
#include <cmath>
#include <map>
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
  const std::vector<ElementRun> runs = runs_of(p.shape, p.shard);
  // A part of a row may be short: the threads divide the elements, not the runs.
  in_parallel(p.local_elements(), [&](int64_t begin, int64_t end) {
    auto run = std::upper_bound(runs.begin(), runs.end(), begin,
                                [](int64_t at, const ElementRun& r) { return at < r.local; });
    for (--run; run != runs.end() && run->local < end; ++run) {
      const int64_t first = std::max(begin, run->local);
      const int64_t last = std::min(end, run->local + run->count);
      draw_normal(key, p.init_std, run->global + first - run->local, last - first,
                  values.data() + first);
    }
  });
  return values;
}

}  // namespace

std::vector<ElementRun> runs_of(const std::vector<int64_t>& shape, const Shard& shard) {
  if (shard.count == 1) return {{0, 0, product_of(shape)}};
  const int64_t length = shape[static_cast<size_t>(shard.dimension)];
  const auto at_dimension = shape.begin() + shard.dimension;
  const int64_t outer = product_of({shape.begin(), at_dimension});
  const int64_t inner = product_of({at_dimension + 1, shape.end()});
  const std::vector<int64_t> sections =
      shard.sections.empty() ? std::vector<int64_t>{length} : shard.sections;
  std::vector<ElementRun> runs;
  int64_t local = 0;
  for (int64_t o = 0; o < outer; ++o) {
    int64_t at = o * length;
    for (const int64_t section : sections) {
      const int64_t share = section / shard.count;
      runs.push_back({(at + shard.index * share) * inner, local, share * inner});
      local += share * inner;
      at += section;
    }
  }
  return runs;
}

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

int64_t Parameter::local_padding() const {
  const int64_t rows = shape[0] / shard.count, first = shard.index * rows;
  const int64_t padding = std::clamp<int64_t>(first + rows - (shape[0] - padding_rows), 0, rows);
  return padding_rows == 0 ? 0 : padding * (local_elements() / rows);
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

int64_t ParameterTable::aligned(int64_t n) const {
  return (n + how_.alignment - 1) / how_.alignment * how_.alignment;
}

int64_t ParameterTable::end_of(const Parameter& parameter) const {
  return parameter.offset + aligned(parameter.local_elements());
}

void ParameterTable::layout(Stream& stream, DType compute, const TableLayout& how) {
  how_ = how;
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
  const int64_t gradients = place_gradients(how.share_block_gradients);
  stream_ = &stream;
  const auto flat = [&](DType type, int64_t elements, const char* what) {
    Tensor t(nullptr, type, {elements});
    t.data = stream.allocate(t.bytes(), what);
    stream.fill_zero(t.data, t.bytes());
    return t;
  };
  weights_ = flat(compute, elements_, "weights");
  gradients_ = flat(compute == DType::f64 ? DType::f64 : DType::f32, gradients, "gradients");
}

// Returns the number of elements. Memory that blocks share lies behind all other gradients.
int64_t ParameterTable::place_gradients(bool share_blocks) {
  struct Block {
    int64_t offset;
    int slot;
  };
  std::map<int64_t, Block> blocks;
  int64_t own = 0, largest = 0;
  for (Parameter& p : parameters_) {
    if (!share_blocks || p.block < 0) {
      p.gradient_offset = own;
      own += aligned(p.local_elements());
      continue;
    }
    const int slot = static_cast<int>(blocks.size() % 2);
    const Block& block = blocks.try_emplace(p.block, Block{p.offset, slot}).first->second;
    largest = std::max(largest, end_of(p) - block.offset);
  }
  for (Parameter& p : parameters_) {
    if (!share_blocks || p.block < 0) continue;
    const Block& block = blocks.at(p.block);
    p.gradient_offset = own + block.slot * largest + (p.offset - block.offset);
  }
  return own + std::min<int64_t>(2, static_cast<int64_t>(blocks.size())) * largest;
}

Tensor ParameterTable::gradients(const FlatRange& range) const {
  if (range.count() <= 0) return gradients_.rows(0, 0);
  int64_t first = -1, at = 0;
  for (const Parameter& p : parameters_) {
    const int64_t begin = std::max(p.offset, range.first), end = std::min(end_of(p), range.last);
    if (begin >= end) continue;
    const int64_t place = p.gradient_offset + (begin - p.offset);
    if (first < 0) first = at = place;
    if (place != at)
      throw std::logic_error("the gradients of a range are not neighbours: " + p.name);
    at += end - begin;
  }
  return gradients_.rows(first, at - first);
}

std::vector<HeldElements> held_elements(const Parameter& p, const std::vector<FlatRange>& ranges) {
  std::vector<HeldElements> held;
  int64_t before = 0;
  for (const FlatRange& r : ranges) {
    const int64_t first = std::max(p.offset, r.first);
    const int64_t last = std::min(p.offset + p.local_elements(), r.last);
    if (first < last) held.push_back({first - p.offset, before + first - r.first, last - first});
    before += r.count();
  }
  return held;
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
  Parameter in_gradients = p;
  in_gradients.offset = p.gradient_offset;
  return {parameter_range(weights_, p), parameter_range(gradients_, in_gradients),
          static_cast<int>(&p - parameters_.data()), how_.share_block_gradients && p.block >= 0};
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
    const int64_t end = end_of(p);
    if (!ranges.empty() && ranges.back().second == p.offset) {
      ranges.back().second = end;
    } else {
      ranges.emplace_back(p.offset, end);
    }
  }
  return ranges;
}

void ParameterTable::initialize(uint64_t seed, const Tensor& master,
                                const std::vector<FlatRange>& ranges) {
  if (!stream_) throw std::logic_error("initialize() comes after layout()");
  const std::vector<FlatRange> all{{0, elements_}};
  for (const Parameter& p : parameters_) {
    std::vector<float> values = drawn(p, seed);
    for (const Tensor& flat : {weights_, master}) {
      if (!flat.defined()) continue;
      const bool whole = flat.data == weights_.data || ranges.empty();
      std::vector<char> bytes(values.size() * size_of(flat.dtype));
      in_parallel(static_cast<int64_t>(values.size()), [&](int64_t begin, int64_t end) {
        const auto at = static_cast<size_t>(begin);
        convert_elements(
            Tensor(values.data() + at, DType::f32, {end - begin}),
            Tensor(bytes.data() + at * size_of(flat.dtype), flat.dtype, {end - begin}));
      });
      const size_t width = size_of(flat.dtype);
      for (const HeldElements& h : held_elements(p, whole ? all : ranges))
        stream_->copy(static_cast<char*>(flat.data) + static_cast<size_t>(h.in_buffer) * width,
                      bytes.data() + static_cast<size_t>(h.in_parameter) * width,
                      static_cast<size_t>(h.count) * width);
      stream_->synchronize();  // before `bytes` is gone
      if (master.data == weights_.data) break;
    }
  }
}

}  // namespace tally::train

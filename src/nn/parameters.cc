#include "src/nn/parameters.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <stdexcept>

namespace tally::train {
namespace {

int64_t product_of(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
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

Tensor flat_buffer(Stream& stream, DType type, int64_t elements, const char* what) {
  Tensor t(nullptr, type, {elements});
  t.data = stream.allocate(t.bytes(), what);
  stream.fill_zero(t.data, t.bytes());
  return t;
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

void ParameterTable::allocate(Stream& stream, DType compute, const TableMemory& how) {
  how_ = how;
  if (stream_) throw std::logic_error("the parameters are laid out already");
  const auto vectors =
      std::stable_partition(parameters_.begin(), parameters_.end(),
                            [](const Parameter& p) { return p.group == ParameterGroup::decayed; });
  std::stable_partition(vectors, parameters_.end(),
                        [](const Parameter& p) { return p.shard.count > 1; });
  elements_ = 0;
  decayed_ = 0;
  for (auto p = parameters_.begin(); p != parameters_.end(); ++p) {
    p->offset = elements_;
    elements_ += aligned(p->local_elements());
    if (p->group == ParameterGroup::decayed) decayed_ = elements_;
  }
  const int64_t gradients = assign_gradients(how.share_block_gradients);
  stream_ = &stream;
  weights_ = flat_buffer(stream, compute, elements_, "weights");
  gradients_ =
      flat_buffer(stream, compute == DType::f64 ? DType::f64 : DType::f32, gradients, "gradients");
  allocate_fp8();
}

bool ParameterTable::gathered_in_fp8(const Parameter& p) const {
  return p.block >= how_.fp8_blocks.first && p.block < how_.fp8_blocks.last;
}

void ParameterTable::allocate_fp8() {
  int64_t matrices = 0;
  for (const Parameter& p : parameters_) {
    if (!gathered_in_fp8(p)) continue;
    if (matrices == 0) fp8_range_.first = p.offset;
    fp8_range_.last = end_of(p);
    ++matrices;
  }
  if (matrices == 0) return;
  fp8_ = flat_buffer(*stream_, DType::u8, fp8_range_.count(), "weights gathered in FP8");
  fp8_amaxes_ = flat_buffer(*stream_, DType::f32, matrices, "weights gathered in FP8");
}

Tensor ParameterTable::fp8(const FlatRange& range) const {
  return fp8_.rows(range.first - fp8_range_.first, range.count());
}

GatheredFp8 ParameterTable::fp8_of(const Parameter& p) const {
  if (!gathered_in_fp8(p)) return {};
  const std::vector<int64_t> shape = p.local_shape();
  const auto before = [&](const Parameter& other) { return gathered_in_fp8(other); };
  const int64_t number = std::count_if(parameters_.data(), &p, before);
  return {Tensor(fp8({p.offset, p.offset + p.local_elements()}).data, DType::e4m3,
                 {shape[0], shape[1]}),
          fp8_amaxes_.rows(number, 1)};
}

// Returns the number of elements. Memory that blocks share lies behind all other gradients.
int64_t ParameterTable::assign_gradients(bool share_blocks) {
  struct BlockOffsets {
    int64_t offset;
    int slot;
  };
  std::map<int64_t, BlockOffsets> blocks;
  int64_t own = 0, largest = 0;
  for (Parameter& p : parameters_) {
    if (!share_blocks || p.block < 0) {
      p.gradient_offset = own;
      own += aligned(p.local_elements());
      continue;
    }
    const int slot = static_cast<int>(blocks.size() % 2);
    const BlockOffsets& block =
        blocks.try_emplace(p.block, BlockOffsets{p.offset, slot}).first->second;
    largest = std::max(largest, end_of(p) - block.offset);
  }
  for (Parameter& p : parameters_) {
    if (!share_blocks || p.block < 0) continue;
    const BlockOffsets& block = blocks.at(p.block);
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
    const int64_t offset = p.gradient_offset + (begin - p.offset);
    if (first < 0) first = at = offset;
    if (offset != at)
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
  stream_->release(fp8_amaxes_.data);
  stream_->release(fp8_.data);
  stream_->release(gradients_.data);
  stream_->release(weights_.data);
}

const Parameter& ParameterTable::find(const std::string& name) const {
  const auto it = std::find_if(parameters_.begin(), parameters_.end(),
                               [&](const Parameter& p) { return p.name == name; });
  if (it == parameters_.end()) throw std::out_of_range("there is no parameter " + name);
  return *it;
}

const Parameter& ParameterTable::find(const WeightId& id) const {
  for (const Parameter& p : parameters_)
    if (p.id == id && !p.bias) return p;
  throw std::out_of_range("no parameter has role " + std::to_string(static_cast<int>(id.role)) +
                          " in layer " + std::to_string(id.layer));
}

ParamGrad ParameterTable::get(const std::string& name) const {
  return use(find(name));
}

ParamGrad ParameterTable::weight(const WeightId& id) const {
  return use(find(id));
}

ParamGrad ParameterTable::bias(const WeightId& id) const {
  for (const Parameter& p : parameters_)
    if (p.id == id && p.bias) return use(p);
  return {};
}

ParamGrad ParameterTable::use(const Parameter& p) const {
  Parameter in_gradients = p;
  in_gradients.offset = p.gradient_offset;
  return {parameter_range(weights_, p), parameter_range(gradients_, in_gradients), fp8_of(p),
          static_cast<int>(&p - parameters_.data()), how_.share_block_gradients && p.block >= 0};
}

int64_t ParameterTable::count() const {
  int64_t n = 0;
  for (const Parameter& p : parameters_) n += p.local_elements();
  return n;
}

std::vector<FlatRange> ParameterTable::reduced(Reduction reduction) const {
  std::vector<FlatRange> ranges;
  for (const Parameter& p : parameters_) {
    if (p.reduction != reduction) continue;
    if (!ranges.empty() && ranges.back().last == p.offset) {
      ranges.back().last = end_of(p);
    } else {
      ranges.push_back({p.offset, end_of(p)});
    }
  }
  return ranges;
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

}  // namespace tally::train

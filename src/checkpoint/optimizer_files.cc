#include "src/checkpoint/optimizer_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "src/device/convert.h"

namespace tally::train {
namespace {

// The buffers in the order of buffer_prefixes().
std::vector<Tensor> buffers_of(const ParameterState& state) {
  const OptimizerBuffers& o = state.optimizer;
  if (o.kind == OptimizerKind::sgd) return {o.master, o.first_moment};
  return {o.master, o.first_moment, o.second_moment};
}

Tensor flat_part(const Tensor& flat, int64_t at, int64_t count) {
  return Tensor(static_cast<char*>(flat.data) + static_cast<size_t>(at) * size_of(flat.dtype),
                flat.dtype, {count});
}

// A tensor made of pieces in a buffer, whose elements count from `first` on.
TensorSource source_of(const std::string& name, const std::vector<int64_t>& shape,
                       const Tensor& buffer, const std::vector<HeldPiece>& pieces, int64_t first,
                       Stream& stream) {
  return {name, buffer.dtype, shape, [=, &stream](char* out) {
            for (const HeldPiece& piece : pieces) {
              const Tensor range = flat_part(buffer, piece.at, piece.last - piece.first);
              stream.copy(out + static_cast<size_t>(piece.first - first) * size_of(buffer.dtype),
                          range.data, range.bytes());
            }
            stream.synchronize();
          }};
}

// Whether shard i of one and shard i of the other are the same elements in the same order. (Of an
// undivided parameter, that holds for the rows that both have.)
bool same_division(const StoredParameter& stored, const Parameter& p) {
  if (stored.shards == 1 || p.shard.count == 1) return stored.shards == p.shard.count;
  return stored.shape == p.shape && stored.shards == p.shard.count &&
         stored.dimension == p.shard.dimension && stored.sections == p.shard.sections;
}

// Elements [first, last) of a part, counted from `first` on, as runs.
std::vector<ElementRun> clipped(const std::vector<ElementRun>& runs, int64_t first, int64_t last) {
  std::vector<ElementRun> inside;
  auto run = std::upper_bound(
      runs.begin(), runs.end(), first,
      [](int64_t element, const ElementRun& r) { return element < r.local + r.count; });
  for (; run != runs.end() && run->local < last; ++run) {
    const int64_t begin = std::max(run->local, first);
    const int64_t end = std::min(run->local + run->count, last);
    inside.push_back({run->global + begin - run->local, begin - first, end - begin});
  }
  return inside;
}

// Copies the elements that both have. Elements of the whole are numbered alike under any padding of
// the vocabulary, because its rows come last.
void copy_overlap(const std::vector<ElementRun>& from, const char* data,
                  const std::vector<ElementRun>& to, char* out, size_t element) {
  auto target = to.begin();
  for (const ElementRun& run : from) {
    const int64_t end = run.global + run.count;
    while (target != to.end() && target->global + target->count <= run.global) ++target;
    for (auto t = target; t != to.end() && t->global < end; ++t) {
      const int64_t begin = std::max(run.global, t->global);
      const int64_t count = std::min(end, t->global + t->count) - begin;
      std::memcpy(out + static_cast<size_t>(t->local + begin - t->global) * element,
                  data + static_cast<size_t>(run.local + begin - run.global) * element,
                  static_cast<size_t>(count) * element);
    }
  }
}

// Copies numbers in parts that stay in the processor's cache between check and copy. Returns false
// where one is not finite.
bool copy_finite(const Tensor& to, const char* from, Stream& stream) {
  constexpr int64_t part = 1 << 20;
  const size_t element = size_of(to.dtype);
  for (int64_t at = 0; at < to.numel(); at += part) {
    const Tensor range = flat_part(to, at, std::min(part, to.numel() - at));
    const char* source = from + static_cast<size_t>(at) * element;
    if (first_not_finite(source, range.dtype, range.numel())) return false;
    stream.copy(range.data, source, range.bytes());
  }
  return true;
}

}  // namespace

std::vector<HeldPiece> held_pieces(const std::vector<Parameter>& parameters,
                                   const std::vector<FlatRange>& ranges) {
  std::vector<HeldPiece> pieces;
  for (const Parameter& p : parameters)
    for (const HeldElements& held : held_elements(p, ranges))
      pieces.push_back({&p, held.in_parameter, held.in_parameter + held.count, held.in_buffer});
  return pieces;
}

FileChecksum save_whole_optimizer(const std::string& path, const ParameterState& state,
                                  Stream& stream) {
  std::vector<TensorSource> sources;
  const auto buffers = buffers_of(state);
  const auto prefixes = buffer_prefixes(state.optimizer.kind);
  const std::vector<HeldPiece> pieces = held_pieces(*state.parameters, state.optimizer.ranges);
  auto begin = pieces.begin();
  for (const Parameter& p : *state.parameters) {
    const auto end = std::find_if(begin, pieces.end(),
                                  [&](const HeldPiece& piece) { return piece.parameter != &p; });
    for (size_t i = 0; i < buffers.size(); ++i)
      sources.push_back(
          source_of(prefixes[i] + p.name, p.shape, buffers[i], {begin, end}, 0, stream));
    begin = end;
  }
  return write_safetensors(path, std::move(sources));
}

FileChecksum save_optimizer_part(const std::string& path, const ParameterState& state,
                                 Stream& stream) {
  std::vector<TensorSource> sources;
  Manifest part;
  part.dtype = safetensors_name(state.optimizer.master.dtype);
  const auto buffers = buffers_of(state);
  const auto prefixes = buffer_prefixes(state.optimizer.kind);
  for (const HeldPiece& piece : held_pieces(*state.parameters, state.optimizer.ranges)) {
    const Parameter& p = *piece.parameter;
    if (p.copy) continue;
    StoredParameter& stored = part.parameters[p.name];
    stored.shape = p.shape;
    stored.dimension = p.shard.dimension;
    stored.sections = p.shard.sections;
    stored.shards = p.shard.count;
    stored.pieces.push_back({0, p.shard.index, piece.first, piece.last});
    const int64_t count = piece.last - piece.first;
    const bool whole = count == p.local_elements();
    for (size_t i = 0; i < buffers.size(); ++i)
      sources.push_back(
          source_of(tensor_name(prefixes[i], p.name, piece.first, piece.last, p.local_elements()),
                    whole ? p.local_shape() : std::vector<int64_t>{count}, buffers[i], {piece},
                    piece.first, stream));
  }
  return write_safetensors(path, std::move(sources), part_metadata(part));
}

// The weights are rounded from all master weights; of the moments a process reads what it holds.
void StoredOptimizer::need(const Parameter& p, const std::vector<HeldPiece>& held,
                           NeededTensors* needed) const {
  const StoredParameter& stored = manifest_.parameters.at(p.name);
  const bool same = same_division(stored, p);
  for (const StoredPiece& piece : stored.pieces) {
    if (same && piece.shard != p.shard.index) continue;
    const bool holds = !same || std::any_of(held.begin(), held.end(), [&](const HeldPiece& h) {
      return h.parameter == &p && h.first < piece.last && piece.first < h.last;
    });
    for (const std::string& prefix : buffer_prefixes(kind_))
      if (holds || prefix == master_prefix)
        (*needed)[piece.file].push_back(
            tensor_name(prefix, p.name, piece.first, piece.last, stored.shard_elements()));
  }
}

void StoredOptimizer::open(const ParameterState& state) {
  NeededTensors needed;
  const std::vector<HeldPiece> held = held_pieces(*state.parameters, state.optimizer.ranges);
  auto first = held.begin();
  for (const Parameter& p : *state.parameters) {
    const auto last =
        std::find_if(first, held.end(), [&](const HeldPiece& h) { return h.parameter != &p; });
    need(p, {first, last}, &needed);
    first = last;
  }
  for (const auto& [index, tensors] : needed) {
    auto file = std::make_unique<SafetensorsFile>(manifest_.file(index));
    check_pieces(manifest_, index, kind_, *file);
    std::vector<ByteRange>& ranges = ranges_[index];
    ranges.push_back({0, file->header_bytes()});
    for (const std::string& name : tensors) {
      const StoredTensor& tensor = file->tensors().at(name);
      const uint64_t at = file->offset(tensor);
      ranges.push_back({at, at + tensor.bytes});
    }
    files_[index] = std::move(file);
  }
}

void StoredOptimizer::check() const {
  for (const auto& [index, file] : files_) {
    const FileChecksum& sum = manifest_.files[static_cast<size_t>(index)].sum;
    if (!sum.blocks.empty()) check_blocks(file->mapped(), sum, ranges_.at(index));
  }
}

const char* StoredOptimizer::data_of(const std::string& prefix, const std::string& name,
                                     const StoredPiece& piece) const {
  const int64_t elements = manifest_.parameters.at(name).shard_elements();
  return files_.at(piece.file)
      ->tensors()
      .at(tensor_name(prefix, name, piece.first, piece.last, elements))
      .data;
}

const char* StoredOptimizer::elements(const std::string& prefix, const Parameter& p, int64_t first,
                                      int64_t last, std::vector<char>* staging) const {
  const StoredParameter& stored = manifest_.parameters.at(p.name);
  const size_t element = size_of(*dtype_of_safetensors(manifest_.dtype));
  const bool same = same_division(stored, p);
  for (const StoredPiece& piece : stored.pieces) {
    if (same && piece.shard == p.shard.index && piece.first <= first && last <= piece.last)
      return data_of(prefix, p.name, piece) + static_cast<size_t>(first - piece.first) * element;
  }
  staging->assign(static_cast<size_t>(last - first) * element, 0);
  const std::vector<ElementRun> wanted = clipped(runs_of(p.shape, p.shard), first, last);
  for (const StoredPiece& piece : stored.pieces) {
    if (same && (piece.shard != p.shard.index || piece.last <= first || last <= piece.first))
      continue;
    const std::vector<ElementRun> runs = runs_of(stored.shape, stored.shard(piece.shard));
    copy_overlap(clipped(runs, piece.first, piece.last), data_of(prefix, p.name, piece), wanted,
                 staging->data(), element);
  }
  return staging->data();
}

void load_optimizer(const StoredOptimizer& stored, const ParameterState& state, Stream& stream) {
  std::vector<char> staging;
  const auto buffers = buffers_of(state);
  const auto prefixes = buffer_prefixes(state.optimizer.kind);
  const auto pieces = held_pieces(*state.parameters, state.optimizer.ranges);
  for (size_t i = 0; i < buffers.size(); ++i) {
    for (const HeldPiece& piece : pieces) {
      const Tensor to = flat_part(buffers[i], piece.at, piece.last - piece.first);
      const char* from =
          stored.elements(prefixes[i], *piece.parameter, piece.first, piece.last, &staging);
      if (i > 0) {
        stream.copy(to.data, from, to.bytes());
      } else if (!copy_finite(to, from, stream)) {
        throw std::runtime_error(fmt::format(
            "the checkpoint's weights are not all numbers: '{}{}' has one that is NaN or "
            "infinite: resume from an earlier checkpoint",
            prefixes[i], piece.parameter->name));
      }
      stream.synchronize();  // before `staging` is filled again
    }
  }
  // Every step rounds the weights from the master weights, and so does loading. The master weights
  // of some of them may be on other processes.
  if (buffers[0].data == state.weights.data && buffers[0].bytes() == state.weights.bytes()) return;
  const DType type = buffers[0].dtype;
  for (const Parameter& p : *state.parameters) {
    const Tensor to = parameter_range(state.weights, p);
    const char* from = stored.elements(master_prefix, p, 0, p.local_elements(), &staging);
    std::vector<char> narrow(to.bytes());
    convert_elements(Tensor(const_cast<char*>(from), type, {to.numel()}),
                     Tensor(narrow.data(), to.dtype, {to.numel()}));
    stream.copy(to.data, narrow.data(), narrow.size());
    stream.synchronize();
  }
}

}  // namespace tally::train

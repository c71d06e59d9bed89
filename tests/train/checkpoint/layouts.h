// Runs of several processes, each of which holds a part of a small model: in one process, with
// threads for ranks.
#pragma once

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/checkpoint/checkpoint.h"
#include "src/device/convert.h"
#include "src/model/stage.h"

namespace layouts {

using namespace tally::train;

// How the replicas share the optimizer's state: not at all, one range for each, or a range of every
// third of the flat buffers, the last third first.
enum class Zero { none, ranges, buckets };

struct Layout {
  int tensor = 1, pipeline = 1, data = 1;
  Zero zero = Zero::none;
  int64_t padded = 12;  // rows of the vocabulary
  MeshShape shape() const { return {tensor, pipeline, data}; }
};

inline std::string name_of(const Layout& l) {
  const char* zero = l.zero == Zero::none ? "" : l.zero == Zero::ranges ? " ranges" : " buckets";
  return "TP" + std::to_string(l.tensor) + " PP" + std::to_string(l.pipeline) + " DP" +
         std::to_string(l.data) + zero + " rows " + std::to_string(l.padded);
}

inline ModelConfig model_of(const Layout& layout) {
  ModelConfig config;
  config.layers = 2;
  config.hidden = 8;
  config.heads = 4;
  config.ffn = 16;
  config.max_positions = 6;
  config.vocabulary = 11;
  config.padded_vocabulary = layout.padded;
  return config;
}

// Where an element of a process's part is in the whole, by its coordinates.
inline int64_t place_in_whole(const Parameter& p, int64_t local) {
  const std::vector<int64_t> shape = p.local_shape();
  std::vector<int64_t> at(shape.size());
  for (size_t d = shape.size(); d-- > 0; local /= shape[d]) at[d] = local % shape[d];
  if (p.shard.count > 1) {
    const auto d = static_cast<size_t>(p.shard.dimension);
    std::vector<int64_t> sections = p.shard.sections;
    if (sections.empty()) sections = {p.shape[d]};
    int64_t begin = 0, i = at[d];
    for (const int64_t section : sections) {
      const int64_t share = section / p.shard.count;
      if (i < share) {
        at[d] = begin + p.shard.index * share + i;
        break;
      }
      i -= share;
      begin += section;
    }
  }
  int64_t whole = 0;
  for (size_t d = 0; d < at.size(); ++d) whole = whole * p.shape[d] + at[d];
  return whole;
}

// A number of its own for each element of the whole, in each buffer of each training.
inline float number(uint64_t training, int buffer, const std::string& name, int64_t element) {
  uint64_t h = training * 1000003 + static_cast<uint64_t>(buffer);
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
  h = (h ^ static_cast<uint64_t>(element)) * 0x9E3779B97F4A7C15ull;
  return static_cast<float>(static_cast<int64_t>(h >> 20) % 2000003) / 1000.0F;
}

// Registers what a rank holds, as Megatron divides GPT.
inline void register_part(const Layout& layout, const MeshPosition& position,
                          ParameterTable* table) {
  const ModelConfig config = model_of(layout);
  ParameterTable whole;
  register_model(config, &whole);
  const bool first = position.stage == 0, last = position.stage + 1 == layout.pipeline;
  const auto ends = [](const std::string& text, const std::string& end) {
    return text.size() >= end.size() &&
           text.compare(text.size() - end.size(), end.size(), end) == 0;
  };
  for (Parameter p : whole.all()) {
    const std::string& n = p.name;
    if (n.rfind("h.", 0) == 0) {
      const int64_t layer = std::stoll(n.substr(2));
      if (layer * layout.pipeline / config.layers != position.stage) continue;
    } else if (n == "wte.weight") {
      if (!first && !last) continue;
      p.copy = !first;
    } else if (n == "wpe.weight" ? !first : !last) {
      continue;
    }
    const bool rows = n == "wte.weight" || ends(n, "c_attn.weight") || ends(n, "c_attn.bias") ||
                      ends(n, "c_fc.weight") || ends(n, "c_fc.bias");
    const bool columns = ends(n, "c_proj.weight");
    if (layout.tensor > 1 && (rows || columns)) {
      p.shard = {columns ? 1 : 0, {}, position.shard, layout.tensor};
      if (n.find("c_attn") != std::string::npos)
        p.shard.sections = std::vector<int64_t>(3, config.hidden);
    } else if (!rows && !columns) {
      p.copy = position.shard > 0;
    }
    table->add(p);
  }
}

// The elements of the flat buffers whose state the replica keeps. They end anywhere in a parameter.
inline std::vector<FlatRange> ranges_of(const Layout& layout, int replica, int64_t elements) {
  if (layout.zero == Zero::none || layout.data == 1) return {{0, elements}};
  const auto share = [&](int64_t begin, int64_t end) {
    const int64_t n = end - begin;
    return FlatRange{begin + n * replica / layout.data, begin + n * (replica + 1) / layout.data};
  };
  if (layout.zero == Zero::ranges) return {share(0, elements)};
  const int64_t third = elements / 3 + 5;
  return {share(2 * third, elements), share(0, third), share(third, 2 * third)};
}

// A rank's part of the model and of the optimizer's state.
class Part {
 public:
  Part(const Layout& layout, int rank, DType compute, bool with_optimizer = true)
      : layout_(layout),
        position_(position_of(layout.shape(), rank)),
        config(model_of(layout)),
        stream(make_stream(Device{})) {
    register_model(config, &whole_);
    register_part(layout, position_, &table);
    table.allocate(*stream, compute);
    if (!with_optimizer) return;
    buffers.ranges = ranges_of(layout, position_.replica, table.elements());
    int64_t held = 0;
    for (const FlatRange& r : buffers.ranges) held += r.last - r.first;
    const DType type = compute == DType::f64 ? DType::f64 : DType::f32;
    const bool shared = compute == type && held == table.elements();
    for (std::vector<char>& memory : memory_)
      memory.assign(static_cast<size_t>(held) * size_of(type), 0);
    const auto view = [&](size_t i) { return Tensor(memory_[i].data(), type, {held}); };
    buffers.master = shared ? table.weights() : view(0);
    buffers.first_moment = view(1);
    buffers.second_moment = view(2);
  }

  ParameterState state() const {
    ParameterState s(table, buffers);
    s.model = &whole_.all();
    return s;
  }
  SaveGroup group() const {
    SaveGroup group;
    group.shape = layout_.shape();
    group.position = position_;
    group.divided_optimizer = layout_.zero != Zero::none;
    return group;
  }

  // The buffers of a training, of which `rows` of the vocabulary are stored: 0 beyond them.
  struct Numbers {
    std::string weights, buffers[3];
    bool operator==(const Numbers&) const = default;
  };
  Numbers expected(uint64_t training, int64_t rows = 1000) const {
    Numbers n;
    n.weights = filled(table.weights(), {{0, table.elements()}}, training, 0, rows);
    for (int i = 0; i < 3; ++i)
      if (buffers.master.defined())
        n.buffers[i] = filled(buffer(i), buffers.ranges, training, i, rows);
    return n;
  }
  Numbers actual() const {
    Numbers n;
    const auto bytes = [](const Tensor& t) { return std::string(t.as<char>(), t.bytes()); };
    n.weights = bytes(table.weights());
    for (int i = 0; i < 3; ++i)
      if (buffers.master.defined()) n.buffers[i] = bytes(buffer(i));
    return n;
  }
  void set(const Numbers& n) {
    std::memcpy(table.weights().data, n.weights.data(), n.weights.size());
    for (int i = 0; i < 3; ++i)
      if (buffers.master.defined())
        std::memcpy(buffer(i).data, n.buffers[i].data(), n.buffers[i].size());
  }
  // Overwrites what this process has and another one writes.
  void spoil() {
    const auto other = [](const Tensor& t) { std::memset(t.data, 0x41, t.bytes()); };
    if (position_.replica > 0) other(table.weights());
    for (int i = 0; i < 3; ++i)
      if (position_.replica > 0 && layout_.zero == Zero::none) other(buffer(i));
    for (const Parameter& p : table.all())
      if (p.copy) other(parameter_range(table.weights(), p));
  }

 private:
  Tensor buffer(int i) const {
    return i == 0 ? buffers.master : i == 1 ? buffers.first_moment : buffers.second_moment;
  }
  // The bytes of a buffer of these ranges.
  std::string filled(const Tensor& like, const std::vector<FlatRange>& ranges, uint64_t training,
                     int which, int64_t rows) const {
    std::vector<float> flat(static_cast<size_t>(table.elements()), 0);
    for (const Parameter& p : table.all()) {
      for (int64_t i = 0; i < p.local_elements(); ++i) {
        const int64_t whole = place_in_whole(p, i);
        if (p.name == "wte.weight" && whole / p.shape[1] >= rows) continue;
        flat[static_cast<size_t>(p.offset + i)] = number(training, which, p.name, whole);
      }
    }
    std::vector<float> held;
    for (const FlatRange& r : ranges)
      held.insert(held.end(), flat.begin() + r.first, flat.begin() + r.last);
    std::string bytes(like.bytes(), '\0');
    const auto count = static_cast<int64_t>(held.size());
    convert_elements(Tensor(held.data(), DType::f32, {count}),
                     Tensor(bytes.data(), like.dtype, {count}));
    return bytes;
  }

  const Layout layout_;
  const MeshPosition position_;
  std::vector<char> memory_[3];
  ParameterTable whole_;

 public:
  const ModelConfig config;
  const std::unique_ptr<Stream> stream;
  ParameterTable table;
  OptimizerBuffers buffers;
};

// The texts of all threads, given to each when all have come.
class Meeting {
 public:
  explicit Meeting(int size) : texts_(static_cast<size_t>(size)) {}
  std::vector<std::string> exchange(int rank, const std::string& mine) {
    std::unique_lock<std::mutex> lock(mutex_);
    texts_[static_cast<size_t>(rank)] = mine;
    const int64_t round = round_;
    if (++come_ == texts_.size()) {
      come_ = 0;
      ++round_;
      result_ = texts_;
      all_.notify_all();
    }
    all_.wait(lock, [&] { return round_ != round; });
    return result_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_;
  std::vector<std::string> texts_, result_;
  size_t come_ = 0;
  int64_t round_ = 0;
};

// All ranks of a layout, with the numbers of a training.
class Ranks {
 public:
  Ranks(const Layout& l, DType compute, uint64_t training) : layout(l) {
    for (int r = 0; r < layout.shape().size(); ++r) {
      parts.push_back(std::make_unique<Part>(layout, r, compute));
      parts.back()->set(parts.back()->expected(training));
      parts.back()->spoil();
    }
  }
  // Calls work(rank, part, group) on every rank that writes; returns what each has thrown.
  template <typename Work>
  std::vector<std::string> together(const Work& work) {
    Meeting meeting(static_cast<int>(parts.size()));
    std::vector<std::string> errors(parts.size());
    std::vector<std::thread> threads;
    for (size_t r = 0; r < parts.size(); ++r) {
      SaveGroup group = parts[r]->group();
      if (!group.divided() && r > 0) break;
      group.exchange = [&meeting, r](const std::string& mine) {
        return meeting.exchange(static_cast<int>(r), mine);
      };
      threads.emplace_back([&, r, group] {
        try {
          work(static_cast<int>(r), *parts[r], group);
        } catch (const std::exception& e) {
          errors[r] = e.what();
        }
      });
    }
    for (std::thread& t : threads) t.join();
    return errors;
  }
  std::vector<std::string> save(const std::string& root, const TrainingState& state) {
    return together([&](int, Part& part, const SaveGroup& group) {
      save_checkpoint(root, state, part.config, part.state(), *part.stream, {}, group);
    });
  }

  const Layout layout;
  std::vector<std::unique_ptr<Part>> parts;
};

inline TrainingState state_of(int64_t iteration) {
  TrainingState state;
  state.iteration = iteration;
  return state;
}

}  // namespace layouts

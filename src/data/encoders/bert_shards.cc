#include "src/data/encoders/bert_shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <mutex>
#include <stdexcept>

#include "src/data/encoders/hdf5_file.h"

namespace tally::train {
namespace {

struct Shape {
  int64_t rows = 0, sequence = 0, max_predictions = 0;
};

// One shard in memory: only what its rows do not repeat.
struct Shard {
  Shape shape;
  std::vector<int32_t> ids;                                        // [rows, sequence]
  std::vector<int32_t> positions, labels;                          // [rows, max_predictions]
  std::vector<int32_t> lengths, a_lengths, masked, next_sentence;  // [rows]
};

Shape shape_of(const Hdf5Reader& file) {
  const auto ids = file.table("input_ids"), positions = file.table("masked_lm_positions");
  const auto check = [&](const char* name, int64_t columns) {
    const auto table = file.table(name);
    if (table.rows == ids.rows && table.columns == columns) return;
    throw std::runtime_error(fmt::format(
        "'{}': dataset {} is {} x {}, and {} x {} would fit input_ids: make the file again",
        file.path(), name, table.rows, table.columns, ids.rows, columns));
  };
  check("input_mask", ids.columns);
  check("segment_ids", ids.columns);
  check("masked_lm_positions", positions.columns);
  check("masked_lm_ids", positions.columns);
  check("next_sentence_labels", 1);
  if (ids.rows < 1 || ids.columns < 1 || positions.columns < 1)
    throw std::runtime_error(fmt::format("'{}' holds no samples: leave it out", file.path()));
  return {ids.rows, ids.columns, positions.columns};
}

class ShardReader {
 public:
  ShardReader(const std::string& path, const Shape& shape, int64_t vocabulary)
      : file_(path), vocabulary_(vocabulary) {
    shard_.shape = shape_of(file_);
    if (shard_.shape.rows != shape.rows || shard_.shape.sequence != shape.sequence ||
        shard_.shape.max_predictions != shape.max_predictions)
      throw std::runtime_error(fmt::format("'{}' was changed while it was in use", path));
  }

  Shard run() {
    const Shape& s = shard_.shape;
    shard_.ids = file_.read("input_ids");
    shard_.positions = file_.read("masked_lm_positions");
    shard_.labels = file_.read("masked_lm_ids");
    shard_.next_sentence = file_.read("next_sentence_labels");
    read_lengths(file_.read("input_mask"));
    read_types(file_.read("segment_ids"));
    for (int64_t row = 0; row < s.rows; ++row) check_row(row);
    return std::move(shard_);
  }

 private:
  [[noreturn]] void bad(int64_t row, const char* name, const std::string& why) const {
    throw std::runtime_error(
        fmt::format("'{}': row {} of {} {}: make the file again", file_.path(), row, name, why));
  }

  // The number of leading ones of `flags`, after which there are zeros alone up to `end`.
  int64_t leading_ones(int64_t row, const char* name, const int32_t* flags, int64_t end) const {
    const int32_t* after = std::find_if(flags, flags + end, [](int32_t v) { return v != 1; });
    if (std::any_of(after, flags + end, [](int32_t v) { return v != 0; }))
      bad(row, name, "is not ones, then zeros");
    return after - flags;
  }

  void read_lengths(const std::vector<int32_t>& mask) {
    const int64_t sequence = shard_.shape.sequence;
    for (int64_t row = 0; row < shard_.shape.rows; ++row) {
      const int64_t length =
          leading_ones(row, "input_mask", mask.data() + row * sequence, sequence);
      if (length < 1) bad(row, "input_mask", "has no token");
      shard_.lengths.push_back(static_cast<int32_t>(length));
    }
  }

  void read_types(const std::vector<int32_t>& all) {
    const int64_t sequence = shard_.shape.sequence;
    for (int64_t row = 0; row < shard_.shape.rows; ++row) {
      const int32_t* types = all.data() + row * sequence;
      const int32_t length = shard_.lengths[static_cast<size_t>(row)];
      const int32_t* b = std::find_if(types, types + length, [](int32_t v) { return v != 0; });
      const int64_t ones = leading_ones(row, "segment_ids", b, types + sequence - b);
      if (b - types + ones != length)
        bad(row, "segment_ids", "is not zeros, then ones up to the last token");
      shard_.a_lengths.push_back(static_cast<int32_t>(b - types));
    }
  }

  void check_row(int64_t row) {
    const int32_t length = shard_.lengths[static_cast<size_t>(row)];
    check_tokens(row, "input_ids", shard_.ids.data() + row * shard_.shape.sequence, length);
    const int32_t next = shard_.next_sentence[static_cast<size_t>(row)];
    if (next != 0 && next != 1) bad(row, "next_sentence_labels", fmt::format("is {}", next));
    shard_.masked.push_back(static_cast<int32_t>(masked_of(row, length)));
  }

  void check_tokens(int64_t row, const char* name, const int32_t* ids, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      if (ids[i] < 0 || ids[i] >= vocabulary_)
        bad(row, name,
            fmt::format("has the token {}, and the vocabulary has {}", ids[i], vocabulary_));
    }
  }

  // Position 0 is [CLS], which is never masked, and stands for "no more".
  int64_t masked_of(int64_t row, int64_t length) const {
    const int64_t most = shard_.shape.max_predictions;
    const int32_t* positions = &shard_.positions[static_cast<size_t>(row * most)];
    const int64_t count = std::find(positions, positions + most, 0) - positions;
    for (int64_t i = 0; i < count; ++i) {
      if (positions[i] < 0 || positions[i] >= length || (i > 0 && positions[i] <= positions[i - 1]))
        bad(row, "masked_lm_positions",
            fmt::format("has {}, and positions ascend and are below the length {}", positions[i],
                        length));
    }
    check_tokens(row, "masked_lm_ids", &shard_.labels[static_cast<size_t>(row * most)], count);
    return count;
  }

  Hdf5Reader file_;
  int64_t vocabulary_;
  Shard shard_;
};

class BertShards final : public EncoderSource {
 public:
  BertShards(const std::vector<std::string>& files, const BertShardOptions& options)
      : files_(files), options_(options) {
    for (const std::string& path : files_) {
      const Shape shape = shape_of(Hdf5Reader(path));
      if (!shapes_.empty() && (shape.sequence != shapes_[0].sequence ||
                               shape.max_predictions != shapes_[0].max_predictions))
        throw std::runtime_error(fmt::format(
            "'{}' has sequences of {} tokens and {} predictions, and '{}' has {} and {}: train on "
            "shards of one shape at a time",
            path, shape.sequence, shape.max_predictions, files_[0], shapes_[0].sequence,
            shapes_[0].max_predictions));
      shapes_.push_back(shape);
      samples_ += shape.rows;
    }
    if (shapes_.empty()) throw std::invalid_argument("open_bert_shards: no files");
  }

  int64_t samples_per_epoch() const override { return samples_; }
  int64_t sequence() const override { return shapes_[0].sequence; }
  int64_t max_predictions() const override { return shapes_[0].max_predictions; }

  void sample(int64_t index, EncoderSample* out) const override {
    const int64_t epoch = index / samples_;
    const auto [visit, row] = locate(epoch, index % samples_);
    const std::shared_ptr<const Shard> shard = shard_at(epoch, visit);
    copy(*shard, options_.shuffle ? shuffled_row(epoch, visit, row, shard->shape.rows) : row, out);
    if (options_.mode == Masking::fixed) return;
    MaskingOptions masking = options_.masking;
    masking.max_predictions = std::min(masking.max_predictions, max_predictions());
    PhiloxDraws draws(options_.seed, Draw::masks, static_cast<uint64_t>(index));
    unmask_tokens(out);
    mask_tokens(masking, &draws, out);
  }

 private:
  struct Order {  // an epoch's shards
    int64_t epoch = -1;
    std::vector<size_t> shards;   // in the order of visits
    std::vector<int64_t> starts;  // the first sample of each visit
  };
  struct Location {
    int64_t visit, row;
  };

  std::shared_ptr<const Order> order_of(int64_t epoch) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::shared_ptr<const Order>& kept = orders_[static_cast<size_t>(epoch % 2)];
    if (kept && kept->epoch == epoch) return kept;
    auto order = std::make_shared<Order>();
    order->epoch = epoch;
    for (size_t i = 0; i < files_.size(); ++i) order->shards.push_back(i);
    PhiloxDraws draws(options_.seed, Draw::shards, static_cast<uint64_t>(epoch));
    if (options_.shuffle) draws.shuffle(&order->shards);
    int64_t start = 0;
    for (const size_t shard : order->shards) {
      order->starts.push_back(start);
      start += shapes_[shard].rows;
    }
    kept = order;
    return order;
  }

  Location locate(int64_t epoch, int64_t sample) const {
    const auto order = order_of(epoch);
    const auto after = std::upper_bound(order->starts.begin(), order->starts.end(), sample);
    const int64_t visit = after - order->starts.begin() - 1;
    return {visit, sample - order->starts[static_cast<size_t>(visit)]};
  }

  int64_t shuffled_row(int64_t epoch, int64_t visit, int64_t row, int64_t rows) const {
    PhiloxDraws draws(options_.seed, Draw::rows,
                      static_cast<uint64_t>(epoch * static_cast<int64_t>(files_.size()) + visit));
    const uint64_t key = (static_cast<uint64_t>(draws.next()) << 32) | draws.next();
    return static_cast<int64_t>(
        Permutation(static_cast<uint64_t>(rows), key)(static_cast<uint64_t>(row)));
  }

  void copy(const Shard& shard, int64_t row, EncoderSample* out) const {
    const auto at = static_cast<size_t>(row);
    const int32_t* ids = &shard.ids[at * static_cast<size_t>(sequence())];
    out->ids.assign(ids, ids + shard.lengths[at]);
    out->token_types.assign(static_cast<size_t>(shard.lengths[at]), 1);
    std::fill_n(out->token_types.begin(), shard.a_lengths[at], 0);
    const size_t first = at * static_cast<size_t>(max_predictions());
    out->masked_positions.assign(&shard.positions[first],
                                 &shard.positions[first] + shard.masked[at]);
    out->masked_labels.assign(&shard.labels[first], &shard.labels[first] + shard.masked[at]);
    out->next_sentence = shard.next_sentence[at];
    out->label = out->start = out->end = -1;
  }

  using Loaded = std::shared_future<std::shared_ptr<const Shard>>;

  // The shard of a visit, which another thread may be reading already; the next one is begun.
  std::shared_ptr<const Shard> shard_at(int64_t epoch, int64_t visit) const {
    const auto count = static_cast<int64_t>(files_.size());
    const int64_t number = epoch * count + visit;
    const size_t file = order_of(epoch)->shards[static_cast<size_t>(visit)];
    const size_t next =
        order_of((number + 1) / count)->shards[static_cast<size_t>((number + 1) % count)];
    Loaded wanted;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      wanted = load(file, next);
      load(next, file);
    }
    return wanted.get();
  }

  // Begins to read a shard unless it is there; of others only `kept` stays. Called with the mutex.
  Loaded load(size_t file, size_t kept) const {
    for (const auto& [number, loaded] : loaded_) {
      if (number == file) return loaded;
    }
    std::erase_if(loaded_, [&](const auto& entry) { return entry.first != kept; });
    loaded_.emplace_back(file, std::async(std::launch::async, [this, file] {
                                 ShardReader reader(files_[file], shapes_[file],
                                                    options_.masking.vocabulary);
                                 return std::make_shared<const Shard>(reader.run());
                               }).share());
    return loaded_.back().second;
  }

  std::vector<std::string> files_;
  BertShardOptions options_;
  std::vector<Shape> shapes_;
  int64_t samples_ = 0;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Order> orders_[2];
  mutable std::vector<std::pair<size_t, Loaded>> loaded_;
};

}  // namespace

std::vector<std::string> bert_shard_files(const std::string& path, bool training) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::string> named, others;
  bool by_name = false;
  for (const auto& entry : std::filesystem::directory_iterator(path)) {
    const std::string name = entry.path().filename().string(), ending = entry.path().extension();
    if (ending != ".hdf5" && ending != ".h5") continue;
    const bool for_training = name.find("training") != std::string::npos;
    const bool for_test =
        name.find("test") != std::string::npos || name.find("validation") != std::string::npos;
    by_name = by_name || for_training;
    (training ? for_training : for_test) ? named.push_back(entry.path().string())
                                         : others.push_back(entry.path().string());
  }
  std::vector<std::string>& files = training && !by_name ? others : named;
  if (files.empty())
    throw std::runtime_error(
        training
            ? fmt::format("'{}' has no .hdf5 files for training: tally-train prepare --task bert "
                          "makes some",
                          path)
            : fmt::format("'{}' has no .hdf5 files for validation (with \"test\" or \"validation\" "
                          "in their names), and tally-train prepare makes none: prepare a held-out "
                          "text in a folder of its own and name its files instead",
                          path));
  std::sort(files.begin(), files.end());
  return files;
}

std::unique_ptr<EncoderSource> open_bert_shards(const std::vector<std::string>& files,
                                                const BertShardOptions& options) {
  return std::make_unique<BertShards>(files, options);
}

void write_bert_shard(const std::string& path, const std::vector<EncoderSample>& samples,
                      int64_t sequence, int64_t max_predictions) {
  const size_t rows = samples.size(), wide = rows * static_cast<size_t>(sequence);
  const size_t narrow = rows * static_cast<size_t>(max_predictions);
  std::vector<int32_t> ids(wide), positions(narrow), labels(narrow);
  std::vector<int8_t> mask(wide), types(wide), next(rows);
  for (size_t row = 0; row < rows; ++row) {
    const EncoderSample& s = samples[row];
    const auto at = static_cast<std::ptrdiff_t>(row) * sequence;
    const auto first = static_cast<std::ptrdiff_t>(row) * max_predictions;
    if (s.length() > sequence || static_cast<int64_t>(s.masked_positions.size()) > max_predictions)
      throw std::invalid_argument("write_bert_shard: a sample is too long");
    std::copy(s.ids.begin(), s.ids.end(), ids.begin() + at);
    std::fill_n(mask.begin() + at, s.ids.size(), int8_t{1});
    std::copy(s.token_types.begin(), s.token_types.end(), types.begin() + at);
    std::copy(s.masked_positions.begin(), s.masked_positions.end(), positions.begin() + first);
    std::copy(s.masked_labels.begin(), s.masked_labels.end(), labels.begin() + first);
    next[row] = static_cast<int8_t>(s.next_sentence);
  }
  const auto count = static_cast<int64_t>(rows);
  Hdf5Writer file(path);
  file.write("input_ids", ids, count, sequence);
  file.write("input_mask", mask, count, sequence);
  file.write("segment_ids", types, count, sequence);
  file.write("masked_lm_positions", positions, count, max_predictions);
  file.write("masked_lm_ids", labels, count, max_predictions);
  file.write("next_sentence_labels", next, count, 0);
  file.finish();
}

}  // namespace tally::train

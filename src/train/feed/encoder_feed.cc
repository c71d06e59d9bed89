#include "src/train/feed/encoder_feed.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <string>

#include "src/train/run/device.h"

namespace tally::train {
namespace {

constexpr int64_t alignment = 4;  // numbers in 16 bytes

int64_t rounded_up(int64_t n, int64_t step) {
  return (n + step - 1) / step * step;
}

// The most numbers of a micro batch: six arrays of tokens (ids, types, positions, masked tokens and
// their labels, one in reserve for rounding) and six of sequences.
int64_t most_numbers(const Config& c) {
  return 6 * c.micro_batch * c.sequence + 8 * (c.micro_batch + 2) + 16 * alignment;
}

// Sequences one after the other, or in rows of `row` tokens each.
class BatchWriter {
 public:
  BatchWriter(const EncoderBatch& batch, EncoderArrays* out) : batch_(batch), out_(*out) {}

  void add(int64_t sequence, int64_t row) {
    const auto begin = static_cast<int32_t>(out_.ids.size());
    const auto length = batch_.lengths[static_cast<size_t>(sequence)];
    const auto from = static_cast<std::ptrdiff_t>(sequence * batch_.sequence);
    out_.firsts.push_back(begin);
    out_.lengths.push_back(length);
    out_.cu_seqlens.push_back(begin);
    out_.ids.insert(out_.ids.end(), batch_.ids.begin() + from, batch_.ids.begin() + from + length);
    out_.token_types.insert(out_.token_types.end(), batch_.token_types.begin() + from,
                            batch_.token_types.begin() + from + length);
    for (int32_t i = 0; i < length; ++i) out_.positions.push_back(i);
    if (row > length) fill(row - length);
  }
  // Adds tokens that belong to no sequence.
  void fill(int64_t tokens) {
    out_.cu_seqlens.push_back(static_cast<int32_t>(out_.ids.size()));
    for (auto* each : {&out_.ids, &out_.token_types, &out_.positions})
      each->resize(each->size() + static_cast<size_t>(tokens), 0);
  }

 private:
  const EncoderBatch& batch_;
  EncoderArrays& out_;
};

void check_ids(const EncoderArrays& a, const ModelConfig& model) {
  const auto outside = [](int64_t most) {
    return [most](int32_t id) { return id < 0 || id >= most; };
  };
  const auto bad = std::find_if(a.ids.begin(), a.ids.end(), outside(model.vocabulary));
  if (bad != a.ids.end())
    throw std::runtime_error(
        fmt::format("the data holds token {}, and the vocabulary has {} tokens: give the "
                    "--vocab-file that the data was made with, or --vocab-size",
                    *bad, model.vocabulary));
  if (model.token_types > 0 &&
      std::any_of(a.token_types.begin(), a.token_types.end(), outside(model.token_types)))
    throw std::runtime_error(
        fmt::format("the data holds a token type that the model's table of {} does not have",
                    model.token_types));
}

// Whether attention serves one row of all tokens without computing all pairs of them.
bool serves_documents(const Config& c, Stream& stream) {
  if (!stream.device().is_cuda()) return true;
  const Compute compute(stream, {c.policy});
  return std::string(attention_backend(compute, attention_shape(c, true), c.compute_type())) !=
         "unfused";
}

// Positions of answers beyond the sequence do not count, and negative ones are its first token, as
// in transformers.
int32_t answer_label(int32_t position, int32_t length) {
  return position >= length ? -1 : std::max(position, 0);
}

using Labels = std::array<std::vector<int32_t>, 2>;  // each head's

Labels labels_of(const EncoderBatch& batch, const ModelConfig& model) {
  if (model.task == Task::pretraining) {
    if (!model.predicts_next_sentence()) return {batch.masked_labels};  // there is no second head
    return {batch.masked_labels, batch.next_sentence};
  }
  if (model.task == Task::classification) return {batch.label};
  Labels labels;
  for (size_t row = 0; row < batch.start.size(); ++row) {
    labels[0].push_back(answer_label(batch.start[row], batch.lengths[row]));
    labels[1].push_back(answer_label(batch.end[row], batch.lengths[row]));
  }
  return labels;
}

LabelCounts counts_of(const Labels& labels) {
  LabelCounts counts{};
  for (const size_t k : {0UL, 1UL})
    counts[k] =
        std::count_if(labels[k].begin(), labels[k].end(), [](int32_t label) { return label >= 0; });
  return counts;
}

void add_labels(const EncoderBatch& batch, const ModelConfig& model, EncoderArrays* a) {
  if (model.task == Task::pretraining)
    for (const int32_t at : batch.masked_positions)
      a->masked.push_back(a->firsts[static_cast<size_t>(at / batch.sequence)] +
                          static_cast<int32_t>(at % batch.sequence));
  a->labels = labels_of(batch, model);
  a->counted = counts_of(a->labels);
}

}  // namespace

FeedOptions feed_options(const Config& c, Stream& stream) {
  FeedOptions o;
  o.pad = c.data.pad || !serves_documents(c, stream);
  o.row_step = c.data.pad ? c.sequence : 64;
  return o;
}

void lay_out(const EncoderBatch& batch, const ModelConfig& model, const FeedOptions& options,
             EncoderArrays* out) {
  *out = {};
  const auto [shortest, longest] = std::minmax_element(batch.lengths.begin(), batch.lengths.end());
  const int64_t row =
      options.pad ? std::min(batch.sequence, rounded_up(*longest, options.row_step)) : *longest;
  const bool full = *shortest == row, rows = full || options.pad;
  BatchWriter writer(batch, out);
  for (int64_t b = 0; b < batch.rows; ++b) {
    writer.add(b, rows ? row : 0);
    out->real_tokens += batch.lengths[static_cast<size_t>(b)];
  }
  const auto count = static_cast<int64_t>(out->ids.size());
  out->rows = rows ? batch.rows : 1;
  out->columns = count / out->rows;
  out->packed = !rows;
  if (rows) out->positions.clear();
  if (full) {
    out->cu_seqlens.clear();
  } else {
    // The array is as long as it can be, so that the array's size does not depend on the samples.
    out->cu_seqlens.resize(static_cast<size_t>(2 * batch.rows + 1), static_cast<int32_t>(count));
  }
  add_labels(batch, model, out);
  check_ids(*out, model);
}

EncoderUpload::EncoderUpload(const Config& config, Stream& stream, int64_t slots)
    : config_(config),
      stream_(stream),
      slots_(slots),
      slot_numbers_(most_numbers(config)),
      host_(stream, static_cast<size_t>(slots_ * slot_numbers_) * sizeof(int32_t)),
      arena_(stream),
      device_(arena_.make(DType::i32, {slot_numbers_}, "micro batch")) {}

// Copies the numbers behind those before; their tensor on the device.
Tensor EncoderUpload::put(const std::vector<int32_t>& values, int32_t* host, int64_t* at) const {
  const auto count = static_cast<int64_t>(values.size());
  Tensor t(device_.as<int32_t>() + *at, DType::i32, {count});
  std::copy(values.begin(), values.end(), host + *at);
  *at = rounded_up(*at + count, alignment);
  return t;
}

void EncoderUpload::put(const EncoderArrays& a, Batch* batch) {
  int32_t* host = host_.as<int32_t>() + copies_++ % slots_ * slot_numbers_;
  int64_t at = 0;
  const auto matrix = [&](const std::vector<int32_t>& values) {
    return put(values, host, &at).view({a.rows, a.columns});
  };
  *batch = {};
  batch->ids = matrix(a.ids);
  if (config_.model.token_types > 0) batch->token_types = matrix(a.token_types);
  if (a.packed) batch->positions = matrix(a.positions);
  if (!a.cu_seqlens.empty()) batch->cu_seqlens = put(a.cu_seqlens, host, &at);
  batch->firsts = put(a.firsts, host, &at);
  batch->lengths = put(a.lengths, host, &at);
  if (config_.model.task == Task::pretraining) batch->rows = put(a.masked, host, &at);
  for (const size_t k : {0UL, 1UL}) batch->labels[k] = put(a.labels[k], host, &at);
  batch->counted = a.counted;
  stream_.copy(device_.data, host, static_cast<size_t>(at) * sizeof(int32_t));
}

EncoderFeed::EncoderFeed(const Config& config, const BatchOrder& order, Stream& stream,
                         std::shared_ptr<const EncoderSource> source, int hold)
    : config_(config),
      options_(feed_options(config, stream)),
      loader_(std::move(source), order, 0, 2, config.micro_batches_ahead()),
      upload_(config, stream, hold + 1) {}

void EncoderFeed::load(Batch* batch) {
  lay_out(loader_.next(), config_.model, options_, &arrays_);
  upload_.put(arrays_, batch);
  ++loaded_;
  real_tokens_ += static_cast<double>(arrays_.real_tokens);
}

LabelCounts EncoderFeed::counted(int64_t micro_batches) {
  LabelCounts sum{};
  for (int64_t k = 0; k < micro_batches; ++k) {
    const LabelCounts counts = counts_of(labels_of(loader_.peek(k), config_.model));
    for (const size_t head : {0UL, 1UL}) sum[head] += counts[head];
  }
  return sum;
}

double EncoderFeed::tokens_per_sample() const {
  return loaded_ > 0 ? real_tokens_ / static_cast<double>(loaded_ * config_.micro_batch)
                     : static_cast<double>(config_.sequence);
}

}  // namespace tally::train

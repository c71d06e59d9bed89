#include "src/data/commands/bert_prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <stdexcept>

#include "src/data/commands/ordered_pool.h"
#include "src/data/commands/sentence_dataset.h"
#include "src/data/encoders/bert_shards.h"
#include "src/data/text/output_file.h"
#include "src/data/text/text_input.h"

namespace tally::train {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDocumentsAtOnce = 64;

// The pairs of some documents, without masks, as in a spool file: number of the sample, next
// sentence, lengths of [CLS] A [SEP] and of all, tokens.
struct PairHeader {
  int64_t number = 0;
  int32_t next_sentence = 0, a_length = 0, length = 0;
};

class Spool {  // one shard's
 public:
  explicit Spool(const std::string& path) : file_(path) {}

  void append(const EncoderSample& sample, int64_t number) {
    const auto b = std::find(sample.token_types.begin(), sample.token_types.end(), 1);
    file_.append_value(PairHeader{number, sample.next_sentence,
                                  static_cast<int32_t>(b - sample.token_types.begin()),
                                  static_cast<int32_t>(sample.length())});
    file_.append(sample.ids.data(), sample.ids.size() * sizeof(int32_t));
    ++samples_;
  }
  int64_t samples() const { return samples_; }

  // The samples with their masks, in the order of their numbers.
  std::vector<EncoderSample> read_masked(const MaskingOptions& masking, uint64_t seed) {
    std::vector<EncoderSample> samples(static_cast<size_t>(samples_));
    file_.rewind_for_reading();
    for (EncoderSample& sample : samples) {
      PairHeader header;
      read(&header, sizeof header);
      sample.ids.resize(static_cast<size_t>(header.length));
      read(sample.ids.data(), sample.ids.size() * sizeof(int32_t));
      sample.token_types.assign(sample.ids.size(), 1);
      std::fill_n(sample.token_types.begin(), header.a_length, 0);
      sample.next_sentence = header.next_sentence;
      PhiloxDraws draws(seed, Draw::masks, static_cast<uint64_t>(header.number));
      mask_tokens(masking, &draws, &sample);
    }
    return samples;
  }

 private:
  void read(void* data, size_t bytes) {
    if (file_.read(data, bytes) != bytes)
      throw std::runtime_error(fmt::format("'{}' was cut short while it was in use", file_.path()));
  }

  OutputFile file_;
  int64_t samples_ = 0;
};

class BertPreparation {
 public:
  BertPreparation(const WordPieceTokenizer& tokenizer, const BertPrepareOptions& options)
      : tokenizer_(tokenizer), options_(options) {
    summary_.folder = (fs::path(options.output) / bert_shard_folder(options)).string();
    if (fs::exists(options.output) && !fs::is_directory(options.output))
      throw BadInput(fmt::format("--output: '{}' is a file: name a folder", options.output));
    if (fs::exists(summary_.folder))
      throw BadInput(fmt::format("'{}' already exists: remove it, or choose another --output",
                                 summary_.folder));
    work_ = summary_.folder + ".tmp";
    fs::remove_all(work_);  // left by a run that was killed
    std::error_code error;
    fs::create_directories(work_, error);
    if (error)
      throw std::runtime_error(
          fmt::format("the directory '{}' cannot be made: {}", work_, error.message()));
  }
  ~BertPreparation() {
    std::error_code ignored;
    spools_.clear();
    fs::remove_all(work_, ignored);
  }
  BertPreparation(const BertPreparation&) = delete;
  BertPreparation& operator=(const BertPreparation&) = delete;

  BertPrepareSummary run() {
    const auto begin = std::chrono::steady_clock::now();
    const std::string prefix = work_ + "/sentences";
    write_sentences(tokenizer_, options_, prefix, &summary_);
    make_pairs(DatasetSentences(std::make_shared<IndexedDataset>(prefix)));
    fs::remove(prefix + ".bin");
    fs::remove(prefix + ".idx");
    for (size_t shard = 0; shard < spools_.size(); ++shard) write_shard(shard);
    spools_.clear();
    rename_durably(work_, summary_.folder);
    summary_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return summary_;
  }

 private:
  struct Unit {  // documents first ... end - 1 of all passes over the text together
    int64_t first, end;
  };
  using Pairs = std::vector<EncoderSample>;

  void make_pairs(const DatasetSentences& text) {
    for (int64_t i = 0; i < options_.shards; ++i)
      spools_.push_back(std::make_unique<Spool>(fmt::format("{}/pairs-{}", work_, i)));
    const SentencePairOptions pair_options{options_.sequence, options_.short_sequence_probability,
                                           tokenizer_.tokens()};
    OrderedPool<Unit, Pairs> pool(
        options_.workers,
        [&] {
          return [&](Unit&& unit) {
            Pairs pairs;
            for (int64_t i = unit.first; i < unit.end; ++i) {
              PhiloxDraws draws(options_.seed, Draw::sentence_pairs, static_cast<uint64_t>(i));
              make_sentence_pairs(text, i % text.documents(), pair_options, &draws,
                                  [&](EncoderSample& s) { pairs.push_back(std::move(s)); });
            }
            return pairs;
          };
        },
        [&](Pairs&& pairs) { receive(pairs); });
    const int64_t all = text.documents() * options_.dupe_factor;
    for (int64_t first = 0; first < all; first += kDocumentsAtOnce)
      pool.push({first, std::min(all, first + kDocumentsAtOnce)});
    pool.drain();
  }

  // Samples are numbered in the order of the text, so that nothing depends on the threads.
  void receive(const Pairs& pairs) {
    for (const EncoderSample& sample : pairs) {
      PhiloxDraws draws(options_.seed, Draw::shards, static_cast<uint64_t>(summary_.samples));
      spools_[draws.below(spools_.size())]->append(sample, summary_.samples);
      ++summary_.samples;
    }
  }

  void write_shard(size_t number) {
    const std::unique_ptr<Spool> spool = std::move(spools_[number]);
    if (spool->samples() == 0) return;
    const MaskingOptions masking{options_.masked_probability, options_.max_predictions,
                                 tokenizer_.vocabulary(), tokenizer_.tokens()};
    std::vector<EncoderSample> samples = spool->read_masked(masking, options_.seed);
    PhiloxDraws draws(options_.seed, Draw::rows, number);
    draws.shuffle(&samples);
    const std::string path = fmt::format("{}/training_{}.hdf5", work_, summary_.shards++);
    write_bert_shard(path, samples, options_.sequence, options_.max_predictions);
    summary_.output_bytes += static_cast<int64_t>(fs::file_size(path));
  }

  const WordPieceTokenizer& tokenizer_;
  const BertPrepareOptions& options_;
  BertPrepareSummary summary_;
  std::string work_;
  std::vector<std::unique_ptr<Spool>> spools_;
};

}  // namespace

std::string bert_shard_folder(const BertPrepareOptions& o) {
  return fmt::format(
      "hdf5_lower_case_{}_seq_len_{}_max_pred_{}_masked_lm_prob_{}_random_seed_{}_dupe_factor_{}",
      o.lower_case ? 1 : 0, o.sequence, o.max_predictions, o.masked_probability, o.seed,
      o.dupe_factor);
}

BertPrepareSummary prepare_bert(const WordPieceTokenizer& tokenizer,
                                const BertPrepareOptions& options) {
  if (options.sequence < 8 || options.max_predictions < 1 || options.shards < 1 ||
      options.shards > kMostShards || options.dupe_factor < 1 || options.workers < 1)
    throw std::invalid_argument("prepare_bert: these sizes are not possible");
  return BertPreparation(tokenizer, options).run();
}

}  // namespace tally::train

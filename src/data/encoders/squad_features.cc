// SQuAD's examples to windows of tokens.
#include <algorithm>
#include <stdexcept>

#include "src/data/encoders/squad.h"
#include "src/data/tokens/order.h"

namespace tally::train {
namespace {

struct Window {
  int64_t begin, length;
};

// A paragraph in tokens.
struct Document {
  std::vector<int32_t> ids;
  std::vector<int32_t> word_of;      // [tokens]
  std::vector<int32_t> first_token;  // [words]
};

class FeatureMaker {
 public:
  FeatureMaker(const WordPieceTokenizer& tokenizer, const SquadOptions& options, bool training)
      : tokens_(tokenizer.tokens()),
        options_(options),
        training_(training),
        encoder_(tokenizer.make_encoder()) {}

  void add(const SquadExample& example, int64_t number, std::vector<SquadFeature>* out) {
    std::vector<int32_t> question = encode(example.question);
    if (static_cast<int64_t>(question.size()) > options_.question)
      question.resize(static_cast<size_t>(options_.question));
    if (example.paragraph != paragraph_) read(example.paragraph);
    const Window answer = training_ && !example.is_impossible ? answer_of(example) : Window{-1, 0};
    const auto windows = windows_of(options_.sequence - static_cast<int64_t>(question.size()) - 3);
    const std::vector<size_t> best = most_context(windows);
    for (size_t w = 0; w < windows.size(); ++w) {
      SquadFeature feature = make(question, windows[w]);
      feature.example = number;
      for (int64_t i = 0; i < windows[w].length; ++i)
        feature.most_context.push_back(best[static_cast<size_t>(windows[w].begin + i)] == w);
      if (training_) set_answer(answer, windows[w], &feature);
      out->push_back(std::move(feature));
    }
  }

 private:
  std::vector<int32_t> encode(const std::string& text) {
    std::vector<int32_t> ids;
    encoder_->encode(text, &ids);
    return ids;
  }

  void read(const std::shared_ptr<const SquadParagraph>& paragraph) {
    paragraph_ = paragraph;
    document_ = Document{};
    for (size_t word = 0; word < paragraph->words.size(); ++word) {
      document_.first_token.push_back(static_cast<int32_t>(document_.ids.size()));
      encoder_->encode(paragraph->words[word], &document_.ids);
      document_.word_of.resize(document_.ids.size(), static_cast<int32_t>(word));
    }
  }

  // The answer's tokens: those of its words, or the part of them that is exactly its text.
  Window answer_of(const SquadExample& example) {
    const int64_t begin = document_.first_token[static_cast<size_t>(example.start_word)];
    const auto next = static_cast<size_t>(example.end_word) + 1;
    const int64_t end = next < document_.first_token.size()
                            ? document_.first_token[next]
                            : static_cast<int64_t>(document_.ids.size());
    const std::vector<int32_t> text = encode(example.answers[0].text);
    const auto size = static_cast<int64_t>(text.size());
    for (int64_t at = begin; at + size <= end && size > 0; ++at) {
      if (std::equal(text.begin(), text.end(), document_.ids.begin() + at)) return {at, size};
    }
    return {begin, end - begin};
  }

  std::vector<Window> windows_of(int64_t room) const {
    const auto tokens = static_cast<int64_t>(document_.ids.size());
    std::vector<Window> windows;
    for (int64_t begin = 0; begin < tokens;) {
      const int64_t length = std::min(tokens - begin, room);
      windows.push_back({begin, length});
      if (begin + length == tokens) break;
      begin += std::min(length, options_.stride);
    }
    return windows;
  }

  // The window in which each token has most context: the smaller of those on its two sides, and a
  // little for a longer window.
  std::vector<size_t> most_context(const std::vector<Window>& windows) const {
    std::vector<size_t> best(document_.ids.size());
    std::vector<double> scores(best.size(), -1.0);
    for (size_t w = 0; w < windows.size(); ++w) {
      for (int64_t i = 0; i < windows[w].length; ++i) {
        const auto token = static_cast<size_t>(windows[w].begin + i);
        const double score = static_cast<double>(std::min(i, windows[w].length - 1 - i)) +
                             0.01 * static_cast<double>(windows[w].length);
        if (score <= scores[token]) continue;
        scores[token] = score;
        best[token] = w;
      }
    }
    return best;
  }

  SquadFeature make(const std::vector<int32_t>& question, const Window& window) const {
    SquadFeature f;
    f.ids.push_back(tokens_.cls);
    f.ids.insert(f.ids.end(), question.begin(), question.end());
    f.ids.push_back(tokens_.sep);
    f.window_begin = static_cast<int32_t>(f.ids.size());
    f.token_types.assign(f.ids.size(), 0);
    const auto begin = document_.ids.begin() + window.begin;
    f.ids.insert(f.ids.end(), begin, begin + window.length);
    f.ids.push_back(tokens_.sep);
    f.token_types.resize(f.ids.size(), 1);
    const auto words = document_.word_of.begin() + window.begin;
    f.word_of.assign(words, words + window.length);
    return f;
  }

  static void set_answer(const Window& answer, const Window& window, SquadFeature* feature) {
    feature->start = feature->end = 0;
    const int64_t first = answer.begin - window.begin;
    if (answer.begin < 0 || first < 0 || first + answer.length > window.length) return;
    feature->start = feature->window_begin + static_cast<int32_t>(first);
    feature->end = feature->start + static_cast<int32_t>(answer.length) - 1;
  }

  BertTokens tokens_;
  SquadOptions options_;
  bool training_;
  std::unique_ptr<Tokenizer::Encoder> encoder_;
  std::shared_ptr<const SquadParagraph> paragraph_;  // document_ has its tokens
  Document document_;
};

class SquadSamples final : public EncoderSource {
 public:
  SquadSamples(std::shared_ptr<const std::vector<SquadFeature>> features, int64_t sequence,
               bool shuffle, uint64_t seed)
      : features_(std::move(features)),
        order_(static_cast<int64_t>(features_->size()), shuffle, seed),
        sequence_(sequence) {}

  int64_t samples_per_epoch() const override { return order_.size(); }
  int64_t sequence() const override { return sequence_; }
  void sample(int64_t index, EncoderSample* out) const override {
    const SquadFeature& feature = (*features_)[static_cast<size_t>(order_(index))];
    out->ids = feature.ids;
    out->token_types = feature.token_types;
    out->masked_positions.clear();
    out->masked_labels.clear();
    out->next_sentence = out->label = -1;
    out->start = feature.start;
    out->end = feature.end;
  }

 private:
  std::shared_ptr<const std::vector<SquadFeature>> features_;
  EpochOrder order_;
  int64_t sequence_;
};

}  // namespace

std::vector<SquadFeature> make_squad_features(const std::vector<SquadExample>& examples,
                                              const WordPieceTokenizer& tokenizer,
                                              const SquadOptions& options, bool training) {
  if (options.question < 0 || options.stride < 1 || options.sequence < options.question + 4)
    throw std::invalid_argument(
        "the sequence has no room for a paragraph beside the question: raise --seq-length or lower "
        "--max-query-length");
  FeatureMaker maker(tokenizer, options, training);
  std::vector<SquadFeature> features;
  for (size_t i = 0; i < examples.size(); ++i)
    maker.add(examples[i], static_cast<int64_t>(i), &features);
  return features;
}

std::unique_ptr<EncoderSource> make_squad_samples(
    std::shared_ptr<const std::vector<SquadFeature>> features, int64_t sequence, bool shuffle,
    uint64_t seed) {
  if (features->empty()) throw std::invalid_argument("make_squad_samples: there are no features");
  return std::make_unique<SquadSamples>(std::move(features), sequence, shuffle, seed);
}

}  // namespace tally::train

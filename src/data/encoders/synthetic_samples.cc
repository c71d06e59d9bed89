#include "src/data/encoders/synthetic_samples.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <stdexcept>

#include "src/data/encoders/masking.h"
#include "src/data/tokens/permutation.h"

namespace tally::train {
namespace {

constexpr int64_t kLeast = 4, kMost = int64_t{1} << 20;  // tokens

// A whole number at text[*at], -1 where there is none.
int64_t number_at(const std::string& text, size_t* at) {
  int64_t value = -1;
  for (; *at < text.size() && text[*at] >= '0' && text[*at] <= '9' && value < kMost; ++*at)
    value = std::max<int64_t>(value, 0) * 10 + (text[*at] - '0');
  return value;
}

class SyntheticSamples final : public EncoderSource {
 public:
  explicit SyntheticSamples(const SyntheticOptions& options)
      : options_(options), classes_(static_cast<uint64_t>(options.samples), options.seed) {
    const BertTokens& t = options_.tokens;
    for (const int32_t token : {t.pad, t.unk, t.cls, t.sep, t.mask}) specials_.push_back(token);
    std::sort(specials_.begin(), specials_.end());
    specials_.erase(std::unique(specials_.begin(), specials_.end()), specials_.end());
    if (options.samples < 1 || options.classes < 1 || specials_.front() < 0 ||
        specials_.back() >= options.vocabulary || options.max_predictions < 1 ||
        options.vocabulary <= static_cast<int64_t>(specials_.size()))
      throw std::invalid_argument("make_synthetic_samples: these options are not possible");
  }

  int64_t samples_per_epoch() const override { return options_.samples; }
  int64_t sequence() const override { return options_.lengths.greatest(); }
  int64_t max_predictions() const override {
    return options_.task == SyntheticTask::pretraining ? options_.max_predictions : 0;
  }

  void sample(int64_t index, EncoderSample* out) const override {
    const int64_t number = index % options_.samples;
    PhiloxDraws draws(options_.seed, Draw::synthetic, static_cast<uint64_t>(number));
    const int64_t length = options_.lengths.at(draws.uniform());
    *out = EncoderSample{};
    const bool one_text = options_.task == SyntheticTask::classification;
    // [CLS] and a [SEP] after each text.
    const int64_t first = options_.task == SyntheticTask::question_answering ? (length - 3) / 4
                          : one_text                                         ? length - 2
                                                                             : (length - 3) / 2;
    out->ids.push_back(options_.tokens.cls);
    append(first, 0, &draws, out);
    const int64_t begin = out->length();
    if (!one_text) append(length - 3 - first, 1, &draws, out);
    finish(number, begin, &draws, out);
  }

 private:
  void append(int64_t count, int32_t type, PhiloxDraws* draws, EncoderSample* out) const {
    const int64_t ordinary = options_.vocabulary - static_cast<int64_t>(specials_.size());
    for (int64_t i = 0; i < count; ++i) {
      auto token = static_cast<int32_t>(draws->below(static_cast<uint64_t>(ordinary)));
      for (const int32_t special : specials_) token += token >= special ? 1 : 0;
      out->ids.push_back(token);
    }
    out->ids.push_back(options_.tokens.sep);
    out->token_types.resize(out->ids.size(), type);
  }

  // Balanced: sample after sample in a random order takes the next class.
  int32_t class_of(int64_t number, int64_t classes) const {
    return static_cast<int32_t>(static_cast<int64_t>(classes_(static_cast<uint64_t>(number))) %
                                classes);
  }

  void finish(int64_t number, int64_t begin, PhiloxDraws* draws, EncoderSample* out) const {
    switch (options_.task) {
      case SyntheticTask::classification:
        out->label = class_of(number, options_.classes);
        return;
      case SyntheticTask::pretraining:
        out->next_sentence = class_of(number, 2);
        mask_tokens({options_.masked_probability, options_.max_predictions, options_.vocabulary,
                     options_.tokens},
                    draws, out);
        return;
      case SyntheticTask::question_answering: {
        const int64_t a = draws->between(begin, out->length() - 2);
        const int64_t b = draws->between(begin, out->length() - 2);
        out->start = static_cast<int32_t>(std::min(a, b));
        out->end = static_cast<int32_t>(std::max(a, b));
      }
    }
  }

  SyntheticOptions options_;
  std::vector<int32_t> specials_;  // ascending
  Permutation classes_;
};

}  // namespace

LengthDistribution::LengthDistribution(const std::string& text) {
  if (!text.empty() && text[0] == '@') {
    read_histogram(text.substr(1));
    return;
  }
  size_t at = 0;
  const int64_t low = number_at(text, &at);
  int64_t high = low;
  if (at < text.size() && text[at] == ':') high = number_at(text, &++at);
  if (at != text.size() || low < kLeast || high < low || high > kMost)
    throw std::runtime_error(fmt::format(
        "'{}' is not a distribution of lengths: give 128, 16:128 or @FILE; lengths are {} to {}",
        text, kLeast, kMost));
  for (int64_t length = low; length <= high; ++length) {
    lengths_.push_back(length);
    sums_.push_back(static_cast<double>(length - low + 1) / static_cast<double>(high - low + 1));
  }
}

void LengthDistribution::read_histogram(const std::string& path) {
  errno = 0;
  std::ifstream in(path);
  if (!in)
    throw std::runtime_error(fmt::format("'{}' cannot be read: {}", path, std::strerror(errno)));
  std::map<int64_t, double> weights;
  std::string line;
  for (int64_t number = 1; std::getline(in, line); ++number) {
    size_t at = line.find_first_not_of(" \t\r");
    if (at == std::string::npos || line[at] == '#') continue;
    const auto fail = [&](size_t column, const std::string& why) {
      throw std::runtime_error(fmt::format("{}:{}:{}: {}", path, number, column + 1, why));
    };
    const size_t begin = at;
    const int64_t length = number_at(line, &at);
    if (length < kLeast || length > kMost)
      fail(begin, fmt::format("a length from {} to {} should stand here", kLeast, kMost));
    const size_t second = std::min(line.find_first_not_of(" \t,:", at), line.size());
    char* end = nullptr;
    const double weight = std::strtod(line.c_str() + second, &end);
    if (second == at || end == line.c_str() + second || !std::isfinite(weight) || weight < 0 ||
        std::string_view(end).find_first_not_of(" \t\r") != std::string_view::npos)
      fail(second, "a weight (a number from 0 on) should stand here, and nothing after it");
    if (weight > 0) weights[length] += weight;
  }
  double total = 0;
  for (const auto& [length, weight] : weights) total += weight;
  if (!(total > 0))
    throw std::runtime_error(fmt::format(
        "{}:1:1: the histogram has no length with a weight: write lines as \"128 0.5\"", path));
  double sum = 0;
  for (const auto& [length, weight] : weights) {
    lengths_.push_back(length);
    sums_.push_back((sum += weight) / total);
  }
  sums_.back() = 1;
}

double LengthDistribution::mean() const {
  double mean = 0, before = 0;
  for (size_t i = 0; i < lengths_.size(); ++i) {
    mean += static_cast<double>(lengths_[i]) * (sums_[i] - before);
    before = sums_[i];
  }
  return mean;
}

int64_t LengthDistribution::at(double uniform) const {
  const auto found = std::upper_bound(sums_.begin(), sums_.end(), uniform);
  return found == sums_.end() ? lengths_.back()
                              : lengths_[static_cast<size_t>(found - sums_.begin())];
}

std::unique_ptr<EncoderSource> make_synthetic_samples(const SyntheticOptions& options) {
  return std::make_unique<SyntheticSamples>(options);
}

}  // namespace tally::train

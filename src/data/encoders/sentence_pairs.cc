#include "src/data/encoders/sentence_pairs.h"

#include <algorithm>

namespace tally::train {
namespace {

// The tokens of one part of a pair, of which some have been cut off.
struct Part {
  std::vector<int32_t> tokens;
  size_t begin = 0, end = 0;

  void take_all() {
    begin = 0;
    end = tokens.size();
  }
  size_t size() const { return end - begin; }
  void append_to(EncoderSample* sample, int32_t type, int32_t sep) const {
    sample->ids.insert(sample->ids.end(), tokens.begin() + static_cast<std::ptrdiff_t>(begin),
                       tokens.begin() + static_cast<std::ptrdiff_t>(end));
    sample->ids.push_back(sep);
    sample->token_types.resize(sample->ids.size(), type);
  }
};

class PairMaker {
 public:
  PairMaker(const SentenceSource& source, int64_t document, const SentencePairOptions& options,
            PhiloxDraws* draws, const std::function<void(EncoderSample&)>& use)
      : source_(source),
        document_(document),
        options_(options),
        room_(options.sequence - 3),
        draws_(*draws),
        use_(use) {
    target_ = room_;
    if (draws_.uniform() < options.short_sequence_probability) target_ = draws_.between(2, room_);
  }

  void run() {
    const int64_t sentences = source_.sentences(document_);
    int64_t first = 0;
    std::vector<int32_t> tokens;
    for (int64_t next = 0; next < sentences;) {
      source_.append(document_, next++, &tokens);
      if (next < sentences && static_cast<int64_t>(tokens.size()) < target_) continue;
      next = make_pair(first, next);
      first = next;
      tokens.clear();
    }
  }

 private:
  // Makes a pair of sentences `first` to `end`; returns where the next one begins.
  int64_t make_pair(int64_t first, int64_t end) {
    const int64_t split = end - first >= 2 ? first + draws_.between(1, end - first - 1) : end;
    fill(document_, first, split, &a_);
    const bool random = split == end || draws_.uniform() < 0.5;
    if (random) {
      fill_at_random(target_ - static_cast<int64_t>(a_.tokens.size()));
    } else {
      fill(document_, split, end, &b_);
    }
    a_.take_all();
    b_.take_all();
    truncate();
    sample_ = EncoderSample{};
    sample_.ids.push_back(options_.tokens.cls);
    a_.append_to(&sample_, 0, options_.tokens.sep);
    b_.append_to(&sample_, 1, options_.tokens.sep);
    sample_.next_sentence = random ? 1 : 0;
    use_(sample_);
    return random ? split : end;
  }

  void fill(int64_t document, int64_t first, int64_t end, Part* part) const {
    part->tokens.clear();
    for (int64_t sentence = first; sentence < end; ++sentence)
      source_.append(document, sentence, &part->tokens);
  }

  void fill_at_random(int64_t wanted) {
    int64_t document = document_;
    // Ten draws are enough to find another document, unless there is none.
    for (int draw = 0; draw < 10; ++draw) {
      document = draws_.between(0, source_.documents() - 1);
      if (document != document_) break;
    }
    b_.tokens.clear();
    const int64_t sentences = source_.sentences(document);
    for (int64_t at = draws_.between(0, sentences - 1); at < sentences; ++at) {
      source_.append(document, at, &b_.tokens);
      if (static_cast<int64_t>(b_.tokens.size()) >= wanted) break;
    }
  }

  void truncate() {
    while (static_cast<int64_t>(a_.size() + b_.size()) > room_) {
      Part& longer = a_.size() > b_.size() ? a_ : b_;
      if (draws_.uniform() < 0.5) {
        ++longer.begin;
      } else {
        --longer.end;
      }
    }
  }

  const SentenceSource& source_;
  int64_t document_;
  const SentencePairOptions& options_;
  int64_t room_, target_ = 0;  // tokens without [CLS] and [SEP]
  PhiloxDraws& draws_;
  const std::function<void(EncoderSample&)>& use_;
  Part a_, b_;
  EncoderSample sample_;
};

}  // namespace

void make_sentence_pairs(const SentenceSource& source, int64_t document,
                         const SentencePairOptions& options, PhiloxDraws* draws,
                         const std::function<void(EncoderSample&)>& use) {
  PairMaker(source, document, options, draws, use).run();
}

}  // namespace tally::train

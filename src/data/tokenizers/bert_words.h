// BERT's basic tokenization: how a text is normalized and split into words, before WordPiece cuts
// words into pieces (Devlin et al. 2018, tokenization.py of google-research/bert; here in the order
// in which Hugging Face's BertNormalizer and BertPreTokenizer do it).
//
//   1. clean:   NUL, U+FFFD and characters of the categories Cc, Cf, Co and Cs are removed; tab,
//               line feed, carriage return and every other white space become a blank
//   2. CJK:     every ideograph stands alone, as if between blanks
//   3. accents: the text is decomposed (NFD), and nonspacing marks (Mn) are removed
//   4. case:    every character becomes lower case, regardless of its neighbours (a final capital
//               sigma becomes a medial one)
//   5. split:   at white space, which goes, and around every character of punctuation, which stays:
//               ASCII's punctuation and symbols, and the categories P*
//
// Properties of characters are ICU's. Models with accents and upper case (BertWordPieceCase) leave
// out steps 3 and 4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tally::train {

struct BertWordRules {
  bool clean_text = true;     // step 1
  bool space_cjk = true;      // step 2
  bool strip_accents = true;  // step 3
  bool lower_case = true;     // step 4
};

// Splits texts into words. Scratch memory and rules; belongs to one thread.
class BertWordSplitter {
 public:
  explicit BertWordSplitter(const BertWordRules& rules) : rules_(rules) {}

  // Calls use(word) for each word of `text`, normalized, in order. `text` is valid UTF-8; a word
  // is valid for the duration of the call.
  template <typename Use>
  void split(std::string_view text, const Use& use) {
    const std::string& words = normalize_and_split(text);
    for (size_t begin = 0; begin < words.size();) {
      const size_t end = words.find(kEnd, begin);
      use(std::string_view(words).substr(begin, end - begin));
      begin = end + 1;
    }
  }

 private:
  // Stands in no text: UTF-8 has no such byte. (NUL may stand in a text and in a vocabulary.)
  static constexpr char kEnd = '\xFF';

  // The words, each with kEnd after it.
  const std::string& normalize_and_split(std::string_view text);
  bool split_ascii(std::string_view text);

  BertWordRules rules_;
  std::string words_;
};

// The words of a text of valid UTF-8, as copies.
std::vector<std::string> bert_words(std::string_view text, const BertWordRules& rules);

}  // namespace tally::train

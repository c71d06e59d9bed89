#include "src/data/tokenizers/added_tokens.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>

namespace tally::train {
namespace {

// \w of Rust's regular expressions.
bool is_rust_word(UChar32 c) {
  return u_isUAlphabetic(c) || u_hasBinaryProperty(c, UCHAR_JOIN_CONTROL) ||
         (U_GET_GC_MASK(c) & (U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK)) != 0;
}

UChar32 character_at(std::string_view text, size_t* at) {
  UChar32 c = 0;
  U8_NEXT(text.data(), *at, text.size(), c);
  return c;
}
UChar32 character_before(std::string_view text, size_t* at) {
  do {
    --*at;
  } while (*at > 0 && U8_IS_TRAIL(text[*at]));
  size_t begin = *at;
  return character_at(text, &begin);
}

bool is_in_word(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && is_rust_word(character_before(text, &begin))) ||
         (end < text.size() && is_rust_word(character_at(text, &end)));
}

size_t before_space(std::string_view text, size_t at) {
  for (size_t next = at; at > 0; at = next)
    if (!u_isUWhiteSpace(character_before(text, &next))) break;
  return at;
}
size_t after_space(std::string_view text, size_t at) {
  for (size_t next = at; at < text.size(); at = next)
    if (!u_isUWhiteSpace(character_at(text, &next))) break;
  return at;
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)), nodes_(1) {
  for (size_t n = 0; n < tokens_.size(); ++n) {
    const AddedToken& token = tokens_[n];
    uint32_t node = 0;
    for (const char c : token.content) {
      uint32_t next = child(node, c);
      if (next == 0) {
        next = static_cast<uint32_t>(nodes_.size());
        auto& edges = nodes_[node].next;
        const std::pair edge(static_cast<unsigned char>(c), next);
        edges.insert(std::lower_bound(edges.begin(), edges.end(), edge), edge);
        nodes_.emplace_back();
      }
      node = next;
    }
    if (nodes_[node].token < 0) nodes_[node].token = static_cast<int32_t>(n);
    first_[static_cast<unsigned char>(token.content.front())] = true;
    longest_ = std::max(longest_, token.content.size());
    single_words_ = single_words_ || token.single_word;
  }
}

uint32_t AddedTokens::child(uint32_t node, char c) const {
  const auto& edges = nodes_[node].next;
  const std::pair edge(static_cast<unsigned char>(c), uint32_t{0});
  const auto found = std::lower_bound(edges.begin(), edges.end(), edge);
  return found != edges.end() && found->first == edge.first ? found->second : 0;
}

bool AddedTokens::find(std::string_view text, size_t done, size_t at, Found* found) const {
  if (tokens_.empty()) return false;
  for (; at < text.size(); ++at) {
    if (!first_[static_cast<unsigned char>(text[at])]) continue;
    size_t end = at;
    int32_t longest = -1;
    uint32_t node = 0;
    for (size_t to = at; to < text.size() && (node = child(node, text[to])) != 0; ++to) {
      if (nodes_[node].token < 0) continue;
      longest = nodes_[node].token;
      end = to + 1;
    }
    if (longest < 0) continue;
    const AddedToken& token = tokens_[static_cast<size_t>(longest)];
    if (token.single_word && is_in_word(text, at, end)) {
      at = end - 1;  // tokens within it are not looked for
      continue;
    }
    found->id = token.id;
    found->search = end;
    found->begin = token.lstrip ? std::max(before_space(text, at), done) : at;
    found->end = token.rstrip ? after_space(text, end) : end;
    return true;
  }
  return false;
}

bool AddedTokens::may_cut(std::string_view text, size_t at) const {
  for (size_t from = at > longest_ ? at - longest_ : 0; from < at; ++from) {
    uint32_t node = 0;
    size_t to = from;
    while (to < at && (node = child(node, text[to])) != 0) ++to;
    // A token ends here and takes the white space after it, or one may go on.
    if (to == at) return false;
  }
  return true;
}

}  // namespace tally::train

#include "engine/read/include_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <stdexcept>

#include "engine/base/text.h"

namespace tally {

namespace {

using Kind = YamlNode::Kind;
using Names = std::map<std::string, YamlPtr>;
using Expression = std::function<YamlPtr(const Names&)>;

constexpr int kDeepest = 100;

struct ExpressionError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

YamlPtr text_node(std::string value) {
  auto node = std::make_shared<YamlNode>();
  node->kind = Kind::scalar;
  node->value = std::move(value);
  return node;
}

YamlPtr bool_node(bool value) {
  return text_node(value ? "True" : "False");
}

bool truth(const YamlNode& node) {
  switch (node.kind) {
    case Kind::null:
      return false;
    case Kind::scalar:
      return !node.value.empty() && node.value != "False" && node.value != "0";
    case Kind::sequence:
      return !node.items.empty();
    case Kind::mapping:
      break;
  }
  return !node.entries.empty();
}

bool equal(const YamlNode& a, const YamlNode& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size() ||
      a.entries.size() != b.entries.size()) {
    return false;
  }
  if (a.kind == Kind::scalar) return a.value == b.value;
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(*a.items[i], *b.items[i])) return false;
  }
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const YamlNode* other = b.find(entry.first->value);
    return other && equal(*entry.second, *other);
  });
}

bool contains(const YamlNode& container, const YamlNode& item) {
  if (container.kind == Kind::mapping) return container.find(item.value) != nullptr;
  if (container.kind == Kind::scalar) return container.value.find(item.value) != std::string::npos;
  return std::any_of(container.items.begin(), container.items.end(),
                     [&](const YamlPtr& each) { return equal(*each, item); });
}

YamlPtr find_entry(const YamlNode& map, const std::string& key) {
  for (const auto& entry : map.entries) {
    if (entry.first->value == key) return entry.second;
  }
  return nullptr;
}

YamlPtr subscript(const YamlNode& data, const YamlNode& key) {
  if (data.kind == Kind::mapping) {
    if (YamlPtr found = find_entry(data, key.value)) return found;
    std::vector<std::string> keys;
    for (const auto& entry : data.entries) keys.push_back(entry.first->value);
    std::string hint = did_you_mean(key.value, keys);
    throw ExpressionError(
        fmt::format("there is no key '{}' in it{}{}", key.value, hint.empty() ? "" : "; ", hint));
  }
  if (data.kind != Kind::sequence) {
    throw ExpressionError(fmt::format("[{}] needs a list or a mapping", key.value));
  }
  int64_t index = 0;
  const char* end = key.value.data() + key.value.size();
  auto read = std::from_chars(key.value.data(), end, index);
  if (read.ec != std::errc() || read.ptr != end) {
    throw ExpressionError(fmt::format("a list is indexed by a number, not '{}'", key.value));
  }
  auto size = static_cast<int64_t>(data.items.size());
  if (index < 0) index += size;
  if (index < 0 || index >= size) {
    throw ExpressionError(fmt::format("index {} is outside its {} items", key.value, size));
  }
  return data.items[static_cast<size_t>(index)];
}

YamlPtr add(const YamlNode& a, const YamlNode& b) {
  if (a.kind == Kind::scalar && b.kind == Kind::scalar) return text_node(a.value + b.value);
  if (a.kind != Kind::sequence || b.kind != Kind::sequence) {
    throw ExpressionError("+ joins two lists or two texts");
  }
  auto sum = std::make_shared<YamlNode>(a);
  sum->items.insert(sum->items.end(), b.items.begin(), b.items.end());
  return sum;
}

YamlPtr joined(const YamlNode& separator, const YamlNode& items) {
  if (separator.kind != Kind::scalar || items.kind != Kind::sequence) {
    throw ExpressionError("join() takes a text and a list");
  }
  std::string text;
  for (size_t i = 0; i < items.items.size(); ++i) {
    if (items.items[i]->kind != Kind::scalar) throw ExpressionError("join() takes a list of texts");
    text += (i == 0 ? "" : separator.value) + items.items[i]->value;
  }
  return text_node(text);
}

// Recursive descent; every rule gives a function of the names bound at that place.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  Expression parse() {
    Expression e = any();
    skip_space();
    if (at_ < text_.size()) fail();
    return e;
  }

 private:
  [[noreturn]] void fail() {
    throw ExpressionError(fmt::format("'{}' is beyond what Tally reads in an !include",
                                      text_.substr(std::min(at_, text_.size()))));
  }

  void skip_space() {
    while (at_ < text_.size() && strip(text_.substr(at_, 1)).empty()) ++at_;
  }

  bool take(std::string_view symbol) {
    skip_space();
    if (!starts_with(text_.substr(at_), symbol)) return false;
    at_ += symbol.size();
    return true;
  }

  static bool is_word_char(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  }

  std::string_view peek_word() {
    skip_space();
    size_t end = at_;
    while (end < text_.size() && is_word_char(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }

  bool take_word(std::string_view word) {
    if (peek_word() != word) return false;
    at_ += word.size();
    return true;
  }

  void expect(std::string_view symbol) {
    if (!take(symbol)) fail();
  }

  Expression any() {
    if (++depth_ > kDeepest) throw ExpressionError("it nests too deeply");
    Expression left = all();
    while (take_word("or")) {
      Expression right = all();
      left = [left, right](const Names& n) {
        YamlPtr value = left(n);
        return truth(*value) ? value : right(n);
      };
    }
    --depth_;
    return left;
  }

  Expression all() {
    Expression left = negation();
    while (take_word("and")) {
      Expression right = negation();
      left = [left, right](const Names& n) {
        YamlPtr value = left(n);
        return truth(*value) ? right(n) : value;
      };
    }
    return left;
  }

  Expression negation() {
    if (take_word("not")) {
      if (++depth_ > kDeepest) throw ExpressionError("it nests too deeply");
      Expression inner = negation();
      --depth_;
      return [inner](const Names& n) { return bool_node(!truth(*inner(n))); };
    }
    return comparison();
  }

  Expression comparison() {
    Expression left = sum();
    bool inverted = false;
    bool membership = false;
    if (take("==")) {
    } else if (take("!=")) {
      inverted = true;
    } else if (take_word("in")) {
      membership = true;
    } else if (take_word("not")) {
      if (!take_word("in")) fail();
      membership = inverted = true;
    } else {
      return left;
    }
    Expression right = sum();
    return [=](const Names& n) {
      YamlPtr a = left(n), b = right(n);
      return bool_node((membership ? contains(*b, *a) : equal(*a, *b)) != inverted);
    };
  }

  Expression sum() {
    Expression left = postfix();
    while (take("+")) {
      Expression right = postfix();
      left = [left, right](const Names& n) { return add(*left(n), *right(n)); };
    }
    return left;
  }

  Expression postfix() {
    Expression value = atom();
    for (;;) {
      if (take("[")) {
        Expression key = any();
        expect("]");
        value = [value, key](const Names& n) { return subscript(*value(n), *key(n)); };
      } else if (take(".get(")) {
        Expression key = any();
        std::optional<Expression> otherwise;
        if (take(",")) otherwise = any();
        expect(")");
        value = [value, key, otherwise](const Names& n) {
          YamlPtr found = find_entry(*value(n), key(n)->value);
          if (found) return found;
          return otherwise ? (*otherwise)(n) : std::make_shared<YamlNode>();
        };
      } else if (take(".join(")) {
        Expression items = any();
        items = take_word("for") ? comprehension(items, ")") : closed(items, ")");
        value = [value, items](const Names& n) { return joined(*value(n), *items(n)); };
      } else {
        return value;
      }
    }
  }

  Expression closed(const Expression& inner, std::string_view end) {
    expect(end);
    return inner;
  }

  Expression atom() {
    skip_space();
    if (take("(")) {
      Expression inner = any();
      expect(")");
      return inner;
    }
    if (take("[")) return list();
    if (at_ < text_.size() && (text_[at_] == '"' || text_[at_] == '\'')) return quoted();
    bool negative = take("-");
    std::string word(peek_word());
    if (word.empty()) fail();
    if (word[0] >= '0' && word[0] <= '9') {
      at_ += word.size();
      YamlPtr number = text_node((negative ? "-" : "") + word);
      return [number](const Names&) { return number; };
    }
    if (negative) fail();
    return name(word);
  }

  Expression name(const std::string& word) {
    size_t start = at_;
    at_ += word.size();
    if (word == "True" || word == "False") {
      return [word](const Names&) { return text_node(word); };
    }
    if (word == "None") {
      return [](const Names&) { return std::make_shared<YamlNode>(); };
    }
    if (word == "str" && take("(")) return closed(any(), ")");  // scalars are texts here
    if (word == "len" && take("(")) {
      Expression inner = any();
      expect(")");
      return [inner](const Names& n) {
        YamlPtr value = inner(n);
        return text_node(
            std::to_string(value->items.size() + value->entries.size() + value->value.size()));
      };
    }
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '(' || text_[at_] == '.') &&
        !starts_with(text_.substr(at_), ".get(") && !starts_with(text_.substr(at_), ".join(")) {
      at_ = start;
      fail();
    }
    return [word](const Names& n) {
      auto found = n.find(word);
      if (found == n.end()) throw ExpressionError(fmt::format("'{}' is not defined", word));
      return found->second;
    };
  }

  Expression quoted() {
    char quote = text_[at_++];
    size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos) fail();
    YamlPtr value = text_node(std::string(text_.substr(at_, end - at_)));
    at_ = end + 1;
    return [value](const Names&) { return value; };
  }

  Expression list() {
    std::vector<Expression> parts;
    if (!take("]")) {
      parts.push_back(any());
      if (take_word("for")) return comprehension(parts[0], "]");
      while (take(",")) parts.push_back(any());
      expect("]");
    }
    return [parts](const Names& n) {
      auto node = std::make_shared<YamlNode>();
      node->kind = Kind::sequence;
      for (const Expression& part : parts) node->items.push_back(part(n));
      return node;
    };
  }

  Expression comprehension(const Expression& element, std::string_view end) {
    std::string variable(peek_word());
    at_ += variable.size();
    if (variable.empty() || !take_word("in")) fail();
    Expression source = sum();
    std::optional<Expression> condition;
    if (take_word("if")) condition = any();
    expect(end);
    return [=](const Names& n) {
      auto node = std::make_shared<YamlNode>();
      node->kind = Kind::sequence;
      YamlPtr from = source(n);
      if (from->kind != Kind::sequence) throw ExpressionError("'for' needs a list to go through");
      Names inner = n;
      for (const YamlPtr& item : from->items) {
        inner[variable] = item;
        if (!condition || truth(*(*condition)(inner))) node->items.push_back(element(inner));
      }
      return node;
    };
  }

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

YamlPtr apply_include_expression(std::string_view expression, const YamlPtr& data,
                                 std::string* error) {
  try {
    return ExpressionParser(expression).parse()({{"_", data}});
  } catch (const ExpressionError& e) {
    *error = e.what();
    return nullptr;
  }
}

}  // namespace tally

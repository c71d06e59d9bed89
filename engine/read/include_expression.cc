#include "engine/read/include_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "engine/base/text.h"

namespace tally {

namespace {

using Kind = YamlNode::Kind;
using Names = std::map<std::string, YamlPtr>;
using Expression = std::function<YamlPtr(const Names&)>;

constexpr int kDeepestExpression = 100;

// A recursive-descent parser. Every rule returns a function of the names bound at its position.
class ExpressionParser {
 public:
  ExpressionParser(std::string_view text, const NestedIncludes& nested)
      : text_(text), nested_(nested) {}

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

  std::string_view peek_word() {
    skip_space();
    size_t end = at_;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
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

  // Parses VALUE if CONDITION else OTHERWISE. The condition of a comprehension has no `else`.
  Expression any() {
    Expression value = either();
    const size_t before = at_;
    if (!take_word("if")) return value;
    Expression condition = either();
    if (!take_word("else")) {
      at_ = before;
      return value;
    }
    Expression otherwise = any();
    return [=](const Names& n) { return truth(*condition(n)) ? value(n) : otherwise(n); };
  }

  Expression either() {
    if (++depth_ > kDeepestExpression) throw ExpressionError("it nests too deeply");
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
      if (++depth_ > kDeepestExpression) throw ExpressionError("it nests too deeply");
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
    } else if (std::optional<Expression> ordered = order(left)) {
      return *ordered;
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

  std::optional<Expression> order(const Expression& left) {
    for (const char* op : {"<=", ">=", "<", ">"}) {
      if (!take(op)) continue;
      Expression right = sum();
      const bool swapped = op[0] == '>', or_equal = op[1] == '=';
      return [=](const Names& n) {
        YamlPtr a = left(n), b = right(n);
        if (swapped) std::swap(a, b);
        return bool_node(less(*a, *b) || (or_equal && equal(*a, *b)));
      };
    }
    return std::nullopt;
  }

  // Takes the first of `ops` that matches here.
  const char* take_operator(std::initializer_list<const char*> ops) {
    for (const char* op : ops) {
      if (take(op)) return op;
    }
    return nullptr;
  }

  static Expression binary(const char* op, const Expression& left, const Expression& right) {
    return [=](const Names& n) { return arithmetic(op, left(n), right(n)); };
  }

  Expression sum() {
    Expression left = term();
    while (const char* op = take_operator({"+", "-"})) left = binary(op, left, term());
    return left;
  }

  Expression term() {
    Expression left = sign();
    while (const char* op = take_operator({"*", "//", "/", "%"})) left = binary(op, left, sign());
    return left;
  }

  Expression sign() {
    if (!take("-")) return power();
    if (++depth_ > kDeepestExpression) throw ExpressionError("it nests too deeply");
    Expression inner = sign();
    --depth_;
    const YamlPtr zero = number_node("0");
    return [=](const Names& n) { return arithmetic("-", zero, inner(n)); };
  }

  Expression power() {
    Expression base = whole(postfix());
    if (!take("**")) return base;
    if (++depth_ > kDeepestExpression) throw ExpressionError("it nests too deeply");
    Expression exponent = sign();
    --depth_;
    return binary("**", base, exponent);
  }

  Expression whole(const Expression& value) {
    return [this, value](const Names& n) { return nested_.whole(value(n)); };
  }

  // The parts that subscripts do not take keep their includes.
  Expression postfix() {
    Expression value = atom();
    for (;;) {
      if (take("[")) {
        Expression key = any();
        expect("]");
        value = [this, value, key](const Names& n) {
          return subscript(*nested_.open(value(n)), *key(n));
        };
      } else if (take(".get(")) {
        Expression key = any();
        std::optional<Expression> otherwise;
        if (take(",")) otherwise = any();
        expect(")");
        value = [this, value, key, otherwise](const Names& n) {
          YamlPtr found = find_entry(*nested_.open(value(n)), key(n)->value);
          if (found) return found;
          return otherwise ? (*otherwise)(n) : std::make_shared<YamlNode>();
        };
      } else if (take(".join(")) {
        Expression items = any();
        items = take_word("for") ? comprehension(items, ")") : closed(items, ")");
        value = [this, value, items](const Names& n) {
          return joined(*nested_.open(value(n)), *items(n));
        };
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
    std::string word(peek_word());
    if (word.empty() && !starts_with(text_.substr(at_), ".")) fail();
    if (word.empty() || (word[0] >= '0' && word[0] <= '9')) return number();
    return name(word);
  }

  Expression number() {
    size_t end = at_;
    const auto sign_of_exponent = [&] {
      return (text_[end] == '+' || text_[end] == '-') && (text_[end - 1] | 0x20) == 'e';
    };
    while (end < text_.size() &&
           (is_name_char(text_[end]) || text_[end] == '.' || (end > at_ && sign_of_exponent()))) {
      ++end;
    }
    YamlPtr value = number_node(text_.substr(at_, end - at_));
    if (!value) fail();
    at_ = end;
    return [value](const Names&) { return value; };
  }

  Expression name(const std::string& word) {
    size_t start = at_;
    at_ += word.size();
    if (word == "True" || word == "False") {
      return [word](const Names&) { return bool_node(word == "True"); };
    }
    if (word == "None") {
      return [](const Names&) { return std::make_shared<YamlNode>(); };
    }
    if (word == "map" && take("(")) return mapped();
    if (const IncludeFunction* function = find_function(word); function && take("(")) {
      return call(*function);
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

  // Parses FUNCTION(arguments). The first argument may be a comprehension.
  Expression call(const IncludeFunction& function) {
    std::vector<Expression> args;
    if (!take(")")) {
      args.push_back(any());
      if (take_word("for")) {
        args[0] = comprehension(args[0], ")");
      } else {
        while (take(",")) args.push_back(any());
        expect(")");
      }
    }
    return [args, &function](const Names& n) {
      std::vector<YamlPtr> values;
      for (const Expression& arg : args) values.push_back(arg(n));
      return function(values);
    };
  }

  // Parses map(FUNCTION, LIST).
  Expression mapped() {
    const std::string word(peek_word());
    const IncludeFunction* function = find_function(word);
    if (function == nullptr) fail();
    at_ += word.size();
    expect(",");
    Expression list = closed(any(), ")");
    return [function, list](const Names& n) {
      std::vector<YamlPtr> values;
      const YamlPtr from = list(n);
      if (from->kind != Kind::sequence) throw ExpressionError("map() takes a list");
      for (const YamlPtr& item : from->items) values.push_back((*function)({item}));
      return list_node(std::move(values));
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
    if (take_word("if")) condition = either();
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
  const NestedIncludes& nested_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace

Status apply_include_expression(std::string_view expression, const YamlPtr& data,
                                const NestedIncludes& nested, YamlPtr* out) {
  try {
    ExpressionParser parser(expression, nested);
    *out = parser.parse()({{"_", data}});
    return Status::ok();
  } catch (const ExpressionError& e) {
    *out = nullptr;
    return Status::error(e.what());
  }
}

}  // namespace tally

#include "engine/results/table/known_truth.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "engine/base/text.h"
#include "engine/python/guarded_literal.h"
#include "engine/python/tokens.h"
#include "engine/python/value.h"

namespace tally {
namespace {

using Kind = KnownValue::Kind;

Truth as_truth(bool value) {
  return value ? Truth::yes : Truth::no;
}
Truth negated(Truth value) {
  return value == Truth::open ? value : as_truth(value == Truth::no);
}
Truth both(Truth a, Truth b) {
  if (a == Truth::no || b == Truth::no) return Truth::no;
  return a == Truth::yes && b == Truth::yes ? Truth::yes : Truth::open;
}

KnownValue number_of(Value number) {
  KnownValue value;
  value.kind = Kind::number;
  value.known = true;
  value.number = std::move(number);
  return value;
}
// A number of the expression, as it is written: 0x10.
KnownValue written_number(std::string text, Value number) {
  KnownValue value = number_of(std::move(number));
  value.text = std::move(text);
  return value;
}
KnownValue text_value(std::string text) {
  KnownValue value;
  value.kind = Kind::text;
  value.known = true;
  value.text = std::move(text);
  return value;
}

Value negative_of(const Value& number) {
  if (std::holds_alternative<double>(number.data)) return {-number.as_double()};
  return integer_value(as_big(number) * BigInt(-1));
}

// Whether numbers are compared here as in Python, which compares a whole number with a float without
// rounding it.
bool are_compared(const Value& x, const Value& y) {
  constexpr double kExact = 9007199254740992;  // 2^53
  const auto is_float = [](const Value& one) { return std::holds_alternative<double>(one.data); };
  return is_float(x) == is_float(y) || std::fabs(x.as_double()) < kExact ||
         std::fabs(y.as_double()) < kExact || x.nan() || y.nan();
}

Truth truth_of(const KnownValue& value) {
  if (value.kind == Kind::list) return as_truth(!value.items.empty());
  if (!value.known) return Truth::open;
  if (value.beside_numbers) return as_truth(value.beside_numbers->as_double() != 0);
  return as_truth(value.kind == Kind::number ? value.number.as_double() != 0 : !value.text.empty());
}

class TruthReader {
 public:
  TruthReader(std::string_view text, const KnownValues& values, std::string* mixed)
      : values_(values), mixed_(mixed) {
    for (const PythonToken& token : tokens_of(text)) {
      if (token.kind != TokenKind::space) tokens_.emplace_back(token.text);
    }
  }

  Truth read() {
    const KnownValue value = everything();
    return is_read() ? truth_of(value) : Truth::open;
  }
  bool reads_no_truth() {
    const KnownValue value = everything();
    return is_read() && no_truth(value);
  }

 private:
  bool is(std::string_view token) const { return at_ < tokens_.size() && tokens_[at_] == token; }
  bool take(std::string_view token) {
    const bool found = is(token);
    if (found) ++at_;
    return found;
  }
  static KnownValue value_of(Truth truth) {
    KnownValue value =
        truth == Truth::open ? KnownValue() : number_of({truth == Truth::yes ? 1LL : 0LL});
    value.is_truth = true;
    return value;
  }
  static bool no_truth(const KnownValue& value) {
    return value.no_truth || (value.kind != Kind::open && !value.is_truth);
  }
  bool is_read() const { return !given_up_ && at_ == tokens_.size(); }
  // Not read: anything is possible.
  KnownValue give_up() {
    given_up_ = true;
    at_ = tokens_.size();
    return {};
  }
  static KnownValue never_a_truth() {
    KnownValue value;
    value.no_truth = true;
    return value;
  }

  // The value of which only its truth is known, of operands that `or` and `and` give back.
  static KnownValue one_of(Truth truth, bool no_truth) {
    KnownValue value = value_of(truth);
    value.is_truth = !no_truth;
    value.no_truth = no_truth;
    return value;
  }

  // The expression, which may be a tuple without brackets.
  KnownValue everything() {
    KnownValue first = whole();
    if (!is(",")) return first;
    KnownValue list;
    list.kind = Kind::list;
    list.items.push_back(std::move(first));
    while (take(",") && at_ < tokens_.size()) list.items.push_back(whole());
    return list;
  }
  KnownValue whole() {
    constexpr int kDeepest = 200;  // as many brackets as Python reads
    if (depth_ == kDeepest) return give_up();
    ++depth_;
    KnownValue value = is("lambda") ? function() : choice();
    --depth_;
    return value;
  }
  // A lambda: to the end of its brackets, or of the argument that it is.
  KnownValue function() {
    for (int depth = 0; at_ < tokens_.size(); ++at_) {
      if (depth == 0 && is_one_of_words(at_, {")", "]", "}"})) break;
      depth += change_of_depth(tokens_[at_]);
    }
    return never_a_truth();
  }
  KnownValue choice() {
    KnownValue value = either();
    if (!take("if")) return value;
    const KnownValue condition = either();
    if (!take("else")) return {};
    KnownValue other = whole();
    if (condition.fails) return condition;
    const Truth chosen = truth_of(condition);
    if (chosen != Truth::open) return chosen == Truth::yes ? value : other;
    KnownValue open;
    open.no_truth = no_truth(value) && no_truth(other);
    return open;
  }
  KnownValue either() {
    KnownValue first = all();
    if (!is("or")) return first;
    Truth no = negated(truth_of(first));
    bool none = no_truth(first);
    while (take("or")) {
      const KnownValue next = all();
      no = both(no, negated(truth_of(next)));
      none = none && no_truth(next);
    }
    if (first.fails) return first;
    return one_of(negated(no), none);
  }
  KnownValue all() {
    KnownValue first = negation();
    if (!is("and")) return first;
    Truth yes = truth_of(first);
    bool none = no_truth(first);
    while (take("and")) {
      const KnownValue next = negation();
      yes = both(yes, truth_of(next));
      none = none && no_truth(next);
    }
    if (first.fails) return first;
    return one_of(yes, none);
  }
  KnownValue negation() {
    size_t times = 0;
    while (take("not")) ++times;
    KnownValue value = comparison();
    if (times == 0 || value.fails) return value;
    const Truth truth = truth_of(value);
    return value_of(times % 2 == 0 ? truth : negated(truth));
  }

  std::string take_sign() {
    for (const char* sign : {"==", "!=", "<=", ">=", "<", ">", "in"}) {
      if (take(sign)) return sign;
    }
    if (take("is")) return take("not") ? "is not" : "is";
    if (is("not") && at_ + 1 < tokens_.size() && tokens_[at_ + 1] == "in") {
      at_ += 2;
      return "not in";
    }
    return {};
  }
  KnownValue comparison() {
    KnownValue left = operand();
    std::string sign = take_sign();
    if (sign.empty()) return left;
    Truth all = Truth::yes;
    bool fails = false;  // the first comparison is made in any case
    for (bool first = true; !sign.empty(); sign = take_sign(), first = false) {
      KnownValue right = operand();
      all = both(all, compared(left, sign, right));
      fails = fails || (first && has_no_order(left, sign, right));
      left = std::move(right);
    }
    KnownValue value = value_of(all);
    value.fails = fails;
    return value;
  }

  // A value of one token or in parentheses. Any other text there may be anything, but a calculation
  // is neither True nor False.
  KnownValue operand() {
    const size_t first = at_;
    KnownValue value = primary();
    bool more = false, calculated = is_one_of_words(first, {"-", "+", "~"});
    size_t calls = 0, ends = 0;
    for (int depth = 0; at_ < tokens_.size(); ++at_) {
      const std::string& token = tokens_[at_];
      if (depth == 0 && ends_operand(token)) break;
      if (depth == 0 && is_one_of_words(at_, {"+", "-", "*", "/", "//", "%", "**", "<<", ">>"}))
        calculated = true;
      // True & True is a truth, and 6 & True is none.
      if (depth == 0 && no_truth(value) && is_one_of_words(at_, {"&", "|", "^"})) calculated = true;
      if (depth == 0 && at_ == first + 1 && token == "(") ++calls;
      depth += change_of_depth(token);
      if (depth == 0) ++ends;
      more = true;
    }
    if (!more && !calculated) return value;
    KnownValue open = more ? KnownValue() : value;
    open.no_truth = calculated || (calls == 1 && ends == 1 && call_gives_no_truth(first)) ||
                    (ends == 3 && is_module_without_truths(first));
    return open;
  }
  static int change_of_depth(const std::string& token) {
    if (token == "(" || token == "[" || token == "{") return 1;
    return token == ")" || token == "]" || token == "}" ? -1 : 0;
  }
  // math.sqrt(x) and re.match(...): their results are numbers and matches.
  bool is_module_without_truths(size_t first) const {
    if (!is_one_of_words(first + 1, {"."}) || !is_one_of_words(first + 3, {"("})) return false;
    return tokens_[first] == "re" ||
           (tokens_[first] == "math" && tokens_[first + 2].find("is") != 0);
  }
  bool call_gives_no_truth(size_t first) {
    if (tokens_[first] != "max" && tokens_[first] != "min") return gives_no_truth(tokens_[first]);
    const size_t end = at_;
    for (size_t i = first; i < end; ++i)
      if (is_one_of_words(i, {"for", "*", "="})) return false;
    at_ = first + 1;
    const KnownValue values = in_brackets();
    if (at_ != end) give_up();
    return values.kind == Kind::list && std::ranges::all_of(values.items, no_truth);
  }
  bool is_one_of_words(size_t at, std::initializer_list<const char*> words) const {
    return at < tokens_.size() &&
           std::ranges::any_of(words, [&](const char* word) { return tokens_[at] == word; });
  }
  // Functions of Python whose results are numbers, texts or collections.
  static bool gives_no_truth(const std::string& function) {
    static const std::set<std::string> functions = {
        "abs",    "ascii", "bin",   "chr", "complex", "dict", "divmod", "float",
        "format", "hex",   "int",   "len", "list",    "oct",  "ord",    "pow",
        "range",  "repr",  "round", "set", "sorted",  "str",  "sum",    "tuple"};
    return functions.count(function) != 0;
  }
  static bool ends_operand(const std::string& token) {
    for (const char* end : {"or", "and", "not", "in", "is", "if", "else", "for",
                            "==", "!=", "<=", ">=", "<", ">", ",", ")", "]", "}"}) {
      if (token == end) return true;
    }
    return false;
  }

  KnownValue primary() {
    if (at_ >= tokens_.size() || ends_operand(tokens_[at_])) return {};
    if (is("(") || is("[")) return in_brackets();
    if (is("{")) return in_braces();
    const bool negative = take("-");
    if (at_ >= tokens_.size() || ends_operand(tokens_[at_])) return {};
    if (negative && change_of_depth(tokens_[at_]) != 0) return {};
    KnownValue value = single(tokens_[at_++]);
    if (!negative) return value;
    if (value.kind != Kind::number || !value.known) return {};
    Value number = negative_of(value.number);
    return value.name.empty() ? written_number("-" + value.text, std::move(number))
                              : number_of(std::move(number));
  }
  // A set or a mapping.
  KnownValue in_braces() {
    int depth = 0;
    do {
      depth += change_of_depth(tokens_[at_++]);
    } while (depth != 0 && at_ < tokens_.size());
    return never_a_truth();
  }
  KnownValue in_brackets() {
    const std::string end = tokens_[at_++] == "(" ? ")" : "]";
    KnownValue list;
    list.kind = Kind::list;
    bool comma = end == "]";
    while (at_ < tokens_.size() && !is(end)) {
      list.items.push_back(whole());
      if (is("for")) return comprehension();
      if (take(",")) {
        comma = true;
      } else if (!is(end)) {
        return give_up();
      }
    }
    take(end);
    return comma || list.items.empty() ? list : list.items.front();
  }
  // To the end of its brackets.
  KnownValue comprehension() {
    for (int depth = 0; at_ < tokens_.size() && depth >= 0; ++at_)
      depth += change_of_depth(tokens_[at_]);
    return never_a_truth();
  }

  // `$n` is the value's text as a part of the expression, `'$n'` as a text, and `n` the value.
  KnownValue single(const std::string& token) const {
    const char c = token.front();
    if (c == '\'' || c == '"') {
      bool plain = false;
      std::string text(inside_quotes(token, &plain));
      if (!plain) return {};
      if (text.find('$') == std::string::npos) return text_value(std::move(text));
      const std::string name(dollar_name(text));
      const KnownValue value = name.empty() ? KnownValue() : values_(name);
      return value.known ? text_value(value.text) : KnownValue();
    }
    if (c == '$') {
      const KnownValue value = values_(std::string(dollar_name(token)));
      std::optional<Value> number = number_in(value.text);
      return value.known && number ? number_of(*std::move(number)) : KnownValue();
    }
    if (token == "True" || token == "False") return value_of(as_truth(token == "True"));
    const bool digits = is_one_of("0123456789.", c);
    std::optional<Value> number = digits ? number_in(token) : std::nullopt;
    if (number) return written_number(token, *std::move(number));
    const bool name = !digits && std::ranges::all_of(token, is_word_char);
    return name ? values_(token) : KnownValue();
  }
  Truth compared(const KnownValue& a, const std::string& sign, const KnownValue& b) {
    if (sign == "is" || sign == "is not") return Truth::open;
    if (sign == "in") return contains(b, a);
    if (sign == "not in") return negated(contains(b, a));
    if (sign == "==") return equal(a, b);
    if (sign == "!=") return negated(equal(a, b));
    return ordered(a, sign, b);
  }
  static bool is_plain(const KnownValue& value) {
    return value.kind == Kind::number || value.kind == Kind::text;
  }
  // Whether the order of a number and a text is asked for.
  static bool has_no_order(const KnownValue& a, const std::string& sign, const KnownValue& b) {
    return is_one_of("<>", sign.front()) && is_plain(a) && is_plain(b) && a.kind != b.kind &&
           !a.beside_numbers && !b.beside_numbers;
  }
  // Whether the text is the number's own, or written as the expression has the number.
  static bool same_form(const KnownValue& a, const KnownValue& b) {
    const KnownValue& number = a.kind == Kind::number ? a : b;
    const KnownValue& text = a.kind == Kind::number ? b : a;
    return text.same_form || (number.name.empty() && number.text == text.text);
  }
  Truth equal(const KnownValue& a, const KnownValue& b) {
    if (!is_plain(a) || !is_plain(b)) return Truth::open;
    const std::optional<Value> x = as_number(a, b), y = as_number(b, a);
    if (x && y && !are_compared(*x, *y)) return Truth::open;
    if (x && y) {
      // Beside a number of which a text is another form, it could be either: an error.
      const bool same =
          a.kind == b.kind ? a.kind == Kind::number || a.text == b.text : same_form(a, b);
      if (*x == *y && !same) note_mixed(a, b);
      return as_truth(*x == *y && same);
    }
    if (a.kind != b.kind && !a.beside_numbers && !b.beside_numbers) {
      note_mixed(a, b);
      return Truth::no;
    }
    if (a.kind != b.kind || !a.known || !b.known) return Truth::open;
    return as_truth(a.kind == Kind::number ? a.number == b.number : a.text == b.text);
  }
  // The number that `a` is beside `b`: a text is one beside numbers and beside such texts.
  static std::optional<Value> as_number(const KnownValue& a, const KnownValue& b) {
    if (a.kind == Kind::number) return a.known ? std::optional(a.number) : std::nullopt;
    return b.kind == Kind::number || b.beside_numbers ? a.beside_numbers : std::nullopt;
  }
  Truth contains(const KnownValue& list, const KnownValue& value) {
    if (list.kind != Kind::list) return Truth::open;
    Truth none = Truth::yes;
    for (const KnownValue& item : list.items) none = both(none, negated(equal(value, item)));
    return negated(none);
  }
  Truth ordered(const KnownValue& a, const std::string& sign, const KnownValue& b) {
    if (!is_plain(a) || !is_plain(b)) return Truth::open;
    const auto compare = [&](const Value& x, const Value& y) {
      const bool equal = sign.size() == 2 && x == y;
      return equal || (sign.front() == '<' ? less(x, y) : less(y, x));
    };
    const std::optional<Value> x = as_number(a, b), y = as_number(b, a);
    if (x && y) return are_compared(*x, *y) ? as_truth(compare(*x, *y)) : Truth::open;
    if (a.kind != b.kind && !a.beside_numbers && !b.beside_numbers) {
      note_mixed(a, b);  // an error of Python
      return Truth::no;
    }
    if (a.kind != b.kind || !a.known || !b.known) return Truth::open;
    return as_truth(a.kind == Kind::number ? compare(a.number, b.number)
                                           : compare(Value{a.text}, Value{b.text}));
  }
  void note_mixed(const KnownValue& a, const KnownValue& b) {
    const KnownValue& number = a.kind == Kind::number ? a : b;
    const KnownValue& text = a.kind == Kind::number ? b : a;
    if (!mixed_->empty()) return;
    if (!number.name.empty() && !text.name.empty()) {
      *mixed_ =
          fmt::format("'{}' is a number, and the type of '{}' is string", number.name, text.name);
    } else if (!number.name.empty()) {
      *mixed_ = fmt::format("'{}' is a number, and is compared with a text", number.name);
    } else if (!text.name.empty()) {
      *mixed_ = fmt::format("the type of '{}' is string, and a text is compared with a number",
                            text.name);
    }
  }

  std::vector<std::string> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  bool given_up_ = false;
  const KnownValues& values_;
  std::string* mixed_;
};

// Whether the token begins f'...', of which more tokens are parts: they have nothing to do with the
// comparisons around it.
bool begins_format(const PythonToken& token) {
  return token.kind == TokenKind::text && token.text.back() == '{';
}

}  // namespace

KnownValue known_text(const std::string& name, const std::string& text) {
  KnownValue value = text_value(text);
  value.name = name;
  if (std::optional<Value> number = number_in(text)) {
    value.same_form = number->str() == text;
    value.beside_numbers = *std::move(number);
  }
  return value;
}

KnownValue known_value(const std::string& name, const std::string& text, ValueType type) {
  if (type == ValueType::string) return known_text(name, text);
  std::optional<Value> number;
  if (type == ValueType::integer) {
    number = number_in(text);
  } else if (const std::optional<double> one = python_float(text)) {
    number = Value{*one};
  }
  KnownValue value = number ? written_number(text, *std::move(number)) : KnownValue();
  value.name = name;
  value.text = text;
  return value;
}

Truth known_truth(std::string_view expression, const KnownValues& values, std::string* mixed) {
  if (std::ranges::any_of(tokens_of(expression), begins_format)) return Truth::open;
  return TruthReader(expression, values, mixed).read();
}

bool is_no_truth(std::string_view expression, const KnownValues& values) {
  const std::vector<PythonToken> tokens = tokens_of(expression);
  if (!tokens.empty() && begins_format(tokens.front())) {
    const auto text = std::ranges::find_if(tokens, [](const PythonToken& token) {
      return token.kind == TokenKind::text && token.text.front() == '}' && token.text.back() != '{';
    });
    return text == tokens.end() - 1;  // nothing else
  }
  if (std::ranges::any_of(tokens, begins_format)) return false;
  std::string ignored;
  return TruthReader(expression, values, &ignored).reads_no_truth();
}

}  // namespace tally

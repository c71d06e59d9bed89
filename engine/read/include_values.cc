#include "engine/read/include_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>

#include "engine/base/text.h"
#include "engine/python/value.h"
#include "engine/read/yaml_scalar.h"

namespace tally {

namespace {

using Kind = YamlNode::Kind;
using Args = std::vector<YamlPtr>;

constexpr int64_t kMostItems = 100000;

// A Python number: an integer if `whole`, else a double.
struct Number {
  bool whole = true;
  int64_t integer = 0;
  double real = 0;
  double as_real() const { return whole ? static_cast<double>(integer) : real; }
};

std::optional<int64_t> to_integer(std::string_view text) {
  int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<Number> number_of(const YamlNode& node) {
  if (node.kind != Kind::scalar) return std::nullopt;
  Number number;
  if (node.type == ScalarType::boolean) {
    number.integer = node.value == "True" ? 1 : 0;
    return number;
  }
  if (node.type == ScalarType::integer) {
    const auto value = to_integer(node.value);
    if (!value) throw ExpressionError(fmt::format("the number {} is too large", node.value));
    number.integer = *value;
    return number;
  }
  if (node.type != ScalarType::floating) return std::nullopt;
  number.whole = false;
  number.real = python_float(std::string_view(node.value)).value_or(0);
  return number;
}

YamlPtr scalar(std::string value, ScalarType type) {
  auto node = std::make_shared<YamlNode>();
  node->kind = Kind::scalar;
  node->value = std::move(value);
  node->type = type;
  return node;
}

YamlPtr whole_node(int64_t value) {
  return scalar(std::to_string(value), ScalarType::integer);
}

YamlPtr real_node(double value) {
  return scalar(python_repr(value), ScalarType::floating);
}

// Python's repr(), which str() uses inside lists and mappings.
std::string repr(const YamlNode& node) {
  std::vector<std::string> parts;
  switch (node.kind) {
    case Kind::null:
      return "None";
    case Kind::scalar: {
      if (node.type != ScalarType::text) return node.value;
      const char quote =
          node.value.find('\'') != std::string::npos && node.value.find('"') == std::string::npos
              ? '"'
              : '\'';
      std::string text(1, quote);
      for (const char c : node.value) {
        if (c == quote || c == '\\') text += '\\';
        text += c == '\n' ? std::string("\\n") : std::string(1, c);
      }
      return text + quote;
    }
    case Kind::sequence:
      for (const YamlPtr& item : node.items) parts.push_back(repr(*item));
      return "[" + join(parts, ", ") + "]";
    case Kind::mapping:
      break;
  }
  for (const auto& entry : node.entries) {
    parts.push_back(repr(*entry.first) + ": " + repr(*entry.second));
  }
  return "{" + join(parts, ", ") + "}";
}

const YamlNode& only(const Args& args, const char* name) {
  if (args.size() != 1) throw ExpressionError(fmt::format("{}() takes one value", name));
  return *args[0];
}

const std::vector<YamlPtr>& items_of(const YamlNode& node, const char* name) {
  if (node.kind != Kind::sequence) throw ExpressionError(fmt::format("{}() takes a list", name));
  return node.items;
}

YamlPtr to_text(const Args& args) {
  const YamlNode& value = only(args, "str");
  return text_node(value.kind == Kind::scalar ? value.value : repr(value));
}

double real_of(const YamlNode& node, const char* name) {
  if (const auto number = number_of(node)) return number->as_real();
  const auto value = python_float(std::string_view(node.value));
  if (node.kind != Kind::scalar || !value) {
    throw ExpressionError(fmt::format("{}() cannot take {}", name, repr(node)));
  }
  return *value;
}

YamlPtr to_whole(const Args& args) {
  const YamlNode& value = only(args, "int");
  const auto number = number_of(value);
  if (number && number->whole) return whole_node(number->integer);
  const auto read =
      number || value.kind != Kind::scalar ? std::nullopt : to_integer(strip(value.value));
  if (read) return whole_node(*read);
  if (!number || !(std::fabs(number->real) < 9e18)) {
    throw ExpressionError(fmt::format("int() cannot take {}", repr(value)));
  }
  return whole_node(static_cast<int64_t>(number->real));
}

YamlPtr to_real(const Args& args) {
  return real_node(real_of(only(args, "float"), "float"));
}

YamlPtr length(const Args& args) {
  const YamlNode& value = only(args, "len");
  return whole_node(
      static_cast<int64_t>(value.items.size() + value.entries.size() + value.value.size()));
}

YamlPtr range(const Args& args) {
  std::vector<int64_t> bounds;
  for (const YamlPtr& arg : args) {
    const auto number = number_of(*arg);
    if (!number || !number->whole) throw ExpressionError("range() takes whole numbers");
    bounds.push_back(number->integer);
  }
  if (bounds.empty() || bounds.size() > 3) throw ExpressionError("range() takes 1 to 3 numbers");
  if (bounds.size() == 1) bounds.insert(bounds.begin(), 0);
  const int64_t step = bounds.size() == 3 ? bounds[2] : 1;
  if (step == 0) throw ExpressionError("range() cannot take steps of 0");
  Args items;
  for (int64_t i = bounds[0]; step > 0 ? i < bounds[1] : i > bounds[1]; i += step) {
    if (items.size() >= kMostItems) throw ExpressionError("range() gives more than 100000 items");
    items.push_back(whole_node(i));
  }
  return list_node(std::move(items));
}

YamlPtr sorted(const Args& args) {
  Args items = items_of(only(args, "sorted"), "sorted");
  std::ranges::stable_sort(items, [](const YamlPtr& a, const YamlPtr& b) { return less(*a, *b); });
  return list_node(std::move(items));
}

YamlPtr to_list(const Args& args) {
  return list_node(items_of(only(args, "list"), "list"));
}

YamlPtr sum(const Args& args) {
  YamlPtr total = whole_node(0);
  for (const YamlPtr& item : items_of(only(args, "sum"), "sum")) {
    total = arithmetic("+", total, item);
  }
  return total;
}

template <bool kSmallest>
YamlPtr extreme(const Args& args) {
  const Args& items = args.size() == 1 ? items_of(*args[0], kSmallest ? "min" : "max") : args;
  if (items.empty()) throw ExpressionError("min() and max() need a value");
  YamlPtr best = items[0];
  for (const YamlPtr& item : items) {
    if (kSmallest ? less(*item, *best) : less(*best, *item)) best = item;
  }
  return best;
}

YamlPtr whole_arithmetic(std::string_view op, int64_t a, int64_t b) {
  int64_t result = 0;
  bool overflow = false;
  if (op == "+") {
    overflow = __builtin_add_overflow(a, b, &result);
  } else if (op == "-") {
    overflow = __builtin_sub_overflow(a, b, &result);
  } else if (op == "*") {
    overflow = __builtin_mul_overflow(a, b, &result);
  } else if (op == "**") {
    if (b < 0) return real_node(std::pow(static_cast<double>(a), static_cast<double>(b)));
    result = 1;
    for (int64_t i = 0; i < b && !overflow && result != 0 && (a != 1 || i < 1); ++i) {
      if (a == -1) return whole_node(b % 2 == 0 ? 1 : -1);
      overflow = __builtin_mul_overflow(result, a, &result);
    }
  } else {
    if (b == 0) throw ExpressionError("division by zero");
    if (a == std::numeric_limits<int64_t>::min()) throw ExpressionError("a number is too large");
    // Python rounds towards minus infinity.
    int64_t quotient = a / b;
    if (a % b != 0 && (a < 0) != (b < 0)) --quotient;
    result = op == "//" ? quotient : a - quotient * b;
  }
  if (overflow) throw ExpressionError("a number is too large");
  return whole_node(result);
}

YamlPtr real_arithmetic(std::string_view op, double a, double b) {
  if (op == "+") return real_node(a + b);
  if (op == "-") return real_node(a - b);
  if (op == "*") return real_node(a * b);
  if (op == "**") return real_node(std::pow(a, b));
  if (b == 0) throw ExpressionError("division by zero");
  if (op == "/") return real_node(a / b);
  const double quotient = std::floor(a / b);
  return real_node(op == "//" ? quotient : a - quotient * b);
}

YamlPtr repeated(const YamlNode& what, int64_t count) {
  const auto size = static_cast<int64_t>(what.items.size() + what.value.size());
  if (size > 0 && count > kMostItems / size) throw ExpressionError("* gives more than it may");
  YamlPtr all = what.kind == Kind::sequence ? list_node({}) : text_node("");
  for (int64_t i = 0; i < count; ++i) {
    all->value += what.value;
    all->items.insert(all->items.end(), what.items.begin(), what.items.end());
  }
  return all;
}

}  // namespace

YamlPtr text_node(std::string value) {
  return scalar(std::move(value), ScalarType::text);
}

YamlPtr bool_node(bool value) {
  return scalar(value ? "True" : "False", ScalarType::boolean);
}

YamlPtr list_node(std::vector<YamlPtr> items) {
  auto node = std::make_shared<YamlNode>();
  node->kind = Kind::sequence;
  node->items = std::move(items);
  return node;
}

YamlPtr number_node(std::string_view text) {
  if (const auto whole = to_integer(text)) return whole_node(*whole);
  const auto real = python_float(text);
  return real ? real_node(*real) : nullptr;
}

bool truth(const YamlNode& node) {
  switch (node.kind) {
    case Kind::null:
      return false;
    case Kind::scalar:
      if (const auto number = number_of(node)) return number->as_real() != 0;
      return !node.value.empty();
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
  if (a.kind == Kind::scalar) {
    const auto x = number_of(a), y = number_of(b);
    if (x && y) return x->as_real() == y->as_real();
    return a.value == b.value;  // a text that reads as a number was compared as one above
  }
  for (size_t i = 0; i < a.items.size(); ++i) {
    if (!equal(*a.items[i], *b.items[i])) return false;
  }
  return std::ranges::all_of(a.entries, [&](const auto& entry) {
    const YamlNode* other = b.find(entry.first->value);
    return other && equal(*entry.second, *other);
  });
}

bool less(const YamlNode& a, const YamlNode& b) {
  const auto x = number_of(a), y = number_of(b);
  if (x && y) return x->as_real() < y->as_real();
  if (x || y || a.kind != Kind::scalar || b.kind != Kind::scalar) {
    throw ExpressionError(fmt::format("{} and {} have no order", repr(a), repr(b)));
  }
  return a.value < b.value;
}

bool contains(const YamlNode& container, const YamlNode& item) {
  if (container.kind == Kind::mapping) return container.find(item.value) != nullptr;
  if (container.kind == Kind::scalar) return container.value.find(item.value) != std::string::npos;
  return std::ranges::any_of(container.items,
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
  const auto given = to_integer(key.value);
  if (!given) {
    throw ExpressionError(fmt::format("a list is indexed by a number, not '{}'", key.value));
  }
  const auto size = static_cast<int64_t>(data.items.size());
  const int64_t index = *given < 0 ? *given + size : *given;
  if (index < 0 || index >= size) {
    throw ExpressionError(fmt::format("index {} is outside its {} items", key.value, size));
  }
  return data.items[static_cast<size_t>(index)];
}

YamlPtr arithmetic(std::string_view op, const YamlPtr& a, const YamlPtr& b) {
  const auto x = number_of(*a), y = number_of(*b);
  if (x && y) {
    if (x->whole && y->whole && op != "/") return whole_arithmetic(op, x->integer, y->integer);
    return real_arithmetic(op, x->as_real(), y->as_real());
  }
  if (op == "+" && !x && !y && a->kind == b->kind && a->kind != Kind::mapping) {
    if (a->kind == Kind::scalar) return text_node(a->value + b->value);
    std::vector<YamlPtr> items = a->items;
    items.insert(items.end(), b->items.begin(), b->items.end());
    return list_node(std::move(items));
  }
  if (op == "*" && x && x->whole && b->kind != Kind::mapping) return repeated(*b, x->integer);
  if (op == "*" && y && y->whole && a->kind != Kind::mapping) return repeated(*a, y->integer);
  throw ExpressionError(fmt::format("{} cannot take {} and {}", op, repr(*a), repr(*b)));
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

const IncludeFunction* find_function(const std::string& name) {
  static const std::map<std::string, IncludeFunction> functions = {
      {"str", to_text},       {"int", to_whole},      {"float", to_real}, {"len", length},
      {"range", range},       {"sorted", sorted},     {"list", to_list},  {"sum", sum},
      {"min", extreme<true>}, {"max", extreme<false>}};
  const auto found = functions.find(name);
  return found == functions.end() ? nullptr : &found->second;
}

}  // namespace tally

#include "engine/expand/definitions.h"

#include <cctype>
#include <cmath>
#include <cstdlib>

#include "engine/base/text.h"
#include "engine/expand/substitute.h"

namespace tally {

uint32_t Definitions::number(const ParameterSet& set, const Parameter& parameter) {
  const auto [entry, added] =
      numbers_.emplace(&parameter, static_cast<uint32_t>(definitions_.size()));
  if (!added) return entry->second;
  Definition definition;
  definition.parameter = &parameter;
  definition.set = &set;
  definition.name = pool_.intern(parameter.name.value);
  definition.text = pool_.intern(strip(parameter.value.value));
  if (parameter.mode != Mode::text) {
    definition.start = Progress::raw;
  } else if (pieces(definition.text, parameter.separator).size() > 1) {
    definition.start = Progress::split_raw;
  } else if (pool_[definition.text].find('$') != std::string::npos) {
    definition.start = Progress::raw;
  }
  definitions_.push_back(definition);
  return entry->second;
}

Binding Definitions::fresh(uint32_t number) const {
  const Definition& d = definitions_[number];
  return {d.name, d.text, Binding::no_index, with_progress(number, d.start)};
}

const std::vector<TextId>& Definitions::pieces(TextId text, const std::string& separator) {
  const auto [entry, added] = pieces_.try_emplace({text, separator});
  if (added) {
    for (const std::string& piece : split_strip(pool_[text], separator)) {
      entry->second.push_back(pool_.intern(piece));
    }
  }
  return entry->second;
}

const std::vector<TextId>& Definitions::references(TextId text) {
  const auto [entry, added] = references_.try_emplace(text);
  if (added) {
    for (const std::string& name : referenced_names(pool_[text])) {
      entry->second.push_back(pool_.intern(name));
    }
  }
  return entry->second;
}

namespace {

// Digits with single underscores between them, as Python allows; appended to `out` without them.
size_t digits(const std::string& text, size_t at, std::string& out) {
  size_t count = 0;
  while (at < text.size()) {
    if (isdigit(static_cast<unsigned char>(text[at])) != 0) {
      out += text[at++];
      ++count;
    } else if (text[at] == '_' && count > 0 && at + 1 < text.size() &&
               isdigit(static_cast<unsigned char>(text[at - 1])) != 0 &&
               isdigit(static_cast<unsigned char>(text[at + 1])) != 0) {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

}  // namespace

bool is_python_float(const std::string& text, double* value) {
  std::string word(strip(text));
  std::string plain;
  size_t at = 0;
  if (at < word.size() && (word[at] == '+' || word[at] == '-')) plain += word[at++];
  std::string rest = word.substr(at);
  for (char& c : rest) c = static_cast<char>(tolower(static_cast<unsigned char>(c)));
  if (rest == "inf" || rest == "infinity" || rest == "nan") {
    plain += rest;
  } else {
    const size_t begin = at;
    at = digits(word, at, plain);
    size_t mantissa = at - begin;
    if (at < word.size() && word[at] == '.') {
      plain += word[at++];
      const size_t fraction = at;
      at = digits(word, at, plain);
      mantissa += at - fraction;
    }
    if (mantissa == 0) return false;
    if (at < word.size() && (word[at] == 'e' || word[at] == 'E')) {
      plain += word[at++];
      if (at < word.size() && (word[at] == '+' || word[at] == '-')) plain += word[at++];
      const size_t exponent = at;
      at = digits(word, at, plain);
      if (at == exponent) return false;
    }
    if (at != word.size()) return false;
  }
  if (value != nullptr) *value = strtod(plain.c_str(), nullptr);
  return true;
}

std::string type_error(const Parameter& parameter, const std::string& value) {
  if (parameter.type == ValueType::string) return {};
  double number = 0;
  const bool integer = parameter.type == ValueType::integer;
  if (is_python_float(value, &number) && (!integer || std::isfinite(number))) return {};
  return '"' + value + "\" from \"" + parameter.name.value + "\" cannot be represented as a \"" +
         (integer ? "int" : "float") + '"';
}

}  // namespace tally

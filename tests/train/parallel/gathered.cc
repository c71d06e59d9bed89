#include "tests/train/parallel/gathered.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "src/device/convert.h"

using namespace tally::train;

namespace {

// A rank's part of a parameter, as it travels.
struct Part {
  Parameter parameter;
  std::vector<double> values;
};

std::string packed(const std::vector<Part>& parts) {
  std::string text;
  for (const Part& part : parts) {
    const Parameter& p = part.parameter;
    const nlohmann::json head{{"name", p.name},
                              {"shape", p.shape},
                              {"dimension", p.shard.dimension},
                              {"sections", p.shard.sections},
                              {"index", p.shard.index},
                              {"count", p.shard.count},
                              {"copy", p.copy},
                              {"values", part.values.size()}};
    text += head.dump() + "\n";
    text.append(reinterpret_cast<const char*>(part.values.data()),
                part.values.size() * sizeof(double));
  }
  return text;
}

std::vector<Part> unpacked(const std::string& text) {
  std::vector<Part> parts;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    const auto head = nlohmann::json::parse(text.substr(at, end - at));
    Part part;
    Parameter& p = part.parameter;
    p.name = head.at("name");
    p.shape = head.at("shape").get<std::vector<int64_t>>();
    p.shard.dimension = head.at("dimension");
    p.shard.sections = head.at("sections").get<std::vector<int64_t>>();
    p.shard.index = head.at("index");
    p.shard.count = head.at("count");
    p.copy = head.at("copy");
    part.values.resize(head.at("values"));
    std::memcpy(part.values.data(), text.data() + end + 1, part.values.size() * sizeof(double));
    at = end + 1 + part.values.size() * sizeof(double);
    parts.push_back(std::move(part));
  }
  return parts;
}

// The place in the whole parameter of element `local` of a part: by rows and columns, one element at
// a time, so that nothing is shared with what the program does.
int64_t place_of(const Parameter& p, int64_t local) {
  const int64_t columns = p.shape.size() > 1 ? p.shape[1] : 1;
  const bool by_rows = p.shard.dimension == 0;
  const int64_t local_columns = by_rows ? columns : columns / p.shard.count;
  int64_t row = local / local_columns, column = local % local_columns;
  std::vector<int64_t> sections = p.shard.sections;
  if (sections.empty()) sections = {p.shape[static_cast<size_t>(p.shard.dimension)]};
  int64_t& along = by_rows ? row : column;
  int64_t before = 0;
  for (const int64_t section : sections) {
    const int64_t share = section / p.shard.count;
    if (along < share) {
      along += before + share * p.shard.index;
      break;
    }
    along -= share;
    before += section;
  }
  return row * columns + column;
}

void put(const Part& part, WholeParameter* whole) {
  const Parameter& p = part.parameter;
  whole->values.resize(static_cast<size_t>(p.elements()), std::numeric_limits<double>::quiet_NaN());
  whole->written.resize(whole->values.size(), 0);
  for (size_t i = 0; i < part.values.size(); ++i) {
    const auto at = static_cast<size_t>(place_of(p, static_cast<int64_t>(i)));
    double& value = whole->values[at];
    const bool known = !std::isnan(value);
    if (known && value != part.values[i])
      throw std::runtime_error(fmt::format("two ranks have {:.17g} and {:.17g} of {}[{}]", value,
                                           part.values[i], p.name, at));
    value = part.values[i];
    if (!p.copy) ++whole->written[at];
  }
}

double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x * x;
  return std::sqrt(sum);
}

}  // namespace

Gathered gather(const ParameterTable& table, const Tensor& flat, Stream& stream,
                const Exchange& exchange) {
  std::vector<Part> mine;
  for (const Parameter& p : table.all()) {
    const Tensor range = parameter_range(flat, p);
    std::vector<char> bytes(range.bytes());
    stream.copy(bytes.data(), range.data, bytes.size());
    stream.synchronize();
    Part part{p, std::vector<double>(static_cast<size_t>(range.numel()))};
    convert_elements(Tensor(bytes.data(), range.dtype, {range.numel()}),
                     Tensor(part.values.data(), DType::f64, {range.numel()}));
    mine.push_back(std::move(part));
  }
  Gathered all;
  for (const std::string& text : exchange(packed(mine)))
    for (const Part& part : unpacked(text)) put(part, &all[part.parameter.name]);
  for (const auto& [name, whole] : all)
    for (const int count : whole.written)
      if (count == 0) throw std::runtime_error(fmt::format("no rank owns all of {}", name));
  return all;
}

std::string difference(const Gathered& got, const Gathered& expected, double tolerance) {
  double square = 0;
  for (const auto& [name, whole] : expected) square += std::pow(norm(whole.values), 2);
  const double least = 0.01 * std::sqrt(square);
  if (got.size() != expected.size())
    return fmt::format("{} parameters instead of {}", got.size(), expected.size());
  for (const auto& [name, whole] : expected) {
    const auto found = got.find(name);
    if (found == got.end()) return fmt::format("{}: missing", name);
    std::vector<double> apart = found->second.values;
    for (size_t i = 0; i < apart.size(); ++i) apart[i] -= whole.values[i];
    const double off = norm(apart) / std::max(least, norm(whole.values));
    if (!(off <= tolerance)) return fmt::format("{}: off by {:.3g} of its norm", name, off);
  }
  return "";
}

// Statistics of pattern values with Python's types.
#include "engine/results/read/match_statistics.h"

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

using namespace tally;

namespace {

StoreValue into(std::map<std::string, Value>& out) {
  return [&out](const std::string& name, Value value) { out[name] = std::move(value); };
}

}  // namespace

TEST_CASE("statistics with Python's types") {
  Statistics floats(ValueType::floating);  // spec/jube.md section 2, row 6
  for (const char* text : {"1.5", "2", "4e0"}) floats.add(*make_value(text, ValueType::floating));
  std::map<std::string, Value> out;
  floats.store("t", into(out));
  CHECK(out["t"].str() == "1.5");
  CHECK(out["t_first"].str() == "1.5");
  CHECK(out["t_last"].str() == "4.0");
  CHECK(out["t_min"].str() == "1.5");
  CHECK(out["t_max"].str() == "4.0");
  CHECK(out["t_sum"].str() == "7.5");
  CHECK(out["t_sum2"].str() == "22.25");
  CHECK(out["t_avg"].str() == "2.5");
  CHECK(out["t_std"].str() == "1.3228756555322954");
  CHECK(out["t_cnt"].str() == "3");

  Statistics big(ValueType::integer);  // a run of JUBE 2.5.1
  for (const char* text : {"1e30", "12345678901234567"}) {
    big.add(*make_value(text, ValueType::integer));
  }
  out.clear();
  big.store("b", into(out));
  CHECK(out["b_sum"].str() == "1000000000000012365563526073224");
  CHECK(out["b_sum2"].str() == "1000000000000000039769249677464416182930693344313108590032960");
  CHECK(out["b_avg"].str() == "5.000000000000062e+29");
  CHECK(out["b_std"].str() == "7.071067811865389e+29");
  CHECK(out["b_min"].str() == "12345678901234568");

  Statistics one(ValueType::floating);
  one.add({2.5});
  out.clear();
  one.store("o", into(out));
  CHECK(out["o_std"].str() == "0");

  Statistics words(ValueType::string);
  words.add({std::string("foo")});
  words.add({std::string("bar")});
  out.clear();
  words.store("w", into(out));
  CHECK(out.size() == 4);
  CHECK(out["w_last"].str() == "bar");

  out.clear();
  Statistics(ValueType::integer).store("none", into(out));
  CHECK(out.empty());
}

TEST_CASE("values of several types: taken one by one, or with those of another file") {
  // A run of JUBE 2.5.1.
  const std::vector<Value> values = {{std::string("x")}, {3LL}, {5.5}, {5.5}, {std::string("y")}};
  for (size_t split = 0; split <= values.size(); ++split) {
    CAPTURE(split);
    Statistics all(ValueType::string), later(ValueType::floating);
    for (size_t i = 0; i < values.size(); ++i) (i < split ? all : later).add(values[i]);
    all.add(later);
    std::map<std::string, Value> out;
    all.store("w", into(out));
    CHECK(out["w"].str() == "x");
    CHECK(out["w_last"].str() == "y");
    CHECK(out["w_cnt"].str() == "5");
    CHECK(out["w_min"].str() == "3");
    CHECK(out["w_max"].str() == "5.5");
    CHECK(out["w_sum"].str() == "14.0");
    CHECK(out["w_sum2"].str() == "69.5");
    CHECK(out["w_avg"].str() == "3.5");  // of the four up to the last number
    CHECK(out["w_std"].str() == "2.614064523559687");
  }
}

TEST_CASE("a default stands for everything but the count") {  // a run of JUBE 2.5.1
  std::map<std::string, Value> out;
  store_default("d", {-1LL}, ValueType::integer, into(out));
  CHECK(out["d"].str() == "-1");
  CHECK(out["d_avg"].str() == "-1");
  CHECK(out["d_sum2"].str() == "1");
  CHECK(out["d_cnt"].str() == "0");
  CHECK(out["d_std"].str() == "0");
  out.clear();
  store_default("s", {std::string("xx")}, ValueType::string, into(out));
  CHECK(out.size() == 4);
}

TEST_CASE("statistics are packed and come back, and are added to others") {
  const auto stored = [](const Statistics& statistics) {
    std::map<std::string, Value> out;
    statistics.store("x", into(out));
    std::string text;
    for (const auto& [name, value] : out)
      text += name + "=" + value.type_name() + value.str() + " " + value.printed() + "\n";
    return text;
  };
  struct Row {
    ValueType type;
    std::vector<std::string> first, second;
  };
  const Row rows[] = {
      {ValueType::floating, {"1.50", "2", "-4e0"}, {"0.1", "1e300"}},
      {ValueType::floating, {"inf"}, {"0.25"}},
      {ValueType::integer, {"1e30", "12345678901234567"}, {"-7"}},
      {ValueType::integer, {"3", "-9"}, {"90000000000", "5"}},
      {ValueType::string, {"a:b", std::string("5:x\0y", 5)}, {"", "z"}},
  };
  for (const Row& row : rows) {
    Statistics first(row.type), second(row.type), all(row.type);
    for (const std::string& text : row.first) first.add(*make_value(text, row.type));
    for (const std::string& text : row.second) second.add(*make_value(text, row.type));
    for (const auto* texts : {&row.first, &row.second})
      for (const std::string& text : *texts) all.add(*make_value(text, row.type));
    const auto back = Statistics::unpacked(row.type, first.packed());
    REQUIRE(back);
    CHECK(stored(*back) == stored(first));
    Statistics sum(row.type);
    sum.add(*back);
    sum.add(*Statistics::unpacked(row.type, second.packed()));
    CHECK(stored(sum) == stored(all));
  }
  // Bytes of another type, and damaged ones.
  Statistics one(ValueType::floating);
  one.add({2.5});
  const std::string bytes = one.packed();
  CHECK(!Statistics::unpacked(ValueType::integer, bytes));
  for (size_t i = 0; i < bytes.size(); ++i) {
    const auto cut = Statistics::unpacked(ValueType::floating, bytes.substr(0, i));
    CHECK(!cut);
  }
  CHECK(!Statistics::unpacked(ValueType::floating, "f99999999999999999999:1"));
}

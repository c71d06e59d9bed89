// CSV files as tables.
#include "engine/chart/from_table.h"

#include <doctest/doctest.h>

using namespace tally;

namespace {

std::string cell(const ResultTable& table, size_t row, const std::string& name) {
  const Value& value = table.rows.at(row).values.at(name);
  return value.str() + ":" + value.type_name();
}

std::string error_of(const std::string& text) {
  ResultTable table;
  const Status read = read_csv(text, &table);
  CHECK(!read);
  return read.message();
}

}  // namespace

TEST_CASE("names, units, numbers and texts") {
  ResultTable table;
  REQUIRE(read_csv("\xef\xbb\xbfgpus,tps[tokens/s],note\r\n1, 1.5e3 ,\"a, \"\"b\"\"\"\r\n2,,x\r\n",
                   &table));
  REQUIRE(table.columns.size() == 3);
  CHECK(table.columns[1].name.value == "tps");
  CHECK(table.columns[1].info.unit == "tokens/s");
  CHECK(table.columns[1].info.type == ColumnType::floating);
  CHECK(table.columns[2].info.type == ColumnType::text);
  REQUIRE(table.rows.size() == 2);
  CHECK(cell(table, 0, "gpus") == "1:int");
  CHECK(cell(table, 0, "tps") == "1500.0:float");
  CHECK(cell(table, 0, "note") == "a, \"b\":str");
  CHECK(table.rows[1].values.at("tps").none());
}

TEST_CASE("semicolons and tabs separate, too; a quoted cell has several lines") {
  ResultTable table;
  REQUIRE(read_csv("a;b\n1;\"x\ny\"\n", &table));
  CHECK(cell(table, 0, "b") == "x\ny:str");
  REQUIRE(read_csv("a\tb\n1\t2\n\n", &table));
  CHECK(table.rows.size() == 1);
  CHECK(cell(table, 0, "b") == "2:int");
}

TEST_CASE("1_000 is a text, as in other programs") {
  ResultTable table;
  REQUIRE(read_csv("a\n1_000\n", &table));
  CHECK(cell(table, 0, "a") == "1_000:str");
}

TEST_CASE("a row that the table marks has failed") {
  ResultTable table;
  REQUIRE(read_csv("n,status\n1,done\n2,FAILED\n3,LOST\n", &table));
  CHECK(!table.rows[0].failed());
  CHECK(table.rows[1].failed());
  CHECK(table.rows[2].failed());
}

TEST_CASE("files that hold no table") {
  CHECK(error_of("") == "the file is empty; the first line must name the columns");
  CHECK(error_of("a,b\n1,2\n3\n") == "line 3: it has 1 cells, and the first line has 2");
  CHECK(error_of("a,a\n1,2\n") == "line 1: two columns are called 'a'");
  CHECK(error_of("a,b\n1,\"x\n") == "line 2: a quote is opened and not closed");
}

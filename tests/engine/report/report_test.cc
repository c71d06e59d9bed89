// Tables from records: units, formats, filters, order, derived columns, references, databases.
#include "engine/report/report.h"

#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

#include "engine/report/columns.h"
#include "engine/report/outputs.h"

using namespace tally;

namespace {

Column column(const std::string& name, const std::string& title = {},
              const std::string& format = {}) {
  Column c;
  c.name.value = name;
  c.title = title;
  c.format = format;
  return c;
}

Record row(std::map<std::string, Value> values) {
  return {std::move(values), {}};
}

struct Fixture {
  Fixture() : evaluator(make_evaluator(".")) {}
  std::vector<RenderedResult> run() {
    Result result;
    result.outputs.emplace_back(table);
    return render(benchmark, result, records, options, "/nowhere", *evaluator, diagnostics);
  }
  std::string text() { return run().at(0).text; }

  Benchmark benchmark;
  Table table;
  Records records;
  RenderOptions options;
  std::unique_ptr<Evaluator> evaluator;
  Diagnostics diagnostics;
};

std::vector<std::string> order(const std::vector<std::string>& keys, std::vector<Record> rows,
                               const std::string& shown) {
  sort_rows(keys, rows);
  std::vector<std::string> out;
  for (const Record& r : rows) out.push_back(r.values.at(shown).str());
  return out;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "headers have titles and units, cells formats") {
  table.columns = {column("a", "Alpha"), column("t", "", ".2f"), column("t_cnt"),
                   column("n", "", "5d"), column("nix")};
  records.units = {{"t", "s"}};
  records.rows = {row({{"a", {1LL}}, {"t", {1.5}}, {"t_cnt", {2LL}}, {"n", {10.25}}}),
                  row({{"a", {10LL}}, {"t", {}}})};
  CHECK(text() == "Alpha,t[s],t_cnt,n,nix\n1,1.50,2,   10,\n10,,,,\n");
}

TEST_CASE_FIXTURE(Fixture, "a value that the format does not suit is shown as it is") {
  table.columns = {column("w", "", "5d")};
  records.rows = {row({{"w", {std::string("abc")}}})};
  CHECK(text() == "w\nabc\n");
  CHECK(diagnostics.warning_count() == 1);
}

TEST_CASE_FIXTURE(Fixture, "a row without any of the columns is left out") {  // JUBE 2.5.1
  table.columns = {column("q"), column("nix")};
  records.rows = {row({{"a", {2LL}}}), row({{"q", {std::string("u")}}})};
  CHECK(text() == "q,nix\nu,\n");
  table.columns = {column("nix"), column("foo")};
  table.style = TableStyle::pretty;
  table.name.value = "o5";
  CHECK(text() == "o5:\n| nix | foo |\n|-----|-----|\n");
}

TEST_CASE("order: numbers as numbers, strings as strings, None keeps its place") {  // row 10
  CHECK(order({"v"}, {row({{"v", {10LL}}}), row({{"v", {1LL}}}), row({{"v", {2LL}}})}, "v") ==
        std::vector<std::string>{"1", "2", "10"});
  CHECK(order({"v"},
              {row({{"v", {std::string("2")}}}), row({{"v", {std::string("10")}}}),
               row({{"v", {std::string("1")}}}), row({{"v", {std::string("3")}}})},
              "v") == std::vector<std::string>{"1", "10", "2", "3"});
  // A row without the value stays in front: "3," first, then 1, 2, 10.
  CHECK(order({"v"},
              {row({{"p", {3LL}}}), row({{"p", {10LL}}, {"v", {10LL}}}),
               row({{"p", {1LL}}, {"v", {1LL}}}), row({{"p", {2LL}}, {"v", {2LL}}})},
              "p") == std::vector<std::string>{"3", "1", "2", "10"});
  // d has a value in two rows only, then a: JUBE 2.5.1 leaves this as it is.
  CHECK(order({"d", "a"},
              {row({{"a", {1LL}}}), row({{"a", {1LL}}}), row({{"a", {10LL}}, {"d", {5LL}}}),
               row({{"a", {10LL}}, {"d", {5LL}}}), row({{"a", {2LL}}}), row({{"a", {2LL}}})},
              "a") == std::vector<std::string>{"1", "1", "10", "10", "2", "2"});
}

TEST_CASE("five hundred rows in order, equal ones as they were") {
  std::vector<Record> rows;
  for (long long i = 0; i < 500; ++i) rows.push_back(row({{"k", {(i * 37) % 11}}, {"i", {i}}}));
  sort_rows({"k"}, rows);
  for (size_t i = 1; i < rows.size(); ++i) {
    long long k0 = std::get<long long>(rows[i - 1].values["k"].data);
    long long k1 = std::get<long long>(rows[i].values["k"].data);
    long long i0 = std::get<long long>(rows[i - 1].values["i"].data);
    long long i1 = std::get<long long>(rows[i].values["i"].data);
    CHECK((k0 < k1 || (k0 == k1 && i0 < i1)));
  }
}

TEST_CASE_FIXTURE(Fixture, "filters are Python over the row") {
  table.columns = {column("a"), column("w")};
  records.rows = {row({{"a", {1LL}}, {"w", {std::string("x")}}}),
                  row({{"a", {5LL}}, {"w", {std::string("it's")}}}), row({{"a", {7LL}}})};
  table.filter.value = "$a > 2";
  CHECK(text() == "a,w\n5,it's\n7,\n");
  table.filter.value = "'$w' == 'x'";
  CHECK(text() == "a,w\n1,x\n");
  table.filter.value = "w in ('x', \"it's\") and a > 1";
  CHECK(text() == "a,w\n5,it's\n");
  CHECK(!diagnostics.has_errors());
  table.filter.value = "bad";
  text();
  CHECK(diagnostics.has_errors());
}

TEST_CASE_FIXTURE(Fixture, "columns are chosen, left out, and led by the run's id") {
  table.columns = {column("a"), column("b"), column("c", "Gamma")};
  records.rows = {row({{"a", {1LL}}, {"b", {2LL}}, {"c", {3LL}}, {"id", {7LL}}})};
  options.select = {"a", "Gamma"};
  CHECK(text() == "a,Gamma\n1,3\n");
  options.select.clear();
  options.exclude = {"b"};
  options.with_id = true;
  CHECK(text() == "id,a,Gamma\n7,1,3\n");
  options.only = {"other"};
  CHECK(run().empty());
}

TEST_CASE_FIXTURE(Fixture, "the style of the command line is in force") {
  table.columns = {column("a")};
  table.name.value = "t";
  records.rows = {row({{"a", {1LL}}})};
  options.style = "pretty";
  CHECK(text() == "t:\n| a |\n|---|\n| 1 |\n");
}

TEST_CASE_FIXTURE(Fixture, "expressions and values relative to a baseline row") {
  ParameterSet set;
  Parameter devices;
  devices.name.value = "devices";
  devices.value.value = "1,2";
  Parameter model = devices;
  model.name.value = "model";
  model.value.value = "a,b,c";
  Parameter nodes = devices;
  nodes.name.value = "nodes";
  nodes.value.value = "$devices";
  set.parameters = {devices, model, nodes};
  benchmark.parameter_sets["p"] = set;
  Column speedup = column("tps", "speedup");
  speedup.relative_to = {{{"devices", {}}, {"1", {}}}};
  Column efficiency = column("eff", "", ".1f");
  efficiency.expression.value = "100 * speedup / devices";
  Column doubled = column("double");
  doubled.expression.value = "$tps * 2";
  table.columns = {column("model"), column("devices"), column("tps"), speedup, efficiency, doubled};
  auto point = [](const char* m, long long d, double tps) {
    return row({{"model", {std::string(m)}}, {"devices", {d}}, {"nodes", {d}}, {"tps", {tps}}});
  };
  records.rows = {point("a", 1, 100), point("a", 2, 190), point("b", 1, 10), point("b", 2, 20),
                  point("c", 2, 5)};
  std::vector<RenderedResult> out = run();
  CHECK(out[0].text ==
        "model,devices,tps,speedup,eff,double\n"
        "a,1,100.0,1.0,100.0,200.0\n"
        "a,2,190.0,1.9,95.0,380.0\n"
        "b,1,10.0,1.0,100.0,20.0\n"
        "b,2,20.0,2.0,100.0,40.0\n"
        "c,2,5.0,,,10.0\n");
  REQUIRE(out[0].notes.size() == 1);
  CHECK(out[0].notes[0] == "row 5: 'speedup' is empty: there is no baseline row with devices=1");
}

TEST_CASE_FIXTURE(Fixture, "references pass or fail, row by row") {
  table.columns = {column("m"), column("time")};
  records.rows = {row({{"m", {175LL}}, {"time", {587.14}}}),
                  row({{"m", {13LL}}, {"time", {24.0}}})};
  auto reference = [](const std::string& condition, const std::string& where = {}) {
    Reference r;
    r.column.value = "time";
    r.condition.value = condition;
    r.where.value = where;
    return r;
  };
  table.references = {reference("<= 560", "m == 175"), reference("24 +- 5%", "m == 13"),
                      reference("20 .. 30"),           reference("580 \xC2\xB1 10", "m == 175"),
                      reference("time > m"),           reference("24", "m == 13")};
  std::vector<RenderedResult> out = run();
  CHECK(out[0].references_failed == 2);
  CHECK(out[0].references_passed == 6);
  CHECK(out[0].notes[0] == "reference time <= 560: FAIL, it is 587.14");
  table.columns[1].format = ".1f";  // the note shows what the table shows
  CHECK(run()[0].notes[0] == "reference time <= 560: FAIL, it is 587.1");
}

namespace {

std::vector<std::string> query(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  std::vector<std::string> out;
  sqlite3_open(path.c_str(), &db);
  sqlite3_exec(
      db, sql.c_str(),
      [](void* to, int n, char** values, char**) {
        std::string line;
        for (int i = 0; i < n; ++i) {
          if (i != 0) line += '|';
          line += values[i] != nullptr ? values[i] : "NULL";
        }
        static_cast<std::vector<std::string>*>(to)->push_back(line);
        return 0;
      },
      &out, nullptr);
  sqlite3_close(db);
  return out;
}

}  // namespace

TEST_CASE("a database replaces rows by primary key, adds and drops columns") {
  std::string path = "/tmp/tally-report-" + std::to_string(::getpid()) + ".db";
  std::remove(path.c_str());
  Database database;
  database.name.value = "db2";
  database.keys = {column("a"), column("t"), column("q")};
  database.primary_keys = {"a"};
  REQUIRE(write_database(database,
                         {row({{"a", {2LL}}, {"t", {2.5}}}),
                          row({{"a", {1LL}}, {"t", {1.5}}, {"q", {std::string("u")}}})},
                         path));
  CHECK(query(path, "select sql from sqlite_master where type = 'table'") ==
        std::vector<std::string>{
            "CREATE TABLE \"db2\" (\"a\" int, \"t\" float, \"q\" NoneType, PRIMARY KEY (\"a\"))"});
  CHECK(query(path, "select a, t, q from db2 order by a") ==
        std::vector<std::string>{"1|1.5|u", "2|2.5|NULL"});
  database.keys = {column("a"), column("q"), column("n")};
  database.keys[0].primary_key = true;
  REQUIRE(write_database(database, {row({{"a", {2LL}}, {"q", {std::string("new")}}, {"n", {7LL}}})},
                         path));
  CHECK(query(path, "select * from db2 order by a") ==
        std::vector<std::string>{"1|u|NULL", "2|new|7"});
  Status failed = write_database(database, {}, path + "/x.db");  // below a file
  CHECK(!failed);
  CHECK(failed.message().find(path + "/x.db") != std::string::npos);
  std::remove(path.c_str());
}

TEST_CASE("syslog lines and their way") {
  Syslog syslog;
  syslog.name.value = "sl";
  syslog.keys = {column("a"), column("t", "", ".2f"), column("d")};
  std::vector<std::string> lines = syslog_lines(syslog, {row({{"a", {1LL}}, {"t", {1.0}}})});
  REQUIRE(lines.size() == 1);
  CHECK(lines[0] == "a=1 t=1.00 d=None");

  std::string path = "/tmp/tally-syslog-" + std::to_string(::getpid());
  int file = ::socket(AF_UNIX, SOCK_DGRAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ::unlink(path.c_str());
  REQUIRE(::bind(file, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  syslog.address = path;
  syslog.format = "me: %(message)s";
  REQUIRE(send_syslog(syslog, lines));
  char buffer[256];
  ssize_t length = ::recv(file, buffer, sizeof buffer, MSG_DONTWAIT);
  REQUIRE(length > 0);
  CHECK(std::string(buffer, static_cast<size_t>(length - 1)) == "<14>me: a=1 t=1.00 d=None");
  ::close(file);
  ::unlink(path.c_str());
  CHECK(!send_syslog(syslog, lines));
}

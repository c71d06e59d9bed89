// Tables from records: units, formats, filters, order, derived columns, references, databases.
#include "engine/report/report.h"

#include <doctest/doctest.h>
#include <sqlite3.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <limits>

#include "engine/results/table/columns.h"
#include "engine/results/table/row_choice.h"

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

Record row(const std::map<std::string, Value>& values) {
  Record row;
  for (const auto& [name, value] : values) row.values.set(name, value);
  return row;
}

struct Fixture {
  Fixture() : evaluator(make_evaluator(".")) {}
  // Rows are of the points that their values say.
  void make_points() {
    std::vector<WorkpackageView> views;
    for (size_t i = 0; i < records.rows.size(); ++i) {
      Record& row = records.rows[i];
      if (row.id == 0) row.id = static_cast<int>(i);
      WorkpackageView& view = views.emplace_back();
      view.id = row.id;
      for (size_t c = 0; c < row.values.all().size(); ++c)
        view.values.emplace_back(row.values.columns()->name(c), row.values.all()[c].str());
      view.parameters = view.values.size();
    }
    const auto points = std::make_shared<const Points>(views, true);
    for (Record& row : records.rows) row.point = {points, row.id};
  }
  std::vector<RenderedResult> run() {
    make_points();
    Result result;
    result.outputs.emplace_back(table);
    const ResultTables tables({benchmark, *evaluator, diagnostics}, records);
    return render(benchmark, result, tables, options, diagnostics);
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
  records.known["t"].unit = "s";
  records.rows = {row({{"a", {1LL}}, {"t", {1.5}}, {"t_cnt", {2LL}}, {"n", {10.25}}}),
                  row({{"a", {10LL}}, {"t", {}}})};
  CHECK(text() == "Alpha,t[s],t_cnt,n,nix\n1,1.50,2,10.25,\n10,,,,\n");
  benchmark.rules = Rules::jube();  // JUBE cuts fractions off
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
    long long k0 = std::get<long long>(rows[i - 1].values.at("k").data);
    long long k1 = std::get<long long>(rows[i].values.at("k").data);
    long long i0 = std::get<long long>(rows[i - 1].values.at("i").data);
    long long i1 = std::get<long long>(rows[i].values.at("i").data);
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
  REQUIRE(out[0].table.notes.size() == 2);
  CHECK(out[0].table.notes[0].str() == "'eff' has no value in 1 of 5 rows: row 5");
  CHECK(out[0].table.notes[1].str() ==
        "row 5: 'speedup' is empty: no row with devices=1 has the same model; if it changes "
        "together with devices, name it in relative_to, too");
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
  CHECK(out[0].table.missed.size() == 2);
  CHECK(out[0].table.references_passed == 6);
  REQUIRE(out[0].table.missed.size() == 2);
  CHECK(out[0].table.missed[0].text == "row 1: time is 587.14; expected <= 560, missed by 4.85 %");
  CHECK(out[0].table.notes.at(0).str() == "reference time 24 +- 5%: pass, row 2 has 24");
  table.columns[1].format = ".1f";  // what is said shows what the table shows
  CHECK(run()[0].table.missed.at(0).text ==
        "row 1: time is 587.1; expected <= 560, missed by 4.85 %");
}

TEST_CASE_FIXTURE(Fixture, "a reference without a value to compare is missed") {
  ParameterSet set;
  Parameter m;
  m.name.value = "m";
  set.parameters = {m};
  benchmark.parameter_sets["p"] = set;
  table.columns = {column("m"), column("time")};
  Record failed = row({{"m", {2LL}}, {"time", {1.0}}});
  failed.state = State::failed;
  failed.id = 7;
  Record out_of_memory = row({{"m", {4LL}}, {"time", {std::numeric_limits<double>::quiet_NaN()}}});
  out_of_memory.state = State::expected;
  records.rows = {row({{"m", {1LL}}}), failed, row({{"m", {3LL}}, {"time", {std::string("x")}}}),
                  out_of_memory};
  Reference reference;
  reference.column.value = "time";
  reference.condition.value = "<= 560";
  reference.note.value = "last year";
  Reference nowhere = reference;
  nowhere.where.value = "m == 9";
  table.references = {reference, nowhere};
  const ResultTable out = run()[0].table;
  REQUIRE(out.missed.size() == 4);
  CHECK(out.missed[0].text ==
        "row 1 (m=1): there is no value of 'time' to compare; expected <= 560 (last year)");
  CHECK(out.missed[1].text ==
        "row 2 (m=2): no value of 'time' counts: workpackage 7 failed; expected <= 560 (last "
        "year)");
  CHECK(out.missed[2].text.find("row 3 (m=3): time <= 560 cannot be evaluated: ") == 0);
  CHECK(out.missed[3].text ==
        "no row with m == 9 has a value of 'time' to compare; expected <= 560 (last year)");
  CHECK(out.references_passed == 0);
}

TEST_CASE_FIXTURE(Fixture, "a reference of a relative column holds the ratio to it") {
  Column speedup = column("tps", "speedup");
  speedup.relative_to = {{{"n", {}}, {"1", {}}}};
  table.columns = {column("n"), speedup};
  records.rows = {row({{"n", {1LL}}, {"tps", {10.0}}}), row({{"n", {2LL}}, {"tps", {15.0}}})};
  Reference reference;  // as a `reference` below the column makes it
  reference.column.value = "tps";
  reference.column_index = 1;
  reference.condition.value = ">= 1.6";
  reference.where.value = "n == 2";
  table.references = {reference};
  REQUIRE(run()[0].table.missed.size() == 1);
  CHECK(run()[0].table.missed[0].text ==
        "row 2: speedup is 1.5; expected >= 1.6, missed by 6.25 %");
}

TEST_CASE_FIXTURE(Fixture, "failed rows are marked in every style, and are no baseline") {
  Column speedup = column("tps", "speedup");
  speedup.relative_to = {{{"n", {}}, {"1", {}}}};
  table.name.value = "t";
  table.columns = {column("n"), column("tps"), speedup};
  Record failed = row({{"n", {1LL}}, {"tps", {10.0}}});
  failed.state = State::failed;
  Record lost = row({{"n", {4LL}}, {"tps", {11.0}}});
  lost.state = State::lost;
  failed.notes = {"workpackage 0 (s) failed: why"};
  records.rows = {failed, row({{"n", {2LL}}, {"tps", {15.0}}}), lost};
  CHECK(text() == "n,tps,speedup,status\n1,10.0,,FAILED\n2,15.0,,done\n4,11.0,,LOST\n");
  CHECK(run()[0].table.notes.at(0).str() == "row 1 FAILED: workpackage 0 (s) failed: why");
  table.columns.pop_back();
  options.style = "pretty";
  CHECK(text() ==
        "t:\n| n | tps | status |\n|---|-----|--------|\n| 1 |  10 | FAILED |\n"
        "| 2 |  15 |   done |\n| 4 |  11 |   LOST |\n");
  options.style = "aligned";
  CHECK(text() == "n,tps,status\n1, 10,FAILED\n2, 15,  done\n4, 11,  LOST\n");
  options.style = "csv";
  table.transpose = true;
  CHECK(text() == "n,1,2,4\ntps,10.0,15.0,11.0\nstatus,FAILED,done,LOST\n");
  table.transpose = false;
  table.columns.push_back(column("status"));
  records.rows[1].reused = true;
  CHECK(text() == "n,tps,status\n1,10.0,failed\n2,15.0,reused\n4,11.0,lost\n");
  records.rows[1].reused = false;
  table.filter.value = "status != 'lost'";
  CHECK(text() == "n,tps,status\n1,10.0,failed\n2,15.0,done\n");
  benchmark.rules = Rules::jube();  // JUBE knows no such thing
  table.filter.value.clear();
  CHECK(text() == "n,tps,status\n1,10.0,\n2,15.0,\n4,11.0,\n");
}

TEST_CASE_FIXTURE(Fixture, "JUBE's files: units after titles, cells as they are") {
  benchmark.rules = Rules::jube();
  table.columns = {column("p"),           column("p", "P"),        column("t"),
                   column("t", "T"),      column("t_avg", "Tavg"), column("t_cnt", "N"),
                   column("m", "mem[G]"), column("w", "a, b")};
  for (const auto& [name, unit] :
       std::map<std::string, std::string>{{"p", "m"}, {"t", "s"}, {"t_avg", "s"}, {"m", "G"}})
    records.known[name].unit = unit;
  records.rows = {row({{"p", {1LL}}, {"w", {std::string("\"n1,n2\"")}}})};
  CHECK(text() ==
        "p[m],P[m],t[s],T[s],Tavg[s],N,mem[G][G],a, b\n1,1,,,,,,\"n1,n2\"\n");  // JUBE 2.7.1
}

TEST_CASE_FIXTURE(Fixture, "values named like Python's functions do not hide them") {
  table.columns = {column("v")};
  records.rows = {row({{"v", {1LL}},
                       {"str", {std::string("10")}},
                       {"int", {3LL}},
                       {"len", {std::string("x")}}}),
                  row({{"v", {2LL}},
                       {"str", {std::string("1")}},
                       {"int", {4LL}},
                       {"len", {std::string("y")}}})};
  for (const char* filter :
       {"'$str' == '10'", "str($int) == '3'", "int($str) == 10", "str(int) == '3'",
        "len('$str') == 2", "len == 'x' and int < 4", "len(str) + len('$len') == 3"}) {
    CAPTURE(std::string(filter));
    table.filter.value = filter;
    CHECK(text() == "v\n1\n");
    CHECK(!diagnostics.has_errors());
  }
}

TEST_CASE_FIXTURE(Fixture, "an empty cell of a pattern is noted") {
  Pattern rate;
  rate.name.value = "rate";
  benchmark.pattern_sets["p"].patterns = {rate};
  Column shown = column("rate_avg");
  table.columns = {column("n"), column("rate"), shown};
  records.rows = {row({{"n", {1LL}}, {"rate", {2.0}}, {"rate_avg", {2.0}}}), row({{"n", {2LL}}})};
  const std::vector<Note> notes = run()[0].table.notes;
  REQUIRE(notes.size() == 2);
  CHECK(notes[0].str() == "'rate' has no value in 1 of 2 rows: row 2");
  CHECK(notes[1].str() == "'rate_avg' has no value in 1 of 2 rows: row 2");
  benchmark.rules = Rules::jube();
  CHECK(run()[0].table.notes.empty());
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

ResultTable shown(const Database& database, std::vector<Record> rows) {
  ResultTable table;
  table.columns = table_columns(database.keys);
  table.rows = std::move(rows);
  find_types(table.rows, table.columns);
  return table;
}

}  // namespace

TEST_CASE("a database replaces rows by primary key, adds and drops columns") {
  std::string path = "/tmp/tally-report-" + std::to_string(::getpid()) + ".db";
  std::remove(path.c_str());
  Database database;
  database.name.value = "db2";
  database.keys = {column("a"), column("t"), column("q")};
  database.primary_keys = {"a"};
  REQUIRE(write_database(
      database,
      shown(database, {row({{"a", {2LL}}, {"t", {2.5}}}),
                       row({{"a", {1LL}}, {"t", {1.5}}, {"q", {std::string("u")}}})}),
      path));
  CHECK(query(path, "select sql from sqlite_master where type = 'table'") ==
        std::vector<std::string>{
            "CREATE TABLE \"db2\" (\"a\" int, \"t\" float, \"q\" NoneType, PRIMARY KEY (\"a\"))"});
  CHECK(query(path, "select a, t, q from db2 order by a") ==
        std::vector<std::string>{"1|1.5|u", "2|2.5|NULL"});
  database.keys = {column("a"), column("q"), column("n")};
  database.primary_keys = {"a"};
  REQUIRE(write_database(
      database, shown(database, {row({{"a", {2LL}}, {"q", {std::string("new")}}, {"n", {7LL}}})}),
      path));
  CHECK(query(path, "select * from db2 order by a") ==
        std::vector<std::string>{"1|u|NULL", "2|new|7"});
  Status failed = write_database(database, shown(database, {}), path + "/x.db");  // below a file
  CHECK(!failed);
  CHECK(failed.message().find(path + "/x.db") != std::string::npos);
  std::remove(path.c_str());
}

TEST_CASE("a database's columns are called by the keys' titles") {  // JUBE 2.7.1
  const std::string path = "/tmp/tally-report-titles-" + std::to_string(::getpid()) + ".db";
  std::remove(path.c_str());
  Database database;
  database.name.value = "db";
  database.keys = {column("a", "NUM"), column("t")};
  database.primary_keys = {"NUM"};
  for (const double t : {1.5, 2.5}) {
    REQUIRE(write_database(database, shown(database, {row({{"a", {1LL}}, {"t", {t}}})}), path));
  }
  CHECK(query(path, "select NUM, t from db") == std::vector<std::string>{"1|2.5"});
  CHECK(query(path, "select sql from sqlite_master where type = 'table'") ==
        std::vector<std::string>{
            "CREATE TABLE \"db\" (\"NUM\" int, \"t\" float, PRIMARY KEY (\"NUM\"))"});
  std::remove(path.c_str());
}

TEST_CASE("syslog lines and their way") {
  Syslog syslog;
  syslog.name.value = "sl";
  syslog.keys = {column("a"), column("t", "", ".2f"), column("d")};
  std::vector<std::string> lines = syslog_lines(syslog, {row({{"a", {1LL}}, {"t", {1.0}}})}, true);
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

// The tables of tests/peer/jube/tables.yaml, from rows made here; tests/golden/jube_tables.txt has the
// files that JUBE 2.5.1 wrote.
#include <doctest/doctest.h>

#include <string>

#include "engine/base/files.h"
#include "engine/report/report.h"
#include "tests/engine/check/checked.h"

using namespace tally;

namespace {

std::string content(const std::string& path) {
  std::string text;
  REQUIRE(read_file(std::string(TALLY_SOURCE_DIR) + "/" + path, &text));
  return text;
}

// The rows of what that file's workpackages print.
Records rows() {
  Records records;
  records.known["t"].unit = "s";
  for (const long long a : {1LL, 10LL, 2LL}) {
    for (const char* b : {"1", "10", "2"}) {
      Record row;
      row.values = Cells(records.columns);
      row.values.set("a", Value{a});
      row.values.set("b", Value{std::string(b)});
      row.values.set("t", *make_value(std::to_string(a) + "." + b, ValueType::floating));
      row.values.set("ml", Value{std::string("l1\nl2 long\n")});
      if (a == 10) row.values.set("some", Value{5LL});
      records.rows.push_back(std::move(row));
    }
  }
  return records;
}

}  // namespace

TEST_CASE(
    "styles, formats, widths, transposed tables, order, filters and missing values as JUBE's") {
  Checked checked(content("tests/peer/jube/tables.yaml"));
  const Benchmark& benchmark = checked.benchmark();
  const Records records = rows();
  Diagnostics diagnostics;
  auto evaluator = make_evaluator(".");
  const ResultTables tables({benchmark, *evaluator, diagnostics}, records);
  RenderOptions options;
  options.write = false;
  std::string made;
  for (const RenderedResult& one :
       render(benchmark, benchmark.results.at(0), tables, options, diagnostics))
    made += "=== " + one.name + "\n" + one.file_text + "\n";
  CHECK(made == content("tests/golden/jube_tables.txt"));
}

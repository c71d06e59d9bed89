// Databases of Tally's own files: what is in the table stays, and a run's rows are there once.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// n = 1, 2. `keys`: of the database r.
std::string bench(const std::string& keys) {
  return "name: b\noutpath: run\n"
         "parameterset: {name: p, parameter: {name: n, type: int, _: '1,2'}}\n"
         "step: {name: s, kind: run, use: p, do: 'echo rate=$n.5; test $n = 1 || echo "
         "hash=0012'}\n"
         "patternset: {name: o, pattern: [{name: rate, type: float, _: 'rate=$jube_pat_fp'}, "
         "{name: hash, _: 'hash=(\\S+)'}]}\n"
         "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, database: {name: r, file: x.db, " +
         keys + "}}\n";
}

std::string query(const Shell& shell, const std::string& sql) {
  return shell
      .sh("python3 -c \"import sqlite3; db = sqlite3.connect('x.db'); print(db.execute('" + sql +
          "').fetchall()); db.commit()\"")
      .out;
}

}  // namespace

TEST_CASE("a database keeps texts as they are, and has the rows of a run once") {
  const Shell shell;
  shell.file("b.yaml", bench("key: [n, rate, hash]"));
  CHECK(shell.tally("run b.yaml -q").code == 0);
  for (int i = 0; i < 2; ++i) CHECK(shell.tally("result run -q").code == 0);
  CHECK(query(shell, "select n, rate, hash from r order by n")
            .find("[(1, 1.5, None), (2, 2.5, '0012')]") == 0);
  CHECK(shell.tally("run b.yaml -q").code == 0);
  CHECK(query(shell, "select n from r order by n") == "[(1,), (1,), (2,), (2,)]\n");
  CHECK(has(query(shell, "select distinct tally_run from r order by 1"), "('b 000000 "));
}

TEST_CASE("a database's other columns and rows stay, and later primekeys count") {
  const Shell shell;
  shell.file("b.yaml", bench("primekeys: n, key: [n, rate]"));
  query(shell, "create table r(n int, rate float, mine text)");
  query(shell, "insert into r values (1, 7.0, char(65)), (5, 8.0, char(66))");
  for (int i = 0; i < 2; ++i) CHECK(shell.tally("run b.yaml -q").code == 0);
  CHECK(query(shell, "select * from r order by n") ==
        "[(1, 1.5, 'A'), (2, 2.5, None), (5, 8.0, 'B')]\n");
}

TEST_CASE("rows of one result with equal primekeys would replace each other: an error") {
  const Shell shell;
  shell.file("b.yaml", bench("primekeys: hash, key: [n, rate, hash]"));
  CHECK(shell.tally("run b.yaml -q").code == 0);  // none and 0012
  shell.sh("sed -i 's/1,2/1,2,3/' b.yaml; rm -r x.db");
  const Ran ran = shell.tally("run b.yaml -q");
  CHECK_MESSAGE(ran.code != 0, (ran.out + ran.err));
  CHECK_MESSAGE(
      has(ran.err, "several rows of the database 'r' have the same `primekeys` (hash = 0012)"),
      ran.err);
  CHECK(!shell.exists("x.db"));
}

TEST_CASE("a database gets nothing from logs, and that is said") {
  const Shell shell;
  shell.file("b.yaml", bench("key: [n, rate]"));
  shell.file("one", "rate=1.5\n");
  shell.file("two", "rate=2.5\n");
  const Ran ran = shell.tally("result b.yaml --logs one two");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "Database 'r': nothing was written to it\n"), ran.out);
  CHECK(shell.sh("test ! -e x.db").code == 0);
}

TEST_CASE("a database gets no row that has not ended, and counts those") {
  // Of a workpackage that was killed, and of one behind it.
  const Shell shell;
  std::string text = bench("key: [n, rate]");
  text.replace(text.find("'1,2'"), 5, "'1,2,3'");
  text.replace(text.find("use: p, do: 'echo rate=$n.5;"), 28,
               "use: p, do: 'echo rate=$n.5; test $n != 2 || kill -9 $PPID;");
  text.replace(text.rfind("database: {"), 11, "database: [{");
  text.replace(text.rfind("}}"), 2, "}, {name: e, file: x.db, key: [n, rate, status]}]}");
  shell.file("b.yaml", text);
  shell.sh("\"$TALLY\" -q run b.yaml -j1");
  const Ran ran = shell.tally("result run");
  CHECK_MESSAGE(query(shell, "select n, rate from r") == "[(1, 1.5)]\n", ran.err);
  CHECK(query(shell, "select n, rate, status from e") == "[(1, 1.5, \'done\')]\n");
  for (const char* name : {"r", "e"}) {
    CHECK_MESSAGE(has(ran.err, std::string("note: ") + name +
                                   ": 2 of 3 rows have not ended and are not written to the "
                                   "database\n"),
                  ran.err);
  }
}

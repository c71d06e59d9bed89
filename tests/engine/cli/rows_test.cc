// `rows` of an analyser: a row for each match of a pattern. Expected tables by hand.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// OSU's latency: a header, a line for each size, a line at the end. `$offset` is a parameter.
const char* kOsu =
    "printf '# threads = 4\\n# Size  Latency (us)\\n1 0.2%s\\n2 0.4%s\\n1024 1.5%s\\ntotal 9.%s "
    "s\\n' "
    "$offset $offset $offset $offset";

std::string osu(const std::string& columns, const std::string& more = "",
                const std::string& step = "") {
  return "name: osu\noutpath: run\n"
         "parameterset: {name: p, parameter: {name: offset, type: int, _: [1, 2]}}\n"
         "step:\n  name: s\n  kind: run\n  use: p\n  quiet_check: false\n" +
         step + "  do: >-\n    " + kOsu +
         "\n"
         "patternset:\n"
         "- name: q\n  pattern:\n"
         "  - {name: size, type: int, unit: B, _: '^(\\d+)\\s+[\\d.]+$'}\n"
         "  - {name: lat, type: float, unit: us, _: '^\\d+\\s+([\\d.]+)$'}\n"
         "  - {name: threads, type: int, _: 'threads = (\\d+)'}\n"
         "- {name: once, pattern: {name: total, type: float, _: 'total ([\\d.]+)'}}\n"
         "analyser: {name: a, use: [q, once], rows: size, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: csv, column: " +
         columns + more + "}}\n";
}

std::string table(const Ran& ran) {
  const size_t begin = ran.out.find("offset,");
  const size_t end = ran.out.find("\n\n", begin);
  return begin == std::string::npos ? ran.out : ran.out.substr(begin, end + 1 - begin);
}

}  // namespace

TEST_CASE("rows: each match is a row; what stands above the first, and other sets, are in all") {
  const Shell shell;
  shell.file("b.yaml", osu("[offset, size, lat, lat_cnt, threads, total]"));
  CHECK(shell.tally("validate b.yaml --strict").code == 0);
  const Ran ran = shell.tally("-q run b.yaml -r");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK(table(ran) ==
        "offset,size[B],lat[us],lat_cnt,threads,total\n"
        "1,1,0.21,1,4,9.1\n1,2,0.41,1,4,9.1\n1,1024,1.51,1,4,9.1\n"
        "2,1,0.22,1,4,9.2\n2,2,0.42,1,4,9.2\n2,1024,1.52,1,4,9.2\n");
  CHECK(ran.err.empty());
}

TEST_CASE("rows: compare and history join them by their values, not by their place") {
  const Shell shell;
  const auto file = [&](const char* sizes) {
    shell.file(
        "b.yaml",
        std::string("name: o\noutpath: run\n"
                    "step: {name: s, kind: run, quiet_check: false, repeat: 6, do: 'for n in ") +
            sizes +
            "; do echo $n $n.5; done'}\n"
            "patternset: {name: q, pattern: [{name: size, type: int, _: '^(\\d+) '}, {name: "
            "lat, type: float, _: '^\\d+ ([\\d.]+)$'}]}\n"
            "analyser: {name: a, use: q, rows: size, analyse: {step: s, file: stdout}}\n"
            "result: {use: a, table: {name: t, style: csv, column: [size, {_: lat, better: "
            "lower}]}}\n");
    return shell.tally("-q run b.yaml -r");
  };
  CHECK(file("1 2 4").code == 0);
  CHECK(file("2 4 8").code == 0);
  const Ran compared = shell.tally("compare run/000000 run/000001 -s csv");
  CHECK_MESSAGE(has(compared.out, "2,lat,2.5,6,2.5,6,"), (compared.out + compared.err));
  CHECK(has(compared.out, "4,lat,4.5,6,4.5,6,"));
  CHECK_MESSAGE(!has(compared.out, "1.5,6,2.5"), compared.out);
  const Ran history = shell.tally("history run --metric lat -s csv");
  CHECK_MESSAGE(has(history.out, "size=2"), (history.out + history.err));
}

TEST_CASE("rows: a failed workpackage marks its rows, and one without a match has an empty one") {
  const Shell shell;
  shell.file("b.yaml", osu("[offset, size, lat]"));
  shell.sh(
      "sed -i 's/^    printf/    test $offset = 2 || exit 0; printf/; s/$offset $/$offset; exit "
      "3/' b.yaml; sed -i 's/\\$offset \\$offset \\$offset \\$offset$/&; exit 3/' b.yaml");
  const Ran ran = shell.tally("-q run b.yaml -r");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out, "2,1,0.22,FAILED"), (ran.out + ran.err));
  CHECK(has(ran.out, "2,1024,1.52,FAILED"));
  CHECK_MESSAGE(has(ran.out, "\n1,,,"), ran.out);
}

TEST_CASE("rows: the journal keeps them for outputs that are gone") {
  const Shell shell;
  shell.file("b.yaml", osu("[offset, size, {_: lat, statistic: median}]"));
  const Ran first = shell.tally("-q run b.yaml -r");
  CHECK_MESSAGE(first.code == 0, (first.out + first.err));
  shell.sh("rm -r run/000000/0*_s");
  const Ran again = shell.tally("-q result run/000000");
  CHECK_MESSAGE(table(again) == table(first), (again.out + again.err));
}

TEST_CASE("rows: the short form") {
  const Shell shell;
  shell.file(
      "o.yaml",
      "run: \"printf '1 0.5\\\\n2 0.75\\\\n'\"\nquiet_check: false\nrepeat: 3\nrows: size\n"
      "metrics:\n  size: {_: '^(\\d+) ', type: int}\n  lat: {_: '^\\d+ ([\\d.]+)$', unit: us, "
      "better: lower}\n");
  const Ran ran = shell.tally("-q run o.yaml -r");
  CHECK_MESSAGE(has(ran.out, "|    1 |"), (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "|    2 |"), (ran.out + ran.err));
}

TEST_CASE("rows: mistakes are errors before anything runs") {
  const Shell shell;
  const auto said = [&](const char* rows) {
    std::string text = osu("[offset, size, lat]");
    text.replace(text.find("rows: size"), 10, rows);
    text.insert(text.find("  - {name: threads"), "  - {name: d, mode: python, _: 2 * $lat}\n");
    shell.file("b.yaml", text);
    const Ran ran = shell.tally("validate b.yaml");
    return ran.code == 2 ? ran.err : "code " + std::to_string(ran.code);
  };
  CHECK(has(said("rows: siz"), "b.yaml:19:43: error: rows: analyser 'a' has no pattern 'siz'\n"));
  CHECK(has(said("rows: siz"), "did you mean 'size'?"));
  CHECK(has(said("rows: [size, offset]"), "error: rows: analyser 'a' has no pattern 'offset'\n"));
  CHECK(has(said("rows: d"), "error: rows: 'd' is computed, and a row comes from a match\n"));
  std::string groups = osu("[offset, size, lat]");
  const std::string one = "'^(\\d+)\\s+[\\d.]+$'";
  groups.replace(groups.find(one), one.size(), "'^(?:a (\\d+)|(\\d+))'");
  shell.file("b.yaml", groups);
  const Ran two = shell.tally("validate b.yaml");
  CHECK(two.code == 2);
  CHECK_MESSAGE(has(two.err,
                    "error: pattern 'size' begins rows, and has 2 groups: write (?:...) for "
                    "all but the one with the value\n"),
                two.err);
  shell.file("b.yaml", osu("[offset, size, lat]", "",
                           "  repeat: {max: 5, until: {metric: lat, half_width: 1%}}\n"));
  const Ran until = shell.tally("validate b.yaml");
  CHECK(until.code == 2);
  CHECK_MESSAGE(has(until.err,
                    "error: until: 'lat' may have a value for each row of analyser 'a', "
                    "and `until` judges one value of each repeat\n"),
                until.err);
}

TEST_CASE("rows: values that stand before their row are warned of") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "step: {name: s, kind: run, quiet_check: false, do: \"printf 'lat 5\\nsize 1\\nlat "
             "6\\nsize 2\\n'\"}\n"
             "patternset: {name: q, pattern: [{name: n, type: int, _: 'size (\\d+)'}, {name: lat, "
             "type: int, _: 'lat (\\d+)'}]}\n"
             "analyser: {name: a, use: q, rows: n, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, style: csv, column: [n, lat]}}\n");
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(has(ran.err, "warning: pattern 'lat' matches above the first row of "), ran.err);
  CHECK(shell.tally("--strict result run").code == 1);
}

namespace {

// Point i prints rows n = 1 and 2, unless `command` ends it before.
std::string two_rows(const std::string& values, const std::string& command) {
  return "name: o\noutpath: run\n"
         "parameterset: {name: p, parameter: [{name: i, type: int, _: \"1,2\"}, {name: b, _: \"" +
         values +
         "\"}]}\n"
         "patternset: {name: q, pattern: [{name: n, type: int, _: 'n=(\\d+)'}, {name: v, type: "
         "float, _: "
         "'v=$jube_pat_fp'}]}\n"
         "step: {name: s, kind: run, quiet_check: false, use: p, do: \"" +
         command +
         " && echo n=1 v=1$i.5 && echo n=2 v=2$i.5\"}\n"
         "analyser: {name: a, use: q, rows: n, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: csv, column: [i, b, n, {_: v, better: "
         "higher}]}}\n";
}

}  // namespace

TEST_CASE("rows: compare ends with 1 where a workpackage has none of them any more") {
  struct Case {
    const char* first;   // what the first run's commands begin with
    const char* second;  // and the second one's
    int code;
    const char* note;
  };
  const Case cases[] = {
      {"true", "test $i = 1", 1, "t: second run: workpackage 1 (s) failed; rows of it are missing"},
      {"true", "if test $i = 2; then kill -9 $PPID; exit 1; fi", 1,
       "t: second run: workpackage 1 (s) has not ended; rows of it are missing"},
      // The first row is there, and failed.
      {"true", "if test $i = 2; then echo n=3 v=1; exit 1; fi", 1, "rows of it are missing"},
      {"test $i = 1", "test $i = 1", 0, ""},
      {"test $i = 1", "true", 0, "t: 2 rows are only in the second run"}};
  for (const Case& one : cases) {
    CAPTURE(one.first);
    CAPTURE(one.second);
    const Shell shell;
    for (const char* command : {one.first, one.second}) {
      shell.file("b.yaml", two_rows("x", command));
      shell.sh("\"$TALLY\" -q run b.yaml -j1");
    }
    Ran ran = shell.tally("compare run/000000 run/000001");
    CHECK_MESSAGE(ran.code == one.code, (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, one.note), ran.err);
    // The same against what a file has kept of the first run.
    shell.sh("\"$TALLY\" result run -i 0 -s json > base.json");
    ran = shell.tally("compare base.json run/000001");
    CHECK_MESSAGE(ran.code == one.code, (ran.out + ran.err));
  }
}

TEST_CASE("rows: compare --by names the rows without a partner, and ends with 1 if they failed") {
  struct Case {
    const char* command;
    int code;
    const char* rows;  // without a partner; empty: all have one
  };
  const Case cases[] = {
      {"true", 0, ""},
      {"test $i$b != 2y", 1, "t: 3 rows are without a row of another 'b': b=x, i=2, n=1; "},
      {"test $i$b != 2z", 1, "t: 1 row is without a row of another 'b': b=z, i=2"},
      {"test $i$b != 2x", 0,
       "t: 3 rows are without a row of another 'b': b=x, i=2; b=y, i=2, n=1"}};
  for (const Case& one : cases) {
    CAPTURE(one.command);
    const Shell shell;
    const bool three = has(one.command, "2z");
    shell.file("b.yaml", two_rows(three ? "x,y,z" : "x,y", one.command));
    shell.sh("\"$TALLY\" -q run b.yaml");
    const Ran ran = shell.tally("compare run --by b");
    CHECK_MESSAGE(ran.code == one.code, (ran.out + ran.err));
    if (*one.rows != 0) CHECK_MESSAGE(has(ran.err, one.rows), ran.err);
    CHECK_MESSAGE(has(ran.err, "without a row") == (*one.rows != 0), ran.err);
    CHECK_MESSAGE(has(ran.err, "rows of it are missing") == (one.code == 1), ran.err);
  }
}

TEST_CASE(
    "rows: compare --by pairs rows with the first value's alone, and nothing hides lost ones") {
  struct Case {
    const char* command;  // what a point's commands begin with
    int code;
    const char* said;
  };
  const Case cases[] = {
      // Two and more without their rows are no pair.
      {"test $b = x", 1, "t: 4 rows are without a row of b=x: b=y, i=1; b=z, i=1"},
      {"test $i = 2 -o $b = x", 1, "t: 2 rows are without a row of b=x: b=y, i=1; b=z, i=1"},
      {"test $i = 2 -o $b = x || kill -9 $PPID && true", 1,
       "has not ended; rows of it are missing"},
      {"test $b != y", 1, "t: 2 rows are without a row of another 'b': b=y, i=1; b=y, i=2"},
      // Without the first value's row there is no base.
      {"test $i$b != 1x", 0, "t: 4 rows are without a row of b=x: b=y, i=1, n=1; "},
      {"test $i$b != 1x || exit 0", 0, "t: 4 rows are without a row of b=x: b=y, i=1, n=1; "},
      {"test $b != x", 2, "the base, b=x, has nothing to compare: it failed"},
      // All failed alike.
      {"test $i = 2", 0, ""}};
  for (const Case& one : cases) {
    CAPTURE(one.command);
    const Shell shell;
    shell.file("b.yaml", two_rows("x,y,z", one.command));
    shell.sh("\"$TALLY\" -q run b.yaml -j1");
    const Ran ran = shell.tally("compare run --by b -s csv");
    CHECK_MESSAGE(ran.code == one.code, (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, one.said), ran.err);
    CHECK_MESSAGE(!has(ran.out, ",y,z,"), ran.out);
    CHECK_MESSAGE(has(ran.err, "rows of it are missing") == (one.code == 1), ran.err);
  }
}

TEST_CASE("rows: compare --by names rows that one of several values lacks") {
  const Shell shell;
  std::string text = two_rows("x,y,z", "test $b = z || echo n=3 v=1; true");
  shell.file("b.yaml", text);
  REQUIRE(shell.tally("-q run b.yaml").code == 0);
  const Ran ran = shell.tally("compare run --by b");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK_MESSAGE(
      has(ran.err, "note: t: 2 rows are without a row of b=z: b=x, i=1, n=3; b=x, i=2, n=3\n"),
      ran.err);
}

TEST_CASE(
    "rows: what a step before lost of one of three values is missed by compare and references") {
  const Shell shell;
  for (const char* repeat : {"", "repeat: 2, "}) {
    for (const char* lost : {"y", "z", "x"}) {
      CAPTURE(repeat);
      CAPTURE(lost);
      std::string text = two_rows("x,y,z", "true");
      text.replace(text.find("step: "), 6,
                   "step:\n- {name: before, kind: run, quiet_check: false, " + std::string(repeat) +
                       "use: p, do: 'test $b != " + lost + "'}\n- ");
      text.insert(text.find("use: p, do: \"true"), "depend: before, ");
      text.insert(text.find("better: higher") + 14, ", reference: '> 0'");
      shell.file("b.yaml", text);
      shell.sh("rm -rf run; \"$TALLY\" -q run b.yaml");
      const Ran result = shell.tally("result run");
      CHECK_MESSAGE(result.code == 5, (result.out + result.err));
      CHECK_MESSAGE(has(result.err, "a row is missing, as are 1 more: workpackage"), result.err);
      const Ran ran = shell.tally("compare run --by b -s csv");
      const bool base = *lost == 'x';
      CHECK_MESSAGE(ran.code == (base ? 0 : 1), (ran.out + ran.err));
      CHECK_MESSAGE(
          has(ran.err, base ? "the base is b=y, the first value in the workflow that has a row"
                            : "rows of step 's' are missing"),
          ran.err);
    }
  }
  // What the table leaves out is no lost row.
  std::string filtered = two_rows("x,y,z", "true");
  filtered.replace(filtered.find("step: "), 6,
                   "step:\n- {name: before, kind: run, quiet_check: false, use: p, do: 'test $b != "
                   "y'}\n- ");
  filtered.insert(filtered.find("use: p, do: \"true"), "depend: before, ");
  filtered.insert(filtered.find("better: higher") + 14, ", reference: '> 0'");
  filtered.insert(filtered.find("column: [i"), "filter: \"b != 'y'\", ");
  shell.file("b.yaml", filtered);
  shell.sh("rm -rf run; \"$TALLY\" -q run b.yaml");
  CHECK(shell.tally("result run").code == 0);
  CHECK(shell.tally("compare run --by b").code == 0);
  // One of two repeats is none, either.
  std::string text = two_rows("x,y,z", "true");
  text.replace(
      text.find("step: "), 6,
      "step:\n- {name: before, kind: run, quiet_check: false, repeat: 2, use: p, do: 'test "
      "$b$jube_wp_iteration != y1'}\n- ");
  text.insert(text.find("use: p, do: \"true"), "depend: before, ");
  text.insert(text.find("better: higher") + 14, ", reference: '> 0'");
  shell.file("b.yaml", text);
  shell.sh("rm -rf run; \"$TALLY\" -q run b.yaml");
  CHECK(shell.tally("result run").code == 0);
  CHECK(shell.tally("compare run --by b").code == 0);
}

// Results of JUBE's files, where they were once other than JUBE's. The expected tables are those of
// JUBE 2.5.1.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

TEST_CASE("two analyse of one step are both read, and a file that is named twice counts once") {
  const Shell shell;
  std::string text =
      "name: b\noutpath: run\n"
      "patternset:\n- {name: pt, pattern: {name: v, _: 'v=(.)'}}\n"
      "- {name: pu, pattern: {name: w, _: 'w=(.)'}}\n"
      "step: {name: s, do: echo v=1 w=2}\n"
      "analyser: {name: a, use: pt, analyse: [{step: s, file: [stdout, \"stdout,stdout\"]},\n"
      "  {step: s, file: [{use: pu, _: stdout}, stdout]}]}\n"
      "result: {use: a, table: {name: t, column: [v, v_cnt, w, w_cnt]}}\n";
  shell.file("b.yaml", text);
  CHECK(has(shell.tally("run b.yaml").out, "v,v_cnt,w,w_cnt\n1,2,2,1\n"));
  text.insert(text.find("do: echo"), "kind: run, ");
  shell.file("own.yaml", text);
  CHECK(has(shell.tally("run own.yaml").out, "v,v_cnt,w,w_cnt\n1,2,2,1\n"));
}

TEST_CASE("in a filter, the quoted name of a pattern without a match stays text, in any file") {
  const Shell shell;
  const auto file = [](const std::string& kind, const std::string& filter) {
    return "name: b\noutpath: run\n"
           "parameterset: {name: ps, parameter: {name: n, type: int, _: \"1,2,3\"}}\n"
           "patternset: {name: pt, pattern: [{name: err, _: 'ERROR (\\w+)'},\n"
           "  {name: x, type: int, _: x=(.)}]}\n"
           "step: {name: s, " +
           kind + "use: ps, do: 'test $n != 2 || echo ERROR segv x=4'}\n" +
           "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
           "result: {use: a, table: {name: t, filter: \"" +
           filter + "\", column: n}}\n";
  };
  for (const char* kind : {"", "kind: run, "}) {
    CAPTURE(kind);
    shell.clear();
    shell.file("b.yaml", file(kind, "'$err' != 'segv'"));
    CHECK(has(shell.tally("run b.yaml").out, "n\n1\n3\n"));
    shell.file("c.yaml", file(kind, "$x > 3"));
    const Ran ran = shell.tally("result run -u c.yaml");
    CHECK_MESSAGE(has(ran.out, "n\n2\n"), ran.out);
    CHECK(ran.code == (*kind == '\0' ? 1 : 0));
    const std::string why = *kind == '\0' ? "could not be evaluated for 2 of 3 rows"
                                          : "2 of 3 rows are left out because they have no value";
    CHECK_MESSAGE(has(ran.err, why), ran.err);
  }
  shell.file("d.yaml", file("kind: run, ", "'$err' == 'segv'"));
  const Ran ran = shell.tally("result run -u d.yaml");
  CHECK(has(ran.out, "n\n2\n"));
  CHECK_MESSAGE(has(ran.err, "2 of 3 rows are left out because they have no value"), ran.err);
}

TEST_CASE("a filter that is true or false as a whole, in any spelling, is Python's") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "parameterset: {name: ps, parameter: [{name: n, type: int, _: \"1,2\"},\n"
             "  {name: show, mode: python, _: \"'true' if $n == 1 else 'FALSE'\"}]}\n"
             "step: {name: s, use: ps, do: 'true'}\n"
             "analyser: {name: a, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: [{name: t, filter: $show, column: n},\n"
             "  {name: u, filter: 'tRue', column: [n, show]}]}\n");
  const Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "n\n1\n\nn,show\n1,true\n2,FALSE\n"), ran.err);
}

TEST_CASE("two patterns of one name for one step are an error with both places") {
  const Shell shell;
  const auto file = [](const std::string& second, const std::string& analyse) {
    return "name: b\noutpath: run\n"
           "patternset:\n- {name: pt, pattern: {name: v, _: 'v=(.)'}}\n"
           "- {name: pu, pattern: {name: v, _: '" +
           second +
           "=(.)'}}\n"
           "step: [{name: s, do: echo v=1 w=2}, {name: t, do: echo v=3 w=4}]\n"
           "analyser: {name: a, " +
           analyse +
           "}\n"
           "result: {use: a, table: {name: t, column: [v, v_cnt]}}\n";
  };
  const std::string two_files =
      "analyse: {step: s, file: [{use: pt, _: stdout}, {use: pu, _: stderr}]}";
  for (const std::string& analyse :
       {std::string("use: 'pt,pu', analyse: {step: s, file: stdout}"), two_files}) {
    shell.file("b.yaml", file("w", analyse));
    const Ran ran = shell.tally("run b.yaml");
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err,
                      "b.yaml:5:30: error: Cannot use patternset \"pu\" in analyser \"a\", "
                      "because there are incompatible pattern name combinations: v"),
                  ran.err);
    CHECK_MESSAGE(has(ran.err, "b.yaml:4:30: note: the other pattern of this name is here"),
                  ran.err);
    CHECK(!shell.exists("run"));
  }
  shell.file("b.yaml", file("v", "use: 'pt,pu', analyse: {step: s, file: stdout}"));
  CHECK(has(shell.tally("run b.yaml").out, "v,v_cnt\n1,1\n"));
  shell.file("b.yaml", file("w",
                            "analyse: [{step: s, file: {use: pt, _: stdout}},\n"
                            "  {step: t, file: {use: pu, _: stdout}}]"));
  CHECK(has(shell.tally("run b.yaml").out, "v,v_cnt\n1,1\n4,1\n"));
}

TEST_CASE("a pattern set that no analyser uses may be no regular expression in JUBE's files") {
  const Shell shell;
  const std::string text =
      "name: b\noutpath: run\n"
      "patternset:\n- {name: pt, pattern: {name: v, unit: s, _: 'v=(.)'}}\n"
      "- {name: pu, pattern: {name: w, _: '*x('}}\n"
      "step: {name: s, do: echo v=1}\n"
      "analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, column: [v, v_cnt]}}\n";
  shell.file("b.yaml", text);
  Ran ran = shell.tally("run b.yaml");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(has(ran.out, "\nv[s],v_cnt\n1,1\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "b.yaml:5:36: warning: pattern 'w' is not a regular expression"),
                ran.err);
  std::string used = text;
  shell.file("b.yaml", used.replace(used.find("use: pt"), 7, "use: pu"));
  CHECK(shell.tally("run b.yaml").code == 2);
}

TEST_CASE("several runs of other definitions keep their columns, tables and files") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: r\n"
             "parameterset: {name: p, parameter: {name: a, type: int, _: \"1,2\"}}\n"
             "step: {name: s, use: p, do: echo t=$a u=7}\n"
             "patternset: {name: pt, pattern: [{name: t, type: int, _: t=(.)},\n"
             "  {name: u, tag: full, type: int, _: u=(.)}]}\n"
             "analyser: {name: an, use: pt, analyse: {step: s, file: stdout}}\n"
             "result: {use: an, table: [{name: t, column: [a, {_: u, tag: full, title: U}, t]},\n"
             "  {name: only, tag: full, column: u}]}\n");
  shell.file("c.yaml", "name: other\noutpath: r\nstep: {name: s, do: 'true'}\n");
  shell.sh("ln -s \"$TALLY\" jube; ./jube run -r b.yaml -t full; ./jube run -r b.yaml");
  const std::string first = shell.content("r/000000/result/t.dat");
  CHECK(first == "a,U,t\n1,7,1\n2,7,2\n");
  const std::string rows = "id,a,t,U\n0,1,1,7\n0,2,2,7\n1,1,1,\n1,2,2,\n\n";
  CHECK(shell.sh("./jube result r -i all").out == rows + "u\n7\n7\n\n");
  CHECK(shell.sh("./jube result r -i 0 1 -r").out ==
        "id,a,t,U\n1,1,1,\n1,2,2,\n0,1,1,7\n0,2,2,7\n\nu\n7\n7\n\n");
  CHECK(shell.tally("result r -i all").out == rows + "id,u\n0,7\n0,7\n\n");
  CHECK(shell.content("r/000000/result/t.dat") == first);
  CHECK(!shell.exists("r/000001/result/only.dat"));
  shell.sh("./jube run c.yaml");
  const Ran ran = shell.sh("./jube result r -i all");
  CHECK(ran.code == 0);
  CHECK_MESSAGE(ran.out == rows + "u\n7\n7\n\n", ran.err);
}

TEST_CASE("--strict counts for the file of `result -u`, too") {
  const Shell shell;
  const auto file = [](const std::string& key) {
    return "name: b\noutpath: run\nstep: {name: s, do: echo v=7}\n"
           "patternset: {name: o, pattern: {name: v, " +
           key +
           ": int, _: 'v=$jube_pat_int'}}\n"
           "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
           "result: {use: a, table: {name: t, style: csv, column: v}}\n";
  };
  shell.file("b.yaml", file("type"));
  shell.file("u.yaml", file("tpye"));
  CHECK(shell.tally("run b.yaml").code == 0);
  const Ran strict = shell.tally("--strict result run -u u.yaml");
  CHECK_MESSAGE(strict.code == 2, (strict.out + strict.err));
  CHECK_MESSAGE(has(strict.err, "u.yaml:4:42: error: unknown key 'tpye' in pattern 'v'"),
                strict.err);
  const Ran kept = shell.tally("--strict result run");
  CHECK_MESSAGE(kept.code == 0, (kept.out + kept.err));
  CHECK(shell.tally("result run -u u.yaml").code == 0);
}

TEST_CASE(
    "patterns of one name and two types count each with its own, and are an error elsewhere") {
  struct Case {
    const char *first, *second, *values, *table;
  };
  const Case cases[] = {
      {"type: float,", "", "3 5", "3.0,3,3.0,5,3.0,3.0,3.0,9.0,3.0,0"},
      {"type: int,", "", "3 5.7", "3,3,3,5.7,3,3,3,9,3.0,0"},
      {"type: int,", "type: float,", "3 5.5",
       "3,3,3,5.5,3,5.5,14.0,69.5,4.666666666666667,1.4433756729740652"},
      {"type: float,", "type: int,", "3.5 5",
       "3.5,3,3.5,5,3.5,5,13.5,62.25,4.5,0.8660254037844386"},
      {"", "type: float,", "x 5",
       "x,3,x,5.0,5.0,5.0,10.0,50.0,3.3333333333333335,2.8867513459481287"},
      {"type: int,", "type: float,", "nothing 5.5", "5.5,2,5.5,5.5,5.5,5.5,11.0,60.5,5.5,0.0"},
  };
  for (const Case& one : cases) {
    for (const bool two : {false, true}) {  // `analyse` of the step
      CAPTURE(one.table);
      CAPTURE(two);
      const std::string values = one.values;
      const size_t space = values.find(' ');
      std::string text = "name: b\noutpath: run\npatternset:\n- {name: q, pattern: {name: w, ";
      text += std::string(one.first) + " _: 'w=(.+)'}}\n- {name: q2, pattern: {name: w, " +
              one.second +
              " _: 'w=(.+)'}}\nstep: {name: s, do: 'echo w=" + values.substr(0, space) +
              " > a; echo w=" + values.substr(space + 1) +
              " > b; cat b b > c'}\nanalyser: {name: an, analyse: ";
      text += two ? "[{step: s, file: {use: q, _: a}}, {step: s, file: {use: q2, _: c}}]"
                  : "{step: s, file: [{use: q, _: a}, {use: q2, _: c}]}";
      text +=
          "}\nresult: {use: an, table: {name: t, column: [w, w_cnt, w_first, w_last, w_min, w_max, "
          "w_sum, w_sum2, w_avg, w_std]}}\n";
      const Shell shell;
      shell.file("b.yaml", text);
      Ran ran = shell.tally("run b.yaml");
      CHECK_MESSAGE(has(ran.out, std::string("w_std\n") + one.table + "\n"), (ran.out + ran.err));
      text.insert(text.find("do: "), "kind: run, ");
      shell.file("own.yaml", text);
      for (const char* command : {"validate own.yaml", "run own.yaml"}) {
        ran = shell.tally(command);
        CHECK(ran.code == 2);
        CHECK_MESSAGE(
            has(ran.err, "own.yaml:5:30: error: pattern 'w' has two types in files of step 's'\n"),
            ran.err);
      }
    }
  }
}

// Layouts, as observed of JUBE 2.7.1 and 2.5.1 (spec/jube.md section 2, rows 7 to 9 and 25).
#include "engine/report/grid.h"

#include <doctest/doctest.h>

using namespace tally;

TEST_CASE("pretty") {  // row 7
  Grid grid{{"p", "v"}, {{"1", "1.5"}, {"2", "2.5"}}, {0, 5 - 2}};
  CHECK(layout(grid, "t", {TableStyle::pretty, ",", false}) ==
        "t:\n| p |   v |\n|---|-----|\n| 1 | 1.5 |\n| 2 | 2.5 |\n");
}

TEST_CASE("pretty, transposed: no rule, least widths count for the columns as printed") {
  Grid grid{{"a", "q", "T"}, {{"2", "", "2.5"}, {"10", "v", "10.5"}}, {8, 0, 0}};
  CHECK(layout(grid, "r7", {TableStyle::pretty, ",", true}) ==
        "r7:\n"
        "|        a |   2 |   10 |\n"
        "|        q |     |    v |\n"
        "|        T | 2.5 | 10.5 |\n");
}

TEST_CASE("pretty, cells of several lines: the first to the right, the others to the left") {
  Grid grid{{"ml", "c"}, {{"l1\nl2 long\nx\n", "7"}}, {}};
  CHECK(layout(grid, "r", {TableStyle::pretty, ",", false}) ==
        "r:\n"
        "|      ml | c |\n"
        "|---------|---|\n"
        "|      l1 | 7 |\n"
        "| l2 long |   |\n"
        "| x       |   |\n");
}

TEST_CASE("an empty table still has its header") {
  Grid grid{{"a", "q"}, {}, {8, 0}};
  CHECK(layout(grid, "r8", {TableStyle::pretty, ",", false}) ==
        "r8:\n|        a | q |\n|----------|---|\n");
  CHECK(layout(grid, "r9", {TableStyle::csv, ",", false}) == "       a,q\n");
}

TEST_CASE("csv: newlines are blanks, cells are quoted only where they must be") {  // rows 9, 25
  Grid grid{{"x", "Val, ue"}, {{"l1\nline2\n", "a,b \"q\""}, {"1", ""}}, {}};
  CHECK(layout(grid, "r", {TableStyle::csv, ",", false}) ==
        "x,\"Val, ue\"\nl1 line2 ,\"a,b \"\"q\"\"\"\n1,\n");
  CHECK(layout(grid, "r", {TableStyle::csv, ";", false}) ==
        "x;Val, ue\nl1 line2 ;\"a,b \"\"q\"\"\"\n1;\n");
}

TEST_CASE("csv as JUBE writes it: no quotes, a quoted cell as it is") {  // rows 9, 25
  Grid grid{{"x", "Val, ue"}, {{"l1\nline2\n", "a,b \"q\""}, {"\"n1,n2\"", ""}}, {}};
  CHECK(layout(grid, "r", {TableStyle::csv, ",", false, Quoting::raw}) ==
        "x,Val, ue\nl1 line2 ,a,b \"q\"\n\"n1,n2\",\n");
}

TEST_CASE("csv transposed, with least widths") {  // a run of JUBE 2.5.1
  Grid grid{
      {"a", "nix", "ml"}, {{"0002", "", "l1 l2 long "}, {"0001", "", "l1 l2 long "}}, {4, 9, 20}};
  CHECK(layout(grid, "o3", {TableStyle::csv, ",", true}) ==
        "   a,     0002,                0001\n"
        " nix,         ,                    \n"
        "  ml,l1 l2 long ,         l1 l2 long \n");
}

TEST_CASE("aligned: columns as wide as their widest line, separator without blanks") {  // row 8
  Grid grid{{"a", "q", "t[s]", "ml"},
            {{"2", "", "2.5", "l1\nl2 long\n"}, {"10", "v", "10.5", "l1\nl2 long\n"}},
            {8, 0, 0, 3}};
  CHECK(layout(grid, "r3", {TableStyle::aligned, ",", false}) ==
        "       a,q,t[s],     ml\n"
        "       2, , 2.5,l1 l2 long \n"
        "      10,v,10.5,l1 l2 long \n");
}

TEST_CASE("widths count characters") {
  Grid grid{{"n"}, {{"\xc3\xa9\xc3\xa9"}, {"abc"}}, {}};
  CHECK(layout(grid, "r", {TableStyle::pretty, ",", false}) ==
        "r:\n|   n |\n|-----|\n|  \xc3\xa9\xc3\xa9 |\n| abc |\n");
}

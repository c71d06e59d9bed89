// Values that a pattern cuts out of a number: in Tally's files Fortran's numbers are whole, and
// anything else that is cut is a warning, in JUBE's files, too.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

std::string workflow(const std::string& kind, const std::string& prints, const std::string& type,
                     const std::string& column, const std::string& pattern = "E: $jube_pat_fp") {
  std::string commands;  // one for each line
  for (size_t at = 0; at <= prints.size();) {
    const size_t end = std::min(prints.find('\n', at), prints.size());
    commands += (at == 0 ? "echo '" : "; echo '") + prints.substr(at, end - at) + "'";
    at = end + 1;
  }
  return "name: b\noutpath: run\nstep: {name: s, " + kind + "do: \"" + commands +
         "\"}\n"
         "patternset: {name: o, pattern: {name: e, " +
         type + "_: '" + pattern +
         "'}}\n"
         "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
         "result: {use: a, table: {name: t, style: csv, " +
         column + "}}\n";
}

const char* const kOwn = "kind: run, quiet_check: false, ";

}  // namespace

TEST_CASE("half numbers: Fortran's exponents are numbers in Tally's files") {
  // Values of gfortran's formats D, E with three digits, Q, and of list-directed output.
  const struct {
    const char *prints, *type, *value;
  } cases[] = {
      {"-0.76026D+02", "type: float, ", "-76.026"},
      {"1.0d-09", "type: float, ", "1e-09"},
      {"0.15Q+01", "type: float, ", "1.5"},
      {"0.25q2", "type: float, ", "25.0"},
      {"1.0-100", "type: float, ", "1e-100"},
      {"0.5+101", "type: float, ", "5e+100"},
      {"12.D0", "type: float, ", "12.0"},
      {"12.E+00", "type: float, ", "12.0"},
      {"0.15D+02", "type: int, ", "15"},
      {"-3.D0", "type: int, ", "-3"},
      {"-0.76026D+02", "", "-0.76026D+02"},
      {"1.5e3", "type: float, ", "1500.0"},
  };
  for (const auto& [prints, type, value] : cases) {
    CAPTURE(prints);
    const Shell shell;
    shell.file("b.yaml", workflow(kOwn, "E: " + std::string(prints) + " Ha", type, "column: e"));
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE((has(ran.out, "e\n" + std::string(value) + "\n") && ran.code == 0), ran.out);
    CHECK_MESSAGE(!has(ran.err, "only a part"), ran.err);
  }
}

TEST_CASE("half numbers: statistics, filters, references and expressions take the whole number") {
  const Shell shell;
  shell.file("b.yaml",
             workflow(kOwn, "E: 0.1D+02\nE: 0.3d2", "type: float, ",
                      "filter: e > 9, column: [e, e_sum, e_max, {_: d, expression: e * 2}, "
                      "{_: e, title: r, reference: '== 10'}]"));
  Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE((has(ran.out, "10.0,40.0,30.0,20.0,10.0\n") && ran.code == 0), (ran.out + ran.err));
  shell.clear();
  shell.file("b.yaml", workflow(kOwn, "E: -0.76026D+02", "type: float, ",
                                "column: {_: e, reference: '>= -1'}"));
  ran = shell.tally("run b.yaml");
  CHECK_MESSAGE((ran.code == 5 && has(ran.err, "reference missed: t: row 1: e is -76.026")),
                ran.err);
}

TEST_CASE("half numbers: a cut value is a warning with what stands around it, once with a count") {
  const struct {
    const char *prints, *pattern, *value, *whole;
  } cases[] = {
      {"E: 1,234.5", "E: $jube_pat_fp", "1", "1,234.5"},
      {"E: 0x1F", "E: $jube_pat_int", "0", "0x1F"},
      {"E: 3.14.15", "E: $jube_pat_fp", "3.14", "3.14.15"},
      {"E: 12.5", "E: $jube_pat_int", "12", "12.5"},
      {"E: 1_000", "E: $jube_pat_int", "1", "1_000"},
      {"E 12.5 GB", "(\\d+) GB", "5", "12.5"},
      {"E: 2.0D+01", "E: (\\d+[.]\\d+)", "2.0", "2.0D+01"},
  };
  for (const std::string kind : {kOwn, ""}) {
    for (const auto& [prints, pattern, value, whole] : cases) {
      CAPTURE(kind);
      CAPTURE(prints);
      const Shell shell;
      shell.file("b.yaml",
                 workflow(kind, std::string(prints) + "\n" + prints, "", "column: e", pattern));
      const Ran first = shell.tally("run b.yaml -r");
      CHECK(first.code == 0);
      const std::string warning = "warning: pattern 'e': \"" + std::string(value) +
                                  "\" is only a part of \"" + whole + "\", in ";
      for (const char* command :
           {"result run", "analyse run", "report run --format md", "result run -i all -s json"}) {
        CAPTURE(command);
        const Ran ran = shell.tally(command);
        CHECK_MESSAGE((has(ran.err, warning) && has(ran.err, "(and 1 more of this kind)")),
                      ran.err);
        CHECK(ran.code == 0);
        CHECK(shell.tally("--strict " + std::string(command)).code == 1);
      }
      CHECK(has(first.out, "e\n" + std::string(value) + "\n"));
      CHECK_MESSAGE(has(first.err, warning), first.err);
      const Ran jube = shell.sh("ln -sf \"$TALLY\" jube; ./jube result run");
      CHECK_MESSAGE((jube.code == 0 && has(jube.err, "is only a part of")), jube.err);
    }
  }
}

TEST_CASE("half numbers: JUBE's files have JUBE's values") {
  const Shell shell;
  shell.file("b.yaml", workflow("", "E: -0.76026D+02", "type: float, ", "column: [e, e_cnt]"));
  const Ran ran = shell.tally("run b.yaml -r");  // as Debian's jube
  CHECK_MESSAGE(has(ran.out, "e,e_cnt\n-0.76026,1\n"), ran.out);
  CHECK_MESSAGE(has(ran.err, "\"-0.76026\" is only a part of \"-0.76026D+02\""), ran.err);
}

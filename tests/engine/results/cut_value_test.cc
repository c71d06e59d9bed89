// Which values are cut out of the middle of a number or a word. Units, lists, ranges and fractions
// are usual output; the texts are those of common programs.
#include "engine/results/read/cut_value.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "engine/python/python_regex.h"
#include "engine/results/rows/analyse.h"
#include "engine/workflow/pattern_uses.h"

using tally::around;
using tally::is_cut;
using tally::may_be_cut;
using tally::pattern_building_block;
using tally::Regex;
using tally::Status;
using tally::without_fortran;

namespace {

std::string with_block(std::string pattern, const std::string& name, bool fortran) {
  const size_t at = pattern.find("$" + name);
  if (at != std::string::npos)
    pattern.replace(at, name.size() + 1, *pattern_building_block(name, fortran));
  return pattern;
}

// Those of the values that the pattern finds which are cut, as "[value<text around it]".
std::string cut_values(const std::string& pattern, const std::string& text, bool fortran = false) {
  std::unique_ptr<Regex> regex;
  const Status compiled = Regex::compile(
      with_block(with_block(pattern, "jube_pat_fp", fortran), "jube_pat_int", fortran), false,
      &regex);
  REQUIRE_MESSAGE(compiled, (pattern + ": " + compiled.message()));
  std::string cut;
  const auto take = [&](std::string_view value, int group) {
    const bool is = is_cut(text, value, regex->edges()[static_cast<size_t>(group)]);
    CHECK_MESSAGE((!is || may_be_cut(text, value)), text);
    if (is) cut += "[" + std::string(value) + "<" + around(text, value) + "]";
  };
  REQUIRE(regex->find_all(text, false, take));
  return cut;
}

std::string found(const std::string& pattern, const std::string& text, bool fortran = true) {
  std::string all;
  std::unique_ptr<Regex> regex;
  REQUIRE(Regex::compile(with_block(pattern, "jube_pat_fp", fortran), false, &regex));
  REQUIRE(regex->find_all(
      text, false, [&](std::string_view value, int) { all += "[" + std::string(value) + "]"; }));
  return all;
}

}  // namespace

TEST_CASE("cut values: a number that goes on behind the value") {
  const struct {
    const char *pattern, *text, *cut;
  } cases[] = {
      {"energy: $jube_pat_fp", "energy: -0.76026D+02 Ha", "[-0.76026<-0.76026D+02]"},
      {"r $jube_pat_fp", "r 1.0d-09", "[1.0<1.0d-09]"},
      {"r $jube_pat_fp", "r 1.5Q+10", "[1.5<1.5Q+10]"},
      {"r $jube_pat_fp", "r 1.0D0,", "[1.0<1.0D0,]"},
      {"r $jube_pat_fp", "r 0.5-100", "[0.5<0.5-100]"},
      {"r $jube_pat_fp", "r 12.E+05", "[12<12.E+05]"},
      {"r $jube_pat_fp",
       "r 1.5e\xe2\x88\x92"
       "5",
       "[1.5<1.5e\xe2\x88\x92"
       "5]"},
      {"r $jube_pat_fp",
       "r 1.5E\xe2\x80\x93"
       "5 s",
       "[1.5<1.5E\xe2\x80\x93"
       "5]"},
      {"r $jube_pat_int",
       "r 12.e\xe2\x88\x92"
       "05",
       "[12<12.e\xe2\x88\x92"
       "05]"},
      {"r $jube_pat_int",
       "r 2^\xe2\x88\x92"
       "3",
       "[2<2^\xe2\x88\x92"
       "3]"},
      {"r $jube_pat_fp", "r 12.5e", "[12.5<12.5e]"},
      {"r $jube_pat_fp", "r 12.5e-", "[12.5<12.5e-]"},
      {"r $jube_pat_fp.*", "r 1.0d-09 s", "[1.0<1.0d-09]"},
      {"^.*r $jube_pat_fp.*$", "r 1.0d-09 s", "[1.0<1.0d-09]"},
      {"r $jube_pat_fp\\S*", "r 1.0d-09 s", "[1.0<1.0d-09]"},
      {"r $jube_pat_int", "r 1,234.5", "[1<1,234.5]"},
      {"r $jube_pat_fp", "r 12,345,678", "[12<12,345,678]"},
      {"r $jube_pat_int", "r 3,14 s", "[3<3,14]"},
      {"r $jube_pat_int", "r 1_000", "[1<1_000]"},
      {"r $jube_pat_int", "r 1'000", "[1<1'000]"},
      {"r $jube_pat_int",
       "r 1\xe2\x80\x99"
       "234",
       "[1<1\xe2\x80\x99"
       "234]"},
      {"r $jube_pat_int", "r 2^20", "[2<2^20]"},
      {"r $jube_pat_int", "r 2**20", "[2<2**20]"},
      {"r $jube_pat_fp", "r 10^-3", "[10<10^-3]"},
      {"r $jube_pat_fp", "r 1.5 x 10^3 s", "[1.5<1.5]"},
      {"r $jube_pat_fp", "r 1.5 \xc3\x97 10\xc2\xb3", "[1.5<1.5]"},
      {"r $jube_pat_fp",
       "r 1.5\xe2\x8b\x85"
       "10\xe2\x81\xb6",
       "[1.5<1.5\xe2\x8b\x85"
       "10\xe2\x81\xb6]"},
      {"r $jube_pat_fp", "r 10\xe2\x81\xbb\xc2\xb3", "[10<10\xe2\x81\xbb\xc2\xb3]"},
      {"r $jube_pat_fp", "r 1.#INF", "[1<1.#INF]"},
      {"r (\\d+\\.)", "r 1.#QNAN", "[1.<1.#QNAN]"},
      {"r $jube_pat_int", "r 12\xc2\xbd", "[12<12\xc2\xbd]"},
      {"r \\x1b\\[32m(\\d+)", "r \x1b[32m1\x1b[0m,234", "[1<\x1b[32m1\x1b[0m,234]"},
      {"r $jube_pat_int",
       "r 1\xe2\x80\xaf"
       "234",
       "[1<1\xe2\x80\xaf"
       "234]"},
      {"r $jube_pat_int", "r 0x1F", "[0<0x1F]"},
      {"r $jube_pat_int", "r 0b101", "[0<0b101]"},
      {"r $jube_pat_int", "r 12.5", "[12<12.5]"},
      {"r $jube_pat_int", "r 1e5", "[1<1e5]"},
      {"r (\\d)", "r 12", "[1<12]"},
      {"r (\\d{2})", "r 123 ms", "[12<123]"},
      {"r $jube_pat_fp", "r 3.14.15", "[3.14<3.14.15]"},
      {"CUDA (\\d+\\.\\d+)", "CUDA 12.4.1", "[12.4<12.4.1]"},
      {"r $jube_pat_fp", "r 1.5x10^3", "[1.5<1.5x10^3]"},
      {"r $jube_pat_fp",
       "r 1.5\xc3\x97"
       "10^3",
       "[1.5<1.5\xc3\x97"
       "10^3]"},
      {"real $jube_pat_fp", "real 0:12.34", "[0<0:12.34]"},
      {"t: $jube_pat_int", "t: 01:02:03", "[01<01:02:03]"},
      {"t: $jube_pat_int", "t: 1m30s", "[1<1m30s]"},
      {"t: $jube_pat_int", "t: 2d03h", "[2<2d03h]"},
      {"up $jube_pat_int", "up 1-02:03:04", "[1<1-02:03:04]"},
      {"up $jube_pat_int", "up 12-23:59", "[12<12-23:59]"},
      {"v=$jube_pat_int\\b", "v=12.5", "[12<v=12.5]"},
      {"r $jube_pat_fp", "r 1.234,56", "[1.234<1.234,56]"},
      {"r $jube_pat_fp", "r 12.345.678,9 GB", "[12.345<12.345.678,9]"},
      {"r $jube_pat_int", "r 2 ^ 20", "[2<2]"},
      {"r $jube_pat_int", "r 2 ** 20", "[2<2]"},
      {"r $jube_pat_fp", "r 1.5 X 10^3", "[1.5<1.5]"},
      {"r $jube_pat_fp",
       "r 1.5\xe2\x88\x99"
       "10^6",
       "[1.5<1.5\xe2\x88\x99"
       "10^6]"},
      {"r $jube_pat_int",
       "r 1\xca\xbc"
       "234",
       "[1<1\xca\xbc"
       "234]"},
      {"r (\\d+)", "r 1\x1b[2m,234", "[1<1\x1b[2m,234]"},
  };
  for (const auto& [pattern, text, cut] : cases) {
    CAPTURE(text);
    CHECK(cut_values(pattern, text) == cut);
  }
}

TEST_CASE("cut values: a number that has begun before the value") {
  const struct {
    const char *pattern, *text, *cut;
  } cases[] = {
      {"(\\d+) GB/s", "12.5 GB/s", "[5<12.5]"},
      {"(\\d+) GB/s", "bw=.5 GB/s", "[5<bw=.5]"},
      {"(\\d+) GB/s", "bw .5 GB/s", "[5<.5]"},
      {"(\\d+) MB", "1,234 MB", "[234<1,234]"},
      {"(\\d+) s", "3,14 s", "[14<3,14]"},
      {"(\\d+) MB", "1'234'567 MB", "[567<1'234'567]"},
      {"time.*(\\d+)", "time 123", "[3<123]"},
      {"time.*$jube_pat_fp", "time 1.5e-05", "[5<1.5e-05]"},
      {"energy.*?(\\d+\\.\\d+)", "energy = -76.02", "[76.02<-76.02]"},
      {"energy\\D+(\\d+\\.\\d+)",
       "energy \xe2\x88\x92"
       "76.02",
       "[76.02<\xe2\x88\x92"
       "76.02]"},
      {"-?(\\d+) C", "T -5 C", "[5<-5]"},
      {"(\\d+)s", "1m30s", "[30<1m30s]"},
      {"$jube_pat_fp elapsed", "0:12.34 elapsed", "[12.34<0:12.34]"},
      {"(\\d+) ms", "1e5 ms", "[5<1e5]"},
      {"$jube_pat_fp", "3.14.15", "[3.14<3.14.15][.15<3.14.15]"},
      {"$jube_pat_int", "10-20", "[-20<10-20]"},
      {".*x(\\d+)", "0x10", ""},
      {".*?\\w(\\d+)$", "0x10", "[10<0x10]"},
      {"(\\d+) ops", "1e+06 ops", "[06<1e+06]"},
      {"(\\d+) ops", "1e-05 ops", "[05<1e-05]"},
      {"(\\d+) ops", "1.5D+02 ops", "[02<1.5D+02]"},
      {"(\\d+) ops", "1.5-100 ops", "[100<1.5-100]"},
      {"(\\d+) ops", "2^20 ops", "[20<2^20]"},
      {"(\\d+) ops", "2 ^ 20 ops", "[20<20]"},
      {"(\\d+) ops", "2**20 ops", "[20<2**20]"},
      {"(\\d+) ops", "2 ** 20 ops", "[20<20]"},
      {"$jube_pat_fp ops", "10^-3 ops", "[-3<10^-3]"},
      {"(\\d+) ops", "1.5x10^3 ops", "[3<1.5x10^3]"},
      {"(\\d+) ops",
       "1.5\xc2\xb7"
       "10^3 ops",
       "[3<1.5\xc2\xb7"
       "10^3]"},
      {"(\\d+) ops",
       "1\xe2\x80\x99"
       "234 ops",
       "[234<1\xe2\x80\x99"
       "234]"},
      {"(\\d+) ops",
       "1\xe2\x80\xaf"
       "234\xe2\x80\xaf"
       "567 ops",
       "[567<1\xe2\x80\xaf"
       "234\xe2\x80\xaf"
       "567]"},
      {"(\\d+) ops",
       "1\xc2\xa0"
       "234 ops",
       "[234<1\xc2\xa0"
       "234]"},
      {"(\\d+) ops",
       "1\xca\xbc"
       "234 ops",
       "[234<1\xca\xbc"
       "234]"},
      {"(\\d+) GB", "1.234,56 GB", "[56<1.234,56]"},
      {"(\\d+\\.\\d+)", "\x1b[1m-\x1b[0m12.5", "[12.5<\x1b[1m-\x1b[0m12.5]"},
      {"(\\d+\\.\\d+)", "r \xe2\x88\x92\x1b[31m12.5", "[12.5<\xe2\x88\x92\x1b[31m12.5]"},
  };
  for (const auto& [pattern, text, cut] : cases) {
    CAPTURE(text);
    CHECK(cut_values(pattern, text) == cut);
  }
}

TEST_CASE("cut values: words") {
  CHECK(cut_values("GPU: ([A-Z]+)", "GPU: H100") == "[H<H100]");
  CHECK(cut_values("model=(\\S+?)", "model=gpt2") == "[g<model=gpt2]");
  CHECK(cut_values("name.*(\\w+)", "name gpt") == "[t<gpt]");
  CHECK(cut_values("name (.{3})", "name distil") == "[dis<distil]");
  CHECK(cut_values("name ([a-z]+)", "name foo_bar") == "[foo<foo_bar]");
  CHECK(cut_values("state (OK|FAIL)", "state FAILED").empty());  // named in full
  CHECK(cut_values("ERROR", "ERRORS").empty());
  CHECK(cut_values("model=(\\w+)", "model=gpt2-medium").empty());
  CHECK(cut_values("on (\\d+-\\d+-\\d+)T", "on 2026-11-27T10:30").empty());
  CHECK(cut_values("v(\\S+)", "v12.3.4-rc1").empty());
}

TEST_CASE("cut values: what programs usually print is not cut") {
  const struct {
    const char *pattern, *text;
  } cases[] = {
      {"r $jube_pat_fp", "r 5ms"},
      {"day $jube_pat_int", "day 1-02"},
      {"ports $jube_pat_int", "ports 1-30:40"},
      {"on $jube_pat_int", "on 2026-11-28"},
      {"r $jube_pat_fp", "r 1.5GB"},
      {"r $jube_pat_fp", "r 80GB/s"},
      {"r $jube_pat_fp", "r 10%"},
      {"r $jube_pat_fp", "r 3x"},
      {"r $jube_pat_int", "r 4k"},
      {"r $jube_pat_fp", "r 13.6eV"},
      {"r $jube_pat_fp", "r 2.5d"},
      {"r $jube_pat_fp", "r 12W/m2"},
      {"r $jube_pat_fp", "r 3cm2"},
      {"r $jube_pat_fp", "r 5\xc2\xb5s"},
      {"r $jube_pat_fp",
       "r 20\xc2\xb0"
       "C"},
      {"r $jube_pat_int", "r 2nd"},
      {"gpus $jube_pat_int", "gpus 8xH100"},
      {"grid $jube_pat_int", "grid 1024x768"},
      {"(\\d+\\.\\d+)", "rate: \x1b[32m12.5\x1b[0m MB/s"},
      {"(\\d+\\.\\d+)", "\x1b[1;38:5:9m12.5\x1b[m"},
      {"grid $jube_pat_int", "grid 5 x 10 x 3"},
      {"took $jube_pat_fp", "took 5."},
      {"took $jube_pat_fp", "took 5.\nNext"},
      {"took $jube_pat_fp", "took 5.5, then"},
      {"step $jube_pat_int", "step 5/100"},
      {"ranks $jube_pat_int", "ranks 0-15"},
      {"r $jube_pat_fp", "r 0.5-1.5"},
      {"loss=$jube_pat_fp", "loss=2.31,lr=0.1"},
      {"^$jube_pat_int", "4,128,0.5"},
      {"^$jube_pat_int", "1,2,3"},
      {"total,$jube_pat_int", "total,4,128"},
      {"sizes \\[$jube_pat_int", "sizes [128,256,512]"},
      {"^$jube_pat_int,$jube_pat_int", "12,345"},
      {"\\[(\\d+)", "[10/100]"},
      {"(\\d+)", "H100 rank3 gpu0 v12"},
      {"(\\d+)", "A100x8"},
      {"(\\d+),(\\d+)", "1,234"},
      {"(\\d+)x(\\d+)", "10x20"},
      {"(\\d+)\\.(\\d+)", "3.14"},
      {"v(\\d+)\\.", "v12.4"},
      {"(\\d+)m([\\d.]+)s", "1m30.5s"},
      {"host:(\\d+)", "host:8080"},
      {"r $jube_pat_fp", "r 1.5(3)"},
      {"\"r\": $jube_pat_fp", "{\"r\": 4,\"n\": 128}"},
      {"(?<=v=)(\\d+)(?= ms)", "v=12 ms"},
      {"(\\d+)(?: ms|%)", "12 ms 10%"},
      {"r = *$jube_pat_fp", "r =  -1.5e-05 s"},
      {"t: $jube_pat_int", "t: 5: done"},
      {"layer_(\\d+)", "layer_12_attention"},
      {"(\\d+\\.\\d+)", "\x1b[?25l12.5"},
      {"(\\d+\\.\\d+)", "1\x1b[1G12.5\x1b[2K"},
      {"(\\d+\\.\\d+)", "7\x1b[2K12.5"},
      {"(\\d+\\.\\d+)",
       "\xc2\x9b"
       "31m12.5\xc2\x9bm"},
      {"(\\d+\\.\\d+)", "\x1b[31mx12.5"},
      {"(\\d+\\.\\d+)", "\x1b(B\x1b[m12.5\x1b]8;;http://x\x1b\\ MB"},
      {"(\\d+\\.\\d+)", "\x1b]8;;http://x/1\x1b\\12.5"},
      {"(\\d+) items", "5 **10** and 5 **10 items"},
      {"r $jube_pat_fp", "r 1.234,5.678"},
      {"(\\d+)", "C++17 1+5 2-3"},
      {"(\\d+)$", "ranks 8-100"},
  };
  for (const auto& [pattern, text] : cases) {
    CAPTURE(pattern);
    CAPTURE(text);
    CHECK(cut_values(pattern, text).empty());
  }
}

TEST_CASE("cut values: in Tally's files jube_pat_fp matches Fortran's exponents") {
  const struct {
    const char *text, *all;
  } cases[] = {
      {"-0.76026D+02", "[-0.76026D+02]"},
      {"1.0d-09", "[1.0d-09]"},
      {"1.5Q+10 .5q3", "[1.5Q+10][.5q3]"},
      {"0.1234-100", "[0.1234-100]"},
      {"-1.5+123,", "[-1.5+123]"},
      {"12.E+05 12.D0", "[12.E+05][12.D0]"},
      {"1.0D+02-3.0D+00", "[1.0D+02][-3.0D+00]"},
      {"1d5", "[1d5]"},
      // As JUBE.
      {"1.5e3 12. .5 +7 5,6", "[1.5e3][12][.5][+7][5][6]"},
      {"2d3h 1.0-100.5 1.0-1000", "[2][3][1.0][-100.5][1.0][-1000]"},
      {"1.5eV 2.5d 3D2x", "[1.5][2.5][3][2]"},
  };
  for (const auto& [text, all] : cases) {
    CAPTURE(text);
    CHECK(found("$jube_pat_fp", text) == all);
  }
  CHECK(found("$jube_pat_fp", "1.0d-09", false) == "[1.0][-09]");
  CHECK(*without_fortran("-0.76026D+02") == "-0.76026e+02");
  CHECK(*without_fortran("1.0-100") == "1.0e-100");
  CHECK(*without_fortran("1.+123") == "1.e+123");
  CHECK(!without_fortran("-1.0"));
  CHECK(!without_fortran("1.0"));
}

TEST_CASE("cut values: a word goes on with letters beyond ASCII, and ends at other signs") {
  const struct {
    const char *pattern, *text, *cut;
  } cases[] = {
      {"r ([a-z]+)", "r caf\xc3\xa9", "[caf<caf\xc3\xa9]"},
      {"([a-z]+)\\b x", "\xc3\xa9l\xc3\xa8ve x", "[ve<\xc3\xa9l\xc3\xa8ve]"},
      {"r \\S([a-z]+)", "r \xc3\xa9tat", "[tat<\xc3\xa9tat]"},
      {"([b-z]+)$", "r \xc3\xa9t", "[t<\xc3\xa9t]"},
      {"r ([a-z]+)", "r na\xc3\xafve", "[na<na\xc3\xafve]"},
      {"r ([a-z]+)", "r a\xd0\xb1", "[a<a\xd0\xb1]"},
      {"r ([a-z]+)", "r a\xe8\xaa\x9e", "[a<a\xe8\xaa\x9e]"},
      {"r ([a-z]+)", "r done\xe2\x80\x9d", ""},  // a quotation mark
      {"r ([a-z]+)",
       "r a\xe2\x80\x94"
       "b",
       ""},  // a dash
      {"r ([a-z]+)",
       "r a\xe2\x86\x92"
       "b",
       ""},  // an arrow
      {"r ([a-z]+)",
       "r a\xc3\x97"
       "b",
       ""},  // times
      {"r ([a-z]+)",
       "r a\xc2\xa0"
       "b",
       ""},                                        // a space
      {"r ([a-z]+)", "r ok\xe3\x80\x82", ""},      // a full stop
      {"r ([a-z]+)", "r ok\xf0\x9f\x98\x80", ""},  // a face
  };
  for (const auto& [pattern, text, cut] : cases) {
    CAPTURE(text);
    CHECK(cut_values(pattern, text) == cut);
  }
}

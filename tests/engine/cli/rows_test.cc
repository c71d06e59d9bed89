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

TEST_CASE("rows: what stands above the rows of a file is not another file's") {
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: o\noutpath: run\n"
      "step: {name: s, kind: run, quiet_check: false, do: \"printf 'hdr 3\\n1 10\\n2 20\\n' > f1; "
      "printf 'hdr 7\\n1 11\\n' > f2; printf '4 40\\n' > f3\"}\n"
      "patternset: {name: q, pattern: [{name: x, type: int, _: '^(\\d+) '}, {name: v, type: int, "
      "_: '^\\d+ (\\d+)$'}, {name: h, type: int, _: 'hdr (\\d+)', default: 0}]}\n"
      "analyser: {name: a, use: q, rows: x, analyse: {step: s, file: 'f1,f2,f3'}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [x, v, h]}}\n");
  const Ran ran = shell.tally("-q run b.yaml -r");
  CHECK_MESSAGE(has(ran.out, "x,v,h\n1,10,3\n2,20,3\n1,11,7\n4,40,0\n"), (ran.out + ran.err));
}

TEST_CASE("rows: a step behind the measurement shows the measurement's rows") {
  // Repeats of the first step: each sample is its own workpackage's.
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: o\noutpath: run\n"
      "step:\n"
      "- {name: s, kind: run, quiet_check: false, repeat: 3, do: 'for n in 1 2 3; do echo $n "
      "$((n * 10 + $jube_wp_iteration)); done'}\n"
      "- {name: p, kind: run, depend: s, quiet_check: false, do: echo total 6$jube_wp_iteration}\n"
      "patternset:\n"
      "- {name: q, pattern: [{name: x, type: int, _: '^(\\d+) '}, {name: v, type: int, _: "
      "'^\\d+ (\\d+)$'}]}\n"
      "- {name: z, pattern: {name: total, type: int, _: 'total (\\d+)'}}\n"
      "analyser: {name: a, rows: x, analyse: [{step: s, file: {_: stdout, use: q}}, {step: p, "
      "file: {_: stdout, use: z}}]}\n"
      "result: {use: a, table: {name: t, style: csv, column: [x, {_: v, statistic: max}, v_n, "
      "total]}}\n");
  const Ran ran = shell.tally("-q run b.yaml -r");
  CHECK_MESSAGE(has(ran.out, "1,12,3,60,3 of 3\n2,22,3,60,3 of 3\n3,32,3,60,3 of 3\n"),
                (ran.out + ran.err));
}

TEST_CASE("rows: several patterns tell them apart, and a block has several lines") {
  // HPL: two rows of one N, which differ in NB. The residual stands below its row; one lacks it.
  const Shell shell;
  shell.file("out",
             "T/V N NB P Q Time Gflops\nWR 1000 64 1 2 0.5 10.5\nresid= 0.001 PASSED\n"
             "WR 1000 128 1 2 0.4 12.5\nWR 2000 64 1 2 2.5 20.5\nresid= 0.003 PASSED\n");
  shell.file("b.yaml",
             "name: hpl\noutpath: run\n"
             "fileset: {name: f, copy: out}\n"
             "step: {name: s, kind: run, use: f, quiet_check: false, do: cat out}\n"
             "patternset:\n  name: q\n  pattern:\n"
             "  - {name: n, type: int, _: '^WR (\\d+)'}\n"
             "  - {name: nb, type: int, _: '^WR \\d+ (\\d+)'}\n"
             "  - {name: gflops, type: float, _: '^WR .* ([\\d.]+)$'}\n"
             "  - {name: resid, type: float, _: 'resid= $jube_pat_fp', default: -1}\n"
             "  - {name: twice, type: float, mode: python, _: 2 * $gflops}\n"
             "analyser: {name: a, use: q, rows: 'n, nb', analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, style: csv, column: [n, nb, gflops, resid, twice, "
             "{_: gflops, title: x, relative_to: {nb: 64}}]}}\n");
  const Ran ran = shell.tally("-q run b.yaml -r");
  CHECK(has(ran.out,
            "n,nb,gflops,resid,twice,x\n1000,64,10.5,0.001,21.0,1.0\n1000,128,12.5,-1.0,25.0,"
            "1.1904761904761905\n2000,64,20.5,0.003,41.0,1.0\n"));
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
}

TEST_CASE("rows: repeats of a row are its samples, whatever other rows there are") {
  // The second repeat ends before the last size.
  const Shell shell;
  shell.file("b.yaml",
             "name: o\noutpath: run\n"
             "step:\n  name: s\n  kind: run\n  quiet_check: false\n  repeat: 3\n"
             "  do: for n in 1 2 4; do test $jube_wp_iteration != 1 || test $n != 4 || exit 0; "
             "echo $n $((n * 10 + jube_wp_iteration)).5; done\n"
             "patternset: {name: q, pattern: [{name: size, type: int, _: '^(\\d+) '}, {name: lat, "
             "type: float, _: '^\\d+ ([\\d.]+)$'}]}\n"
             "analyser: {name: a, use: q, rows: size, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, style: csv, column: [size, {_: lat, statistic: "
             "median, title: median}, lat_n]}}\n");
  shell.sh("sed -i 's/jube_wp_iteration))/ITER))/; s/ITER/$jube_wp_iteration/' b.yaml");
  const Ran ran = shell.tally("-q run b.yaml -r");
  CHECK_MESSAGE(
      has(ran.out,
          "size,median,lat_n,repeats\n1,11.5,3,3 of 3\n2,21.5,3,3 of 3\n4,41.5,2,2 of 3\n"),
      (ran.out + ran.err));
}

TEST_CASE("rows: equal keys of one workpackage stay rows of their own") {
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: o\noutpath: run\n"
      "step: {name: s, kind: run, quiet_check: false, repeat: 2, do: \"printf 'x 1 5\\\\nx 1 "
      "7\\\\n'\"}\n"
      "patternset: {name: q, pattern: [{name: x, type: int, _: '^x (\\d+)'}, {name: v, type: "
      "int, _: '(\\d+)$'}]}\n"
      "analyser: {name: a, use: q, rows: x, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [x, {_: v, statistic: mean}, "
      "v_n]}}\n");
  const Ran ran = shell.tally("-q run b.yaml -r");
  CHECK_MESSAGE(has(ran.out, "\n1,5.0,2,2 of 2\n1,7.0,2,2 of 2\n"), (ran.out + ran.err));
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

TEST_CASE("rows: a match whose group is empty begins a row") {
  const Shell shell;
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\n"
      "step: {name: s, kind: run, quiet_check: false, do: \"printf 'n=2 t=7\\nn= t=5\\n'\"}\n"
      "patternset: {name: q, pattern: [{name: n, type: int, _: 'n=(\\d*)'}, {name: t, type: "
      "int, _: 't=(\\d+)'}]}\n"
      "analyser: {name: a, use: q, rows: n, analyse: {step: s, file: stdout}}\n"
      "result: {use: a, table: {name: t, style: csv, column: [n, t, t_cnt]}}\n");
  const Ran ran = shell.tally("-q run b.yaml");
  CHECK_MESSAGE(has(ran.out, "n,t,t_cnt\n2,7,1\n,5,1\n"), (ran.out + ran.err));
}

TEST_CASE("rows: equal rows of two files are an error, of one file rows of their own") {
  const Shell shell;
  const auto run = [&](const std::string& command, const std::string& file) {
    shell.file("b.yaml",
               "name: b\noutpath: run\n"
               "step: {name: s, kind: run, quiet_check: false, do: \"" +
                   command +
                   "\"}\n"
                   "patternset: {name: q, pattern: [{name: n, type: int, _: 'n=(\\d+)'}, {name: t, "
                   "type: int, _: 't=(\\d+)'}]}\n"
                   "analyser: {name: a, use: q, rows: n, analyse: {step: s, file: " +
                   file +
                   "}}\n"
                   "result: {use: a, table: {name: t, style: csv, column: [n, t]}}\n");
    return shell.tally("-q run b.yaml");
  };
  const std::string two = "echo n=1 t=7 >a.log; echo n=1 t=8 >b.log";
  for (const char* files : {"'a.log,b.log'", "'*.log'", "[a.log, '*.log']"}) {
    const Ran ran = run(two, files);
    CHECK(ran.code == 1);
    CHECK_MESSAGE(has(ran.err, "two files have a row with n 1: "), ran.err);
  }
  const Ran one = run("echo n=1 t=7 >a.log; echo n=1 t=8 >>a.log", "a.log");
  CHECK_MESSAGE(one.code == 0, one.err);
  CHECK(has(one.out, "n,t\n1,7\n1,8\n"));
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

TEST_CASE("several different values where only the first is shown are said") {
  const Shell shell;
  const auto said = [&](const std::string& output, const std::string& rest) {
    shell.file("b.yaml", "name: b\noutpath: run\nparameters: {n: [1, 2]}\nrun: printf '" + output +
                             "' $n\n" + rest);
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    return ran.err;
  };
  const std::string metrics = "metrics: {size: '^(\\d+) ', rate: '^\\d+ $jube_pat_fp'}\n";
  CHECK(said("%d 5\\n7 6\\n7 6\\n", metrics) ==
        "b.yaml:5:17: note: 'size', 'rate' have up to 3 different values in an output, and the "
        "first is shown\n"
        "    metrics: {size: '^(\\d+) ', rate: '^\\d+ $jube_pat_fp'}\n"
        "                    ^~~~~~~~~\n"
        "hint: size_last, size_max, size_avg and the like are columns, too; `rows: size` makes a "
        "row of each match\n");
  CHECK(said("%d 5\\n", metrics).empty());
  CHECK(said("%d 5\\n", "metrics: {size: '^(\\d+) '}\n").empty());
  // Equal values; rows; another of the values; both.
  CHECK(said("%d 5\\n", "metrics: {size: '(5)'}\n").empty());
  CHECK(said("5 5 %d\\n", "metrics: {size: '(5)'}\n").empty());
  CHECK(said("%d 5\\n7 6\\n", metrics + "rows: size\n").empty());
  CHECK(
      said("%d 5\\n7 6\\n",
           metrics + "result: {use: metrics, table: {name: t, column: [n, size_last, rate_max]}}\n")
          .empty());
}

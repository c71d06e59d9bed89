// Output files outside the run's folder, which earlier runs and other workpackages write to, too.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

// `step`: its keys; `file`: what is analysed.
std::string workflow(const std::string& step, const std::string& file,
                     const std::string& values = "1,2") {
  return "name: b\noutpath: run\n"
         "parameterset: {name: p, parameter: {name: n, type: int, _: \"" +
         values + "\"}}\nstep: {name: s, use: p, " + step +
         "}\n"
         "patternset: {name: o, pattern: {name: rate, type: float, _: 'rate=$jube_pat_fp'}}\n"
         "analyser: {name: a, use: o, analyse: {step: s, file: \"" +
         file +
         "\"}}\n"
         "result: {use: a, table: {name: t, style: csv, column: [n, rate, rate_cnt]}}\n";
}

}  // namespace

TEST_CASE("outside files: a run's values are its own, not those of an earlier run") {
  const std::string rate = "echo rate=$n.$jube_benchmark_id";
  struct {
    std::string step, file;
  } const cases[] = {
      {"work_dir: wd_$n, timeout: 5m, do: '" + rate + "'", "stdout"},  // appended to by the engine
      {"kind: run, work_dir: wd_$n, do: '" + rate + " >> out.log'", "out.log"},
      {"kind: run, work_dir: wd_$n, do: '" + rate + " >> out.log'", "*.log"},
      {"kind: run, do: '" + rate + " >> ../../../log_$n'", "../../../log_$n"},
  };
  for (const auto& [step, file] : cases) {
    CAPTURE(step);
    const Shell shell;
    shell.file("b.yaml", workflow(step, file));
    CHECK(has(shell.tally("run b.yaml").out, "n,rate,rate_cnt\n1,1.0,1\n2,2.0,1\n"));
    const Ran again = shell.tally("run b.yaml");
    CHECK_MESSAGE((again.code == 0 && has(again.out, "n,rate,rate_cnt\n1,1.1,1\n2,2.1,1\n")),
                  (again.out + again.err));
    // The first run's part is still known. That the file has grown is said.
    const Ran first = shell.tally("result run -i 0");
    CHECK_MESSAGE((first.code == 0 && has(first.out, "n,rate,rate_cnt\n1,1.0,1\n2,2.0,1\n")),
                  (first.out + first.err));
    CHECK_MESSAGE(has(first.err, " is 9 bytes longer than when workpackage 0 (s) ended"),
                  first.err);
  }
}

TEST_CASE("outside files: a file that the workpackage did not write has no values") {
  const Shell shell;
  shell.file("b.yaml", workflow("kind: run, work_dir: wd, do: '[ $jube_benchmark_id = 1 ] || echo "
                                "rate=10 > out.txt'",
                                "out.txt", "1"));
  CHECK(has(shell.tally("run b.yaml").out, "\n1,10.0,1\n"));
  const Ran again = shell.tally("run b.yaml");
  CHECK_MESSAGE(!has(again.out, "10.0"), again.out);
  CHECK_MESSAGE(has(again.err,
                    "/wd/out.txt' was there before workpackage 0 (s) began, which wrote "
                    "nothing to it: its values are not of this run"),
                again.err);
}

TEST_CASE("outside files: an attempt that failed does not give the values of the next one") {
  const Shell shell;
  shell.file("b.yaml",
             workflow("kind: run, retry: 1, work_dir: wd, do: 'echo x >> count; if [ "
                      "$$(wc -l < count) = 1 ]; then echo rate=666 > out.txt; exit 1; fi'",
                      "out.txt", "1"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(!has(ran.out, "666"), (ran.out + ran.err));
  CHECK(has(ran.err, "out.txt' was there before workpackage 0 (s) began"));
}

TEST_CASE("outside files: a file that the workflow names in full may be an input") {
  const Shell shell;
  shell.file("facts", "rate=7\n");
  shell.file("b.yaml", workflow("kind: run, do: 'true'", "$jube_benchmark_home/facts", "1"));
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE((ran.code == 0 && has(ran.out, "\n1,7.0,1\n")), (ran.out + ran.err));
  // What a glob matches may be of an earlier run and of other workpackages.
  shell.sh("mkdir res");
  shell.file("b.yaml", workflow("kind: run, do: 'echo rate=$n.$jube_benchmark_id > "
                                "$jube_benchmark_home/res/out.$n.$jube_benchmark_id'",
                                "$jube_benchmark_home/res/out.*"));
  for (const char* id : {"1", "2"}) {
    const Ran again = shell.tally("run b.yaml -j1");
    const std::string rows = std::string("\n1,1.") + id + ",1\n2,2." + id + ",1\n";
    CHECK_MESSAGE((again.code == 0 && has(again.out, rows)), (again.out + again.err));
    CHECK_MESSAGE(has(again.err, "was there before workpackage"), again.err);
  }
}

TEST_CASE("outside files: a step takes what the step before it made in their work_dir") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "step: [{name: a, work_dir: wd, do: 'echo rate=3 > made'},\n"
             " {name: s, depend: a, work_dir: wd, do: 'cat made'}]\n"
             "patternset: {name: o, pattern: {name: rate, type: float, _: 'rate=$jube_pat_fp'}}\n"
             "analyser: {name: a, use: o, analyse: {step: s, file: made}}\n"
             "result: {use: a, table: {name: t, style: csv, column: [rate]}}\n");
  for (int i = 0; i < 2; ++i) {
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE((ran.code == 0 && has(ran.out, "rate\n3.0\n")), (ran.out + ran.err));
  }
}

TEST_CASE("outside files: workpackages that share a file") {
  // Each one appends: every one has its own part.
  const Shell shell;
  shell.file("b.yaml", workflow("kind: run, work_dir: wd, do: 'echo rate=$n >> out.txt'", "out.txt",
                                "1,2,3"));
  Ran ran = shell.tally("run b.yaml -j 1");
  CHECK_MESSAGE((ran.code == 0 && has(ran.out, "rate_cnt\n1,1.0,1\n2,2.0,1\n3,3.0,1\n")),
                (ran.out + ran.err));
  CHECK_MESSAGE(!has(ran.err, "longer"), ran.err);
  // Each one writes it anew: only the last one's values are there.
  shell.clear();
  shell.file("b.yaml",
             workflow("kind: run, work_dir: wd, do: 'echo rate=$n > out.txt'", "out.txt", "1,2,3"));
  ran = shell.tally("run b.yaml -j 1");
  CHECK_MESSAGE(ran.code != 0, ran.out);
  CHECK_MESSAGE((has(ran.out, "\n3,3.0,1\n") && !has(ran.out, "1,3.0") && !has(ran.out, "2,3.0")),
                ran.out);
  CHECK_MESSAGE(has(ran.err,
                    "/wd/out.txt' has changed since workpackage 0 (s) ended, so that its "
                    "values may be another's"),
                ran.err);
  // At the same time, nobody can tell.
  shell.clear();
  shell.file("b.yaml",
             workflow("kind: run, work_dir: wd, do: 'touch $n; until [ -e 1 -a -e 2 ]; do :; done; "
                      "echo rate=$n >> out.txt; touch w$n; until [ -e w1 -a -e w2 ]; do :; done'",
                      "out.txt"));
  ran = shell.tally("run b.yaml -j 2");
  CHECK_MESSAGE(ran.code != 0, ran.out);
  CHECK_MESSAGE((!has(ran.out, "1.0") && !has(ran.out, "2.0")), ran.out);
  CHECK_MESSAGE(has(ran.err, "was written by others while workpackage 0 (s) ran"), ran.err);
}

TEST_CASE("outside files: what was not there at the end does not count") {
  const std::string one =
      "kind: run, work_dir: wd, do: 'if [ $n = 2 ]; then echo rate=9 > out.log; fi'";
  struct {
    std::string step, file, rows;
  } const cases[] = {
      {one, "out.log", "\n1,,\n2,9.0,1\n3,,\n"},
      {one, "$jube_benchmark_home/wd/out.log", "\n1,,\n2,9.0,1\n3,9.0,1\n"},  // an input of 3
      {one, "out.l*", "\n1,,\n2,9.0,1\n3,,\n"},
      {"kind: run, work_dir: $jube_benchmark_rundir/wd, do: 'if [ $n = 2 ]; then echo rate=9 > "
       "out.log; fi'",
       "out.log", "\n1,,\n2,9.0,1\n3,,\n"},
      {"kind: run, work_dir: wd, do: 'echo rate=$n > out.$n.log'", "out.*.log",
       "\n1,1.0,1\n2,2.0,1\n3,3.0,1\n"},
      {"kind: run, work_dir: 'w[d]', do: 'echo rate=$n > out.$n.log'", "out.*.log",
       "\n1,1.0,1\n2,2.0,1\n3,3.0,1\n"},
      {"kind: run, do: 'echo rate=$n > ../../out.$n.log'", "../../out.*.log",
       "\n1,1.0,1\n2,2.0,1\n3,3.0,1\n"},
  };
  for (const auto& [step, file, rows] : cases) {
    CAPTURE(step);
    CAPTURE(file);
    const Shell shell;
    shell.file("b.yaml", workflow(step, file, "1,2,3"));
    const Ran ran = shell.tally("run b.yaml -j 1");
    CHECK_MESSAGE((ran.code == 0 && has(ran.out, rows)), (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.err, "was not there when workpackage 0 (s) ended"), ran.err);
    CHECK(has(shell.tally("result run").out, rows));
  }
}

TEST_CASE("outside files: what a later run makes does not count") {
  for (const char* file : {"out.log", "*.log", "$jube_benchmark_home/wd/out.log"}) {
    CAPTURE(file);
    const Shell shell;
    shell.file("b.yaml", workflow("kind: run, work_dir: wd, do: '[ ! -e ../on ] || echo rate=9 > "
                                  "out.log'",
                                  file, "1"));
    CHECK(has(shell.tally("run b.yaml").out, "\n1,,\n"));
    CHECK(shell.sh("touch on").code == 0);
    CHECK(has(shell.tally("run b.yaml").out, "\n1,9.0,1\n"));
    CHECK(has(shell.tally("result run -i 0").out, "\n1,,\n"));
    CHECK(has(shell.tally("result run -i 1").out, "\n1,9.0,1\n"));
  }
}

TEST_CASE(
    "outside files: a folder of the run that workpackages share is no other than one outside") {
  const std::string shared = "kind: run, work_dir: $jube_benchmark_rundir/wd, do: ";
  const Shell shell;
  shell.file("b.yaml", workflow(shared + "'echo rate=$n >> out.txt'", "out.txt", "1,2,3"));
  Ran ran = shell.tally("run b.yaml -j 1");
  CHECK_MESSAGE((ran.code == 0 && has(ran.out, "rate_cnt\n1,1.0,1\n2,2.0,1\n3,3.0,1\n")),
                (ran.out + ran.err));
  shell.clear();
  shell.file("b.yaml", workflow(shared + "'echo rate=$n > out.txt'", "out.txt", "1,2,3"));
  ran = shell.tally("run b.yaml -j 1");
  CHECK_MESSAGE((ran.code == 1 && has(ran.out, "\n1,,\n2,,\n3,3.0,1\n")), (ran.out + ran.err));
  shell.clear();
  shell.file(
      "b.yaml",
      workflow("kind: run, retry: 1, work_dir: $jube_benchmark_rundir/wd, do: 'echo x >> count; "
               "if [ $$(wc -l < count) = 1 ]; then echo rate=666 > out.txt; exit 1; fi'",
               "out.txt", "1"));
  ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(!has(ran.out, "666"), (ran.out + ran.err));
}

TEST_CASE("outside files: a step may read what is in the folder of the step before it") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "step: [{name: a, do: 'echo rate=3 > made'},\n"
             " {name: s, depend: a, do: 'true'}]\n"
             "patternset: {name: o, pattern: {name: rate, type: float, _: 'rate=$jube_pat_fp'}}\n"
             "analyser: {name: a, use: o, analyse: {step: s, file: ../../000000_a/work/made}}\n"
             "result: {use: a, table: {name: t, style: csv, column: [rate]}}\n");
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE((ran.code == 0 && has(ran.out, "rate\n3.0\n")), (ran.out + ran.err));
}

TEST_CASE("outside files: what the journal kept serves where another run wrote anew") {
  const Shell shell;
  shell.file("b.yaml",
             workflow("kind: run, work_dir: wd_$n, do: 'echo rate=$n.$jube_benchmark_id > out.txt'",
                      "out.txt"));
  CHECK(shell.tally("run b.yaml").code == 0);
  CHECK(shell.tally("run b.yaml").code == 0);
  const Ran first = shell.tally("result run -i 0");
  const std::string all = first.out + first.err;
  CHECK_MESSAGE(!has(first.out, "1.1"), all);
  const bool kept = first.code == 0 && has(first.out, "\n1,1.0,1\n2,2.0,1\n") &&
                    has(first.err,
                        "has changed since it ended; its values are those that the "
                        "journal kept");
  const bool refused =
      first.code != 0 && has(first.err, "has changed since workpackage 0 (s) ended");
  CHECK_MESSAGE((kept || refused), all);
}

// Its step would compute with it.
TEST_CASE(
    "outside files: what an earlier run or another workpackage left is not taken for a copy") {
  const struct {
    const char *set, *make, *change, *named;
  } cases[] = {
      {"copy: in", "echo v=1 > in", "echo v=2 > in", "/wd/in' was there before"},
      {"copy: in", "echo v=1 > in", "touch in", nullptr},
      {"copy: {name: x, _: in}", "echo v=1 > in", "echo v=22 > in", "/wd/x' was there before"},
      {"copy: d", "mkdir d; echo v=1 > d/in", "echo v=2 > d/in", "/wd/d/in' was there before"},
      {"copy: d", "mkdir d; echo v=1 > d/in", "echo v=2 > d/more", "/wd/d/more' was there before"},
      {"copy: d", "mkdir d; echo v=1 > d/in", "echo v=2 > wd/d/more", nullptr},
      {"copy: in", "echo v=1 > in", "rm -rf wd/in; mkdir wd/in", "/wd/in' was there before"},
      {"link: in", "echo v=1 > in", "rm wd/in; echo v=2 > wd/in", "/wd/in' was there before"},
      {"link: in", "echo v=1 > in", "echo v=2 > in", nullptr},
      // Of two entries for one name the first counts.
      {"copy: [in, {name: in, _: other}]", "echo v=1 > in; echo v=3 > other", "echo v=4 > other",
       nullptr},
  };
  for (const auto& [set, make, change, named] : cases) {
    CAPTURE(std::string(set) + " | " + change);
    const Shell shell;
    const auto bench = [&](const std::string& work_dir) {
      return "name: b\noutpath: run\nfileset: {name: f, " + std::string(set) +
             "}\nstep: {name: s, kind: run, use: f, " + work_dir + "do: 'true'}\n";
    };
    shell.file("b.yaml", bench("work_dir: $jube_benchmark_home/wd, "));
    shell.sh(make);
    CHECK(shell.tally("run b.yaml").code == 0);
    CHECK(shell.tally("run b.yaml").code == 0);
    shell.sh(change);
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == (named == nullptr ? 0 : 1), (ran.out + ran.err));
    if (named != nullptr) CHECK_MESSAGE(has(ran.out, named), (ran.out + ran.err));
    // The workpackage's own folder has whatever its sets put there.
    shell.file("b.yaml", bench(""));
    CHECK(shell.tally("run b.yaml").code == 0);
  }
  // A file that the step before it changed in their folder, with both steps copying it.
  const Shell shell;
  shell.sh("echo v=#N# > in");
  shell.file("b.yaml",
             "name: b\noutpath: run\nparameterset: {name: p, parameter: {name: n, _: \"1,2\"}}\n"
             "fileset: {name: f, copy: in}\n"
             "substituteset: {name: u, iofile: {in: in, out: in}, sub: {source: '#N#', dest: $n}}\n"
             "step: {name: s, kind: run, use: [p, f, u], work_dir: $jube_benchmark_rundir/wd, do: "
             "cat in}\n");
  const Ran ran = shell.tally("run b.yaml -j1");
  CHECK_MESSAGE((ran.code == 1 && has(ran.out, "/wd/in' was there before this workpackage")),
                (ran.out + ran.err));
}

TEST_CASE("outside files: a done_file of an earlier run does not end the work") {
  const Shell shell;
  shell.file("b.yaml",
             "name: b\noutpath: run\nstep: {name: s, work_dir: wd, timeout: 5m, do: {done_file: "
             "done, _: 'touch "
             "done'}}\n");
  CHECK(shell.tally("run b.yaml").code == 0);
  const Ran again = shell.tally("run b.yaml");
  CHECK_MESSAGE(again.code == 1, (again.out + again.err));
  CHECK_MESSAGE(has(again.out + again.err,
                    "/wd/done' is there already, from before this command; remove it, then "
                    "continue the run"),
                (again.out + again.err));
  CHECK(shell.sh("rm wd/done; \"$TALLY\" continue run -i 1").code == 0);
}

TEST_CASE("outside files: a break_file or an error_file of an earlier run decides about nothing") {
  for (const std::string key : {"break_file", "error_file"}) {
    CAPTURE(key);
    const Shell shell;
    // In the first run, the file belongs to the last command and to the second cycle.
    shell.file("b.yaml",
               "name: b\noutpath: run\nstep: {name: s, work_dir: wd, timeout: 5m, cycles: 3, do: "
               "['echo v', {" +
                   key + ": mark, _: 'test $jube_wp_cycle != 1 || touch mark; true'}]}\n");
    const Ran first = shell.tally("run b.yaml");
    CHECK((first.code == 0) == (key == "break_file"));
    const Ran again = shell.tally("run b.yaml");
    CHECK_MESSAGE(again.code == 1, (again.out + again.err));
    CHECK_MESSAGE(has(again.out + again.err, "the " + key + " '"), (again.out + again.err));
    CHECK_MESSAGE(has(again.out + again.err,
                      "/wd/mark' is there already, from before this command; remove it, then "
                      "continue the run"),
                  (again.out + again.err));
    CHECK_FALSE(
        has(shell.sh("cat run/000001/000000_s/stdout run/000001/000000_s/work/stdout").out, "v"));
    const Ran later = shell.sh("rm wd/mark; \"$TALLY\" continue run -i 1");
    CHECK((later.code == 0) == (key == "break_file"));
  }
}

TEST_CASE("outside files: a substitution does not append to what an earlier run left") {
  const Shell shell;
  shell.file("in", "v=#X#\n");
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\nsubstituteset: {name: u, iofile: [{in: ../in, out: out, out_mode: "
      "w}, {in: ../in, out: more, out_mode: a}, {in: ../in, out: more, out_mode: a}], sub: "
      "{source: '#X#', dest: $jube_benchmark_id}}\n"
      "step: {name: s, work_dir: wd, timeout: 5m, use: u, do: 'cat out more > all'}\n");
  CHECK(shell.sh("mkdir wd; \"$TALLY\" run b.yaml").code == 0);
  CHECK(shell.content("wd/all") == "v=0\nv=0\nv=0\n");
  const Ran again = shell.tally("run b.yaml");
  CHECK(again.code == 1);
  CHECK_MESSAGE(has(again.out + again.err,
                    "the substituted file '" + shell.root() + "/wd/more' is there already"),
                (again.out + again.err));
  CHECK(shell.sh("rm wd/more; \"$TALLY\" continue run -i 1").code == 0);
  CHECK(shell.content("wd/all") == "v=1\nv=1\nv=1\n");
}

TEST_CASE("outside files: behind a link of a file set or of a command they are outside, too") {
  // Marks of an earlier run.
  for (const std::string key : {"break_file", "error_file", "done_file"}) {
    CAPTURE(key);
    const Shell shell;
    shell.sh("mkdir out");
    shell.file("b.yaml",
               "name: b\noutpath: run\nfileset: {name: f, link: out}\n"
               "step: {name: s, use: f, timeout: 5m, cycles: 2, do: ['echo v', {" +
                   key + ": out/mark, _: '" +
                   (key == "done_file" ? "touch out/mark"
                                       : "test $jube_wp_cycle != 1 || touch out/mark; true") +
                   "'}]}\n");
    shell.tally("run b.yaml");
    const Ran again = shell.tally("run b.yaml");
    CHECK_MESSAGE(again.code == 1, (again.out + again.err));
    CHECK_MESSAGE(has(again.out + again.err, "the " + key + " '"), (again.out + again.err));
    CHECK_MESSAGE(has(again.out + again.err, "/work/out/mark' is there already"),
                  (again.out + again.err));
  }
  // A file to which a substitution appends: of another workpackage, and of an earlier run.
  for (const std::string set : {"link: out", "prepare: 'ln -s ../../../../out out'"}) {
    CAPTURE(set);
    const Shell shell;
    shell.sh("mkdir out");
    shell.file("in", "v=#X#\n");
    shell.file("b.yaml",
               "name: b\noutpath: run\n"
               "parameterset: {name: ps, parameter: {name: n, _: \"1,2\"}}\n"
               "fileset: {name: f, copy: in, " +
                   set +
                   "}\n"
                   "substituteset: {name: u, iofile: {in: in, out: out/all, out_mode: a}, sub: "
                   "{source: '#X#', dest: $n}}\n"
                   "step: {name: s, use: [ps, f, u], timeout: 5m, do: cat out/all}\n");
    const Ran ran = shell.tally("run b.yaml -j1");
    CHECK_MESSAGE(ran.code == 1, (ran.out + ran.err));
    CHECK(shell.content("out/all") == "v=1\n");
    CHECK_MESSAGE(has(ran.out + ran.err, "/work/out/all' is there already"), (ran.out + ran.err));
    const Ran later = shell.sh("rm out/all; \"$TALLY\" continue run");
    CHECK_MESSAGE(later.code == 0, (later.out + later.err));
    CHECK(shell.content("out/all") == "v=2\n");
  }
  // Two at a time: one of them appends, the other says why it does not.
  for (const std::string out : {"out/all", "../../../../out/all"}) {
    CAPTURE(out);
    const Shell shell;
    shell.sh("mkdir out");
    shell.file("in", "v=#X#\n");
    shell.file("b.yaml",
               "name: b\noutpath: run\n"
               "parameterset: {name: ps, parameter: {name: n, _: \"1,2\"}}\n"
               "fileset: {name: f, copy: in, link: out}\n"
               "substituteset: {name: u, iofile: {in: in, out: " +
                   out +
                   ", out_mode: a}, sub: {source: '#X#', dest: $n}}\n"
                   "step: {name: s, use: [ps, f, u], timeout: 5m, do: grep v= " +
                   out + "}\n");
    const Ran ran = shell.tally("run b.yaml -j2");
    CHECK_MESSAGE(ran.code == 1, (ran.out + ran.err));
    CHECK(shell.content("out/all").size() == 4);
    const bool told = has(ran.out + ran.err, "as that of workpackage ") ||
                      has(ran.out + ran.err, "/out/all' is there already");
    CHECK_MESSAGE(told, (ran.out + ran.err));
  }
  // A mark that is a link itself.
  {
    const Shell shell;
    shell.file(
        "b.yaml",
        "name: b\noutpath: run\nfileset: {name: f, prepare: 'ln -s ../../../../mark stop'}\n"
        "step: {name: s, use: f, timeout: 5m, cycles: 2, do: ['echo v', {break_file: stop, _: "
        "'echo >stop'}]}\n");
    CHECK(shell.tally("run b.yaml").code == 0);
    CHECK(shell.exists("mark"));
    const Ran again = shell.tally("run b.yaml");
    CHECK_MESSAGE(has(again.out + again.err, "/work/stop' is there already"),
                  (again.out + again.err));
  }
  // A copy of its own keeps its old time.
  {
    const Shell shell;
    shell.sh("mkdir out; echo old=1 >base; touch -d '2 days ago' base");
    shell.file("in", "v=#X#\n");
    shell.file(
        "b.yaml",
        "name: b\noutpath: run\nfileset: {name: f, link: out, copy: [in, {name: out/all, _: "
        "base}]}\n"
        "substituteset: {name: u, iofile: {in: in, out: out/all, out_mode: a}, sub: {source: "
        "'#X#', dest: 7}}\n"
        "step: {name: s, use: [f, u], timeout: 5m, do: cat out/all}\n");
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    CHECK(shell.content("out/all") == "old=1\nv=7\n");
  }
  // What the step's own file set has put there is its own.
  const Shell shell;
  shell.sh("mkdir out");
  shell.file("in", "v=#X#\n");
  shell.file("b.yaml",
             "name: b\noutpath: run\n"
             "fileset: {name: f, copy: in, link: out, prepare: 'echo head >out/all'}\n"
             "substituteset: {name: u, iofile: {in: in, out: out/all, out_mode: a}, sub: {source: "
             "'#X#', dest: 7}}\n"
             "step: {name: s, use: [f, u], timeout: 5m, do: cat out/all}\n");
  for (int run = 0; run < 2; ++run) {
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    CHECK(shell.content("out/all") == "head\nv=7\n");
  }
}

TEST_CASE("outside files: an earlier run's mark decides nothing behind a link made by a command") {
  const char* late = "ln -sfn $jube_benchmark_home/out od";
  for (const std::string key : {"break_file", "error_file"}) {
    for (const bool same : {false, true}) {
      CAPTURE(key);
      CAPTURE(same);
      const std::string on = "[ ! -e $jube_benchmark_home/on ] || ";
      const std::string command = on + "[ $jube_wp_cycle != 1 ] || touch od/m";
      const std::string last = same ? std::string(late) + "; echo v; " + command : command;
      const Shell shell;
      shell.sh("mkdir out; touch on");
      shell.file("b.yaml", "name: b\noutpath: run\nstep: {name: s, timeout: 5m, cycles: 3, do: [" +
                               (same ? "" : "'" + std::string(late) + "; echo v', ") + "{" + key +
                               ": od/m, _: '" + last + "; true'}]}\n");
      const Ran first = shell.tally("run b.yaml");  // its own mark
      CHECK_MESSAGE((first.code == 0) == (key == "break_file"), (first.out + first.err));
      CHECK(shell.content("run/000000/000000_s/work/stdout") == "v\nv\n");
      const Ran again = shell.sh("rm on; \"$TALLY\" run b.yaml");
      CHECK_MESSAGE(again.code == 1, (again.out + again.err));
      CHECK_MESSAGE(has(again.out, "the " + key + " '" + shell.root() +
                                       "/run/000001/000000_s/work/od/m' is there already"),
                    (again.out + again.err));
      const Ran later = shell.sh("rm out/m; \"$TALLY\" continue run -i 1");
      CHECK_MESSAGE(later.code == 0, (later.out + later.err));
      CHECK(shell.content("run/000001/000000_s/work/stdout") == "v\nv\nv\n");
    }
  }
  // What an asynchronous command waits for.
  const Shell shell;
  shell.sh("mkdir out");
  shell.file("b.yaml",
             "name: b\noutpath: run\nstep: {name: s, timeout: 5m, do: {done_file: od/m, _: '" +
                 std::string(late) + "'}}\n");
  for (int run = 0; run < 2; ++run) {
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(has(ran.out, "Results are still to come"), (ran.out + ran.err));
    const std::string run_id = " -i " + std::to_string(run);
    Ran later = shell.tally("continue run" + run_id);
    CHECK_MESSAGE(has(later.out, "Results are still to come"), (later.out + later.err));
    const std::string log = shell.content("run/00000" + std::to_string(run) + "/run.log");
    CHECK(has(log, "waits for \"od/m\": one from before this workpackage is there") == (run == 1));
    later = shell.sh("touch out/m; \"$TALLY\" continue run" + run_id);
    CHECK_MESSAGE(later.code == 0, (later.out + later.err));
  }
}

TEST_CASE("outside files: what a command does to a mark without making it makes it nobody's own") {
  const struct {
    const char* command;
    int again;
  } cases[] = {
      {"chmod 600 od/m", 1},   {"chmod -R g+rwX od/", 1}, {"ln od/m x", 1},
      {"ln -sfn od/m x", 1},   {"chown 0:0 od/m", 1},     {"touch od/m", 0},
      {"rm od/m; : >od/m", 0}, {"cp in od/m", 0},         {"mv -f in od/m", 0},
      {"ln -f in od/m", 0},    {"echo >>od/m", 0},
  };
  for (const auto& [command, again] : cases) {
    CAPTURE(std::string(command));
    const Shell shell;
    shell.sh("mkdir out; touch -d '2 days ago' in");
    shell.file("b.yaml",
               "name: b\noutpath: run\nfileset: {name: f, copy: in}\n"
               "step: {name: s, use: f, timeout: 5m, cycles: 3, do: ['ln -s "
               "$jube_benchmark_home/out od; [ ! -e od/m ] || { rm -f x; " +
                   std::string(command) +
                   "; }', {break_file: od/m, _: 'echo v; [ $jube_wp_cycle != 1 ] || touch "
                   "od/m'}]}\n");
    const Ran first = shell.tally("run b.yaml");
    CHECK_MESSAGE(first.code == 0, (first.out + first.err));
    const Ran second = shell.tally("run b.yaml");
    CHECK_MESSAGE(second.code == again, (second.out + second.err));
    if (again == 1) CHECK(has(second.out, "/work/od/m' is there already"));
  }
}

TEST_CASE("outside files: a mark that the file set's own command made is no earlier run's") {
  const Shell shell;
  shell.sh("mkdir out");
  shell.file(
      "b.yaml",
      "name: b\noutpath: run\nfileset: {name: f, link: out, prepare: 'touch out/m'}\n"
      "step: {name: s, use: f, timeout: 5m, cycles: 3, do: {break_file: out/m, _: echo v}}\n");
  for (int i = 0; i < 2; ++i) {
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  }
  CHECK(shell.content("run/000001/000000_s/work/stdout") == "v\n");
}

TEST_CASE("outside files: what a prepare touches or appends to stays an earlier run's") {
  // In the second run: 0 is its own.
  const struct {
    const char* prepare;
    int again;
  } cases[] = {
      {"touch out/all", 1},
      {"echo head >>out/all", 1},
      {"[ ! -e out/all ] || cp out/all x; [ ! -e x ] || mv x out/all", 1},
      {"touch out/all; sed -i s/q/r/ out/all", 1},
      {"[ ! -e out/all ] || sed -i \"1i # head\" out/all", 1},
      {"ln -s out by; chmod -R g+rwX by/", 1},
      {"echo head >out/all", 0},
      {": >out/all", 0},
      {"rm -f out/all; echo head >>out/all", 0},
      {"cp -p base out/all", 0},
      {"cp -p base x; mv x out/all", 0},
      {"tar cf - base | (cd out; tar xf -; mv base all)", 0},
  };
  for (const auto& [prepare, again] : cases) {
    CAPTURE(std::string(prepare));
    const Shell shell;
    shell.sh("mkdir out; echo old=1 >base; touch -d '2 days ago' base");
    shell.file("in", "v=#X#\n");
    shell.file("b.yaml",
               "name: b\noutpath: run\nfileset: {name: f, copy: [in, base], link: out, prepare: '" +
                   std::string(prepare) +
                   "'}\nsubstituteset: {name: u, iofile: {in: in, out: out/all, out_mode: a}, sub: "
                   "{source: '#X#', dest: 7}}\n"
                   "step: {name: s, use: [f, u], timeout: 5m, do: grep v= out/all}\n");
    const Ran first = shell.tally("run b.yaml");
    CHECK_MESSAGE(first.code == 0, (first.out + first.err));
    const Ran second = shell.tally("run b.yaml");
    CHECK_MESSAGE(second.code == again, (second.out + second.err));
    if (again == 1) CHECK(has(second.out, "/work/out/all' is there already"));
    CHECK(shell.sh("grep -c v= out/all").out == "1\n");
  }
}

TEST_CASE("outside files: what a step before it made is none of an earlier run's") {
  const struct {
    const char *name, *before, *set, *step, *out;
    bool well;
  } cases[] = {
      {"done_file", "touch m", "", "do: {done_file: m, _: echo v}", "v\n", true},
      {"done_file in each cycle", "touch m", "", "cycles: 2, do: {done_file: m, _: echo v}",
       "v\nv\n", true},
      {"done_file of the step before the last", "touch m", "", "do: {done_file: m, _: echo v}",
       "v\n", true},
      {"break_file", "touch m", "", "cycles: 3, do: {break_file: m, _: echo v}", "v\n", true},
      {"error_file", "touch m", "", "do: {error_file: m, _: echo v}", "v\n", false},
      {"append", "echo head >m", "{in: ../in, out: m, out_mode: a}", "do: cat m", "head\nv=7\n",
       true},
  };
  for (const auto& [name, before, set, step, out, well] : cases) {
    for (const bool link : {false, true}) {
      CAPTURE(std::string(name));
      CAPTURE(link);
      const Shell shell;
      shell.sh("mkdir wd; touch on");
      shell.file("in", "v=#X#\n");
      const bool middle = has(name, "the last");
      const std::string where = link ? "use: f, " : "work_dir: wd, ";
      std::string file = set, work = step;
      const auto in_link = [&](std::string& text) {
        for (size_t at = 0; (at = text.find(": m", at)) != text.npos; ++at)
          text.replace(at, 3, ": wd/m");
        if (const size_t at = text.find("cat m"); at != text.npos) text.replace(at, 5, "cat wd/m");
        if (const size_t at = text.find("../in"); at != text.npos) text.replace(at, 5, "in");
      };
      if (link) in_link(file), in_link(work);
      const std::string use =
          std::string(link ? "f" : "") + (link && *set != 0 ? ", " : "") + (*set != 0 ? "u" : "");
      shell.file("b.yaml",
                 "name: b\noutpath: run\nfileset: {name: f, copy: in, link: wd}\n" +
                     (*set != 0 ? "substituteset: {name: u, iofile: " + file +
                                      ", sub: {source: '#X#', dest: 7}}\n"
                                : std::string()) +
                     "step:\n- {name: a, " + where + "do: '[ ! -e $jube_benchmark_home/on ] || { " +
                     (link ? "cd wd; " : "") + before + "; }'}\n" +
                     (middle ? "- {name: c, depend: a, do: 'true'}\n" : "") +
                     "- {name: s, depend: " + (middle ? "c" : "a") + ", use: [" + use + "], " +
                     (link ? "" : "work_dir: wd, ") + "timeout: 5m, " + work + "}\n");
      for (int run = 0; run < 2; ++run) {  // in each the step before makes it
        const Ran ran = shell.tally("run b.yaml");
        CHECK_MESSAGE((ran.code == 0) == well, (ran.out + ran.err));
        CHECK_MESSAGE(!has(ran.out, "is there already"), ran.out);
        const std::string folder =
            "run/00000" + std::to_string(run) + (middle ? "/000002_s" : "/000001_s");
        const std::string written = shell.content(folder + "/work/stdout");
        CHECK(has(written.empty() ? shell.content("wd/stdout") : written, out));
        shell.sh("rm -f wd/stdout");
      }
      const Ran later = shell.sh("rm on; \"$TALLY\" run b.yaml");  // it does not
      CHECK_MESSAGE(has(later.out, "/m' is there already, from before this command"), later.out);
    }
  }
}

TEST_CASE("outside files: a mark from before the run stays one when the run is continued") {
  const Shell shell;
  shell.sh("mkdir wd; touch wd/m");
  shell.file("b.yaml",
             "name: b\noutpath: run\nstep:\n- {name: a, work_dir: wd, do: 'test -e ../on'}\n"
             "- {name: s, depend: a, work_dir: wd, timeout: 5m, do: {done_file: m, _: echo v}}\n");
  CHECK(shell.tally("run b.yaml").code == 1);
  const Ran later = shell.sh("touch on; \"$TALLY\" remove -w 0 run -f; \"$TALLY\" continue run");
  CHECK_MESSAGE(has(later.out, "/wd/m' is there already"), (later.out + later.err));
}

TEST_CASE(
    "outside files: in a folder of several workpackages a mark of an ancestor is told apart") {
  const char* const head =
      "name: b\noutpath: run\nparameterset: {name: p, parameter: {name: n, _: \"1,2\"}}\n";
  // Both depend on the one that made it.
  Shell shell;
  shell.file("b.yaml", std::string(head) +
                           "step:\n- {name: a, work_dir: wd, do: touch m}\n"
                           "- {name: s, kind: run, use: p, depend: a, work_dir: wd, cycles: 3, do: "
                           "{break_file: m, _: echo v}}\n");
  Ran ran = shell.tally("run b.yaml -j1");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK(shell.sh("cat run/000000/00000[12]_s/work/stdout").out == "v\nv\n");
  // The second one depends on another that has made none.
  shell.clear();
  shell.file("b.yaml", std::string(head) +
                           "step:\n- {name: a, kind: run, use: p, work_dir: wd, do: 'true'}\n"
                           "- {name: s, kind: run, depend: a, work_dir: wd, do: {done_file: m, _: "
                           "touch m}}\n");
  ran = shell.tally("run b.yaml -j1");
  CHECK_MESSAGE(has(ran.out, "/wd/m' is there already"), (ran.out + ran.err));
}

TEST_CASE("outside files: what steps after one another append to a file is all there") {
  const Shell shell;
  shell.file("in", "v=#X#\n");
  shell.file("b.yaml",
             "name: b\noutpath: run\nparameterset: {name: p, parameter: {name: n, _: \"1,2\"}}\n"
             "substituteset: {name: u, iofile: {in: ../in, out: log, out_mode: a}, sub: {source: "
             "'#X#', dest: $n}}\n"
             "step:\n- {name: a, use: [p, u], timeout: 5m, work_dir: wd_$n, do: 'true'}\n"
             "- {name: c, depend: a, do: 'true'}\n"
             "- {name: s, depend: c, use: u, work_dir: wd_$n, do: 'true'}\n");
  const Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK(shell.content("wd_1/log") == "v=1\nv=1\n");
  CHECK(shell.content("wd_2/log") == "v=2\nv=2\n");
  CHECK(has(shell.tally("run b.yaml").out, "/log' is there already"));
}

TEST_CASE("outside files: what the attempt before left is none of an earlier run's") {
  const std::string count = "echo x >>../count; [ $$(wc -l <../count) != 1 ] || ";
  const struct {
    std::string step, out;
    int code;
  } cases[] = {
      {"do: {error_file: m, _: '" + count + "touch m; echo v'}}", "v\n", 0},
      {"do: {error_file: m, _: '" + count + "true; touch m'}}", "", 1},
      {"cycles: 3, do: [{break_file: m, _: 'echo v'}, '" + count + "{ touch m; false; }']}",
       "v\nv\nv\n", 0},
      {"do: {done_file: m, _: '" + count + "{ touch m; false; }; touch m; echo v'}}", "v\n", 0},
      {"use: u, do: 'cat m; " + count + "false'}", "v=7\n", 0},
      {"use: [u, u2], do: 'cat m; " + count + "{ echo more >>m; false; }'}", "v=7\nv=7\n", 0},
      {"use: [h, u], do: 'cat m; " + count + "false'}", "head\nv=7\n", 0},
      {"use: [h, h2, u], do: 'cat m'}", "head\nv=7\n", 0},
      {"use: [f, u], do: 'cat m; " + count + "false'}", "base\nv=7\n", 0},
      {"use: [f, w], do: 'cat m; " + count + "false'}", "v=7\n", 0},
      {"use: [f, w], do: 'cat m; " + count + "{ rm m; mkdir m; false; }'}", "", 1},
      {"use: l, do: 'cat m; " + count + "{ rm m; echo x >m; false; }'}", "base\n", 0},
  };
  for (const auto& [step, out, code] : cases) {
    CAPTURE(step);
    const Shell shell;
    shell.file("in", "v=#X#\n");
    shell.file("base", "base\n");
    shell.file("b.yaml",
               "name: b\noutpath: run\n"
               "fileset:\n- {name: h, prepare: 'echo head >>m'}\n- {name: h2, prepare: '" +
                   count +
                   "false'}\n- {name: f, copy: {name: m, _: base}}\n"
                   "- {name: l, link: {name: m, _: base}}\nsubstituteset:\n"
                   "- {name: w, iofile: {in: ../in, out: m}, sub: {source: '#X#', dest: 7}}\n"
                   "- {name: u, iofile: {in: ../in, out: m, out_mode: a}, sub: {source: '#X#', "
                   "dest: 7}}\n"
                   "- {name: u2, iofile: {in: ../in, out: m, out_mode: a}, sub: {source: '#X#', "
                   "dest: 7}}\n"
                   "step: {name: s, kind: run, work_dir: wd, retry: 1, timeout: 5m, " +
                   step + "\n");
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == code, (ran.out + ran.err));
    CHECK_MESSAGE(!has(ran.out, "is there already"), ran.out);
    if (code == 0) CHECK(shell.content("run/000000/000000_s/work/stdout") == out);
  }
  // A step before it wrote to the file.
  for (const bool anew : {false, true}) {
    CAPTURE(anew);
    const Shell shell;
    shell.file("in", "v=#X#\n");
    shell.file("b.yaml",
               "name: b\noutpath: run\n"
               "substituteset: {name: u, iofile: {in: ../in, out: m, out_mode: a}, sub: {source: "
               "'#X#', dest: 7}}\n"
               "step:\n- {name: a, work_dir: wd, do: echo head >m}\n"
               "- {name: s, depend: a, kind: run, work_dir: wd, retry: 1, use: u, do: 'cat m; " +
                   count + "{ echo more >" + (anew ? "" : ">") + "m; echo no >&2; false; }'}\n");
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE((ran.code == 0) != anew, (ran.out + ran.err));
    if (anew) {
      CHECK_MESSAGE(has(ran.out, "/wd/m' is there already, as an attempt before left it"), ran.out);
      CHECK_MESSAGE(has(ran.out, "the attempt before failed: "), ran.out);
    } else {
      CHECK(shell.content("wd/m") == "head\nv=7\n");
      CHECK(shell.content("run/000000/000001_s/work.failed.1/m") == "v=7\nmore\n");
    }
  }
}

TEST_CASE("outside files: a mark of a shared command puts all off before anything is done") {
  for (const bool first : {false, true}) {
    CAPTURE(first);
    const Shell shell;
    shell.sh("mkdir out; touch out/m");
    shell.file("b.yaml",
               "name: b\noutpath: run\nparameterset: {name: p, parameter: {name: n, _: \"1,2\"}}\n"
               "step: {name: s, use: p, timeout: 5m, shared: all, do: [" +
                   std::string(first ? "" : "echo v=$n, ") +
                   "{shared: true, error_file: $jube_benchmark_home/out/m, _: 'echo once "
                   ">>$jube_benchmark_home/count'}, echo w=$n]}\n");
    const Ran ran = shell.tally("run b.yaml");
    CHECK_MESSAGE(ran.code == 1, (ran.out + ran.err));
    CHECK_MESSAGE(has(ran.out, "pending: 2 of 2 (s): the error_file '"), (ran.out + ran.err));
    CHECK_FALSE(has(ran.out, "still to come"));
    CHECK_FALSE(shell.exists("count"));
    const Ran later = shell.sh("rm out/m; \"$TALLY\" continue run");
    CHECK_MESSAGE(later.code == 0, (later.out + later.err));
    CHECK(shell.content("count") == "once\n");
  }
}

TEST_CASE("outside files: a workpackage that has not begun has no values") {
  const Shell shell;
  shell.sh("mkdir wd; echo rate=5 >wd/log; echo rate=6 >wd/log2; touch on");
  std::string text = workflow(
      "timeout: 5m, cycles: 3, do: ['ln -sfn $jube_benchmark_home/wd d; echo c >stdout', "
      "{break_file: d/m, _: '[ $jube_wp_cycle != 1 ] || touch d/m'}]",
      "d/log,d/log2", "1");
  text.replace(text.find("use: p, "), 8, "use: [p, l], ");
  text = "fileset: {name: l, link: {name: d, _: wd}}\n" + text;
  shell.file("b.yaml", text);
  Ran ran = shell.tally("run b.yaml");
  CHECK_MESSAGE(has(ran.out, "\n1,5.0,2\n"), (ran.out + ran.err));
  ran = shell.tally("run b.yaml");  // the mark is there
  CHECK_MESSAGE(has(ran.out, "/d/m' is there already"), (ran.out + ran.err));
  CHECK_MESSAGE(!has(ran.out, "5.0"), (ran.out + ran.err));
  ran = shell.sh("rm wd/m; \"$TALLY\" continue run");
  CHECK_MESSAGE(has(ran.out, "\n1,5.0,2\n"), (ran.out + ran.err));
  // Nobody has started it.
  shell.clear();
  shell.sh("mkdir -p wd_1 wd_2; echo rate=6 >wd_2/log");
  shell.file("b.yaml",
             workflow("timeout: 5m, work_dir: wd_$n, do: 'echo rate=1 >log; test $n != 1'", "log"));
  ran = shell.tally("run b.yaml -j1 --exit");
  CHECK_MESSAGE(!has(ran.out, "6.0"), (ran.out + ran.err));
}

TEST_CASE("a command's files with `..` behind a link are those that the system opens") {
  const std::string links = "[ -e a ] || { mkdir -p a/b; ln -s a/b l; }";
  for (const bool own_keys : {false, true}) {
    CAPTURE(own_keys);
    const std::string more = own_keys ? "timeout: 5m, " : "";
    const auto run = [&](const Shell& shell, const std::string& keys, int code) {
      shell.clear();
      shell.file("b.yaml", "name: b\noutpath: run\nstep: {name: s, " + more + keys + "}\n");
      const Ran ran = shell.tally("run b.yaml");
      CHECK_MESSAGE((ran.code == 0) == (code == 0), (ran.out + ran.err));
    };
    Shell shell;
    const std::string work = "run/000000/000000_s/work/";
    for (const bool in_folder : {true, false}) {
      CAPTURE(in_folder);
      const std::string made = in_folder ? "a/m" : "m";
      const auto with = [&](const std::string& key) {
        return "cycles: 3, do: ['" + links + "; echo v', {" + key + ": l/../m, _: 'touch " + made +
               "'}]";
      };
      run(shell, with("break_file"), 0);
      CHECK(shell.content(work + "stdout") == (in_folder ? "v\n" : "v\nv\nv\n"));
      run(shell, with("error_file"), in_folder ? 1 : 0);
      run(shell, with("done_file"), in_folder ? 0 : 1);
      CHECK(has(shell.content("run/000000/run.log"), "waits for") != in_folder);
    }
    run(shell,
        "do: ['" + links +
            "', {stdout: l/../so, stderr: l/../se, _: 'echo o; echo e >&2'}, "
            "{work_dir: l/.., stdout: ./l/./../where, error_file: m, _: 'pwd "
            "-P; touch ../m here'}]",
        0);
    CHECK(shell.content(work + "a/so") == "o\n");
    CHECK(shell.content(work + "a/se") == "e\n");
    CHECK(has(shell.content(work + "a/where"), "/work/a\n"));
    CHECK(shell.exists(work + "a/here"));
    CHECK_FALSE(shell.exists(work + "so"));
  }
}

TEST_CASE("paths with characters of patterns are plain paths") {
  const Shell shell;
  shell.file("b.yaml", workflow("kind: run, do: 'echo rate=1 > out.log'", "out*", "1"));
  CHECK(has(shell.tally("run b.yaml").out, "\n1,1.0,1\n"));
  for (const char* folder : {"run*", "r[u]n", "ru?"}) {
    CAPTURE(folder);
    CHECK(shell
              .sh("sed 's/outpath: run/outpath: \"" + std::string(folder) +
                  "\"/; s/rate=1/rate=2/' b.yaml > c.yaml")
              .code == 0);
    const Ran ran = shell.tally("run c.yaml");
    CHECK_MESSAGE((ran.code == 0 && has(ran.out, "\n1,2.0,1\n")), (ran.out + ran.err));
  }
  // Inputs beside the workflow, in such a folder.
  CHECK(shell.sh("mkdir 'p[12]' p1; echo rate=3 > 'p[12]/data.txt'; echo rate=4 > p1/data.txt")
            .code == 0);
  shell.file("p[12]/d.yaml",
             "name: d\noutpath: drun\nfileset: {name: f, copy: data.txt}\n"
             "step: {name: s, use: f, do: 'cat data.txt'}\n"
             "patternset: {name: o, pattern: {name: rate, type: float, _: 'rate=$jube_pat_fp'}}\n"
             "analyser: {name: a, use: o, analyse: {step: s, file: stdout}}\n"
             "result: {use: a, table: {name: t, style: csv, column: [rate]}}\n");
  const Ran ran = shell.sh("cd 'p[12]' && \"$TALLY\" run d.yaml");
  CHECK_MESSAGE((ran.code == 0 && has(ran.out, "rate\n3.0\n")), (ran.out + ran.err));
}

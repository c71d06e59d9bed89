// Outputs that change after the end of their workpackage: a process that outlived its command, a
// rotated log, an editor. Rows of Tally's files are marked; JUBE's files have JUBE's values and a
// note.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

const char* const kOwn = "kind: run, quiet_check: false, ";

struct File {
  std::string step = kOwn;  // keys
  std::string work = "echo v=$i";
  std::string files = "stdout";
  std::string column = "v";
  std::string more;  // outputs
};

std::string workflow(const File& file) {
  return "name: b\noutpath: run\n"
         "parameterset: {name: p, parameter: {name: i, type: int, _: \"1,2\"}}\n"
         "patternset: {name: o, pattern: {name: v, type: int, _: v=$jube_pat_int}}\n"
         "step: {name: s, " +
         file.step + "use: p, do: \"" + file.work +
         "\"}\n"
         "analyser: {name: a, use: o, analyse: {step: s, file: \"" +
         file.files +
         "\"}}\n"
         "result: {use: a, table: {name: t, style: csv, sort: i, column: [i, " +
         file.column + ", v_cnt]}" + file.more + "}\n";
}

std::string work_of(int i) {
  return "run/000000/00000" + std::to_string(i - 1) + "_s/work";
}

const char* const kUnchanged = "i,v,v_cnt\n1,1,1\n2,2,1\n";

}  // namespace

TEST_CASE("changed output: whatever happens to it, the row is marked and a note says what") {
  const struct {
    const char *change, *row, *note;
  } cases[] = {
      // What was there when it ended is known.
      {"echo v=777 >> stdout", "1,1,1,CHANGED", "/stdout' is 6 bytes longer"},
      {": > stdout", "1,,,CHANGED", "/stdout' has 0 bytes instead of 4"},
      {"echo v=7 > stdout", "1,7,1,CHANGED", "/stdout' has other content"},
      {"echo v=777 > stdout", "1,777,1,CHANGED", "/stdout' has other content"},
      {"rm stdout", "1,,,CHANGED", "/stdout' is gone"},
      {"mv stdout stdout.1; echo v=5 > stdout", "1,5,1,CHANGED", "/stdout' has other content"},
      {"mv stdout stdout.1; : > stdout", "1,,,CHANGED", "/stdout' has 0 bytes"},
      {"rm stdout; mkdir stdout", "1,,,CHANGED", "/stdout' is gone"},
      {"sed -i s/1/3/ stdout", "1,3,1,CHANGED", "/stdout' has other content"},
  };
  for (const auto& [change, row, note] : cases) {
    CAPTURE(change);
    const Shell shell;
    shell.file("b.yaml", workflow({}));
    CHECK(has(shell.tally("run b.yaml").out, kUnchanged));
    shell.sh("cd " + work_of(1) + " && " + change);
    const Ran ran = shell.tally("result run");
    CHECK_MESSAGE(has(ran.out, "i,v,v_cnt,status\n" + std::string(row) + "\n2,2,1,done\n"),
                  (ran.out + ran.err));
    CHECK_MESSAGE(
        has(ran.err,
            "note: the output of 1 of 2 workpackages has changed "
            "since it ended: it counts in nothing, and rows that show it are marked CHANGED"),
        ran.err);
    CHECK_MESSAGE(has(ran.err, note), ran.err);
    CHECK(has(shell.tally("analyse run").err, note));
    CHECK(has(shell.tally("report run --format csv").err, note));
    CHECK(has(shell.tally("result run -s json").out, "\"status\":\"changed\""));
  }
}

TEST_CASE("changed output: other bytes under the same size and time are a change") {
  for (const std::string kind : {kOwn, ""}) {
    const Shell shell;
    File file;
    file.step = kind;
    shell.file("b.yaml", workflow(file));
    CHECK(has(shell.tally("run b.yaml -r").out, kUnchanged));
    shell.sh("cd " + work_of(1) +
             "; cp -p stdout old; touch -r stdout t; echo v=9 >stdout; "
             "touch -r t stdout");
    Ran ran = shell.tally("result run");
    CHECK_MESSAGE(has(ran.err, "/stdout' has other content"), ran.err);
    const char* row = kind.empty() ? "i,v,v_cnt\n1,9,1\n2,2,1\n"
                                   : "i,v,v_cnt,status\n1,9,1,CHANGED\n2,2,1,done\n";
    CHECK_MESSAGE(has(ran.out, row), ran.out);
    // The same bytes again; another mode, a further link and a copy of the run are no changes.
    shell.sh("cd " + work_of(1) +
             "; cat old >stdout; touch -r t stdout; chmod 600 stdout; ln stdout "
             "more");
    ran = shell.tally("result run");
    CHECK_MESSAGE(has(ran.out, kUnchanged), (ran.out + ran.err));
    CHECK(!has(ran.err, "changed"));
    shell.sh("cp -rp run copy; rm -r run; mv copy run");
    CHECK(has(shell.tally("result run").out, kUnchanged));
  }
  // In a file outside the run, of which each has its part.
  const Shell shell;
  File file;
  file.step = std::string(kOwn) + "work_dir: wd, ";
  file.work = "echo v=$i >>log";
  file.files = "log";
  shell.file("b.yaml", workflow(file));
  CHECK(has(shell.tally("run b.yaml -j1 -r").out, kUnchanged));
  shell.sh("cd wd; touch -r log t; chmod 600 log");
  CHECK(has(shell.tally("result run").out, kUnchanged));
  shell.sh("cd wd; printf 'v=1\\nv=3\\n' >log; touch -r t log");
  const Ran ran = shell.tally("result run");
  CHECK_MESSAGE(has(ran.out, "i,v,v_cnt\n1,1,1\n2,,\n"), (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.err, "/wd/log' has changed since workpackage 1 (s) ended"), ran.err);
  CHECK(ran.code == 1);
}

TEST_CASE("changed output: a run's folder that is away at an end is no change") {
  for (const char* away : {"run/000000", "run/000000/000000_s", "run/000000/000000_s/work"}) {
    CAPTURE(away);
    const Shell shell;
    File file;
    file.work = "echo v=$i; [ -e ../../../../once ] || { touch ../../../../once; mv " +
                shell.root() + "/" + away + " " + shell.root() + "/away; }";
    shell.file("b.yaml", workflow(file));
    Ran ran = shell.sh(
        "\"$TALLY\" run b.yaml -j1 2>&1 | tee log & until [ -e away ]; do sleep 0.01; "
        "done; wait; cat log");
    shell.sh("rm -rf " + std::string(away) + "; mv away " + away);
    CHECK_MESSAGE(!has(ran.out, "CHANGED"), ran.out);
    ran = shell.tally("continue run");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    ran = shell.tally("result run");
    CHECK_MESSAGE(has(ran.out, kUnchanged), (ran.out + ran.err));
  }
}

TEST_CASE("changed output: another workpackage's file in its place is a change") {
  for (const std::string kind : {kOwn, ""}) {
    for (const char* change :
         {"ln -sf ../../000001_s/work/stdout stdout", "ln -f ../../000001_s/work/stdout stdout",
          "cp -p ../../000001_s/work/stdout new; mv new stdout",
          "ln -s ../../000001_s/work/stdout new; mv new stdout"}) {
      CAPTURE(change);
      const Shell shell;
      File file;
      file.step = kind;
      file.work = "echo v=$i; test $i = 1 || echo longer";
      shell.file("b.yaml", workflow(file));
      CHECK(has(shell.tally("run b.yaml -r -j1").out, kUnchanged));
      shell.sh("cd " + work_of(1) + " && " + change);
      const Ran ran = shell.tally("result run");
      if (!kind.empty()) CHECK_MESSAGE(has(ran.out, "1,2,1,CHANGED\n2,2,1,done\n"), ran.out);
      CHECK_MESSAGE(has(ran.err, "/stdout' has other content"), ran.err);
    }
  }
}

TEST_CASE("changed output: another workpackage's folder in the file's way is a change") {
  for (const std::string kind : {kOwn, ""}) {
    for (const char* change : {"rm -r d; ln -s ../../000001_s/work/d d",
                               "cd ..; rm -r work; ln -s ../000001_s/work work",
                               "cd ../..; rm -r 000000_s; ln -s 000001_s 000000_s"}) {
      CAPTURE(change);
      const Shell shell;
      File file;
      file.step = kind;
      file.work = "mkdir d; echo v=$i > d/o.log; test $i = 1 || echo longer >> d/o.log";
      file.files = "d/o.log";
      shell.file("b.yaml", workflow(file));
      CHECK(has(shell.tally("run b.yaml -r -j1").out, kUnchanged));
      shell.sh("mv run real; ln -s real run; cd " + work_of(1) + " && " + change);
      const Ran ran = shell.tally("result run");
      if (!kind.empty()) CHECK_MESSAGE(has(ran.out, "1,2,1,CHANGED\n2,2,1,done\n"), ran.out);
      CHECK_MESSAGE(has(ran.err, "/d/o.log' has other content"), ran.err);
    }
  }
}

// What several steps write to is theirs only where they had it at their end.
TEST_CASE("changed output: a shared file of another step in its place is a change") {
  for (const std::string work : {"mkdir out; echo v=$i >out/log", "mkdir out"}) {
    for (const char* change :
         {"rm -r out; ln -s ../../t_shd out", "rm -f out/log; ln -s ../../../t_shd/log out/log",
          "mv out old; mkdir in; ln -s ../../t_shd in/out; mv in/out out",
          "cd ..; rm -r work; mkdir work; ln -s ../../t_shd work/out"}) {
      CAPTURE(work);
      CAPTURE(std::string(change));
      const Shell shell;
      shell.file("b.yaml",
                 "name: b\noutpath: run\n"
                 "parameterset: {name: ps, parameter: {name: i, type: int, _: \"1,2\"}}\n"
                 "step: [{name: s, use: ps, kind: run, timeout: 5m, do: '" +
                     work +
                     "'},\n {name: t, kind: run, timeout: 5m, shared: shd, do: 'echo v=52 "
                     ">shd/log'}]\n"
                     "patternset: {name: o, pattern: {name: v, type: int, _: 'v=$jube_pat_int'}}\n"
                     "analyser: [{name: a, use: o, analyse: {step: s, file: out/log}},\n"
                     " {name: d, use: o, analyse: {step: t, file: shd/log}}]\n"
                     "result: [{use: a, table: {name: t, style: csv, column: [i, v]}},\n"
                     " {use: d, table: {name: u, style: csv, column: [v]}}]\n");
      const Ran first = shell.tally("run b.yaml -r");
      CHECK_MESSAGE(!has(first.out, "CHANGED"), (first.out + first.err));
      // Links that lead there are no change in a run that was moved or copied.
      for (const char* move :
           {"mv run elsewhere; mv elsewhere run", "cp -a run copy; rm -r run; mv copy run"}) {
        const Ran moved = shell.sh(std::string(move) + "; \"$TALLY\" result run");
        CHECK_MESSAGE(!has(moved.out + moved.err, "CHANGED"), (moved.out + moved.err));
      }
      shell.sh("cd " + work_of(1) + " && " + change);
      const Ran ran = shell.tally("result run");
      const bool was_there = has(work, "log");
      CHECK_MESSAGE(has(ran.out, was_there ? "1,52,CHANGED\n" : "1,,CHANGED\n"),
                    (ran.out + ran.err));
    }
  }
}

// A step after it analyses the file through its link to the folder.
TEST_CASE(
    "changed output: what a step after it read or wrote through its link is not left by that") {
  {
    const std::string text =
        "name: b\noutpath: run\n"
        "parameterset: {name: ps, parameter: {name: i, type: int, _: \"1,2\"}}\n"
        "step: [{name: s, use: ps, kind: run, timeout: 5m, do: 'mkdir out; echo v=$i >out/log'},\n"
        " {name: post, depend: s, timeout: 5m, do: 'COMMAND'}]\n"
        "patternset: {name: o, pattern: {name: v, type: int, _: 'v=$jube_pat_int'}}\n"
        "analyser: {name: a, use: o, analyse: [{step: s, file: out/log}, {step: post, file: "
        "s/out/log}]}\n"
        "analyser: {name: b, use: o, analyse: {step: s, file: out/log}}\n"
        "result: {use: b, table: {name: t, style: csv, column: [i, v, v_last]}}\n";
    const auto with = [&](const std::string& command) {
      std::string whole = text;
      whole.replace(whole.find("COMMAND"), 7, command);
      // Two analysers are a list.
      const size_t first = whole.find("analyser: {name: a");
      whole.replace(first, 10, "analyser:\n  - ");
      const size_t second = whole.find("analyser: {name: b");
      whole.replace(second, 10, "  - ");
      return whole;
    };
    for (const char* change : {"cd 000000_s; rm -r work; ln -s ../000001_s/work work",
                               "rm -r 000000_s; ln -s 000001_s 000000_s",
                               "cd 000000_s/work; rm -r out; ln -s ../../000001_s/work/out out",
                               "cd 000000_s/work/out; ln -f ../../../000001_s/work/out/log log"}) {
      CAPTURE(change);
      const Shell shell;
      shell.file("b.yaml", with("true"));
      const Ran first = shell.tally("run b.yaml -r");
      CHECK_MESSAGE(has(first.out, "i,v,v_last\n1,1,1\n2,2,2\n"), (first.out + first.err));
      shell.sh("cd run/000000 && " + std::string(change));
      const Ran ran = shell.tally("result run");
      CHECK_MESSAGE(has(ran.err, "/out/log' has other content"), (ran.out + ran.err));
      CHECK_MESSAGE(has(ran.out, "1,2,2,CHANGED\n2,2,2,done\n"), (ran.out + ran.err));
    }
    const Shell shell;
    shell.file("b.yaml", with("test $i = 2 || echo v=99 >>s/out/log"));
    const Ran ran = shell.tally("run b.yaml -r");
    CHECK_MESSAGE(has(ran.out, "1,1,1,CHANGED\n2,2,2,done\n"), (ran.out + ran.err));
  }
}

// One file that all write to, in a folder of the run's input.
TEST_CASE("changed output: a file that workpackages share by links to it is theirs") {
  for (const char* link :
       {"", "ln -s ../../../../common.log all.log; ", "ln ../../../../common.log all.log; "}) {
    for (const char* kind : {"kind: run, ", ""}) {
      CAPTURE(link);
      CAPTURE(kind);
      const Shell shell;
      shell.sh("touch common.log all.log");
      shell.file("b.yaml",
                 "name: b\noutpath: run\nfileset: {name: f, link: all.log}\n"
                 "parameterset: {name: ps, parameter: {name: i, type: int, _: \"1,2,3\"}}\n"
                 "step: {name: s, use: [ps" +
                     std::string(*link == 0 ? ", f" : "") + "], " + kind + "do: '" + link +
                     "echo v=$i >>all.log'}\n"
                     "patternset: {name: o, pattern: {name: v, type: int, _: 'v=$jube_pat_int'}}\n"
                     "analyser: {name: a, use: o, analyse: {step: s, file: all.log}}\n"
                     "result: {use: a, table: {name: t, style: csv, column: [i, v_last]}}\n");
      const Ran ran = shell.tally("run b.yaml -r -j1");
      CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
      CHECK_MESSAGE(!has(ran.out + ran.err, "CHANGED"), (ran.out + ran.err));
      CHECK_MESSAGE(!has(ran.err, "has changed since"), (ran.out + ran.err));
    }
  }
}

// A shared folder of a step whose name begins with a digit is no workpackage's own.
TEST_CASE("changed output: a shared folder with digits in its name") {
  for (const std::string step : {"1_s", "202611_bench", "000001_s"}) {
    const Shell shell;
    shell.file("b.yaml",
               "name: b\noutpath: run\n"
               "parameterset: {name: ps, parameter: {name: i, type: int, _: \"1,2,3\"}}\n"
               "step: {name: " +
                   step +
                   ", use: ps, kind: run, shared: shd, do: 'echo v=$i >>shd/all.log'}\n"
                   "patternset: {name: o, pattern: {name: v, type: int, _: 'v=$jube_pat_int'}}\n"
                   "analyser: {name: a, use: o, analyse: {step: " +
                   step +
                   ", file: shd/all.log}}\n"
                   "result: {use: a, table: {name: t, style: csv, column: [i, v_last]}}\n");
    const Ran ran = shell.tally("run b.yaml -j1");
    CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
    CHECK_MESSAGE(!has(ran.out, "CHANGED"), (ran.out + ran.err));
  }
}

TEST_CASE("changed output: in JUBE's language the values are JUBE's, and a note says what") {
  for (const char* program : {"\"$TALLY\"", "ln -sf \"$TALLY\" jube; ./jube"}) {
    const Shell shell;
    File file;
    file.step = "";
    shell.file("b.yaml", workflow(file));
    shell.tally("run b.yaml -r");
    shell.sh("echo v=777 >> " + work_of(1) + "/stdout; : > " + work_of(2) + "/stdout");
    const Ran ran = shell.sh(std::string(program) + " result run");
    CHECK(ran.code == 0);
    CHECK_MESSAGE(has(ran.out, "i,v,v_cnt\n1,1,2\n2,,\n"), ran.out);
    CHECK_MESSAGE(
        has(ran.err,
            "note: the output of 2 of 2 workpackages has changed since they "
            "ended: the values are those of the files as they are now; workpackage 0 (s): "),
        ran.err);
    CHECK(has(ran.err, "/stdout' is 6 bytes longer; workpackage 1 (s): "));
  }
}

TEST_CASE("changed output: a child that outlives its command") {
  // The child waits for the test, which waits for the child.
  const std::string child =
      "echo v=$i; (setsid sh -c 'read x < $jube_benchmark_home/go; echo v=777; echo > "
      "$jube_benchmark_home/wrote' 2>/dev/null </dev/null &)";
  for (const std::string step : {kOwn, ""}) {
    CAPTURE(step);
    const Shell shell;
    File file;
    file.step = step;
    file.work = "test $i = 2 && echo v=2 || { " + child + "; }";
    shell.file("b.yaml", workflow(file));
    shell.sh("mkfifo go wrote; timeout 60 \"$TALLY\" run b.yaml -r > out 2>&1");
    CHECK_MESSAGE(has(shell.content("out"), kUnchanged), shell.content("out"));
    shell.sh("timeout 60 sh -c 'echo > go; read x < wrote'");
    const Ran ran = shell.tally("result run");
    CHECK_MESSAGE(has(ran.err, "/stdout' is 6 bytes longer"), ran.err);
    CHECK_MESSAGE(has(ran.out, step.empty() ? "\n1,1,2\n" : "\n1,1,1,CHANGED\n"), ran.out);
  }
}

TEST_CASE("changed output: every analysed file counts, and no other") {
  const struct {
    const char *work, *files, *step;
    bool changed;
  } cases[] = {
      {"echo v=$i > a.log; echo v=$i > b.log", "a.log", "", false},
      {"echo v=$i > a.log; echo v=$i > b.log", "b.log", "", true},
      {"echo v=$i > a.log; echo v=$i > b.log", "*.log", "", true},
      {"echo v=$i > a.log; echo v=$i > b.log", "a.log, b.log", "", true},
      {"mkdir d; echo v=$i > b.log; ln ../work/b.log d/c", "d/c", "", true},
      {"echo v=$i > b.log; ln -s b.log l", "l", "", true},
      {"echo v=$i >&2; echo x > b.log", "stderr", "", false},
      {"echo v=$i > b.log", "b.log", "work_dir: run/wd_$i, ", true},
      {"echo v=$i; echo x > b.log", "stdout", "work_dir: run/wd_$i, ", false},
  };
  for (const std::string kind : {kOwn, ""}) {
    for (const auto& [work, files, step, changed] : cases) {
      CAPTURE(kind);
      CAPTURE(work);
      CAPTURE(files);
      const Shell shell;
      File file;
      file.work = work;
      file.files = files;
      file.step = kind + step;
      shell.file("b.yaml", workflow(file));
      const Ran first = shell.tally("run b.yaml -r");
      CHECK_MESSAGE(!has(first.err, "changed"), first.err);
      shell.sh("echo v=777 >> \"$(ls -d " + work_of(1) + "/b.log run/wd_1/b.log 2>/dev/null)\"");
      const Ran ran = shell.tally("result run");
      CHECK_MESSAGE(has(ran.err, "6 bytes longer") == changed, ran.err);
    }
  }
}

TEST_CASE("changed output: a file that was not there when the workpackage ended") {
  const struct {
    const char *work, *files, *later, *row;
  } cases[] = {
      {"true", "out.log", "echo v=7 > out.log", "1,,,CHANGED"},
      {"true", "*.log", "echo v=7 > out.log", "1,,,CHANGED"},
      {"true", "./d/out.log", "mkdir d; echo v=7 > d/out.log", "1,,,CHANGED"},
      {"true", "out.log", "echo v=7 > x; ln -s x out.log", "1,,,CHANGED"},
      {"echo v=$i > a.log", "a.log, b.log", "echo v=7 > b.log", "1,1,1,CHANGED"},
      {"echo v=$i > a.log", "*.log", "echo v=7 > b.log", "1,1,1,CHANGED"},
      {"echo v=$i > a.log", "*.log", "mkdir b.log", "1,1,1,done"},
      {"echo v=$i > a.log", "[ab].log", "echo v=7 > c.log", "1,1,1,done"},
  };
  for (const std::string kind : {kOwn, ""}) {
    for (const auto& [work, files, later, row] : cases) {
      CAPTURE(kind);
      CAPTURE(work);
      CAPTURE(files);
      CAPTURE(later);
      const Shell shell;
      File file;
      file.step = kind;
      file.work = work;
      file.files = files;
      shell.file("b.yaml", workflow(file));
      CHECK(!has(shell.tally("run b.yaml -r").err, "changed"));
      CHECK(!has(shell.tally("result run").err, "changed"));
      shell.sh("cd " + work_of(1) + " && " + later);
      const Ran ran = shell.tally("result run");
      const bool changed = has(row, "CHANGED");
      CHECK_MESSAGE(has(ran.err, "' was not there") == changed, ran.err);
      CHECK_MESSAGE(has(ran.out, "CHANGED") == (changed && !kind.empty()), ran.out);
      if (changed && !kind.empty())
        CHECK_MESSAGE(has(ran.out, "\n" + std::string(row) + "\n"), ran.out);
      // JUBE's value is the first one, and the count tells of the other.
      if (changed && kind.empty())
        CHECK_MESSAGE((has(ran.out, "\n1,7,1\n") || has(ran.out, "\n1,1,2\n")), ran.out);
    }
  }
  // Each writes a file of its own to a folder that they share, and reads all of them.
  for (const std::string kind : {kOwn, ""}) {
    const Shell shell;
    File file;
    file.step = kind + "work_dir: run/shared, ";
    file.work = "echo v=$i > $i.log";
    file.files = "*.log";
    shell.file("b.yaml", workflow(file));
    const Ran ran = shell.tally("run b.yaml -r -j1");
    CHECK_MESSAGE(!has(ran.err, "changed"), ran.err);
  }
}

TEST_CASE("changed output: the same bytes are no change, wherever and whenever they were written") {
  for (const char* same :
       {"touch run/000000/*/work/stdout", "cp -r run copy; rm -r run; mv copy run",
        "cp -a run copy; rm -r run; mv copy run",
        "mv run elsewhere; mkdir run; mv elsewhere/000000 run/",
        "cd run/000000/000000_s/work; cp stdout x; mv x stdout",
        "echo more >> run/000000/000000_s/work/other", "chmod 400 run/000000/*/work/stdout"}) {
    CAPTURE(same);
    const Shell shell;
    shell.file("b.yaml", workflow({}));
    shell.tally("run b.yaml");
    shell.sh(same);
    const Ran ran = shell.tally("result run");
    CHECK_MESSAGE((has(ran.out, kUnchanged) && !has(ran.err, "changed")), (ran.out + ran.err));
  }
  const Shell shell;  // patterns and files that nobody analysed when it ended
  File file;
  file.work = "echo v=$i; echo v=${i}0 > later.log";
  shell.file("b.yaml", workflow(file));
  shell.tally("run b.yaml");
  shell.sh("echo v=7 >> " + work_of(1) + "/later.log");
  file.files = "later.log";
  shell.file("c.yaml", workflow(file));
  const Ran ran = shell.tally("result run -u c.yaml");
  CHECK_MESSAGE((has(ran.out, "i,v,v_cnt\n1,10,2\n2,20,1\n") && !has(ran.err, "changed")), ran.err);
}

TEST_CASE("changed output: the row is in no sample, reference, baseline, database or chart") {
  const Shell shell;
  File file;
  file.column = "{_: v, better: higher}, {_: v, title: r, relative_to: {i: 1}, reference: '> 0'}";
  file.more = ", database: {name: d, file: d.sqlite, key: [i, v]}, chart: {name: c, x: i, y: v}";
  shell.file("b.yaml", workflow(file));
  CHECK(shell.tally("run b.yaml").code == 0);
  CHECK(shell.tally("run b.yaml").code == 0);
  // The journal has kept the values: they count, and that is said.
  shell.sh(": > run/000001/000000_s/work/stdout");
  Ran ran = shell.tally("result run -i 1");
  CHECK_MESSAGE((has(ran.out, "\n1,1,") && !has(ran.out, "CHANGED") && ran.code == 0), ran.out);
  CHECK_MESSAGE(has(ran.err,
                    "an output file of workpackage 0 (s) has changed since it ended; its "
                    "values are those that the journal kept"),
                ran.err);
  // A pattern that the journal does not know.
  std::string other = workflow(file);
  other.replace(other.find("v=$jube_pat_int"), 15, "v=(\\d+)");
  shell.file("c.yaml", other);
  shell.sh("rm -f d.sqlite");
  ran = shell.tally("result run -i 1 -u c.yaml");
  CHECK_MESSAGE((has(ran.out, "CHANGED") && ran.code == 5), ran.out);
  CHECK_MESSAGE(has(ran.err, "workpackage 0 has output that changed after its end"), ran.err);
  CHECK_MESSAGE(has(ran.err, "1 of 2 rows are CHANGED and is not written to the database"),
                ran.err);
  CHECK(has(shell.content("run/000001/result/c.svg"),
            "1 row has output that changed after its end and is not drawn."));
  CHECK(has(shell.tally("history run").out, "CHANGED"));
  ran = shell.tally("compare run/000000 run/000001");
  CHECK_MESSAGE((ran.code == 1 && has(ran.err, "has output that changed after its end")), ran.err);
}

TEST_CASE("changed output: it never becomes a sample") {
  File file;
  file.column = "{_: v, better: higher}";
  const std::string text = workflow(file);
  std::string other = text;
  other.replace(other.find("v=$jube_pat_int"), 15, "v=(\\d+)");
  // By an update of the results, and while the run goes on.
  const Shell shell;
  shell.file("b.yaml", text);
  shell.file("c.yaml", other);
  CHECK(shell.tally("run b.yaml").code == 0);
  shell.sh("echo v=777 > " + work_of(1) + "/stdout");
  for (int i = 0; i < 2; ++i)
    CHECK(has(shell.tally("result run -u c.yaml").out, "\n1,777,1,CHANGED\n"));
  CHECK(has(shell.tally("result run").out, "\n1,777,1,CHANGED\n"));
  CHECK(has(shell.tally("history run").out, "CHANGED"));
  const Shell during;
  std::string changes = text;
  changes.replace(changes.find("echo v=$i"), 9,
                  "echo v=$i; test $i = 1 || echo v=1000 > ../../000000_s/work/stdout");
  during.file("b.yaml", changes);
  CHECK(has(during.tally("run b.yaml -j1").out, "\n1,1000,1,CHANGED\n"));
  for (int i = 0; i < 2; ++i) CHECK(has(during.tally("result run").out, "\n1,1000,1,CHANGED\n"));
}

// The journal has its samples under the type that the pattern had.
TEST_CASE("changed output: another type of a pattern makes no measurement of it") {
  for (const char* type : {", type: float", ""}) {
    CAPTURE(type);
    const Shell shell;
    File file;
    file.column = "{_: v, better: higher}";
    shell.file("b.yaml", workflow(file));
    CHECK(shell.tally("run b.yaml").code == 0);
    shell.sh("echo v=9999 > " + work_of(1) + "/stdout");
    std::string other = workflow(file);
    other.replace(other.find(", type: int, _: v="), 11, type);
    // `better` asks for a type.
    if (*type == '\0') other.erase(other.find(", better: higher"), 16);
    shell.file("u.yaml", other);
    for (const char* command : {"result run -u u.yaml", "result run"}) {
      const Ran ran = shell.tally(command);
      CHECK_MESSAGE(has(ran.out, "CHANGED\n2,2"), (ran.out + ran.err));
      CHECK_MESSAGE(has(ran.err, "has other content"), ran.err);
    }
    CHECK(!has(shell.tally("history run").out, "9999"));
    shell.file("u.yaml", workflow(file));
    CHECK_MESSAGE(has(shell.tally("result run -u u.yaml").out, "i,v,v_cnt\n1,"), type);
  }
}

TEST_CASE("changed output: of repeats, the others remain") {
  const Shell shell;
  File file;
  file.step = std::string(kOwn) + "repeat: 4, ";
  file.column = "{_: v, statistic: median}";
  std::string text = workflow(file);
  shell.file("b.yaml", text);
  CHECK(shell.tally("run b.yaml").code == 0);
  text.replace(text.find("v=$jube_pat_int"), 15, "v=(\\d+)");
  shell.file("c.yaml", text);
  shell.sh("echo v=777 > run/000000/000000_s/work/stdout");
  const Ran ran = shell.tally("result run -u c.yaml");
  CHECK_MESSAGE((has(ran.out, "3 of 4") && !has(ran.out, "777")), (ran.out + ran.err));
}

TEST_CASE("changed output: a repeat whose output has changed is an error of the run that sees it") {
  const Shell shell;
  File file;
  file.step = std::string(kOwn) + "repeat: 6, ";
  file.work = "if [ $jube_wp_id = 1 ]; then echo v=9 > ../../000000_s/work/stdout; fi; echo v=1";
  shell.file("b.yaml", workflow(file));
  const Ran ran = shell.tally("run b.yaml -r -j1");
  CHECK_MESSAGE((ran.code == 1 && has(ran.err, "has changed since it ended")), (ran.out + ran.err));
}

TEST_CASE("changed output: a value of an earlier step marks the row that shows it") {
  for (const char* change : {"echo v=9 > ", ": > ", "rm "}) {
    CAPTURE(change);
    const Shell shell;
    shell.file("b.yaml",
               "name: b\noutpath: run\n"
               "patternset: [{name: o, pattern: {name: v, type: int, _: v=$jube_pat_int}},\n"
               "  {name: q, pattern: {name: w, type: int, _: w=$jube_pat_int}}]\n"
               "step:\n- {name: s, " +
                   std::string(kOwn) + "do: echo v=1}\n- {name: t, " + kOwn +
                   "depend: s, do: echo w=1}\n"
                   "analyser: {name: a, analyse: [{step: s, file: {use: o, _: stdout}},\n"
                   "  {step: t, file: {use: q, _: stdout}}]}\n"
                   "result: {use: a, table: {name: t, style: csv, column: [v, w]}}\n");
    CHECK(has(shell.tally("run b.yaml").out, "v,w\n1,1\n"));
    shell.sh(change + work_of(1) + "/stdout");
    const Ran ran = shell.tally("result run");
    CHECK_MESSAGE(has(ran.out, "1,CHANGED\n"), (ran.out + ran.err));
  }
}

TEST_CASE("changed output: what workpackages of the run write to a shared file is no change") {
  for (const std::string kind : {kOwn, ""}) {
    CAPTURE(kind);
    const Shell shell;
    File file;
    file.step = kind;
    file.work = "echo v=$i >> ../../shared.log";
    file.files = "../../shared.log";
    shell.file("b.yaml", workflow(file));
    const Ran ran = shell.tally("run b.yaml -r -j1");
    CHECK_MESSAGE(!has(ran.err, "changed"), ran.err);
    shell.sh("echo v=7 >> run/000000/shared.log");
    const Ran later = shell.tally("result run");
    // In Tally's files each workpackage has its own part, as of any file outside its folder.
    CHECK_MESSAGE(has(later.err, kind.empty() ? "the output of 2 of 2 workpackages has changed"
                                              : "4 bytes longer than when workpackage 1 (s) ended"),
                  later.err);
    if (!kind.empty()) CHECK_MESSAGE(has(later.out, kUnchanged), later.out);
  }
}

TEST_CASE("changed output: one whose end is a done_file may still be written to") {
  for (const std::string kind : {kOwn, ""}) {
    CAPTURE(kind);
    const Shell shell;
    std::string text = workflow({});
    text.replace(text.find("do: \""), text.find("\"}\nanalyser") + 1 - text.find("do: \""),
                 "do: {done_file: ready, _: \"echo v=$i\"}");
    if (kind.empty()) text.erase(text.find(kOwn), std::string(kOwn).size());
    shell.file("b.yaml", text);
    shell.tally("run b.yaml");
    shell.sh("for i in run/000000/*/work; do touch $i/ready; done");
    CHECK(shell.tally("continue run").code == 0);
    shell.sh("echo epilogue >> " + work_of(1) + "/stdout");
    Ran ran = shell.tally("result run");
    CHECK_MESSAGE((has(ran.out, kUnchanged) && ran.err.empty()), (ran.out + ran.err));
    shell.sh("echo v=5 > " + work_of(1) + "/stdout");
    ran = shell.tally("result run");
    CHECK_MESSAGE(has(ran.err, "has changed since it ended"), ran.err);
  }
}

TEST_CASE("changed output: a workpackage that runs again has its new output") {
  const Shell shell;
  shell.file("b.yaml", workflow({}));
  shell.tally("run b.yaml");
  shell.sh("echo v=777 > " + work_of(1) + "/stdout");
  CHECK(has(shell.tally("result run").out, "CHANGED"));
  shell.tally("remove run -w 0 -f");
  CHECK(shell.tally("continue run").code == 0);
  const Ran ran = shell.tally("result run");
  CHECK_MESSAGE((has(ran.out, kUnchanged) && !has(ran.err, "changed")), (ran.out + ran.err));
}

TEST_CASE("changed output: `..` behind a link is the folder that the system finds") {
  const char* const work = "mkdir -p a/b; ln -s a/b l; echo v=9 >own; echo v=$i >a/own";
  const char* const unmarked = "i,v,v_cnt\n1,1,1\n2,2,1\n";
  const struct {
    const char *files, *change, *row;  // null: no change
  } cases[] = {
      {"l/../own", "echo v=7 >a/own", "1,7,1,CHANGED"},
      {"l/../own", "echo v=7 >own", nullptr},
      {"l/../own", "mkdir -p c/b; echo v=5 >c/own; rm l; ln -s c/b l", "1,,,CHANGED"},
      {"l/../own", "rm a/own", "1,,,CHANGED"},
      {"./l/./../own", "echo v=7 >a/own", "1,7,1,CHANGED"},
      {"l/../b/../own", "echo v=7 >a/own", "1,7,1,CHANGED"},
      {"l/../ow*", "echo v=7 >a/own", "1,7,1,CHANGED"},
      {"l/../ow*", "echo v=7 >a/own2", "1,1,1,CHANGED"},
      {"l/../ow*", "echo v=7 >own2", nullptr},
      {"l/../own,l/../more", "echo v=7 >a/more", "1,1,1,CHANGED"},
      {"l/../own,l/../more", "echo v=7 >more", nullptr},
  };
  for (const auto& [files, change, row] : cases) {
    CAPTURE(std::string(files));
    CAPTURE(std::string(change));
    const Shell shell;
    shell.file("b.yaml", workflow({.work = work, .files = files}));
    const Ran first = shell.tally("run b.yaml");
    CHECK_MESSAGE(has(first.out, unmarked), (first.out + first.err));
    shell.sh("cd " + work_of(1) + " && " + change);
    for (const char* where : {"run", "moved", "linked"}) {
      if (where == std::string("moved"))
        shell.sh("mkdir other; mv run other/moved; ln -s other/moved .");
      if (where == std::string("linked"))
        shell.sh("ln -s other linked_to; ln -s linked_to/moved linked");
      const Ran ran = shell.tally(std::string("result ") + where);
      CHECK_MESSAGE(
          has(ran.out, row == nullptr ? std::string(unmarked)
                                      : "i,v,v_cnt,status\n" + std::string(row) + "\n2,2,1,done\n"),
          (ran.out + ran.err));
    }
  }
  // In a folder of the user's, where a later run makes a file.
  const Shell shell;
  shell.sh("mkdir -p wd/a/b; ln -s a/b wd/l");
  for (const char* files : {"l/../own", "l/../ow*"}) {
    CAPTURE(files);
    shell.sh("rm -rf run wd/a/own on");
    File file;
    file.step = "kind: run, quiet_check: false, work_dir: wd, ";
    file.work = "[ ! -e ../on -o $i = 2 ] || echo v=1 >a/own";
    file.files = files;
    shell.file("b.yaml", workflow(file));
    CHECK(has(shell.tally("run b.yaml").out, "\n1,,\n2,,\n"));
    CHECK(has(shell.sh("touch on; \"$TALLY\" run b.yaml -j1").out, "\n1,1,1\n2,,\n"));
    CHECK(has(shell.tally("result run -i 0").out, "\n1,,\n2,,\n"));
  }
}

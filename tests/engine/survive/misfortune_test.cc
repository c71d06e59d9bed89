// Misfortunes of long runs, each with the message that a person sees.
#include <doctest/doctest.h>
#include <unistd.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::count_of;
using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

std::string many(int count) {
  return "name: many\noutpath: run\nparameterset:\n  name: p\n  parameter: {name: i, mode: python, "
         "_: \"','.join(map(str, range(" +
         std::to_string(count) + ")))\"}\nstep: {name: s, use: p, do: echo $i}\n";
}

// A step that says that it is there, then waits for ever; a test ends it.
constexpr const char* kWaits = R"yaml(name: waits
outpath: run
parameterset:
  name: p
  parameter: {name: i, type: int, _: "1,2"}
step:
  - name: s
    use: p
    do: >-
      echo s$i >> $jube_benchmark_home/log; mkfifo fifo;
      test -e $jube_benchmark_home/free || { echo > $jube_benchmark_home/there; read x < fifo; }
)yaml";

// Starts `run` of waits.yaml in a session of its own, with SIGINT as a terminal's commands have it,
// and waits until its first command is there.
constexpr const char* kStartWaiting =
    "mkfifo there; setsid env --default-signal=INT \"$TALLY\" run waits.yaml >first.out "
    "2>first.err & engine=$!; "
    "read x <there; ";

// Runs `command` as a user who is not root; as it is when we are not.
std::string as_user(const std::string& command) {
  if (geteuid() != 0) return command;
  return "setpriv --reuid=65534 --regid=65534 --clear-groups sh -c '" + command + "'";
}

}  // namespace

TEST_CASE("a disk that fills up: said once, and continued when there is room") {
  const Shell shell;
  shell.file("many.yaml", many(200));
  const bool mounts = shell.sh("mkdir full && unshare -m mount -t tmpfs none full").code == 0;
  Ran ran;
  std::string folder = ".";
  if (mounts) {
    folder = "full";
    ran = shell.sh(
        "unshare -m sh -c 'mount -t tmpfs -o size=400k none full && cp many.yaml full && cd full "
        "&& \"$TALLY\" run many.yaml; code=$?; mount -o remount,size=20m . && cd . && "
        "\"$TALLY\" continue run >../second.out; echo $? >../second.code; "
        "ls -d run/000000/*/done | wc -l >../done; exit $code'");
  } else {
    // No mounts here: a file may not grow beyond a limit, which fails writes in the same way.
    ran = shell.sh(
        "(trap '' XFSZ; ulimit -f 128; \"$TALLY\" run many.yaml); code=$?; \"$TALLY\" continue run "
        ">second.out; echo $? >second.code; ls -d run/000000/*/done | wc -l >done; exit $code");
  }
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "tally: error: run/000000/journal.sqlite: "), ran.err);
  if (mounts) {
    CHECK_MESSAGE(has(ran.err,
                      "journal.sqlite: database or disk is full: No space left on device; free "
                      "some space and "
                      "continue the run: "
                      "nothing that finished is lost"),
                  ran.err);
  }
  CHECK(count_of(shell.content("second.code"), "0") == 1);
  CHECK(shell.content("done") == "200\n");
}

TEST_CASE("an output folder that may not be written") {
  const Shell shell;
  shell.file("place/many.yaml", many(1));
  shell.sh("chmod 755 . && chmod 555 place");
  const Ran ran = shell.sh("cd place && " + as_user("\"$TALLY\" run many.yaml"));
  CHECK(ran.code == 2);
  CHECK(ran.err ==
        "tally: error: run: cannot make the folder: Permission denied; choose a folder that you "
        "may write to with --outpath\n");
  shell.sh("chmod 755 place");
}

TEST_CASE("an include that may not be read") {
  const Shell shell;
  shell.file("in.yaml",
             "name: x\noutpath: run\nparameterset: !include sets.yaml\n"
             "step: {name: s, use: p, do: \"true\"}\n");
  shell.file("sets.yaml", "name: p\n");
  shell.sh("chmod 777 . && chmod 000 sets.yaml");
  const Ran ran = shell.sh(as_user("\"$TALLY\" run in.yaml"));
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err,
                    "in.yaml:3:15: error: cannot read 'sets.yaml': Permission denied\n"
                    "    parameterset: !include sets.yaml\n"
                    "                  ^~~~~~~~\n"),
                ran.err);
  CHECK(!shell.exists("run"));
}

TEST_CASE("a work directory that vanishes under a step, and a whole run that vanishes") {
  const Shell shell;
  shell.file("gone.yaml",
             "name: g\noutpath: run\nstep:\n  - name: s\n    do: [echo one, rm -rf ../work, echo "
             "two]\n");
  Ran ran = shell.tally("run gone.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out + ran.err, "failed: 1 of 1 (s): " + shell.root() +
                                           "/run/000000/000000_s/work: the working directory is "
                                           "not there"),
                ran.out);
  shell.sh("rm -rf run/000000");
  ran = shell.tally("continue run");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "tally: error: "), ran.err);
}

TEST_CASE("output with NUL bytes and invalid UTF-8 gives its values") {
  const Shell shell;
  shell.file("odd.yaml", R"yaml(name: odd
outpath: run
patternset:
  name: pt
  pattern: [{name: v, type: int, _: "v=$jube_pat_int"}, {name: u, type: int, _: "[^é]v=$jube_pat_int"}]
step: {name: s, do: "printf 'a\\000b\\nv=1\\n\\377\\376 v=2\\n\\303(v=3\\n'"}
analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}
result: {use: a, table: {name: t, style: csv, column: [v_cnt, v_last, u_cnt, u_last]}}
)yaml");
  const Ran ran = shell.tally("run -r odd.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.out, "v_cnt,v_last,u_cnt,u_last\n3,3,3,3\n"), ran.out);
}

TEST_CASE("an output file of 10 GB") {
  const Shell shell;
  shell.file("large.yaml", R"yaml(name: large
outpath: run
patternset: {name: pt, pattern: {name: v, type: int, _: "v=$jube_pat_int"}}
step: {name: s, do: "echo v=1; truncate -s $$SIZE stdout || exit 1; echo v=42"}
analyser: {name: a, use: pt, analyse: {step: s, file: stdout}}
result: {use: a, table: {name: t, style: csv, column: [v_first, v_last, v_cnt]}}
)yaml");
  if (shell.sh("truncate -s 10G probe").code != 0) {
    MESSAGE("skipped: the file system holds no file of 10 GB");
    return;
  }
  shell.sh("rm probe");
  // No more memory of its own than a small file needs: 600 MB of data fail where 10 GB would be
  // read.
#ifdef TALLY_SANITIZED
  const std::string limit = "export SIZE=500M; ";  // sanitizers reserve terabytes and are slow
#else
  const std::string limit = "export SIZE=10G; ulimit -d 600000; ";
#endif
  const Ran ran = shell.sh(limit + "\"$TALLY\" run -r large.yaml");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  CHECK_MESSAGE(has(ran.out, "v_first,v_last,v_cnt\n1,42,2\n"), ran.out);
}

TEST_CASE("a step that forks and hangs is ended whole at its time limit") {
  const Shell shell;
  shell.file("hang.yaml",
             "name: h\noutpath: run\nstep:\n  - name: s\n    timeout: 3s\n    do: |\n"
             "      sleep 600 & echo $! >>$jube_benchmark_home/pids\n"
             "      (setsid sleep 600 & echo $! >>$jube_benchmark_home/pids)\n"
             "      echo $$ >>$jube_benchmark_home/pids\n"
             "      sleep 600\n");
  const Ran ran = shell.tally("run hang.yaml");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.out + ran.err, "failed: 1 of 1 (s): time limit of 3s reached (hang.yaml:"),
                ran.out);
  // Each has ended: gone, or at most waiting for its parent to look at its exit status.
  const Ran left = shell.sh(
      "alive() { test -d /proc/$1 && ! grep -q '^State:.Z' /proc/$1/status 2>/dev/null; }; "
      "while read pid; do i=0; while alive $pid && test $i -lt 300; do sleep 0.1; i=$((i+1)); "
      "done; "
      "alive $pid && echo $pid; done <pids; wc -l <pids");
  CHECK(left.out == "3\n");
}

TEST_CASE("ctrl-C ends the children and leaves a run that continues; a second engine is refused") {
  const Shell shell;
  shell.file("waits.yaml", kWaits);
  const Ran ran = shell.sh(std::string(kStartWaiting) +
                           "\"$TALLY\" continue run >second.out 2>second.err; second=$?; "
                           "kill -INT -$engine; wait $engine; echo $? >first.code; exit $second");
  CHECK(ran.code == 1);
  const std::string second = shell.content("second.err");
  CHECK_MESSAGE(has(second, "tally: error: run 000000 is in use by tally on host "), second);
  CHECK_MESSAGE(has(second, "; wait for it to end, or end it, then continue\n"), second);
  CHECK(shell.content("first.code") == "1\n");
  const std::string first = shell.content("first.out") + shell.content("first.err");
  CHECK_MESSAGE(has(first, "Interrupted: nothing that finished is lost; `"), first);
  CHECK_MESSAGE(has(first, "/tally continue run --id 0` resumes the run."), first);
  CHECK(shell.content("log") == "s1\n");
  // Nobody holds the pipe that the child was reading any more.
  CHECK(shell.sh("timeout 0.2 sh -c 'echo >run/000000/000000_s/work/fifo'").code == 124);
  shell.file("free", "");
  shell.sh("rm run/000000/000000_s/work/fifo");
  CHECK(shell.tally("continue run").code == 0);
  CHECK(shell.content("log") == "s1\ns1\ns2\n");
}

TEST_CASE("kill -9 of the engine while a command runs: continue ends what it left") {
  const Shell shell;
  shell.file("waits.yaml", kWaits);
  shell.sh(std::string(kStartWaiting) + "kill -KILL $engine; wait $engine");
  shell.file("free", "");
  shell.sh("mv run/000000/000000_s/work/fifo old");
  CHECK(shell.tally("continue run").code == 0);
  CHECK(shell.sh("timeout 0.2 sh -c 'echo >old'").code == 124);  // its reader has been ended
  CHECK(shell.content("log") == "s1\ns1\ns2\n");
}

namespace {

// Lets each read of the journal by `command` fail once; how many of them made the command fail.
int failed_reads(const Shell& shell, const std::string& command, const std::string& error,
                 const std::string& words) {
  const std::string journal = shell.root() + "/run/000000/journal.sqlite";
  int failed = 0;
  for (int when = 1;; ++when) {
    REQUIRE(shell.sh("rm -rf run; cp -r kept run").code == 0);
    const Ran ran = shell.sh("strace -o trace -P " + journal + " -P " + journal +
                             "-wal -e trace=pread64,read -e inject=pread64,read:error=" + error +
                             ":when=" + std::to_string(when) + " \"$TALLY\" " + command);
    if (!has(shell.content("trace"), "(INJECTED)")) return failed;
    CAPTURE(command);
    CAPTURE(error);
    CAPTURE(when);
    CHECK_MESSAGE(!has(ran.err + ran.out, "damaged"), ran.err);
    CHECK_MESSAGE(!has(ran.err, "start the run again"), ran.err);
    if (ran.code == 0) continue;
    ++failed;
    CHECK_MESSAGE(has(ran.err, words), ran.err);
    CHECK_MESSAGE(has(ran.err, "nothing that finished is lost"), ran.err);
  }
}

}  // namespace

TEST_CASE("an I/O error of the journal is said and passes; it is no damage") {
  const Shell shell;
  if (shell.sh("strace -o /dev/null -e inject=all:error=EIO:when=60000 true").code != 0) {
    MESSAGE("skipped: strace cannot be used here");
    return;
  }
  shell.file("many.yaml", many(40));
  SUBCASE("a journal that was closed") {
    REQUIRE(shell.tally("run many.yaml").code == 0);
    REQUIRE(shell.sh("cp -r run kept").code == 0);
  }
  SUBCASE("a journal with a log, as a kill leaves it") {
    shell.sh(
        "strace -o /dev/null -e trace=mkdir -e inject=mkdir:signal=KILL:when=30 \"$TALLY\" run "
        "many.yaml");
    REQUIRE(shell.sh("cp -r run kept; test -s kept/000000/journal.sqlite-wal").code == 0);
  }
  // Commands that only read take a copy of a journal with a log, and try again when that fails.
  const bool with_log = shell.sh("test -s kept/000000/journal.sqlite-wal").code == 0;
  for (const std::string command : {"continue run", "info run -i 0", "result run"}) {
    const int least = with_log && command != "continue run" ? 0 : 2;
    CHECK(failed_reads(shell, command, "EIO", "Input/output error") >= least);
    CHECK(failed_reads(shell, command, "ESTALE", "Stale file handle") >= least);
  }
  CHECK(shell.tally("continue run").code == 0);
}

TEST_CASE("a journal that cannot be made: the message's advice is right") {
  const Shell shell;
  if (shell.sh("strace -o /dev/null -e inject=all:error=EIO:when=60000 true").code != 0) {
    MESSAGE("skipped: strace cannot be used here");
    return;
  }
  shell.file("many.yaml", many(3));
  size_t refused = 0;
  for (const char* fault :
       {"fdatasync:error=EIO", "pwrite64:error=EIO:when=1+", "pwrite64:error=EIO:when=15..40",
        "pwrite64:error=ENOSPC:when=30..35", "pwrite64:error=ENOSPC:when=1..3"}) {
    CAPTURE(std::string(fault));
    shell.sh("rm -rf run");
    const Ran ran = shell.sh("strace -f -o /dev/null -e inject=" + std::string(fault) +
                             " \"$TALLY\" run many.yaml");
    CAPTURE(ran.err);
    CHECK(ran.code == 1);
    if (has(ran.err, "start the run again")) {
      ++refused;
      CHECK(!has(ran.err, "nothing that finished is lost"));
      CHECK(!shell.exists("run/000000"));
      CHECK(shell.tally("run many.yaml").code == 0);
    } else {
      CHECK(shell.tally("continue run").code == 0);
    }
  }
  CHECK(refused >= 3);
}

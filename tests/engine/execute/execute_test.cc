// The run loop: order and ids, folders and marks as JUBE's (golden values from runs of JUBE 2.5.1
// on the same steps), failures, cycles, shared operations, continued runs.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "tests/engine/execute/run_fixture.h"

using namespace tally;
using namespace tally::testing;

namespace {

std::string link_target(const std::string& path) {
  std::array<char, 512> target{};
  const ssize_t size = readlink(path.c_str(), target.data(), target.size());
  return size > 0 ? std::string(target.data(), static_cast<size_t>(size)) : std::string();
}

}  // namespace

TEST_CASE("a step over two values: folders, output, marks") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2")}));
  run.add(step_of("gen", {"echo run $p $jube_wp_id"}, {"ps"}));
  const RunSummary summary = run.run();
  CHECK(summary.done == 2);
  CHECK(summary.exit_code() == 0);
  CHECK(run.file("000000_gen/work/stdout") == "run 1 0\n");
  CHECK(run.file("000001_gen/work/stdout") == "run 2 1\n");
  CHECK(run.file("000001_gen/work/stderr").empty());
  CHECK(run.file("000000_gen/done").size() == 19);
  CHECK(run.has("timestamps"));
  CHECK(run.has("configuration.xml"));
  CHECK(run.has("run.log"));
}

// JUBE 2.5.1, steps z (depend sb,sa, iterations 2), sa (2 iterations), sb (3), w (depend z).
TEST_CASE("ids, iterations and parents are JUBE's") {
  RunFixture run;
  run.add(set_of("pa", {parameter("a", "1")}));
  Step z = step_of(
      "z",
      {"echo $jube_wp_id z $jube_wp_iteration sa $jube_wp_parent_sa_id sb $jube_wp_parent_sb_id"},
      {}, {"sb", "sa"});
  z.iterations.value = "2";
  Step sa = step_of("sa", {"echo $jube_wp_id sa $a $jube_wp_iteration"}, {"pa"});
  sa.iterations.value = "2";
  Step sb = step_of("sb", {"echo $jube_wp_id sb $jube_wp_iteration"});
  sb.iterations.value = "3";
  run.add(z);
  run.add(sa);
  run.add(sb);
  run.add(step_of("w", {"echo $jube_wp_id w $jube_wp_iteration"}, {}, {"z"}));
  CHECK(run.run().done == 29);
  CHECK(run.all_stdout() ==
        "0 sa 1 0\n1 sa 1 1\n2 sb 0\n3 sb 1\n4 sb 2\n"
        "5 z 0 sa 0 sb 2\n6 z 1 sa 0 sb 2\n7 z 6 sa 1 sb 2\n8 z 7 sa 1 sb 2\n"
        "9 z 2 sa 0 sb 3\n10 z 3 sa 0 sb 3\n11 z 8 sa 1 sb 3\n12 z 9 sa 1 sb 3\n"
        "13 z 4 sa 0 sb 4\n14 z 5 sa 0 sb 4\n15 z 10 sa 1 sb 4\n16 z 11 sa 1 sb 4\n"
        "17 w 0\n18 w 1\n19 w 6\n20 w 7\n21 w 2\n22 w 3\n23 w 8\n24 w 9\n25 w 4\n26 w 5\n27 w 10\n"
        "28 w 11\n");
  CHECK(link_target(run.directory.path + "/000005_z/work/sb") == "../../000002_sb/work");
}

TEST_CASE("an inactive workpackage gives its id back") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2,3")}));
  Step step = step_of("s", {"echo $p"}, {"ps"});
  step.active.value = "$p != 2";
  run.add(step);
  CHECK(run.run().done == 2);
  CHECK(run.file("000000_s/work/stdout") == "1\n");
  CHECK(run.file("000001_s/work/stdout") == "3\n");
}

TEST_CASE("a failing workpackage: JUBE's message, siblings go on, no children") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2,3")}));
  run.add(step_of("gen", {"if [ $p = 2 ]; then echo bad >&2; exit 4; fi; echo run $p"}, {"ps"}));
  run.add(step_of("post", {"echo post $p"}, {}, {"gen"}));
  const RunSummary summary = run.run();
  CHECK(summary.done == 4);
  CHECK(summary.failed == 1);
  CHECK(summary.exit_code() == 1);
  const std::string work = run.directory.path + "/000001_gen/work";
  CHECK(run.file("000001_gen/error") ==
        "Error (returncode <> 0) while running \"if [ 2 = 2 ]; then echo bad >&2; exit 4; fi; echo "
        "run "
        "2\" in directory \"" +
            work + "\"\nMessage in \"" + work + "/stderr\":\nbad\nIt ended with exit code 4");
  CHECK_FALSE(run.has("000001_gen/done"));
  CHECK(run.file("000003_post/work/stdout") == "post 1\n");
  CHECK(run.file("000004_post/work/stdout") == "post 3\n");
  CHECK_FALSE(run.has("000005_post"));
}

TEST_CASE("-e stops at the first failure; continue takes up the rest") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2,3")}));
  run.add(step_of("s", {"test $p != 2"}, {"ps"}));
  run.settings.exit_on_error = true;
  RunSummary summary = run.run();
  CHECK(summary.done == 1);
  CHECK(summary.failed == 1);
  CHECK(summary.open == 1);
  run.settings.exit_on_error = false;
  summary = run.continue_run();
  CHECK(summary.done == 2);
  CHECK(summary.failed == 1);
  CHECK(summary.open == 0);
}

TEST_CASE("cycles and break_file") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,3")}));
  Step step = step_of(
      "post", {"echo cyc $jube_wp_cycle; if [ $p = 3 ]; then touch brk; fi", "echo c"}, {"ps"});
  step.operations[0].break_file.value = "brk";
  step.cycles.value = "2";
  run.add(step);
  CHECK(run.run().done == 2);
  CHECK(run.file("000000_post/work/stdout") == "cyc 0\nc\ncyc 1\nc\n");
  CHECK(run.file("000001_post/work/stdout") == "cyc 0\n");
}

TEST_CASE("error_file and done_file; a waiting workpackage is asked again by continue") {
  RunFixture run;
  Step bad = step_of("y", {"touch ee", "echo never"});
  bad.operations[0].error_file.value = "ee";
  Step slow = step_of("x", {"echo 1", "echo then"});
  slow.operations[0].done_file.value = "ready";
  run.add(bad);
  run.add(slow);
  RunSummary summary = run.run();
  CHECK(summary.failed == 1);
  CHECK(summary.waiting == 1);
  CHECK(run.file("000000_y/error") ==
        "Error file \"ee\" found after running the command \"touch ee\".");
  CHECK(run.has("000001_x/wp_done_00"));
  CHECK(run.continue_run().waiting == 1);
  CHECK(run.file("000001_x/work/stdout") == "1\n");
  REQUIRE(write_file(run.directory.path + "/000001_x/work/ready", ""));
  summary = run.continue_run();
  CHECK(summary.waiting == 0);
  CHECK(summary.done == 1);
  CHECK(run.file("000001_x/work/stdout") == "1\nthen\n");
}

TEST_CASE("max_async holds back what would be too many at once") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2,3")}));
  Step step = step_of("s", {"echo $p"}, {"ps"});
  step.max_async.value = "1";
  step.operations[0].done_file.value = "ready";
  run.add(step);
  RunSummary summary = run.run();  // JUBE: all 3, open 2, wait 1
  CHECK(summary.waiting == 1);
  CHECK(summary.open == 2);
  REQUIRE(write_file(run.directory.path + "/000000_s/work/ready", ""));
  summary = run.continue_run();
  CHECK(summary.done == 1);
  CHECK(summary.waiting == 1);
  CHECK(summary.open == 1);
}

TEST_CASE("a shared operation runs once, by the last to arrive, without its own jube_wp_id") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2")}));
  Step step = step_of("gen", {"echo run $p", "echo [$jube_wp_id] [$p]", "echo after $p"}, {"ps"});
  step.shared = "shr";
  step.operations[1].shared = true;
  run.add(step);
  run.add(step_of("post", {"echo post $p"}, {}, {"gen"}));
  CHECK(run.run().done == 4);
  CHECK(run.file("gen_shr/stdout") == "[] [2]\n");
  CHECK(run.file("000000_gen/work/stdout") == "run 1\nafter 1\n");
  CHECK(run.file("000001_gen/work/stdout") == "run 2\nafter 2\n");
  CHECK(link_target(run.directory.path + "/000000_gen/work/shr") == "../../gen_shr");
  // The one that ran it goes on first: its child is the first too.
  CHECK(run.file("000002_post/work/stdout") == "post 2\n");
  CHECK(run.file("000003_post/work/stdout") == "post 1\n");
}

TEST_CASE("a shared operation that waits for what may not begin before it is told") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2,3")}));
  Step step = step_of("s", {"echo $p", "echo all"}, {"ps"});
  step.shared = "shr";
  step.operations[1].shared = true;
  const char* by = nullptr;
  SUBCASE("max_async") {
    step.max_async.value = "1";
    by = "max_async";
  }
  SUBCASE("procs") {
    step.procs.value = "2";
    by = "procs";
  }
  SUBCASE("procs below max_async") {
    step.max_async.value = "10";
    step.procs.value = "2";
    by = "procs";
  }
  SUBCASE("GPUs") {
    step.gpu_slots.value = "1";
    run.parts.gpus = {"0"};
    by = "gpu_slots";
  }
  SUBCASE("nothing") {}
  run.add(step);
  const RunSummary summary = run.run();
  REQUIRE(summary.blocked.size() == (by ? 1 : 0));
  if (by) {
    CHECK(summary.blocked[0].step == 0);
    CHECK(std::string(summary.blocked[0].by) == by);
    CHECK(summary.done == 0);
  } else {
    CHECK(summary.done == 3);
  }
}

TEST_CASE("a shared operation does not wait for a sibling that failed, and its failure fails all") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2,3")}));
  Step step =
      step_of("gen", {"test $p != 3", "echo shared; test ! -e $jube_benchmark_home/bad"}, {"ps"});
  step.shared = "shr";
  step.operations[1].shared = true;
  run.add(step);
  SUBCASE("well") {
    const RunSummary summary = run.run();
    CHECK(summary.done == 2);
    CHECK(summary.failed == 1);
    CHECK(run.file("gen_shr/stdout") == "shared\n");
  }
  SUBCASE("badly") {
    run.folder.write("bad", "");
    const RunSummary summary = run.run();
    CHECK(summary.done == 0);
    CHECK(summary.failed == 3);
    CHECK(run.file("000000_gen/error") == "shared operation failed in workpackage 1");
  }
}

TEST_CASE("a shared operation that is tried again: its siblings wait until somebody has run it") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2,3")}));
  const std::string mark = run.folder.path() + "/tried";
  Step step =
      step_of("gen",
              {"echo $p", "test -e " + mark + " || { touch " + mark + "; exit 1; }; echo made",
               "cat ../../gen_shr/stdout"},
              {"ps"});
  step.shared = "shr";
  step.retry.value = "1";
  step.operations[1].shared = true;
  run.add(step);
  CHECK(run.run().done == 3);
  CHECK(run.file("gen_shr/stdout") == "made\n");
  for (const char* folder : {"000000_gen", "000001_gen", "000002_gen"}) {
    CHECK(!run.has(std::string(folder) + "/work.failed.2"));
    CHECK(run.file(std::string(folder) + "/work/stdout").find("\nmade\n") != std::string::npos);
  }
  // Only the one that ran it began anew.
  CHECK(!run.has("000000_gen/work.failed.1"));
  CHECK(run.has("000002_gen/work.failed.1"));
}

TEST_CASE("do: output files, work directories, active, empty commands") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1")}));
  Step step = step_of("s", {"echo one; echo err >&2", "  ; echo x;  ", "echo never", " ;; ", "pwd"},
                      {"ps"});
  step.operations[0].stdout_file.value = "other.out";
  step.operations[0].stderr_file.value = "other.out";
  step.operations[0].work_dir.value = "wd_$p";
  step.operations[2].active.value = "$p == 2";
  run.add(step);
  CHECK(run.run().done == 1);
  CHECK(run.file("000000_s/work/other.out") == "one\nerr\n");
  CHECK(run.has("000000_s/work/wd_1"));
  CHECK(run.file("000000_s/work/stdout") == "x\n" + run.directory.path + "/000000_s/work\n");
}

TEST_CASE("suffix, alternative work_dir, do_log") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1")}));
  Step step = step_of("s", {"echo $p"}, {"ps"});
  step.suffix.value = "x_$p";
  step.work_dir.value = "alt/w_$p";
  step.do_log_file.value = "do_log";
  run.add(step);
  CHECK(run.run().done == 1);
  CHECK(run.has("000000_s_x_1/done"));
  CHECK(run.has("000000_s_x_1/work"));
  std::string text;
  REQUIRE(read_file(run.folder.path() + "/alt/w_1/stdout", &text));
  CHECK(text == "1\n");
  const std::string log = run.file("000000_s_x_1/do_log");
  CHECK(log.rfind("#!/bin/sh\n\n", 0) == 0);
  const std::string end = "\ncd " + run.folder.path() + "/alt/w_1\necho 1\n";
  CHECK(log.substr(log.size() - end.size()) == end);
}

TEST_CASE("-j runs workpackages at once, across steps") {
  // Each waits for the other: one at a time they would never end.
  RunFixture run;
  run.add(step_of("a", {"touch $jube_benchmark_home/a; while [ ! -e $jube_benchmark_home/b ]; do "
                        "sleep 0.01; done"}));
  run.add(step_of("b", {"touch $jube_benchmark_home/b; while [ ! -e $jube_benchmark_home/a ]; do "
                        "sleep 0.01; done"}));
  run.settings.jobs = 2;
  CHECK(run.run().done == 2);
}

TEST_CASE("procs widens one step, as JUBE's pool does") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2")}));
  Step step =
      step_of("a",
              {"touch $jube_benchmark_home/f$p; while [ ! -e $jube_benchmark_home/f1 -o ! -e "
               "$jube_benchmark_home/f2 ]; do sleep 0.01; done"},
              {"ps"});
  step.procs.value = "2";
  run.add(step);
  CHECK(run.run().done == 2);
}

TEST_CASE("a value that cannot be computed fails its workpackage only") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,0,2"), parameter("q", "4 // $p", Mode::python)}));
  run.add(step_of("s", {"echo $q"}, {"ps"}));
  const RunSummary summary = run.run();
  CHECK(summary.done == 2);
  CHECK(summary.failed == 1);
  CHECK(run.file("000000_s/work/stdout") == "4\n");
  CHECK(run.file("000002_s/work/stdout") == "2\n");
  CHECK(run.file("000001_s/error").find("zero") != std::string::npos);
}

TEST_CASE("continue of a finished run does nothing again") {
  RunFixture run;
  run.add(set_of("ps", {parameter("p", "1,2")}));
  run.add(step_of("a", {"echo a $p"}, {"ps"}));
  run.add(step_of("b", {"echo b $p"}, {}, {"a"}));
  CHECK(run.run().done == 4);
  CHECK(run.continue_run().done == 4);
  CHECK(run.all_stdout() == "a 1\na 2\nb 1\nb 2\n");
}

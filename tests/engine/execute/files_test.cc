// File sets and substitution sets; layouts and messages compared with JUBE 2.5.1's.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>

#include "engine/workspace/substitute_files.h"
#include "tests/engine/execute/run_fixture.h"

using namespace tally;
using namespace tally::testing;

namespace {

FileCopy copy_of(const RunFixture& run, const std::string& source, bool link = false) {
  FileCopy copy;
  copy.link = link;
  copy.source.value = source;
  copy.file_path = run.folder.path();
  return copy;
}

Prepare prepare_of(const std::string& command) {
  Prepare prepare;
  prepare.command.value = command;
  return prepare;
}

FileSet files_of(const std::string& name, std::vector<std::variant<FileCopy, Prepare>> entries) {
  FileSet set;
  set.name.value = name;
  set.entries = std::move(entries);
  return set;
}

int mode_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<int>(info.st_mode & 07777) : -1;
}

SubstituteSet substitution(const std::string& name, const std::string& in, const std::string& out,
                           std::vector<Substitution> subs) {
  SubstituteSet set;
  set.name.value = name;
  IoFile io;
  io.in.value = in;
  io.out.value = out;
  set.files.push_back(io);
  set.substitutions = std::move(subs);
  return set;
}

Substitution sub(const std::string& source, const std::string& dest, bool regex = false) {
  Substitution s;
  s.source.value = source;
  s.dest.value = dest;
  s.regex = regex;
  return s;
}

}  // namespace

TEST_CASE("a folder that holds the run is not copied into it without an end") {
  RunFixture run;
  FileCopy all = copy_of(run, ".");
  all.target.value = "all";
  run.benchmark.file_sets["fs"] = files_of("fs", {all});
  run.add(step_of("s", {"echo run"}, {"fs"}));
  CHECK(run.run().failed == 1);
  const std::string why = message(run.stored().at(0).workpackage.outcome);
  CHECK_MESSAGE(why.find("which is in it; name what is to be copied") != std::string::npos, why);
}

TEST_CASE("copy, rename, link, prepare") {
  RunFixture run;
  run.folder.write("in1.txt", "one #P#\n", 0750);
  run.folder.write("in2.txt", "two #P#\n");
  run.folder.write("sd/a1.txt", "1");
  run.folder.write("sd/sub/f", "x");
  FileCopy renamed = copy_of(run, "in1.txt");
  renamed.target.value = "renamed.txt";
  FileCopy from_dir = copy_of(run, "a*.txt,sub");
  from_dir.source_dir = "sd";
  from_dir.target_dir = "td/$p";
  FileCopy link = copy_of(run, "in2.txt", true);
  link.target.value = "ln";
  FileCopy inactive = copy_of(run, "in2.txt");
  inactive.target.value = "no";
  inactive.active.value = "$p == 2";
  run.benchmark.file_sets["fs"] = files_of("fs", {copy_of(run, "in*.txt"), renamed, from_dir, link,
                                                  inactive, prepare_of("echo prepared $p")});
  run.add(set_of("ps", {parameter("p", "1")}));
  run.add(step_of("s", {"echo run"}, {"ps", "fs"}));
  REQUIRE(run.run().done == 1);
  const std::string work = run.directory.path + "/000000_s/work/";
  CHECK(run.file("000000_s/work/stdout") == "prepared 1\nrun\n");
  CHECK(run.file("000000_s/work/in2.txt") == "two #P#\n");
  CHECK(mode_of(work + "renamed.txt") == 0750);
  CHECK(run.file("000000_s/work/td/1/a1.txt") == "1");
  CHECK(run.file("000000_s/work/td/1/sub/f") == "x");
  CHECK_FALSE(run.has("000000_s/work/no"));
  std::array<char, 256> target{};
  REQUIRE(readlink((work + "ln").c_str(), target.data(), target.size()) > 0);
  CHECK(std::string(target.data()) == "../../../../in2.txt");
}

TEST_CASE("existing targets are not overwritten") {
  RunFixture run;
  run.folder.write("a.txt", "first");
  run.folder.write("b.txt", "second");
  FileCopy first = copy_of(run, "a.txt");
  first.target.value = "t";
  FileCopy second = copy_of(run, "b.txt");
  second.target.value = "t";
  run.benchmark.file_sets["fs"] = files_of("fs", {first, second});
  run.add(step_of("s", {"true"}, {"fs"}));
  CHECK(run.run().done == 1);
  CHECK(run.file("000000_s/work/t") == "first");
}

TEST_CASE("rel_path_ref internal: from the work directory") {
  RunFixture run;
  FileCopy copy = copy_of(run, "made.txt");
  copy.internal = true;
  copy.target.value = "again.txt";
  run.benchmark.file_sets["fs"] = files_of("fs", {prepare_of("echo x > made.txt"), copy});
  run.add(step_of("s", {"true"}, {"fs"}));
  CHECK(run.run().done == 1);
  CHECK(run.file("000000_s/work/again.txt") == "x\n");
}

TEST_CASE("no match fails that workpackage only, in JUBE's words") {
  RunFixture run;
  run.folder.write("here_1", "");
  run.benchmark.file_sets["fs"] = files_of("fs", {copy_of(run, "here_$p*")});
  run.add(set_of("ps", {parameter("p", "1,2")}));
  run.add(step_of("s", {"echo 1"}, {"ps", "fs"}));
  const RunSummary summary = run.run();
  CHECK(summary.done == 1);
  CHECK(summary.failed == 1);
  CHECK(run.file("000001_s/error") == "no files found using \"here_2*\"");
}

TEST_CASE("substitution: in order, mode kept, append, new folders, one file after the other") {
  RunFixture run;
  run.folder.write("in1", "#P# one #Q#\n", 0755);
  run.folder.write("in2", "#P# two\n");
  run.benchmark.file_sets["fs"] = files_of("fs", {copy_of(run, "in1,in2")});
  SubstituteSet set = substitution("ss", "in1", "new/out", {sub("#P#", "#Q#"), sub("#Q#", "$p$p")});
  IoFile io;
  io.in.value = "in2";
  io.out.value = "new/out";
  io.append = true;
  set.files.push_back(io);
  io.in.value = "new/out";
  io.out.value = "last";
  io.append = false;
  set.files.push_back(io);
  run.benchmark.substitute_sets["ss"] = set;
  run.add(set_of("ps", {parameter("p", "1")}));
  run.add(step_of("s", {"true"}, {"ps", "fs", "ss"}));
  REQUIRE(run.run().done == 1);
  CHECK(run.file("000000_s/work/new/out") == "11 one 11\n11 two\n");
  CHECK(run.file("000000_s/work/last") == "11 one 11\n11 two\n");
  CHECK(mode_of(run.directory.path + "/000000_s/work/last") == 0644);
}

// Golden: Python's re.sub.
TEST_CASE("substitution of whole lines: what is the source alone goes, or is replaced") {
  RunFixture run;
  run.folder.write("in", "--mem=\n--mem=3\n  --mem= \nkept --mem=\n#A#\n--mem=");
  run.benchmark.file_sets["fs"] = files_of("fs", {copy_of(run, "in")});
  // How check/ hands `mode: line` on.
  run.benchmark.substitute_sets["ss"] =
      substitution("ss", "in", "out", {sub("\n--mem=", ""), sub("\n#A#", "two\nlines")});
  run.add(step_of("s", {"true"}, {"fs", "ss"}));
  REQUIRE(run.run().done == 1);
  CHECK(run.file("000000_s/work/out") == "--mem=3\nkept --mem=\ntwo\nlines\n");
}

TEST_CASE("substitution by regular expression") {
  RunFixture run;
  run.folder.write("in", "#SBATCH --account=\nnodes=12 it's \\x\n\n");
  run.benchmark.file_sets["fs"] = files_of("fs", {copy_of(run, "in")});
  run.benchmark.substitute_sets["ss"] = substitution(
      "ss", "in", "out",
      {sub("(?m)^#SBATCH --[a-z-]+=[ \\t]*\\n", "", true), sub("nodes=(\\d+)", "n:\\1", true)});
  run.add(step_of("s", {"true"}, {"fs", "ss"}));
  REQUIRE(run.run().done == 1);
  CHECK(run.file("000000_s/work/out") == "n:12 it's \\x\n\n");
}

TEST_CASE("a missing input and a bad expression are failures of the workpackage") {
  RunFixture run;
  run.folder.write("in", "x");
  run.benchmark.file_sets["fs"] = files_of("fs", {copy_of(run, "in")});
  run.benchmark.substitute_sets["no"] = substitution("no", "nothere", "x", {});
  run.benchmark.substitute_sets["bad"] = substitution("bad", "in", "x", {sub("(", "", true)});
  run.add(step_of("a", {"true"}, {"no"}));
  run.add(step_of("b", {"true"}, {"fs", "bad"}));
  CHECK(run.run().failed == 2);
  CHECK(run.file("000000_a/error") == "substitution set \"no\": file \"nothere\" not found");
  CHECK(run.file("000001_b/error").find("substitution \"(\"") != std::string::npos);
}

TEST_CASE("the dry run's bytes are the real run's") {
  RunFixture run;
  run.folder.write("tpl/submit.job.in", "#!/bin/sh\n#N# #P#\n", 0744);
  FileCopy copy = copy_of(run, "submit.job.in");
  copy.source_dir = "tpl";
  run.benchmark.file_sets["jobfiles"] = files_of("jobfiles", {copy});
  run.benchmark.substitute_sets["executesub"] = substitution(
      "executesub", "submit.job.in", "submit.job", {sub("#N#", "$nodes"), sub("#P#", "$p")});
  run.add(set_of("ps", {parameter("p", "val"), parameter("nodes", "4")}));
  run.add(step_of("s", {"true"}, {"ps", "jobfiles", "executesub"}));
  REQUIRE(run.run().done == 1);
  const std::string four = "4", value = "val";
  const Lookup lookup = [&](std::string_view name) {
    return name == "nodes" ? &four : name == "p" ? &value : nullptr;
  };
  auto evaluator = make_evaluator(run.folder.path());
  std::vector<FileBytes> planned;
  REQUIRE(plan_substituted_files(run.benchmark, {"ps", "jobfiles", "executesub"}, lookup,
                                 *evaluator, &planned));
  REQUIRE(planned.size() == 1);
  CHECK(planned[0].path == "submit.job");
  CHECK(planned[0].mode == 0744);
  CHECK(planned[0].bytes == run.file("000000_s/work/submit.job"));
  CHECK(planned[0].bytes == "#!/bin/sh\n4 val\n");
}

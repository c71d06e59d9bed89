// The program from outside: command lines, exit codes, what is printed and what is left on disk.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

namespace {

namespace fs = std::filesystem;

struct Ran {
  int code = 0;
  std::string out, err;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A folder of its own, in which `tally` is called.
class Shell {
 public:
  Shell() : root_("/tmp/tally-cli-" + std::to_string(::getpid())) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~Shell() { fs::remove_all(root_); }

  Ran tally(const std::string& arguments, const std::string& name = {}) const {
    std::string called = this->called();
    if (!name.empty()) {
      const std::string program = std::exchange(called, (root_ / name).string());
      fs::remove(called);
      fs::create_symlink(program, called);
    }
    std::string command =
        "cd " + root_.string() + " && " + called + " " + arguments + " >.out 2>.err";
    int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read(root_ / ".out"),
            read(root_ / ".err")};
  }
  // How tally() calls the program: offered commands begin so.
  static std::string called() {
    const char* program = std::getenv("TALLY_PROGRAM");
    REQUIRE(program != nullptr);
    return program;
  }
  void file(const std::string& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }
  std::string content(const std::string& name) const { return read(root_ / name); }
  bool exists(const std::string& name) const { return fs::exists(root_ / name); }
  fs::path root() const { return root_; }

 private:
  fs::path root_;
};

constexpr const char* kBench = R"yaml(name: bench
outpath: bench_run
parameterset:
  - name: ps
    parameter:
      - {name: a, type: int, _: "1,10,2"}
      - {name: b, tag: "bind+13", _: "bound"}
      - {name: b, tag: "!(bind+13)", _: "free"}
patternset:
  - name: pt
    pattern: {name: t, type: float, unit: s, _: "time=$jube_pat_fp"}
step:
  - {name: s, use: ps, do: 'echo "time=$a.5 $b"'}
analyser:
  - {name: an, use: pt, analyse: {step: s, file: stdout}}
result:
  use: an
  table: {name: r, style: pretty, sort: a, column: [a, b, t]}
)yaml";

constexpr const char* kTable =
    "r:\n"
    "|  a |    b | t[s] |\n"
    "|----|------|------|\n"
    "|  1 | free |  1.5 |\n"
    "|  2 | free |  2.5 |\n"
    "| 10 | free | 10.5 |\n";

std::string failing() {
  std::string text = kBench;
  std::string command = "echo \"time=$a.5 $b\"";
  text.replace(text.find(command), command.size(), command + "; test $a -ne 10");
  return text;
}

}  // namespace

TEST_CASE_FIXTURE(Shell, "a run: exit code, table on -r, files in JUBE's layout") {
  file("bench.yaml", kBench);
  Ran ran = tally("run bench.yaml -r");
  CHECK(ran.code == 0);
  CHECK(has(ran.out, kTable));
  CHECK(has(ran.out, "Running step s in bench_run/000000\n"));
  CHECK(!has(ran.out, "####"));
  CHECK(has(ran.out, "|        s |   3 |    0 |    0 |     0 |    3 |"));
  CHECK(content("bench_run/000000/result/r.dat") == kTable);
  CHECK(content("bench_run/000000/000001_s/work/stdout") == "time=10.5 free\n");
  CHECK(exists("bench_run/000000/000000_s/done"));
  CHECK(exists("bench_run/000000/configuration.xml"));
  CHECK(exists("bench_run/000000/timestamps"));

  ran = tally("run bench.yaml", "jube");
  CHECK(!has(ran.out, "time"));  // no table without -r, as JUBE
  CHECK(ran.out.rfind("######################################################################\n"
                      "# benchmark: bench\n# id: 1\n",
                      0) == 0);
  CHECK(has(ran.out, ">>>>       id: 1\n"));
  CHECK(exists("bench_run/000001/000002_s"));
  // Shown, not written: a file in JUBE's language did not ask.
  CHECK(has(tally("run bench.yaml").out, kTable));
  CHECK(!exists("bench_run/000002/result"));
}

TEST_CASE_FIXTURE(Shell, "JUBE's command lines: lists that do not eat the file, both orders") {
  file("bench.yaml", kBench);
  for (const char* line :
       {"run bench.yaml -t 13 bind -r", "run -t 13 bind bench.yaml -r",
        "run -r --tag 13 bind -- bench.yaml", "run bench.yaml -r --tag 13 --tag bind",
        "run -t 13,bind -r bench.yaml"}) {
    CAPTURE(std::string(line));
    Ran ran = tally(line);
    CHECK(ran.code == 0);
    CHECK(has(ran.out, "bound"));
  }
  for (const char* line :
       {"result -a bench_run", "result bench_run -i last", "result -i 0 bench_run",
        "result bench.yaml", "result bench_run/000000", "result bench_run --id -1",
        "result -o r bench_run", "result bench_run --only r --select a b t"}) {
    CAPTURE(std::string(line));
    Ran ran = tally(line);
    CHECK(ran.code == 0);
    CHECK(has(ran.out, "| 10 | bound | 10.5 |"));
  }
}

TEST_CASE_FIXTURE(Shell, "a failed workpackage is exit code 1, and 0 under JUBE's name") {
  file("bench.yaml", failing());
  Ran ran = tally("run bench.yaml");
  CHECK(ran.code == 1);
  CHECK(has(ran.out, "|        s |   3 |    0 |    0 |     1 |    2 |"));
  CHECK_MESSAGE(has(ran.out,
                    "failed: 1 of 3 (s, a=10): exit code 1 (bench.yaml:13:28; "
                    "bench_run/000000/000001_s/work/stderr)\n"),
                ran.out);
  CHECK(has(ran.out,
            "To do what failed again: " + called() + " continue bench_run --id 0 --failed\n"));
  CHECK(tally("status bench_run").out == "ERROR\n");
  CHECK(tally("run bench.yaml", "jube").code == 0);
  // What JUBE could not do itself is its failure, too.
  for (const char* unable :
       {"substituteset: {name: t, iofile: {in: none.txt, out: g.txt}}\nstep: {name: s, use: t, do: "
        "echo}\n",
        "parameterset: {name: p, parameter: {name: n, type: int, _: \"1,two\"}}\nstep: {name: s, "
        "use: p, do: echo $n}\n",
        "step: {name: s, do: {active: \"1 = 1\", _: echo}}\n"}) {
    CAPTURE(std::string(unable));
    file("unable.yaml", std::string("name: u\noutpath: u_run\n") + unable);
    CHECK(tally("run unable.yaml", "jube").code == 1);
  }
}

TEST_CASE_FIXTURE(Shell, "a failure says where its command, or its step, is written") {
  file("parts.yaml", "step:\n  - name: s\n    do: [echo, \"false\"]\n");
  file("bench.yaml", "name: c\noutpath: c_run\nstep: !include parts.yaml:[\"step\"]\n");
  CHECK(has(tally("run bench.yaml").out, "(parts.yaml:3:16; "));
  CHECK(has(tally("continue c_run").out, "(parts.yaml:3:16; "));
  file("inactive.yaml",
       "name: i\noutpath: i_run\nstep:\n  - name: s\n    do:\n"
       "      - {active: \"false\", _: echo}\n      - \"false\"\n");
  CHECK(has(tally("run inactive.yaml").out, "(inactive.yaml:7:9"));
  file("unable.yaml",
       "name: u\noutpath: u_run\nsubstituteset: {name: t, iofile: {in: none.txt, out: g.txt}}\n"
       "step:\n  - {name: first, do: echo}\n  - {name: s, depend: first, use: t, do: echo}\n");
  CHECK(has(tally("run unable.yaml").out, "(unable.yaml:6:12"));
  file("value.yaml",
       "name: v\noutpath: v_run\n"
       "parameterset: {name: p, parameter: [{name: n, type: int, _: \"1,two\"}]}\n"
       "step: {name: s, use: p, do: echo $n}\n");
  CHECK(has(tally("run value.yaml").out, "(value.yaml:3:61)\n"));
}

TEST_CASE_FIXTURE(Shell, "a comment is one line; a step that no workpackage reached has its row") {
  file("bench.yaml",
       "name: c\noutpath: c_run\ncomment: |\n  two\n   lines\nstep: [{name: a, do: \"false\"}, "
       "{name: later, depend: a, do: echo}]\n");
  const Ran ran = tally("run bench.yaml");
  CHECK(has(ran.out, "|    later |   0 |    0 |    0 |     0 |    0 |"));
  CHECK(has(tally("info c_run -i 0").out, "# two lines\n"));
}

TEST_CASE_FIXTURE(Shell, "a benchmark to be left out that is not there is no error") {
  file("bench.yaml", kBench);
  const Ran ran = tally("run bench.yaml --not-bench gone");
  CHECK(ran.code == 0);
  CHECK(has(ran.err, "warning: no benchmark is called 'gone', to be left out"));
  CHECK(tally("run bench.yaml --only-bench gone").code == 2);
}

TEST_CASE_FIXTURE(Shell, "bad input is exit code 2 with one clear error, and nothing is made") {
  file("bench.yaml", kBench);
  struct Line {
    const char* arguments;
    const char* said;
  };
  file("wrong.yaml", "name: w\noutpath: w_run\nstep: {name: s, use: nix, do: echo}\n");
  file("pattern.yaml",
       "name: w\noutpath: w_run\npatternset: {name: p, pattern: {name: t, _: \"a(\"}}\n"
       "step: {name: s, do: echo}\n"
       "analyser: {name: a, use: p, analyse: {step: s, file: stdout}}\n");
  file("tab.yaml", "name: w\nstep:\n\t- {name: s, do: echo}\n");
  file("workflows/scale.yaml", kBench);
  file("colon.yaml", "name: w\nstep\n  - {name: s, do: echo}\n  - name: t\n");
  for (const Line& line : std::initializer_list<Line>{
           {"run nofile.yaml", "Benchmark configuration file not found: \"nofile.yaml\""},
           {"run bench.yml", "did you mean 'bench.yaml'?"},
           {"run scale", "did you mean 'workflows/scale.yaml'?"},
           {"run scael.yaml", "did you mean 'workflows/scale.yaml'?"},
           {"run", "needs an input file"},
           {"run bench.yaml --taag x", "unknown option '--taag' of run"},
           {"run bench.yaml -y", "unknown option '-y' of run"},
           {"resutl bench_run", "did you mean 'result'?"},
           {"bench.yaml", " run bench.yaml`?"},
           {"result nodir", "Not a directory: \"nodir\""},
           {"result .", "there are no runs in '.'"},
           {"run wrong.yaml", "nix"},
           {"run pattern.yaml", "pattern 't' is not a regular expression"},
           {"run bench.yaml -j 0", "--jobs: '0' is not a whole number of at least 1"},
           {"run bench.yaml -t", "--tag needs a value"},
           {"run bench.yaml -n --script 99", "there is no workpackage 99"},
           {"run bench.yaml --script 0", "add -n"},
           {"run bench.yaml -i 5 6", "2 ids for 1 run"},
           {"validate tab.yaml", "this line begins with a tab"},
           {"validate colon.yaml", "lacks its ':'"},
           {"run bench.yaml --set a", "not of the form name=value"},
           {"validate wrong.yaml", "wrong.yaml:3:"}}) {
    CAPTURE(std::string(line.arguments));
    Ran ran = tally(line.arguments);
    CAPTURE(ran.err);
    CHECK(ran.code == 2);
    CHECK(has(ran.err, line.said));
  }
  CHECK(!exists("bench_run"));
  CHECK(!exists("w_run"));
}

TEST_CASE_FIXTURE(Shell, "a dry run writes nothing and lists the workpackages") {
  file("bench.yaml", kBench);
  Ran ran = tally("run bench.yaml -n --set a=4,5");
  CHECK(ran.code == 0);
  CHECK(has(ran.out, "2 workpackages"));
  CHECK(has(ran.out, "a=4"));
  CHECK(!exists("bench_run"));
}

TEST_CASE_FIXTURE(Shell, "JUBE's --debug runs nothing") {
  file("bench.yaml", kBench);
  for (const char* words : {"--debug run bench.yaml", "run bench.yaml --debug -r"}) {
    Ran ran = tally(words);
    CHECK(ran.code == 0);
    CHECK(has(ran.out, "3 workpackages"));
    CHECK(!exists("bench_run"));
  }
  tally("run bench.yaml");
  for (const char* command : {"continue", "remove -f", "comment x"}) {
    Ran ran = tally("--debug " + std::string(command) + " bench_run");
    CHECK(ran.code == 2);
    CHECK(has(ran.err, "has no dry run; nothing was done"));
  }
  CHECK(exists("bench_run/000000"));
  CHECK(tally("--debug result bench_run").code == 0);
}

TEST_CASE_FIXTURE(Shell, "a variable that is nowhere makes no folder of its name") {
  file("w.yaml",
       "name: w\nstep: [{name: s, work_dir: $NO_SUCH_NAME/w, do: 'true'},\n"
       "       {name: t, do: {work_dir: '${NO_SUCH_NAME}/w', _: 'true'}}]\n");
  Ran ran = tally("run w.yaml");
  CHECK(ran.code == 1);
  CHECK(has(ran.out + ran.err, "$NO_SUCH_NAME is neither a parameter nor in the environment"));
  CHECK(has(ran.out + ran.err, "${NO_SUCH_NAME} is neither a parameter nor in the environment"));
  CHECK(!exists("$NO_SUCH_NAME"));
}

TEST_CASE_FIXTURE(Shell, "a dry run that shows a failing workpackage is exit code 1") {
  file("fails.yaml",
       "name: f\nparameterset: {name: p, parameter: [{name: b, _: \"1,0,0\"}, "
       "{name: a, mode: python, _: \"1/$b\"}]}\nstep: {name: s, use: p, do: echo $a}\n");
  Ran ran = tally("run fails.yaml -n");
  CHECK(ran.code == 1);
  CHECK(has(ran.out, "fails: Cannot evaluate \"1/0\" for parameter \"a\": division by zero\n"));
  CHECK_MESSAGE(has(ran.out, "  #000002 s  b=0 a=?  fails as #000001\n"), ran.out);
}

TEST_CASE_FIXTURE(Shell,
                  "steps, workpackages, columns and logs that a run does not have are named") {
  file("bench.yaml", kBench);
  REQUIRE(tally("run bench.yaml").code == 0);
  for (const auto& [arguments, said] : std::initializer_list<std::pair<const char*, const char*>>{
           {"result bench_run --select nope", "--select: no table has a column 'nope'"},
           {"result bench_run --exclude nope", "--exclude: no table has a column 'nope'"},
           {"output bench_run -s nope", "run 0 has no step 'nope'"},
           {"output bench_run -w 99", "run 0 has no workpackage '99'"},
           {"info bench_run -s s -w 99", "run 0 has no workpackage '99'"},
           {"info bench_run -p", "add -s"},
           {"log bench_run -c nope", "run 0 has no log 'nope.log'"}}) {
    const std::string command = arguments;
    CAPTURE(command);
    Ran ran = tally(command);
    CHECK(ran.code == 2);
    CHECK(has(ran.err, said));
  }
  Ran ran = tally("remove bench_run </dev/null");
  CHECK(has(ran.out, "nothing was removed"));
  CHECK(exists("bench_run/000000"));
}

TEST_CASE_FIXTURE(Shell, "several runs in one table, styles, columns, order") {
  file("bench.yaml", kBench);
  tally("run bench.yaml");
  tally("run bench.yaml -t 13 bind");
  Ran ran = tally("result bench_run -i all -s csv --exclude b");
  CHECK(ran.out == "id,a,t[s]\n0,1,1.5\n0,2,2.5\n0,10,10.5\n1,1,1.5\n1,2,2.5\n1,10,10.5\n\n");
  CHECK(has(tally("result bench_run -i 7").err,
            "Benchmark directory not found: \"bench_run/000007\""));
  CHECK(tally("result bench_run -i 7").code == 2);
  CHECK(has(tally("result bench_run -i all -n 1").out, "bound"));
}

TEST_CASE_FIXTURE(Shell, "a result keeps to the input the run was started with, unless -u") {
  file("bench.yaml", kBench);
  tally("run bench.yaml");
  std::string changed = kBench;
  changed.replace(changed.find("column: [a, b, t]"), 17, "column: [b, t, a]");
  file("bench.yaml", changed);
  CHECK(has(tally("result bench_run").out, "|  a |    b | t[s] |"));
  CHECK(has(tally("result bench_run -u bench.yaml").out, "|    b | t[s] |  a |"));
  // As in JUBE an update stays in force; the file is not needed for it.
  fs::remove(root() / "bench.yaml");
  CHECK(has(tally("result bench_run").out, "|    b | t[s] |  a |"));
}

TEST_CASE_FIXTURE(Shell,
                  "build work is taken over from an earlier run while its inputs are the same") {
  file("in.txt", "one\n");
  file("bench.yaml",
       "name: b\noutpath: runs\nfileset: {name: fs, copy: in.txt}\n"
       "step:\n"
       "  - {name: make, kind: build, use: fs, do: 'cp in.txt prog; "
       "echo made >> $jube_benchmark_home/times'}\n"
       "  - {name: go, kind: run, depend: make, launch: 'cat make/prog'}\n");
  tally("run bench.yaml");
  tally("run bench.yaml");
  CHECK(content("times") == "made\n");
  CHECK(content("runs/000001/000001_go/work/stdout") == "one\n");
  CHECK(has(content("runs/000001/run.log"), "000000_make: reused, the same as in "));
  file("in.txt", "two\n");
  tally("run bench.yaml");
  CHECK(content("times") == "made\nmade\n");
  CHECK(has(content("runs/000002/run.log"), "file in.txt changed"));
  CHECK(content("runs/000002/000001_go/work/stdout") == "two\n");
  // Half a result is none.
  fs::remove(root() / "runs/000002/000000_make/work/prog");
  tally("run bench.yaml");
  CHECK(content("times") == "made\nmade\nmade\n");
  CHECK(has(content("runs/000003/run.log"), "is gone"));
  CHECK(content("runs/000003/000001_go/work/stdout") == "two\n");
}

TEST_CASE_FIXTURE(Shell, "what JUBE leaves for scripts, and options cut short") {
  file("bench.yaml", kBench);
  CHECK(tally("run bench.yaml --res --hide-anim").code == 0);
  const std::string workpackages = content("bench_run/000000/workpackages.xml");
  CHECK(has(workpackages, "<workpackage id=\"0\">"));
  CHECK(has(workpackages, "<selection idx=\"0\">1</selection>"));
  CHECK(has(workpackages, "<iteration_siblings>0</iteration_siblings>"));
  CHECK(has(content("bench_run/000000/parse.log"), "bench.yaml read by tally"));
  CHECK(tally("--version", "jube").out.rfind("JUBE, version 2.7.1 (tally ", 0) == 0);
  CHECK(tally("result nowhere", "jube").code == 1);
  CHECK(tally("run", "jube").code == 2);
  CHECK(tally("run bench.yaml -y", "jube").code == 2);
  CHECK(tally("result nowhere").code == 2);
}

// The environments are those that JUBE 2.5.1 writes for the same file.
TEST_CASE_FIXTURE(Shell, "workpackages.xml has the environment that a workpackage begins with") {
  file("bench.yaml",
       "name: b\noutpath: runs\n"
       "parameterset: {name: p, parameter: {name: word, export: true, _: x y}}\n"
       "step:\n"
       "  - {name: s, use: p, export: true, do: export FOO=bar}\n"
       "  - {name: t, depend: s, do: echo}\n");
  CHECK(tally("run bench.yaml").code == 0);
  const std::string all = content("runs/000000/workpackages.xml");
  const std::string one =
      "    <environment>\n"
      "      <env name=\"FOO\">'bar'</env>\n"
      "      <env name=\"word\">'x y'</env>\n"
      "    </environment>\n";
  const size_t first = all.find(one);
  REQUIRE_MESSAGE(first != std::string::npos, all);
  CHECK_MESSAGE(all.find(one, first + 1) != std::string::npos, all);
}

TEST_CASE_FIXTURE(Shell,
                  "analyse.xml as JUBE leaves it, from analyse, and from -r under its name") {
  file("bench.yaml", kBench);
  tally("run bench.yaml -r");
  CHECK(!exists("bench_run/000000/analyse.xml"));
  const Ran analysed = tally("analyse bench_run");
  CHECK(has(analysed.out, "bench_run/000000: 3 result lines in bench_run/000000/analyse.xml; "));
  const std::string one = content("bench_run/000000/analyse.xml");
  CHECK(
      one.rfind("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<analyse>\n  <analyser name=\"an\">\n"
                "    <step name=\"s\">\n      <workpackage id=\"0\">\n"
                "        <pattern name=\"t\" type=\"float\">1.5</pattern>\n"
                "        <pattern name=\"t_first\" type=\"float\">1.5</pattern>\n",
                0) == 0);
  CHECK(has(one, "<pattern name=\"t_cnt\" type=\"int\">1</pattern>\n"));
  tally("run bench.yaml -r", "jube");
  CHECK(content("bench_run/000001/analyse.xml") == one);
  CHECK(tally("analyse bench_run", "jube").out ==
        "######################################################################\n"
        "# Analyse benchmark \"bench\" id: 1\n"
        "######################################################################\n"
        ">>> Start analyse\n"
        ">>> Analyse finished\n"
        ">>> Analyse data storage: bench_run/000001/analyse.xml\n"
        "######################################################################\n");
}

TEST_CASE_FIXTURE(Shell, "what there is to know about runs") {
  file("bench.yaml", kBench);
  tally("run bench.yaml -m 'first try'");
  Ran info = tally("info bench_run");
  CHECK(info.code == 0);
  CHECK(has(info.out, "# Benchmarks found in \"bench_run\":"));
  CHECK(has(info.out, "first try"));
  CHECK(has(tally("info bench_run -i 0").out, "--- Benchmark finished ---"));
  CHECK(has(tally("info bench_run -i 0 -s s").out, " ID: 2\n  a: 2\n  b: free\n"));
  CHECK(has(tally("info bench_run -s s -c").out, "id,a,b,"));
  CHECK(has(tally("info bench_run -i 0 -s nix").err, "no step 'nix'"));
  CHECK(tally("status bench_run").out == "FINISHED\n");
  CHECK(has(tally("log bench_run").out, "Log: bench_run/000000/run.log"));
  CHECK(has(tally("output bench_run -w 1 -d").out, "time=10.5 free"));
  CHECK(tally("comment 'second thought' bench_run").code == 0);
  CHECK(has(tally("info bench_run").out, "second thought"));
}

TEST_CASE_FIXTURE(Shell, "remove asks, then removes; a removed workpackage runs again") {
  file("bench.yaml", failing());
  tally("run bench.yaml");
  tally("remove bench_run -i 0 </dev/null");
  CHECK(exists("bench_run/000000"));
  file("marker", "");
  Ran removed = tally("remove bench_run -w 1 -f");
  CHECK(removed.code == 0);
  CHECK(!exists("bench_run/000000/000001_s"));
  CHECK(tally("status bench_run").out == "INTERRUPTED\n");
  CHECK(tally("status bench_run", "jube").out == "RUNNING\n");
  Ran again = tally("continue bench_run");
  CHECK(again.code == 1);  // it fails again
  CHECK(exists("bench_run/000000/000001_s/error"));
  CHECK(tally("remove bench_run -f").code == 0);
  CHECK(!exists("bench_run/000000"));
}

TEST_CASE_FIXTURE(Shell, "help, version, tags, reference, completion") {
  Ran version = tally("--version");
  CHECK(version.code == 0);
  CHECK(has(version.out, "tally 0."));
  CHECK(has(tally("").out, "continue"));
  CHECK(tally("").code == 0);
  CHECK(has(tally("help run").out, "--dry-run"));
  CHECK(has(tally("run --help").out, "--dry-run"));
  CHECK(tally("help nix").code == 2);
  file("bench.yaml", kBench);
  CHECK(tally("tag bench.yaml").out == "bench.yaml: 2 tags\n  13\n  bind\n");
  CHECK(has(tally("validate bench.yaml").out, "bench.yaml: fine: bench"));
  CHECK(has(tally("reference").out, "parameterset"));
  CHECK(has(tally("complete").out, "complete -F _tally tally\n"));
  CHECK(has(tally("complete zsh").out, "#compdef tally"));
  CHECK(tally("complete csh").code == 2);
}

TEST_CASE_FIXTURE(Shell, "output with NUL bytes and bytes that are no UTF-8 gives its table") {
  std::string text = kBench;
  std::string command = "'echo \"time=$a.5 $b\"'";
  text.replace(text.find(command), command.size(),
               "\"printf '\\\\000x\\\\377time=$a.5\\\\r\\\\n\\\\303(time=7'\"");
  file("bench.yaml", text);
  Ran ran = tally("run bench.yaml -r");
  CHECK(ran.code == 0);
  CHECK(has(ran.out, "| 10 | free | 10.5 |"));
}

#include "engine/expand/evaluator.h"
#include "tests/support/suites.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

namespace tally {
namespace {

std::string value(Evaluator& evaluator, Mode mode, const std::string& text) {
  const Evaluation result = evaluator.evaluate_one(mode, text);
  return result.ok ? result.value : "error: " + result.error;
}

TEST_CASE("python: str() of the result") {
  const auto e = make_evaluator("");
  CHECK(value(*e, Mode::python, "1+1") == "2");
  CHECK(value(*e, Mode::python, "1/3") == "0.3333333333333333");
  CHECK(value(*e, Mode::python, "[1,2]") == "[1, 2]");
  CHECK(value(*e, Mode::python, "  'é' * 2") == "éé");
  CHECK(value(*e, Mode::python, "{'a': 'x'}['a']") == "x");
  CHECK(value(*e, Mode::python, "','.join(str(i) for i in range(3))") == "0,1,2");
  CHECK(value(*e, Mode::python, "(1,\n2)") == "(1, 2)");
  CHECK(value(*e, Mode::python, "''").empty());
}

TEST_CASE("python: the modules that people use are there") {
  const auto e = make_evaluator("");
  CHECK(value(*e, Mode::python, "os.path.basename('/a/b')") == "b");
  CHECK(value(*e, Mode::python, "math.floor(2.5)") == "2");
  CHECK(value(*e, Mode::python, "re.sub('a', 'b', 'aa')") == "bb");
  CHECK(value(*e, Mode::python, "subprocess.check_output('echo 5', shell=True).decode().strip()") ==
        "5");
  CHECK(value(*e, Mode::python, "[math.sqrt(i) for i in (4, 9)]") == "[2.0, 3.0]");
  CHECK(value(*e, Mode::python, "list(itertools.product('ab', '1'))[1][0]") == "b");
}

TEST_CASE("python: an error concerns its expression alone") {
  const auto e = make_evaluator("");
  const auto results = e->evaluate(Mode::python, {"1/0", "2", "nope", "1 +", "3"});
  REQUIRE(results.size() == 5);
  CHECK_FALSE(results[0].ok);
  CHECK(results[0].error == "division by zero");
  CHECK(results[1].value == "2");
  CHECK(results[2].error == "name 'nope' is not defined");
  CHECK(results[3].error == "invalid syntax (<string>, line 1)");
  CHECK(results[4].value == "3");
}

TEST_CASE("python: what ends or floods the interpreter is an error of that expression") {
  const auto e = make_evaluator("");
  const auto results = e->evaluate(
      Mode::python, {"1", "os._exit(3)", "2", "sys.exit(4)", "os.kill(os.getpid(), 9)", "5",
                     "print('in the way') or 6", "sys.stdout.write('x' * 100 + '\\n')"});
  CHECK(results[0].value == "1");
  CHECK(results[1].error == "python3 exited with code 3 while evaluating it");
  CHECK(results[2].value == "2");
  CHECK(results[3].error == "it ends Python, exit(4), instead of giving a value");
  CHECK(results[4].error == "python3 was ended by signal 9 (Killed) while evaluating it");
  CHECK(results[5].value == "5");
  CHECK(results[6].value == "6");
  CHECK(results[7].value == "101");
}

TEST_CASE("python: many expressions at once, long ones, bytes that are no UTF-8") {
  const auto e = make_evaluator("");
  std::vector<std::string> many;
  for (int i = 0; i < 10000; ++i) many.push_back(std::to_string(i) + "*2");
  const auto results = e->evaluate(Mode::python, many);
  CHECK(results[9999].value == "19998");
  const std::string big(300000, 'a');
  CHECK(value(*e, Mode::python, "'" + big + "'") == big);
  CHECK_FALSE(e->evaluate_one(Mode::python, "'\xff'").ok);
  CHECK(value(*e, Mode::python, "os.fsdecode(b'\\xff')") == "\xff");
  CHECK(value(*e, Mode::python, "'\\ud800'") == "\\ud800");
}

TEST_CASE("python: one expression's variables do not reach another") {
  const auto e = make_evaluator("");
  CHECK(value(*e, Mode::python, "(leak := 7)") == "7");
  CHECK(value(*e, Mode::python, "leak") == "error: name 'leak' is not defined");
}

TEST_CASE("python: no python3 is one clear error" *
          doctest::test_suite(tally::testing::kSeesProcesses)) {
  const char* path = getenv("PATH");
  REQUIRE(path != nullptr);
  const std::string before = path;
  setenv("PATH", "/nonexistent", 1);
  const auto e = make_evaluator("");
  const Evaluation result = e->evaluate_one(Mode::python, "1");
  setenv("PATH", before.c_str(), 1);
  CHECK_FALSE(result.ok);
  CHECK(result.error.find("need the program python3") != std::string::npos);
}

TEST_CASE("shell: standard output as it came, in the given directory") {
  const auto e = make_evaluator("/usr");
  CHECK(value(*e, Mode::shell, "echo hi") == "hi\n");
  CHECK(value(*e, Mode::shell, "printf ' y '") == " y ");
  CHECK(value(*e, Mode::shell, "pwd") == "/usr\n");
  CHECK(value(*e, Mode::shell, "echo out; echo noise >&2") == "out\n");
  CHECK(value(*e, Mode::shell, "echo why >&2; exit 3") == "error: why");
  CHECK(value(*e, Mode::shell, "exit 3") == "error: exit code 3");
  CHECK(value(*e, Mode::shell, "head -c 300000 /dev/zero | tr '\\0' a >&2; echo fine") == "fine\n");
}

TEST_CASE("shell: a directory that is not there is an error" *
          doctest::test_suite(tally::testing::kSeesProcesses)) {
  std::string gone = "/tmp/tally-gone-XXXXXX";
  REQUIRE(mkdtemp(gone.data()) != nullptr);
  REQUIRE(rmdir(gone.c_str()) == 0);
  const auto e = make_evaluator(gone);
  CHECK(value(*e, Mode::shell, "echo hi") ==
        "error: cannot start /bin/sh in " + gone + ": No such file or directory");
}

TEST_CASE("perl and env") {
  const auto e = make_evaluator("");
  CHECK(value(*e, Mode::perl, "3*4") == "12");
  // All that Perl says: its last line tells only that it gave up.
  CHECK(value(*e, Mode::perl, "3 + * / 4").find("; syntax error at -e line 1") !=
        std::string::npos);
  setenv("TALLY_TEST_VALUE", "a b", 1);
  CHECK(value(*e, Mode::env, "TALLY_TEST_VALUE") == "a b");
  CHECK(value(*e, Mode::env, "TALLY_NOPE") ==
        "error: \"TALLY_NOPE\" isn't an available environment variable");
}

TEST_CASE("no descriptor and no process is left behind") {
  const auto open_files = [] {
    size_t n = 0;
    for ([[maybe_unused]] const auto& entry :
         std::filesystem::directory_iterator("/proc/self/fd")) {
      ++n;
    }
    return n;
  };
  const size_t before = open_files();
  {
    const auto e = make_evaluator("");
    e->evaluate(Mode::python, {"1", "os._exit(1)"});
    e->evaluate(Mode::shell, {"echo 1", "exit 1"});
  }
  CHECK(open_files() == before);
}

}  // namespace
}  // namespace tally

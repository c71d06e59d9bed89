// What commands leave in the environment of the next: spec/jube.md, section 2, rows 15 to 18 (where
// JUBE loses it, the sane answer), in real shells.
#include <doctest/doctest.h>
#include <unistd.h>

#include "engine/workspace/environment.h"
#include "tests/engine/execute/run_fixture.h"

using namespace tally;
using namespace tally::testing;

namespace {

// Runs the commands as one step's operations and returns the last line of its standard output.
std::string last_line(const std::vector<std::string>& commands,
                      const std::string& shell = "/bin/sh") {
  RunFixture run;
  run.settings.shell = shell;
  run.add(step_of("s", commands));
  const RunSummary summary = run.run();
  if (summary.done != 1) return std::string("failed: ").append(run.file("000000_s/error"));
  std::string text = run.file("000000_s/work/stdout");
  if (!text.empty()) text.pop_back();
  return text.substr(text.rfind('\n') + 1);
}

}  // namespace

TEST_CASE("golden: each way a command can end keeps the environment") {
  const struct {
    const char* first;
    const char* expected;
  } cases[] = {
      {"export Q=5", "[5]"},
      {"export Q=5 # note", "[5]"},
      {"export Q=5; exit 0", "[5]"},
      {"export Q=5; exit", "[5]"},
      {"export Q=5\ncat <<EOF\nx\nEOF\n", "[5]"},
      {"export Q=5; sleep 0 &", "[5]"},
      {"export Q='a b'\n# last line is a comment", "[a b]"},
      {"(export Q=5)", "[]"},
      {"Q=5", "[]"},
      {"export Q=5; false; true", "[5]"},
      {"export Q=5; exec true", "[]"},
      {"export Q=\"it's \\\"quoted\\\" \\$HOME \\`x\\` \\\\\"", "[it's \"quoted\" $HOME `x` \\]"},
      {"export Q=; test -n \"$Q\" || export Q=empty", "[empty]"},
      {"export A=$(printf 'l1\\nl2'); export Q=x", "[x]"},
      {"export Q=ü€", "[ü€]"},
      {"export Q='$(no)'", "[$(no)]"},
      {"export Q=5; cd /", "[5]"},
      {"export Q=5; trap 'echo bye' EXIT", "[5]"},
      {"trap 'echo bye; exit 0' 0; export Q=5; exit 3", "[5]"},
      {"trap 'export Q=5' INT EXIT", "[5]"},
      {"set -e; trap '' EXIT; export Q=5; false || exit 0", "[5]"},
      {"trap 'echo EXIT' INT; trap - EXIT; export Q=5", "[5]"},
      {"(trap 'echo sub' EXIT; exit 3); export Q=5", "[5]"},
      {"echo 'export Q=5; exec true' > script; . ./script", "[]"},
  };
  for (const char* shell : {"/bin/sh", "/bin/bash"}) {
    if (access(shell, X_OK) != 0) continue;
    for (const auto& [command, expected] : cases) {
      const std::string first = command;
      CAPTURE(shell);
      CAPTURE(first);
      CHECK(last_line({first, "printf '[%s]\\n' \"$Q\""}, shell) == expected);
    }
  }
}

TEST_CASE("values with newlines, unset variables, PATH and PWD") {
  CHECK(last_line({"export Q=\"l1\nl2\"", "printf '%s' \"$Q\" | wc -l; printf '%s\\n' \"$Q\""}) ==
        "l2");
  CHECK(last_line({"export Q=5", "unset Q", "echo \"[$Q]\""}) == "[]");
  CHECK(last_line({"unset HOME", "echo \"[$HOME]\""}) == "[]");
  CHECK(last_line({"export PATH=/opt/x:$PATH", "echo \"${PATH%%:*}\""}) == "/opt/x");
  CHECK(last_line({"cd /", "pwd | sed 's/.*000000_s/000000_s/'"}) == "000000_s/work");
}

TEST_CASE("the command's exit status and first line are its own") {
  RunFixture run;
  run.add(step_of("s", {"exit 3", "true"}));
  CHECK(run.run().failed == 1);
  RunFixture other;
  other.add(step_of("s", {"nosuchcommand", "true"}));
  CHECK(other.run().failed == 1);
  CHECK(other.file("000000_s/work/stderr").find("1: nosuchcommand: not found") !=
        std::string::npos);
}

TEST_CASE("a command's own trap for EXIT acts as without us") {
  const struct {
    const char* command;
    int code;
    const char* output;
  } cases[] = {
      {"trap 'echo code $?' EXIT; exit 3", 3, "code 3\n"},
      {"trap 'echo code $?; exit 4' EXIT; exit 3", 4, "code 3\n"},
      {"trap 'echo code $?; exit' EXIT; exit 3", 3, "code 3\n"},
      {"set -e; trap 'echo code $?' INT EXIT; false; echo no", 1, "code 1\n"},
      {"trap 'echo one' EXIT; trap 'echo two' EXIT; false", 1, "two\n"},
      {"trap 'echo no' EXIT; trap - EXIT; false; exit", 1, ""},
      {"f() { trap 'echo of f' EXIT; }; f; exit 2", 2, "of f\n"},
      {"trap 'echo \"it'\\''s\"' EXIT; exit 5", 5, "it's\n"},
  };
  for (const char* shell : {"/bin/sh", "/bin/bash"}) {
    if (access(shell, X_OK) != 0) continue;
    for (const auto& [command, code, output] : cases) {
      RunFixture run;
      run.settings.shell = shell;
      run.add(step_of("s", {command, "true"}));
      CAPTURE(shell);
      CAPTURE(command);
      CHECK(run.run().failed == 1);
      CHECK(run.stored()[0].workpackage.outcome.exit_code == code);
      CHECK(run.file("000000_s/work/stdout") == output);
    }
  }
}

TEST_CASE("golden: what a here-document prints is the document alone") {
  CHECK(last_line({"cat <<EOF\nx\nEOF\n"}) == "x");
  CHECK(last_line({"cat <<EOF\nx\nEOF\n", "true"}) == "x");
}

TEST_CASE("exported parameters, and a step's export to its children") {
  RunFixture run;
  Parameter p = parameter("ex", "hello $p");
  p.exported = true;
  run.add(set_of("ps", {parameter("p", "1,2"), p}));
  Step gen = step_of("gen", {"export Q=q$p"}, {"ps"});
  gen.exported = true;
  run.add(gen);
  run.add(step_of("post", {"echo $(printenv ex) [$Q] $jube_wp_envlist"}, {}, {"gen"}));
  run.add(step_of("closed", {"echo [$Q]"}, {}, {"post"}));
  CHECK(run.run().done == 6);
  CHECK(run.file("000002_post/work/stdout") == "hello 1 [q1] ex\n");
  CHECK(run.file("000003_post/work/stdout") == "hello 2 [q2] ex\n");
  CHECK(run.file("000004_closed/work/stdout") == "[]\n");
}

TEST_CASE("env and env_unset of a step") {
  RunFixture run;
  run.add(set_of("ps", {parameter("n", "7")}));
  Step step = step_of("s", {"echo [$OMP_NUM_THREADS] [$HOME]"}, {"ps"});
  step.env.push_back({{"OMP_NUM_THREADS", {}}, {"$n", {}}});
  step.env_unset.push_back({"HOME", {}});
  run.add(step);
  CHECK(run.run().done == 1);
  CHECK(run.file("000000_s/work/stdout") == "[7] []\n");
}

TEST_CASE("parse_exports: dash, bash, cut short") {
  const auto dash = parse_exports("export A='it'\"'\"'s'\nexport B\nexport C='a\nb'\n", {});
  REQUIRE(dash);
  CHECK(*dash == Environment{{"A", "it's"}, {"C", "a\nb"}});
  const auto bash = parse_exports(
      "declare -x A=\"q\\\" \\$ \\\\\"\ndeclare -rx B=$'t\\tn\\n\\'\\303\\274'\ndeclare -x C\n",
      {});
  REQUIRE(bash);
  CHECK(*bash == Environment{{"A", "q\" $ \\"}, {"B", "t\tn\n'ü"}});
  CHECK_FALSE(parse_exports("export A='un", {}));
  CHECK_FALSE(parse_exports("export A='1'\nexport B='2", {}));
  CHECK_FALSE(parse_exports("something else\n", {}));
  // A name no shell can hold is carried over as it was.
  CHECK(parse_exports("export A='1'\n", {{"x.y", "2"}})->at("x.y") == "2");
}

TEST_CASE("changes: difference, packing, application") {
  const Environment base{{"A", "1"}, {"B", "2"}, {"PWD", "/"}};
  const Environment after{{"A", "1"}, {"C", "3"}, {"PWD", "/x"}};
  const EnvironmentChanges changes = difference(base, after);
  CHECK(changes == EnvironmentChanges{{"B", std::nullopt}, {"C", "3"}});
  CHECK(unpack_changes(pack_changes(changes)) == changes);
  CHECK(with_changes(base, changes) == Environment{{"A", "1"}, {"C", "3"}, {"PWD", "/"}});
}

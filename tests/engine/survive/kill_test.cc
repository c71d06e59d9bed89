// kill -9 of the engine at its journal's writes and between its system calls, through strace, which
// kills at the N-th call that it sees. Then `continue`: what was finished is kept, nothing finished
// runs twice, the table is that of a run nobody disturbed.
#include <doctest/doctest.h>

#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/shell.h"

using tally::testing::count_of;
using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

namespace {

constexpr const char* kSmall = R"yaml(name: small
outpath: run
parameterset:
  name: p
  parameter: {name: i, type: int, _: "1,2"}
patternset:
  name: pt
  pattern: {name: v, type: int, _: "v=$jube_pat_int"}
step:
  - name: a
    use: p
    do:
      - echo "v=$i"; echo a$i >> $jube_benchmark_home/log
      - echo again
  - name: b
    depend: a
    do: echo "v=1$i"; echo b$i >> $jube_benchmark_home/log
analyser:
  name: an
  use: pt
  analyse: {step: b, file: stdout}
result:
  use: an
  table: {name: t, style: csv, column: [i, v]}
)yaml";
constexpr const char* kTable = "i,v\n1,11\n2,12\n";
const std::vector<std::pair<std::string, std::string>> kWorkpackages = {
    {"000000_a", "a1"}, {"000001_a", "a2"}, {"000002_b", "b1"}, {"000003_b", "b2"}};

bool strace_works(const Shell& shell) {
  return shell.sh("strace -o /dev/null -e inject=all:signal=KILL:when=60000 true").code == 0;
}

// Kills a fresh run at the `when`-th call of `calls`; false when it ended before that.
bool killed_at(const Shell& shell, const std::string& calls, int when) {
  shell.clear();
  shell.file("small.yaml", kSmall);
  const Ran ran =
      shell.sh("strace -o /dev/null -e trace=" + calls + " -e inject=" + calls +
               ":signal=KILL:when=" + std::to_string(when) + " \"$TALLY\" run small.yaml");
  if (ran.code != 0) CHECK(ran.code == 137);
  return ran.code != 0;
}

// The run that a kill left, gone on with.
void check_continued(const Shell& shell) {
  std::vector<std::string> finished;  // the mark is made after the journal has the end
  for (const auto& [folder, line] : kWorkpackages) {
    if (shell.exists("run/000000/" + folder + "/done")) finished.push_back(line);
  }
  const Ran went_on = shell.tally("continue -r run");
  if (has(went_on.err, ": is not a complete journal; start the run again\n") ||
      has(went_on.err, ": no run of tally here (journal.sqlite is missing)\n") ||
      went_on.code == 2) {
    // Killed before there was a run: it says so, and is not in the way of a new one.
    CHECK(finished.empty());
    CHECK(has(went_on.err, "tally: error: "));
    CHECK(!shell.exists("log"));
    const Ran fresh = shell.tally("run -r small.yaml");
    CHECK_MESSAGE(fresh.code == 0, fresh.err);
    CHECK(has(fresh.out, kTable));
    return;
  }
  CHECK_MESSAGE(went_on.code == 0, went_on.err);
  CHECK(has(went_on.out, kTable));
  const std::string log = shell.content("log");
  for (const auto& [folder, line] : kWorkpackages) {
    CHECK(shell.exists("run/000000/" + folder + "/done"));
    CHECK_MESSAGE(count_of(log, line) >= 1, log);
  }
  for (const std::string& line : finished) {
    CHECK_MESSAGE(count_of(log, line) == 1, "finished before the kill, and ran again: " << line);
  }
  // Continued once more there is nothing left to do.
  CHECK(shell.tally("continue run").code == 0);
  CHECK(shell.content("log") == log);
}

// The calls of an undisturbed run, in order: name, and its how-manieth of that name.
std::vector<std::pair<std::string, int>> calls_of_a_run(const Shell& shell) {
  shell.clear();
  shell.file("small.yaml", kSmall);
  CHECK(shell.sh("strace -o calls \"$TALLY\" run small.yaml").code == 0);
  std::vector<std::pair<std::string, int>> calls;
  std::map<std::string, int> seen;
  std::istringstream lines(shell.content("calls"));
  for (std::string line; std::getline(lines, line);) {
    const size_t end = line.find('(');
    if (end == std::string::npos ||
        line.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") != end) {
      continue;  // a signal, or the end
    }
    const std::string name = line.substr(0, end);
    calls.emplace_back(name, ++seen[name]);
  }
  return calls;
}

// An engine on host "login1" that is suspended while its command runs. $ENGINE is its process.
constexpr const char* kSuspend = R"sh(
cat > wait.yaml <<'Y'
name: wait
outpath: run
parameterset: {name: p, parameter: {name: i, _: "1,2"}}
step: {name: s, use: p, do: "until test -e ../../../../go; do sleep 0.05; done; echo v=$i"}
Y
TALLY_HOST=login1 "$TALLY" run wait.yaml -j1 > first.out 2>&1 < /dev/null &
ENGINE=$!
trap 'touch go; kill -CONT $ENGINE 2>/dev/null' EXIT
until test -d run/000000/000000_s/work; do sleep 0.02; done
kill -STOP $ENGINE
until grep -q '^State:.*stopped' /proc/$ENGINE/status; do sleep 0.02; done
touch -d '1 hour ago' run/000000/journal.lease
cp -p run/000000/journal.lease lease.before
)sh";

// What is left when somebody else has tried: the lease is the first engine's, which goes on.
constexpr const char* kGoOn = R"sh(
cmp run/000000/journal.lease lease.before || exit 20
touch go
kill -CONT $ENGINE
wait $ENGINE || exit 21
"$TALLY" continue run || exit 22
)sh";

}  // namespace

TEST_CASE("killed at every write of the journal, then continued") {
  const Shell shell;
  if (!strace_works(shell)) {
    MESSAGE("skipped: strace cannot be used here");
    return;
  }
  int kills = 0;
  for (; killed_at(shell, "pwrite64", kills + 1); ++kills) {
    CAPTURE(kills);
    check_continued(shell);
  }
  CHECK(kills > 20);
}

TEST_CASE("killed between every two system calls, then continued") {
  const Shell shell;
  if (!strace_works(shell)) {
    MESSAGE("skipped: strace cannot be used here");
    return;
  }
  const auto calls = calls_of_a_run(shell);
  int kills = 0;
  // Before the first folder is made there is nothing that could be lost: some of these calls will
  // do.
  bool begun = false;
  for (size_t i = 0; i < calls.size(); ++i) {
    begun = begun || calls[i].first.rfind("mkdir", 0) == 0;
    if (!begun && i % 7 != 0) continue;
    const auto name = calls[i].first;
    const auto when = calls[i].second;
    CAPTURE(name);
    CAPTURE(when);
    if (name == "execve" || !killed_at(shell, name, when)) continue;
    check_continued(shell);
    ++kills;
  }
  CHECK(kills > 250);
}

// The first engine goes on, or the one that takes over does.
TEST_CASE("a take-over from a suspended engine, killed or failed at each system call") {
  const Shell shell;
  if (!strace_works(shell)) {
    MESSAGE("skipped: strace cannot be used here");
    return;
  }
  std::string how;
  SUBCASE("killed") {
    how = "signal=KILL";
  }
  SUBCASE("an I/O error") {
    how = "error=EIO";
  }
  SUBCASE("no memory or descriptors") {
    how = "error=ENOMEM";
  }
  CAPTURE(how);
  const Ran ran = shell.sh(std::string(kSuspend) + R"sh(
export TALLY_HOST=login2
strace -o calls "$TALLY" continue run > second.out 2>&1
test $? = 1 && grep -q "is in use by tally on host login1, process $ENGINE," second.out || exit 10
# From the first look at the run on.
at=$(grep -n 'journal.sqlite' calls | head -n 1 | cut -d: -f1)
sed 's/(.*//' calls | awk -v at=$at '/^[a-z_0-9]+$/ {n[$1]++; if (NR >= at && $1 != "execve" && $1 != "exit_group") print $1, n[$1]}' > each
test $(wc -l < each) -gt 15 || exit 11
while read call when; do
  strace -o /dev/null -e trace=$call -e inject=$call:)sh" +
                           how + R"sh(:when=$when "$TALLY" continue run > second.out 2>&1
  test $? != 0 || { echo "$call $when"; exit 12; }
  cmp run/000000/journal.lease lease.before || { echo "$call $when"; exit 13; }
done < each
)sh" + kGoOn);
  CHECK_MESSAGE(ran.code == 0, ran.out << ran.err);
  CHECK(has(shell.content("run/000000/000001_s/work/stdout"), "v=2"));
}

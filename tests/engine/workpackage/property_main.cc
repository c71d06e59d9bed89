// Random workflows: every part of the engine sees the same workpackages and values.
//
//   property_test                    the seeds of every day
//   property_test --seeds FROM TO    these, TO not among them
//   property_test --first FROM TO    the same, up to the first that fails, which stays as it is
//   property_test --print SEED       the seed's workflow
//
// A seed that fails is printed with its workflow, made as small as it can be by leaving elements
// out, and the difference.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include <unistd.h>

#include "engine/expand/evaluator.h"
#include "tests/engine/execute/run_fixture.h"
#include "tests/engine/workpackage/draw.h"
#include "tests/engine/workpackage/play.h"

namespace tally::testing {
namespace {

constexpr uint64_t every_day = 300;

Played play_in_new_folder(const Drawing& drawing, uint64_t seed, Evaluator& evaluator) {
  const TemporaryFolder folder;
  setenv("TALLY_PROPERTY", "of the engine", 1);
  setenv("TALLY_PROPERTY_FOLDER", (folder.path() + "/own").c_str(), 1);
  try {
    const Drawn drawn{render(drawing.root), render(drawing.long_form), drawing.tags};
    Played played = play(drawn, seed, folder.path(), evaluator);
    if (chdir("/") != 0) played.what += " (and there is no root folder)";
    return played;
  } catch (const std::exception& error) {
    Played played;
    played.end = Played::End::different;
    played.what = std::string("thrown: ") + error.what();
    return played;
  }
}

// Leaves elements out while there is still a difference. A short form stays as it was drawn: its long
// form would no longer be that of what is left.
Drawing smaller(Drawing drawing, uint64_t seed, Evaluator& evaluator, std::string* what) {
  if (!drawing.long_form.children.empty()) return drawing;
  int tries = 400;
  for (bool less = true; less && tries > 0;) {
    less = false;
    for (const Path& path : elements(drawing.root)) {
      if (--tries <= 0) break;
      Drawing tried = drawing;
      tried.root = without(drawing.root, path);
      const Played played = play_in_new_folder(tried, seed, evaluator);
      if (played.end != Played::End::different) continue;
      drawing = std::move(tried);
      *what = played.what;
      less = true;
      break;
    }
  }
  return drawing;
}

void report(uint64_t seed, const Drawing& drawing, std::string what, Evaluator& evaluator) {
  const Drawing small = smaller(drawing, seed, evaluator, &what);
  std::string tags;
  for (const std::string& tag : small.tags) tags += " " + tag;
  printf("seed %llu, tags:%s\n%s\n----\n%s----\n", static_cast<unsigned long long>(seed),
         tags.c_str(), what.c_str(), render(small.root).c_str());
  fflush(stdout);
}

int run(uint64_t from, uint64_t to, bool first_only = false) {
  const auto evaluator = make_evaluator("/");
  int count[4] = {0, 0, 0, 0};
  long long workpackages = 0, values = 0, commands = 0, sessions = 0;
  for (uint64_t seed = from; seed < to; ++seed) {
    const Drawing drawing = draw(seed);
    const Played played = play_in_new_folder(drawing, seed, *evaluator);
    ++count[static_cast<int>(played.end)];
    workpackages += played.workpackages;
    values += played.values;
    commands += played.commands;
    sessions += played.sessions;
    if (played.end == Played::End::different && first_only) {
      printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), played.what.c_str());
      return 1;
    }
    if (played.end == Played::End::different) report(seed, drawing, played.what, *evaluator);
    if (played.end == Played::End::refused && getenv("TALLY_PROPERTY_VERBOSE") != nullptr) {
      printf("seed %llu is refused:\n%s", static_cast<unsigned long long>(seed),
             played.what.c_str());
    }
    if (count[1] >= 10) break;
  }
  printf(
      "%d workflows equal, %d different, %d refused, %d too large; %lld workpackages, %lld "
      "sessions, %lld commands, %lld values\n",
      count[0], count[1], count[2], count[3], workpackages, sessions, commands, values);
  // A drawing that is refused, or too large to be run, tests nothing: there may not be many.
  const bool few = static_cast<uint64_t>(count[2] + count[3]) * 4 > to - from;
  if (few) printf("too many are refused or too large\n");
  return count[1] > 0 || few ? 1 : 0;
}

}  // namespace
}  // namespace tally::testing

int main(int argc, char** argv) {
  using namespace tally::testing;
  if (argc == 3 && strcmp(argv[1], "--print") == 0) {
    const Drawing drawing = draw(strtoull(argv[2], nullptr, 10));
    printf("# tags:");
    for (const std::string& tag : drawing.tags) printf(" %s", tag.c_str());
    printf("\n%s", render(drawing.root).c_str());
    return 0;
  }
  if (argc == 4 && (strcmp(argv[1], "--seeds") == 0 || strcmp(argv[1], "--first") == 0)) {
    return run(strtoull(argv[2], nullptr, 10), strtoull(argv[3], nullptr, 10),
               strcmp(argv[1], "--first") == 0);
  }
  return run(0, every_day);
}

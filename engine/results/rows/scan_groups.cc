#include "engine/results/rows/scan_groups.h"

#include <algorithm>
#include <future>
#include <thread>

#include "engine/base/in_thread.h"

namespace tally {
namespace {

// A thread is worth it from some hundred small files on. Few threads: a login node belongs to all.
constexpr size_t kLeast = 500;
constexpr size_t kMostThreads = 4;

struct Range {
  size_t begin = 0, end = 0;
};

std::vector<Range> divide(size_t count) {
  const size_t threads = std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostThreads);
  const size_t parts = std::clamp<size_t>(count / kLeast, 1, threads);
  std::vector<Range> ranges;
  for (size_t i = 0; i < parts; ++i) ranges.push_back({count * i / parts, count * (i + 1) / parts});
  return ranges;
}

class Reader {
 public:
  Reader(const Benchmark& benchmark, const Analyser& analyser, bool each_member, Groups& groups)
      : benchmark_(benchmark), analyser_(analyser), each_member_(each_member), groups_(groups) {}

  Scanner read(const Range& range) const {
    Scanner scanner(benchmark_, analyser_);
    for (size_t i = range.begin; i < range.end; ++i) read(groups_.all()[i], scanner);
    return scanner;
  }

 private:
  void read(Group& group, Scanner& scanner) const {
    const Analyse* analyse = groups_.find(group.members.front()->step);
    const bool some_count = groups_.any_counts(group);
    if (each_member_ && group.members.size() > 1) group.own.resize(group.members.size());
    for (size_t i = 0; i < group.members.size(); ++i) {
      if (some_count && !groups_.counts(*group.members[i])) continue;
      scanner.scan(*analyse, *group.members[i],
                   {&group.found, group.own.empty() ? nullptr : &group.own[i], &group.files});
    }
  }

  const Benchmark& benchmark_;
  const Analyser& analyser_;
  const bool each_member_;
  Groups& groups_;
};

}  // namespace

Scanner scan_groups(const Benchmark& benchmark, const Analyser& analyser, bool each_member,
                    Groups& groups) {
  const Reader reader(benchmark, analyser, each_member, groups);
  const std::vector<Range> ranges = divide(groups.all().size());
  std::vector<std::future<Scanner>> others;
  for (size_t i = 1; i < ranges.size(); ++i)
    others.push_back(in_thread([&reader, range = ranges[i]] { return reader.read(range); }));
  Scanner scanner = reader.read(ranges.front());
  for (std::future<Scanner>& other : others) scanner.add(other.get());
  return scanner;
}

}  // namespace tally

// tally-train links, and the hash of weights that a fleet of machines compares.
#include <doctest/doctest.h>

#include <set>
#include <sstream>

#include "src/train/commands/links.h"
#include "tests/train/parallel/ranks.h"

using namespace tally::train;

namespace {

std::vector<std::string> lines_with(const std::string& text, const std::string& begin) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    if (line.rfind(begin, 0) == 0) found.push_back(line);
  return found;
}

}  // namespace

TEST_CASE("a wrong sum is found, wherever it is") {
  const std::vector<int> ranks{0, 3, 40000};
  std::vector<float> sums(1000);
  for (size_t i = 0; i < sums.size(); ++i)
    for (const int r : ranks) sums[i] += link_element(r, static_cast<int64_t>(i));
  CHECK(first_wrong_sum(sums, ranks) == -1);
  for (const size_t at : {0, 250, 251, 999}) {
    std::vector<float> wrong = sums;
    wrong[at] += 1;
    CHECK(first_wrong_sum(wrong, ranks) == static_cast<int64_t>(at));
    wrong[at] = NAN;
    CHECK(first_wrong_sum(wrong, ranks) == static_cast<int64_t>(at));
  }
  // Neither another rank's numbers nor a shift by an element is taken for right.
  CHECK(first_wrong_sum(sums, {0, 3, 40001}) >= 0);
  CHECK(first_wrong_sum({sums.begin() + 1, sums.end()}, ranks) >= 0);
}

TEST_CASE("links: one line of all ranks and one of each pair, for each size") {
  for (const int n : {2, 3}) {
    const Ended ended =
        tally_train(fmt::format("links --device cpu --nproc-per-node {} --bytes 8 65536", n));
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    CHECK(contains(ended.out, fmt::format("links of {} ranks on 1 host, ", n)));
    CHECK(lines_with(ended.out, "all_reduce bytes 8 time_us ").size() == 1);
    const auto sums = lines_with(ended.out, "all_reduce bytes 65536 time_us ");
    REQUIRE(sums.size() == 1);
    const auto number = [&](const std::string& word) {
      return std::stod(sums[0].substr(sums[0].find(" " + word + " ") + word.size() + 2));
    };
    CHECK(number("low") <= number("time_us"));
    CHECK(number("time_us") <= number("high"));
    // nccl-tests' bus bandwidth.
    const double rate = 65536 / number("time_us") / 1e3 * 2 * (n - 1) / n;
    CHECK(number("gb_per_s") == doctest::Approx(rate).epsilon(0.02));
    std::set<std::string> pairs;
    for (const std::string& line : lines_with(ended.out, "exchange bytes 65536"))
      pairs.insert(line.substr(line.find("from")));
    CHECK(pairs == (n == 2 ? std::set<std::string>{"from 1 to 0", "from 0 to 1"}
                           : std::set<std::string>{"from 2 to 0", "from 0 to 1", "from 1 to 2"}));
  }
}

TEST_CASE("links: bad input is one sentence, before anything is started") {
  for (const auto& [words, sentence] :
       {std::pair{"links --device cpu", "one process has no links"},
        std::pair{"links --device cpu --nproc-per-node 2 --bytes 6", "6 is not a multiple of 4"},
        std::pair{"links --device cpu --nproc-per-node 2 --bytes 0", "--bytes"},
        std::pair{"links --nproc-per-node 2 --train-iters 3", "--train-iters: not a flag of links"},
        std::pair{"links --nproc-per-node", "--nproc-per-node: needs a value"}}) {
    const Ended ended = tally_train(words);
    CHECK(ended.code == 2);
    CHECK_MESSAGE(contains(ended.err, sentence), ended.err);
    CHECK(count(ended.err, "\n") == 1);
    CHECK(ended.out.empty());
  }
  CHECK(contains(tally_train("links --help").out, "--bytes INT"));
}

TEST_CASE("the hash of weights repeats, and is that of these steps") {
  const Folder folder("links_hash");
  const auto hash = [&](const std::string& more) {
    const Ended ended =
        tally_train(flags + "--train-iters 3 " + more + " --record " + folder / "r.json");
    REQUIRE_MESSAGE(ended.code == 0, ended.err);
    return read_json(folder / "r.json")["results"]["weights_hash"];
  };
  const json one = hash("--deterministic");
  CHECK(one.get<std::string>().size() == 16);
  CHECK(hash("--deterministic") == one);
  CHECK(hash("--deterministic --seed 7") != one);
  CHECK(hash("--deterministic --lr 2e-3") != one);
  CHECK(hash("").is_null());
  const json two = hash("--deterministic --nproc-per-node 2");
  CHECK(hash("--deterministic --nproc-per-node 2") == two);
  const json divided = hash("--deterministic --nproc-per-node 2 --tensor-model-parallel-size 2");
  CHECK(divided.get<std::string>().size() == 16);
}

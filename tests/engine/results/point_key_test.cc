// Points: which workpackages and rows are the same one.
#include "engine/results/rows/point_key.h"

#include <doctest/doctest.h>

using namespace tally;

namespace {

using NamedTexts = std::vector<std::pair<std::string, std::string>>;

WorkpackageView view(int id, const std::string& step, const NamedTexts& parameters) {
  WorkpackageView made;
  made.id = id;
  made.step = step;
  made.values = parameters;
  made.parameters = parameters.size();
  return made;
}

Parameter parameter(const std::string& name, const std::string& value,
                    UpdateMode update = UpdateMode::never) {
  Parameter made;
  made.name.value = name;
  made.value.value = value;
  made.update = update;
  return made;
}

}  // namespace

TEST_CASE("a point has the values of its workpackage's parameters, and no others") {
  std::vector<WorkpackageView> views = {view(0, "s", {{"n", "1"}, {"label", "x"}}),
                                        view(1, "t", {{"label", "y"}, {"m", "2"}, {"n", "1"}})};
  views[1].values.emplace_back("jube_wp_id", "1");  // is no parameter
  const auto points = std::make_shared<const Points>(views, true);
  CHECK(*PointKey(points, 0).value("label") == "x");
  CHECK(*PointKey(points, 1).value("label") == "y");
  CHECK(PointKey(points, 0).value("m") == nullptr);
  CHECK(PointKey(points, 1).value("jube_wp_id") == nullptr);
  CHECK(PointKey(points, 7).value("n") == nullptr);   // no such workpackage
  CHECK(PointKey(nullptr, 0).value("n") == nullptr);  // a row of no run
  CHECK(PointKey(points, 0).text({"n", "m"}) == PointKey(points, 1).text({"n"}));
  CHECK(!points->differs(points->find("n")));
  CHECK(points->differs(points->find("label")));
  const std::vector<int> order = points->of(1);  // that of the step
  REQUIRE(order.size() == 3);
  CHECK(points->name(order[1]) == "m");
}

TEST_CASE("numbers are the same in any spelling; the written text is kept") {
  std::vector<WorkpackageView> views = {
      view(0, "s", {{"x", "1e-3"}}), view(1, "s", {{"x", "0.001"}}), view(2, "s", {{"x", "fast"}})};
  WorkpackageView::Types types = {{"x", ValueType::floating}};
  for (WorkpackageView& one : views) one.types = WorkpackageView::Types(types);
  const auto points = std::make_shared<const Points>(views, true);
  CHECK(PointKey(points, 0).text({"x"}) == PointKey(points, 1).text({"x"}));
  CHECK(*PointKey(points, 0).value("x") == "0.001");
  CHECK(*points->written(0, points->find("x")) == "1e-3");
  CHECK(*PointKey(points, 2).value("x") == "fast");  // as a table shows it
}

TEST_CASE("repeats are the same point: what varies between them and JUBE's values do not count") {
  std::vector<WorkpackageView> views = {
      view(0, "s", {{"n", "1"}, {"seed", "17"}, {"jube_own", "a"}, {"launch", "./run 0"}}),
      view(1, "s", {{"n", "1"}, {"seed", "99"}, {"jube_own", "b"}, {"launch", "./run 1"}}),
      view(2, "s", {{"n", "2"}, {"seed", "17"}, {"jube_own", "a"}, {"launch", "./run 2"}}),
      view(3, "t", {{"n", "1"}, {"seed", "17"}, {"jube_own", "a"}, {"launch", "./run 3"}})};
  // A key of the step hides the parameter, whose own value is that of the point.
  for (WorkpackageView& one : views) one.hidden = {{"launch", "srun"}};
  const auto points = std::make_shared<const Points>(views, true);
  const auto key = [&](size_t i) { return key_of_repeats(points, views[i], {"seed"}); };
  CHECK(key(0) == key(1));
  CHECK(key(0) != key(2));
  CHECK(key(0) != key(3));  // another step
  CHECK(*PointKey(points, 1).value("launch") == "srun");
}

TEST_CASE(
    "free parameters are not derived; varying ones follow from the workpackage or are done again") {
  Benchmark benchmark;
  benchmark.parameter_sets["p"].parameters = {
      parameter("n", "1,2"), parameter("twice", "2*$n"), parameter("time", "1", UpdateMode::step),
      parameter("seed", "7$jube_wp_iteration"), parameter("of_seed", "$seed$n")};
  benchmark.parameter_sets["a"].parameters = {parameter("first", "1")};
  Step step;
  step.use = {{"p", {}}};
  benchmark.steps.push_back(step);
  CHECK(free_parameters(benchmark) == std::set<std::string>{"first", "n", "time"});
  CHECK(varying_parameters(benchmark) == std::set<std::string>{"of_seed", "seed", "time"});
  CHECK(parameter_order(benchmark) ==
        std::vector<std::string>{"n", "twice", "time", "seed", "of_seed", "first"});
}

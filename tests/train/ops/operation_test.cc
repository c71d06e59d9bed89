// How operations register, and what a caller may hand them.
#include <doctest/doctest.h>

#include <type_traits>

#include "src/ops/operation.h"

namespace tally::train {
namespace {

// Operands cannot change places unseen: nothing becomes an output by itself.
static_assert(std::is_convertible_v<Tensor, In> && std::is_convertible_v<Out, In>);
static_assert(!std::is_convertible_v<Tensor, Out> && !std::is_convertible_v<In, Out>);
static_assert(!std::is_constructible_v<Out, In>);
static_assert(std::is_same_v<decltype(In().as<float>()), const float*>);
static_assert(std::is_same_v<decltype(Out().as<float>()), float*>);

TEST_CASE("every operation has a version for each kind of device of the build") {
  std::set<DeviceKind> built;
  for (const auto& [name, kinds] : registered_versions()) built.insert(kinds.begin(), kinds.end());
  CHECK(built.contains(DeviceKind::cpu));
  CHECK(registered_versions().size() > 40);
  for (const auto& [name, kinds] : registered_versions()) {
    INFO(name);
    CHECK((kinds == built));
  }
}

TEST_CASE("a call reaches the version of its device, or says that there is none") {
  static Operation<int(Stream & s, In x, int add)> first{"first"};
  static const Operation<int(Stream & s)> nothing{"nothing"};
  first.serve(DeviceKind::cpu, [](Stream&, In x, int add) { return x.as<int32_t>()[0] + add; });
  const auto stream = make_stream(Device{});
  int32_t value = 40;
  CHECK(first(*stream, Tensor(&value, DType::i32, {1}), 2) == 42);
  CHECK(first.serves(DeviceKind::cpu));
  CHECK_FALSE(first.serves(DeviceKind::cuda));
  CHECK_THROWS_WITH_AS(nothing(*stream), "nothing has no version for the CPU", DeviceError);
}

}  // namespace
}  // namespace tally::train

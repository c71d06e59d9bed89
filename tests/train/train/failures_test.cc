#include "src/train/run/failures.h"

#include <doctest/doctest.h>

#include <new>

#include "src/device/errors.h"

using namespace tally::train;

namespace {

template <typename E>
Ending ending_of(const E& error, const Config& config = {}) {
  return describe_failure(std::make_exception_ptr(error), config);
}

}  // namespace

TEST_CASE("out of memory is distinguished from other errors, with what to try") {
  Config c;
  c.micro_batch = 8;
  Ending e = ending_of(OutOfMemory("10.00 GiB for logits were asked for, 3.00 GiB are free"), c);
  CHECK(e.outcome == Outcome::out_of_memory);
  CHECK(e.message ==
        "out of memory: 10.00 GiB for logits were asked for, 3.00 GiB are free; try "
        "--micro-batch-size "
        "below 8 (the global batch stays the same), --recompute-granularity full, --bf16, "
        "--seq-length "
        "below 1024");
  c.micro_batch = 1;
  c.precision = Precision::bf16;
  c.recompute = Recompute::full;
  e = ending_of(std::bad_alloc(), c);
  CHECK(e.outcome == Outcome::out_of_memory);
  CHECK(
      e.message ==
      "out of memory: the host has no memory left for the run; try a smaller model (--num-layers, "
      "--hidden-size) or a device with more memory");
  e = ending_of(
      std::runtime_error("DefaultCPUAllocator: can't allocate memory: you tried ...\nframe #0"), c);
  CHECK(e.outcome == Outcome::out_of_memory);
  CHECK(e.message.find("frame") == std::string::npos);
}

TEST_CASE("a shortage that was found beforehand has its own advice") {
  const Ending e = ending_of(MemoryShortage("9 GiB are needed; try --micro-batch-size 2"));
  CHECK(e.outcome == Outcome::out_of_memory);
  CHECK(e.message == "out of memory: 9 GiB are needed; try --micro-batch-size 2");
}

TEST_CASE("checks and other errors") {
  CHECK(ending_of(CheckFailed("nan")).outcome == Outcome::failed_check);
  CHECK(ending_of(InputError("--load-hf: no")).outcome == Outcome::bad_input);
  for (const Outcome o :
       {Outcome::bad_input, Outcome::out_of_memory, Outcome::failed_check, Outcome::error}) {
    Failure failure;
    failure.code = exit_code(o);
    CHECK(describe_failure(failure).outcome == o);
  }
  CHECK(ending_of(DeviceError("an illegal memory access")).outcome == Outcome::error);
  CHECK(ending_of(std::runtime_error("one\ntwo")).message == "one");
}

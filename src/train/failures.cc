#include "src/train/failures.h"

#include <fmt/format.h>

#include <new>

#include "src/device/errors.h"

namespace tally::train {
namespace {

std::string what_to_try(const Config& c) {
  std::string text;
  const auto add = [&](const std::string& advice) { text += (text.empty() ? "" : ", ") + advice; };
  if (c.micro_batch > 1)
    add(fmt::format("--micro-batch-size below {} (the global batch stays the same)",
                    c.micro_batch));
  if (c.recompute != Recompute::full) add("--recompute-granularity full");
  if (c.precision == Precision::f32 || c.precision == Precision::f64 || uses_tf32(c.precision))
    add("--bf16");
  add(fmt::format("--seq-length below {}", c.sequence));
  return "try " + text;
}

// LibTorch's allocator has no exception type of its own for the CPU.
bool says_out_of_memory(const std::string& what) {
  for (const char* phrase : {"can't allocate memory", "out of memory", "Cannot allocate memory"})
    if (what.find(phrase) != std::string::npos) return true;
  return false;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

Ending out_of_memory(const std::string& what, const Config& config) {
  const bool advises = what.find("--micro-batch-size") != std::string::npos;
  return {Outcome::out_of_memory,
          "out of memory: " + first_line(what) + (advises ? "" : "; " + what_to_try(config))};
}

}  // namespace

Ending describe_failure(const std::exception_ptr& error, const Config& config) {
  try {
    std::rethrow_exception(error);
  } catch (const OutOfMemory& e) {
    return out_of_memory(e.what(), config);
  } catch (const std::bad_alloc&) {
    return out_of_memory("the host has no memory left for the run", config);
  } catch (const CheckFailed& e) {
    return {Outcome::failed_check, e.what()};
  } catch (const std::exception& e) {
    if (says_out_of_memory(e.what())) return out_of_memory(e.what(), config);
    return {Outcome::error, first_line(e.what())};
  } catch (...) {
    return {Outcome::error, "an error of unknown type"};
  }
}

}  // namespace tally::train

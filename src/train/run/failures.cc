#include "src/train/run/failures.h"

#include <fmt/format.h>

#include <new>
#include <system_error>

#include "src/device/errors.h"
#include "src/train/run/host_memory.h"

namespace tally::train {
namespace {

// LibTorch's CPU allocator has no exception type of its own.
bool says_out_of_memory(const std::string& what) {
  for (const char* phrase : {"can't allocate memory", "out of memory", "Cannot allocate memory"})
    if (what.find(phrase) != std::string::npos) return true;
  return false;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// libstdc++ says of a thread that cannot be started only that a resource is not available.
std::string thread_advice(const std::exception& error) {
  const auto* of_system = dynamic_cast<const std::system_error*>(&error);
  if (!of_system || of_system->code() != std::errc::resource_unavailable_try_again) return "";
  return ": no further thread can be started: 'ulimit -u' limits their number, 'ulimit -v' memory";
}

Ending out_of_memory(const std::string& what, const Config& config) {
  return {Outcome::out_of_memory,
          "out of memory: " + first_line(what) + "; " + memory_advice(config)};
}

}  // namespace

Ending describe_failure(const std::exception_ptr& error, const Config& config) {
  try {
    std::rethrow_exception(error);
  } catch (const MemoryShortage& e) {
    return {Outcome::out_of_memory, std::string("out of memory: ") + e.what()};
  } catch (const OutOfMemory& e) {
    return out_of_memory(e.what(), config);
  } catch (const std::bad_alloc&) {
    return out_of_memory("the host has no memory left for the run", config);
  } catch (const InputError& e) {
    return {Outcome::bad_input, e.what()};
  } catch (const CheckFailed& e) {
    return {Outcome::failed_check, e.what()};
  } catch (const StopRequested& e) {
    return {Outcome::signalled, e.what()};
  } catch (const std::exception& e) {
    if (says_out_of_memory(e.what())) return out_of_memory(e.what(), config);
    return {Outcome::error, first_line(e.what()) + thread_advice(e)};
  } catch (...) {
    return {Outcome::error, "an error of unknown type"};
  }
}

Ending describe_failure(const Failure& f) {
  Outcome outcome = Outcome::error;
  for (const Outcome known :
       {Outcome::bad_input, Outcome::out_of_memory, Outcome::failed_check, Outcome::signalled})
    if (f.code == exit_code(known)) outcome = known;
  return {outcome, fmt::format("rank {} on {}: {}", f.rank, f.host, f.message)};
}

}  // namespace tally::train

// CUPTI's library, opened at run time. For the files that include CUPTI's headers.
#pragma once

#include <cupti.h>

#include <string>

namespace tally::train::cuda {

class CuptiLibrary {
 public:
  // Throws DeviceError, with what to do, where there is no CUPTI.
  CuptiLibrary();

  // Sets *function to the function `name`. Throws DeviceError where this CUPTI lacks it.
  template <typename Function>
  void load(const char* name, Function* function) const {
    *function = reinterpret_cast<Function>(symbol(name));
  }
  // Calls the function `name` with a struct of parameters. Throws DeviceError.
  template <typename Function, typename Params>
  void call(const char* name, Params* params, const char* what) const {
    Function* function = nullptr;
    load(name, &function);
    check(function(params), what);
  }
  // Throws DeviceError with one sentence, unless `result` is success. `what`: "read counters".
  void check(CUptiResult result, const char* what) const;

 private:
  void* symbol(const char* name) const;

  void* handle_ = nullptr;
  decltype(&cuptiGetResultString) result_string_ = nullptr;
};

// A kernel's name as its source has it.
std::string kernel_name(const char* mangled);

// The newer functions take one struct, which begins with its size, so that CUPTI knows the version
// of its caller.
template <typename Params>
Params cupti_params(size_t size) {
  Params params{};
  params.structSize = size;
  return params;
}
#define CUPTI_PARAMS(TYPE) cupti_params<TYPE>(TYPE##_STRUCT_SIZE)
#define CUPTI_CALL(LIBRARY, FUNCTION, PARAMS, WHAT) \
  (LIBRARY).call<decltype(FUNCTION)>(#FUNCTION, PARAMS, WHAT)

}  // namespace tally::train::cuda

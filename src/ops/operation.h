// An operation: its name, its signature, and a version of it for each kind of device, which the
// file that has the version registers. A header declares the operation once:
//   inline Operation<void(Stream& s, In x, Out amax)> fp8_amax{"fp8_amax"};
// cpu.cc and cuda.cu each end with what they have:
//   const OnCpu versions[] = {{fp8_amax, amax}, {fp8_cast, cast}};
// So does counting.cc, whose versions compute nothing: they count FLOPs and the bytes that they
// would move, and allocate what the others allocate (src/device/counting/counting_stream.h).
// Callers call the object: fp8_amax(s, x, Out(amax)). No code names these versions, so the build
// links every object of train_ops whether or not a symbol of it is asked for (CMakeLists.txt).
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "src/device/compute_options.h"
#include "src/device/stream.h"
#include "src/ops/op_range.h"

namespace tally::train {

inline DeviceKind kind_of(Stream& s) {
  return s.device().kind;
}
inline DeviceKind kind_of(const Compute& c) {
  return c.stream.device().kind;
}

[[noreturn]] void no_version(const char* operation, DeviceKind kind);

// The registered versions: a test finds those that are missing.
std::map<std::string, std::set<DeviceKind>>& registered_versions();

template <typename Signature>
class Operation;

// Template argument `Where`: Stream&, or const Compute& of operations that have options.
template <typename Result, typename Where, typename... Arguments>
class Operation<Result(Where, Arguments...)> {
 public:
  using Version = Result(Where, Arguments...);

  // Constant initialization: versions are registered later, in any order of files.
  constexpr explicit Operation(const char* name) : name_(name) {}
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  // The one way to every version: a call is a range in a profiler's timeline, named like the
  // operation.
  Result operator()(Where where, Arguments... arguments) const {
    const OpRange range(name_);
    return version(kind_of(where))(where, arguments...);
  }

  const char* name() const { return name_; }
  bool serves(DeviceKind kind) const { return versions_[static_cast<size_t>(kind)] != nullptr; }
  void serve(DeviceKind kind, Version* with) { versions_[static_cast<size_t>(kind)] = with; }

 private:
  Version* version(DeviceKind kind) const {
    if (!serves(kind)) no_version(name_, kind);
    return versions_[static_cast<size_t>(kind)];
  }

  const char* name_;
  Version* versions_[device_kinds] = {};
};

// Registers a version by being there, as a constant of the file that has it.
template <DeviceKind kind>
struct On {
  template <typename Signature>
  On(Operation<Signature>& operation, typename Operation<Signature>::Version* version) {
    operation.serve(kind, version);
    registered_versions()[operation.name()].insert(kind);
  }
};
using OnCpu = On<DeviceKind::cpu>;
using OnCuda = On<DeviceKind::cuda>;
using OnCounting = On<DeviceKind::counting>;

}  // namespace tally::train

// The GEMMs of the layers, as calls that somebody can make again: what --explain times alone. Every
// GEMM with weights goes through call_gemm().
#pragma once

#include <string>
#include <tuple>
#include <type_traits>

#include "src/nn/context.h"
#include "src/ops/fp8/fp8.h"
#include "src/ops/linear/linear.h"

namespace tally::train {

namespace gemm_calls {

template <typename Operand>
std::string shape_of(const Operand& operand) {
  if constexpr (requires { operand.rank; }) {
    if (!operand.defined()) return "";
    std::string text;
    for (int i = 0; i < operand.rank; ++i)
      text += (i > 0 ? "x" : " ") + std::to_string(operand.dim(i));
    return text + ":" + dtype_name(operand.dtype);
  } else if constexpr (std::is_same_v<Operand, LinearWeights>) {
    return shape_of(operand.w) + (operand.b.defined() ? " bias" : "");
  } else if constexpr (std::is_same_v<Operand, WeightGradients>) {
    return shape_of(operand.dw) + (operand.accumulate ? " added" : "");
  } else if constexpr (std::is_same_v<Operand, Fp8Matrix>) {
    return shape_of(operand.data);
  } else {
    return "";
  }
}

}  // namespace gemm_calls

// Tells the context's hook of a call without making it.
template <typename... Arguments>
void note_gemm(const Operation<void(const Compute&, Arguments...)>& operation,
               const LayerContext& c, std::type_identity_t<Arguments>... arguments) {
  if (!c.gemm_hook) return;
  std::string name = operation.name();
  ((name += gemm_calls::shape_of(arguments)), ...);
  c.gemm_hook({name, [&operation, compute = c.compute,
                      operands = std::tuple<std::decay_t<Arguments>...>(arguments...)] {
                 std::apply([&](const auto&... each) { operation(compute, each...); }, operands);
               }});
}

template <typename... Arguments>
void call_gemm(const Operation<void(const Compute&, Arguments...)>& operation,
               const LayerContext& c, std::type_identity_t<Arguments>... arguments) {
  operation(c.compute, arguments...);
  note_gemm(operation, c, arguments...);
}

}  // namespace tally::train

// The activations that an MLP may have, as one table, for configurations, config.json and
// operations. The formulas are in src/ops/linear (GELU; cpu.cc, passes.cu) and src/ops/swiglu.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tally::train {

// gelu_tanh (GPT): gelu(v) = 0.5 v (1 + tanh(sqrt(2/pi) (v + 0.044715 v^3)))
// gelu_erf (BERT): gelu(v) = v Phi(v), with Phi(v) = 0.5 (1 + erf(v / sqrt(2)))
// swiglu (Llama):  silu(gate) up, from twice the columns
enum class MlpActivation : uint8_t { gelu_tanh, gelu_erf, swiglu };

struct MlpActivationEntry {
  MlpActivation kind;
  const char* name;     // in config.json, as transformers writes it
  const char* synonym;  // another spelling that it reads
  bool gated = false;
};
inline constexpr MlpActivationEntry mlp_activations[] = {
    {MlpActivation::gelu_tanh, "gelu_new", "gelu_pytorch_tanh"},
    {MlpActivation::gelu_erf, "gelu", "gelu"},
    {MlpActivation::swiglu, "silu", "swish", true}};

// The entries are in the order of the enumerators.
constexpr const MlpActivationEntry& entry_of(MlpActivation kind) {
  return mlp_activations[static_cast<size_t>(kind)];
}

}  // namespace tally::train

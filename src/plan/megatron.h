// Megatron-LM's own activations, for comparison.
#pragma once

#include "src/config/config.h"

namespace tally::train {

// The activations of stage 0 for the same layout, bytes: 16-bit types, masks of dropout of one
// byte. Per layer, with sequence s, micro batch b, hidden h, heads a and tensor parallel size t
// (Korthikanti et al. 2022, arXiv:2205.05198, table 2; section 5 for recomputation):
//              plain                                 with sequence parallelism
//   none       s b h (10 + 24 / t + 5 a s / (h t))   s b h (34 + 5 a s / h) / t
//   selective  s b h (10 + 24 / t)                   34 s b h / t
//   full       2 s b h                               2 s b h / t
double megatron_activation_bytes(const Config& config);

}  // namespace tally::train

// The normal distribution, to the precision of 16-bit types.
#pragma once

namespace tally::train::cuda {

// Phi(v) by formula 7.1.26 of Abramowitz and Stegun, whose error of erf is below 1.5e-7: with
// x = |v| / sqrt(2) and t = 1 / (1 + 0.3275911 x),
//   1 - erf(x) = (a1 t + a2 t^2 + a3 t^3 + a4 t^4 + a5 t^5) exp(-x^2)
// The exponential serves the density, too. Below v = -4 Phi's own relative error passes 6e-4.
struct Normal {
  float distribution, density;  // Phi(v), phi(v)
};
__device__ inline Normal normal_of(float v) {
  constexpr float half_log2_e = -0.72134752F, inverse_root_2pi = 0.39894228F;
  float e, t;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(e) : "f"(half_log2_e * v * v));
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(t) : "f"(fmaf(0.23164189F, fabsf(v), 1.0F)));
  float p = fmaf(1.061405429F, t, -1.453152027F);
  p = fmaf(p, t, 1.421413741F);
  p = fmaf(p, t, -0.284496736F);
  p = fmaf(p, t, 0.254829592F);
  const float tail = 0.5F * p * t * e;  // Phi(-|v|)
  return {v < 0.0F ? tail : 1.0F - tail, inverse_root_2pi * e};
}

}  // namespace tally::train::cuda

// Anytime-valid evidence that a rate is above or below a limit: it may be looked at after every
// repeat, and measuring may stop whenever it suffices.
//
// The test is by betting: I. Waudby-Smith, A. Ramdas, "Estimating means of bounded random variables
// by betting", Journal of the Royal Statistical Society B 86 (2024), 1-27. With the gains
// y = clip((x - limit) / unit, -1, 6) of the repeats, the evidence for "above" is
//   E = mean over bets b of prod (1 + b y),  b in {1/8, 1/4, 1/2, 3/4, 1}
// No factor is negative, and each has an expectation of at most 1 if the mean of y is at most 0.
// So E is a non-negative supermartingale where the rate is not above the limit, and the probability
// that it ever reaches 1 / a is at most a (Ville's inequality). The lower clip is one unit, so that
// the limit is compared with a mean that an outlier moves little; the upper clip can only lower E.
#pragma once

#include <vector>

#include "engine/statistics/descriptive.h"
#include "engine/statistics/intervals.h"

namespace tally::statistics {

// Logarithms of rates are samples here; a difference of 0.01 is about 1 %.

// The evidence that the values are above the limit, and that they are below it: 1 without values.
// `unit` is positive.
double evidence_above(const Sample& values, double limit, double unit);
double evidence_below(const Sample& values, double limit, double unit);

// That of bolder bets, which reaches 1 / a with fewer values where they are well above the limit:
// three quarters of the unit, and weights 0.05, 0.05, 0.1, 0.2, 0.6 of the bets in place of equal
// ones. A clip that is so near moves the mean of normal noise by 3 % of its scale.
double bold_evidence_above(const Sample& values, double limit, double unit);

// The scale of the noise of consecutive values: the median of their absolute differences
// / (0.6745 sqrt 2), which is the standard deviation of normal noise. Differences between samples
// do not count. 0 without two values in a sample.
double noise_scale(const std::vector<Sample>& samples);

// The unit of the gains: twice the scale of the noise, and at least 0.001.
double gain_unit(double scale);

// The confidence sequence: all limits against which neither evidence reaches 1 / error on its side,
// error = (1 - confidence) / 2. A side without enough evidence is infinite.
Interval confidence_sequence(const Sample& values, double unit, double confidence = kConfidence);

}  // namespace tally::statistics

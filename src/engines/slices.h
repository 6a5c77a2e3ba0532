// SPDX-License-Identifier: Apache-2.0
// A convolution cut into slices of its groups, or of the channels of its result, which are computed one after
// the other: packed weights and partial sums are those of one slice.
#pragma once

#include <memory>

#include "engines/engine.h"

namespace retrograd::engines {

// The candidate's step for each of about `slices` slices. Null where there are no slices, or the candidate
// does not take them. On a CPU: nobody makes conversions for it.
std::unique_ptr<const Step> make_sliced_step(const Candidate& candidate, const problem::Pass& pass,
                                             const Machine& machine, int64_t slices);

}  // namespace retrograd::engines

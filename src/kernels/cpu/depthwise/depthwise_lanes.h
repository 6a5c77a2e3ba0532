// SPDX-License-Identifier: Apache-2.0
// Planes as the lanes of vectors: places of `plane_lanes()` planes, one vector a place.
//
//   planes_to_lanes   out[i·lanes + l] = planes[l][i]
//   lanes_to_planes   planes[l][i]     = in[i·lanes + l]
//   copy_lanes        out[i·lanes + l] = source[i·step + l]         the lanes lie side by side already
//
// Four places of four planes are transposed in each 128-bit block: a vector is put together from loads of one
// block, so that what follows needs two shuffles a vector and a tail is at most three places, worked on by
// going back over places already done.
#pragma once

#include <cstdint>

#include "kernels/cpu/vector_shape.h"

namespace retrograd::kernels::cpu {

// `planes` has plane_lanes() addresses; strips are aligned to a vector.
void planes_to_lanes(const float* const* planes, int64_t count, float* out);
void lanes_to_planes(const float* in, int64_t count, float* const* planes);
void copy_lanes(const float* source, int64_t step, int64_t count, float* out);

}  // namespace retrograd::kernels::cpu

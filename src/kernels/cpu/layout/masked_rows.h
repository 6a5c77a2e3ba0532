// SPDX-License-Identifier: Apache-2.0
// The sums of row_sums.h and row_dots.h without the products of places that are not there.
//
// Rows of sources are padded with zeros, and a zero times what is not finite is NaN where the mathematics has
// no product. `valid` holds 1 for each place that is there and 0 elsewhere, in the layout of one channel of
// the source; lanes where it is 0 keep their sum. Engines call these where an operand is not finite: twice
// the instructions of the plain forms, and the same order of additions, hence the same bits for what is.
#pragma once

#include "kernels/cpu/few_channels/row_dots.h"
#include "kernels/cpu/few_channels/row_sums.h"

namespace retrograd::kernels::cpu {

// `live`: [inner][results], 0 where a result has no product with a term; null: all have.
void masked_row_sums(const RowSums& rows, const float* valid, const float* live);

// `valid` goes with `source`, through the offsets of the first `valid_terms` terms: those of one channel.
// `y_valid` goes with y's first channel; null: all that y holds is there.
struct RowDotsMask {
  const float* valid = nullptr;
  int64_t valid_terms = 0;
  const float* y_valid = nullptr;
};
void masked_row_dots(const RowDots& dots, const RowDotsMask& mask);

}  // namespace retrograd::kernels::cpu

// SPDX-License-Identifier: Apache-2.0
// Average pooling row by row: quotients once, sums of rows, then sums along the row, or one quotient that
// fills a volume. It gathers, it never scatters.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& avgpool_rows();

}  // namespace retrograd::engines::cpu

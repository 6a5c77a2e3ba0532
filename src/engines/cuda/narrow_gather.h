// SPDX-License-Identifier: Apache-2.0
// grad_input with at most four x channels a group on a GPU: stems and narrow groups.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& narrow_gather();

}  // namespace retrograd::engines::cuda

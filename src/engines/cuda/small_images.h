// SPDX-License-Identifier: Apache-2.0
// Convolutions so small that launches count more than products.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cuda {

const Candidate& small_images();

}  // namespace retrograd::engines::cuda
